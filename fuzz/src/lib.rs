//! What the fuzz targets check: one module for each, which judges one input and panics when a promise is broken.
//!
//! `tests/corpus.rs` runs the committed inputs through the same functions without a fuzzer.

pub mod archive;
pub mod body;
pub mod calendar;
pub mod cursor;
pub mod deliveries;
mod fixtures;
pub mod holds;
pub mod idempotency_header;
pub mod import_tolls;
pub mod import_violations;
pub mod key_order;
pub mod money;
pub mod query;
pub mod raw_http;
pub mod signature;
pub mod store_crashes;
pub mod upgrade;
pub mod webhook_url;

// The server is a program without a library, so its files are compiled into this crate.
mod config;
#[allow(dead_code, reason = "the target uses a part of it, its tests another")]
#[path = "../../rental-server/src/damaged_rows.rs"]
mod damaged_rows;
/// The simulated disk of the tests of the engine.
#[expect(dead_code, reason = "the target uses a part of it")]
#[path = "../../rental-core/tests/power_loss/disk.rs"]
mod simulated_disk;
#[allow(dead_code, unused_imports, reason = "the target uses a part of it")]
#[path = "../../rental-server/src/disk.rs"]
mod disk;
#[expect(dead_code, reason = "the target uses a part of it")]
#[path = "../../rental-server/src/edge.rs"]
mod edge;
#[expect(dead_code, unused_imports, reason = "the target uses a part of it")]
#[path = "../../rental-server/src/http/mod.rs"]
mod http;
#[allow(dead_code, reason = "the target uses a part of it, its tests another")]
#[path = "../../rental-server/src/limits.rs"]
mod limits;
#[path = "../../rental-server/src/panics.rs"]
mod panics;
#[path = "../../rental-server/src/trace_context.rs"]
mod trace_context;

use rental_core::{
    resources::{api, api_key, organization},
    schema::ResourceSpec,
};

/// Every resource that takes bodies or lists.
pub fn specs() -> Vec<&'static ResourceSpec> {
    api().map(|row| row.spec).chain([&organization::SPEC, &api_key::SPEC]).collect()
}

/// The resource that the first byte chooses, and the rest.
fn choose(data: &[u8]) -> Option<(&'static ResourceSpec, &[u8])> {
    let (first, rest) = data.split_first()?;
    let specs = specs();
    Some((specs[usize::from(*first) % specs.len()], rest))
}

/// Hands out the bytes of an input piece by piece; zeros when they run out.
pub(crate) struct Pieces<'a>(pub(crate) &'a [u8]);

impl Pieces<'_> {
    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut piece = [0; N];
        let (head, rest) = self.0.split_at(N.min(self.0.len()));
        piece[..head.len()].copy_from_slice(head);
        self.0 = rest;
        piece
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
