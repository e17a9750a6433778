//! HTTP: the accept loop, one call from bytes to bytes, and the handlers. The accept loop and the filter are in here only;
//! the tables beside it know warp's types for methods and statuses.

mod backup;
pub(crate) mod call;
pub(crate) mod export;
mod handlers;
mod keyed;
pub(crate) mod progress;
pub(crate) mod reply;
mod serve;
pub(crate) mod server;
pub(crate) mod write;
