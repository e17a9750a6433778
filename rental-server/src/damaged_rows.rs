//! Damaged rows that background work and requests find: each is logged once and counted once. Background work skips them.

use prometheus_client::metrics::counter::Counter;
use rental_core::{
    error::Error,
    resources::row_words::damage_in_words,
    store::{DamagedRow, Key, Record, Scanned, StoreError},
};
use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

/// Most rows that are remembered. Further damaged rows are skipped without being logged or counted.
const MOST_REMEMBERED: usize = 10_000;
/// Most rows that are logged one by one. Above it, one log line for each multiple says how many there are.
const MOST_LOGGED: usize = 100;

/// The damaged rows that were found since the process started.
#[derive(Debug, Default)]
pub(crate) struct DamagedRows {
    seen: Mutex<HashSet<Key>>,
    pub(crate) counter: Counter,
}

impl DamagedRows {
    /// Logs and counts a row, unless that was done before.
    pub(crate) fn note(&self, row: &DamagedRow) {
        if self.count(row) {
            let row = damage_in_words(row);
            tracing::error!(row, "a row of the store is damaged; it is skipped, everything else goes on");
        }
    }

    /// Counts a row, unless that was done before. Returns whether it is to be logged.
    pub(crate) fn count(&self, row: &DamagedRow) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_REMEMBERED || !seen.insert(row.key.clone()) {
            return false;
        }
        let rows = seen.len();
        drop(seen);
        self.counter.inc();
        if rows.is_multiple_of(MOST_LOGGED) {
            tracing::error!(rows, "many rows of the store are damaged; `rental-cli store check` lists them");
        }
        rows <= MOST_LOGGED
    }

    /// The rows of a scan; none when damaged pages are all that it found.
    ///
    /// # Errors
    /// Every other error.
    pub(crate) fn rows(&self, scanned: Result<Vec<Scanned>, StoreError>) -> Result<Vec<Scanned>, StoreError> {
        match scanned {
            Err(StoreError::Damaged(row)) => {
                self.note(&row);
                Ok(Vec::new())
            }
            scanned => scanned,
        }
    }

    /// The row, if it is not damaged.
    pub(crate) fn sound<T>(&self, row: Result<T, Box<DamagedRow>>) -> Option<T> {
        row.inspect_err(|row| self.note(row)).ok()
    }

    /// The rows of a scan that are not damaged.
    pub(crate) fn all_sound(&self, rows: Vec<Scanned>) -> Vec<Record> {
        rows.into_iter().filter_map(|row| self.sound(row)).collect()
    }

    /// The result of reading a row; `None` if the row is damaged.
    ///
    /// # Errors
    /// Every other error.
    pub(crate) fn skip<T>(&self, made: Result<T, Error>) -> Result<Option<T>, Error> {
        match made {
            Ok(made) => Ok(Some(made)),
            Err(Error::Damaged(row)) => {
                self.note(&row);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_damaged_row_is_counted_once_and_memory_is_bounded() {
        let rows = DamagedRows::default();
        let row = |n: usize| DamagedRow::new(Key::from_bytes(&n.to_be_bytes()), "it is damaged");
        for n in (0..50).chain(0..50) {
            rows.note(&row(n));
        }
        assert_eq!(rows.counter.get(), 50);
        (0..MOST_REMEMBERED + 500).for_each(|n| rows.note(&row(n)));
        assert_eq!(rows.counter.get(), MOST_REMEMBERED as u64);
        assert_eq!(rows.seen.lock().unwrap().len(), MOST_REMEMBERED);
    }

    #[test]
    fn of_a_scan_every_sound_row_stays_also_those_behind_a_damaged_one() {
        let record = |key: &[u8]| Record { key: Key::from_bytes(key), value: "v".into(), revision: 1 };
        let damaged = || Err(DamagedRow::new(Key::from_bytes(b"b"), "it is damaged"));
        let rows = DamagedRows::default();
        let kept = rows.all_sound(vec![Ok(record(b"a")), damaged(), Ok(record(b"c")), damaged(), Ok(record(b"d"))]);
        assert_eq!(kept, [record(b"a"), record(b"c"), record(b"d")]);
        assert_eq!(rows.counter.get(), 1);
    }

    /// Their checksums are right: another program wrote them, or a fault of ours.
    #[test]
    fn rows_that_do_not_parse_are_skipped_and_counted_wherever_rows_are_read_in_a_loop() {
        use rental_core::{
            attachments::again,
            operations::calendar_feeds,
            resources::{Resource, parse, webhook_endpoint::WebhookEndpoint},
            rows::{key, outbox, recheck::Marked},
            store::memory::Memory,
            tasks,
            value::{Id, OrganizationId},
        };
        let (rows, now) = (DamagedRows::default(), crate::edge::now());
        let organization = OrganizationId::from_u128(7);
        let unparsable = |key: Key| Record { key, value: "{\"".into(), revision: 1 };
        let endpoint = unparsable(WebhookEndpoint::key(organization, Id::from_u128(1)));
        assert_eq!(
            rows.skip(parse::<WebhookEndpoint>(&endpoint.key, &endpoint.value)).map(|made| made.is_none()),
            Ok(true)
        );
        let feed = unparsable(key::calendar_feed(organization, Id::from_u128(2)));
        assert_eq!(rows.skip(calendar_feeds::due_at(&feed, now)), Ok(None));
        let event = unparsable(key::outbox(organization, Id::from_u128(3)));
        assert_eq!(rows.skip(outbox::read(&event)).map(|made| made.is_none()), Ok(true));
        let (mark, store) =
            (unparsable(key::recheck(organization, Marked::vehicle(Id::from_u128(4)))), Memory::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let step = runtime.block_on(again::step(&store, &crate::edge::Clock, &mark, &mut Vec::new()));
        assert_eq!(rows.skip(step).map(|made| made.is_none()), Ok(true));
        let task = unparsable(key::task(Id::from_u128(5)));
        assert!(matches!(rows.skip(tasks::Task::read(&task)), Ok(None)));
        assert_eq!(rows.counter.get(), 5, "each of them");
    }

    #[test]
    fn only_damage_is_skipped() {
        let rows = DamagedRows::default();
        let damaged = Error::Damaged(DamagedRow::new(Key::from_bytes(b"k"), "it is damaged"));
        assert_eq!(rows.skip::<()>(Err(damaged)), Ok(None));
        assert_eq!(rows.skip(Ok(7)), Ok(Some(7)));
        assert!(rows.skip::<()>(Err(Error::Unavailable("later".into()))).is_err());
        assert_eq!(rows.counter.get(), 1);
    }
}
