//! Reads that look at many objects: an organization has one of them at a time, and they let other requests run between the reads of the
//! store. An embedded engine answers at once, so without this a page of a review would keep a thread for tens of milliseconds.

use rental_core::store::{Answer, Batch, Commit, Key, Record, Scanned, Span, Store};
use tokio::task::yield_now;

/// A store whose reads begin after the other tasks that are ready.
pub(super) struct Yielding<'a>(pub(super) &'a dyn Store);

impl Store for Yielding<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        Box::pin(async move {
            yield_now().await;
            self.0.get(keys).await
        })
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        Box::pin(async move {
            yield_now().await;
            self.0.scan(span, limit).await
        })
    }

    fn scan_each<'a>(&'a self, scans: &'a [(Span, usize)]) -> Answer<'a, Vec<Vec<Scanned>>> {
        Box::pin(async move {
            yield_now().await;
            self.0.scan_each(scans).await
        })
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        self.0.commit(batch)
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.0.ready()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rental_core::store::memory::Memory;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[tokio::test]
    async fn another_task_runs_between_two_reads() {
        let (memory, others) = (Memory::default(), AtomicUsize::new(0));
        let store = Yielding(&memory);
        let heavy = async {
            for read in 0..100 {
                store.get(&[]).await.expect("memory answers");
                assert!(others.load(Relaxed) >= read, "another task waits");
            }
        };
        let other = async {
            for _ in 0..100 {
                others.fetch_add(1, Relaxed);
                yield_now().await;
            }
        };
        tokio::join!(heavy, other);
    }
}
