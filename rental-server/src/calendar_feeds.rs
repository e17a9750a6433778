//! Reads the calendar feeds that are due. `rental_core::operations::calendar_sync` says what follows.
//!
//! Each server has the times of all feeds in memory, so a look costs nothing for the feeds that are not due. They can be out of date:
//! what counts is the row, which is read before each reading. All rows are read at the start, page by page, and now and then.
//!
//! Every server does this. Where several share a store, each reading is done by one of them. Readings are made side by side, so
//! a calendar that does not answer delays no other one, and an organization has a few of the places at most. After a calendar
//! was parsed, the calendars of its organization wait ten times as long, also when somebody polls them: they take at most a tenth of a
//! processor.

mod schedule;

use crate::{
    access::quotas::{self, WithinQuota},
    changed_feeds::Feed,
    disk::WithinSpace,
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
    calendars::{ExternalCalendar, Reading, read_calendar},
    error::Error,
    operations::{
        calendar_feed_counts::count,
        calendar_feeds::{self, Outcome, Taken},
        calendar_sync,
    },
    rows::key,
    store::{Pages, get_one},
    value::{OrganizationId, Timestamp},
    webhooks::secret::bound_to,
};
use schedule::Schedule;
use std::{
    collections::HashMap,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;

/// Longest time between two looks at the schedule, in which the clock can be set.
const LOOK: Duration = Duration::from_secs(15);
/// The same while due feeds wait for a place.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Longest time until a change of a feed is seen whose signal was lost.
const SIGNAL: Duration = Duration::from_secs(5);
/// How often all rows are read, because another server made or changed a feed and ended before it read it. A feed of an organization
/// that has no access is tried again so often, too.
const READ_ALL: Duration = Duration::from_secs(5 * 60);
/// Pause between two pages of that.
const BETWEEN_PAGES: Duration = Duration::from_millis(10);
/// How often feeds are counted.
const COUNT: Duration = Duration::from_secs(20);
/// A count is followed by a pause of so many times its duration, if that is longer.
const COUNT_PART: u32 = 50;
/// Rows that are read together.
const PAGE: usize = 500;
/// Most readings at a time.
const MOST_READINGS: usize = 16;
/// Most readings of one organization at a time.
const MOST_OF_ONE: usize = 4;
/// An organization begins no reading for so many times the time that parsing its last calendar took.
const REST: u32 = 10;

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
        let begun = app.nanos_since_start();
        match count(app.store(), edge::now(), &mut |row| app.hooks.damaged.note(row)).await {
            Ok(counts) => app.metrics.feeds.set(&counts),
            Err(error) => tracing::debug!(?error, "cannot count the calendar feeds; trying again"),
        }
        let took = Duration::from_nanos(app.nanos_since_start().saturating_sub(begun));
        tokio::time::sleep(COUNT.max(took * COUNT_PART)).await;
    }
}

/// The readings in progress. Dropping them aborts them.
#[derive(Default)]
struct Readings {
    running: FuturesUnordered<BoxFuture<'static, Ended>>,
    /// Those in progress, and whether somebody changed the feed since they began.
    by_feed: HashMap<Feed, bool>,
    /// Until when organizations rest, since the start of this server.
    resting: HashMap<OrganizationId, Duration>,
}

/// A reading that has ended.
struct Ended {
    feed: Feed,
    /// When the feed is due next, unless it is gone.
    next: Option<Timestamp>,
    /// How long its calendar was parsed.
    parsing: Duration,
}

impl Readings {
    /// An organization may begin another reading while it has fewer than are free: one place stays for the next one.
    fn has_place(&self, organization: OrganizationId) -> bool {
        let of_one = self.by_feed.keys().filter(|(one, _)| *one == organization).count();
        of_one < MOST_OF_ONE.min(MOST_READINGS.saturating_sub(self.by_feed.len()))
    }

    /// Somebody made or changed a feed: it is looked at now, or after its reading in progress.
    fn changed(&mut self, schedule: &mut Schedule, feed: Feed) {
        match self.by_feed.get_mut(&feed) {
            Some(changed) => *changed = true,
            None => schedule.set(feed, edge::now()),
        }
    }

    /// How long an organization still rests, `since_start` of this server.
    fn rest(&self, organization: OrganizationId, since_start: Duration) -> Option<Duration> {
        self.resting.get(&organization)?.checked_sub(since_start).filter(|rest| !rest.is_zero())
    }

