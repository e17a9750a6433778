//! The operator's API, `/admin/v1`: one file for each feature.

pub(crate) mod api_keys;
pub(crate) mod backup;
pub(crate) mod export;
pub(crate) mod imports;
mod invoice_page;
pub(crate) mod invoices;
pub(crate) mod status;
pub(crate) mod suggestions;
pub(crate) mod webhook_endpoints;
