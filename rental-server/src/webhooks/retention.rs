//! Removes events, finished deliveries, leads and audit entries that are older than their retention. A delivery that waits for
//! a disabled endpoint stays, and so does its event, until the endpoint has been disabled for the retention of deliveries. Then
//! the delivery fails, and stays for that time again.
//!
//! A delivery to an enabled endpoint ends by its attempts. One that cannot be sent, because a row is damaged or its attempt
//! panicked, fails when it has been due for the retention ([`expire`]).
//!
//! A sweep reads only rows that are older than the retention: ids are ordered by time.

use super::{hooks::Hooks, settings::Retention};
use rental_core::{
    error::Error,
    resources::{
        Resource, audit_entry,
        delivery::{self, Delivery, DeliveryStatus},
        event, lead,
        organization::{self, SYSTEM},
        parse,
        webhook_endpoint::WebhookEndpoint,
    },
    rows::key,
    schema::{IndexValue, ResourceSpec},
    store::{self, Batch, Check, Commit, Key, Order, Record, Span, key_of},
    value::{DeliveryId, EndpointId, EventId, OrganizationId, Timestamp},
    webhooks::fan_out::{self, FRESH, RETRY},
};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Most objects that one batch removes.
const STEP: usize = 200;
/// The `last_error` of a delivery that waited for longer than deliveries are kept.
const REASON: &str = "retention_ended";

/// Removes what is older than its retention, of every organization.
pub(crate) async fn sweep(hooks: &Hooks, now: Timestamp) -> Result<(), Error> {
    if let Some(millis) = hooks.settings.retention.audit_entries {
        let swept = remove_old(hooks, SYSTEM, &audit_entry::SPEC, now.plus_millis(-millis)).await;
        hooks.damaged.skip(swept)?;
    }
    let mut organizations = Span::newest_first(&key::records(SYSTEM, &organization::SPEC));
    loop {
        let page = hooks.damaged.rows(hooks.store().scan(&organizations, 100).await)?;
        for id in page.iter().filter_map(|row| key_of(row).id().map(OrganizationId::from_uuid)) {
            // Damage that ends the sweep of an organization ends no other one.
            hooks.damaged.skip(sweep_one(hooks, id, now).await)?;
            // Reads of an embedded engine never wait.
            tokio::task::yield_now().await;
        }
        match page.last() {
            Some(last) => organizations.to = key_of(last).clone(),
            None => return Ok(()),
        }
    }
}

async fn sweep_one(hooks: &Hooks, id: OrganizationId, now: Timestamp) -> Result<(), Error> {
    let Retention { events, deliveries, leads, .. } = hooks.settings.retention;
    let before = |kept: Option<i64>| kept.map(|millis| now.plus_millis(-millis));
    // Deliveries first: an event is needed as long as one of its deliveries is there and pending.
    if let Some(before) = before(deliveries) {
        fail_expired(hooks, id, before, now).await?;
        remove_old(hooks, id, &delivery::SPEC, before).await?;
    }
    for (kept, spec) in [(events, &event::SPEC), (leads, &lead::SPEC)] {
        if let Some(before) = before(kept) {
            remove_old(hooks, id, spec, before).await?;
        }
    }
    Ok(())
}

/// Whether a row is there. A damaged one is.
async fn is_there(hooks: &Hooks, key: Key) -> Result<bool, Error> {
    let found = hooks.store().get(&[key]).await.map_err(Error::from);
    Ok(hooks.damaged.skip(found)?.is_none_or(|mut found| found.pop().flatten().is_some()))
}

/// The records of a resource that are older than `before`, oldest first.
fn older(organization: OrganizationId, spec: &'static ResourceSpec, before: Timestamp) -> Span {
    let prefix = key::records(organization, spec);
    let mut span = Span::newest_first(&prefix).created_before(&prefix, before.millis());
    span.order = Order::Ascending;
    span
}

