//! One attempt of a delivery: sign, send, commit the outcome. The lane decides when.

use super::{hooks::Hooks, send::Message};
use crate::{edge, panics::catch_panic};
use bytes::Bytes;
use rental_core::{
    error::Error,
    resources::{
        Resource,
        delivery::{Attempt, Delivery, DeliveryStatus},
        organization::SYSTEM,
        parse, to_json,
        webhook_endpoint::WebhookEndpoint,
    },
    rows::key,
    store::{Batch, Check, Commit, Prior, Record, Revision},
    value::{DeliveryId, EndpointId, OrganizationId, Timestamp, url},
    webhooks::{
        attempt::{AfterAttempt, Ending, RetryDecision, after_attempt},
        deletion,
        fan_out::{RETRY, due},
        secret::Sealed,
        signature,
    },
};
use reqwest::Url;
use std::{sync::Arc, time::Duration};

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

/// How an attempt went, for the lane that made it.
pub(super) struct Report {
    pub(super) delivery: DeliveryId,
    /// The endpoint's failures in a row, as committed.
    pub(super) failures: u32,
    pub(super) success: bool,
    pub(super) disabled: bool,
    /// Whether the endpoint had no failures when the attempt began.
    pub(super) began_healthy: bool,
    /// What is damaged, if the attempt could not be made or its outcome not be saved and no retry can help.
    pub(super) damage: Option<Damage>,
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
        Some(record) => serde_json::from_slice(&record.value).map_err(|error| Error::damaged(&record.key, &error))?,
        None => Sealed::default(),
    };
    let open = |secret: &rental_core::webhooks::secret::SealedSecret| {
        hooks.master_key.open(id, &secret.sealed).map(|text| (text, secret.expires_at)).map_err(Error::Internal)
    };
    let secrets = sealed.0.iter().map(open).collect::<Result<Vec<_>, Error>>()?;
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

/// Makes one attempt and commits its outcome.
pub(super) async fn attempt(hooks: Arc<Hooks>, target: Arc<Target>, row: Due, failures: u32) -> Report {
    let permit = Arc::clone(&hooks.in_flight).acquire_owned().await;
    let quiet = Report {
        delivery: row.delivery,
        failures,
        success: failures == 0,
        disabled: false,
        began_healthy: failures == 0,
        damage: None,
    };
    let outcome = catch_panic(perform(&hooks, &target, row, failures)).await;
    drop(permit);
    match outcome {
        Ok(Ok(Some(report))) => report,
        Ok(Ok(None)) => quiet,
        // It would panic again: only this delivery waits, not the endpoint.
        Err(_) => {
            tracing::error!(delivery = %row.delivery, endpoint = %target.endpoint.id, "an attempt panicked; its delivery waits until the endpoint changes or the server starts again");
            Report { damage: Some(Damage::Delivery), ..quiet }
        }
        Ok(Err(Error::Damaged(damaged))) => {
            hooks.damaged.note(&damaged);
            let is_endpoint = damaged.key == WebhookEndpoint::key(SYSTEM, target.endpoint.id);
            Report { damage: Some(if is_endpoint { Damage::Endpoint } else { Damage::Delivery }), ..quiet }
        }
        Ok(Err(error)) => {
            tracing::warn!(delivery = %row.delivery, ?error, "the outcome of an attempt could not be saved; the attempt will be repeated");
            // The lane reads the row again at its next turn: the pause keeps it from doing so in a tight loop.
            tokio::time::sleep(Duration::from_millis(500)).await;
            quiet
        }
    }
}

/// `None` when there was nothing to send: the due row was left over, and is removed.
async fn perform(hooks: &Hooks, target: &Target, row: Due, failures: u32) -> Result<Option<Report>, Error> {
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
    let (ending, log) = hooks.sender.send(message(target, &pending, event.value)).await;
    hooks.metrics.record(&ending, log.duration_ms);
    settle(hooks, target, row, (&ending, &log), failures).await.map(Some)
}

fn message<'a>(target: &'a Target, delivery: &'a Delivery, body: Bytes) -> Message<'a> {
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
        body,
    }
}

async fn remove_row(hooks: &Hooks, target: &Target, row: Due) -> Result<Option<Report>, Error> {
    let mut batch = Batch::default();
    batch.delete(key::due(target.endpoint.id, row.class, row.millis, row.delivery));
    hooks.store().commit(batch).await?;
    Ok(None)
}

/// Ends a delivery whose event is gone: there is nothing to send.
async fn give_up(hooks: &Hooks, target: &Target, row: Due, record: Record) -> Result<Option<Report>, Error> {
    let mut delivery: Delivery = parse(&record.key, &record.value)?;
    delivery.give_up("event_removed", edge::now());
    let mut batch = Batch::default();
    batch.delete(key::due(target.endpoint.id, row.class, row.millis, row.delivery));
    batch.replace(record.key, record.revision, to_json(&delivery)?);
    // Stale: the delivery has changed, and the lane reads the row again.
    hooks.store().commit(batch).await?;
    Ok(None)
}

/// Commits what follows an attempt: the delivery, its due row, and the endpoint when its failures change.
async fn settle(
    hooks: &Hooks,
    target: &Target,
    row: Due,
    (ending, log): (&Ending, &Attempt),
    seen: u32,
) -> Result<Report, Error> {
    let id = target.endpoint.id;
    let keys = [Delivery::key(row.organization, row.delivery), WebhookEndpoint::key(SYSTEM, id)];
    loop {
        let now = edge::now();
        let mut found = hooks.store().get(&keys).await?;
        let (endpoint, delivery) = (found.pop().flatten(), found.pop().flatten());
        let mut batch = Batch::default();
        batch.delete(key::due(id, row.class, row.millis, row.delivery));
        let failures = match &endpoint {
            Some(record) => parse::<WebhookEndpoint>(&record.key, &record.value)?.failures(),
            None => seen,
        };
        let deleted = endpoint.is_none();
        let mut after = after_attempt(0, failures, ending, now, &hooks.settings.schedule);
        if let Some(record) = delivery {
            let mut object: Delivery = parse(&record.key, &record.value)?;
            after = after_attempt(object.attempts, failures, ending, now, &hooks.settings.schedule);
            object.record(ending, after, log.clone(), now);
            if let RetryDecision::RetryAt(time) = after.next {
                if deleted {
                    object.give_up(deletion::REASON, now);
                } else {
                    // A due row for an endpoint that was deleted since would stay for ever.
                    batch.checks.push(Check::Present(WebhookEndpoint::key(SYSTEM, id)));
                    batch.writes.push(due((row.organization, id, row.delivery), RETRY, time.millis(), Prior::Any));
                }
            }
            batch.replace(record.key, record.revision, to_json(&object)?);
        }
        let disabled = endpoint.map_or(Ok(false), |record| note_health(&mut batch, record, after, now))?;
        if hooks.store().commit(batch).await? == Commit::Applied {
            return Ok(Report {
                delivery: row.delivery,
                failures: after.failures,
                success: ending.is_success(),
                disabled,
                began_healthy: seen == 0,
                damage: None,
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
        endpoint.disable("20 failures in a row", now);
    }
    batch.replace(record.key, record.revision, to_json(&endpoint)?);
    Ok(after.disables)
}
