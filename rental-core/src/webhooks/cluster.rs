//! Decides which server sends the deliveries of which endpoint when several servers share a store. Every endpoint has one
//! owner at a time, so order, concurrency and probes are the same as with a single server.
//!
//! A running server writes its heartbeat every [`HEARTBEAT_MILLIS`]. If a heartbeat does not change for `DEAD_AFTER_MILLIS` on
//! the observer's clock, the observer considers its server dead. Clocks of different servers are never compared. The owner
//! of an endpoint is a row, which a server takes over with a checked write, so only one of several servers gets it. All
//! servers compute the preferred owner with the same hash, which distributes the endpoints evenly.
//!
//! An owner that cannot write its heartbeat stops sending before other servers consider it dead ([`TRUSTED_MILLIS`]).
//! Absent on purpose: clocks and the store. `now` is a monotonic number of milliseconds.

use crate::store::Revision;
use crate::value::{EndpointId, ServerId};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};

/// Milliseconds between two heartbeats of a server.
pub const HEARTBEAT_MILLIS: u64 = 2_000;
/// Milliseconds for which a server may send after its last heartbeat was written; less than `DEAD_AFTER_MILLIS`.
pub const TRUSTED_MILLIS: u64 = 7_000;
/// Milliseconds without a new heartbeat after which a server is considered dead.
pub(crate) const DEAD_AFTER_MILLIS: u64 = 10_000;

/// The heartbeats that one server has seen.
#[derive(Debug, Default)]
pub struct Watch {
    /// The last heartbeat of each server, and when it was first seen.
    seen: HashMap<ServerId, (Revision, u64)>,
}

impl Watch {
    /// Records the present heartbeats. Returns the servers that are alive and those that are dead.
    pub fn look(&mut self, heartbeats: &[(ServerId, Revision)], now: u64) -> (BTreeSet<ServerId>, BTreeSet<ServerId>) {
        let still = |(server, heartbeat): &(ServerId, Revision)| {
            let since = self.seen.get(server).filter(|(known, _)| known == heartbeat).map_or(now, |(_, since)| *since);
            (*server, (*heartbeat, since))
        };
        self.seen = heartbeats.iter().map(still).collect();
        let lives = |(_, (_, since)): &(&ServerId, &(Revision, u64))| now.saturating_sub(*since) < DEAD_AFTER_MILLIS;
        let (alive, dead): (Vec<_>, Vec<_>) = self.seen.iter().partition(lives);
        (alive.into_iter().map(|row| *row.0).collect(), dead.into_iter().map(|row| *row.0).collect())
    }
}

/// What a server does with one endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Duty {
    /// It is the owner and sends.
    Keep,
    /// It takes the endpoint over and becomes the owner.
    Claim,
    /// It finishes the attempts in flight and gives the endpoint up, because another server is preferred.
    Release,
    /// Nothing: another server owns the endpoint.
    Leave,
}

/// Decides what the server `me` does with an endpoint that has this owner, or none.
#[must_use]
pub fn duty(me: ServerId, endpoint: EndpointId, owner: Option<ServerId>, alive: &BTreeSet<ServerId>) -> Duty {
    let should = preferred(endpoint, alive) == Some(me);
    match owner {
        Some(owner) if owner == me => {
            if should {
                Duty::Keep
            } else {
                Duty::Release
            }
        }
        Some(owner) if alive.contains(&owner) => Duty::Leave,
        _ if should => Duty::Claim,
        _ => Duty::Leave,
    }
}

