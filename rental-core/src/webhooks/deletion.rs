//! What is left of a deleted webhook endpoint: its deliveries fail, and its due rows go.
//!
//! The batch that deletes the endpoint deletes its secrets too and begins a [task](crate::tasks). From then on nothing new
//! appears for the endpoint, because every batch that adds a due row checks that the endpoint is present.

use crate::{
    error::Error,
    resources::{
        Resource,
        delivery::{Delivery, DeliveryStatus},
        organization::SYSTEM,
        parse,
        webhook_endpoint::WebhookEndpoint,
    },
    rows::key,
    store::{Batch, DamagedRow, Key, Record, Store, get_each, key_of},
    value::{EndpointId, Id, TaskId, Timestamp},
};
use serde::{Deserialize, Serialize};

/// Due rows that one batch removes.
pub const BATCH: usize = 256;
/// The `last_error` of a delivery that was given up because its endpoint was deleted.
pub const REASON: &str = "endpoint_deleted";

/// How far the removal of what an endpoint leaves behind has come.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct EndpointDeletion {
    /// The endpoint.
    pub endpoint_id: EndpointId,
    /// Deliveries that were given up.
    pub deliveries: u64,
}

/// The key of an endpoint's record.
#[must_use]
pub fn place(endpoint: EndpointId) -> Key {
    WebhookEndpoint::key(SYSTEM, endpoint)
}

/// The id of the task of an endpoint's deletion: the UUID of the endpoint, so that there is at most one.
#[must_use]
pub fn task(endpoint: EndpointId) -> TaskId {
    TaskId::from_uuid(endpoint.uuid())
}

/// Adds the next step to `batch`; true if it is the last one. A damaged delivery stays as it is, without its due row.
pub(crate) async fn step(
    store: &dyn Store,
    state: &mut EndpointDeletion,
    batch: &mut Batch,
    now: Timestamp,
    damaged: &mut Vec<DamagedRow>,
) -> Result<bool, Error> {
    let rows = store.scan(&key::all_due_rows(state.endpoint_id), BATCH).await?;
    let done = rows.len() < BATCH;
    let mut places = Vec::with_capacity(rows.len());
    for row in rows {
        batch.delete(key_of(&row).clone());
        match row.and_then(|row| delivery_of(&row)) {
            Ok(place) => places.push(place),
            Err(row) => damaged.push(*row),
        }
    }
    for found in get_each(store, &places).await? {
        let record = match found {
            Ok(Some(record)) => record,
            Ok(None) => continue,
            Err(row) => {
                damaged.push(*row);
                continue;
            }
        };
        match parse::<Delivery>(&record.key, &record.value) {
            Ok(mut delivery) if delivery.status == DeliveryStatus::Pending => {
                delivery.give_up(REASON, now);
                let value = serde_json::to_vec(&delivery).map_err(|error| Error::Internal(error.to_string()))?;
                batch.replace(record.key, record.revision, value.into());
                state.deliveries = state.deliveries.saturating_add(1);
            }
            Ok(_) => {}
            Err(Error::Damaged(row)) => damaged.push(*row),
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// The key of the delivery that a due row is about.
fn delivery_of(row: &Record) -> Result<Key, Box<DamagedRow>> {
    let read = || Some(Delivery::key(Id::from_slice(&row.value)?, Id::from_uuid(row.key.id()?)));
    read().ok_or_else(|| DamagedRow::new(row.key.clone(), "it names no delivery of an organization"))
}

/// Endpoints that have due rows and no record. A damaged record counts as one.
pub(crate) async fn endpoints_that_are_gone(store: &dyn Store) -> Result<Vec<EndpointId>, Error> {
    let (mut gone, mut span) = (Vec::new(), key::due_rows_of_all());
    while let Some(row) = store.scan(&span, 1).await?.pop() {
        let Some(endpoint) = key::due_endpoint(key_of(&row)) else {
            span.from = key_of(&row).next();
            continue;
        };
        if let Some(Ok(None)) = get_each(store, &[place(endpoint)]).await?.pop() {
            gone.push(endpoint);
        }
        span.from = key::all_due_rows(endpoint).to;
    }
    Ok(gone)
}
