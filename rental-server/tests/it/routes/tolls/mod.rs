//! `/v1/tolls`

mod get;
mod list;
mod update;
