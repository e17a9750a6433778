//! Whether failures are those of this server's own network: then they do not help to disable an endpoint.
//!
//! One host that cannot be reached says nothing about this server. Several hosts of several organizations at once do.

use rental_core::{value::OrganizationId, webhooks::attempt::Failure};
use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Least hosts that fail at once in an outage of this server's network.
const LEAST_HOSTS: usize = 5;
/// Least organizations that those hosts belong to.
const LEAST_ORGANIZATIONS: usize = 2;
/// For how long a failure of a host tells that it fails: several times the pause between two probes.
const RECENT: Duration = Duration::from_secs(120);

/// The hosts whose last attempt reached no address.
#[derive(Default)]
pub(super) struct Outage(Mutex<Unreached>);

impl Outage {
    /// An attempt for a host reached no address. Tells whether this is an outage of this server's network, which it logs once.
    pub(super) fn unreached(&self, host: &str, organization: OrganizationId, failure: Failure) -> bool {
        let mut unreached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let was_outage = unreached.is_outage();
        unreached.note(host, organization, Instant::now());
        let is_outage = unreached.is_outage();
        if is_outage && !was_outage {
            let failure = failure.as_str();
            tracing::warn!(failure, %host, "webhook attempts reach no address at several hosts: they do not help to disable an endpoint; check the network, the DNS servers and the limit of open files of this machine");
        }
        is_outage
    }

    /// An attempt reached an address of a host.
    pub(super) fn reached(&self, host: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last.remove(host);
    }
}

#[derive(Default)]
struct Unreached {
    /// When each host failed last, and for which organization.
    last: HashMap<String, (OrganizationId, Instant)>,
}

impl Unreached {
    fn note(&mut self, host: &str, organization: OrganizationId, now: Instant) {
        self.last.retain(|_, (_, at)| now.saturating_duration_since(*at) < RECENT);
        self.last.insert(host.to_owned(), (organization, now));
    }

    fn is_outage(&self) -> bool {
        let organizations: HashSet<_> = self.last.values().map(|(organization, _)| *organization).collect();
        self.last.len() >= LEAST_HOSTS && organizations.len() >= LEAST_ORGANIZATIONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    /// Notes failures of hosts and organizations, each a second after the one before it; tells of the last one.
    fn is_outage(failures: &[(&str, u128)]) -> bool {
        let (start, mut unreached) = (Instant::now(), Unreached::default());
        for (second, (host, organization)) in (0..).zip(failures) {
            let organization = OrganizationId::from_uuid(Uuid::from_u128(*organization));
            unreached.note(host, organization, start + Duration::from_secs(second));
        }
        unreached.is_outage()
    }

    #[test]
    fn five_hosts_of_two_organizations_are_an_outage_and_fewer_are_not() {
        assert!(is_outage(&[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 2)]));
        assert!(!is_outage(&[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 1)]), "one organization");
        assert!(!is_outage(&[("a", 1), ("b", 2), ("c", 3), ("d", 4)]), "four hosts");
        assert!(!is_outage(&[("a", 1), ("b", 2), ("a", 1), ("a", 2), ("b", 3), ("a", 4)]), "two hosts");
    }

    #[test]
    fn a_host_that_failed_two_minutes_ago_or_was_reached_since_does_not_fail_any_more() {
        let organization = |number| OrganizationId::from_uuid(Uuid::from_u128(number));
        let (start, mut unreached) = (Instant::now(), Unreached::default());
        for (number, host) in (1..).zip(["a", "b", "c", "d"]) {
            unreached.note(host, organization(number), start);
        }
        unreached.note("e", organization(1), start + RECENT);
        assert_eq!(unreached.last.len(), 1, "two minutes have passed");
        let outage = Outage(Mutex::new(unreached));
        let all = |hosts: &[&str]| {
            let fails =
                |host: &&str| outage.unreached(host, organization(u128::from(host.as_bytes()[0])), Failure::NoRoute);
            hosts.iter().map(fails).collect::<Vec<_>>()
        };
        assert_eq!(all(&["a", "b", "c", "d", "e"]), [false, false, false, true, true]);
        outage.reached("c");
        assert_eq!(all(&["a", "c"]), [false, true]);
    }
}
