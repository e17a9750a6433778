//! Lists and objects as operators get them, and what the registry offers operators.

use crate::{
    access::gate,
    endpoint::{self, Endpoint},
    objects,
};
use rental_core::{
    operations,
    resources::{Collection, organization::SYSTEM, registry},
    schema::ResourceSpec,
};

/// What the registry offers operators of a resource. Evaluated at compile time: a resource that is not offered to
/// operators does not compile.
pub(super) const fn offered(spec: &'static ResourceSpec) -> Collection {
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
pub(super) fn list(collection: &'static Collection) -> Endpoint {
    let spec = collection.spec;
    endpoint::list(format!("/admin/v1/{}", spec.plural), spec)
        .operator(move |request| Box::pin(objects::list(request.app.store(), SYSTEM, spec, request.call)))
}

/// GET on an object of the operator's own.
pub(super) fn retrieve(collection: &'static Collection) -> Endpoint {
    let spec = collection.spec;
    endpoint::retrieve(format!("/admin/v1/{}/{{id}}", spec.plural), spec)
        .operator(move |request| Box::pin(objects::get(request.app.store(), SYSTEM, spec, request.id, request.call)))
}

/// GET on what an organization has and only operators see.
pub(super) fn list_of_organization(spec: &'static ResourceSpec) -> Endpoint {
    let path = format!("/admin/v1/organizations/{{organization}}/{}", spec.plural);
    endpoint::list(path, spec).operator(move |request| {
        Box::pin(async move {
            let organization = gate::organization(request.app.store(), request.id).await?;
            objects::list(request.app.store(), organization.id, spec, request.call).await
        })
    })
}

/// GET on one such object, whichever organization has it.
pub(super) fn retrieve_of_any(spec: &'static ResourceSpec) -> Endpoint {
    endpoint::retrieve(format!("/admin/v1/{}/{{id}}", spec.plural), spec).operator(move |request| {
        Box::pin(async move {
            let organization = operations::owner_of(request.app.store(), spec, request.id).await?;
            objects::get(request.app.store(), organization.id, spec, request.id, request.call).await
        })
    })
}
