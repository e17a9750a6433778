//! Webhooks in motion: a relay turns the outbox into deliveries, a lane for each endpoint sends them.
//!
//! Everything that must survive lies in the store before it is acted on; memory holds at most a window for each lane.
//! Commits wake the relay, the relay wakes lanes, and a lane sleeps until its next delivery is due. Each of them also
//! looks by itself after a few seconds, so a lost signal delays a delivery and never loses it. Servers that share a store
//! divide the endpoints, and look for each other's news (`cluster`).
//! What follows an attempt is decided by `rental_core::webhooks::attempt`, without any of this.

mod attempt;
pub(crate) mod backlog;
mod cluster;
mod lane;
pub(crate) mod metrics;
pub(crate) mod relay;
pub(crate) mod retention;
pub(crate) mod send;

use crate::{damaged_rows::DamagedRows, edge::Clock, engine::Engine};
use metrics::HookMetrics;
use rental_core::{
    error::Error,
    operations::Edge,
    resources::webhook_endpoint,
    rows::key,
    store::{Batch, Prior, Span, Store, key_of},
    webhooks::{attempt::Schedule, secret::MasterKey},
};
use send::Sender;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, Semaphore},
    task::JoinHandle,
};
use uuid::Uuid;

/// The longest that the relay or a lane of a server on its own sleeps without looking by itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same where servers share a store: what another server has written is found by looking.
const PATIENCE_WITH_OTHERS: Duration = Duration::from_secs(1);
/// Most attempts in flight at once, over all endpoints.
const MOST_IN_FLIGHT: usize = 512;

/// What the flags say about webhooks.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) allow_private: bool,
    pub(crate) schedule: Schedule,
    /// Time for one attempt, the answer's body included (spec, Retries 1).
    pub(crate) timeout: Duration,
    /// Prefix of the headers and of the user agent.
    pub(crate) brand: String,
}

/// Everything that relay and lanes share.
pub(crate) struct Hooks {
    store: Arc<Engine>,
    pub(crate) settings: Settings,
    pub(crate) master_key: MasterKey,
    pub(crate) sender: Sender,
    in_flight: Arc<Semaphore>,
    /// Rung when events may lie in the outbox.
    outbox: Notify,
    lanes: Mutex<HashMap<Uuid, Arc<Bell>>>,
    stopping: AtomicBool,
    counted: backlog::Counted,
    /// When others share the store.
    cluster: Option<cluster::Cluster>,
    pub(crate) metrics: HookMetrics,
    /// Damaged rows that were skipped, here and in the chores.
    pub(crate) damaged: DamagedRows,
}

/// How a lane is told that something is new.
#[derive(Default)]
struct Bell {
    ring: Notify,
    /// The endpoint itself changed, not only what is due.
    changed: AtomicBool,
}

impl Hooks {
    pub(crate) fn new(store: Arc<Engine>, settings: Settings, master_key: MasterKey) -> Result<Arc<Self>, String> {
        // Servers that share a store are told apart by an id that each takes anew at its start.
        let cluster = store.is_shared().then(|| cluster::Cluster::new(Clock.new_id()));
        let sender = Sender::new(&settings)?;
        Ok(Arc::new(Self {
            store,
            sender,
            settings,
            master_key,
            in_flight: Arc::new(Semaphore::new(MOST_IN_FLIGHT)),
            outbox: Notify::new(),
            lanes: Mutex::default(),
            stopping: AtomicBool::new(false),
            counted: backlog::Counted::default(),
            cluster,
            metrics: HookMetrics::default(),
            damaged: DamagedRows::default(),
        }))
    }

    /// Starts the relay and a lane for each endpoint; among several servers, for each that becomes this one's.
    pub(crate) async fn start(self: &Arc<Self>) -> Result<JoinHandle<()>, Error> {
        if self.cluster.is_some() {
            tokio::spawn(cluster::answer_bells(Arc::clone(self)));
            let (relay, cluster) = (relay::run(Arc::clone(self)), cluster::run(Arc::clone(self)));
            return Ok(tokio::spawn(async {
                tokio::join!(relay, cluster);
            }));
        }
        self.start_missing_lanes().await?;
        Ok(tokio::spawn(relay::run(Arc::clone(self))))
    }

