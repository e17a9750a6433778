//! The operator's side of webhooks: endpoints with their secrets, test deliveries, resending and recovering.

use crate::{
    app::App,
    edge,
    http::{
        call::Call,
        reply::{Problem, Reply},
        write::write,
    },
    routes,
    webhook::{Hooks, relay, send::Message},
};
use bytes::Bytes;
use rental_core::{
    effects,
    error::{Error, FieldCode},
    event::{self, EVENT_TYPES},
    operation::{self, Create, Edge, Intent, Prepared, Preparing, Update},
    page,
    resources::{
        delivery::{self, Delivery},
        organization::{Organization, SYSTEM},
        parse,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    store::{Batch, Check, Order, Record, Revision, Scanned, Span, Store, all_sound, get_each, key, key_of},
    value::Timestamp,
    webhook::{
        fan_out,
        secret::{PREFIX, Sealed},
        signature, target,
    },
};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use uuid::Uuid;

/// Longest overlap of a rotation: 7 days; 24 h when none is given, in seconds.
const MAX_OVERLAP_SECS: i64 = 7 * 24 * 3600;
const DEFAULT_OVERLAP_SECS: i64 = 24 * 3600;
/// Most events that one call of `recover` looks at.
const RECOVER_PAGE: usize = 200;

/// A new secret and what is stored of it.
struct Fresh {
    text: String,
    nonce: [u8; 24],
}

impl Fresh {
    fn new() -> Self {
        let mut nonce = [0; 24];
        nonce.copy_from_slice(&edge::secret_bytes()[..24]);
        let digits: String = edge::secret_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text: format!("{PREFIX}{digits}"), nonce }
    }

    fn seal(&self, hooks: &Hooks, endpoint: Uuid) -> Result<String, Error> {
        hooks.master_key.seal(endpoint, self.nonce, &self.text).map_err(Error::Internal)
    }
}

/// POST /admin/v1/webhook_endpoints.
pub(crate) async fn create(app: &App, call: &Call, body: &[u8]) -> Result<Reply, Problem> {
    let fresh = Fresh::new();
    let reply =
        write(app, &Organization::system(), call, body, &Make { hooks: &app.hooks, fresh: &fresh, body }).await?;
    if let Some(id) = id_in(&reply.body) {
        app.hooks.endpoint_changed(id);
    }
    Ok(reply.showing_once("secret", &fresh.text))
}

fn id_in(body: &[u8]) -> Option<Uuid> {
    let object: serde_json::Value = serde_json::from_slice(body).ok()?;
    page::id(object["id"].as_str()?)
}

/// PATCH /admin/v1/webhook_endpoints/{id}.
pub(crate) async fn update(
    app: &App,
    call: &Call,
    id: &str,
    body: &[u8],
    expected: &(dyn Fn(Revision) -> bool + Sync),
) -> Result<Reply, Problem> {
    let reply =
        write(app, &Organization::system(), call, body, &Change { hooks: &app.hooks, id, body, expected }).await?;
    changed(app, id);
    Ok(reply)
}

/// POST /admin/v1/webhook_endpoints/{id}/enable and /disable. Twice is the same as once.
pub(crate) async fn switch(app: &App, call: &Call, id: &str, enable: bool) -> Result<Reply, Problem> {
    let reply = write(app, &Organization::system(), call, b"", &Switch { id, enable }).await?;
    changed(app, id);
    Ok(reply)
}

