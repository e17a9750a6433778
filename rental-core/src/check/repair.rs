//! Finds and removes the rows of a store that cannot be read, and those that only lead to a row that is gone.
//!
//! What follows from the rows that are left is derived again by the walk of upgrades
//! ([`Upgrade::again`](crate::upgrade::Upgrade::again)), which begins before the first row is removed: an interrupted repair is
//! ended by the next server or by another repair. No object is made up. Objects that name one that is gone stay what they are.

use super::{
    audit::remedy_of,
    decode::decode,
    needs::{Need, Without, needs},
    report::{Remedy, Report},
};
use crate::{
    erasing::Erasure,
    resources::{api_key, customer, row_words::in_words, spec_of_tag, to_json},
    rows::{Marker, Row, key, recheck::Recheck},
    store::{
        Batch, Check, Commit, Key, Pages, Prior, Record, Revision, Scanned, Span, Store, StoreError, Write, get_each,
        marks,
    },
    tasks::{Task, Work},
    value::{CustomerId, OrganizationId, Timestamp},
};
use bytes::Bytes;
use std::collections::{BTreeMap, HashSet};
use uuid::Uuid;

/// Rows in one scan.
const PAGE: usize = 500;
/// Most changes of one repair, which are in memory.
const MOST_CHANGES: usize = 100_000;
/// Most changes in one batch.
const BATCH_ROWS: usize = 500;

/// What a repair changes before the derived rows are written again.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The changes by key.
    pub changes: BTreeMap<Key, Change>,
    /// What names an object that is gone, and what stays although it cannot be read.
    pub left: Report,
    /// Whether there are more changes than one repair has, so that another one must follow.
    pub more: bool,
}

/// The change of one row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// The revision that the row has; `None` for a row whose bytes are damaged, and where no row is.
    pub revision: Option<Revision>,
    /// The revision and the value that it gets; `None` removes it.
    pub put: Option<(Revision, Bytes)>,
    /// The problem, as a sentence.
    pub why: String,
}

/// A name for the kind of a row, for counts: the resource of a record, or what the row is.
#[must_use]
pub fn kind(key: &Key) -> &'static str {
    match Row::decode(key) {
        None => "row of no known kind",
        Some(Row::Record { resource, .. }) => {
            spec_of_tag(resource).map_or("record of no known resource", |spec| spec.object)
        }
        Some(Row::Marker(Marker::Loading)) => "mark of a copy",
        Some(Row::Marker(Marker::MasterKey)) => "fingerprint of the master key",
        Some(Row::Marker(Marker::Upgrade)) => "mark of an upgrade",
        Some(Row::Access { .. }) => "way from a key or token to its record",
        Some(Row::Calendar { .. }) => "calendar of a vehicle",
        Some(Row::Due { .. }) => "due row of a delivery",
        Some(Row::Erased { .. }) => "mark of an erased object",
        Some(Row::Hold { .. }) => "hold of a vehicle",
        Some(Row::IndexEntry { .. }) => "index entry",
        Some(Row::Bell { .. }) => "bell of a server",
        Some(Row::Recheck { .. }) => "mark of tolls and violations to derive again",
        Some(Row::Heartbeat { .. }) => "heartbeat of a server",
        Some(Row::IdempotencyRecord { .. }) => "idempotency record",
        Some(Row::Counter { .. }) => "counter",
        Some(Row::Outbox { .. }) => "outbox row",
        Some(Row::VehicleFeed { .. }) => "calendar feed of a vehicle",
        Some(Row::CalendarFeed { .. }) => "address of a calendar feed",
        Some(Row::Logo { .. }) => "logo of an organization",
        Some(Row::Subscribed { .. }) => "mark of webhook endpoints",
        Some(Row::Secrets { .. }) => "secrets of a webhook endpoint",
        Some(Row::Task { .. }) => "task",
        Some(Row::Usage { .. }) => "usage of an organization",
        Some(Row::Identity { .. }) => "identity claim",
        Some(Row::Owner { .. }) => "owner of a webhook endpoint",
        Some(Row::IdempotencyExpiry { .. }) => "expiry of an idempotency record",
    }
}

