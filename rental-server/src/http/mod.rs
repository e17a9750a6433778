//! HTTP: the accept loop, one call from bytes to bytes, and the handlers. The accept loop and the filter are in here only;
//! the tables beside it know warp's types for methods and statuses.

mod backup;
pub(crate) mod call;
mod closing;
pub(crate) mod export;
mod handlers;
mod keyed;
pub(crate) mod progress;
pub(crate) mod reply;
mod run_to_end;
mod serve;
pub(crate) mod server;
mod traffic;
pub(crate) mod upgrading;
pub(crate) mod write;
