//! When each calendar feed is due, in memory.

use crate::changed_feeds::Feed;
use rental_core::value::{CalendarFeedId, OrganizationId, Timestamp};
use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

/// When each feed that is not being read is due.
#[derive(Default)]
pub(super) struct Schedule {
    at: HashMap<Feed, Timestamp>,
    ordered: BTreeSet<(Timestamp, Feed)>,
}

impl Schedule {
    /// A feed is due at this time, and no longer at another one.
    pub(super) fn set(&mut self, feed: Feed, at: Timestamp) {
        self.remove(feed);
        self.at.insert(feed, at);
        self.ordered.insert((at, feed));
    }

    /// A feed is being read, or was removed.
    pub(super) fn remove(&mut self, feed: Feed) {
        if let Some(at) = self.at.remove(&feed) {
            self.ordered.remove(&(at, feed));
        }
    }

    /// The feeds that are due at `now`, the longest due first.
    pub(super) fn due(&self, now: Timestamp) -> impl Iterator<Item = Feed> {
        self.ordered.iter().take_while(move |(at, _)| *at <= now).map(|(_, feed)| *feed)
    }

    /// How long after `now` the next feed becomes due.
    pub(super) fn next_after(&self, now: Timestamp) -> Option<Duration> {
        // No feed has more than the last id.
        let last = (OrganizationId::from_u128(u128::MAX), CalendarFeedId::from_u128(u128::MAX));
        let (at, _) = self.ordered.range((now, last)..).next()?;
        Some(Duration::from_millis(at.millis().saturating_sub(now.millis())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(number: u128) -> Feed {
        (OrganizationId::from_u128(number % 7), CalendarFeedId::from_u128(number))
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + millis)
    }

    #[test]
    fn the_longest_due_feed_comes_first_and_those_that_are_not_due_are_not_looked_at() {
        let mut schedule = Schedule::default();
        (0..100_000).for_each(|number| schedule.set(feed(number), at(60_000 + i64::try_from(number).unwrap())));
        for (number, due) in [(5, -1), (6, -900), (7, 0), (8, 1), (6, -300)] {
            schedule.set(feed(number), at(due));
        }
        assert_eq!(schedule.due(at(0)).collect::<Vec<_>>(), [6, 5, 7].map(feed));
        assert_eq!(schedule.next_after(at(0)), Some(Duration::from_millis(1)));
        [5, 6, 7, 8].into_iter().for_each(|number| schedule.remove(feed(number)));
        assert_eq!(schedule.due(at(1000)).next(), None);
        assert_eq!(schedule.next_after(at(0)), Some(Duration::from_secs(60)));
        assert_eq!((schedule.at.len(), schedule.ordered.len()), (99_996, 99_996));
    }
}
