//! The operator's API, `/admin/v1`: one file for each feature.

pub(crate) mod api_keys;
mod assignments;
mod attachments;
mod backup;
mod bodies;
mod clock;
mod collections;
mod credit_notes;
mod drafts;
mod erasures;
mod events;
mod export;
mod imports;
pub(crate) mod invoices;
mod leads;
mod logos;
mod master_key;
pub(crate) mod operators;
mod organization_deletion;
pub(crate) mod organizations;
pub(crate) mod records;
mod status;
mod suggestions;
mod webhook_endpoints;

use crate::endpoint::Endpoint;
use rental_core::resources::{audit_entry, delivery, toll::Toll, violation::Violation};

/// Every operation of operators, in the order of the document.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    [
        organizations::endpoints(),
        logos::endpoints(),
        organization_deletion::endpoints(),
        api_keys::resource(),
        webhook_endpoints::resource(),
        vec![collections::list(&audit_entry::SPEC), collections::retrieve(&audit_entry::SPEC)],
        api_keys::actions(),
        webhook_endpoints::actions(),
        events::resource(),
        vec![collections::list_of_organization(&delivery::SPEC), collections::retrieve_of_any(&delivery::SPEC)],
        events::actions(),
        erasures::endpoints(),
        leads::endpoints(),
        assignments::endpoints(),
        records::endpoints(),
        invoices::endpoints(),
        drafts::endpoints(),
        credit_notes::endpoints(),
        imports::statements::<Toll>(),
        suggestions::endpoints::<Toll>(),
        attachments::endpoints::<Toll>(),
        imports::statements::<Violation>(),
        suggestions::endpoints::<Violation>(),
        attachments::endpoints::<Violation>(),
        export::endpoints(),
        imports::exports(),
        status::endpoints(),
        clock::endpoints(),
        master_key::endpoints(),
        backup::endpoints(),
        operators::endpoints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
