//! A store with another one above it: what was prepared and is not committed yet can be read as if it were.

use crate::store::{Answer, Batch, Commit, Key, Order, Record, Span, Store, StoreError};
use std::{collections::BTreeMap, sync::Arc};

/// Reads both, and where both have a row, the upper one. Rows are only ever added above, never removed.
pub(super) struct Layered {
    pub(super) below: Arc<dyn Store>,
    pub(super) above: Arc<dyn Store>,
}

impl Layered {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut found = self.above.get(keys).await?;
        let below = self.below.get(keys).await?;
        found.iter_mut().zip(below).for_each(|(above, below)| *above = above.take().or(below));
        Ok(found)
    }

    async fn walk(&self, span: &Span, limit: usize) -> Result<Vec<Record>, StoreError> {
        let plain = Span { follow: false, ..span.clone() };
        let mut rows: BTreeMap<Key, Record> = BTreeMap::new();
        for store in [&self.below, &self.above] {
            rows.extend(store.scan(&plain, limit).await?.into_iter().map(|row| (row.key.clone(), row)));
        }
        let rows: Vec<Record> = match span.order {
            Order::Ascending => rows.into_values().take(limit).collect(),
            Order::Descending => rows.into_values().rev().take(limit).collect(),
        };
        if !span.follow {
            return Ok(rows);
        }
        let targets: Vec<Key> = rows.iter().filter_map(|row| Key::target(row.key.as_bytes())).collect();
        Ok(self.read(&targets).await?.into_iter().flatten().collect())
    }
}

impl Store for Layered {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        Box::pin(self.read(keys))
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Record>> {
        Box::pin(self.walk(span, limit))
    }

    fn commit(&self, _: Batch) -> Answer<'_, Commit> {
        Box::pin(std::future::ready(Err(StoreError::Unavailable("layers are only read".into()))))
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.below.ready()
    }
}
