//! Divides the permits for attempts among organizations and endpoints. An attempt has one permit while it is in flight.
//!
//! An endpoint gets a permit while more permits are free than its organization and the endpoint have together. So one
//! organization has at most half of all permits, and three that take them in turn have a quarter each, however many endpoints
//! they have and however slow their receivers are. What stays free is for organizations and endpoints that have none.
//!
//! The sum of what the organization and the endpoint have is the *need* of the endpoint. The smallest need is served first,
//! equal needs in the order of arrival. Each operation compares only the smallest need with the free permits: its cost is
//! that of a few ordered maps, and it never reads all organizations or endpoints.

use crate::value::{EndpointId, OrganizationId};
use std::collections::{BTreeMap, HashMap};

/// Who has a permit, or waits for one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Holder {
    /// The organization of the endpoint.
    pub organization: OrganizationId,
    /// The endpoint.
    pub endpoint: EndpointId,
}

/// The order among those that wait: their need, then their number in the order of arrival.
type Place = (u32, u64);

/// Free permits, those in use, and the endpoints that wait. `W` tells the caller how to notify an endpoint that waited.
#[derive(Debug)]
pub struct FairShare<W> {
    permits: u32,
    free: u32,
    accounts: HashMap<OrganizationId, Account<W>>,
    /// The organizations with waiting endpoints, each at the place of its first endpoint.
    queue: BTreeMap<Place, OrganizationId>,
    arrivals: u64,
}

/// One organization. It has an account while it has a permit or an endpoint that waits.
#[derive(Debug)]
struct Account<W> {
    in_use: u32,
    endpoints: HashMap<EndpointId, Use<W>>,
    /// The waiting endpoints, by what they have in use and their number in the order of arrival.
    waiting: BTreeMap<Place, EndpointId>,
}

/// One endpoint.
#[derive(Debug)]
struct Use<W> {
    in_use: u32,
    waiter: Option<(u64, W)>,
}

impl<W> Account<W> {
    /// The place of the organization in the queue; `None` if no endpoint waits.
    fn place(&self) -> Option<Place> {
        self.waiting.first_key_value().map(|((in_use, arrival), _)| (self.in_use + in_use, *arrival))
    }
}

impl<W> FairShare<W> {
    /// All permits are free.
    #[must_use]
    pub fn new(permits: u32) -> Self {
        Self { permits, free: permits, accounts: HashMap::new(), queue: BTreeMap::new(), arrivals: 0 }
    }