    /// A reading has ended.
    fn ended(&mut self, schedule: &mut Schedule, ended: Ended, since_start: Duration) {
        let Ended { feed, next, parsing } = ended;
        self.resting.retain(|_, until| *until > since_start);
        if !parsing.is_zero() {
            *self.resting.entry(feed.0).or_insert(since_start) += parsing * REST;
        }
        let was_changed = self.by_feed.remove(&feed) == Some(true);
        if let Some(at) = if was_changed { Some(edge::now()) } else { next } {
            schedule.set(feed, at);
        }
    }
}

async fn run(app: Arc<App>) {
    let (mut schedule, mut readings) = (Schedule::default(), Readings::default());
    let all_rows = || Some(Pages::of(app.store(), key::calendar_feeds(), PAGE));
    let (mut rows, next_rows) = (all_rows(), tokio::time::sleep(READ_ALL));
    tokio::pin!(next_rows);
    loop {
        let mut pause = LOOK;
        if let Some(pages) = &mut rows {
            match one_page(&app, pages, &mut schedule, &mut readings).await {
                Ok(true) => pause = BETWEEN_PAGES,
                Ok(false) => rows = None,
                Err(error) => tracing::warn!(?error, "cannot read when calendar feeds are due; trying again"),
            }
        }
        let pause = tokio::time::sleep(pause.min(begin_due(&app, &mut schedule, &mut readings)));
        tokio::select! {
            () = pause => {}
            () = &mut next_rows => {
                next_rows.set(tokio::time::sleep(READ_ALL));
                rows = rows.or_else(all_rows);
            }
            changed = app.changed_feeds.next(SIGNAL) => match changed {
                Some(feeds) => feeds.into_iter().for_each(|feed| readings.changed(&mut schedule, feed)),
                None => rows = all_rows(),
            },
            Some(ended) = readings.running.next() => readings.ended(&mut schedule, ended, since_start(&app)),
        }
    }
}

/// Puts the feeds of one page of rows on the schedule. Returns whether there are more pages.
async fn one_page(
    app: &App,
    pages: &mut Pages<'_>,
    schedule: &mut Schedule,
    readings: &mut Readings,
) -> Result<bool, Error> {
    let Some(page) = pages.next().await? else { return Ok(false) };
    for row in app.hooks.damaged.all_sound(page) {
        if let Some((organization, feed, at)) = app.hooks.damaged.skip(calendar_feeds::due_at(&row, edge::now()))?
            && !readings.by_feed.contains_key(&(organization, feed))
        {
            schedule.set((organization, feed), at);
        }
    }
    Ok(true)
}

/// Begins the readings of the feeds that are due, the longest due first, while there are places. Returns how long to wait
/// before the next look.
fn begin_due(app: &Arc<App>, schedule: &mut Schedule, readings: &mut Readings) -> Duration {
    if !edge::is_right() {
        return LOOK;
    }
    let (now, mut begun, mut pause) = (edge::now(), Vec::new(), LOOK);
    for feed in schedule.due(now) {
        if let Some(rest) = readings.rest(feed.0, since_start(app)) {
            pause = pause.min(rest);
        } else if readings.has_place(feed.0) {
            readings.by_feed.insert(feed, false);
            begun.push(feed);
        } else {
            pause = pause.min(LOOK_AGAIN);
            if readings.by_feed.len() >= MOST_READINGS {
                break;
            }
        }
    }
    for feed in begun {
        schedule.remove(feed);
        let app = Arc::clone(app);
        readings.running.push(Box::pin(async move {
            let parsing = AtomicU64::new(0);
            let next = attempt(&app, feed, &parsing).await;
            Ended { feed, next, parsing: Duration::from_nanos(parsing.into_inner()) }
        }));
    }
    schedule.next_after(now).map_or(pause, |wait| pause.min(wait))
}

fn since_start(app: &App) -> Duration {
    Duration::from_nanos(app.nanos_since_start())
}

/// Reads a feed if it is due. Returns when it is due next, unless its row is gone or damaged. Sets the nanoseconds in which its
/// calendar was parsed.
async fn attempt(app: &Arc<App>, feed: Feed, parsing: &AtomicU64) -> Option<Timestamp> {
    // The other feeds go on.
    match catch_panic(pin!(one(app, feed, parsing))).await {
        Ok(Ok(next)) => return next,
        Ok(Err(error)) => tracing::warn!(?error, feed = %feed.1, "a calendar feed was not read; trying again later"),
        Err(_) => tracing::error!(feed = %feed.1, "reading a calendar feed panicked; trying again later"),
    }
    Some(later(LOOK))
}

