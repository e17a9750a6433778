//! HTTP: the accept loop and the handling of one request. warp, hyper and status codes appear in this folder only.

pub(crate) mod call;
mod client_address;
mod closing;
mod connection;
pub(crate) mod files;
mod framing;
mod http2;
pub(crate) mod paths;
mod patience;
pub(crate) mod places;
pub(crate) mod problem;
mod problem_log;
pub(crate) mod progress;
pub(crate) mod reply;
mod run_to_end;
pub(crate) mod serve;
pub(crate) mod server;
mod serving;
pub(crate) mod streamed;
pub(crate) mod tls;
mod traffic;
mod unread;
pub(crate) mod upgrading;
pub(crate) mod upload;

/// Names of HTTP that handlers use.
pub(crate) use warp::http::{HeaderName, Method, header};
