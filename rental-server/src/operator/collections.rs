//! Reads of operators, and the collections in which operators write.

use crate::{
    endpoint::{self, Documented, Endpoint, camel},
    objects,
};
use rental_core::{
    error::Error,
    operations,
    resources::{
        self, Collection, RESOURCES,
        organization::{self, Organization, SYSTEM},
        parse,
    },
    schema::ResourceSpec,
    store::Store,
};

/// The collection in which operators write objects of a resource. Evaluated at compile time: the program does not
/// compile when the list of resources does not offer it.
pub(super) const fn offered(spec: &'static ResourceSpec) -> &'static Collection {
    let mut at = 0;
    while at < RESOURCES.len() {
        if let Some(collection) = &RESOURCES[at].operator
            && collection.spec.tag == spec.tag
        {
            return collection;
        }
        at += 1;
    }
    panic!("the list of resources does not offer this resource to operators")
}

/// The organization whose id is in the path.
pub(super) async fn organization_named(store: &dyn Store, id: &str) -> Result<Organization, Error> {
    let record = operations::get(store, SYSTEM, &organization::SPEC, id).await?;
    parse(&record.key, &record.value)
}

/// GET on all objects of a resource that belongs to the operator.
pub(super) fn list(spec: &'static ResourceSpec) -> Endpoint {
    endpoint::list(format!("/admin/v1/{}", spec.plural), spec)
        .reader(move |request| Box::pin(objects::list(request.app, SYSTEM, spec, request.call)))
}

/// GET on an object of a resource that belongs to the operator.
pub(super) fn retrieve(spec: &'static ResourceSpec) -> Endpoint {
    endpoint::retrieve(format!("/admin/v1/{}/{{id}}", spec.plural), spec)
        .reader(move |request| Box::pin(objects::get(request.app.store(), SYSTEM, spec, request.id, request.call)))
}

/// An endpoint with this id, if holders of API keys have one with the usual id.
fn of_operators(endpoint: Documented, spec: &'static ResourceSpec, id: String) -> Documented {
    match resources::api().any(|public| public.spec.tag == spec.tag && public.list) {
        true => endpoint.with_id(id),
        false => endpoint,
    }
}

/// GET on the objects of an organization, for operators.
pub(super) fn list_of_organization(spec: &'static ResourceSpec) -> Endpoint {
    let path = format!("/admin/v1/organizations/{{organization}}/{}", spec.plural);
    let many = format!("list{}OfOrganization", camel(spec.plural));
    of_operators(endpoint::list(path, spec), spec, many).reader(move |request| {
        Box::pin(async move {
            let organization = organization_named(request.app.store(), request.id).await?;
            objects::list(request.app, organization.id, spec, request.call).await
        })
    })
}

/// GET on one such object of any organization.
pub(super) fn retrieve_of_any(spec: &'static ResourceSpec) -> Endpoint {
    let one = format!("get{}OfAnyOrganization", camel(spec.object));
    let endpoint = endpoint::retrieve(format!("/admin/v1/{}/{{id}}", spec.plural), spec);
    of_operators(endpoint, spec, one).reader(move |request| {
        Box::pin(async move {
            let organization = operations::owner_of(request.app.store(), spec, request.id).await?;
            objects::get(request.app.store(), organization.id, spec, request.id, request.call).await
        })
    })
}
