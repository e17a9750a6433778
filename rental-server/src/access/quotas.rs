//! The quotas of organizations: how many objects and bytes each has and may have, and the limit of its requests.
//!
//! The numbers are approximate. `usage/` sets them about once a second from what the store has counted, so an organization can
//! exceed a quota by what it writes in about a second. No batch checks a counter.

use super::limiter::{Bucket, Limit};
use crate::http::problem::QuotaExceeded;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use rental_core::{
    resources::{organization::Organization, share_of},
    rows::usage::Amount,
    store::{Answer, Batch, Commit, Key, Prior, Record, Scanned, Span, Store, StoreError, Write},
    value::OrganizationId,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicI64, Ordering},
    },
};

/// The limits of an organization that has none of its own; `None` for no limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Defaults {
    pub(crate) objects: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) requests: Option<u32>,
}

/// The limits that apply to an organization; `None` for no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) objects: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) requests: Option<u32>,
}

impl Limits {
    /// Those of the organization, and the defaults for those that it does not have.
    pub(crate) fn of(organization: &Organization, defaults: &Defaults) -> Self {
        Self {
            objects: organization.max_objects.map_or(defaults.objects, |most| u64::try_from(most).ok()),
            bytes: organization.max_bytes.map_or(defaults.bytes, |most| u64::try_from(most).ok()),
            requests: organization.max_requests_per_second.or(defaults.requests),
        }
    }
}

/// What this server knows of an organization that its API keys share.
#[derive(Debug, Default)]
pub(crate) struct Tenant {
    /// The state of the limit of its requests at this server.
    pub(crate) bucket: Bucket,
    /// The same of its calendar URLs, which need no key.
    pub(crate) calendars: Bucket,
    objects: AtomicI64,
    bytes: AtomicI64,
}

impl Tenant {
    /// How many objects and bytes the organization has, about a second ago.
    pub(crate) fn used(&self) -> (u64, u64) {
        let read = |number: &AtomicI64| u64::try_from(number.load(Ordering::Relaxed)).unwrap_or(0);
        (read(&self.objects), read(&self.bytes))
    }

    pub(crate) fn set_used(&self, amount: Amount) {
        self.objects.store(amount.objects, Ordering::Relaxed);
        self.bytes.store(amount.bytes, Ordering::Relaxed);
    }
}

/// All organizations that were used or asked about, and the default limits.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    pub(crate) defaults: Defaults,
    all: RwLock<HashMap<OrganizationId, Arc<Tenant>>>,
    refusals: Family<Labels, Counter>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Labels {
    quota: &'static str,
}

impl Tenants {
    pub(crate) fn new(defaults: Defaults) -> Self {
        Self { defaults, ..Self::default() }
    }

    pub(crate) fn of(&self, organization: OrganizationId) -> Arc<Tenant> {
        if let Some(tenant) = self.all.read().unwrap_or_else(PoisonError::into_inner).get(&organization) {
            return Arc::clone(tenant);
        }
        Arc::clone(self.all.write().unwrap_or_else(PoisonError::into_inner).entry(organization).or_default())
    }

    /// Removes an organization that is not there any more.
    pub(crate) fn remove(&self, organization: OrganizationId) {
        self.all.write().unwrap_or_else(PoisonError::into_inner).remove(&organization);
    }

    /// Counts a request that was refused.
    pub(crate) fn refused(&self, quota: &'static str) {
        self.refusals.get_or_create(&Labels { quota }).inc();
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        // A counter that appears with its first refusal has no rate.
        for quota in ["objects", "bytes", "requests"] {
            drop(self.refusals.get_or_create(&Labels { quota }));
        }
        registry.register(
            "organization_quota_refusals",
            "Requests refused because their organization has used up a quota",
            self.refusals.clone(),
        );
    }
}

/// The limit of requests that applies to an organization.
pub(crate) fn request_limit(organization: &Organization, defaults: &Defaults) -> Option<Limit> {
    Limits::of(organization, defaults).requests.map(Limit::new)
}

