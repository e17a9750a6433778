//! Operators record invoices, tolls and violations of an organization.

use crate::{
    endpoint::{BodySchema, Endpoint, Request, camel, post},
    guard::Operator,
    http::reply::Handled,
    objects,
    operator::collections,
};
use rental_core::resources::{self, Collection};

/// The collection in which operators record objects of a resource.
pub(crate) fn collection(object: &str) -> Option<&'static Collection> {
    resources::recorded().find(|row| row.spec.object == object)
}

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    resources::recorded().map(endpoint).collect()
}

fn endpoint(collection: &'static Collection) -> Endpoint {
    let spec = collection.spec;
    let summary = format!("Record {} for an organization", spec.object.replace('_', " "));
    post(format!("/admin/v1/organizations/{{organization}}/{}", spec.plural))
        .about(spec, format!("record{}", camel(spec.object)), summary)
        .takes(BodySchema::Create)
        .operator(move |request| Box::pin(record(request, collection)))
}

async fn record(request: Request<'_, Operator>, collection: &'static Collection) -> Handled {
    let organization = collections::organization_named(request.app.store(), request.id).await?;
    let (Request { app, call, .. }, body) = request.read().await?;
    objects::create(app, (app.store(), &organization, collection), call, &body).await
}
