//! Counts the backlog now and then. So the path of a delivery and a scrape count nothing, and no restart or other server can
//! make the numbers wrong.

use super::{hooks::Hooks, metrics::Backlog};
use crate::edge;
use rental_core::{
    error::Error,
    resources::{Resource, organization::SYSTEM, parse, webhook_endpoint::WebhookEndpoint},
    rows::key,
    store::{self, key_of},
    value::{EndpointId, Timestamp},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use uuid::Uuid;

/// Rows that are read at a time; other tasks run in between.
const PAGE: usize = 1000;

/// How often the backlog is counted.
const PERIOD: Duration = Duration::from_secs(2);
/// Where counting takes long, it is done more seldom: it takes at most this part of one core.
const PART: u32 = 20;

/// Counts the backlog for ever, for the metrics.
pub(crate) async fn run(hooks: Arc<Hooks>) {
    loop {
        let begin = Instant::now();
        match count(&hooks, edge::now()).await {
            Ok(backlog) => hooks.metrics.set_backlog(backlog),
            // Other metrics show it, and the last count stays.
            Err(error) => tracing::debug!(?error, "cannot count the backlog of webhooks; trying again"),
        }
        tokio::time::sleep(PERIOD.max(begin.elapsed() * PART)).await;
    }
}

async fn count(hooks: &Hooks, now: Timestamp) -> Result<Backlog, Error> {
    let mut backlog = Backlog::default();
    count_outbox(hooks, &mut backlog, now).await?;
    let mut endpoint: Option<(EndpointId, bool)> = None;
    let mut span = key::due_rows_of_all();
    loop {
        let page = hooks.damaged.rows(hooks.store().scan(&span, PAGE).await)?;
        let behind = page.last().map(|last| store::after(key_of(last))).filter(|_| page.len() == PAGE);
        for row in hooks.damaged.all_sound(page) {
            let Some((id, millis)) = key::due_endpoint(&row.key).zip(key::due_millis(&row.key)) else { continue };
            let enabled = match endpoint {
                Some((known, enabled)) if known == id => enabled,
                _ => is_enabled(hooks, id).await?,
            };
            endpoint = Some((id, enabled));
            if enabled {
                backlog.enabled += 1;
                backlog.oldest_due_millis = backlog.oldest_due_millis.max(now.millis().saturating_sub(millis));
                note_age(&mut backlog, row.key.id(), now);
            } else {
                backlog.disabled += 1;
            }
        }
        let Some(behind) = behind else { return Ok(backlog) };
        span.from = behind;
        tokio::task::yield_now().await;
    }
}

async fn count_outbox(hooks: &Hooks, backlog: &mut Backlog, now: Timestamp) -> Result<(), Error> {
    let mut span = key::outbox_rows();
    loop {
        let page = hooks.damaged.rows(hooks.store().scan(&span, PAGE).await)?;
        let behind = page.last().map(|last| store::after(key_of(last))).filter(|_| page.len() == PAGE);
        for row in hooks.damaged.all_sound(page) {
            backlog.outbox += 1;
            note_age(backlog, row.key.id(), now);
        }
        let Some(behind) = behind else { return Ok(()) };
        span.from = behind;
        tokio::task::yield_now().await;
    }
}

/// Notes the age of an event, by its id or by that of its delivery, which the relay makes at once. A UUIDv7 begins with its
/// time in milliseconds.
fn note_age(backlog: &mut Backlog, id: Option<Uuid>, now: Timestamp) {
    if let Some(id) = id {
        let made = u64::try_from(id.as_u128() >> 80).unwrap_or(u64::MAX);
        backlog.oldest_event_millis = backlog.oldest_event_millis.max(now.millis().saturating_sub(made));
    }
}

/// Whether an endpoint gets its deliveries. A damaged endpoint gets none, like a disabled one; the rows of a deleted
/// endpoint are about to be removed.
async fn is_enabled(hooks: &Hooks, id: EndpointId) -> Result<bool, Error> {
    let place = [WebhookEndpoint::key(SYSTEM, id)];
    let found = hooks.store().get(&place).await.map_err(Error::from);
    let Some(record) = hooks.damaged.skip(found)?.and_then(|mut found| found.pop().flatten()) else { return Ok(false) };
    let endpoint = hooks.damaged.skip(parse::<WebhookEndpoint>(&record.key, &record.value))?;
    Ok(endpoint.is_some_and(|endpoint| endpoint.is_enabled()))
}
