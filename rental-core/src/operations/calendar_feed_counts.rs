//! How many calendar feeds work, for those who run the server.

use crate::{
    error::Error,
    resources::{
        Resource,
        calendar_feed::CalendarFeed,
        organization::{Organization, Plan, SYSTEM},
        parse,
    },
    rows::{Row, calendar_feed::ImportedFeed, key},
    store::{DamagedRow, Key, Pages, Record, Store, get_each},
    value::{OrganizationId, Timestamp},
};
use std::collections::HashMap;

/// Rows that are read at a time.
const PAGE: usize = 500;

/// How the calendar feeds of all organizations are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FeedCounts {
    /// Feeds whose last reading succeeded.
    pub working: u64,
    /// Feeds whose last reading failed.
    pub failing: u64,
    /// Feeds that were not read yet.
    pub pending: u64,
    /// Feeds that are not read, because their organization is not on the Pro plan.
    pub paused: u64,
    /// Time since the last success of the feed where that is the longest ago; 0 if no feed that is read had one.
    pub oldest_success_millis: u64,
}

/// Counts the feeds. Calls `damaged` for each damaged row, which is not counted.
///
/// # Errors
/// The store is not available.
pub async fn count(
    store: &dyn Store,
    now: Timestamp,
    damaged: &mut (dyn FnMut(&DamagedRow) + Send),
) -> Result<FeedCounts, Error> {
    let (mut counts, mut plans) = (FeedCounts::default(), HashMap::new());
    let mut pages = Pages::of(store, key::calendar_feeds(), PAGE);
    while let Some(page) = pages.next().await? {
        let mut failing = Vec::new();
        for row in page {
            let row = match row {
                Ok(row) => row,
                Err(row) => {
                    damaged(&row);
                    continue;
                }
            };
            let Some(Row::CalendarFeed { organization, feed }) = Row::decode(&row.key) else { continue };
            // The reader of feeds notes a row that cannot be parsed.
            let Ok(state) = ImportedFeed::read(&row) else { continue };
            match state {
                ImportedFeed { removed: true, .. } => {}
                _ if !is_on_pro(store, organization, &mut plans).await? => counts.paused += 1,
                ImportedFeed { failures: 1.., .. } => {
                    counts.failing += 1;
                    failing.push(CalendarFeed::key(organization, feed));
                }
                ImportedFeed { taken_at: None, .. } => counts.pending += 1,
                // It has no failure since, so this reading, or the one before if it is in progress, was a success.
                ImportedFeed { taken_at: Some(at), .. } => {
                    counts.working += 1;
                    note(&mut counts, at, now);
                }
            }
        }
        for record in records(store, &failing, damaged).await? {
            let feed = parse::<CalendarFeed>(&record.key, &record.value).ok();
            if let Some(at) = feed.and_then(|feed| feed.last_success_at) {
                note(&mut counts, at, now);
            }
        }
    }
    Ok(counts)
}

fn note(counts: &mut FeedCounts, success: Timestamp, now: Timestamp) {
    let age = now.millis().saturating_sub(success.millis());
    counts.oldest_success_millis = counts.oldest_success_millis.max(age);
}

/// The records that can be read.
async fn records(
    store: &dyn Store,
    keys: &[Key],
    damaged: &mut (dyn FnMut(&DamagedRow) + Send),
) -> Result<Vec<Record>, Error> {
    let found = get_each(store, keys).await?;
    Ok(found.into_iter().filter_map(|record| record.inspect_err(|row| damaged(row)).ok().flatten()).collect())
}

/// Whether an organization is on the Pro plan. One that is damaged or was deleted is not.
async fn is_on_pro(
    store: &dyn Store,
    id: OrganizationId,
    known: &mut HashMap<OrganizationId, bool>,
) -> Result<bool, Error> {
    if let Some(known) = known.get(&id) {
        return Ok(*known);
    }
    let found = records(store, &[Organization::key(SYSTEM, id)], &mut |_| {}).await?.pop();
    let organization = found.and_then(|record| parse::<Organization>(&record.key, &record.value).ok());
    let is_pro = organization.is_some_and(|organization| organization.plan == Plan::Pro);
    known.insert(id, is_pro);
    Ok(is_pro)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        resources::{calendar_feed::SPEC, to_json},
        store::{Batch, Prior, memory::Memory},
        value::CalendarFeedId,
    };
    use serde_json::json;
    use std::{
        future::Future,
        task::{Context, Poll, Waker},
    };

    const NOW: i64 = 1_800_000_000_000;

    fn now<T>(future: impl Future<Output = T>) -> T {
        match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("the memory store never waits"),
        }
    }

    /// Adds a feed with its row, which was read so many milliseconds ago, and whose last success is so long ago.
    fn add(batch: &mut Batch, organization: OrganizationId, n: u128, state: &ImportedFeed, success: Option<i64>) {
        let id = CalendarFeedId::from_u128(n);
        let success = success.map(|ago| Timestamp::from_millis(NOW - ago).to_string());
        let (text, made) = (id.to_string(), "2026-05-05T09:30:00.000Z");
        let record = json!({
            "id": text, "object": SPEC.object, "vehicle_id": text, "url": "https://c.example/...", "interval_minutes": 15,
            "status": "failing", "last_success_at": success, "last_error": null, "next_read_at": null, "events": 0,
            "conflicts": 0, "created_at": made, "updated_at": made,
        });
        batch.put(CalendarFeed::key(organization, id), record.to_string().into(), Prior::Any);
        batch.put(key::calendar_feed(organization, id), to_json(state).expect("JSON"), Prior::Any);
    }

    #[test]
    fn feeds_are_counted_by_their_last_reading_and_the_oldest_success_is_found() {
        let (store, mut batch) = (Memory::default(), Batch::default());
        let (pro, free) = (OrganizationId::from_u128(7), OrganizationId::from_u128(8));
        for (id, plan) in [(pro, Plan::Pro), (free, Plan::Free)] {
            let organization = Organization { id, plan, ..Organization::system() };
            batch.put(Organization::key(SYSTEM, id), to_json(&organization).expect("JSON"), Prior::Any);
        }
        let read = |ago: i64, failures: u32| ImportedFeed {
            taken_at: Some(Timestamp::from_millis(NOW - ago)),
            failures,
            ..ImportedFeed::new(None, Timestamp::from_millis(NOW))
        };
        add(&mut batch, pro, 1, &read(1000, 0), None);
        add(&mut batch, pro, 2, &read(2000, 0), None);
        add(&mut batch, pro, 3, &read(10, 4), Some(90_000));
        add(&mut batch, pro, 4, &read(10, 1), None);
        add(&mut batch, pro, 5, &ImportedFeed::new(None, Timestamp::from_millis(NOW)), None);
        add(&mut batch, pro, 6, &ImportedFeed { removed: true, ..read(900_000, 0) }, None);
        add(&mut batch, free, 7, &read(800_000, 0), None);
        now(store.commit(batch)).expect("it is in memory");
        let counted = now(count(&store, Timestamp::from_millis(NOW), &mut |_| panic!("nothing is damaged")));
        let expected = FeedCounts { working: 2, failing: 2, pending: 1, paused: 1, oldest_success_millis: 90_000 };
        assert_eq!(counted, Ok(expected));
    }
}
