//! Shows the tolls and violations that a person has to look at, and gives choices of people back to the server.

use crate::{
    endpoint::{Endpoint, Parameter, Request, camel, get, post},
    guard::{Operator, Reader},
    http::reply::Handled,
    objects::{listed, write::write},
    operator::collections,
};
use rental_core::{
    attachments::{self, Release},
    operations,
    resources::Attributable,
};

/// The endpoints for tolls or violations.
pub(super) fn endpoints<T: Attributable>() -> Vec<Endpoint> {
    let one = camel(T::SPEC.object);
    let many = T::SPEC.plural;
    vec![
        get(format!("/admin/v1/organizations/{{organization}}/{many}/review"))
            .about(T::SPEC, format!("review{}", camel(many)), format!("List the {many} that a person has to look at"))
            .says("Those without a customer, and those that an invoice bills although by what is recorded now another customer or nobody pays. With names and local times, for people.")
            .parameters(["Limit", "StartingAfter"].map(Parameter::Shared).into())
            .replies("ReviewList")
            .without_revision()
            .reader(|request| Box::pin(shown::<T>(request))),
        post(format!("/admin/v1/{}/{{id}}/release", T::SPEC.plural))
            .about(T::SPEC, format!("release{one}"), format!("Let the server choose who pays the {}", T::SPEC.object))
            .says("Takes back the choice of a person. The customer who clearly had the vehicle is attached at once, or later, when that becomes clear; until then it is detached.")
            .operator(|request| Box::pin(release::<T>(request))),
    ]
}

async fn shown<T: Attributable>(request: Request<'_, Reader>) -> Handled {
    let Request { app, call, id, .. } = request;
    let organization = collections::organization_named(app.store(), id).await?;
    Ok(listed(app, attachments::review::<T>(app.store(), &organization, call.query()).await?))
}

async fn release<T: Attributable>(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let organization = operations::owner_of(app.store(), T::SPEC, id).await?;
    write(app, &organization, call, &body, &Release::<T>::new(&organization, id)).await
}
