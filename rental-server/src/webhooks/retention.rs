//! Events and finished deliveries are kept for 30 days.

use rental_core::{
    error::Error,
    event, page,
    resources::{
        delivery::{self, Delivery},
        organization::{self, SYSTEM},
        parse,
    },
    spec::ResourceSpec,
    store::{Batch, Check, Order, Record, Span, Store, key},
    value::Timestamp,
};
use serde_json::Value;
use uuid::Uuid;

/// How long events and deliveries are kept, in milliseconds.
pub(crate) const KEPT_MILLIS: i64 = 30 * 24 * 3600 * 1000;
/// Most objects that one batch removes.
const STEP: usize = 200;

/// Removes what is older than 30 days, of every organization.
pub(crate) async fn sweep(store: &dyn Store, now: Timestamp) -> Result<u64, Error> {
    let before = now.plus_millis(-KEPT_MILLIS).millis();
    let mut removed = 0;
    let mut organizations = Span::newest_first(&key::records(SYSTEM, &organization::SPEC));
    loop {
        let page = store.scan(&organizations, 100).await?;
        for id in page.iter().filter_map(|record| record.key.id()) {
            removed += remove_old(store, id, &delivery::SPEC, before).await?;
            removed += remove_old(store, id, &event::SPEC, before).await?;
        }
        match page.last() {
            Some(last) => organizations.to = last.key.clone(),
            None => return Ok(removed),
        }
    }
}

async fn remove_old(
    store: &dyn Store,
    organization: Uuid,
    spec: &'static ResourceSpec,
    before: u64,
) -> Result<u64, Error> {
    let prefix = key::records(organization, spec);
    let mut span = Span::newest_first(&prefix).created_before(&prefix, before);
    span.order = Order::Ascending;
    let mut removed = 0;
    while !span.is_empty() {
        let old = store.scan(&span, STEP).await?;
        let Some(last) = old.last() else { break };
        span.from = key::after(&last.key);
        let mut batch = Batch::default();
        for record in old.into_iter().filter(is_finished) {
            removed += 1;
            remove(&mut batch, organization, spec, record)?;
        }
        store.commit(batch).await?;
    }
    Ok(removed)
}

/// A delivery that waits for a disabled endpoint stays until it is sent or its endpoint is deleted.
fn is_finished(record: &Record) -> bool {
    parse::<Delivery>(&record.key, &record.value).map_or(true, |delivery| delivery.status != "pending")
}

fn remove(batch: &mut Batch, organization: Uuid, spec: &'static ResourceSpec, record: Record) -> Result<(), Error> {
    let object: Value = serde_json::from_slice(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
    let id = record.key.id().ok_or_else(|| Error::Internal("a record's key has no id".into()))?;
    let value = |field: &str| object[field].as_str().map(str::to_owned);
    page::index_entries(organization, spec, id, value).into_iter().for_each(|entry| batch.delete(entry));
    batch.checks.push(Check::At(record.key.clone(), record.revision));
    batch.delete(record.key);
    Ok(())
}
