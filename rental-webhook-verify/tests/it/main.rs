//! The rules of the signature, each held by a test of that name. Features add the tests of their adapter.

mod header;
mod interop;
mod properties;
mod secrets;
mod shared;
mod support;
mod time;
mod vectors;

#[cfg(feature = "actix")]
mod actix;
#[cfg(feature = "axum")]
mod axum;
#[cfg(any(feature = "http", feature = "actix"))]
mod deliveries;
#[cfg(any(feature = "axum", feature = "tower", feature = "warp"))]
mod endless;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "std")]
mod receiver;
#[cfg(feature = "tower")]
mod tower;
#[cfg(feature = "warp")]
mod warp;
