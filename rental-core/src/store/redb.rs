//! The embedded engine: one redb file, one writer thread, group commit.
//!
//! Callers queue batches. The writer takes up to 256 queued batches, checks and applies each in order in one write
//! transaction, makes ONE durable two-phase commit, publishes the new snapshot and answers all callers. It checks a batch
//! before the batch's first write, because redb has no savepoint once a table is open. Reads run inline on the caller's
//! thread from the published snapshot: they take no lock, open no transaction, and see every acknowledged write.
//!
//! After any I/O error redb refuses further work, and so does this engine: it acknowledges no further write,
//! [`Store::ready`](crate::store::Store::ready) fails, and [`Redb::failed`] resolves so that the process can stop.

mod batch;
mod care;
mod engine;
mod file;
mod look;
mod row;
mod snapshot;
mod tables;
mod version;
mod versioned;
mod writer;

pub use crate::store::{SCHEMA_VERSION, WriterStats};
pub use care::{Compacted, RestoreError, Restored, compact, restore, restore_and_upgrade};
pub use engine::Redb;
pub use file::IN_USE;
pub use look::{Closed, Found};
pub use snapshot::Snapshot;
