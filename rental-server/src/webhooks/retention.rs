//! Removes events and finished deliveries after 30 days. A delivery that waits for a disabled endpoint stays, and so does its
//! event.

use super::hooks::Hooks;
use rental_core::{
    error::Error,
    resources::{
        delivery::{self, Delivery, DeliveryStatus},
        event,
        organization::{self, SYSTEM},
        parse,
    },
    rows::key,
    schema::{IndexValue, ResourceSpec},
    store::{self, Batch, Check, Order, Record, Span, key_of},
    value::{EventId, OrganizationId, Timestamp},
};
use serde_json::Value;

/// How long events and deliveries are kept, in milliseconds.
pub(crate) const KEPT_MILLIS: i64 = 30 * 24 * 3600 * 1000;
/// Most objects that one batch removes.
const STEP: usize = 200;

/// Removes what is older than 30 days, of every organization.
pub(crate) async fn sweep(hooks: &Hooks, now: Timestamp) -> Result<(), Error> {
    let before = now.plus_millis(-KEPT_MILLIS).millis();
    let mut organizations = Span::newest_first(&key::records(SYSTEM, &organization::SPEC));
    loop {
        let page = hooks.store().scan(&organizations, 100).await?;
        for id in page.iter().filter_map(|row| key_of(row).id().map(OrganizationId::from_uuid)) {
            // Deliveries first: an event is needed as long as one of its deliveries is there and pending.
            remove_old(hooks, id, &delivery::SPEC, before).await?;
            remove_old(hooks, id, &event::SPEC, before).await?;
        }
        match page.last() {
            Some(last) => organizations.to = key_of(last).clone(),
            None => return Ok(()),
        }
    }
}

async fn remove_old(
    hooks: &Hooks,
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    before: u64,
) -> Result<(), Error> {
    let prefix = key::records(organization, spec);
    let mut span = Span::newest_first(&prefix).created_before(&prefix, before);
    span.order = Order::Ascending;
    // Without an endpoint there are no deliveries to look for.
    let delivers = hooks.store().get(&[key::subscribed(organization)]).await?.pop().flatten().is_some();
    while !span.is_empty() {
        let old = hooks.store().scan(&span, STEP).await?;
        let Some(last) = old.last() else { break };
        span.from = store::after(key_of(last));
        let mut batch = Batch::default();
        for record in hooks.damaged.all_sound(old) {
            let needed = match record.key.id() {
                Some(id) if spec.tag == event::SPEC.tag => {
                    delivers && is_needed(hooks, organization, EventId::from_uuid(id)).await?
                }
                _ => !is_finished(&record),
            };
            if needed {
                continue;
            }
            hooks.damaged.skip(remove(&mut batch, organization, spec, record))?;
        }
        hooks.store().commit(batch).await?;
    }
    Ok(())
}

/// Whether an event is still to be delivered: it is in the outbox, or one of its deliveries is pending.
async fn is_needed(hooks: &Hooks, organization: OrganizationId, id: EventId) -> Result<bool, Error> {
    if hooks.store().get(&[key::outbox(id)]).await?.pop().flatten().is_some() {
        return Ok(true);
    }
    let prefix = delivery::of_event(id).prefix(organization, &delivery::SPEC);
    let mut span = Span::newest_first(&prefix).following(key::records(organization, &delivery::SPEC));
    loop {
        let page = hooks.store().scan(&span, STEP).await?;
        let last = page.last().and_then(|row| key_of(row).id()).filter(|_| page.len() == STEP);
        if hooks.damaged.all_sound(page).iter().any(|record| !is_finished(record)) {
            return Ok(true);
        }
        let Some(last) = last else { return Ok(false) };
        span.to = key::entry(&prefix, last);
    }
}

/// A delivery that waits for a disabled endpoint stays until it is sent or its endpoint is deleted.
fn is_finished(record: &Record) -> bool {
    parse::<Delivery>(&record.key, &record.value).map_or(true, |delivery| delivery.status != DeliveryStatus::Pending)
}

fn remove(
    batch: &mut Batch,
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    record: Record,
) -> Result<(), Error> {
    let object: Value = serde_json::from_slice(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
    let id = record.key.id().ok_or_else(|| Error::Internal("a record's key has no id".into()))?;
    let value = |field: &str| IndexValue::parse(spec.field(field)?.kind, object[field].as_str()?);
    spec.index_keys(organization, id, value).into_iter().for_each(|entry| batch.delete(entry));
    batch.checks.push(Check::At(record.key.clone(), record.revision));
    batch.delete(record.key);
    Ok(())
}
