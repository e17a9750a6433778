//! A store for races: another batch is committed between the reads of its user and the next commit.

use rental_core::store::{Answer, Batch, Commit, Key, Record, Scanned, Span, Store};
use std::sync::Mutex;

/// The store, and the batch that comes in between once.
pub(crate) struct Between<'m>(pub(crate) &'m dyn Store, pub(crate) Mutex<Option<Batch>>);

impl Store for Between<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.0.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.0.scan(span, limit)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        let first = self.1.lock().unwrap().take();
        Box::pin(async move {
            if let Some(first) = first {
                assert_eq!(self.0.commit(first).await?, Commit::Applied);
            }
            self.0.commit(batch).await
        })
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.0.ready()
    }
}
