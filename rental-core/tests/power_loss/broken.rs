//! Stores that break one promise each: the negative controls. What the tests say of the engine is worth something only if
//! they say that these are broken.

use crate::disk::Disk;
use rental_core::{
    resources::{event, specs},
    rows::Row,
    store::{Answer, Batch, Commit, Key, Record, Scanned, Span, Store, Write, redb::Redb},
};

/// The promise that a store breaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Broken {
    /// None.
    Nothing,
    /// A sync is never made.
    Sync,
    /// A batch is acknowledged before it is committed.
    Acknowledgement,
    /// Events and outbox rows are a batch of their own, after the one of their change.
    Events,
    /// What an invoice or credit note changes of a toll or violation is a batch of its own.
    Accounts,
    /// Preconditions are checked before the transaction.
    Checks,
}

/// The engine on a disk, with a broken promise.
pub(crate) struct Engine {
    pub(crate) redb: Redb,
    broken: Broken,
}

impl Engine {
    pub(crate) fn open(disk: &Disk, broken: Broken) -> Result<Self, String> {
        disk.with(|state| state.lies = broken == Broken::Sync);
        let redb = Redb::on_backend(disk.clone()).map_err(|error| error.to_string())?;
        Ok(Self { redb, broken })
    }

    /// Commits what `later` chooses in a batch of its own, after the rest.
    fn split(&self, mut batch: Batch, later: impl Fn(&Write) -> bool) -> Answer<'_, Commit> {
        let (later, first) = batch.writes.into_iter().partition(later);
        batch.writes = first;
        let first = self.redb.commit(batch);
        Box::pin(async move {
            let outcome = first.await?;
            if outcome == Commit::Applied {
                self.redb.commit(Batch { checks: Vec::new(), writes: later }).await?;
            }
            Ok(outcome)
        })
    }
}

/// The resource of the record that is written.
fn resource(write: &Write) -> Option<&'static str> {
    let (Write::Put(key, ..) | Write::Delete(key)) = write;
    match Row::decode(key) {
        Some(Row::Record { resource, .. }) => specs().find(|spec| spec.tag == resource).map(|spec| spec.object),
        _ => None,
    }
}

fn writes(batch: &Batch, which: impl Fn(&str) -> bool) -> bool {
    batch.writes.iter().filter_map(resource).any(which)
}

impl Store for Engine {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.redb.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.redb.scan(span, limit)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        match self.broken {
            Broken::Nothing | Broken::Sync => self.redb.commit(batch),
            Broken::Acknowledgement => {
                // The batch is in the queue of the writer.
                drop(self.redb.commit(batch));
                Box::pin(async { Ok(Commit::Applied) })
            }
            Broken::Events => self.split(batch, is_of_an_event),
            Broken::Accounts if writes(&batch, |object| matches!(object, "invoice" | "credit_note")) => {
                self.split(batch, |write| resource(write).is_some_and(|object| matches!(object, "toll" | "violation")))
            }
            Broken::Accounts => self.redb.commit(batch),
            Broken::Checks => {
                let mut batch = batch;
                let checks = std::mem::take(&mut batch.checks);
                let keys: Vec<Key> = checks.iter().map(|check| check.key().clone()).collect();
                let found = now(self.redb.get(&keys)).expect("a healthy store answers");
                let failed = checks.iter().zip(found).find(|(check, found)| !holds(check, found.as_ref()));
                match failed {
                    Some((check, _)) => {
                        let key = check.key().clone();
                        Box::pin(async { Ok(Commit::Stale(key)) })
                    }
                    None => self.redb.commit(batch),
                }
            }
        }
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.redb.ready()
    }
}

fn holds(check: &rental_core::store::Check, found: Option<&Record>) -> bool {
    use rental_core::store::Check;
    match check {
        Check::At(_, revision) => found.is_some_and(|record| record.revision == *revision),
        Check::Present(_) => found.is_some(),
        Check::Absent(_) => found.is_none(),
    }
}

fn is_of_an_event(write: &Write) -> bool {
    let (Write::Put(key, ..) | Write::Delete(key)) = write;
    match Row::decode(key) {
        Some(Row::Record { resource, .. } | Row::IndexEntry { resource, .. }) => resource == event::SPEC.tag,
        Some(Row::Outbox { .. }) => true,
        _ => false,
    }
}

/// The result of a future that is ready.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the engine reads at once"),
    }
}
