//! `/v1/invoices`

mod get;
mod list;
