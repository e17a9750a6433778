//! Webhook endpoints of organizations, with their secrets: made, changed, switched, tested, recovered and deleted.

mod intents;
mod recovery;
mod test;

use crate::{
    edge,
    endpoint::{self, BodySchema, Endpoint, Example, Operator, Request, delete, post},
    http::reply::Handled,
    objects::{expects, write::write},
    operator::{bodies, collections},
    reference::{parts, schema::outcome},
    state::App,
    webhooks::Hooks,
};
use intents::{Change, Delete, Fresh, Make, Rotate, Switch};
use rental_core::{
    error::Error,
    page,
    resources::{
        delivery::{self, Delivery},
        organization::Organization,
        parse, to_json, webhook_endpoint,
    },
    rows::key,
    store::{Batch, Record, Scanned, get_each, key_of},
};
use serde_json::Value;
use std::sync::Arc;
use uuid::Uuid;

/// The longest overlap of a rotation: 7 days.
const MAX_OVERLAP_SECS: i64 = 7 * 24 * 3600;

/// The resource's endpoints.
pub(super) fn resource() -> Vec<Endpoint> {
    let spec = &webhook_endpoint::SPEC;
    let create = endpoint::create("/admin/v1/webhook_endpoints", spec)
        .says("The answer is the only one that shows the secret.")
        .replies("NewWebhookEndpoint")
        .example(Example::Object)
        .defines("NewWebhookEndpoint", parts::showing_once("WebhookEndpoint", "secret", "The signing secret."))
        .operator(|request| Box::pin(create(request)));
    let update =
        endpoint::update("/admin/v1/webhook_endpoints/{id}", spec).operator(|request| Box::pin(update(request)));
    vec![collections::list(spec), create, collections::retrieve(spec), update]
}

/// What else can be done to an endpoint.
pub(super) fn actions() -> Vec<Endpoint> {
    let spec = &webhook_endpoint::SPEC;
    let action = |word: &str| post(format!("/admin/v1/webhook_endpoints/{{id}}/{word}"));
    let overlap = "Seconds for which the old secret keeps signing. Default: `86400`.";
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
            .operator(|request| Box::pin(switch(request, true))),
        action("disable")
            .about(spec, "disableWebhookEndpoint", "Disable webhook endpoint")
            .says("Its deliveries wait until it is enabled again.")
            .operator(|request| Box::pin(switch(request, false))),
        action("rotate_secret")
            .about(spec, "rotateWebhookSecret", "Rotate webhook secret")
            .says("Old and new secret both sign until the overlap ends. The answer is the only one that shows the new one.")
            .takes(BodySchema::Own(parts::rotation_body(MAX_OVERLAP_SECS, overlap)))
            .replies("NewWebhookEndpoint")
            .example(Example::Object)
            .operator(|request| Box::pin(rotate(request))),
        test::endpoint(),
        recovery::endpoint(),
    ]
}

fn deleted_schema() -> Value {
    outcome(&[("id", "string"), ("object", "string"), ("organization_id", "string"), ("deleted", "boolean")])
}

async fn create(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, .. }, body) = request.read().await?;
    let fresh = Fresh::new();
    let make = Make { hooks: &app.hooks, fresh: &fresh, body: &body };
    let reply = write(app, &Organization::system(), call, &body, &make).await?;
    if let Some(id) = id_in(&reply.body) {
        app.hooks.endpoint_changed(id);
    }
    Ok(reply.showing_once("secret", &fresh.text))
}

fn id_in(body: &[u8]) -> Option<Uuid> {
    let object: Value = serde_json::from_slice(body).ok()?;
    page::id(object["id"].as_str()?)
}

async fn update(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let expected = |revision| expects(call, revision);
    let intent = Change { hooks: &app.hooks, id, body: &body, expected: &expected };
    let reply = write(app, &Organization::system(), call, &body, &intent).await?;
    changed(app, id);
    Ok(reply)
}

/// Enables or disables an endpoint. Twice is the same as once.
async fn switch(request: Request<'_, Operator>, enable: bool) -> Handled {
    let (Request { app, call, id, .. }, _) = request.read().await?;
    let reply = write(app, &Organization::system(), call, b"", &Switch { id, enable }).await?;
    changed(app, id);
    Ok(reply)
}

/// The endpoint and its secrets are gone at once, its due rows soon after.
async fn remove(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, _) = request.read().await?;
    let reply = write(app, &Organization::system(), call, b"", &Delete { id }).await?;
    changed(app, id);
    if let Some(id) = page::id(id) {
        tokio::spawn(purge(Arc::clone(&app.hooks), id));
    }
    Ok(reply)
}

fn changed(app: &App, id: &str) {
    if let Some(id) = page::id(id) {
        app.hooks.endpoint_changed(id);
    }
}

/// Gives up what waits for an endpoint that is gone, a few deliveries at a time.
async fn purge(hooks: Arc<Hooks>, id: Uuid) {
    while let Ok(rows) = hooks.store().scan(&key::all_due_rows(id), 256).await {
        if rows.is_empty() {
            return;
        }
        if let Err(error) = give_up(&hooks, rows).await {
            tracing::warn!(%id, ?error, "cannot give up what waits for a deleted webhook endpoint");
            return;
        }
    }
}

/// Ends the deliveries of these due rows, and removes the rows. Of a damaged one the row alone goes: it was the endpoint's.
async fn give_up(hooks: &Hooks, rows: Vec<Scanned>) -> Result<(), Error> {
    let mut batch = Batch::default();
    rows.iter().for_each(|row| batch.delete(key_of(row).clone()));
    let place = |row: &Record| Some(key::record(Uuid::from_slice(&row.value).ok()?, &delivery::SPEC, row.key.id()?));
    let places: Vec<_> = hooks.damaged.all_sound(rows).iter().filter_map(place).collect();
    for found in get_each(hooks.store(), &places).await? {
        let Some(record) = hooks.damaged.sound(found).flatten() else { continue };
        let Some(mut object) = hooks.damaged.skip(parse::<Delivery>(&record.key, &record.value))? else { continue };
        object.give_up("endpoint_deleted", edge::now());
        batch.replace(record.key, record.revision, to_json(&object)?);
    }
    // A delivery that ended meanwhile makes it stale: the next round reads it as it is then.
    hooks.store().commit(batch).await?;
    Ok(())
}

/// Old and new secret both sign until the overlap ends.
async fn rotate(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let seconds = bodies::overlap_secs(&body, MAX_OVERLAP_SECS)?;
    let fresh = Fresh::new();
    let intent = Rotate { hooks: &app.hooks, fresh: &fresh, id, seconds };
    let reply = write(app, &Organization::system(), call, &body, &intent).await?;
    changed(app, id);
    Ok(reply.showing_once("secret", &fresh.text))
}
