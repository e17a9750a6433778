//! How many connections there may be: altogether, and of each address.

use crate::{config::Network, http::client_address::trusts, limits::Holder};
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
    /// Open connections. An address without one has no entry.
    by_address: Mutex<HashMap<IpAddr, usize>>,
    /// Connections so far.
    number: AtomicU64,
}

/// The place of one connection, until it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    /// The address that it is counted for; `None` for loopback and proxies.
    counted: Option<IpAddr>,
    number: u64,
    permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(limits.all));
        Arc::new(Self { limits, free, by_address: Mutex::default(), number: AtomicU64::new(0) })
    }

    fn by_address(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a free place; `None` when the address has too many connections.
    pub(super) async fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = address.to_canonical();
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let mut place = Place { places: Arc::clone(self), counted: None, number, permit: None };
        if !address.is_loopback() && !trusts(&self.limits.proxies, address) {
            let address = network(address);
            let mut by_address = self.by_address();
            let connections = by_address.entry(address).or_default();
            if *connections >= self.limits.per_address {
                return None;
            }
            *connections += 1;
            place.counted = Some(address);
        }
        place.permit = Arc::clone(&self.free).acquire_owned().await.ok();
        Some(place)
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
    /// For whom its requests of HTTP/2 count: for the connection, and for its address if that has a limit.
    pub(super) fn holder(&self) -> Holder {
        let number = u128::from(self.number);
        let group = |address: IpAddr| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        };
        // No address of a group is as small as the number of a connection.
        self.counted.map_or_else(|| Holder::new(number), |address| Holder::new(group(address)).member(number))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(address) = &self.counted else { return };
        let mut by_address = self.places.by_address();
        if let Some(connections) = by_address.get_mut(address) {
            *connections -= 1;
            if *connections == 0 {
                by_address.remove(address);
            }
        }
    }
}
