//! Operators create, change, enable, disable, test, recover and delete webhook endpoints, and rotate their secrets.

mod enabling;
mod intents;
mod resend_missed;
mod test;

use crate::{
    endpoint::{self, BodySchema, Endpoint, Example, Request, delete, post},
    guard::Operator,
    http::reply::Handled,
    objects::{expects, write::write},
    operator::{bodies, collections},
    reference::{parts, schema::outcome},
    state::App,
};
use intents::{Change, Delete, Fresh, Make, Rotate, Switch, WEBHOOK_ENDPOINTS};
use rental_core::{
    operations::{Create, Update},
    resources::{
        organization::Organization,
        webhook_endpoint::{self, EndpointStatus},
    },
    value::EndpointId,
};
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// The longest overlap of a rotation: 7 days.
const MAX_OVERLAP_SECS: i64 = 7 * 24 * 3600;

/// The resource's endpoints.
pub(super) fn resource() -> Vec<Endpoint> {
    let spec = &webhook_endpoint::SPEC;
    let create = endpoint::create("/admin/v1/webhook_endpoints", spec)
        .says("Only this response shows the secret.")
        .replies("IssuedWebhookEndpoint")
        .example(Example::Object)
        .defines("IssuedWebhookEndpoint", parts::showing_once("WebhookEndpoint", "secret", "The signing secret."))
        .operator(|request| Box::pin(create(request)));
    let update =
        endpoint::update("/admin/v1/webhook_endpoints/{id}", spec).operator(|request| Box::pin(update(request)));
    vec![collections::list(spec), create, collections::retrieve(spec), update]
}

/// Actions on an endpoint.
pub(super) fn actions() -> Vec<Endpoint> {
    let spec = &webhook_endpoint::SPEC;
    let action = |word: &str| post(format!("/admin/v1/webhook_endpoints/{{id}}/{word}"));
    let overlap = "Seconds for which the old secret keeps signing. Default: `86400`.";
    vec![
        delete("/admin/v1/webhook_endpoints/{id}")
            .about(spec, "deleteWebhookEndpoint", "Delete webhook endpoint")
            .says("Its pending deliveries are not sent.")
            .replies("Deleted")
            .defines("Deleted", deleted_schema())
            .operator(|request| Box::pin(remove(request))),
        action("enable")
            .about(spec, "enableWebhookEndpoint", "Enable webhook endpoint")
            .says("It gets events again, also those that waited while it was disabled. Its count of failures begins at 0.")
            .operator(|request| Box::pin(switch(request, EndpointStatus::Enabled))),
        action("disable")
            .about(spec, "disableWebhookEndpoint", "Disable webhook endpoint")
            .says("Its deliveries wait until it is enabled again.")
            .operator(|request| Box::pin(switch(request, EndpointStatus::Disabled))),
        action("rotate_secret")
            .about(spec, "rotateWebhookSecret", "Rotate webhook secret")
            .says("Both secrets sign until the overlap ends. Only this response shows the new secret.")
            .takes(BodySchema::Own(parts::rotation_body(MAX_OVERLAP_SECS, overlap)))
            .replies("IssuedWebhookEndpoint")
            .example(Example::Object)
            .operator(|request| Box::pin(rotate(request))),
        test::endpoint(),
        resend_missed::endpoint(),
        enabling::endpoint(),
    ]
}

fn deleted_schema() -> Value {
    outcome(&[("id", "uuid"), ("object", "string"), ("organization_id", "uuid"), ("deleted", "boolean")])
}

async fn create(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, .. }, body) = request.read().await?;
    let (fresh, system) = (Fresh::new(), Organization::system());
    let create = Create { collection: WEBHOOK_ENDPOINTS, organization: &system, body: (&body).into(), given: &[] };
    let make = Make { hooks: &app.hooks, fresh: &fresh, create, made: Mutex::default() };
    let reply = write(app, &system, call, &body, &make).await?;
    let made = make.made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.into_iter().for_each(|id| app.hooks.endpoint_changed(id));
    Ok(reply.showing_once("secret", &fresh.text))
}

async fn update(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let (expected, system) = (|revision| expects(call, revision), Organization::system());
    let (collection, organization) = (WEBHOOK_ENDPOINTS, &system);
    let update = Update { collection, organization, id, body: (&body).into(), expected: &expected };
    let reply = write(app, &system, call, &body, &Change { hooks: &app.hooks, update }).await?;
    changed(app, id);
    Ok(reply)
}

/// Enables or disables an endpoint. A second call changes nothing.
async fn switch(request: Request<'_, Operator>, to: EndpointStatus) -> Handled {
    let (Request { app, call, id, .. }, _) = request.read().await?;
    let reply = write(app, &Organization::system(), call, b"", &Switch { id, to }).await?;
    changed(app, id);
    Ok(reply)
}

/// Deletes an endpoint and its secrets. A task fails its pending deliveries and removes their due rows.
async fn remove(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, _) = request.read().await?;
    let reply = write(app, &Organization::system(), call, b"", &Delete { id }).await?;
    changed(app, id);
    app.tasks_begun.notify_one();
    Ok(reply)
}

fn changed(app: &App, id: &str) {
    if let Some(id) = EndpointId::parse(id) {
        app.hooks.endpoint_changed(id);
    }
}

/// Rotates the secret: both secrets sign until the overlap ends.
async fn rotate(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let seconds = bodies::overlap_secs(&body, MAX_OVERLAP_SECS)?;
    let fresh = Fresh::new();
    let intent = Rotate { hooks: &app.hooks, fresh: &fresh, id, seconds };
    let reply = write(app, &Organization::system(), call, &body, &intent).await?;
    changed(app, id);
    Ok(reply.showing_once("secret", &fresh.text))
}
