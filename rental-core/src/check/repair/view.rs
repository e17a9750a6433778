//! The rows of a store as they would be after the planned changes.

use super::{
    change::{Action, Change, Found},
    waiter::Waiter,
};
use crate::{
    check::expected::{expected_keys, references},
    operations::idempotency::IdempotencyRecord,
    resources::{
        Resource, delivery::Delivery, organization::SYSTEM, parse, spec_of_tag, webhook_endpoint::WebhookEndpoint,
    },
    rows::{Row, key},
    store::{DamagedRow, Key, Pages, Record, Revision, Scanned, Span, Store, StoreError, get_each, key_of},
    value::OrganizationId,
};
use bytes::Bytes;
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    ops::Bound,
};

/// Rows in one scan.
const PAGE: usize = 500;

/// A row that was read, or its damage.
type Read = Result<Option<Record>, Box<DamagedRow>>;

/// A store with planned changes.
pub(super) struct View<'s, W> {
    store: &'s dyn Store,
    waiter: &'s W,
    changes: RefCell<BTreeMap<Key, Change>>,
    /// Rows of the store that the present page mentions.
    mentioned: RefCell<HashMap<Key, Read>>,
    /// Whether a change was added since the last call of [`View::take_progress`].
    progress: Cell<bool>,
    /// The first error that is not a damaged row. The audit takes such a row for missing, so no result counts after it.
    failed: RefCell<Option<StoreError>>,
}

impl<'s, W: Waiter> View<'s, W> {
    pub(super) fn new(store: &'s dyn Store, waiter: &'s W) -> Self {
        let (changes, mentioned) = (RefCell::default(), RefCell::default());
        Self { store, waiter, changes, mentioned, progress: Cell::new(false), failed: RefCell::default() }
    }

