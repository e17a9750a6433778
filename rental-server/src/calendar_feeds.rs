//! Reads the calendar feeds that are due. `rental_core::operations::calendar_sync` says what follows.
//!
//! Every server does this. Where several share a store, each reading is done by one of them. Readings are made side by side, so
//! a calendar that does not answer delays no other one, and an organization has a few of the places at most.

use crate::{
    access::quotas::{self, WithinQuota},
    edge::{self, Clock},
    panics::catch_panic,
    state::App,
    supervisor::Supervisor,
    webhooks::Downloaded,
};
use futures_util::{
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt as _},
};
use rental_core::{
    calendars::{Reading, read_calendar},
    error::Error,
    operations::{
        calendar_feed_counts::count,
        calendar_feeds::{self, Outcome, Taken},
        calendar_sync,
    },
    rows::key,
    store::{Pages, Record},
    value::{CalendarFeedId, OrganizationId, Timestamp},
    webhooks::secret::bound_to,
};
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::task::JoinHandle;

/// How often due feeds are looked for, unless one was made or changed at this server.
const LOOK: Duration = Duration::from_secs(15);
/// The same while due feeds wait for a place.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How often feeds are counted.
const COUNT: Duration = Duration::from_secs(20);
/// Feeds that are looked at together.
const PAGE: usize = 500;
/// Most readings at a time.
const MOST_READINGS: usize = 16;
/// Most readings of one organization at a time.
const MOST_OF_ONE: usize = 4;
/// Time to parse one calendar.
const PARSING: Duration = Duration::from_secs(5);

/// Starts the background task, unless this server asks no others (`--no-webhooks`). It can be aborted at any time: another server, or
/// the next start, reads the feed later.
pub(crate) fn start(supervisor: &Arc<Supervisor>, app: &Arc<App>) -> Vec<JoinHandle<()>> {
    let (read, counted) = (Arc::clone(app), Arc::clone(app));
    let mut tasks = vec![supervisor.start("calendar_feed_counts", move || count_for_ever(Arc::clone(&counted)))];
    if app.hooks.settings.send {
        tasks.push(supervisor.start("calendar_feeds", move || run(Arc::clone(&read))));
    }
    tasks
}

/// Counts the feeds now and then, for the metrics.
async fn count_for_ever(app: Arc<App>) {
    loop {
        match count(app.store(), edge::now(), &mut |row| app.hooks.damaged.note(row)).await {
            Ok(counts) => app.metrics.feeds.set(&counts),
            Err(error) => tracing::debug!(?error, "cannot count the calendar feeds; trying again"),
        }
        tokio::time::sleep(COUNT).await;
    }
}

/// The readings in progress. Dropping them aborts them.
#[derive(Default)]
struct Readings {
    running: FuturesUnordered<BoxFuture<'static, CalendarFeedId>>,
    by_feed: HashMap<CalendarFeedId, OrganizationId>,
}

impl Readings {
    /// An organization may begin another reading while it has fewer than are free: one place stays for the next one.
    fn has_place(&self, organization: OrganizationId) -> bool {
        let of_one = self.by_feed.values().filter(|one| **one == organization).count();
        of_one < MOST_OF_ONE.min(MOST_READINGS.saturating_sub(self.by_feed.len()))
    }
}

async fn run(app: Arc<App>) {
    let mut readings = Readings::default();
    loop {
        let pause = begin_due(&app, &mut readings).await.unwrap_or_else(|error| {
            tracing::warn!(?error, "cannot read which calendar feeds are due; trying again");
            LOOK
        });
        let pause = tokio::time::sleep(pause);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => break,
                () = app.feeds_changed.notified() => break,
                Some(feed) = readings.running.next() => {
                    readings.by_feed.remove(&feed);
                }
            }
        }
    }
}

/// Begins the readings of the feeds that are due, the longest due first, while there are places. Returns how long to wait
/// before the next look.
async fn begin_due(app: &Arc<App>, readings: &mut Readings) -> Result<Duration, Error> {
    let (due, mut pause) = due(app, &readings.by_feed).await?;
    for Due { organization, feed, row, .. } in due {
        if !readings.has_place(organization) {
            pause = pause.min(LOOK_AGAIN);
            continue;
        }
        readings.by_feed.insert(feed, organization);
        let app = Arc::clone(app);
        readings.running.push(Box::pin(async move {
            // The other feeds go on.
            match catch_panic(one(&app, &row)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(?error, %feed, "a calendar feed was not read; trying again later");
                }
                Err(_) => tracing::error!(%feed, "reading a calendar feed panicked; trying again later"),
            }
            feed
        }));
    }
    Ok(pause)
}

/// A feed that is to be read.
struct Due {
    at: Timestamp,
    organization: OrganizationId,
    feed: CalendarFeedId,
    row: Record,
}

