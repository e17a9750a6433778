//! Opens requests: from the text of a key to a principal, without reading the store for keys that were seen before.
//!
//! A cached principal counts only for the epoch in which it was read. Whoever changes a key or an organization calls
//! [`Gate::forget`] after the commit and before the answer, so a revoked key is refused on the very next request; and
//! whatever happens, no principal is believed for longer than a second. Where other servers may change them too, what was
//! remembered has to be confirmed before anything is committed or answered (`confirm.rs`).

use crate::{access::limiter::Bucket, damaged_rows::DamagedRows};
use rental_core::{
    error::{Error, KeyProblem},
    operations::access::{self, Principal},
    request::page,
    resources::{
        Resource,
        api_key::{self, ApiKey},
        organization::{self, Organization, SYSTEM},
        parse,
    },
    rows::key,
    store::{Batch, Commit, Revision, Store},
    value::Timestamp,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};
use uuid::Uuid;

/// Most keys that are remembered; one more empties the memory, which costs each key two reads.
const MOST_KEYS: usize = 50_000;
const MINUTE: u64 = 60_000;
/// How long a principal is believed without being read again, should the one who changed it be cut off before
/// [`Gate::forget`]: a request that timed out may still commit.
const KEPT_MILLIS: i64 = 1000;

/// What is kept of a key between requests, whatever happens to its record.
#[derive(Default)]
pub(crate) struct Usage {
    /// The minute of the last request, since 1970.
    minute: AtomicU64,
    /// The state of its rate limit.
    pub(crate) bucket: Bucket,
}

/// An accepted key.
pub(crate) struct Pass {
    pub(crate) principal: Principal,
    /// Revisions of the key and of its organization.
    pub(crate) revisions: [Revision; 2],
    pub(crate) usage: Arc<Usage>,
}

struct Seen {
    epoch: u64,
    read_at: Timestamp,
    hash: [u8; 32],
    pass: Arc<Pass>,
}

/// The memory of keys.
#[derive(Default)]
pub(crate) struct Gate {
    /// Whether other servers change keys and organizations too.
    shared: bool,
    epoch: AtomicU64,
    seen: RwLock<HashMap<[u8; 16], Seen>>,
    usage: Mutex<HashMap<Uuid, Arc<Usage>>>,
    /// Keys used since the last flush, with the minute.
    used: Mutex<HashMap<Uuid, u64>>,
}

impl Gate {
    pub(crate) fn new(shared: bool) -> Self {
        Self { shared, ..Self::default() }
    }

    /// From now on every key and organization is read anew.
    pub(crate) fn forget(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// What is remembered of this one key holds no more, unless somebody has read it anew meanwhile.
    pub(crate) fn forget_pass(&self, presented: &str, pass: &Arc<Pass>) {
        let Some(hash) = access::key_hash(presented) else { return };
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if seen.get(&hash[..16]).is_some_and(|entry| Arc::ptr_eq(&entry.pass, pass)) {
            seen.remove(&hash[..16]);
        }
    }

    /// Who presents this key, and whether that has to be confirmed. Whether the request is allowed is
    /// [`Principal::authorize`]'s to say.
    pub(crate) async fn open(
        &self,
        store: &dyn Store,
        presented: &str,
        now: Timestamp,
    ) -> Result<(Arc<Pass>, bool), Error> {
        let invalid = Error::Unauthenticated(KeyProblem::Invalid);
        let Some(hash) = access::key_hash(presented) else { return Err(invalid) };
        let epoch = self.epoch.load(Ordering::SeqCst);
        let (pass, confirm) = match self.remembered(&hash, epoch, now) {
            Some(pass) => (pass, self.shared),
            None => {
                let found = read(store, &hash).await?.ok_or(invalid)?;
                (self.remember(hash, (epoch, now), found), false)
            }
        };
        self.note_use(&pass, now);
        Ok((pass, confirm))
    }

    fn remembered(&self, hash: &[u8; 32], epoch: u64, now: Timestamp) -> Option<Arc<Pass>> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        let entry = seen.get(&hash[..16])?;
        let young = (entry.read_at..entry.read_at.plus_millis(KEPT_MILLIS)).contains(&now);
        (entry.epoch == epoch && young && entry.hash == *hash).then(|| Arc::clone(&entry.pass))
    }

