//! From the outbox to deliveries, in the order of the events.

use crate::{edge::Moment, webhooks::Hooks};
use rental_core::{
    error::Error,
    operations::Edge,
    resources::{organization::SYSTEM, parse, webhook_endpoint},
    rows::{
        key,
        outbox::{self, OutboxEvent},
    },
    store::{self, Commit, Scanned, Span, key_of},
    webhooks::fan_out,
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
    let waiting = waiting_events(hooks).await?;
    if waiting.is_empty() {
        return Ok(0);
    }
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

/// The oldest events of the outbox, up to a batch. Damaged rows stay in the outbox, however many come first.
async fn waiting_events(hooks: &Hooks) -> Result<Vec<OutboxEvent>, Error> {
    let mut span = key::outbox_rows();
    loop {
        let rows = hooks.store().scan(&span, MOST_EVENTS).await?;
        let Some(last) = rows.last() else { return Ok(Vec::new()) };
        span.from = store::after(key_of(last));
        let mut waiting = Vec::with_capacity(rows.len());
        for row in rows {
            let event = row.map_err(Error::Damaged).and_then(|row| outbox::read(&row));
            waiting.extend(hooks.damaged.skip(event)?);
        }
        if !waiting.is_empty() {
            return Ok(waiting);
        }
    }
}

/// All endpoints of an organization, disabled ones included. A damaged endpoint is left out: it gets no delivery of an
/// event that is fanned out meanwhile, until the operator recovers what it missed.
pub(crate) async fn endpoints_of(
    hooks: &Hooks,
    organization: Uuid,
) -> Result<Vec<webhook_endpoint::WebhookEndpoint>, Error> {
    let mut endpoints = Vec::new();
    for row in endpoint_rows(hooks, organization).await? {
        let endpoint = row.map_err(Error::Damaged).and_then(|row| parse(&row.key, &row.value));
        endpoints.extend(hooks.damaged.skip(endpoint)?);
    }
    Ok(endpoints)
}

/// The rows of an organization's endpoints.
pub(crate) async fn endpoint_rows(hooks: &Hooks, organization: Uuid) -> Result<Vec<Scanned>, Error> {
    let spec = &webhook_endpoint::SPEC;
    let prefix = webhook_endpoint::of_organization(organization).prefix(SYSTEM, spec);
    let span = Span::newest_first(&prefix).following(key::records(SYSTEM, spec));
    Ok(hooks.store().scan(&span, MOST_ENDPOINTS).await?)
}