    /// Reads a row as it would be after the planned changes.
    pub(super) fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        if let Some(change) = self.changes.borrow().get(key) {
            return Ok(change.record(key));
        }
        Ok(self.stored(key)??)
    }

    fn stored(&self, key: &Key) -> Result<Read, StoreError> {
        if let Some(read) = self.mentioned.borrow().get(key) {
            return Ok(read.clone());
        }
        match self.waiter.wait(self.store.get(std::slice::from_ref(key))) {
            Ok(mut found) => Ok(Ok(found.pop().flatten())),
            Err(StoreError::Damaged(row)) => Ok(Err(row)),
            Err(error) => {
                self.failed.borrow_mut().get_or_insert_with(|| error.clone());
                Err(error)
            }
        }
    }

    /// The sound object at a key; `None` if it is missing or damaged, or does not parse.
    pub(super) fn object<T: Resource>(&self, key: &Key) -> Option<T> {
        let record = self.get(key).ok().flatten()?;
        parse(key, &record.value).ok()
    }

    /// Whether a row that is not damaged is at this key.
    pub(super) fn has(&self, key: &Key) -> bool {
        matches!(self.get(key), Ok(Some(_)))
    }

    /// The first key of the store in a span, also that of a damaged row.
    pub(super) fn first_key(&self, span: &Span) -> Option<Key> {
        match self.waiter.wait(self.store.scan(span, 1)) {
            Ok(found) => found.first().map(|row| key_of(row).clone()),
            Err(error) => {
                self.failed.borrow_mut().get_or_insert(error);
                None
            }
        }
    }

    /// The keys of the store that begin with this prefix, also those of damaged rows.
    pub(super) fn keys_under(&self, prefix: Key) -> Vec<Key> {
        let (mut keys, mut pages) = (Vec::new(), Pages::of(self.store, Span::under(prefix), PAGE));
        loop {
            match self.waiter.wait(Box::pin(pages.next())) {
                Ok(None) => return keys,
                Ok(Some(page)) => keys.extend(page.iter().map(|row| key_of(row).clone())),
                Err(error) => {
                    self.failed.borrow_mut().get_or_insert(error);
                    return keys;
                }
            }
        }
    }

    /// Whether a row of the store, sound or damaged, remains in this span after the planned changes.
    pub(super) fn has_any(&self, span: Span) -> bool {
        let mut pages = Pages::of(self.store, span, PAGE);
        let removed =
            |row: &Scanned| self.changes.borrow().get(key_of(row)).is_some_and(|one| one.action == Action::Remove);
        loop {
            match self.waiter.wait(Box::pin(pages.next())) {
                Ok(None) => return false,
                Ok(Some(page)) if page.iter().all(removed) => {}
                Ok(Some(_)) => return true,
                Err(error) => {
                    self.failed.borrow_mut().get_or_insert(error);
                    return true;
                }
            }
        }
    }

    /// Plans the removal of a row.
    pub(super) fn remove(&self, key: &Key, why: &str) {
        self.change(key, Action::Remove, why);
    }

    /// Plans a row.
    pub(super) fn put(&self, key: &Key, revision: Revision, value: Bytes, why: &str) {
        self.change(key, Action::Put(revision, value), why);
    }

    fn change(&self, key: &Key, action: Action, why: &str) {
        let mut changes = self.changes.borrow_mut();
        if let Some(change) = changes.get_mut(key) {
            self.progress.set(self.progress.get() || change.action != action);
            change.action = action;
            return;
        }
        let Ok(stored) = self.stored(key) else { return };
        let found = match stored {
            Ok(None) => Found::Nothing,
            Ok(Some(record)) => Found::Row(record.revision),
            Err(_) => Found::Damaged,
        };
        self.progress.set(true);
        changes.insert(key.clone(), Change { action, found, why: why.to_owned() });
    }

    /// Whether a change was planned since the last call.
    pub(super) fn take_progress(&self) -> bool {
        self.progress.take()
    }

    /// The failure of a read since the last walk.
    pub(super) fn failure(&self) -> Result<(), StoreError> {
        self.failed.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// The number of planned changes.
    pub(super) fn planned(&self) -> usize {
        self.changes.borrow().len()
    }

    pub(super) fn into_changes(self) -> BTreeMap<Key, Change> {
        self.changes.into_inner()
    }

    /// Calls `each` for all rows of the store as they would be after the changes, by ascending key, until it returns false.
    pub(super) fn walk(&self, each: &mut dyn FnMut(Scanned) -> bool) -> Result<(), StoreError> {
        let mut pages = Pages::of(self.store, Span::everything(), PAGE);
        let mut last: Option<Key> = None;
        while let Some(page) = self.waiter.wait(Box::pin(pages.next()))? {
            self.read_mentioned(&page)?;
            for row in page {
                let key = key_of(&row).clone();
                let planned = self.changes.borrow().get(&key).map(|change| change.record(&key));
                let row = match planned {
                    None => Some(row),
                    Some(record) => record.map(Ok),
                };
                let goes_on = self.new_rows(last.as_ref(), Some(&key), each)? && row.is_none_or(&mut *each);
                if let Some(error) = self.failed.borrow_mut().take() {
                    return Err(error);
                }
                if !goes_on {
                    return Ok(());
                }
                last = Some(key);
            }
        }
        self.new_rows(last.as_ref(), None, each).map(drop)
    }

    /// Calls `each` for the planned rows between two keys of the store that follow each other.
    fn new_rows(
        &self,
        after: Option<&Key>,
        before: Option<&Key>,
        each: &mut dyn FnMut(Scanned) -> bool,
    ) -> Result<bool, StoreError> {
        let bounds =
            (after.map_or(Bound::Unbounded, Bound::Excluded), before.map_or(Bound::Unbounded, Bound::Excluded));
        let new: Vec<Record> =
            self.changes.borrow().range::<Key, _>(bounds).filter_map(|(key, change)| change.record(key)).collect();
        for record in new {
            let goes_on = each(Ok(record));
            if let Some(error) = self.failed.borrow_mut().take() {
                return Err(error);
            }
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the rows that the audit of a page needs, in one call: a database answers each call over the network.
    fn read_mentioned(&self, page: &[Scanned]) -> Result<(), StoreError> {
        let mut keys: Vec<Key> = page.iter().flatten().flat_map(mentioned).collect();
        keys.sort_unstable();
        keys.dedup();
        let read = self.waiter.wait(Box::pin(get_each(self.store, &keys)))?;
        *self.mentioned.borrow_mut() = keys.into_iter().zip(read).collect();
        Ok(())
    }
}

/// Keys of most of the rows that the audit reads for this row.
fn mentioned(record: &Record) -> Vec<Key> {
    let of_record = |organization, resource, id| Some(key::record(organization, spec_of_tag(resource)?, id));
    match Row::decode(&record.key) {
        Some(Row::Record { organization, resource, id }) => {
            let expected = spec_of_tag(resource).map(|spec| expected_keys(organization, spec, id, &record.value));
            let named = spec_of_tag(resource).map(|spec| references(spec, &record.value)).unwrap_or_default();
            let named = named.into_iter().map(|(_, target, id)| key::record(organization, target, id));
            expected.and_then(Result::ok).unwrap_or_default().into_iter().chain(named).collect()
        }
        Some(Row::IndexEntry { organization, resource, id, .. }) => {
            of_record(organization, resource, id).into_iter().collect()
        }
        Some(Row::Hold { organization, holder, .. }) => vec![key::holder(organization, holder)],
        Some(Row::IdempotencyRecord { organization, name }) => {
            let stored: Option<IdempotencyRecord> = crate::value::read_json(&record.value).ok();
            let expiry = stored.map(|stored| key::idempotency_expiry(stored.expires_at().millis(), organization, name));
            expiry.into_iter().collect()
        }
        Some(Row::IdempotencyExpiry { organization, name, .. }) => vec![key::idempotency_record(organization, name)],
        Some(Row::Due { endpoint, delivery, .. }) => {
            let organization = OrganizationId::from_slice(&record.value);
            let delivery = organization.map(|one| Delivery::key(one, delivery));
            let endpoint = WebhookEndpoint::key(SYSTEM, endpoint);
            delivery.into_iter().chain([endpoint]).collect()
        }
        _ => Vec::new(),
    }
}
