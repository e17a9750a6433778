//! How much waits to be delivered, and for how long: counted when somebody asks, so that nothing on the way of a delivery
//! has to count, and a restart or another server cannot make it wrong.

use crate::{edge, webhooks::Hooks};
use rental_core::{
    error::Error,
    resources::{
        organization::SYSTEM,
        parse,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    rows::key,
    store::{self, key_of},
    value::Timestamp,
};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use uuid::Uuid;

/// Rows read in one go; other work gets a turn in between.
const PAGE: usize = 1000;

/// What waits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Backlog {
    /// Events that are not deliveries yet.
    pub(crate) outbox: u64,
    /// Deliveries to enabled endpoints: due now, or waiting for their next attempt.
    pub(crate) enabled: u64,
    /// Deliveries that are kept for disabled endpoints.
    pub(crate) disabled: u64,
    /// How long the delivery that is due the longest has been due, of enabled endpoints; 0 when none is due.
    pub(crate) oldest_due_millis: u64,
}

/// The last count, and when the next one is worth its time.
#[derive(Default)]
pub(crate) struct Counted(Mutex<Option<(Backlog, Instant)>>);

impl Hooks {
    /// The backlog as of the last second; longer ago when counting takes long, so that it never takes more than a
    /// twentieth of one core however often it is asked for.
    pub(crate) async fn backlog(&self) -> Result<Backlog, Error> {
        let mut counted = self.counted.0.lock().await;
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
    let mut endpoint: Option<(Uuid, bool)> = None;
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

/// A deleted endpoint's rows are about to go. Those of a damaged endpoint are kept like those of a disabled one.
async fn is_enabled(hooks: &Hooks, id: Uuid) -> Result<bool, Error> {
    let place = [key::record(SYSTEM, &webhook_endpoint::SPEC, id)];
    let found = hooks.store().get(&place).await.map_err(Error::from);
    let Some(record) = hooks.damaged.skip(found)?.and_then(|mut found| found.pop().flatten()) else { return Ok(false) };
    let endpoint = hooks.damaged.skip(parse::<WebhookEndpoint>(&record.key, &record.value))?;
    Ok(endpoint.is_some_and(|endpoint| endpoint.is_enabled()))
}
