//! The engine for several servers: one table in PostgreSQL, or in a database that speaks its protocol.
//!
//! One statement reads a range (`scan.rs`); reads of single rows share statements (`reader.rs`). One task commits queued
//! batches together (`writer.rs` explains why this is correct). The number of connections, the queues, and each wait for
//! the database are bounded. After a restart or fail-over of the database the engine reconnects; until then its calls fail
//! with [`StoreError::Unavailable`](crate::store::StoreError::Unavailable).
//!
//! The engine uses plain tables only: no extension, no advisory lock, no notification.

mod address;
mod connections;
mod engine;
mod group;
mod load;
mod place;
mod pooler;
mod reader;
mod record;
mod scan;
mod schema;
mod session;
mod snapshot;
mod transaction;
mod version;
mod versioned;
mod views;
mod writer;

pub use address::Address;
pub use engine::{Postgres, Settings};
pub use place::SCHEME;
pub use snapshot::Snapshot;
