//! A store that shows uncommitted rows over those of another store.

use crate::store::{
    Answer, Batch, Commit, DamagedRow, Key, Order, Prior, Record, Scanned, Span, Store, StoreError, Write, key_of,
};
use bytes::Bytes;
use std::{collections::BTreeMap, sync::Arc};

/// Reads two stores as one. If both have a row, the result is that of `above`. A dry run commits to it: `above` gets all
/// writes, and `below` none.
pub struct Overlay {
    pub(super) below: Arc<dyn Store>,
    pub(super) above: Arc<dyn Store>,
}

/// The value in `above` of a row that was removed. No row has it: values are JSON, ids or nothing.
const REMOVED: &[u8] = b"\0removed";

impl Overlay {
    /// Shows the rows of `above`, which is empty at first, over those of `below`.
    #[must_use]
    pub fn new(below: Arc<dyn Store>, above: Arc<dyn Store>) -> Self {
        Self { below, above }
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut found = self.above.get(keys).await?;
        let below = self.below.get(keys).await?;
        found.iter_mut().zip(below).for_each(|(above, below)| *above = above.take().or(below));
        Ok(found.into_iter().map(|row| row.filter(|row| row.value != REMOVED)).collect())
    }

    /// The next rows of a span in the order of their keys. More follow if the result is no empty rest.
    async fn page(&self, rest: &Span, limit: usize) -> Result<(Vec<Scanned>, Option<Span>), StoreError> {
        let mut rows: BTreeMap<Key, Scanned> = BTreeMap::new();
        // The key up to which the page of a store that has more rows knows them.
        let mut ends: Vec<Key> = Vec::new();
        for store in [&self.below, &self.above] {
            let found = store.scan(rest, limit).await?;
            ends.extend(found.last().filter(|_| found.len() >= limit).map(|row| key_of(row).clone()));
            rows.extend(found.into_iter().map(|row| (key_of(&row).clone(), row)));
        }
        let end = match rest.order {
            Order::Ascending => ends.into_iter().min(),
            Order::Descending => ends.into_iter().max(),
        };
        let next = end.clone().map(|end| match rest.order {
            Order::Ascending => Span { from: end.next(), ..rest.clone() },
            Order::Descending => Span { to: end, ..rest.clone() },
        });
        let is_known = |key: &Key| match (&end, rest.order) {
            (None, _) => true,
            (Some(end), Order::Ascending) => key <= end,
            (Some(end), Order::Descending) => key >= end,
        };
        let is_there = |row: &Scanned| !matches!(row, Ok(record) if record.value == REMOVED);
        let known = rows.into_iter().filter(|(key, row)| is_known(key) && is_there(row)).map(|(_, row)| row);
        let mut known: Vec<Scanned> = known.collect();
        if rest.order == Order::Descending {
            known.reverse();
        }
        Ok((known, next))
    }

    async fn walk(&self, span: &Span, limit: usize) -> Result<Vec<Scanned>, StoreError> {
        let (mut rows, mut rest) = (Vec::new(), Some(Span { follow: None, ..span.clone() }));
        while let Some(span) = rest.take().filter(|span| rows.len() < limit && !span.is_empty()) {
            let (page, next) = self.page(&span, limit).await?;
            rows.extend(page);
            rest = next;
        }
        rows.truncate(limit);
        let Some(follow) = &span.follow else { return Ok(rows) };
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            found.push(match follow.target(key_of(&row).as_bytes()) {
                None => Err(DamagedRow::points_nowhere(key_of(&row).clone())),
                Some(target) => match self.read(&[target]).await {
                    Ok(mut record) => record.pop().flatten().ok_or_else(|| DamagedRow::dangling(key_of(&row).clone())),
                    Err(StoreError::Damaged(row)) => Err(row),
                    Err(error) => return Err(error),
                },
            });
        }
        Ok(found)
    }
}

impl Store for Overlay {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        Box::pin(self.read(keys))
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        Box::pin(self.walk(span, limit))
    }

    /// Writes to `above`. The checks are left out: they are about rows that the batch has read from this overlay.
    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        let write = |write: Write| match write {
            Write::Delete(key) => Write::Put(key, 1, Bytes::from_static(REMOVED), Prior::Any),
            put @ Write::Put(..) => put,
        };
        self.above.commit(Batch { checks: Vec::new(), writes: batch.writes.into_iter().map(write).collect() })
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.below.ready()
    }
}
