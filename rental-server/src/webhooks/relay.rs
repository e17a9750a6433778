//! From the outbox to deliveries, in the order of the events.

use crate::{edge::Moment, webhooks::Hooks};
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
    time::{Duration, Instant},
};
use uuid::Uuid;

/// Most events in one batch.
const MOST_EVENTS: usize = 256;
/// Most endpoints of an organization; creation refuses more.
pub(crate) const MOST_ENDPOINTS: usize = 50;

/// Runs until the server stops.
pub(crate) async fn run(hooks: Arc<Hooks>) {
    let mut looked_at = Instant::now();
    loop {
        match relay_once(&hooks).await {
            // The relay also looks without being told: for what another server left behind, and in case that a task was
            // lost between its commit and its signal.
            Ok(0) => drop(tokio::time::timeout(hooks.patience(), hooks.outbox.notified()).await),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(?error, "cannot read the outbox; its events wait");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        if hooks.is_stopping() {
            return;
        }
        if looked_at.elapsed() >= hooks.patience() {
            looked_at = Instant::now();
            if let Err(error) = hooks.start_missing_lanes().await {
                tracing::warn!(?error, "cannot read the webhook endpoints; trying again");
            }
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
pub(crate) async fn endpoints_of(
    hooks: &Hooks,
    organization: Uuid,
) -> Result<Vec<webhook_endpoint::WebhookEndpoint>, Error> {
    let prefix = key::index(SYSTEM, &webhook_endpoint::SPEC, 1, &[organization.as_bytes().to_vec()]);
    let records = hooks.store().scan(&Span::newest_first(&prefix), MOST_ENDPOINTS).await?;
    records.iter().map(|record| parse(&record.key, &record.value)).collect()
}
