//! How many connections there may be: altogether, and of each address.

use crate::{config::Network, http::client_address::trusts, shares::Share};
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    /// An address without a connection has no entry.
    by_address: Mutex<HashMap<IpAddr, OfAddress>>,
}

/// What one address has.
#[derive(Default)]
struct OfAddress {
    connections: usize,
    /// Its requests of HTTP/2 in flight.
    requests: Arc<Share>,
}

/// The place of one connection, until it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    /// The address that it is counted for, and the share of that address in the requests of HTTP/2.
    counted: Option<(IpAddr, Arc<Share>)>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(limits.all));
        Arc::new(Self { limits, free, by_address: Mutex::default() })
    }

    fn by_address(&self) -> MutexGuard<'_, HashMap<IpAddr, OfAddress>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a free place; `None` when the address has too many connections.
    pub(super) async fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = address.to_canonical();
        let mut place = Place { places: Arc::clone(self), counted: None, permit: None };
        if !address.is_loopback() && !trusts(&self.limits.proxies, address) {
            let address = network(address);
            let mut by_address = self.by_address();
            let of_address = by_address.entry(address).or_default();
            if of_address.connections >= self.limits.per_address {
                return None;
            }
            of_address.connections += 1;
            place.counted = Some((address, Arc::clone(&of_address.requests)));
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
    /// The share of its address in the requests of HTTP/2; `None` for loopback and proxies, which have no such limit.
    pub(super) fn requests(&self) -> Option<Arc<Share>> {
        self.counted.as_ref().map(|(_, requests)| Arc::clone(requests))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((address, _)) = &self.counted else { return };
        let mut by_address = self.places.by_address();
        if let Some(of_address) = by_address.get_mut(address) {
            of_address.connections -= 1;
            if of_address.connections == 0 {
                by_address.remove(address);
            }
        }
    }
}