/// Reads all rows of a store that no server uses, and changes nothing. `progress` is called with the number of rows so far.
///
/// # Errors
/// The store is not available, or pages of its file are damaged.
pub async fn find(store: &dyn Store, now: Timestamp, progress: &mut dyn FnMut(u64)) -> Result<Found, StoreError> {
    let leaving = leaving(store).await?;
    let mut finder = Finder { now, leaving, found: Found::default(), reached: HashSet::new(), named: HashSet::new() };
    let (mut pages, mut rows) = (Pages::of(store, Span::everything(), PAGE), 0);
    while let Some(page) = pages.next().await? {
        rows += page.len() as u64;
        progress(rows);
        let mut needing = Vec::new();
        for row in page {
            finder.read(row, &mut needing)?;
        }
        finder.without_needs(store, needing).await?;
        if finder.found.changes.len() >= MOST_CHANGES {
            finder.found.more = true;
            break;
        }
    }
    Ok(finder.found)
}

/// The organizations that a task deletes: it removes their rows.
async fn leaving(store: &dyn Store) -> Result<HashSet<OrganizationId>, StoreError> {
    let (mut found, mut pages) = (HashSet::new(), Pages::of(store, key::tasks(), PAGE));
    while let Some(page) = pages.next().await? {
        for row in page.iter().flatten() {
            if let Ok(Task { work: Work::OrganizationDeletion(state), .. }) = Task::read(row) {
                found.insert(state.organization_id);
            }
        }
    }
    Ok(found)
}

struct Finder {
    now: Timestamp,
    leaving: HashSet<OrganizationId>,
    found: Found,
    /// API keys to which a row leads. These rows come before the records.
    reached: HashSet<Uuid>,
    /// What is gone and objects name, such as a toll that an invoice bills. The claims of identities come after all objects.
    named: HashSet<Key>,
}

impl Finder {
    /// Reads one row, and adds what it needs.
    fn read(&mut self, row: Scanned, needing: &mut Vec<(Record, Need)>) -> Result<(), StoreError> {
        let record = match row {
            Ok(record) => record,
            Err(row) if row.pages => return Err(StoreError::DamagedStore(row.reason.clone())),
            Err(row) => {
                self.unreadable(row.key, None, row.reason, needing);
                return Ok(());
            }
        };
        let kind = match decode(&record) {
            Ok(kind) => kind,
            Err(why) => {
                self.unreadable(record.key, Some(record.revision), why, needing);
                return Ok(());
            }
        };
        let owner = kind.organization().or_else(|| match kind {
            Row::Due { .. } => OrganizationId::from_slice(&record.value),
            _ => None,
        });
        if owner.is_some_and(|owner| self.leaving.contains(&owner)) {
            return Ok(());
        }
        match kind {
            Row::Access { .. } => {
                self.reached.extend(record.value.get(32..48).and_then(|id| Uuid::from_slice(id).ok()))
            }
            Row::Record { resource, id, .. } if resource == api_key::SPEC.tag && !self.reached.contains(&id) => {
                let why = "no row leads to it, so no request can use it".into();
                self.change(record.key, Some(record.revision), None, why);
                return Ok(());
            }
            _ => {}
        }
        let needed = needs(&kind, &record, Some(self.now));
        needing.extend(needed.into_iter().map(|need| (record.clone(), need)));
        Ok(())
    }

