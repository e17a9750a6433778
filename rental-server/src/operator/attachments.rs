//! Gives choices of people back to the server.

use crate::{
    endpoint::{Endpoint, Request, camel, post},
    guard::Operator,
    http::reply::Handled,
    objects::write::write,
};
use rental_core::{attachments::Release, operations, resources::Attributable};

/// The endpoints for tolls or violations.
pub(super) fn endpoints<T: Attributable>() -> Vec<Endpoint> {
    let one = camel(T::SPEC.object);
    vec![
        post(format!("/admin/v1/{}/{{id}}/release", T::SPEC.plural))
            .about(T::SPEC, format!("release{one}"), format!("Let the server choose who pays the {}", T::SPEC.object))
            .says("Takes back the choice of a person. The customer who clearly had the vehicle is attached at once; without one it is unattached.")
            .operator(|request| Box::pin(release::<T>(request))),
    ]
}

async fn release<T: Attributable>(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let organization = operations::owner_of(app.store(), T::SPEC, id).await?;
    write(app, &organization, call, &body, &Release::<T>::new(&organization, id)).await
}