/// The preferred owner of an endpoint. A hash ranks the servers for each endpoint, so when a server starts or stops, only
/// its own endpoints move.
fn preferred(endpoint: EndpointId, alive: &BTreeSet<ServerId>) -> Option<ServerId> {
    let rank = |server: &&ServerId| -> [u8; 32] {
        Sha256::new().chain_update(server.as_bytes()).chain_update(endpoint.as_bytes()).finalize().into()
    };
    alive.iter().max_by_key(rank).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn server(n: u128) -> ServerId {
        ServerId::from_u128(n)
    }

    fn set(servers: &[u128]) -> BTreeSet<ServerId> {
        servers.iter().copied().map(server).collect()
    }

    #[test]
    fn a_heartbeat_that_is_unchanged_for_ten_seconds_is_a_death() {
        let mut watch = Watch::default();
        assert_eq!(watch.look(&[(server(1), 5), (server(2), 9)], 1_000).0, set(&[1, 2]));
        assert_eq!(watch.look(&[(server(1), 6), (server(2), 9)], 10_999).0, set(&[1, 2]));
        assert_eq!(watch.look(&[(server(1), 6), (server(2), 9)], 11_000), (set(&[1]), set(&[2])));
        assert_eq!(watch.look(&[(server(1), 7), (server(2), 10)], 20_000).0, set(&[1, 2]), "it was only slow");
    }

    #[test]
    fn who_watches_anew_waits_the_whole_time() {
        let mut watch = Watch::default();
        assert_eq!(watch.look(&[(server(1), 5)], 1_000_000).0, set(&[1]));
        assert_eq!(watch.look(&[(server(1), 5)], 1_009_999).0, set(&[1]));
        assert_eq!(watch.look(&[(server(1), 5)], 1_010_000).0, set(&[]));
    }

    #[test]
    fn an_owner_stops_before_others_take_over() {
        const { assert!(HEARTBEAT_MILLIS * 3 < TRUSTED_MILLIS && TRUSTED_MILLIS + HEARTBEAT_MILLIS < DEAD_AFTER_MILLIS) }
    }

    proptest! {
        /// For any owner exactly one server acts to become the owner, and in the end one keeps the endpoint.
        #[test]
        fn an_endpoint_comes_to_rest_at_one_server(
            servers in proptest::collection::btree_set(1u128..20, 1..6),
            endpoint: u128,
            owner in proptest::option::of(1u128..20),
        ) {
            let alive: BTreeSet<ServerId> = servers.iter().copied().map(server).collect();
            let (endpoint, mut owner) = (EndpointId::from_u128(endpoint), owner.map(server));
            for _ in 0..3 {
                let duties: Vec<(ServerId, Duty)> = alive.iter().map(|me| (*me, duty(*me, endpoint, owner, &alive))).collect();
                prop_assert!(duties.iter().filter(|(_, duty)| *duty != Duty::Leave).count() <= 1, "{duties:?}");
                for (me, duty) in duties {
                    match duty {
                        Duty::Claim => owner = Some(me),
                        Duty::Release => owner = None,
                        Duty::Keep | Duty::Leave => {}
                    }
                }
            }
            prop_assert!(alive.contains(&owner.unwrap()));
            prop_assert_eq!(duty(owner.unwrap(), endpoint, owner, &alive), Duty::Keep);
        }

        #[test]
        fn a_server_that_goes_moves_only_its_own_endpoints(endpoints in proptest::collection::vec(any::<u128>(), 1..50)) {
            let (all, rest) = (set(&[1, 2, 3]), set(&[1, 2]));
            for endpoint in endpoints.into_iter().map(EndpointId::from_u128) {
                let before = preferred(endpoint, &all);
                prop_assert!(before == Some(server(3)) || preferred(endpoint, &rest) == before);
            }
        }
    }

    #[test]
    fn endpoints_spread_over_the_servers() {
        let alive = set(&[1, 2, 3]);
        let mut shares: HashMap<ServerId, u32> = HashMap::new();
        for n in 0..3000 {
            *shares.entry(preferred(EndpointId::from_u128(n), &alive).unwrap()).or_default() += 1;
        }
        assert!(shares.len() == 3 && shares.values().all(|share| (800..1200).contains(share)), "{shares:?}");
    }
}