    /// Plans the removal of a row that cannot be read. The record of an organization stays: without it nobody could use anything of the
    /// organization.
    fn unreadable(&mut self, key: Key, revision: Option<Revision>, why: String, needing: &mut Vec<(Record, Need)>) {
        match Row::decode(&key) {
            _ if remedy_of(&key) == Remedy::Backup => self.found.left.add(in_words(&key), why, Remedy::Backup),
            // Deriving too much again is harmless.
            Some(Row::Recheck { organization, marked }) => {
                let mark = Record { key, revision: self.now.millis().max(1), value: Recheck::of_all().value() };
                let kind = Row::Recheck { organization, marked };
                needing.extend(needs(&kind, &mark, None).into_iter().map(|need| (mark.clone(), need)));
                self.change(mark.key, revision, Some((mark.revision, mark.value)), why);
            }
            // Without the mark, a restored backup would bring the person back. A server erases again what is left.
            Some(Row::Erased { organization, resource, id }) if spec_of_tag(resource).is_some() => {
                let erasure = Erasure::new(organization, CustomerId::from_uuid(id), self.now);
                let is_customer = resource == customer::SPEC.tag;
                let value = is_customer.then(|| to_json(&erasure).ok()).flatten().unwrap_or_default();
                self.change(key, revision, Some((revision.map_or(1, |revision| revision + 1), value)), why);
            }
            // A row that another one needs is written again already.
            _ if self.found.changes.contains_key(&key) => {}
            _ => self.change(key, revision, None, why),
        }
    }

    fn change(&mut self, key: Key, revision: Option<Revision>, put: Option<(Revision, Bytes)>, why: String) {
        self.found.changes.insert(key, Change { revision, put, why });
    }

    /// Decides about the rows of a page that lack what they need.
    async fn without_needs(&mut self, store: &dyn Store, needing: Vec<(Record, Need)>) -> Result<(), StoreError> {
        let mut keys: Vec<Key> = needing.iter().flat_map(|(_, need)| need.any_of.clone()).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut there = HashSet::new();
        for (key, found) in keys.iter().zip(get_each(store, &keys).await?) {
            if found.is_ok_and(|row| row.is_some_and(|row| decode(&row).is_ok())) {
                there.insert(key);
            }
        }
        for (record, need) in needing {
            // One that was read before on this page can be removed by now.
            let removed = |key: &Key| self.found.changes.get(key).is_some_and(|change| change.put.is_none());
            if need.any_of.iter().any(|key| there.contains(key) && !removed(key)) {
                continue;
            }
            let why = need.missing();
            match need.without {
                Without::Tell(_) => {
                    self.found.left.add(in_words(&record.key), why, Remedy::Gone);
                    self.named.extend(need.any_of);
                }
                // An import must not record again what an invoice bills.
                Without::Remove if is_claim(&record.key) && need.any_of.iter().any(|key| self.named.contains(key)) => {}
                Without::Remove => {
                    let revision =
                        self.found.changes.get(&record.key).map_or(Some(record.revision), |one| one.revision);
                    self.change(record.key, revision, None, why);
                }
                Without::Write(row) => {
                    let revision = (row.key == record.key).then_some(record.revision);
                    self.change(row.key, revision, Some((row.revision, row.value)), why);
                }
            }
        }
        Ok(())
    }
}

fn is_claim(key: &Key) -> bool {
    matches!(Row::decode(key), Some(Row::Identity { .. }))
}

/// Writes the changes in batches, after [`Upgrade::again`](crate::upgrade::Upgrade::again) has begun. Each checks that no other
/// program goes on with that walk, and that its rows are still those that were found, except damaged ones, of which the store cannot
/// check anything. [`Commit::Stale`] names a row that another program has changed; the batches before it are written.
///
/// # Errors
/// The store is not available. Find the changes again to continue.
pub async fn apply(store: &dyn Store, found: &Found) -> Result<Commit, StoreError> {
    let changes: Vec<(&Key, &Change)> = found.changes.iter().collect();
    for part in changes.chunks(BATCH_ROWS) {
        let mut batch = Batch { checks: vec![Check::At(marks::upgrade(), marks::UPGRADE_BEGUN)], ..Batch::default() };
        for (key, change) in part {
            let key = || (*key).clone();
            batch.checks.extend(change.revision.map(|revision| Check::At(key(), revision)));
            match &change.put {
                Some((revision, value)) => {
                    batch.writes.push(Write::Put(key(), *revision, value.clone(), Prior::Any));
                }
                None => batch.delete(key()),
            }
        }
        let commit = store.commit(batch).await?;
        if commit != Commit::Applied {
            return Ok(commit);
        }
    }
    Ok(Commit::Applied)
}
