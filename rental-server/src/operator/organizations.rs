//! Organizations: the tenants of the platform.

use crate::{
    access::quotas::Limits,
    endpoint::{self, Endpoint, Example, Request},
    guard::{Operator, Reader},
    http::reply::Handled,
    objects,
    operator::collections,
    reference::shapes,
};
use rental_core::resources::{
    Collection,
    organization::{self, Organization, SYSTEM},
};
use serde_json::{Value, json};

pub(crate) static ORGANIZATIONS: &Collection = collections::offered(&organization::SPEC);

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let spec = &organization::SPEC;
    let create = endpoint::create("/admin/v1/organizations", spec).operator(|request| Box::pin(create(request)));
    let update = endpoint::update("/admin/v1/organizations/{id}", spec).operator(|request| Box::pin(update(request)));
    let retrieve = endpoint::retrieve("/admin/v1/organizations/{id}", spec)
        .says("`usage` is about a second old, and the `ETag` does not depend on it.")
        .replies("OrganizationWithUsage")
        .example(Example::ObjectWith("usage", USAGE))
        .defines("OrganizationWithUsage", schema())
        .reader(|request| Box::pin(retrieve(request)));
    vec![collections::list(spec), create, retrieve, update]
}

/// The example of what an organization uses.
const USAGE: &str =
    "{\"objects\":1200,\"bytes\":1800000,\"max_objects\":null,\"max_bytes\":null,\"max_requests_per_second\":null}";

fn schema() -> Value {
    let most = |what: &str| json!({"type": ["integer", "null"], "format": "int64", "description": format!("Most {what}, by the organization or by the default of the server; `null` for no limit.")});
    let usage = shapes::object(
        "What the organization uses, approximately and about a second ago, and the quotas that apply.",
        json!({
            "objects": shapes::described(shapes::at_least(0), "Vehicles, customers, rentals, invoices, tolls, violations and leads together."),
            "bytes": shapes::described(shapes::at_least(0), "Bytes of the keys and values of all rows of the organization in the store: objects, index entries, events, deliveries, stored responses."),
            "max_objects": most("objects"),
            "max_bytes": most("bytes"),
            "max_requests_per_second": most("requests per second, at each server"),
        }),
    );
    let resource = json!({"$ref": "#/components/schemas/Organization"});
    json!({"allOf": [resource, {"type": "object", "required": ["usage"], "properties": {"usage": usage}}]})
}

async fn retrieve(request: Request<'_, Reader>) -> Handled {
    let Request { app, call, id, .. } = request;
    let reply = objects::get(app.store(), SYSTEM, &organization::SPEC, id, call).await?;
    if reply.body.is_empty() {
        return Ok(reply);
    }
    let organization = collections::organization_named(app.store(), id).await?;
    let Limits { objects, bytes, requests } = Limits::of(&organization, &app.tenants.defaults);
    let used = app.tenants.of(organization.id).used();
    let usage = json!({
        "objects": used.0,
        "bytes": used.1,
        "max_objects": objects,
        "max_bytes": bytes,
        "max_requests_per_second": requests,
    });
    Ok(reply.adding("usage", &usage))
}

async fn create(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, .. }, body) = request.read().await?;
    objects::create(app, (app.store(), &Organization::system(), ORGANIZATIONS), call, &body).await
}

async fn update(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let target = (app.store(), &Organization::system(), ORGANIZATIONS);
    let reply = objects::update(app, target, id, call, &body).await?;
    // The cache of API keys has the plan and the booking policy.
    app.authenticator.forget_all();
    Ok(reply)
}