/// Fails the old deliveries to endpoints that have been disabled since before a time.
async fn fail_expired(
    hooks: &Hooks,
    organization: OrganizationId,
    before: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    let mut span = older(organization, &delivery::SPEC, before);
    let mut abandoned: HashMap<EndpointId, bool> = HashMap::new();
    while !span.is_empty() {
        let old = hooks.store().scan(&span, STEP).await?;
        let Some(last) = old.last() else { break };
        span.from = store::after(key_of(last));
        let (mut batch, mut failed) = (Batch::default(), 0);
        for record in hooks.damaged.all_sound(old) {
            // A damaged delivery is removed like a finished one.
            let Ok(pending) = parse::<Delivery>(&record.key, &record.value) else { continue };
            if pending.status != DeliveryStatus::Pending {
                continue;
            }
            let endpoint = pending.endpoint_id;
            let is_abandoned = match abandoned.get(&endpoint) {
                Some(known) => *known,
                None => is_disabled_since(hooks, endpoint, before).await?,
            };
            abandoned.insert(endpoint, is_abandoned);
            if !is_abandoned {
                continue;
            }
            give_up(&mut batch, organization, (record, &pending), None, now)?;
            failed += 1;
        }
        tokio::task::yield_now().await;
        // Stale: one of them was changed. The next sweep reads them again.
        if failed > 0 && hooks.store().commit(batch).await? == Commit::Applied {
            hooks.metrics.expired.inc_by(failed);
            tracing::warn!(%organization, failed, "webhook deliveries were given up: their endpoints have been disabled for longer than deliveries are kept");
        }
    }
    Ok(())
}

/// Fails these deliveries to an enabled endpoint, which cannot be sent, if they have been due for the retention of deliveries. So
/// each of them had the whole retention. A change of the endpoint, such as another URL, begins the retention again.
pub(super) async fn expire(
    hooks: &Hooks,
    id: EndpointId,
    unsent: &HashSet<DeliveryId>,
    now: Timestamp,
) -> Result<(), Error> {
    let Some(kept) = hooks.settings.retention.deliveries else { return Ok(()) };
    let before = now.plus_millis(-kept);
    for class in [FRESH, RETRY] {
        let mut span = key::due_rows(id, class);
        loop {
            let rows = hooks.store().scan(&span, STEP).await?;
            let Some(last) = rows.last() else { break };
            let is_old = |key: &Key| key::due_millis(key).is_some_and(|due| due < before.millis());
            let (all_old, next) = (rows.len() == STEP && is_old(key_of(last)), store::after(key_of(last)));
            let mut old = hooks.damaged.all_sound(rows);
            old.retain(|row| {
                is_old(&row.key) && row.key.id().is_some_and(|id| unsent.contains(&DeliveryId::from_uuid(id)))
            });
            fail_due(hooks, id, before, &old, now).await?;
            if !all_old {
                break;
            }
            span.from = next;
        }
    }
    Ok(())
}

/// Fails the deliveries of these due rows, if their endpoint has been enabled and unchanged since before a time.
async fn fail_due(
    hooks: &Hooks,
    id: EndpointId,
    before: Timestamp,
    rows: &[Record],
    now: Timestamp,
) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let place = [WebhookEndpoint::key(SYSTEM, id)];
    let Some(record) = hooks.store().get(&place).await?.pop().flatten() else { return Ok(()) };
    let endpoint: WebhookEndpoint = parse(&record.key, &record.value)?;
    if !endpoint.is_enabled() || endpoint.updated_at >= before {
        return Ok(());
    }
    let organization = endpoint.organization_id;
    let (mut batch, mut failed) = (Batch::default(), 0);
    batch.checks.push(Check::At(record.key, record.revision));
    for row in rows {
        let Some(delivery) = row.key.id().map(DeliveryId::from_uuid) else { continue };
        let found = hooks.store().get(&[Delivery::key(organization, delivery)]).await.map_err(Error::from);
        let Some(record) = hooks.damaged.skip(found)?.and_then(|mut found| found.pop().flatten()) else { continue };
        // `store check` tells of a damaged delivery, and `store repair` removes it.
        let Ok(pending) = parse::<Delivery>(&record.key, &record.value) else { continue };
        if pending.status == DeliveryStatus::Pending {
            give_up(&mut batch, organization, (record, &pending), Some(&row.key), now)?;
            failed += 1;
        }
    }
    // Stale: one of them was changed. The next call reads them again.
    if failed > 0 && hooks.store().commit(batch).await? == Commit::Applied {
        hooks.metrics.expired.inc_by(failed);
        tracing::warn!(%organization, endpoint = %id, failed, "webhook deliveries were given up: this server could not send them for as long as deliveries are kept");
    }
    Ok(())
}

/// Fails a pending delivery and removes its due row: that of the record, and that which was read, if it is another one.
fn give_up(
    batch: &mut Batch,
    organization: OrganizationId,
    (record, pending): (Record, &Delivery),
    due_row: Option<&Key>,
    now: Timestamp,
) -> Result<(), Error> {
    let mut delivery = pending.clone();
    let class = if delivery.attempts == 0 { FRESH } else { RETRY };
    let of_record =
        delivery.next_attempt_at.map(|due_at| key::due(delivery.endpoint_id, class, due_at.millis(), delivery.id));
    due_row.filter(|read| Some(*read) != of_record.as_ref()).into_iter().for_each(|read| batch.delete(read.clone()));
    of_record.into_iter().for_each(|row| batch.delete(row));
    delivery.give_up(REASON, now);
    fan_out::replace(batch, organization, record, pending, &delivery)
}

