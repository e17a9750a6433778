//! Leads: API keys create them, operators read and settle them (spec, Leads).

use crate::{
    endpoint::{self, Endpoint, Request},
    guard::Operator,
    http::reply::Handled,
    objects,
    operator::collections,
};
use rental_core::{
    operations,
    resources::{Collection, lead},
};

static LEADS: &Collection = collections::offered(&lead::SPEC);

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let update = endpoint::update("/admin/v1/leads/{id}", &lead::SPEC)
        .says(
            "Says where the lead stands, and which customer it became. Absent fields stay as they are. It emits no event.",
        )
        .operator(|request| Box::pin(update(request)));
    vec![collections::list_of_organization(&lead::SPEC), collections::retrieve_of_any(&lead::SPEC), update]
}

async fn update(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let organization = operations::owner_of(app.store(), &lead::SPEC, id).await?;
    objects::update(app, (app.store(), &organization, LEADS), id, call, &body).await
}
