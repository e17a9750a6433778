//! A store that shows uncommitted rows over those of another store.

use crate::store::{Answer, Batch, Commit, DamagedRow, Key, Order, Record, Scanned, Span, Store, StoreError, key_of};
use std::{collections::BTreeMap, sync::Arc};

/// Reads two stores as one. If both have a row, the result is that of `above`. `above` cannot remove a row of `below`.
pub(super) struct Overlay {
    pub(super) below: Arc<dyn Store>,
    pub(super) above: Arc<dyn Store>,
}

impl Overlay {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut found = self.above.get(keys).await?;
        let below = self.below.get(keys).await?;
        found.iter_mut().zip(below).for_each(|(above, below)| *above = above.take().or(below));
        Ok(found)
    }

    async fn walk(&self, span: &Span, limit: usize) -> Result<Vec<Scanned>, StoreError> {
        let plain = Span { follow: None, ..span.clone() };
        let mut rows: BTreeMap<Key, Scanned> = BTreeMap::new();
        for store in [&self.below, &self.above] {
            rows.extend(store.scan(&plain, limit).await?.into_iter().map(|row| (key_of(&row).clone(), row)));
        }
        let rows: Vec<Scanned> = match span.order {
            Order::Ascending => rows.into_values().take(limit).collect(),
            Order::Descending => rows.into_values().rev().take(limit).collect(),
        };
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

    fn commit(&self, _: Batch) -> Answer<'_, Commit> {
        Box::pin(std::future::ready(Err(StoreError::Unavailable("an overlay cannot be written".into()))))
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.below.ready()
    }
}