/// DELETE /admin/v1/webhook_endpoints/{id}: it and its secrets are gone at once, its due rows soon after.
pub(crate) async fn delete(app: &App, call: &Call, id: &str) -> Result<Reply, Problem> {
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

/// POST /admin/v1/webhook_endpoints/{id}/rotate_secret: old and new secret both sign until the overlap ends.
pub(crate) async fn rotate(app: &App, call: &Call, id: &str, body: &[u8]) -> Result<Reply, Problem> {
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

fn read<'b, T: Deserialize<'b> + Default>(body: &'b [u8], fields: &str) -> Result<T, Error> {
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| Error::Malformed(format!("The body takes {fields} alone: {error}.")))
}

/// Loads an endpoint as the operator names it.
async fn endpoint(store: &dyn Store, id: &str) -> Result<(Record, WebhookEndpoint), Error> {
    let record = operation::get(store, SYSTEM, &webhook_endpoint::SPEC, id).await?;
    let endpoint = parse(&record.key, &record.value)?;
    Ok((record, endpoint))
}

/// POST /admin/v1/webhook_endpoints/{id}/test: one signed attempt now, with an example event. It is not recorded.
pub(crate) async fn test(app: &App, id: &str) -> Result<Reply, Problem> {
    let (_, endpoint) = endpoint(app.store(), id).await?;
    let url = target::parse(&endpoint.url).map_err(Error::Internal)?;
    let moment = edge::Moment::new();
    let wanted = EVENT_TYPES.iter().find(|row| endpoint.wants(row.1)).unwrap_or(&EVENT_TYPES[0]);
    let example =
        routes::specs().find(|spec| spec.object == wanted.2).map(crate::openapi::example_object).unwrap_or_default();
    let event_id = moment.new_id();
    let body = event::body(event_id, wanted.0, moment.now(), example.to_string().as_bytes());
    let secrets = secrets(&app.hooks, endpoint.id, moment.now()).await?;
    let signature = signature::header(secrets.iter().map(String::as_bytes), moment.now().seconds(), &body);
    let message = Message { url: &url, event_id: event_id.to_string(), event_type: wanted.1, signature, body };
    let (ending, attempt) = app.hooks.sender.send(message).await;
    let result = json!({
        "object": "webhook_test", "endpoint_id": endpoint.id, "event_type": wanted.1, "delivered": ending.is_success(),
        "duration_ms": attempt.duration_ms, "status": attempt.status, "error": attempt.error, "response": attempt.response,
    });
    Ok(Reply::json(result.to_string().into()))
}

async fn secrets(hooks: &Hooks, id: Uuid, now: Timestamp) -> Result<Vec<String>, Error> {
    let place = [key::secrets(id)];
    let Some(record) = hooks.store().get(&place).await?.pop().flatten() else { return Ok(Vec::new()) };
    let sealed: Sealed = serde_json::from_slice(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
    let open = |sealed: &str| {
        hooks.master_key.open(id, sealed).map_err(|_| {
            Error::Conflict(
                "The secret of this endpoint was sealed with another master key. Start the server with that key, or \
                 rotate the secret."
                    .into(),
            )
        })
    };
    sealed.in_force(now).map(|secret| open(&secret.sealed)).collect()
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResendBody {
    endpoint_id: Option<String>,
}

/// POST /admin/v1/events/{id}/resend: a new delivery of a stored event, to one endpoint or to all that want it.
pub(crate) async fn resend(app: &App, call: &Call, id: &str, body: &[u8]) -> Result<Reply, Problem> {
    let asked: ResendBody = read(body, "`endpoint_id`")?;
    let organization = operation::owner_of(app.store(), &event::SPEC, id).await?;
    let intent = Resend { hooks: &app.hooks, organization: &organization, id, endpoint: asked.endpoint_id.as_deref() };
    let reply = write(app, &organization, call, body, &intent).await?;
    let endpoints = relay::endpoints_of(&app.hooks, organization.id).await?;
    app.hooks.wake_anywhere(endpoints.into_iter().map(|endpoint| endpoint.id)).await?;
    Ok(reply)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecoverBody {
    since: Option<String>,
    starting_after: Option<String>,
}

/// POST /admin/v1/webhook_endpoints/{id}/recover: new deliveries of what did not arrive, one page of events at a time.
pub(crate) async fn recover(app: &App, call: &Call, id: &str, body: &[u8]) -> Result<Reply, Problem> {
    let asked: RecoverBody = read(body, "`since` and `starting_after`")?;
    let time = "must be an RFC 3339 time, such as 2026-05-05T09:30:00Z";
    let since = asked.since.ok_or_else(|| Error::field("since", FieldCode::Missing, "is required"))?;
    let since = Timestamp::parse_bound(&since).ok_or_else(|| Error::field("since", FieldCode::Invalid, time))?;
    let wrong = || Error::field("starting_after", FieldCode::Invalid, "must be the `next_cursor` of an earlier answer");
    let after = asked.starting_after.map(|text| page::id(&text).ok_or_else(wrong)).transpose()?;
    let (_, endpoint) = endpoint(app.store(), id).await?;
    let intent = Recover { endpoint: &endpoint, since, after };
    let reply = write(app, &Organization::system(), call, body, &intent).await?;
    app.hooks.wake_anywhere([endpoint.id]).await?;
    Ok(reply)
}

struct Make<'a> {
    hooks: &'a Hooks,
    fresh: &'a Fresh,
    body: &'a [u8],
}

impl Intent for Make<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let collection =
                routes::operator("webhook_endpoint").ok_or_else(|| Error::Internal("no endpoints".into()))?;
            let create = Create { collection, organization: &Organization::system(), body: self.body, given: &[] };
            let mut prepared = create.prepare(store, edge).await?;
            let made: WebhookEndpoint =
                serde_json::from_slice(&prepared.body).map_err(|error| Error::Internal(error.to_string()))?;
            check_target(self.hooks, &made.url)?;
            let mark = store.get(&[key::subscribed(made.organization_id)]).await?.pop().flatten();
            // Damaged ones count as well: the relay reads no more rows than this.
            if relay::endpoint_rows(self.hooks, made.organization_id).await?.len() >= relay::MOST_ENDPOINTS {
                return Err(Error::Conflict(format!(
                    "An organization has at most {} webhook endpoints. Delete one first.",
                    relay::MOST_ENDPOINTS
                )));
            }
            let mut sealed = Sealed::default();
            sealed.rotate(self.fresh.seal(self.hooks, made.id)?, edge.now(), edge.now());
            prepared.batch.insert(key::secrets(made.id), to_json(&sealed)?);
            // From now on the organization's events go through the outbox; see `operation::is_subscribed`. That the mark
            // is as it was read makes two that race for the last place come one after the other.
            match mark {
                Some(record) => prepared.batch.replace(record.key, record.revision, Bytes::new()),
                None => prepared.batch.insert(key::subscribed(made.organization_id), Bytes::new()),
            }
            Ok(prepared)
        })
    }
}

