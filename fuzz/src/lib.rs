//! What the fuzz targets check: one module for each, which judges one input and panics when a promise is broken.
//!
//! `tests/corpus.rs` runs the committed inputs through the same functions without a fuzzer.

pub mod body;
pub mod cursor;
pub mod deliveries;
pub mod holds;
pub mod idempotency_header;
pub mod import_tolls;
pub mod import_violations;
pub mod key_order;
pub mod money;
pub mod query;
pub mod signature;
pub mod webhook_url;

use rental_core::{resources::{api_key, organization, api}, schema::ResourceSpec};

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
