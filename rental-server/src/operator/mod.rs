//! The operator's API, `/admin/v1`: one file for each feature.

pub(crate) mod api_keys;
mod audit_entries;
mod backup;
mod collections;
mod deliveries;
mod events;
mod export;
mod imports;
mod invoice_page;
pub(crate) mod invoices;
pub(crate) mod organizations;
pub(crate) mod records;
mod status;
mod suggestions;
mod webhook_endpoints;

use crate::endpoint::Endpoint;

/// Every operation of operators, in the order of the document.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    [
        organizations::endpoints(),
        api_keys::resource(),
        webhook_endpoints::resource(),
        audit_entries::endpoints(),
        api_keys::actions(),
        webhook_endpoints::actions(),
        events::resource(),
        deliveries::endpoints(),
        events::actions(),
        records::endpoints(),
        invoices::endpoints(),
        imports::tolls(),
        suggestions::tolls(),
        imports::violations(),
        suggestions::violations(),
        export::endpoints(),
        imports::exports(),
        status::endpoints(),
        backup::endpoints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
