//! Which connections there may be: at most so many altogether and for each address; a new one takes the place of a silent
//! one.

use crate::{
    config::Network,
    http::{client_address::trusts, traffic::Traffic},
    shares,
};
use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::AbortHandle,
};

/// When all places are taken, a connection without a request for so long gives its place to a new one.
const SILENT: Duration = Duration::from_secs(1);
/// How often such a connection is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Limits of connections.
#[derive(Clone)]
pub(crate) struct ConnectionLimits {
    /// Most open connections.
    pub(crate) all: usize,
    /// Most open connections of one address; of a /64 network with IPv6. Loopback and the proxies have no such limit.
    pub(crate) per_address: usize,
    /// Proxies that name their clients.
    pub(crate) proxies: Arc<[Network]>,
}

/// The places of all connections.
pub(super) struct Places {
    limits: ConnectionLimits,
    free: Arc<Semaphore>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// By address. An address without a connection has no entry.
    by_address: HashMap<IpAddr, OfAddress>,
    /// In the order in which they were opened.
    watched: BTreeMap<u64, Watched>,
    opened: u64,
}

/// What one address has.
#[derive(Default)]
struct OfAddress {
    connections: usize,
    /// Its requests of HTTP/2 in flight.
    requests: Arc<shares::Share>,
}

struct Watched {
    traffic: Weak<Traffic>,
    task: AbortHandle,
    /// How many requests it had made when it was looked at, and since when it has made no other.
    seen: (u64, Instant),
}

/// The place of one connection, until it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    /// The address that it is counted for.
    address: Option<IpAddr>,
    requests: Option<Arc<shares::Share>>,
    _permit: OwnedSemaphorePermit,
}

/// A share of an address, which becomes a [`Place`].
pub(super) struct Share {
    places: Arc<Places>,
    address: Option<IpAddr>,
    requests: Option<Arc<shares::Share>>,
}

impl Places {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(limits.all));
        Arc::new(Self { limits, free, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection of this address; `None` when it has too many.
    pub(super) fn share(self: &Arc<Self>, address: IpAddr) -> Option<Share> {
        let address = address.to_canonical();
        let exempt = address.is_loopback() || trusts(&self.limits.proxies, address);
        let counted = (!exempt).then(|| network(address));
        let mut requests = None;
        if let Some(address) = counted {
            let mut open = self.open();
            let of_address = open.by_address.entry(address).or_default();
            if of_address.connections >= self.limits.per_address {
                return None;
            }
            of_address.connections += 1;
            requests = Some(Arc::clone(&of_address.requests));
        }
        Some(Share { places: Arc::clone(self), address: counted, requests })
    }

    /// Waits for a free place. While there is none, silent connections are closed, the oldest first.
    pub(super) async fn place(self: &Arc<Self>, mut share: Share) -> Option<Place> {
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
                break permit;
            }
            self.close_a_silent_one();
            if let Ok(permit) = tokio::time::timeout(LOOK, Arc::clone(&self.free).acquire_owned()).await {
                break permit.ok()?;
            }
        };
        let mut open = self.open();
        open.opened += 1;
        let (address, requests) = (share.address.take(), share.requests.take());
        Some(Place { places: Arc::clone(self), number: open.opened, address, requests, _permit: permit })
    }

    /// Lets the connection with this number be closed while it is silent. `traffic` must have its place.
    pub(super) fn watch(&self, number: u64, traffic: &Arc<Traffic>, task: AbortHandle) {
        let watched = Watched { traffic: Arc::downgrade(traffic), task, seen: (0, Instant::now()) };
        self.open().watched.insert(number, watched);
    }

    /// Closes the oldest connection that has had no request in progress for a while.
    pub(super) fn close_a_silent_one(&self) {
        let now = Instant::now();
        let (mut open, mut looked_at) = (self.open(), Vec::new());
        let silent = open.watched.values_mut().find_map(|watched| {
            let traffic = watched.traffic.upgrade()?;
            let requests = traffic.settled();
            // Dropping the last of these frees a place, which needs the lock: kept until it is released.
            looked_at.push(traffic);
            if requests == Some(watched.seen.0) {
                return (now.duration_since(watched.seen.1) >= SILENT).then(|| watched.task.clone());
            }
            watched.seen = (requests.unwrap_or(u64::MAX), now);
            None
        });
        drop(open);
        if let Some(task) = silent {
            task.abort();
        }
    }

    /// Resolves when no connection is open.
    pub(super) async fn all_free(&self) {
        let all = u32::try_from(self.limits.all).unwrap_or(u32::MAX);
        let _ = self.free.acquire_many(all).await;
    }
}

/// The network that an address is counted for. With IPv6 each client has a /64 to itself.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

impl Place {
    /// The number of the connection: they count up.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The share of its address in the requests of HTTP/2; `None` for loopback and proxies, which have no such limit.
    pub(super) fn requests(&self) -> Option<Arc<shares::Share>> {
        self.requests.clone()
    }
}

fn leave(places: &Places, address: Option<IpAddr>, number: Option<u64>) {
    let mut open = places.open();
    let gone = number.and_then(|number| open.watched.remove(&number));
    if let Some(address) = address
        && let Some(of_address) = open.by_address.get_mut(&address)
    {
        of_address.connections -= 1;
        if of_address.connections == 0 {
            open.by_address.remove(&address);
        }
    }
    drop(open);
    drop(gone);
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.address.is_some() {
            leave(&self.places, self.address, None);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        leave(&self.places, self.address, Some(self.number));
    }
}
