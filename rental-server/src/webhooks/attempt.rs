//! One attempt of a delivery: sign, send, commit the outcome. The lane decides when.

use super::{
    hooks::Hooks,
    send::{Message, span_of},
};
use crate::{
    edge,
    limits::Part,
    panics::catch_panic,
    telemetry::{Span, What},
    trace_context::TraceParent,
};
use ::url::Url;
use bytes::Bytes;
use rental_core::{
    error::Error,
    operations::erased::{erased_key, present_copy},
    resources::{
        Resource,
        delivery::{Attempt, Delivery, DeliveryStatus},
        organization::SYSTEM,
        parse, to_json,
        webhook_endpoint::{DISABLED_BY_FAILURES, WebhookEndpoint},
    },
    rows::key,
    store::{Batch, Check, Commit, Prior, Record, Revision, StoreError},
    value::{DeliveryId, EndpointId, OrganizationId, Timestamp, url},
    webhooks::{
        attempt::{AfterAttempt, Ending, RetryDecision, Streak, after_attempt},
        deletion,
        fan_out::{self, RETRY, due},
        secret::Sealed,
        signature,
    },
};
use std::{pin::pin, sync::Arc, time::Duration};

/// An endpoint with its secrets, as they were last read.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) endpoint: WebhookEndpoint,
    /// Revisions of the endpoint's record and of its secrets.
    pub(super) revisions: [Revision; 2],
    pub(super) url: Url,
    pub(super) secrets: Vec<(String, Option<Timestamp>)>,
}

/// A row of the due index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) organization: OrganizationId,
    pub(super) class: u8,
    pub(super) millis: u64,
    pub(super) delivery: DeliveryId,
}

/// What the lane knew when an attempt began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Began {
    /// The number of the attempt, as [`Concurrency`](rental_core::webhooks::concurrency::Concurrency) counts them.
    pub(super) number: u64,
    /// The endpoint's failures in a row.
    pub(super) failures: u32,
}

/// How an attempt went, for the lane that made it.
pub(super) struct Report {
    pub(super) delivery: DeliveryId,
    pub(super) began: Began,
    pub(super) outcome: Outcome,
}

/// The outcome of an attempt, as committed.
pub(super) enum Outcome {
    /// The endpoint accepted the delivery after this time.
    Success(Duration),
    /// The attempt failed: the endpoint's failures in a row, and whether they disable it.
    Failure { failures: u32, disables: bool },
    /// The disk is full or the clock has jumped, so no attempt was made: its outcome could not be saved.
    NotSaved,
    /// There was nothing to send, or the outcome was not committed. The lane reads the due rows again.
    Nothing,
    /// A row is damaged, or the attempt panicked: no retry can help.
    Damaged(Damage),
}

/// What keeps a delivery from being sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Damage {
    /// The delivery or its event is damaged, or its attempt panicked.
    Delivery,
    /// The endpoint is damaged, which all its deliveries need.
    Endpoint,
}

/// The records of an endpoint and of its secrets.
pub(super) async fn records(hooks: &Hooks, id: EndpointId) -> Result<[Option<Record>; 2], Error> {
    let keys = [WebhookEndpoint::key(SYSTEM, id), key::secrets(id)];
    let mut found = hooks.store().get(&keys).await?;
    let secrets = found.pop().flatten();
    Ok([found.pop().flatten(), secrets])
}

/// Their revisions; 0 for a record that does not exist.
pub(super) fn revisions(records: &[Option<Record>; 2]) -> [Revision; 2] {
    records.each_ref().map(|record| record.as_ref().map_or(0, |record| record.revision))
}

pub(super) async fn load(hooks: &Hooks, id: EndpointId) -> Result<Option<Target>, Error> {
    let found = records(hooks, id).await?;
    let revisions = revisions(&found);
    let [endpoint, secrets] = found;
    let Some(record) = endpoint else { return Ok(None) };
    let endpoint: WebhookEndpoint = parse(&record.key, &record.value)?;
    let url = url::parse(&endpoint.url).map_err(|rule| Error::Internal(format!("the URL of endpoint {id} {rule}")))?;
    let sealed: Sealed = match secrets {
        Some(record) => {
            rental_core::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))?
        }
        None => Sealed::default(),
    };
    let secrets = hooks.keys.ring().open_all(id, &sealed).map_err(Error::Internal)?;
    Ok(Some(Target { endpoint, revisions, url, secrets }))
}

pub(super) fn read_due(record: &Record, class: u8) -> Result<Due, Error> {
    let read = || {
        let organization = OrganizationId::from_slice(&record.value)?;
        let delivery = DeliveryId::from_uuid(record.key.id()?);
        Some(Due { organization, class, millis: key::due_millis(&record.key)?, delivery })
    };
    read().ok_or_else(|| Error::damaged_row(&record.key, "it names no organization"))
}

