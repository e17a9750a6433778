//! Calendar feeds: they are polled and deleted, and servers take them in turn.
//!
//! A server takes a feed that is due by setting the time of its next reading ahead: the row changes, so no other server takes
//! it too. Each change of a block checks that the row is still as that server left it ([`calendar_sync`](super::calendar_sync)).

use super::{
    commit_for::commit_for,
    edge::Edge,
    edit::edit,
    holds,
    intent::{Intent, Prepared, Preparing},
    read::get,
};
use crate::{
    error::Error,
    resources::{
        Object, Resource,
        calendar_feed::{self, CalendarFeed, FeedStatus, SPEC},
        effects,
        organization::{Organization, Plan, SYSTEM},
        parse, to_json,
    },
    rows::{Row, calendar_feed::ImportedFeed, key},
    store::{Batch, Check, Commit, Key, Record, Revision, Span, Store, get_one},
    value::{CalendarFeedId, Date, OrganizationId, Text, Timestamp, VehicleId},
};

/// How long a server has a feed that it reads. After that another server reads it, for example when this one was killed.
const LEASE_MILLIS: i64 = 3 * 60 * 1000;
/// The shortest time between two readings of a feed. Each further failure in a row doubles it, up to [`MOST_DOUBLED`] times.
const SHORTEST_PAUSE_MILLIS: i64 = 2000;
/// How often that is doubled: up to two minutes.
const MOST_DOUBLED: u32 = 6;
/// The longest time between two readings of a feed. Each failure in a row doubles the interval, up to this.
const LONGEST_PAUSE_MILLIS: i64 = 24 * 3600 * 1000;
/// Most calendar feeds of a vehicle.
pub const MOST_FEEDS: usize = 10;

/// Refuses one more feed of a vehicle that has [`MOST_FEEDS`]. Of feeds that are made at once with these batches, one is made.
///
/// # Errors
/// [`Error::Conflict`], or the store is not available.
pub async fn room_for_feed(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    batch: &mut Batch,
) -> Result<(), Error> {
    holds::take_turns(store, organization, vehicle, batch).await?;
    let present = Span::under(calendar_feed::of_vehicle(vehicle).prefix(organization, &SPEC));
    if store.scan(&present, MOST_FEEDS).await?.len() == MOST_FEEDS {
        return Err(Error::Conflict(format!("The vehicle has {MOST_FEEDS} calendar feeds. Delete one first.")));
    }
    Ok(())
}

/// Reads a feed as soon as possible, or deletes it.
pub struct ChangeCalendarFeed<'a> {
    /// The organization.
    pub organization: &'a Organization,
    /// The id of the feed.
    pub id: &'a str,
    /// Whether it is deleted.
    pub deletes: bool,
}

impl Intent for ChangeCalendarFeed<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (organization, now) = (self.organization.id, edge.now());
            let record = get(store, organization, &SPEC, self.id).await?;
            let feed: CalendarFeed = parse(&record.key, &record.value)?;
            let place = key::calendar_feed(organization, feed.id);
            let row = get_one(store, &place).await?.ok_or(Error::NotFound { object: SPEC.object })?;
            let mut state = ImportedFeed::read(&row)?;
            // The server that reads the feed now sees that the row was changed, and reads it again after that: no two servers
            // read it at once.
            if !is_being_read(&state, now) {
                state.poll_at = earliest(&state, now);
            }
            let mut batch = Batch::default();
            if self.deletes {
                (state.sealed, state.poll_at, state.removed) = (None, now, true);
                batch.checks.push(Check::At(record.key.clone(), record.revision));
                batch.delete(record.key);
                for entry in effects::of(&feed).entries {
                    batch.delete(entry.entry(organization, &SPEC, feed.id.uuid()));
                }
            }
            batch.replace(place, row.revision, to_json(&state)?);
            Ok(Prepared {
                batch,
                body: record.value,
                revision: record.revision,
                object: Some(Box::new(feed)),
                asks: Vec::new(),
            })
        })
    }
}

/// A feed that this server reads.
pub struct Taken {
    /// The organization.
    pub organization: Organization,
    /// The id of the feed.
    pub id: CalendarFeedId,
    /// The feed; `None` once it is deleted.
    pub feed: Option<CalendarFeed>,
    /// Its row, as this server left it.
    pub state: ImportedFeed,
    pub(super) revision: Revision,
}

