//! The platform as a library: open a store, create organizations, and work with typed objects.
//!
//! [`Platform`] is one store with a clock, ids and randomness. [`Fleet`] is one organization on it: its vehicles,
//! customers, rentals, invoices, tolls, violations, leads and events. The rules are those of [`crate::operations`], which
//! the HTTP server uses too, so an object looks the same whichever way it was written.
//!
//! Every call that uses the store is `async`. Memory and file stores work with any executor and read on the calling thread;
//! a PostgreSQL store needs a Tokio runtime.

mod context;
mod edge;
mod engine;
mod event;
mod export;
mod fleet;
mod id_of;
mod kept;
mod key;
mod list;
mod open;
mod stored;
#[cfg(feature = "system")]
mod system;
mod write;

pub use crate::operations::api_keys::Access;
pub use edge::PlatformEdge;
pub use engine::Engine;
pub use event::Event;
pub use export::ExportError;
pub use fleet::{CreateOrganization, Fleet};
pub use id_of::IdOf;
pub use key::IssuedKey;
pub use list::{ListRequest, Listed, Page, Walk};
#[cfg(feature = "redb")]
pub use open::FILE_CACHE_BYTES;
pub use open::Platform;
pub use stored::Stored;
#[cfg(feature = "system")]
pub use system::SystemEdge;
pub use write::{CreateRequest, UpdateRequest};
