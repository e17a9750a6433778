//! `/v1/events`

mod get;
mod list;
