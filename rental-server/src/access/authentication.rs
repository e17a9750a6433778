//! Authentication: from the text of an API key to a principal, with a cache.
//!
//! A cached principal is valid only in the epoch in which it was read. A handler that changes a key or an organization
//! calls [`Authenticator::forget_all`] after the commit and before the response, so a revoked key is refused on the
//! next request. In any case, a cached principal is valid for at most a second. Where other servers can change keys
//! too, a cached principal is revalidated before anything is committed or sent (`revalidation.rs`).

use crate::{
    access::{
        limiter::{Bucket, Limit},
        quotas::{Tenant, Tenants, request_limit},
        uses::{MINUTE, Uses},
    },
    congestion::Account,
    limits::{FairShare, Part},
};
use rental_core::{
    error::{Error, KeyProblem},
    operations::api_keys::{self, Principal},
    resources::{api_key::ApiKey, organization::SYSTEM},
    store::{Revision, Store},
    value::{ApiKeyId, OrganizationId, Timestamp},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Most keys in the cache. One more empties the cache, which costs each key two reads.
const MOST_KEYS: usize = 50_000;
/// How long a cached principal is valid. It limits the effect of a change whose handler did not reach
/// [`Authenticator::forget_all`], because the process was too slow or failed.
const KEPT_MILLIS: i64 = 1000;

/// State of a key between requests. It is kept when the key's record changes.
#[derive(Default)]
pub(crate) struct Usage {
    /// The minute of the last request, since 1970.
    minute: AtomicU64,
    /// The state of its rate limit.
    pub(crate) bucket: Bucket,
}

/// An authenticated key.
pub(crate) struct Pass {
    pub(crate) principal: Principal,
    /// Revisions of the key and of its organization.
    pub(crate) revisions: [Revision; 2],
    pub(crate) usage: Arc<Usage>,
    /// Its organization, and the limit of the organization's requests.
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) request_limit: Option<Limit>,
    /// What the organization takes of the processors.
    pub(crate) held: Arc<Held>,
}

/// What an organization takes. Kept while requests use it.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Its processor time.
    pub(crate) account: Account,
    /// Held by the read of many objects that it has in progress.
    pub(crate) heavy: tokio::sync::Mutex<()>,
}

struct Seen {
    epoch: u64,
    read_at: Timestamp,
    hash: [u8; 32],
    pass: Arc<Pass>,
}

/// Authenticates API keys. Caches the principals, and notes when keys were used.
#[derive(Default)]
pub(crate) struct Authenticator {
    /// Whether other servers can change keys and organizations.
    shared: bool,
    epoch: AtomicU64,
    seen: RwLock<HashMap<[u8; 16], Seen>>,
    usage: Mutex<HashMap<ApiKeyId, Arc<Usage>>>,
    tenants: Arc<Tenants>,
    held: Mutex<HashMap<OrganizationId, Arc<Held>>>,
    /// Keys used since the last flush.
    pub(crate) uses: Uses<ApiKey>,
}

impl Authenticator {
    pub(crate) fn new(shared: bool, tenants: Arc<Tenants>) -> Self {
        Self { shared, tenants, ..Self::default() }
    }

    /// Makes the cache invalid: every key and organization is read again.
    pub(crate) fn forget_all(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// Removes one key from the cache, unless another request has read it again since.
    pub(crate) fn forget(&self, presented: &str, pass: &Arc<Pass>) {
        let Some(hash) = api_keys::key_hash(presented) else { return };
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if seen.get(&hash[..16]).is_some_and(|entry| Arc::ptr_eq(&entry.pass, pass)) {
            seen.remove(&hash[..16]);
        }
    }

    /// The principal of a key, and whether it must be revalidated. [`Principal::authorize`] then decides what the
    /// request may do.
    pub(crate) async fn authenticate(
        &self,
        store: &dyn Store,
        presented: &str,
        now: Timestamp,
        requests: &Arc<FairShare>,
    ) -> Result<(Arc<Pass>, bool), Error> {
        let invalid = Error::Unauthenticated(KeyProblem::Invalid);
        let Some(hash) = api_keys::key_hash(presented) else { return Err(invalid) };
        let epoch = self.epoch.load(Ordering::SeqCst);
        let (pass, revalidate) = match self.cached(&hash, epoch, now) {
            Some(pass) => (pass, self.shared),
            None => {
                let _part = self.admit_stranger(&hash, requests).await?;
                let found = api_keys::look_up(store, &hash).await?.ok_or(invalid)?;
                (self.cache(hash, (epoch, now), found), false)
            }
        };
        self.note_use(&pass, now);
        Ok((pass, revalidate))
    }

    /// Limits how many unknown keys are looked up at the same time in a store that others share, so that a flood of them leaves it to
    /// others. A file answers at once.
    async fn admit_stranger(&self, hash: &[u8; 32], requests: &Arc<FairShare>) -> Result<Option<Part>, Error> {
        let known = || self.seen.read().unwrap_or_else(PoisonError::into_inner).contains_key(&hash[..16]);
        if !self.shared || known() {
            return Ok(None);
        }
        let part = requests.take(SYSTEM.into(), 1).await;
        part.map(Some).ok_or_else(|| Error::Unavailable("too many unknown API keys are being looked up".into()))
    }

    fn cached(&self, hash: &[u8; 32], epoch: u64, now: Timestamp) -> Option<Arc<Pass>> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        let entry = seen.get(&hash[..16])?;
        let fresh = (entry.read_at..entry.read_at.plus_millis(KEPT_MILLIS)).contains(&now);
        (entry.epoch == epoch && fresh && entry.hash == *hash).then(|| Arc::clone(&entry.pass))
    }

    /// `epoch` is that before the read: if something changed during the read, the entry is never valid.
    fn cache(
        &self,
        hash: [u8; 32],
        (epoch, read_at): (u64, Timestamp),
        (principal, revisions): (Principal, [Revision; 2]),
    ) -> Arc<Pass> {
        let mut usages = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        if usages.len() >= MOST_KEYS {
            usages.clear();
        }
        let usage = Arc::clone(usages.entry(principal.key.id).or_default());
        let tenant = self.tenants.of(principal.organization.id);
        let request_limit = request_limit(&principal.organization, &self.tenants.defaults);
        let held = self.held(principal.organization.id);
        let pass = Arc::new(Pass { principal, revisions, usage, tenant, request_limit, held });
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_KEYS {
            seen.clear();
        }
        let mut selector = [0; 16];
        selector.copy_from_slice(&hash[..16]);
        seen.insert(selector, Seen { epoch, read_at, hash, pass: Arc::clone(&pass) });
        pass
    }

    fn held(&self, organization: OrganizationId) -> Arc<Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= MOST_KEYS {
            // Those in use stay counted for all organizations together.
            held.clear();
        }
        Arc::clone(held.entry(organization).or_default())
    }

    fn note_use(&self, pass: &Pass, now: Timestamp) {
        let minute = now.millis() / MINUTE;
        // Read first: an unconditional store would bounce the cache line between cores.
        if pass.usage.minute.load(Ordering::Relaxed) != minute
            && pass.usage.minute.swap(minute, Ordering::Relaxed) != minute
        {
            self.uses.note(pass.principal.key.id, minute);
        }
    }
}
