//! Organizations: the tenants of the platform.

use crate::{
    endpoint::{self, Endpoint, Operator, Request},
    http::reply::Handled,
    objects,
    operator::collections,
};
use rental_core::resources::{
    Collection,
    organization::{self, Organization},
};

pub(crate) static ORGANIZATIONS: Collection = collections::offered(&organization::SPEC);

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let create =
        endpoint::create("/admin/v1/organizations", &organization::SPEC).operator(|request| Box::pin(create(request)));
    let update = endpoint::update("/admin/v1/organizations/{id}", &organization::SPEC)
        .operator(|request| Box::pin(update(request)));
    vec![collections::list(&ORGANIZATIONS), create, collections::retrieve(&ORGANIZATIONS), update]
}

async fn create(mut request: Request<'_, Operator>) -> Handled {
    let body = &request.read().await?[..];
    let (app, system) = (request.app, Organization::system());
    objects::create(app, (app.store(), &system, &ORGANIZATIONS), request.call, body).await
}

async fn update(mut request: Request<'_, Operator>) -> Handled {
    let body = &request.read().await?[..];
    let (app, system) = (request.app, Organization::system());
    let target = (app.store(), &system, &ORGANIZATIONS);
    let reply = objects::update(app, target, request.id, request.call, body).await?;
    // The plan and the policy are remembered with each key.
    app.gate.forget();
    Ok(reply)
}
