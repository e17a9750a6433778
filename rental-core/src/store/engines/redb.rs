//! The embedded engine: one redb file, one writer thread, group commit.
//!
//! Callers queue batches. The writer takes up to 256 of them, checks and applies each in its order in one write
//! transaction, makes one durable two-phase commit, publishes the new snapshot, and answers all callers. It makes all
//! checks of a batch before its first write, because redb has no savepoint once a table is open. Reads run on the caller's
//! thread from the published snapshot: they take no lock, open no transaction, and see every acknowledged write.
//!
//! After an I/O error redb refuses all further work. Then this engine acknowledges no further write,
//! [`Store::ready`](crate::store::Store::ready) fails, and [`Redb::failed`] completes so that the process can stop.
//!
//! No room on the disk is another matter: what is durable is not affected. The writer opens the file again, so that reads go
//! on, and refuses writes until a probe finds room.

mod batch;
mod closed_file;
mod engine;
mod file;
mod holder;
mod maintenance;
mod place;
mod read_only;
mod row;
mod scan;
mod shared;
mod snapshot;
mod source;
mod tables;
mod version;
mod versioned;
mod watched;
mod writer;

pub use crate::store::{SCHEMA_VERSION, WriterStats};
pub use closed_file::ClosedFile;
pub use engine::Redb;
pub use maintenance::{Restored, compact, restore, restore_and_upgrade};
pub use place::SCHEME;
pub use snapshot::Snapshot;