/// The feeds that are due and not being read, the longest due first: of each organization as many as it may read at a time.
/// Also how long to wait for the next one.
async fn due(app: &App, running: &HashMap<CalendarFeedId, OrganizationId>) -> Result<(Vec<Due>, Duration), Error> {
    let (mut pages, now, mut pause) = (Pages::of(app.store(), key::calendar_feeds(), PAGE), edge::now(), LOOK);
    let mut found: HashMap<OrganizationId, Vec<Due>> = HashMap::new();
    while let Some(page) = pages.next().await? {
        for row in app.hooks.damaged.all_sound(page) {
            let due = app.hooks.damaged.skip(calendar_feeds::due_at(&row))?;
            let Some((organization, feed, at)) = due else { continue };
            let wait = at.millis().saturating_sub(now.millis());
            if wait > 0 {
                pause = pause.min(Duration::from_millis(wait));
                continue;
            }
            if running.contains_key(&feed) {
                continue;
            }
            let of_one = found.entry(organization).or_default();
            let place = of_one.partition_point(|other| other.at <= at);
            of_one.insert(place, Due { at, organization, feed, row });
            of_one.truncate(MOST_OF_ONE);
        }
    }
    let mut due: Vec<Due> = found.into_values().flatten().collect();
    due.sort_by_key(|one| one.at);
    Ok((due, pause))
}

async fn one(app: &Arc<App>, row: &Record) -> Result<(), Error> {
    let taken = app.hooks.damaged.skip(calendar_feeds::take(app.store(), row, edge::now()).await)?;
    let Some(taken) = taken.flatten() else { return Ok(()) };
    let outcome = read(app, &taken).await;
    calendar_feeds::finish_reading(app.store(), &Clock, &taken, outcome).await
}

/// Reads a calendar, and makes the blocks what it says. The error is for people, and never has the address.
async fn read(app: &Arc<App>, taken: &Taken) -> Outcome {
    let (mut events, mut tag) = (Vec::new(), None);
    if taken.feed.is_some() {
        let url = address(app, taken)?;
        let body = match app.hooks.download(&url, taken.etag(edge::now())).await? {
            Downloaded::Unchanged => return Ok((None, taken.state.etag.clone())),
            Downloaded::Body(body, found) => {
                tag = found;
                body
            }
        };
        let (zone, window) = (taken.organization.time_zone, calendar_feeds::window(&taken.organization, edge::now()));
        let (clock, begun) = (Arc::clone(app), app.nanos_since_start());
        let parsed = tokio::task::spawn_blocking(move || {
            let goes_on = || Duration::from_nanos(clock.nanos_since_start().saturating_sub(begun)) < PARSING;
            read_calendar(&body, &Reading { zone, window, goes_on: &goes_on })
        });
        let parsed = parsed.await.map_err(|_| "it cannot be parsed".to_owned()).and_then(|parsed| parsed);
        events = parsed.map_err(|why| format!("The calendar cannot be read: {why}. Nothing was changed."))?;
    }
    let within = WithinQuota {
        store: app.store(),
        used: app.tenants.of(taken.organization.id).used(),
        limits: quotas::Limits::of(&taken.organization, &app.tenants.defaults),
        exceeded: OnceLock::new(),
    };
    match calendar_sync::sync(&within, &Clock, taken, &events).await {
        Ok(synced) => Ok((Some(synced), tag)),
        Err(_) if within.exceeded.get().is_some() => {
            Err("The organization has used up its quota, so not all events became blocks. Ask the operator for more."
                .into())
        }
        Err(error) => {
            tracing::warn!(?error, organization = %taken.organization.id, feed = %taken.id, "a calendar feed was not carried out");
            Err("Not all events became blocks, because of a fault or a change of the feed. It is read again later."
                .into())
        }
    }
}

/// Opens the address of a feed.
fn address(app: &App, taken: &Taken) -> Result<String, String> {
    let again = "Delete the feed and make it again with its address.";
    let sealed = taken.state.sealed.as_ref().ok_or_else(|| format!("The address of the calendar was lost. {again}"))?;
    app.hooks.keys.ring().open(bound_to(taken.id), sealed).map_err(|why| {
        tracing::warn!(why, organization = %taken.organization.id, feed = %taken.id, "the address of a calendar feed cannot be opened");
        format!("The address of the calendar was sealed with another master key. {again}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Organizations whose calendars never answer begin as many readings as they may.
    #[test]
    fn however_many_readings_others_begin_one_place_stays_for_the_next_organization() {
        let mut readings = Readings::default();
        for number in 1..=20 {
            let organization = OrganizationId::from_u128(number);
            assert!(number > 6 || readings.has_place(organization), "organization {number}");
            while readings.has_place(organization) {
                let feed = CalendarFeedId::from_u128(readings.by_feed.len() as u128);
                readings.by_feed.insert(feed, organization);
            }
            let of_one = readings.by_feed.values().filter(|one| **one == organization).count();
            assert!(of_one <= MOST_OF_ONE && readings.by_feed.len() <= MOST_READINGS);
        }
    }
}