    /// The number of permits in use.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.permits - self.free
    }

    /// Takes a permit if the endpoint may have one now.
    #[must_use]
    pub fn take(&mut self, holder: Holder) -> bool {
        let account = self.accounts.get(&holder.organization);
        let need = account.map_or(0, |account| {
            account.in_use + account.endpoints.get(&holder.endpoint).map_or(0, |endpoint| endpoint.in_use)
        });
        let may = need < self.free;
        if may {
            self.change(holder, |endpoint| endpoint.in_use += 1);
        }
        may
    }

    /// Lets the endpoint wait until [`grant`](Self::grant) gives it a permit. An earlier waiter of the endpoint is dropped.
    pub fn wait(&mut self, holder: Holder, waiter: W) {
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.change(holder, |endpoint| endpoint.waiter = Some((arrival, waiter)));
    }

    /// Gives a permit back. Call [`grant`](Self::grant) afterwards until it gives `None`.
    pub fn give_back(&mut self, holder: Holder) {
        self.change(holder, |endpoint| endpoint.in_use = endpoint.in_use.saturating_sub(1));
    }

    /// Gives a permit to the waiting endpoint with the smallest need, if it may have one now.
    pub fn grant(&mut self) -> Option<(Holder, W)> {
        let ((need, _), organization) = self.queue.first_key_value()?;
        if *need >= self.free {
            return None;
        }
        let (_, endpoint) = self.accounts.get(organization)?.waiting.first_key_value()?;
        let holder = Holder { organization: *organization, endpoint: *endpoint };
        let waiter = self.change(holder, |endpoint| {
            endpoint.in_use += 1;
            endpoint.waiter.take()
        });
        waiter.map(|(_, waiter)| (holder, waiter))
    }

    /// Changes an endpoint, and what is derived from it.
    fn change<T>(&mut self, holder: Holder, change: impl FnOnce(&mut Use<W>) -> T) -> T {
        let account = self.accounts.entry(holder.organization).or_insert_with(|| Account {
            in_use: 0,
            endpoints: HashMap::new(),
            waiting: BTreeMap::new(),
        });
        account.place().and_then(|place| self.queue.remove(&place));
        let endpoint = account.endpoints.entry(holder.endpoint).or_insert(Use { in_use: 0, waiter: None });
        let before = endpoint.in_use;
        if let Some((arrival, _)) = endpoint.waiter {
            account.waiting.remove(&(before, arrival));
        }
        let result = change(endpoint);
        account.in_use = account.in_use - before + endpoint.in_use;
        self.free = self.free + before - endpoint.in_use;
        if let Some((arrival, _)) = endpoint.waiter {
            account.waiting.insert((endpoint.in_use, arrival), holder.endpoint);
        } else if endpoint.in_use == 0 {
            account.endpoints.remove(&holder.endpoint);
        }
        if let Some(place) = account.place() {
            self.queue.insert(place, holder.organization);
        }
        if account.endpoints.is_empty() {
            self.accounts.remove(&holder.organization);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holder(organization: u128, endpoint: u128) -> Holder {
        Holder {
            organization: OrganizationId::from_u128(organization),
            endpoint: EndpointId::from_u128(organization << 64 | endpoint),
        }
    }

    /// Takes permits for endpoints of an organization, one after the other, until none gets one.
    fn flood(share: &mut FairShare<()>, organization: u128, endpoints: u128) {
        while (0..endpoints).filter(|endpoint| share.take(holder(organization, *endpoint))).count() > 0 {}
    }

    #[test]
    fn one_organization_gets_at_most_half_and_each_of_its_endpoints_as_much() {
        let mut share = FairShare::new(1024);
        flood(&mut share, 1, 50);
        let used = share.in_use();
        assert!((500..=512).contains(&used), "{used}");
        assert!(
            share.accounts[&OrganizationId::from_u128(1)].endpoints.values().all(|one| (9..=11).contains(&one.in_use))
        );
    }

    #[test]
    fn three_organizations_leave_a_quarter_to_a_fourth() {
        let mut share = FairShare::<()>::new(1024);
        let mut in_turn = || {
            let endpoints =
                (0..50).flat_map(|endpoint| (1..=3).map(move |organization| holder(organization, endpoint)));
            endpoints.filter(|holder| share.take(*holder)).count()
        };
        while in_turn() > 0 {}
        assert!((1024 / 4..1024 / 2).contains(&(1024 - share.in_use())), "{} in use", share.in_use());
        assert!((0..100).all(|endpoint| share.take(holder(4, endpoint))));
    }

    #[test]
    fn an_endpoint_that_has_none_gets_one_before_an_endpoint_that_has_many() {
        let mut share = FairShare::new(4);
        assert!((0..2).all(|_| share.take(holder(1, 0))));
        while share.take(holder(2, 0)) || share.take(holder(3, 0)) || share.take(holder(4, 0)) {}
        share.wait(holder(1, 0), "has one");
        share.wait(holder(5, 0), "has none");
        assert_eq!(share.grant(), None);
        share.give_back(holder(1, 0));
        assert_eq!(share.grant(), Some((holder(5, 0), "has none")));
        assert_eq!(share.grant(), None);
    }

    #[test]
    fn equal_needs_are_served_in_the_order_of_arrival() {
        let mut share = FairShare::new(1);
        assert!(share.take(holder(9, 0)));
        for organization in [3, 1, 2] {
            assert!(!share.take(holder(organization, 0)));
            share.wait(holder(organization, 0), organization);
        }
        let mut last = holder(9, 0);
        for organization in [3, 1, 2] {
            share.give_back(last);
            let (next, waiter) = share.grant().unwrap();
            assert_eq!((next, waiter), (holder(organization, 0), organization));
            last = next;
        }
    }

    proptest! {
        /// Random operations, against a model that reads everything.
        #[test]
        fn permits_are_conserved_and_nobody_waits_who_may_have_one(
            permits in 1u32..40,
            steps in proptest::collection::vec((0u8..3, 0u128..4, 0u128..3), 1..200),
        ) {
            let mut share = FairShare::new(permits);
            let (mut used, mut waiting): (Vec<Holder>, Vec<Holder>) = (Vec::new(), Vec::new());
            for (what, organization, endpoint) in steps {
                let holder = holder(organization, endpoint);
                match what {
                    0 if used.contains(&holder) => {
                        used.swap_remove(used.iter().position(|one| *one == holder).unwrap());
                        share.give_back(holder);
                    }
                    _ if waiting.contains(&holder) => {}
                    _ if share.take(holder) => used.push(holder),
                    _ => {
                        share.wait(holder, ());
                        waiting.push(holder);
                    }
                }
                while let Some((next, ())) = share.grant() {
                    waiting.swap_remove(waiting.iter().position(|one| *one == next).unwrap());
                    used.push(next);
                }
                let need = |holder: &Holder| {
                    used.iter().filter(|one| one.organization == holder.organization).count()
                        + used.iter().filter(|one| *one == holder).count()
                };
                let free = permits as usize - used.len();
                prop_assert_eq!(share.in_use() as usize, used.len());
                prop_assert!(waiting.iter().all(|one| need(one) >= free), "somebody waits in vain");
            }
            for holder in used.drain(..) {
                share.give_back(holder);
            }
            while let Some((next, ())) = share.grant() {
                share.give_back(next);
            }
            prop_assert_eq!(share.in_use(), 0);
            prop_assert!(share.accounts.is_empty() && share.queue.is_empty(), "{:?}", share);
        }
    }
}