fn check_target(hooks: &Hooks, url: &str) -> Result<(), Error> {
    let parsed = target::parse(url).map_err(|rule| Error::field("url", FieldCode::Invalid, &rule))?;
    if hooks.settings.allow_private {
        return Ok(());
    }
    target::check_host(&parsed).map_err(|rule| Error::field("url", FieldCode::Invalid, &rule))
}

fn to_json(object: &impl serde::Serialize) -> Result<Bytes, Error> {
    serde_json::to_vec(object).map(Bytes::from).map_err(|error| Error::Internal(error.to_string()))
}

struct Change<'a> {
    hooks: &'a Hooks,
    id: &'a str,
    body: &'a [u8],
    expected: &'a (dyn Fn(Revision) -> bool + Sync),
}

impl Intent for Change<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let collection =
                routes::operator("webhook_endpoint").ok_or_else(|| Error::Internal("no endpoints".into()))?;
            let (organization, id, body) = (&Organization::system(), self.id, self.body);
            let prepared =
                Update { collection, organization, id, body, expected: self.expected }.prepare(store, edge).await?;
            let made: WebhookEndpoint =
                serde_json::from_slice(&prepared.body).map_err(|error| Error::Internal(error.to_string()))?;
            check_target(self.hooks, &made.url)?;
            Ok(prepared)
        })
    }
}

struct Switch<'a> {
    id: &'a str,
    enable: bool,
}

impl Intent for Switch<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (before, _) = endpoint(store, self.id).await?;
            let now = edge.now();
            let rule = |endpoint: &mut WebhookEndpoint| {
                if self.enable {
                    endpoint.enable(now)
                } else {
                    endpoint.disable("disabled by the operator", now)
                }
                Ok(Vec::new())
            };
            operation::edit(store, edge, &Organization::system(), before, rule).await
        })
    }
}

struct Delete<'a> {
    id: &'a str,
}

impl Intent for Delete<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, _: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (record, endpoint) = endpoint(store, self.id).await?;
            let mut batch = Batch::default();
            effects::index_keys(SYSTEM, &endpoint).into_iter().for_each(|entry| batch.delete(entry));
            batch.checks.push(Check::At(record.key.clone(), record.revision));
            batch.delete(record.key);
            batch.delete(key::secrets(endpoint.id));
            let (id, whose) = (endpoint.id, endpoint.organization_id);
            let body =
                json!({"id": id, "object": "webhook_endpoint", "organization_id": whose, "deleted": true}).to_string();
            Ok(Prepared { batch, body: body.into(), revision: record.revision })
        })
    }
}

struct Rotate<'a> {
    hooks: &'a Hooks,
    fresh: &'a Fresh,
    id: &'a str,
    seconds: i64,
}