/// Makes one attempt and commits its outcome. The permit is given back at the end.
pub(super) async fn attempt(hooks: Arc<Hooks>, target: Arc<Target>, row: Due, began: Began, permit: Part) -> Report {
    let outcome = catch_panic(pin!(perform(&hooks, &target, row, began))).await;
    drop(permit);
    let outcome = match outcome {
        Ok(Ok(outcome)) => outcome,
        // It would panic again: only this delivery waits, not the endpoint.
        Err(_) => {
            tracing::error!(delivery = %row.delivery, endpoint = %target.endpoint.id, "an attempt panicked; its delivery waits until the endpoint changes or the server starts again");
            Outcome::Damaged(Damage::Delivery)
        }
        Ok(Err(Error::Damaged(damaged))) => {
            hooks.damaged.note(&damaged);
            let is_endpoint = damaged.key == WebhookEndpoint::key(SYSTEM, target.endpoint.id);
            Outcome::Damaged(if is_endpoint { Damage::Endpoint } else { Damage::Delivery })
        }
        Ok(Err(error)) => {
            tracing::warn!(delivery = %row.delivery, ?error, "the outcome of an attempt could not be saved; the attempt will be repeated");
            // The lane reads the row again at its next turn: the pause keeps it from doing so in a tight loop.
            tokio::time::sleep(Duration::from_millis(500)).await;
            Outcome::Nothing
        }
    };
    Report { delivery: row.delivery, began, outcome }
}

async fn perform(hooks: &Hooks, target: &Target, row: Due, began: Began) -> Result<Outcome, Error> {
    let place = Delivery::key(row.organization, row.delivery);
    let Some(record) = hooks.store().get(std::slice::from_ref(&place)).await?.pop().flatten() else {
        return remove_row(hooks, target, row).await;
    };
    let pending: Delivery = parse(&record.key, &record.value)?;
    let event_key = rental_core::resources::event::key(row.organization, pending.event_id);
    let event = hooks.store().get(std::slice::from_ref(&event_key)).await?.pop().flatten();
    let event = match (event, pending.status) {
        (Some(event), DeliveryStatus::Pending) => event,
        (None, DeliveryStatus::Pending) => return give_up(hooks, target, row, record).await,
        _ => return remove_row(hooks, target, row).await,
    };
    if hooks.space.is_full() || !edge::is_right() {
        // The outcome could not be saved, so the receiver would get the event again and again.
        return Ok(Outcome::NotSaved);
    }
    // The customer may have been erased since the event was stored.
    let (body, customer) = present_copy(hooks.store(), row.organization, event.value).await?;
    // An event that names no customer can be about one all the same: erasing rewrites it.
    let unerased = match customer {
        Some(customer) => Check::Absent(erased_key(row.organization, customer)),
        None => Check::At(event_key, event.revision),
    };
    let trace = span_of(pending.event_id, &hooks.settings);
    let (ending, log) = hooks.sender.send(message(target, &pending, trace, body)).await;
    let host = target.url.host_str().unwrap_or_default();
    let is_outage = match ending.unreached() {
        Some(failure) => hooks.outage.unreached(host, row.organization, failure),
        None => {
            hooks.outage.reached(host);
            false
        }
    };
    hooks.metrics.record(&ending, is_outage, log.duration_ms);
    if ending.is_success() {
        hooks.metrics.delivered(edge::now().millis().saturating_sub(pending.created_at.millis()));
    }
    record_span(hooks, row.organization, pending.event_type, trace, &log);
    settle(hooks, target, (row, unerased), (&ending, &log), (began.failures, is_outage)).await
}

/// Records the attempt as a span: neither its address nor its body.
fn record_span(hooks: &Hooks, organization: OrganizationId, event_type: String, context: TraceParent, log: &Attempt) {
    if hooks.settings.telemetry.is_on() {
        hooks.settings.telemetry.record(Span {
            context,
            parent: None,
            began: log.at,
            took: Duration::from_millis(log.duration_ms),
            organization: Some(organization),
            what: What::Attempt { event_type, status: log.status, error: log.error.clone() },
        });
    }
}

fn message<'a>(target: &'a Target, delivery: &'a Delivery, trace: TraceParent, body: Bytes) -> Message<'a> {
    // Signed at send time, not at creation: the receiver rejects t older than 300 s (spec, Signature 4).
    let now = edge::now();
    let secrets =
        target.secrets.iter().filter(|(_, end)| end.is_none_or(|end| end > now)).map(|(text, _)| text.as_bytes());
    let signature = signature::header(secrets, now.seconds(), &body);
    Message {
        url: &target.url,
        event_id: delivery.event_id.to_string(),
        event_type: &delivery.event_type,
        signature,
        trace,
        body,
    }
}

