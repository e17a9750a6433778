//! Webhook endpoints of organizations, with their secrets: made, changed, switched, tested, recovered and deleted.

mod intents;
mod recovery;
mod test;

use crate::{
    endpoint::{self, BodySchema, Endpoint, Example, Operator, Request, delete, post},
    http::reply::Handled,
    objects::{expects, write::write},
    operator::collections,
    reference::{parts, schema::outcome},
    state::App,
};
use bytes::Bytes;
use intents::{Change, Delete, Fresh, Make, Rotate, Switch};
use rental_core::{
    error::{Error, FieldCode},
    operations,
    request::page,
    resources::{
        Collection,
        organization::{Organization, SYSTEM},
        parse,
        webhook_endpoint::{self, EndpointStatus, WebhookEndpoint},
    },
    store::{Record, Store},
};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Longest overlap of a rotation: 7 days; 24 h when none is given, in seconds.
const MAX_OVERLAP_SECS: i64 = 7 * 24 * 3600;
const DEFAULT_OVERLAP_SECS: i64 = 24 * 3600;

static WEBHOOK_ENDPOINTS: Collection = collections::offered(&webhook_endpoint::SPEC);

/// The resource's endpoints.
pub(super) fn resource() -> Vec<Endpoint> {
    let spec = &webhook_endpoint::SPEC;
    let create = endpoint::create("/admin/v1/webhook_endpoints", spec)
        .says("The answer is the only one that shows the secret.")
        .replies("NewWebhookEndpoint")
        .example(Example::Object)
        .defines("NewWebhookEndpoint", schema())
        .operator(|request| Box::pin(create(request)));
    let update =
        endpoint::update("/admin/v1/webhook_endpoints/{id}", spec).operator(|request| Box::pin(update(request)));
    vec![collections::list(&WEBHOOK_ENDPOINTS), create, collections::retrieve(&WEBHOOK_ENDPOINTS), update]
}

/// What else can be done to an endpoint.
pub(super) fn actions() -> Vec<Endpoint> {
    let spec = &webhook_endpoint::SPEC;
    let action = |word: &str| post(format!("/admin/v1/webhook_endpoints/{{id}}/{word}"));
    let overlap = parts::overlap(MAX_OVERLAP_SECS, "Seconds for which the old secret keeps signing. Default: `86400`.");
    vec![
        delete("/admin/v1/webhook_endpoints/{id}")
            .about(spec, "deleteWebhookEndpoint", "Delete webhook endpoint")
            .says("What waited for it is not sent any more.")
            .replies("Deleted")
            .defines("Deleted", deleted_schema())
            .operator(|request| Box::pin(remove(request))),
        action("enable")
            .about(spec, "enableWebhookEndpoint", "Enable webhook endpoint")
            .says("It gets events again, and what waited for it, with a clean record of failures.")
            .operator(|request| Box::pin(switch(request, EndpointStatus::Enabled))),
        action("disable")
            .about(spec, "disableWebhookEndpoint", "Disable webhook endpoint")
            .says("Its deliveries wait until it is enabled again.")
            .operator(|request| Box::pin(switch(request, EndpointStatus::Disabled))),
        action("rotate_secret")
            .about(spec, "rotateWebhookSecret", "Rotate webhook secret")
            .says("Old and new secret both sign until the overlap ends. The answer is the only one that shows the new one.")
            .takes(BodySchema::Own(parts::action_body(overlap, &[], json!({"overlap_seconds": 3600}))))
            .replies("NewWebhookEndpoint")
            .example(Example::Object)
            .operator(|request| Box::pin(rotate(request))),
        test::endpoint(),
        recovery::endpoint(),
    ]
}

fn schema() -> Value {
    let secret = json!({"type": "string", "description": "The signing secret. It is shown here and never again; absent on a replay."});
    json!({"allOf": [{"$ref": "#/components/schemas/WebhookEndpoint"}, {"type": "object", "properties": {"secret": secret}}]})
}