impl Taken {
    /// The row that no other server and nobody else changes before this reading has ended.
    pub(super) fn place(&self) -> Key {
        key::calendar_feed(self.organization.id, self.id)
    }

    /// The `ETag` to send at `now`; `None` to read the calendar although it may be the same. A conflict can be over, and the
    /// first reading of each day sees one day more ([`window`]).
    #[must_use]
    pub fn etag(&self, now: Timestamp) -> Option<&str> {
        let day = |time| self.organization.time_zone.local(time).date();
        let feed = self.feed.as_ref().filter(|feed| feed.conflicts == Some(0))?;
        let was_read_today = feed.last_success_at.is_some_and(|time| day(time) == day(now));
        self.state.etag.as_deref().filter(|_| was_read_today)
    }
}

/// The feed of a row, and when it is due, by what is known at `now`.
///
/// # Errors
/// The row is damaged.
pub fn due_at(row: &Record, now: Timestamp) -> Result<(OrganizationId, CalendarFeedId, Timestamp), Error> {
    let Some(Row::CalendarFeed { organization, feed }) = Row::decode(&row.key) else {
        return Err(Error::damaged_row(&row.key, "it is no row of a calendar feed"));
    };
    Ok((organization, feed, due(&ImportedFeed::read(row)?, now)))
}

/// When a feed is due. One that was never read is due at once. So is one whose last reading began later than now: the clock was
/// set back since, and nobody knows by how much. Clocks of two servers differ by less than the lease.
fn due(state: &ImportedFeed, now: Timestamp) -> Timestamp {
    match state.taken_at {
        None => state.poll_at.min(now),
        Some(taken_at) if taken_at > now.plus_millis(LEASE_MILLIS) => now,
        Some(_) => state.poll_at,
    }
}

/// Whether a server has the feed. The shortest interval is longer than the lease, so a reading that has ended leaves another time.
fn is_being_read(state: &ImportedFeed, now: Timestamp) -> bool {
    state.taken_at.is_some_and(|taken_at| taken_at.plus_millis(LEASE_MILLIS) == state.poll_at) && due(state, now) > now
}

/// When a feed that somebody polls is read.
fn earliest(state: &ImportedFeed, now: Timestamp) -> Timestamp {
    let last = state.taken_at.filter(|taken_at| *taken_at <= now);
    let pause = SHORTEST_PAUSE_MILLIS << state.failures.saturating_sub(1).min(MOST_DOUBLED);
    last.map_or(now, |taken_at| now.max(taken_at.plus_millis(pause)))
}

/// Takes a feed that is due. `None` if another server has it, or its organization has no access.
///
/// # Errors
/// The store is not available, or a row is damaged.
pub async fn take(store: &dyn Store, row: &Record, now: Timestamp) -> Result<Option<Taken>, Error> {
    let (organization, id, due_at) = due_at(row, now)?;
    if due_at > now {
        return Ok(None);
    }
    let mut state = ImportedFeed::read(row)?;
    let keys = [Organization::key(SYSTEM, organization), CalendarFeed::key(organization, id)];
    let mut found = store.get(&keys).await?.into_iter();
    let Some(organization) = found.next().flatten() else { return Ok(None) };
    let organization: Organization = parse(&organization.key, &organization.value)?;
    let feed = found.next().flatten().map(|record| parse(&record.key, &record.value)).transpose()?;
    if organization.plan != Plan::Pro && feed.is_some() {
        return Ok(None);
    }
    (state.poll_at, state.taken_at) = (now.plus_millis(LEASE_MILLIS), Some(now));
    let mut batch = Batch::default();
    batch.replace(row.key.clone(), row.revision, to_json(&state)?);
    let committed = commit_for(store, organization.id, batch).await?;
    let taken = Taken { organization, id, feed, state, revision: row.revision + 1 };
    Ok((committed == Commit::Applied).then_some(taken))
}

/// What a reading found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Synced {
    /// Events of today and later.
    pub events: usize,
    /// Blocks with the status `conflict`.
    pub conflicts: usize,
    /// What could not be read, for people.
    pub problems: Option<String>,
}

