//! `/v1/violations`

mod get;
mod list;
mod update;
