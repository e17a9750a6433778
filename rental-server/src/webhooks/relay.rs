//! The relay: makes deliveries of the events in the outbox. The events of an organization become deliveries in their order;
//! the organizations share each batch, so that a burst of one does not delay the others.

use super::hooks::Hooks;
use crate::edge::{self, FixedClock};
use rental_core::{
    error::Error,
    operations::Edge,
    resources::{organization::SYSTEM, parse, webhook_endpoint},
    rows::{
        key,
        outbox::{self, OutboxEvent},
    },
    store::{self, Commit, Key, Scanned, Span, key_of},
    value::OrganizationId,
    webhooks::fan_out::{self, Waiting},
};
use std::{collections::VecDeque, sync::Arc, time::Duration};

/// Most events of an organization that are read for one batch.
const MOST_EVENTS: usize = 256;
/// Most organizations in one batch. The next batch begins with the organization after them.
const MOST_ORGANIZATIONS: usize = 16;
/// Most endpoints of an organization; creation refuses more.
pub(crate) const MOST_ENDPOINTS: usize = 50;

/// Runs until the server stops.
pub(crate) async fn run(hooks: Arc<Hooks>) {
    // The outbox row at which the next batch begins. After a restart of the task that is the first one.
    let mut from = key::outbox_rows().from;
    while !hooks.is_stopping() {
        if !edge::is_right() {
            tokio::time::sleep(Duration::from_secs(1)).await;
            continue;
        }
        match relay_once(&hooks, &mut from).await {
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

/// Makes deliveries of the oldest events of the next organizations in the outbox, up to a batch; gives the number of events.
async fn relay_once(hooks: &Hooks, from: &mut Key) -> Result<usize, Error> {
    let mut waiting = waiting_organizations(hooks, from).await?;
    let events = fan_out::share(&mut waiting);
    if events.is_empty() {
        return Ok(0);
    }
    let endpoints = waiting.into_iter().map(|waiting| (waiting.organization, waiting.endpoints)).collect();
    let clock = FixedClock::new();
    let edge: &dyn Edge = &clock;
    let (mut batch, woken) = fan_out::plan(&events, &endpoints, edge)?;
    woken.iter().for_each(|endpoint| hooks.ring(*endpoint, &mut batch));
    let made = batch.writes.len();
    if hooks.store().commit(batch).await? == Commit::Applied {
        tracing::debug!(events = events.len(), writes = made, "events became deliveries");
        woken.into_iter().for_each(|endpoint| hooks.wake(endpoint));
    }
    Ok(events.len())
}

/// The next organizations with events in the outbox, from a row on and then from the start. Moves `from` behind them.
async fn waiting_organizations(hooks: &Hooks, from: &mut Key) -> Result<Vec<Waiting>, Error> {
    let all = key::outbox_rows();
    let parts = [Span { from: from.clone(), ..all.clone() }, Span { to: from.clone(), ..all.clone() }];
    let mut found = Vec::new();
    for mut rest in parts {
        // Damaged pages behind the rows of some organizations keep nothing from these.
        while let Some(row) = hooks.damaged.rows(hooks.store().scan(&rest, 1).await)?.pop() {
            let Some(organization) = key::outbox_organization(key_of(&row)) else {
                rest.from = key_of(&row).next();
                hooks.damaged.skip(row.map_err(Error::Damaged).and_then(|row| outbox::read(&row)))?;
                continue;
            };
            if found.len() == MOST_ORGANIZATIONS {
                *from = rest.from;
                return Ok(found);
            }
            rest.from = key::outbox_of(organization).to;
            let endpoints = endpoints_of(hooks, organization).await?;
            let events = waiting_events(hooks, organization).await?;
            if !events.is_empty() {
                found.push(Waiting { organization, events, endpoints });
            }
        }
    }
    *from = all.from;
    Ok(found)
}

/// The oldest events of an organization in the outbox. Damaged rows stay there and do not count, however many come first.
async fn waiting_events(hooks: &Hooks, organization: OrganizationId) -> Result<VecDeque<OutboxEvent>, Error> {
    let mut span = key::outbox_of(organization);
    loop {
        let rows = hooks.damaged.rows(hooks.store().scan(&span, MOST_EVENTS).await)?;
        let Some(last) = rows.last() else { return Ok(VecDeque::new()) };
        span.from = store::after(key_of(last));
        let mut waiting = VecDeque::with_capacity(rows.len());
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
    Ok(hooks.damaged.rows(hooks.store().scan(&span, MOST_ENDPOINTS).await)?)
}
