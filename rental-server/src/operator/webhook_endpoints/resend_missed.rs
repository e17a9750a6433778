//! New deliveries of events that an endpoint did not get.

use crate::{
    endpoint::{BodySchema, Endpoint, Request, post},
    guard::Operator,
    http::reply::Handled,
    objects::{leaving_out, write::write},
    operator::{bodies, events::event_of, webhook_endpoints::intents::load},
    reference::{parts, schema::outcome, shapes::cursor},
};
use rental_core::{
    error::Error,
    operations::{Edge, Intent, Prepared, Preparing},
    resources::{
        delivery::{self, Delivery, DeliveryStatus},
        event,
        organization::Organization,
        parse,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    rows::key,
    store::{self, Batch, DamagedRow, Order, Span, Store, all_sound, get_one, key_of},
    value::{EndpointId, EventId, Timestamp},
    webhooks::fan_out,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};

/// Most events that one request reads.
const MISSED_PAGE: usize = 200;

/// The endpoint of this file.
pub(super) fn endpoint() -> Endpoint {
    post("/admin/v1/webhook_endpoints/{id}/recover")
        .about(&webhook_endpoint::SPEC, "recoverEvents", "Resend events that did not arrive")
        .says("Makes new deliveries of events since a time, if the endpoint is subscribed to them and did not get them. One request reads one page of events.")
        .takes(BodySchema::Own(body()))
        .replies("Recovery")
        .defines("Recovery", schema())
        .operator(|request| Box::pin(resend_missed(request)))
}

fn body() -> Value {
    let since = json!({"type": "string", "format": "date-time", "description": "Events from this time on."});
    let properties = json!({"since": since, "starting_after": cursor()});
    parts::action_body(properties, &["since"], json!({"since": "2026-05-05T00:00:00Z"}))
}

fn schema() -> Value {
    outcome(&[("object", "string"), ("examined", "integer"), ("resent", "integer"), ("has_more", "boolean")])
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MissedBody {
    since: Option<String>,
    starting_after: Option<String>,
}

/// Makes new deliveries of events that did not arrive, for one page of events.
async fn resend_missed(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let asked: MissedBody = bodies::optional(&body, "`since` and `starting_after`")?;
    let since = bodies::bound("since", asked.since.as_deref())?;
    let after = bodies::cursor(asked.starting_after.as_deref())?.map(EventId::from_uuid);
    let intent = ResendMissed { id, since, after, damaged: Mutex::default() };
    let reply = write(app, &Organization::system(), call, &body, &intent).await?;
    app.hooks.wake_anywhere(EndpointId::parse(id)).await?;
    let damaged = intent.damaged.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(leaving_out(app, reply, &damaged))
}

struct ResendMissed<'a> {
    /// The endpoint, as the operator names it.
    id: &'a str,
    since: Timestamp,
    after: Option<EventId>,
    /// The rows because of which events were left out.
    damaged: Mutex<Vec<DamagedRow>>,
}

impl Intent for ResendMissed<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            // Read at each attempt to commit: the batch is stale when the endpoint was deleted.
            let (_, endpoint) = load(store, self.id).await?;
            let organization = endpoint.organization_id;
            let prefix = key::records(organization, &event::SPEC);
            let mut span = Span::newest_first(&prefix).created_from(&prefix, self.since.millis());
            span.order = Order::Ascending;
            if let Some(after) = self.after {
                // Begin after the cursor.
                span.from = span.from.max(store::after(&event::key(organization, after)));
            }
            let events = if span.is_empty() { Vec::new() } else { store.scan(&span, MISSED_PAGE).await? };
            let (mut batch, mut resent, mut damaged) = (Batch::default(), 0, Vec::new());
            for row in &events {
                // The events behind a damaged one are made up for.
                let missed = async {
                    let (event_id, kind) = event_of(row.as_ref().map_err(|row| Error::Damaged(row.clone()))?)?;
                    let is_missed = endpoint.wants(&kind) && !arrived(store, &endpoint, event_id).await?;
                    Ok(is_missed.then_some((event_id, kind)))
                };
                if let Some((event_id, kind)) = Error::note_damage(missed.await, &mut damaged)?.flatten() {
                    fan_out::add(&mut batch, organization, endpoint.id, (event_id, &kind), edge)?;
                    resent += 1;
                }
            }
            *self.damaged.lock().unwrap_or_else(PoisonError::into_inner) = damaged;
            let more = events.len() == MISSED_PAGE;
            let cursor = events.last().and_then(|row| key_of(row).id()).filter(|_| more);
            let body = json!({"object": "recovery", "examined": events.len(), "resent": resent, "has_more": more, "next_cursor": cursor});
            Ok(Prepared { batch, body: body.to_string().into(), revision: 1, object: None, asks: Vec::new() })
        })
    }
}

/// Whether the endpoint has got the event, or will get it. The outbox is read first: a row that is gone by then has become
/// deliveries, which are read next.
async fn arrived(store: &dyn Store, endpoint: &WebhookEndpoint, event: EventId) -> Result<bool, Error> {
    if get_one(store, &key::outbox(endpoint.organization_id, event)).await?.is_some() {
        return Ok(true);
    }
    let (organization, spec) = (endpoint.organization_id, &delivery::SPEC);
    let prefix = delivery::of_endpoint_and_event(endpoint.id, event).prefix(organization, spec);
    let span = Span::newest_first(&prefix).following(key::records(organization, spec));
    for record in all_sound(store.scan(&span, 100).await?)? {
        let delivery: Delivery = parse(&record.key, &record.value)?;
        if delivery.status != DeliveryStatus::Failed {
            return Ok(true);
        }
    }
    Ok(false)
}
