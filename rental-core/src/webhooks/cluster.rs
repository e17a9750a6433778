//! Which server sends for which endpoint when several share a store. Every endpoint has one sender at a time, so that
//! its order, its concurrency and its probes are those of a single server.
//!
//! A server that lives writes its *beat* every [`BEAT_MILLIS`]; who sees one stand still for [`DEAD_AFTER_MILLIS`] takes
//! it for dead. No clock of one server is compared with that of another: only how long a beat has not changed counts, on
//! the observer's own clock. Who owns an endpoint is a row of its own; taking it over is a checked write, so of two that
//! want it one gets it. All servers agree who should have it, by a hash, so endpoints spread evenly and come back.
//!
//! An owner that cannot write its beat stops sending before anybody takes it for dead ([`TRUSTED_MILLIS`]).
//! Absent on purpose: clocks and the store. `now` is a number of milliseconds that only rises.

use crate::store::Revision;
use crate::value::{EndpointId, ServerId};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};

/// How often a server writes its beat.
pub const BEAT_MILLIS: u64 = 2_000;
/// How long a server may send after its last beat was written: shorter than others wait.
pub const TRUSTED_MILLIS: u64 = 7_000;
/// How long a beat must have stood still before its server counts as dead.
pub const DEAD_AFTER_MILLIS: u64 = 10_000;

/// What one server has seen of all.
#[derive(Debug, Default)]
pub struct Watch {
    /// The last beat of each, and since when it stands.
    seen: HashMap<ServerId, (Revision, u64)>,
}

impl Watch {
    /// Takes in the beats as they are now; gives the servers that live, and those that are dead.
    pub fn look(&mut self, beats: &[(ServerId, Revision)], now: u64) -> (BTreeSet<ServerId>, BTreeSet<ServerId>) {
        let still = |(server, beat): &(ServerId, Revision)| {
            let since = self.seen.get(server).filter(|(known, _)| known == beat).map_or(now, |(_, since)| *since);
            (*server, (*beat, since))
        };
        self.seen = beats.iter().map(still).collect();
        let lives = |(_, (_, since)): &(&ServerId, &(Revision, u64))| now.saturating_sub(*since) < DEAD_AFTER_MILLIS;
        let (alive, dead): (Vec<_>, Vec<_>) = self.seen.iter().partition(lives);
        (alive.into_iter().map(|row| *row.0).collect(), dead.into_iter().map(|row| *row.0).collect())
    }
}

/// What a server does about one endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Duty {
    /// It sends.
    Keep,
    /// It takes the endpoint over.
    Claim,
    /// It finishes what is in flight and lets go: another one should have it.
    Release,
    /// Somebody else's.
    Leave,
}

/// What `me` does about an endpoint with this owner, if it has one.
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

/// The server that should send for an endpoint: each endpoint ranks the servers by a hash, so that a server that comes
/// or goes moves only its own share.
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
    fn a_beat_that_stands_still_for_ten_seconds_is_a_death() {
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
        const { assert!(BEAT_MILLIS * 3 < TRUSTED_MILLIS && TRUSTED_MILLIS + BEAT_MILLIS < DEAD_AFTER_MILLIS) }
    }

    proptest! {
        /// Whoever owns it, exactly one server acts towards having it, and in the end one keeps it.
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
