//! `/v1/tolls`

mod get;
mod list;
mod review;
mod update;