/// Whether an endpoint was disabled before a time and still is.
async fn is_disabled_since(hooks: &Hooks, id: EndpointId, before: Timestamp) -> Result<bool, Error> {
    let place = [WebhookEndpoint::key(SYSTEM, id)];
    let found = hooks.store().get(&place).await.map_err(Error::from);
    let Some(record) = hooks.damaged.skip(found)?.and_then(|mut found| found.pop().flatten()) else { return Ok(false) };
    let endpoint = hooks.damaged.skip(parse::<WebhookEndpoint>(&record.key, &record.value))?;
    Ok(endpoint.is_some_and(|endpoint| !endpoint.is_enabled() && endpoint.disabled_at.is_some_and(|at| at < before)))
}

async fn remove_old(
    hooks: &Hooks,
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    before: Timestamp,
) -> Result<(), Error> {
    let (mut span, mut removed) = (older(organization, spec, before), 0);
    // Without an endpoint there are no deliveries to look for.
    let delivers = is_there(hooks, key::subscribed(organization)).await?;
    while !span.is_empty() {
        let old = hooks.store().scan(&span, STEP).await?;
        let Some(last) = old.last() else { break };
        span.from = store::after(key_of(last));
        let (mut batch, mut old_ones) = (Batch::default(), 0);
        for record in hooks.damaged.all_sound(old) {
            let needed = match record.key.id() {
                Some(id) if spec.tag == event::SPEC.tag => {
                    delivers && is_needed(hooks, organization, EventId::from_uuid(id)).await?
                }
                _ if spec.tag == delivery::SPEC.tag => !is_finished(&record, before),
                _ => false,
            };
            if needed {
                continue;
            }
            let made = remove(&mut batch, organization, spec, record);
            old_ones += u64::from(hooks.damaged.skip(made)?.is_some());
        }
        tokio::task::yield_now().await;
        // Stale: one of them was changed. The next sweep reads them again.
        if hooks.store().commit(batch).await? == Commit::Applied {
            removed += old_ones;
        }
    }
    if removed > 0 {
        hooks.metrics.count_removed(spec.object, removed);
        tracing::info!(object = spec.object, removed, %organization, "objects were removed because their retention ended");
    }
    Ok(())
}

/// Whether an event is still to be delivered: it is in the outbox, or one of its deliveries is pending.
async fn is_needed(hooks: &Hooks, organization: OrganizationId, id: EventId) -> Result<bool, Error> {
    if is_there(hooks, key::outbox(organization, id)).await? {
        return Ok(true);
    }
    let prefix = delivery::of_event(id).prefix(organization, &delivery::SPEC);
    let mut span = Span::newest_first(&prefix).following(key::records(organization, &delivery::SPEC));
    loop {
        let page = hooks.store().scan(&span, STEP).await?;
        let last = page.last().and_then(|row| key_of(row).id()).filter(|_| page.len() == STEP);
        if hooks.damaged.all_sound(page).iter().any(is_pending) {
            return Ok(true);
        }
        let Some(last) = last else { return Ok(false) };
        span.to = key::entry(&prefix, last);
        tokio::task::yield_now().await;
    }
}

fn is_pending(record: &Record) -> bool {
    parse::<Delivery>(&record.key, &record.value).is_ok_and(|delivery| delivery.status == DeliveryStatus::Pending)
}

/// Whether a delivery ended before a time. A damaged one did.
fn is_finished(record: &Record, before: Timestamp) -> bool {
    parse::<Delivery>(&record.key, &record.value)
        .map_or(true, |delivery| delivery.status != DeliveryStatus::Pending && delivery.updated_at < before)
}

fn remove(
    batch: &mut Batch,
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    record: Record,
) -> Result<(), Error> {
    let object: Value =
        rental_core::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
    let id = record.key.id().ok_or_else(|| Error::Internal("a record's key has no id".into()))?;
    let value = |field: &str| IndexValue::parse(spec.field(field)?.kind, object[field].as_str()?);
    spec.index_keys(organization, id, value).into_iter().for_each(|entry| batch.delete(entry));
    batch.checks.push(Check::At(record.key.clone(), record.revision));
    batch.delete(record.key);
    Ok(())
}