impl Intent for Rotate<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (record, endpoint) = endpoint(store, self.id).await?;
            let place = key::secrets(endpoint.id);
            let stored = store.get(std::slice::from_ref(&place)).await?.pop().flatten();
            let stored = stored.ok_or_else(|| Error::Internal("an endpoint has no secrets".into()))?;
            let mut sealed: Sealed =
                serde_json::from_slice(&stored.value).map_err(|error| Error::damaged(&place, &error))?;
            let end = edge.now().plus_millis(self.seconds * 1000);
            sealed.rotate(self.fresh.seal(self.hooks, endpoint.id)?, end, edge.now());
            let mut batch = Batch::default();
            batch.checks.push(Check::At(record.key, record.revision));
            batch.replace(place, stored.revision, to_json(&sealed)?);
            Ok(Prepared { batch, body: record.value, revision: record.revision })
        })
    }
}

struct Resend<'a> {
    hooks: &'a Hooks,
    organization: &'a Organization,
    id: &'a str,
    endpoint: Option<&'a str>,
}

impl Intent for Resend<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let record = operation::get(store, self.organization.id, &event::SPEC, self.id).await?;
            let (event_id, kind) = event_of(&record)?;
            let all = relay::endpoints_of(self.hooks, self.organization.id).await?;
            let targets: Vec<_> = match self.endpoint.map(page::id) {
                None => all.iter().filter(|endpoint| endpoint.wants(&kind)).collect(),
                Some(id) => all.iter().filter(|endpoint| Some(endpoint.id) == id).collect(),
            };
            if self.endpoint.is_some() && targets.is_empty() {
                return Err(Error::field(
                    "endpoint_id",
                    FieldCode::ResourceMissing,
                    "names no webhook endpoint of the event's organization",
                ));
            }
            let mut batch = Batch::default();
            let mut made = Vec::new();
            for endpoint in targets {
                made.push(fan_out::add(&mut batch, self.organization.id, endpoint.id, (event_id, &kind), edge)?);
            }
            let body = json!({"object": "list", "has_more": false, "next_cursor": null, "data": made}).to_string();
            Ok(Prepared { batch, body: body.into(), revision: record.revision })
        })
    }
}

fn event_of(record: &Record) -> Result<(Uuid, String), Error> {
    #[derive(Deserialize)]
    struct Head {
        id: Uuid,
        r#type: String,
    }
    let head: Head = serde_json::from_slice(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
    Ok((head.id, head.r#type))
}

struct Recover<'a> {
    endpoint: &'a WebhookEndpoint,
    since: Timestamp,
    after: Option<Uuid>,
}

impl Intent for Recover<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let organization = self.endpoint.organization_id;
            let prefix = key::records(organization, &event::SPEC);
            let mut span = Span::newest_first(&prefix).created_from(&prefix, self.since.millis());
            span.order = Order::Ascending;
            if let Some(after) = self.after {
                // The first key behind the cursor's own.
                span.from = span.from.max(key::after(&key::record(organization, &event::SPEC, after)));
            }
            let events = if span.is_empty() { Vec::new() } else { all_sound(store.scan(&span, RECOVER_PAGE).await?)? };
            let (mut batch, mut resent) = (Batch::default(), 0);
            for record in &events {
                let (event_id, kind) = event_of(record)?;
                if self.endpoint.wants(&kind) && !self.arrived(store, event_id).await? {
                    fan_out::add(&mut batch, organization, self.endpoint.id, (event_id, &kind), edge)?;
                    resent += 1;
                }
            }
            let more = events.len() == RECOVER_PAGE;
            let cursor = events.last().and_then(|record| record.key.id()).filter(|_| more);
            let body = json!({"object": "recovery", "examined": events.len(), "resent": resent, "has_more": more, "next_cursor": cursor});
            Ok(Prepared { batch, body: body.to_string().into(), revision: 1 })
        })
    }
}

impl Recover<'_> {
    /// Whether the endpoint has got the event, or still will. The outbox first: a row that is gone by then has become
    /// deliveries, which the look after it sees.
    async fn arrived(&self, store: &dyn Store, event: Uuid) -> Result<bool, Error> {
        if store.get(&[key::outbox(event)]).await?.pop().flatten().is_some() {
            return Ok(true);
        }
        let (organization, spec) = (self.endpoint.organization_id, &delivery::SPEC);
        let prefix = delivery::of_endpoint_and_event(self.endpoint.id, event).prefix(organization, spec);
        let span = Span::newest_first(&prefix).following(key::records(organization, spec));
        for record in all_sound(store.scan(&span, 100).await?)? {
            let delivery: Delivery = parse(&record.key, &record.value)?;
            if delivery.status != "failed" {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
