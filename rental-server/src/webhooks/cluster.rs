//! Several servers on one store: this one's beat, which endpoints it sends for, and the bells that others ring for it.
//! What to do about an endpoint is decided by `rental_core::webhooks::cluster`.

use crate::webhooks::Hooks;
use rental_core::{
    error::Error,
    resources::{organization::SYSTEM, webhook_endpoint},
    rows::key,
    store::{self, Batch, Check, Commit, Prior, Record, Revision, Span, Write, key_of},
    webhooks::cluster::{BEAT_MILLIS, Duty, TRUSTED_MILLIS, Watch, duty},
};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Notify;
use uuid::Uuid;

/// How often a server looks for bells.
const BELLS: Duration = Duration::from_millis(100);
/// Most bells that are answered at a time.
const MOST_BELLS: usize = 200;
/// Rows read in one go.
const PAGE: usize = 500;

/// This server among those that share the store.
pub(super) struct Cluster {
    me: Uuid,
    started: Instant,
    /// Rung when it is worth looking around at once.
    pub(super) look: Notify,
    /// Until when this server may send, in milliseconds since its start: it can write its beat.
    trusted_until: AtomicU64,
    /// The endpoints that it sends for.
    own: Mutex<HashSet<Uuid>>,
    /// Who sends for which endpoint, as of the last look.
    owners: Mutex<HashMap<Uuid, Uuid>>,
}

impl Cluster {
    pub(super) fn new(me: Uuid) -> Self {
        let (own, owners) = (Mutex::default(), Mutex::default());
        Self { me, started: Instant::now(), look: Notify::new(), trusted_until: AtomicU64::new(0), own, owners }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether this server may begin an attempt for an endpoint.
    pub(super) fn may_send(&self, endpoint: Uuid) -> bool {
        self.owns(endpoint) && self.now() < self.trusted_until.load(Ordering::Acquire)
    }

    pub(super) fn owns(&self, endpoint: Uuid) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).contains(&endpoint)
    }

    /// The other server that sends for an endpoint, if another one does.
    pub(super) fn elsewhere(&self, endpoint: Uuid) -> Option<Uuid> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(&endpoint).copied().filter(|owner| *owner != self.me)
    }

    fn take(&self, endpoint: Uuid) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).insert(endpoint)
    }

    fn drop(&self, endpoint: Uuid) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).remove(&endpoint)
    }
}

