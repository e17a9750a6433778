//! The engine for several servers: one table in PostgreSQL, or in what speaks its protocol.
//!
//! A range is read by one statement (`scan.rs`); reads of single rows share statements (`reader.rs`). One task takes the
//! queued writes and commits them together (`writer.rs` says why that is right). Everything has a bound: the connections,
//! the queues, and each wait for the database. After a restart or a fail-over of the database the engine reconnects by
//! itself; until then its calls fail with [`StoreError::Unavailable`](crate::store::StoreError::Unavailable).
//!
//! Nothing here needs PostgreSQL itself: plain tables, no extension, no advisory lock, no notification.

mod address;
mod connections;
mod dump;
mod engine;
mod group;
mod link;
mod load;
mod reader;
mod record;
mod scan;
mod schema;
mod turn;
mod version;
mod versioned;
mod views;
mod writer;

pub use address::Address;
pub use dump::Snapshot;
pub use engine::{Postgres, Settings};
pub use load::LoadError;
