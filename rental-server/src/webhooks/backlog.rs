//! Counts the backlog when somebody asks for it. So the path of a delivery counts nothing, and no restart or other server
//! can make the numbers wrong.

use super::{hooks::Hooks, metrics::Backlog};
use crate::edge;
use rental_core::{
    error::Error,
    resources::{Resource, organization::SYSTEM, parse, webhook_endpoint::WebhookEndpoint},
    rows::key,
    store::{self, key_of},
    value::{EndpointId, Timestamp},
};
use std::time::{Duration, Instant};

/// Rows that are read at a time; other tasks run in between.
const PAGE: usize = 1000;

impl Hooks {
    /// The backlog, counted at most a second ago. Where counting takes long, the count is used for longer: counting never
    /// takes more than a twentieth of one core, however often somebody asks.
    pub(crate) async fn backlog(&self) -> Result<Backlog, Error> {
        let mut counted = self.counted.lock().await;
        let begin = Instant::now();
        if let Some((backlog, _)) = counted.filter(|(_, until)| begin < *until) {
            return Ok(backlog);
        }
        let backlog = count(self, edge::now()).await?;
        let end = Instant::now();
        *counted = Some((backlog, end + (20 * (end - begin)).max(Duration::from_secs(1))));
        Ok(backlog)
    }
}

async fn count(hooks: &Hooks, now: Timestamp) -> Result<Backlog, Error> {
    let mut backlog = Backlog { outbox: count_outbox(hooks).await?, ..Backlog::default() };
    let mut endpoint: Option<(EndpointId, bool)> = None;
    let mut span = key::due_rows_of_all();
    loop {
        let page = hooks.store().scan(&span, PAGE).await?;
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
            } else {
                backlog.disabled += 1;
            }
        }
        let Some(behind) = behind else { return Ok(backlog) };
        span.from = behind;
        tokio::task::yield_now().await;
    }
}

async fn count_outbox(hooks: &Hooks) -> Result<u64, Error> {
    let (mut span, mut rows) = (key::outbox_rows(), 0);
    loop {
        let page = hooks.store().scan(&span, PAGE).await?;
        let behind = page.last().map(|last| store::after(key_of(last))).filter(|_| page.len() == PAGE);
        rows += hooks.damaged.all_sound(page).len() as u64;
        let Some(behind) = behind else { return Ok(rows) };
        span.from = behind;
        tokio::task::yield_now().await;
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
