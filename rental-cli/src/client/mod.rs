//! The HTTP side: requests, retries, uploads and the feed of events.

pub(crate) mod access;
pub(crate) mod api;
mod attempt;
pub(crate) mod event_feed;
pub(crate) mod request;
mod retry;
pub(crate) mod upload;