    /// `epoch` is that from before the read: if something changed meanwhile, the entry never counts.
    fn remember(
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
        let pass = Arc::new(Pass { principal, revisions, usage });
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_KEYS {
            seen.clear();
        }
        let mut selector = [0; 16];
        selector.copy_from_slice(&hash[..16]);
        seen.insert(selector, Seen { epoch, read_at, hash, pass: Arc::clone(&pass) });
        pass
    }

    fn note_use(&self, pass: &Pass, now: Timestamp) {
        let minute = now.millis() / MINUTE;
        // Read before written: a line that nobody writes stays in the cache of every core.
        if pass.usage.minute.load(Ordering::Relaxed) != minute
            && pass.usage.minute.swap(minute, Ordering::Relaxed) != minute
        {
            self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(pass.principal.key.id, minute);
        }
    }

    /// Writes the minutes of last use into the keys' records: a few writes a minute, whatever the number of requests.
    pub(crate) async fn flush_use(&self, store: &dyn Store, damaged: &DamagedRows) -> Result<(), Error> {
        let used = std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner));
        for (id, minute) in used {
            damaged.skip(write_use(store, id, minute).await)?;
        }
        Ok(())
    }
}

async fn write_use(store: &dyn Store, id: Uuid, minute: u64) -> Result<(), Error> {
    let keys = [key::record(SYSTEM, &api_key::SPEC, id)];
    // Others change a key's record only now and then; a lost race is won the second time.
    for _ in 0..3 {
        let Some(record) = store.get(&keys).await?.pop().flatten() else { break };
        let mut object: ApiKey = parse(&record.key, &record.value)?;
        let used_at = Some(Timestamp::from_millis(i64::try_from(minute * MINUTE).unwrap_or(i64::MAX)));
        // Another server may have noted a later use.
        if object.last_used_at >= used_at {
            break;
        }
        object.last_used_at = used_at;
        let value = serde_json::to_vec(&object).map_err(|error| Error::Internal(error.to_string()))?;
        let mut batch = Batch::default();
        batch.replace(record.key, record.revision, value.into());
        if store.commit(batch).await? == Commit::Applied {
            break;
        }
    }
    Ok(())
}

async fn read(store: &dyn Store, hash: &[u8; 32]) -> Result<Option<(Principal, [Revision; 2])>, Error> {
    let Some(entry) = store.get(&[key::access(hash)]).await?.pop().flatten() else { return Ok(None) };
    let Some(id) = access::open_entry(&entry.value, hash) else { return Ok(None) };
    let key: Option<(ApiKey, Revision)> = load(store, id).await?;
    let Some((key, seen)) = key else { return Ok(None) };
    let organization: Option<(Organization, Revision)> = load(store, key.organization_id).await?;
    let Some((organization, of_organization)) = organization else { return Ok(None) };
    Ok(Some((Principal { key, organization: Arc::new(organization) }, [seen, of_organization])))
}

/// One of the operator's objects.
async fn load<T: Resource>(store: &dyn Store, id: Uuid) -> Result<Option<(T, Revision)>, Error> {
    let record = store.get(&[key::record(SYSTEM, T::SPEC, id)]).await?.pop().flatten();
    record.map(|record| Ok((parse(&record.key, &record.value)?, record.revision))).transpose()
}

/// The organization that an operator's request names.
pub(crate) async fn organization(store: &dyn Store, id: &str) -> Result<Organization, Error> {
    let missing = Error::NotFound { object: organization::SPEC.object };
    let Some(id) = page::id(id) else { return Err(missing) };
    load(store, id).await?.map(|(organization, _)| organization).ok_or(missing)
}
