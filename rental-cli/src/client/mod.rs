//! The HTTP client: requests, retries, uploads and the event feed.

pub(crate) mod access;
pub(crate) mod api;
mod attempt;
pub(crate) mod event_feed;
pub(crate) mod request;
mod retry;
pub(crate) mod trace;
pub(crate) mod upload;