/// Beats and looks around until the server stops; then lets go of everything, so that others need not wait.
pub(super) async fn run(hooks: Arc<Hooks>) {
    let Some(cluster) = &hooks.cluster else { return };
    let mut round = Round::default();
    while !hooks.is_stopping() {
        if let Err(error) = round.turn(&hooks, cluster).await {
            tracing::warn!(?error, "cannot look after the endpoints that servers share; trying again");
        }
        // Not at once when it is rung all the time.
        let _ = tokio::time::timeout(Duration::from_millis(BEAT_MILLIS), cluster.look.notified()).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    if let Err(error) = leave(&hooks, cluster).await {
        tracing::warn!(?error, "cannot hand over webhook endpoints; others take them over in a while");
    }
}

/// Answers the bells that other servers ring.
pub(super) async fn answer_bells(hooks: Arc<Hooks>) {
    let Some(cluster) = &hooks.cluster else { return };
    while !hooks.is_stopping() {
        match bells(&hooks, cluster).await {
            Ok(rung) if rung == MOST_BELLS => {}
            Ok(_) => tokio::time::sleep(BELLS).await,
            Err(error) => {
                tracing::debug!(?error, "cannot look for bells");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn bells(hooks: &Hooks, cluster: &Cluster) -> Result<usize, Error> {
    let rows = hooks.store().scan(&key::bells(cluster.me), MOST_BELLS).await?;
    if rows.is_empty() {
        return Ok(0);
    }
    // Away before the lanes look: a bell that is rung after this is seen at the next turn.
    let mut batch = Batch::default();
    rows.iter().for_each(|row| batch.delete(key_of(row).clone()));
    hooks.store().commit(batch).await?;
    rows.iter().filter_map(|row| key_of(row).id()).for_each(|endpoint| hooks.wake(endpoint));
    Ok(rows.len())
}

/// What one turn needs to know of the turns before it.
#[derive(Default)]
struct Round {
    watch: Watch,
    beat: Revision,
    /// The revision of each endpoint: another server may have changed it.
    endpoints: HashMap<Uuid, Revision>,
}

impl Round {
    async fn turn(&mut self, hooks: &Arc<Hooks>, cluster: &Cluster) -> Result<(), Error> {
        self.beat(hooks, cluster).await?;
        let beats = all(hooks, key::beats()).await?;
        let beats: Vec<(Uuid, Revision)> = beats.iter().filter_map(|row| Some((row.key.id()?, row.revision))).collect();
        let (mut alive, dead) = self.watch.look(&beats, cluster.now());
        alive.insert(cluster.me);
        bury(hooks, &beats, &dead).await?;
        let rows = all(hooks, key::owners()).await?;
        let owner = |row: &Record| Some((row.key.id()?, (Uuid::from_slice(&row.value).ok()?, row.revision)));
        let owners: HashMap<Uuid, (Uuid, Revision)> = rows.iter().filter_map(owner).collect();
        *cluster.owners.lock().unwrap_or_else(PoisonError::into_inner) =
            owners.iter().map(|(endpoint, (owner, _))| (*endpoint, *owner)).collect();
        let records = all(hooks, Span::newest_first(&key::records(SYSTEM, &webhook_endpoint::SPEC))).await?;
        let now: HashMap<Uuid, Revision> =
            records.iter().filter_map(|record| Some((record.key.id()?, record.revision))).collect();
        for (endpoint, revision) in &now {
            let owned = owners.get(endpoint).copied();
            match duty(cluster.me, *endpoint, owned.map(|owned| owned.0), &alive) {
                Duty::Keep => start(hooks, cluster, *endpoint),
                Duty::Claim => claim(hooks, cluster, *endpoint, owned.map(|owned| owned.1)).await?,
                Duty::Release => release(hooks, cluster, *endpoint, owned).await?,
                Duty::Leave => drop_lane(hooks, cluster, *endpoint),
            }
            if self.endpoints.get(endpoint).is_some_and(|known| known != revision) && cluster.owns(*endpoint) {
                hooks.endpoint_changed(*endpoint);
            }
        }
        for gone in self.endpoints.keys().filter(|endpoint| !now.contains_key(endpoint)) {
            drop_lane(hooks, cluster, *gone);
            forget(hooks, cluster, *gone, owners.get(gone).copied()).await?;
        }
        self.endpoints = now;
        Ok(())
    }

    /// Writes this server's beat; from then on it is trusted for a while.
    async fn beat(&mut self, hooks: &Hooks, cluster: &Cluster) -> Result<(), Error> {
        let (place, began) = (key::beat(cluster.me), cluster.now());
        let mut batch = Batch::default();
        batch.checks.push(if self.beat == 0 {
            Check::Absent(place.clone())
        } else {
            Check::At(place.clone(), self.beat)
        });
        batch.writes.push(Write::Put(place.clone(), self.beat + 1, bytes::Bytes::new(), Prior::Any));
        if hooks.store().commit(batch).await? == Commit::Applied {
            self.beat += 1;
            // From before the write: others count from when they see it, which is later.
            cluster.trusted_until.store(began + TRUSTED_MILLIS, Ordering::Release);
            return Ok(());
        }
        // Others took this server for dead and removed its beat; or a commit was applied whose answer was lost.
        self.beat = hooks.store().get(&[place]).await?.pop().flatten().map_or(0, |record| record.revision);
        Ok(())
    }
}

/// All sound rows of a span.
async fn all(hooks: &Hooks, mut span: Span) -> Result<Vec<Record>, Error> {
    let mut rows: Vec<Record> = Vec::new();
    loop {
        let page = hooks.store().scan(&span, PAGE).await?;
        let last = page.last().map(|row| key_of(row).clone()).filter(|_| page.len() == PAGE);
        rows.extend(hooks.damaged.all_sound(page));
        match (last, span.order) {
            (None, _) => return Ok(rows),
            (Some(last), store::Order::Ascending) => span.from = store::after(&last),
            (Some(last), store::Order::Descending) => span.to = last,
        }
    }
}

/// Removes the beats of the dead: one that was only slow writes its own anew.
async fn bury(hooks: &Hooks, beats: &[(Uuid, Revision)], dead: &std::collections::BTreeSet<Uuid>) -> Result<(), Error> {
    for (server, beat) in beats.iter().filter(|(server, _)| dead.contains(server)) {
        let mut batch = Batch::default();
        batch.checks.push(Check::At(key::beat(*server), *beat));
        batch.delete(key::beat(*server));
        for bell in hooks.store().scan(&key::bells(*server), PAGE).await? {
            batch.delete(key_of(&bell).clone());
        }
        if hooks.store().commit(batch).await? == Commit::Applied {
            tracing::warn!(%server, "a server gave no sign of life any more; others send for its webhook endpoints");
        }
    }
    Ok(())
}

/// Looks for the lane each time: one that was about to end when its endpoint came back does not hear of it.
fn start(hooks: &Arc<Hooks>, cluster: &Cluster, endpoint: Uuid) {
    if cluster.take(endpoint) || !hooks.has_lane(endpoint) {
        hooks.endpoint_changed(endpoint);
    }
}

async fn claim(hooks: &Arc<Hooks>, cluster: &Cluster, endpoint: Uuid, seen: Option<Revision>) -> Result<(), Error> {
    let (place, value) = (key::owner(endpoint), bytes::Bytes::copy_from_slice(cluster.me.as_bytes()));
    let mut batch = Batch::default();
    match seen {
        Some(revision) => batch.replace(place, revision, value),
        None => batch.insert(place, value),
    }
    if hooks.store().commit(batch).await? == Commit::Applied {
        start(hooks, cluster, endpoint);
    }
    Ok(())
}

/// Lets go once nothing is in flight any more.
async fn release(
    hooks: &Hooks,
    cluster: &Cluster,
    endpoint: Uuid,
    owned: Option<(Uuid, Revision)>,
) -> Result<(), Error> {
    drop_lane(hooks, cluster, endpoint);
    if hooks.has_lane(endpoint) {
        return Ok(());
    }
    forget(hooks, cluster, endpoint, owned).await
}

fn drop_lane(hooks: &Hooks, cluster: &Cluster, endpoint: Uuid) {
    if cluster.drop(endpoint) {
        hooks.wake(endpoint);
    }
}

/// Removes the row that says who sends for an endpoint, if it is this server.
async fn forget(
    hooks: &Hooks,
    cluster: &Cluster,
    endpoint: Uuid,
    owned: Option<(Uuid, Revision)>,
) -> Result<(), Error> {
    if let Some((_, revision)) = owned.filter(|(owner, _)| *owner == cluster.me) {
        let mut batch = Batch::default();
        batch.checks.push(Check::At(key::owner(endpoint), revision));
        batch.delete(key::owner(endpoint));
        hooks.store().commit(batch).await?;
    }
    Ok(())
}

/// Removes every trace of this server: its endpoints are free for others at once. What is in flight ends before, so that
/// nobody sends it again.
async fn leave(hooks: &Hooks, cluster: &Cluster) -> Result<(), Error> {
    hooks.until_idle().await;
    for row in all(hooks, key::owners()).await? {
        let owner = Uuid::from_slice(&row.value).ok();
        let owned = owner.map(|owner| (owner, row.revision));
        if let Some(endpoint) = row.key.id() {
            forget(hooks, cluster, endpoint, owned).await?;
        }
    }
    let mut batch = Batch::default();
    batch.delete(key::beat(cluster.me));
    all(hooks, key::bells(cluster.me)).await?.into_iter().for_each(|bell| batch.delete(bell.key));
    hooks.store().commit(batch).await?;
    Ok(())
}
