//! HTTP: the accept loop, one call from bytes to bytes, and the handlers. warp and hyper appear in here only.

pub(crate) mod call;
pub(crate) mod handlers;
pub(crate) mod reply;
pub(crate) mod server;