async fn one(app: &Arc<App>, (organization, feed): Feed, parsing: &AtomicU64) -> Result<Option<Timestamp>, Error> {
    let place = key::calendar_feed(organization, feed);
    let present = || async {
        let row = app.hooks.damaged.skip(get_one(app.store(), &place).await.map_err(Error::from))?;
        let Some(row) = row.flatten() else { return Ok(None) };
        let due = app.hooks.damaged.skip(calendar_feeds::due_at(&row, edge::now()))?;
        Ok::<_, Error>(due.map(|(_, _, at)| (row, at)))
    };
    let Some((row, at)) = present().await? else { return Ok(None) };
    if at > edge::now() {
        return Ok(Some(at));
    }
    let taken = app.hooks.damaged.skip(calendar_feeds::take(app.store(), &row, edge::now()).await)?.flatten();
    if let Some(taken) = &taken {
        let outcome = read(app, taken, parsing).await;
        calendar_feeds::finish_reading(app.store(), &Clock, taken, outcome).await?;
    }
    let next = present().await?.map(|(_, at)| at);
    // Its organization has no access, unless another server has taken it in this moment.
    Ok(next.map(|at| if taken.is_none() && at <= edge::now() { later(READ_ALL) } else { at }))
}

/// The time after a pause.
fn later(pause: Duration) -> Timestamp {
    edge::now().plus_millis(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX))
}

/// Reads a calendar, and makes the blocks what it says. The error is for people, and never has the address.
async fn read(app: &Arc<App>, taken: &Taken, parsing: &AtomicU64) -> Outcome {
    let (mut calendar, mut tag) = (ExternalCalendar::default(), None);
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
        let clock = Arc::clone(app);
        let parsed = tokio::task::spawn_blocking(move || {
            let begun = clock.nanos_since_start();
            let parsed = read_calendar(&body, &Reading { zone, window });
            (parsed, clock.nanos_since_start().saturating_sub(begun))
        });
        let (parsed, took) = parsed.await.unwrap_or_else(|_| (Err("it cannot be parsed".to_owned()), 0));
        parsing.store(took, Ordering::Relaxed);
        calendar = parsed.map_err(|why| format!("The calendar cannot be read: {why}. Nothing was changed."))?;
    }
    let within_space = WithinSpace { store: app.store(), space: &app.hooks.space };
    let within = WithinQuota {
        store: &within_space,
        used: app.tenants.of(taken.organization.id).used(),
        limits: quotas::Limits::of(&taken.organization, &app.tenants.defaults),
        exceeded: OnceLock::new(),
    };
    let mut damaged = Vec::new();
    let synced = calendar_sync::sync(&within, &Clock, taken, &calendar, &mut damaged).await;
    damaged.iter().for_each(|row| app.hooks.damaged.note(row));
    match synced {
        Ok(synced) => Ok((Some(synced), tag)),
        Err(_) if within.exceeded.get().is_some() => {
            Err("The organization has used up its quota, so not all events became blocks. Ask the operator for more."
                .into())
        }
        Err(Error::StorageFull) => {
            Err("The disk of the server has too little room, so not all events became blocks. It is read again later."
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
    use rental_core::value::CalendarFeedId;

    /// Organizations whose calendars never answer begin as many readings as they may.
    #[test]
    fn however_many_readings_others_begin_one_place_stays_for_the_next_organization() {
        let mut readings = Readings::default();
        for number in 1..=20 {
            let organization = OrganizationId::from_u128(number);
            assert!(number > 6 || readings.has_place(organization), "organization {number}");
            while readings.has_place(organization) {
                let feed = CalendarFeedId::from_u128(readings.by_feed.len() as u128);
                readings.by_feed.insert((organization, feed), false);
            }
            let of_one = readings.by_feed.keys().filter(|(one, _)| *one == organization).count();
            assert!(of_one <= MOST_OF_ONE && readings.by_feed.len() <= MOST_READINGS);
        }
    }

    /// Whatever is polled, and however many feeds it has.
    #[test]
    fn an_organization_rests_ten_times_as_long_as_its_calendars_were_parsed() {
        let (mut readings, mut schedule) = (Readings::default(), Schedule::default());
        let [one, other] = [1, 2].map(OrganizationId::from_u128);
        let (begun, millis) = (Duration::from_secs(100), Duration::from_millis);
        for feed in 0..2 {
            let feed = (one, CalendarFeedId::from_u128(feed));
            readings.by_feed.insert(feed, true);
            readings.ended(&mut schedule, Ended { feed, next: None, parsing: millis(40) }, begun);
        }
        assert_eq!((readings.rest(one, begun), readings.rest(other, begun)), (Some(millis(800)), None));
        assert_eq!(readings.rest(one, begun + millis(300)), Some(millis(500)));
        assert_eq!(readings.rest(one, begun + millis(800)), None);
    }
}