/// Removes the due row of a delivery that is gone or has ended.
async fn remove_row(hooks: &Hooks, target: &Target, row: Due) -> Result<Outcome, Error> {
    let mut batch = Batch::default();
    batch.delete(key::due(target.endpoint.id, row.class, row.millis, row.delivery));
    hooks.store().commit(batch).await?;
    Ok(Outcome::Nothing)
}

/// Ends a delivery whose event is gone: there is nothing to send.
async fn give_up(hooks: &Hooks, target: &Target, row: Due, record: Record) -> Result<Outcome, Error> {
    let before: Delivery = parse(&record.key, &record.value)?;
    let mut delivery = before.clone();
    delivery.give_up("event_removed", edge::now());
    let mut batch = Batch::default();
    batch.delete(key::due(target.endpoint.id, row.class, row.millis, row.delivery));
    fan_out::replace(&mut batch, row.organization, record, &before, &delivery)?;
    // Stale: the delivery has changed, and the lane reads the row again.
    hooks.store().commit(batch).await?;
    Ok(Outcome::Nothing)
}

/// Commits what follows an attempt: the delivery, its due row, and the endpoint when its failures change. While `unerased` holds,
/// nobody whom the event is about was erased since it was sent.
async fn settle(
    hooks: &Hooks,
    target: &Target,
    (row, unerased): (Due, Check),
    (ending, log): (&Ending, &Attempt),
    (at_begin, is_outage): (u32, bool),
) -> Result<Outcome, Error> {
    let id = target.endpoint.id;
    let keys =
        [Delivery::key(row.organization, row.delivery), WebhookEndpoint::key(SYSTEM, id), unerased.key().clone()];
    loop {
        // The clock can jump during the attempt. Its outcome is saved when the clock is right.
        while !edge::is_right() {
            if hooks.supervisor.stops_within(Duration::from_secs(1)).await {
                return Err(Error::ClockJumped);
            }
        }
        let now = edge::now();
        let mut found = hooks.store().get(&keys).await?;
        let checked = found.pop().flatten();
        let (endpoint, delivery) = (found.pop().flatten(), found.pop().flatten());
        let (mut batch, mut entry) = (Batch::default(), log.clone());
        if unerased.holds(checked.map(|row| row.revision)) {
            batch.checks.push(unerased.clone());
        } else {
            // The response can repeat what was sent.
            entry.response = None;
        }
        batch.delete(key::due(id, row.class, row.millis, row.delivery));
        let failures = match &endpoint {
            Some(record) => parse::<WebhookEndpoint>(&record.key, &record.value)?.failures(),
            None => at_begin,
        };
        let (deleted, streak) = (endpoint.is_none(), Streak { failures, at_begin, is_outage });
        let mut after = after_attempt(0, streak, ending, now, &hooks.settings.schedule);
        if let Some(record) = delivery {
            let before: Delivery = parse(&record.key, &record.value)?;
            let mut object = before.clone();
            after = after_attempt(object.attempts, streak, ending, now, &hooks.settings.schedule);
            object.record(ending, after, entry, now);
            if let RetryDecision::RetryAt(time) = after.next {
                if deleted {
                    object.give_up(deletion::REASON, now);
                } else {
                    // A due row for an endpoint that was deleted since would stay for ever.
                    batch.checks.push(Check::Present(WebhookEndpoint::key(SYSTEM, id)));
                    batch.writes.push(due((row.organization, id, row.delivery), RETRY, time.millis(), Prior::Any));
                }
            }
            fan_out::replace(&mut batch, row.organization, record, &before, &object)?;
        }
        let disables = endpoint.map_or(Ok(false), |record| note_health(&mut batch, record, after, now))?;
        let committed = hooks.store().commit(batch).await;
        // The clock has jumped since it was looked at. The outcome waits above: without it the event would be sent again.
        if committed == Err(StoreError::ClockJumped) {
            continue;
        }
        if committed? == Commit::Applied {
            return Ok(match after.next {
                RetryDecision::Delivered => Outcome::Success(Duration::from_millis(log.duration_ms)),
                RetryDecision::RetryAt(_) | RetryDecision::GivenUp => {
                    Outcome::Failure { failures: after.failures, disables }
                }
            });
        }
    }
}

/// Writes the failures in a row to the endpoint's record if they change; true if they disable the endpoint.
fn note_health(batch: &mut Batch, record: Record, after: AfterAttempt, now: Timestamp) -> Result<bool, Error> {
    let mut endpoint: WebhookEndpoint = parse(&record.key, &record.value)?;
    if endpoint.failures() == after.failures || !endpoint.is_enabled() {
        return Ok(false);
    }
    endpoint.failures_in_a_row = Some(after.failures);
    if after.disables {
        endpoint.disable(DISABLED_BY_FAILURES, now);
    }
    batch.replace(record.key, record.revision, to_json(&endpoint)?);
    Ok(after.disables)
}