/// A store that refuses batches that would let an organization grow above its quota. Stored responses are still replayed,
/// because a replay commits nothing.
pub(crate) struct WithinQuota<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) used: (u64, u64),
    pub(crate) limits: Limits,
    /// The quota because of which a batch was refused.
    pub(crate) exceeded: OnceLock<QuotaExceeded>,
}

impl WithinQuota<'_> {
    /// The quota that the batch would exceed. A batch that adds no row is never refused. One that adds no object is refused
    /// only when the bytes are a tenth above the quota, so that rentals can still be completed.
    fn exceeds(&self, batch: &Batch) -> Option<QuotaExceeded> {
        let (objects, bytes) = self.used;
        let all_objects = self.limits.objects.filter(|most| objects >= *most);
        let all_bytes = self.limits.bytes.filter(|most| bytes >= *most);
        if all_objects.is_none() && all_bytes.is_none() {
            return None;
        }
        let added = batch.writes.iter().filter_map(|write| match write {
            Write::Put(key, _, _, Prior::New) => share_of(key.as_bytes()),
            _ => None,
        });
        let (mut adds_rows, mut adds_objects) = (false, false);
        for share in added {
            adds_rows = true;
            adds_objects |= share.is_object;
        }
        if let Some(most) = all_objects
            && adds_objects
        {
            return Some(QuotaExceeded { quota: "objects", used: objects, most });
        }
        let most = all_bytes?;
        let beyond = adds_objects || (adds_rows && bytes >= most.saturating_add(most / 10));
        beyond.then_some(QuotaExceeded { quota: "bytes", used: bytes, most })
    }
}

impl Store for WithinQuota<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.store.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.store.scan(span, limit)
    }

    fn scan_each<'a>(&'a self, scans: &'a [(Span, usize)]) -> Answer<'a, Vec<Vec<Scanned>>> {
        self.store.scan_each(scans)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        match self.exceeds(&batch) {
            Some(exceeded) => {
                let _ = self.exceeded.set(exceeded);
                // No client sees this error: it becomes the one of the quota.
                Box::pin(std::future::ready(Err(StoreError::NoRoom)))
            }
            None => self.store.commit(batch),
        }
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.store.ready()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use rental_core::{
        resources::{event, vehicle},
        rows::key,
        schema::ResourceSpec,
        store::memory::Memory,
    };
    use uuid::Uuid;

    fn row(spec: &'static ResourceSpec, prior: Prior) -> Write {
        let key = key::record(OrganizationId::from_u128(7), spec, Uuid::from_u128(8));
        Write::Put(key, 1, Bytes::new(), prior)
    }

    #[track_caller]
    fn check((objects, bytes): (u64, u64), writes: &[Write], expected: Option<&str>) {
        let store = Memory::default();
        let limits = Limits { objects: Some(10), bytes: Some(1000), requests: None };
        let within = WithinQuota { store: &store, used: (objects, bytes), limits, exceeded: OnceLock::new() };
        let batch = Batch { checks: Vec::new(), writes: writes.to_vec() };
        assert_eq!(within.exceeds(&batch).map(|exceeded| exceeded.quota), expected);
    }

    #[test]
    fn what_grows_is_refused_and_what_does_not_is_not() {
        let create = [row(&vehicle::SPEC, Prior::New), row(&event::SPEC, Prior::New)];
        let change = [row(&vehicle::SPEC, Prior::Any), row(&event::SPEC, Prior::New)];
        let silent = [row(&vehicle::SPEC, Prior::Any)];
        check((9, 999), &create, None);
        check((10, 0), &create, Some("objects"));
        check((10, 0), &change, None);
        check((0, 1000), &create, Some("bytes"));
        check((0, 1099), &change, None);
        check((0, 1100), &change, Some("bytes"));
        check((99, 9999), &silent, None);
    }
}