/// How a reading ended: what it found, unless the calendar is as before, and the `ETag`; or why it failed, for people.
pub type Outcome = Result<(Option<Synced>, Option<String>), String>;

/// Records how a reading ended, and when the next one is. Removes the row of a deleted feed. When somebody changed the feed
/// during the reading, it only makes the feed due again.
///
/// # Errors
/// The store is not available.
pub async fn finish_reading(store: &dyn Store, edge: &dyn Edge, taken: &Taken, outcome: Outcome) -> Result<(), Error> {
    let (place, now) = (taken.place(), edge.now());
    let Some(feed) = &taken.feed else {
        if outcome.is_ok() {
            let mut batch = Batch::default();
            batch.checks.push(Check::At(place.clone(), taken.revision));
            batch.delete(place);
            commit_for(store, taken.organization.id, batch).await?;
        }
        return Ok(());
    };
    let record = match get(store, taken.organization.id, &SPEC, &feed.id.to_string()).await {
        Err(Error::NotFound { .. }) => return Ok(()),
        record => record?,
    };
    let (failures, etag) = match &outcome {
        Ok((_, etag)) => (0, etag.clone()),
        Err(_) => (taken.state.failures.saturating_add(1), None),
    };
    let poll_at = now.plus_millis(pause_millis(feed.interval_minutes, failures));
    let state = ImportedFeed { poll_at, etag, failures, ..taken.state.clone() };
    let rule = |feed: &mut CalendarFeed| {
        match &outcome {
            Ok((synced, _)) => {
                if let Some(synced) = synced {
                    feed.events = i64::try_from(synced.events).ok();
                    feed.conflicts = i64::try_from(synced.conflicts).ok();
                    feed.last_error = synced.problems.as_ref().map(|problems| Text::fit(problems, 255));
                }
                (feed.status, feed.last_success_at) = (Some(FeedStatus::Ok), Some(now));
            }
            Err(why) => (feed.status, feed.last_error) = (Some(FeedStatus::Failing), Some(Text::fit(why, 255))),
        }
        feed.next_read_at = Some(poll_at);
        feed.touch(now);
        Ok(Vec::new())
    };
    let mut prepared = edit(store, edge, &taken.organization, record, rule).await?;
    prepared.batch.replace(place, taken.revision, to_json(&state)?);
    match commit_for(store, taken.organization.id, prepared.batch).await? {
        Commit::Applied => Ok(()),
        Commit::Stale(_) => make_due_again(store, now, taken).await,
    }
}

/// Makes a feed due that somebody polled during the reading of `taken`. Another change of the row in this moment is another poll,
/// or the deletion of the feed.
async fn make_due_again(store: &dyn Store, now: Timestamp, taken: &Taken) -> Result<(), Error> {
    loop {
        let Some(row) = get_one(store, &taken.place()).await? else { return Ok(()) };
        let mut state = ImportedFeed::read(&row)?;
        if state.removed || state.taken_at != taken.state.taken_at || !is_being_read(&state, now) {
            return Ok(());
        }
        state.poll_at = earliest(&state, now);
        let mut batch = Batch::default();
        batch.replace(row.key, row.revision, to_json(&state)?);
        if commit_for(store, taken.organization.id, batch).await? == Commit::Applied {
            return Ok(());
        }
    }
}

/// The time to the next reading after so many failures in a row.
fn pause_millis(interval_minutes: i64, failures: u32) -> i64 {
    let doubled = 1_i64 << failures.saturating_sub(1).min(16);
    (interval_minutes * 60_000).saturating_mul(doubled).min(LONGEST_PAUSE_MILLIS)
}

