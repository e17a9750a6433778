//! `/v1/violations`

mod get;
mod list;
mod review;
mod update;
