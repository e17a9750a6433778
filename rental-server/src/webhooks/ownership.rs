//! Which endpoints this server sends for, among the servers that share the store.

use rental_core::value::{EndpointId, ServerId};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};
use tokio::sync::Notify;

/// What this server knows of itself and of the other servers. `cluster` keeps it up to date.
pub(super) struct Ownership {
    /// The id of this server. It takes a new one at each start.
    pub(super) server: ServerId,
    started: Instant,
    /// Signalled when the servers and endpoints should be read at once.
    pub(super) look: Notify,
    /// Until when this server may send, in milliseconds since its start: its last heartbeat is recent enough.
    trusted_until: AtomicU64,
    /// The endpoints that this server sends for.
    own: Mutex<HashSet<EndpointId>>,
    /// The server of each endpoint, as of the last read.
    owners: Mutex<HashMap<EndpointId, ServerId>>,
}

impl Ownership {
    pub(super) fn new(server: ServerId) -> Self {
        let (own, owners) = (Mutex::default(), Mutex::default());
        Self { server, started: Instant::now(), look: Notify::new(), trusted_until: AtomicU64::new(0), own, owners }
    }

    /// Milliseconds since the start of this server.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether this server may begin an attempt for an endpoint.
    pub(super) fn may_send(&self, endpoint: EndpointId) -> bool {
        self.owns(endpoint) && self.now() < self.trusted_until.load(Ordering::Acquire)
    }

    /// Lets this server send until then.
    pub(super) fn trust_until(&self, millis: u64) {
        self.trusted_until.store(millis, Ordering::Release);
    }

    pub(super) fn owns(&self, endpoint: EndpointId) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).contains(&endpoint)
    }

    /// The other server that sends for an endpoint, if another one does.
    pub(super) fn other_owner(&self, endpoint: EndpointId) -> Option<ServerId> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(&endpoint).copied().filter(|owner| *owner != self.server)
    }

    pub(super) fn set_owners(&self, owners: HashMap<EndpointId, ServerId>) {
        *self.owners.lock().unwrap_or_else(PoisonError::into_inner) = owners;
    }

    /// Adds an endpoint to those of this server; false if it was one already.
    pub(super) fn add(&self, endpoint: EndpointId) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).insert(endpoint)
    }

    /// Removes an endpoint from those of this server; false if it was none of them.
    pub(super) fn remove(&self, endpoint: EndpointId) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).remove(&endpoint)
    }
}
