//! The HTTP side: requests, retries, uploads and the feed of events.

pub(crate) mod access;
pub(crate) mod api;
pub(crate) mod event_feed;
mod retry;
pub(crate) mod upload;