fn deleted_schema() -> Value {
    outcome(&[("id", "string"), ("object", "string"), ("organization_id", "string"), ("deleted", "boolean")])
}

async fn create(mut request: Request<'_, Operator>) -> Handled {
    let body = &request.read().await?[..];
    let Request { app, call, .. } = request;
    let fresh = Fresh::new();
    let reply =
        write(app, &Organization::system(), call, body, &Make { hooks: &app.hooks, fresh: &fresh, body }).await?;
    if let Some(id) = id_in(&reply.body) {
        app.hooks.endpoint_changed(id);
    }
    Ok(reply.showing_once("secret", &fresh.text))
}

fn id_in(body: &[u8]) -> Option<Uuid> {
    let object: Value = serde_json::from_slice(body).ok()?;
    page::id(object["id"].as_str()?)
}

async fn update(mut request: Request<'_, Operator>) -> Handled {
    let body = &request.read().await?[..];
    let Request { app, call, id, .. } = request;
    let expected = |revision| expects(call, revision);
    let intent = Change { hooks: &app.hooks, id, body, expected: &expected };
    let reply = write(app, &Organization::system(), call, body, &intent).await?;
    changed(app, id);
    Ok(reply)
}

/// Enables or disables an endpoint. Twice is the same as once.
async fn switch(mut request: Request<'_, Operator>, to: EndpointStatus) -> Handled {
    request.read().await?;
    let Request { app, call, id, .. } = request;
    let reply = write(app, &Organization::system(), call, b"", &Switch { id, to }).await?;
    changed(app, id);
    Ok(reply)
}

/// The endpoint and its secrets are deleted at once. A task fails its pending deliveries and removes their due rows.
async fn remove(mut request: Request<'_, Operator>) -> Handled {
    request.read().await?;
    let Request { app, call, id, .. } = request;
    let reply = write(app, &Organization::system(), call, b"", &Delete { id }).await?;
    changed(app, id);
    app.tasks_begun.notify_one();
    Ok(reply)
}

fn changed(app: &App, id: &str) {
    if let Some(id) = page::id(id) {
        app.hooks.endpoint_changed(id);
    }
}

/// Old and new secret both sign until the overlap ends.
async fn rotate(mut request: Request<'_, Operator>) -> Handled {
    let body = &request.read().await?[..];
    let Request { app, call, id, .. } = request;
    let asked: Rotation = read(body, "`overlap_seconds`")?;
    let seconds = asked.overlap_seconds.unwrap_or(DEFAULT_OVERLAP_SECS);
    if !(0..=MAX_OVERLAP_SECS).contains(&seconds) {
        return Err(
            Error::field("overlap_seconds", FieldCode::Invalid, "must be a whole number from 0 to 604800").into()
        );
    }
    let fresh = Fresh::new();
    let intent = Rotate { hooks: &app.hooks, fresh: &fresh, id, seconds };
    let reply = write(app, &Organization::system(), call, body, &intent).await?;
    changed(app, id);
    Ok(reply.showing_once("secret", &fresh.text))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rotation {
    overlap_seconds: Option<i64>,
}

/// A body of these fields alone; an empty one is the default.
pub(super) fn read<'b, T: Deserialize<'b> + Default>(body: &'b [u8], fields: &str) -> Result<T, Error> {
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| Error::Malformed(format!("The body takes {fields} alone: {error}.")))
}

/// Loads an endpoint as the operator names it.
async fn endpoint(store: &dyn Store, id: &str) -> Result<(Record, WebhookEndpoint), Error> {
    let record = operations::get(store, SYSTEM, &webhook_endpoint::SPEC, id).await?;
    let endpoint = parse(&record.key, &record.value)?;
    Ok((record, endpoint))
}

fn to_json(object: &impl serde::Serialize) -> Result<Bytes, Error> {
    serde_json::to_vec(object).map(Bytes::from).map_err(|error| Error::Internal(error.to_string()))
}
