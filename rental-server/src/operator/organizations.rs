//! Organizations: the tenants of the platform.

use crate::{
    endpoint::{self, Endpoint, Request},
    guard::Operator,
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
    let spec = &organization::SPEC;
    let create = endpoint::create("/admin/v1/organizations", spec).operator(|request| Box::pin(create(request)));
    let update = endpoint::update("/admin/v1/organizations/{id}", spec).operator(|request| Box::pin(update(request)));
    vec![collections::list(spec), create, collections::retrieve(spec), update]
}

async fn create(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, .. }, body) = request.read().await?;
    objects::create(app, (app.store(), &Organization::system(), &ORGANIZATIONS), call, &body).await
}

async fn update(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let target = (app.store(), &Organization::system(), &ORGANIZATIONS);
    let reply = objects::update(app, target, id, call, &body).await?;
    // The cache of API keys has the plan and the booking policy.
    app.authenticator.forget_all();
    Ok(reply)
}
