//! From the outbox to deliveries, in the order of the events.

use crate::{edge::Moment, webhook::Hooks};
use rental_core::{
    error::Error,
    operation::Edge,
    resources::{organization::SYSTEM, parse, webhook_endpoint},
    store::{Commit, Span, key},
    webhook::fan_out::{self, Waiting},
};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};
use uuid::Uuid;

/// One server on its own is told of every event.
const FOREVER: Duration = Duration::from_secs(3600);
/// Most events in one batch.
const MOST_EVENTS: usize = 256;
/// Most endpoints of an organization; creation refuses more.
pub(crate) const MOST_ENDPOINTS: usize = 50;

/// Runs until the server stops.
pub(super) async fn run(hooks: Arc<Hooks>) {
    loop {
        match relay_once(&hooks).await {
            // Among several servers, what another one left behind is found by looking.
            Ok(0) => drop(tokio::time::timeout(hooks.patience(FOREVER), hooks.outbox.notified()).await),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(?error, "cannot read the outbox; its events wait");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        if hooks.is_stopping() {
            return;
        }
    }
}

/// Handles what lies in the outbox now, up to a batch; gives how many events.
async fn relay_once(hooks: &Hooks) -> Result<usize, Error> {
    let rows = hooks.store().scan(&key::outbox_rows(), MOST_EVENTS).await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let waiting = rows.iter().map(fan_out::waiting).collect::<Result<Vec<Waiting>, Error>>()?;
    let mut endpoints = HashMap::new();
    for row in &waiting {
        if let Entry::Vacant(place) = endpoints.entry(row.organization) {
            place.insert(endpoints_of(hooks, row.organization).await?);
        }
    }
    let moment = Moment::new();
    let edge: &dyn Edge = &moment;
    let (mut batch, woken) = fan_out::plan(&waiting, &endpoints, edge)?;
    woken.iter().for_each(|endpoint| hooks.ring(*endpoint, &mut batch));
    let made = batch.writes.len();
    if hooks.store().commit(batch).await? == Commit::Applied {
        tracing::debug!(events = waiting.len(), writes = made, "events became deliveries");
        woken.into_iter().for_each(|endpoint| hooks.wake(endpoint));
    }
    Ok(waiting.len())
}

/// All endpoints of an organization, disabled ones included.
pub(super) async fn endpoints_of(
    hooks: &Hooks,
    organization: Uuid,
) -> Result<Vec<webhook_endpoint::WebhookEndpoint>, Error> {
    let prefix = webhook_endpoint::of_organization(organization).prefix(SYSTEM, &webhook_endpoint::SPEC);
    let records = hooks.store().scan(&Span::newest_first(&prefix), MOST_ENDPOINTS).await?;
    records.iter().map(|record| parse(&record.key, &record.value)).collect()
}
