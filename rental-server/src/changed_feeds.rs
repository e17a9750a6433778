//! The calendar feeds that requests of this server made or changed.

use rental_core::value::{CalendarFeedId, OrganizationId};
use std::{
    mem::take,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::timeout};

/// A calendar feed of an organization.
pub(crate) type Feed = (OrganizationId, CalendarFeedId);

/// Most feeds that are remembered. When there are more, the reader reads all rows.
const MOST: usize = 1000;

/// What the reader of calendar feeds has not seen yet.
#[derive(Default)]
pub(crate) struct ChangedFeeds {
    /// At most one more than [`MOST`].
    feeds: Mutex<Vec<Feed>>,
    signal: Notify,
}

impl ChangedFeeds {
    /// Tells that a feed was made, polled or deleted.
    pub(crate) fn note(&self, feed: Feed) {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if feeds.len() <= MOST {
            feeds.push(feed);
        }
        drop(feeds);
        self.signal.notify_one();
    }

    /// Waits for the next feeds, `patience` at most: a signal can be lost with the future that took it. `None` if there were too
    /// many to remember.
    pub(crate) async fn next(&self, patience: Duration) -> Option<Vec<Feed>> {
        let _ = timeout(patience, self.signal.notified()).await;
        let feeds = take(&mut *self.feeds.lock().unwrap_or_else(PoisonError::into_inner));
        (feeds.len() <= MOST).then_some(feeds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOREVER: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_change_whose_signal_was_lost_is_seen() {
        let changed = ChangedFeeds::default();
        let feed = (OrganizationId::from_u128(7), CalendarFeedId::from_u128(1));
        changed.note(feed);
        changed.signal.notified().await;
        assert_eq!(changed.next(Duration::from_millis(1)).await, Some(vec![feed]));
    }

    #[tokio::test]
    async fn each_change_is_seen_and_too_many_mean_all_rows() {
        let changed = ChangedFeeds::default();
        let feed = |number| (OrganizationId::from_u128(7), CalendarFeedId::from_u128(number));
        [1, 2].into_iter().for_each(|number| changed.note(feed(number)));
        assert_eq!(changed.next(FOREVER).await, Some(vec![feed(1), feed(2)]));
        (0..5000).for_each(|number| changed.note(feed(number)));
        assert!(changed.feeds.lock().unwrap().len() <= MOST + 1);
        assert_eq!(changed.next(FOREVER).await, None);
        changed.note(feed(3));
        assert_eq!(changed.next(FOREVER).await, Some(vec![feed(3)]));
    }
}
