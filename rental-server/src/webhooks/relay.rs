//! The relay: makes deliveries of the events in the outbox, in the order of the events.

use super::hooks::Hooks;
use crate::edge::FixedClock;
use rental_core::{
    error::Error,
    operations::Edge,
    resources::{organization::SYSTEM, parse, webhook_endpoint},
    rows::{
        key,
        outbox::{self, OutboxEvent},
    },
    store::{self, Commit, Scanned, Span, key_of},
    value::OrganizationId,
    webhooks::fan_out,
};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

/// Most events in one batch.
const MOST_EVENTS: usize = 256;
/// Most endpoints of an organization; creation refuses more.
pub(crate) const MOST_ENDPOINTS: usize = 50;

/// Runs until the server stops.
pub(crate) async fn run(hooks: Arc<Hooks>) {
    while !hooks.is_stopping() {
        match relay_once(&hooks).await {
            // The relay also reads the outbox without a signal: for events of another server, and of one that stopped
            // between a commit and its signal.
            Ok(0) => drop(tokio::time::timeout(hooks.patience(), hooks.outbox.notified()).await),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(?error, "cannot read the outbox; its events wait");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// Makes deliveries of the oldest events in the outbox, up to a batch; gives the number of events.
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
    let clock = FixedClock::new();
    let edge: &dyn Edge = &clock;
    let (mut batch, woken) = fan_out::plan(&waiting, &endpoints, edge)?;
    woken.iter().for_each(|endpoint| hooks.ring(*endpoint, &mut batch));
    let made = batch.writes.len();
    if hooks.store().commit(batch).await? == Commit::Applied {
        tracing::debug!(events = waiting.len(), writes = made, "events became deliveries");
        woken.into_iter().for_each(|endpoint| hooks.wake(endpoint));
    }
    Ok(waiting.len())
}

/// The oldest events in the outbox, up to a batch. Damaged rows stay there and do not count, however many come first.
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

/// All endpoints of an organization, disabled ones included, without damaged ones. A damaged endpoint misses the
/// events that are fanned out before it is repaired; the operator can recover them.
pub(crate) async fn endpoints_of(
    hooks: &Hooks,
    organization: OrganizationId,
) -> Result<Vec<webhook_endpoint::WebhookEndpoint>, Error> {
    let mut endpoints = Vec::new();
    for row in endpoint_rows(hooks, organization).await? {
        let endpoint = row.map_err(Error::Damaged).and_then(|row| parse(&row.key, &row.value));
        endpoints.extend(hooks.damaged.skip(endpoint)?);
    }
    Ok(endpoints)
}

/// The rows of an organization's endpoints.
pub(crate) async fn endpoint_rows(hooks: &Hooks, organization: OrganizationId) -> Result<Vec<Scanned>, Error> {
    let spec = &webhook_endpoint::SPEC;
    let prefix = webhook_endpoint::of_organization(organization).prefix(SYSTEM, spec);
    let span = Span::newest_first(&prefix).following(key::records(SYSTEM, spec));
    Ok(hooks.store().scan(&span, MOST_ENDPOINTS).await?)
}
