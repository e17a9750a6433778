//! What the tasks of this folder share: the store, the settings, the signals between them, and limits.

use super::{
    download::Downloaded, metrics::HookMetrics, outage::Outage, ownership::Ownership, send::Sender, settings::Settings,
};
use crate::{
    damaged_rows::DamagedRows,
    disk::Space,
    edge::{self, Clock},
    limits::FairShare,
    master_key::Keys,
    supervisor::Supervisor,
};
use rental_core::{
    error::{Error, FieldCode},
    operations::Edge,
    rows::key,
    store::{Batch, Engine, Prior, Store},
    value::{self, EndpointId, ServerId},
    webhooks::target,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

/// Most attempts in flight at once, over all endpoints. One organization can have half of them.
pub(crate) const MOST_IN_FLIGHT: usize = 1024;

/// The longest that the relay or a lane sleeps without reading the store, on a server of its own.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same where servers share a store: nothing signals what another server has written.
const PATIENCE_WITH_OTHERS: Duration = Duration::from_secs(1);

/// Everything that the tasks of this folder share.
pub(crate) struct Hooks {
    store: Arc<dyn Engine>,
    pub(crate) settings: Settings,
    pub(crate) keys: Keys,
    pub(crate) sender: Sender,
    pub(super) supervisor: Arc<Supervisor>,
    /// The attempts in flight.
    pub(super) attempts: Arc<FairShare>,
    pub(super) outage: Outage,
    /// Signalled when the outbox may have events.
    pub(super) outbox: Notify,
    /// Signalled when an endpoint has got a bell and no lane yet.
    pub(super) new_lanes: Notify,
    /// The bell of each endpoint that has a lane, or gets one.
    lanes: Mutex<HashMap<EndpointId, Arc<Bell>>>,
    /// Where other servers share the store.
    pub(super) ownership: Option<Ownership>,
    pub(crate) metrics: HookMetrics,
    /// Damaged rows that background work skipped.
    pub(crate) damaged: Arc<DamagedRows>,
    /// Whether the store has room for writes.
    pub(crate) space: Space,
}

/// Signals a lane that it has something to do.
#[derive(Default)]
pub(super) struct Bell {
    pub(super) ring: Notify,
    /// Whether the endpoint itself changed, not only its due rows.
    pub(super) changed: AtomicBool,
}

impl Hooks {
    pub(crate) fn new(
        store: Arc<dyn Engine>,
        settings: Settings,
        keys: Keys,
        supervisor: Arc<Supervisor>,
        space: Space,
    ) -> Result<Arc<Self>, String> {
        let ownership = store.is_shared().then(|| Ownership::new(ServerId::from_uuid(Clock.new_id())));
        let sender = Sender::new(&settings)?;
        Ok(Arc::new(Self {
            store,
            sender,
            settings,
            keys,
            supervisor,
            attempts: FairShare::new(MOST_IN_FLIGHT),
            outage: Outage::default(),
            outbox: Notify::new(),
            new_lanes: Notify::new(),
            lanes: Mutex::default(),
            ownership,
            metrics: HookMetrics::default(),
            damaged: Arc::default(),
            space,
        }))
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Reads a calendar of others with a guarded client.
    pub(crate) async fn download(&self, url: &str, etag: Option<&str>) -> Result<Downloaded, String> {
        self.sender.download(url, etag).await
    }

    /// Refuses a URL that this server would not send events to.
    ///
    /// # Errors
    /// [`Error::Invalid`], which names the field `url`.
    pub(crate) fn check_receiver(&self, url: &str) -> Result<(), Error> {
        self.check_target(
            url,
            ". `rental-cli listen --forward-to URL` sends events to your machine without an endpoint",
        )
    }

    /// Refuses a URL of a calendar that this server would not read.
    ///
    /// # Errors
    /// [`Error::Invalid`], which names the field `url`.
    pub(crate) fn check_calendar(&self, url: &str) -> Result<(), Error> {
        self.check_target(url, "")
    }

    /// `otherwise` is what else to do instead of allowing private addresses.
    fn check_target(&self, url: &str, otherwise: &str) -> Result<(), Error> {
        let parsed = value::url::parse(url).map_err(|rule| Error::field("url", FieldCode::Invalid, &rule))?;
        if self.settings.https_only && parsed.scheme() != "https" {
            let rule = "must begin with https://: this server uses TLS only";
            return Err(Error::field("url", FieldCode::Invalid, rule));
        }
        if self.settings.allow_private {
            return Ok(());
        }
        let allow = "to allow them for development, start the server with --webhook-allow-private";
        target::check_host(&parsed)
            .map_err(|rule| Error::field("url", FieldCode::Invalid, &format!("{rule}; {allow}{otherwise}")))
    }

    /// The prefix of headers and user agent.
    pub(crate) fn brand(&self) -> &str {
        &self.settings.brand
    }

    /// A change was committed: the outbox may have its events.
    pub(crate) fn committed(&self) {
        self.outbox.notify_one();
    }

    /// An endpoint was created, changed or deleted: its lane reads it again. An endpoint without a lane gets one.
    pub(crate) fn endpoint_changed(&self, id: EndpointId) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = lanes.get(&id) {
            bell.changed.store(true, Ordering::Release);
            bell.ring.notify_one();
            return;
        }
        if self.is_stopping() {
            return;
        }
        if let Some(ownership) = self.ownership.as_ref().filter(|ownership| !ownership.owns(id)) {
            // It may be a new endpoint that this server should send for.
            return ownership.look.notify_one();
        }
        lanes.insert(id, Arc::default());
        self.new_lanes.notify_one();
    }

    /// Signals the lane of an endpoint that a delivery is due.
    pub(super) fn wake(&self, id: EndpointId) {
        if let Some(bell) = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            bell.ring.notify_one();
        }
    }

    /// Signals the lanes of these endpoints that a delivery is due, on whichever server they run.
    pub(crate) async fn wake_anywhere(&self, ids: impl IntoIterator<Item = EndpointId>) -> Result<(), Error> {
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

    /// Adds a bell for the other server that sends for an endpoint, if another one does.
    pub(super) fn ring(&self, endpoint: EndpointId, batch: &mut Batch) {
        if let Some(server) = self.ownership.as_ref().and_then(|ownership| ownership.other_owner(endpoint)) {
            batch.mark(key::bell(server, endpoint), Prior::Any);
        }
    }

    /// Whether this server sends for an endpoint.
    pub(super) fn owns(&self, endpoint: EndpointId) -> bool {
        self.ownership.as_ref().is_none_or(|ownership| ownership.owns(endpoint))
    }

    /// Whether this server may begin an attempt for an endpoint now.
    pub(super) fn may_send(&self, endpoint: EndpointId) -> bool {
        edge::is_right() && self.ownership.as_ref().is_none_or(|ownership| ownership.may_send(endpoint))
    }

    /// The longest that a lane or the relay sleeps without reading the store.
    pub(super) fn patience(&self) -> Duration {
        if self.ownership.is_some() { PATIENCE_WITH_OTHERS } else { PATIENCE }
    }

    /// The endpoints that have a lane, or get one, with their bells.
    pub(super) fn bells(&self) -> Vec<(EndpointId, Arc<Bell>)> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.iter().map(|(id, bell)| (*id, Arc::clone(bell))).collect()
    }

    pub(super) fn has_lane(&self, id: EndpointId) -> bool {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    pub(super) fn forget_lane(&self, id: EndpointId) {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.supervisor.is_stopping()
    }

    /// Begins no more attempts, and waits for those in flight for the time of one attempt. What has not ended by then is
    /// sent again after the next start.
    pub(crate) async fn stop(&self) {
        self.supervisor.stop();
        self.outbox.notify_one();
        self.new_lanes.notify_one();
        self.ownership.iter().for_each(|ownership| ownership.look.notify_one());
        self.bells().iter().for_each(|(_, bell)| bell.ring.notify_one());
        self.until_idle().await;
    }

    /// Waits for the attempts in flight, as long as one may take.
    pub(super) async fn until_idle(&self) {
        let limit = self.settings.timeout + Duration::from_secs(1);
        let _ = tokio::time::timeout(limit, self.attempts.until_idle()).await;
    }
}