    /// Starts a lane for each endpoint that has none. Among several servers the cluster does so.
    async fn start_missing_lanes(self: &Arc<Self>) -> Result<(), Error> {
        if self.cluster.is_some() {
            return Ok(());
        }
        let prefix = key::records(rental_core::resources::organization::SYSTEM, &webhook_endpoint::SPEC);
        let mut span = Span::newest_first(&prefix);
        loop {
            let page = self.store().scan(&span, 200).await?;
            // A damaged endpoint gets its lane too: it waits there until the endpoint is repaired.
            let missing = page.iter().filter_map(|row| key_of(row).id()).filter(|id| !self.has_lane(*id));
            missing.for_each(|id| self.endpoint_changed(id));
            match page.last() {
                Some(last) => span.to = key_of(last).clone(),
                None => return Ok(()),
            }
            tokio::task::yield_now().await;
        }
    }

    /// The prefix of headers and user agent.
    pub(crate) fn brand(&self) -> &str {
        &self.settings.brand
    }

    /// A change was committed: its events may wait in the outbox.
    pub(crate) fn committed(&self) {
        self.outbox.notify_one();
    }

    /// An endpoint was made, changed or deleted.
    pub(crate) fn endpoint_changed(self: &Arc<Self>, id: Uuid) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = lanes.get(&id) {
            bell.changed.store(true, Ordering::Release);
            bell.ring.notify_one();
            return;
        }
        if self.is_stopping() {
            return;
        }
        if let Some(cluster) = self.cluster.as_ref().filter(|cluster| !cluster.owns(id)) {
            // It may be a new one, and this server's.
            return cluster.look.notify_one();
        }
        let bell = Arc::new(Bell::default());
        lanes.insert(id, Arc::clone(&bell));
        tokio::spawn(lane::run(Arc::clone(self), id, bell));
    }

    /// Something new is due for an endpoint.
    fn wake(&self, id: Uuid) {
        if let Some(bell) = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            bell.ring.notify_one();
        }
    }

    /// The same, wherever its lane runs.
    pub(crate) async fn wake_anywhere(&self, ids: impl IntoIterator<Item = Uuid>) -> Result<(), Error> {
        let mut batch = Batch::default();
        for id in ids {
            self.wake(id);
            self.ring(id, &mut batch);
        }
        if !batch.is_empty() {
            self.store().commit(batch).await?;
        }
        Ok(())
    }

    /// Adds the bell of another server that sends for an endpoint.
    fn ring(&self, endpoint: Uuid, batch: &mut Batch) {
        if let Some(server) = self.cluster.as_ref().and_then(|cluster| cluster.elsewhere(endpoint)) {
            batch.mark(key::bell(server, endpoint), Prior::Any);
        }
    }

    /// Whether this server sends for an endpoint.
    fn owns(&self, endpoint: Uuid) -> bool {
        self.cluster.as_ref().is_none_or(|cluster| cluster.owns(endpoint))
    }

    /// Whether it may begin an attempt now.
    fn may_send(&self, endpoint: Uuid) -> bool {
        self.cluster.as_ref().is_none_or(|cluster| cluster.may_send(endpoint))
    }

    /// The longest that a lane or the relay sleeps without looking by itself.
    fn patience(&self) -> Duration {
        if self.cluster.is_some() { PATIENCE_WITH_OTHERS } else { PATIENCE }
    }

    fn has_lane(&self, id: Uuid) -> bool {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    fn forget_lane(&self, id: Uuid) {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// No new attempts; gives those in flight until the time of one attempt to end. Whatever is left is sent again later.
    pub(crate) async fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.outbox.notify_one();
        self.cluster.iter().for_each(|cluster| cluster.look.notify_one());
        let bells: Vec<_> = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        bells.iter().for_each(|bell| bell.ring.notify_one());
        self.until_idle().await;
    }

    /// Waits for the attempts in flight, as long as one may take.
    async fn until_idle(&self) {
        let all = u32::try_from(MOST_IN_FLIGHT).unwrap_or(u32::MAX);
        let limit = self.settings.timeout + Duration::from_secs(1);
        let _ = tokio::time::timeout(limit, self.in_flight.acquire_many(all)).await;
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }
}
