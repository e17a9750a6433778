//! Removes what a deleted webhook endpoint leaves behind: fails its pending deliveries and deletes their due rows.
//!
//! The batch that deletes the endpoint also deletes its secrets and begins a [task](crate::tasks). Every batch that adds a due
//! row checks that the endpoint exists, so no new due rows appear after the deletion.

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
    value::{EndpointId, Id, OrganizationId, TaskId, Timestamp},
    webhooks::fan_out,
};
use serde::{Deserialize, Serialize};

/// Most due rows that one step deletes.
pub const BATCH: usize = 256;
/// The `last_error` of a delivery that failed because its endpoint was deleted.
pub const REASON: &str = "endpoint_deleted";

/// The state of the task.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct EndpointDeletion {
    /// The id of the deleted endpoint.
    pub endpoint_id: EndpointId,
    /// Number of pending deliveries that the task has set to failed.
    pub deliveries: u64,
}

/// The id of the task that cleans up after an endpoint: the UUID of the endpoint, so there is at most one such task.
#[must_use]
pub fn task_id(endpoint: EndpointId) -> TaskId {
    TaskId::from_uuid(endpoint.uuid())
}

/// Adds the next step to `batch`. Returns whether it is the last one. A step deletes at most [`BATCH`] due rows and fails
/// their deliveries. It deletes the due row of a damaged delivery, too, and leaves the delivery as it is.
pub(crate) async fn step(
    store: &dyn Store,
    state: &mut EndpointDeletion,
    batch: &mut Batch,
    now: Timestamp,
    damaged: &mut Vec<DamagedRow>,
) -> Result<bool, Error> {
    let rows = store.scan(&key::all_due_rows(state.endpoint_id), BATCH).await?;
    let done = rows.len() < BATCH;
    let (mut organizations, mut places) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in rows {
        batch.delete(key_of(&row).clone());
        match row.and_then(|row| delivery_of(&row)) {
            Ok((organization, place)) => {
                organizations.push(organization);
                places.push(place);
            }
            Err(row) => damaged.push(*row),
        }
    }
    for (organization, found) in organizations.into_iter().zip(get_each(store, &places).await?) {
        let record = match found {
            Ok(Some(record)) => record,
            Ok(None) => continue,
            Err(row) => {
                damaged.push(*row);
                continue;
            }
        };
        match parse::<Delivery>(&record.key, &record.value) {
            Ok(before) if before.status == DeliveryStatus::Pending => {
                let mut delivery = before.clone();
                delivery.give_up(REASON, now);
                fan_out::replace(batch, organization, record, &before, &delivery)?;
                state.deliveries = state.deliveries.saturating_add(1);
            }
            Ok(_) => {}
            Err(Error::Damaged(row)) => damaged.push(*row),
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// The organization and the key of the delivery that a due row names.
fn delivery_of(row: &Record) -> Result<(OrganizationId, Key), Box<DamagedRow>> {
    let read = || {
        let organization = Id::from_slice(&row.value)?;
        Some((organization, Delivery::key(organization, Id::from_uuid(row.key.id()?))))
    };
    read().ok_or_else(|| DamagedRow::new(row.key.clone(), "it names no delivery of an organization"))
}

/// Finds the endpoints that have due rows but no record. A damaged record counts as a record.
pub(crate) async fn deleted_with_due_rows(store: &dyn Store) -> Result<Vec<EndpointId>, Error> {
    let (mut gone, mut span) = (Vec::new(), key::due_rows_of_all());
    while let Some(row) = store.scan(&span, 1).await?.pop() {
        let Some(endpoint) = key::due_endpoint(key_of(&row)) else {
            span.from = key_of(&row).next();
            continue;
        };
        if let Some(Ok(None)) = get_each(store, &[WebhookEndpoint::key(SYSTEM, endpoint)]).await?.pop() {
            gone.push(endpoint);
        }
        span.from = key::all_due_rows(endpoint).to;
    }
    Ok(gone)
}
