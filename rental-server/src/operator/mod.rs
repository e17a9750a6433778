//! The operator's API, `/admin/v1`: one file for each feature.

pub(crate) mod api_keys;
mod audit_entries;
mod backup;
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

use crate::{
    access::gate,
    endpoint::{self, Endpoint},
    objects,
};
use rental_core::{
    operation,
    resources::{Collection, organization::SYSTEM, registry},
    spec::ResourceSpec,
};

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

/// What the registry offers operators of a resource. Evaluated at compile time: a resource that is not offered to
/// operators does not compile.
const fn offered(spec: &'static ResourceSpec) -> Collection {
    let mut at = 0;
    while at < registry::OPERATOR.len() {
        if registry::OPERATOR[at].spec.tag == spec.tag {
            return registry::OPERATOR[at];
        }
        at += 1;
    }
    panic!("the registry does not offer this resource to operators")
}

/// GET on a collection of the operator's own.
fn list(collection: &'static Collection) -> Endpoint {
    let spec = collection.spec;
    endpoint::list(format!("/admin/v1/{}", spec.plural), spec)
        .operator(move |request| Box::pin(objects::list(request.app.store(), SYSTEM, spec, request.call)))
}

/// GET on an object of the operator's own.
fn retrieve(collection: &'static Collection) -> Endpoint {
    let spec = collection.spec;
    endpoint::retrieve(format!("/admin/v1/{}/{{id}}", spec.plural), spec)
        .operator(move |request| Box::pin(objects::get(request.app.store(), SYSTEM, spec, request.id, request.call)))
}

/// GET on what an organization has and only operators see.
fn list_of_organization(spec: &'static ResourceSpec) -> Endpoint {
    let path = format!("/admin/v1/organizations/{{organization}}/{}", spec.plural);
    endpoint::list(path, spec).operator(move |request| {
        Box::pin(async move {
            let organization = gate::organization(request.app.store(), request.id).await?;
            objects::list(request.app.store(), organization.id, spec, request.call).await
        })
    })
}

/// GET on one such object, whichever organization has it.
fn retrieve_of_any(spec: &'static ResourceSpec) -> Endpoint {
    endpoint::retrieve(format!("/admin/v1/{}/{{id}}", spec.plural), spec).operator(move |request| {
        Box::pin(async move {
            let organization = operation::owner_of(request.app.store(), spec, request.id).await?;
            objects::get(request.app.store(), organization.id, spec, request.id, request.call).await
        })
    })
}