/// The days whose events are read at `now`: from today, for two years.
#[must_use]
pub fn window(organization: &Organization, now: Timestamp) -> (Date, Date) {
    let today = organization.time_zone.local(now).date();
    (today, Date::from_day_number(today.day_number() + super::DAYS_AHEAD).unwrap_or(Date::LAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_etag_is_sent_once_the_calendar_was_read_today_and_nothing_clashes() {
        let time = |text| Timestamp::parse(text).unwrap();
        let feed = |read: Option<&str>, conflicts: i64| -> CalendarFeed {
            serde_json::from_value(serde_json::json!({
                "id": CalendarFeedId::from_u128(1), "object": "calendar_feed", "vehicle_id": VehicleId::from_u128(2),
                "url": "https://x.example/...", "interval_minutes": 15, "status": "ok", "last_success_at": read,
                "last_error": null, "next_read_at": null, "events": 1, "conflicts": conflicts,
                "created_at": time("2026-06-01T00:00:00Z"), "updated_at": time("2026-06-01T00:00:00Z"),
            }))
            .unwrap()
        };
        // In New York, which is four hours behind.
        let organization = Organization { time_zone: crate::value::Zone::NEW_YORK, ..Organization::system() };
        let state = ImportedFeed { etag: Some("\"1\"".into()), ..ImportedFeed::new(None, Timestamp::default()) };
        for (read, conflicts, is_sent) in [
            (Some("2026-06-10T04:00:00Z"), 0, true),
            (Some("2026-06-10T03:59:00Z"), 0, false),
            (None, 0, false),
            (Some("2026-06-10T04:00:00Z"), 1, false),
        ] {
            let feed = Some(feed(read, conflicts));
            let (organization, state) = (organization.clone(), state.clone());
            let taken = Taken { organization, id: CalendarFeedId::from_u128(1), feed, state, revision: 1 };
            assert_eq!(taken.etag(time("2026-06-11T03:59:00Z")).is_some(), is_sent, "{read:?} {conflicts}");
        }
    }

    #[test]
    fn a_feed_is_due_when_its_time_has_come_or_the_clock_was_set_back() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let ago = |minutes: i64| now.plus_millis(-minutes * 60_000);
        let read = |taken_at: i64, poll_at: i64| {
            let state = ImportedFeed::new(None, ago(poll_at));
            due(&ImportedFeed { taken_at: Some(ago(taken_at)), ..state }, now) <= now
        };
        assert!(read(15, 0) && !read(14, -1));
        // The clocks of two servers differ a little.
        assert!(!read(-2, -17));
        // The clock was set back by two hours, and by a year.
        assert!(read(-110, -125) && read(-525_600, -525_615));
        // A feed that was never read, made while the clock was a day ahead.
        assert_eq!(due(&ImportedFeed::new(None, ago(-1440)), now), now);
        assert_eq!(due(&ImportedFeed::new(None, ago(5)), now), ago(5));
    }

    #[test]
    fn a_poll_waits_for_the_reading_in_progress_and_longer_after_each_failure() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let state = |began: i64, poll_at: Timestamp| ImportedFeed {
            taken_at: Some(now.plus_millis(-began)),
            ..ImportedFeed::new(None, poll_at)
        };
        let in_progress = |began| state(began, now.plus_millis(LEASE_MILLIS - began));
        assert!(is_being_read(&in_progress(0), now) && is_being_read(&in_progress(LEASE_MILLIS - 1), now));
        assert!(!is_being_read(&in_progress(LEASE_MILLIS), now), "its server was killed");
        assert!(!is_being_read(&state(0, now.plus_millis(5 * 60_000)), now), "it has ended");
        assert!(!is_being_read(&in_progress(-2 * LEASE_MILLIS), now), "the clock was set back");
        assert_eq!(earliest(&state(500, now), now), now.plus_millis(SHORTEST_PAUSE_MILLIS - 500));
        assert_eq!(earliest(&state(SHORTEST_PAUSE_MILLIS + 1, now), now), now);
        let after = |failures| {
            let failing = ImportedFeed { failures, ..state(0, now) };
            earliest(&failing, now).millis() - now.millis()
        };
        assert_eq!([1, 2, 3, 7, u32::MAX].map(after), [2000, 4000, 8000, 128_000, 128_000]);
        assert_eq!(earliest(&state(-3_600_000, now), now), now, "the clock was set back");
    }

    #[test]
    fn each_failure_in_a_row_doubles_the_interval_up_to_a_day() {
        let minutes = |failures| pause_millis(15, failures) / 60_000;
        assert_eq!([0, 1, 2, 3, 7, 8, u32::MAX].map(minutes), [15, 15, 30, 60, 960, 1440, 1440]);
        assert_eq!(pause_millis(1440, 9), LONGEST_PAUSE_MILLIS);
    }
}
