//! Divides a bounded resource among those that compete for it: writes in progress, memory for bodies and responses, and attempts of
//! webhooks among organizations; requests of HTTP/2 among addresses.
//!
//! A holder may take more while what it has then is not more than what is free now (dynamic thresholds, Choudhury and Hahne, 1998). One
//! holder alone gets at most half. When `n` holders want all they can get, each gets one part of `n + 1`, and one part stays free for the
//! next one. So a holder that takes little is admitted whatever the others do. A member of a group, such as an endpoint of an organization,
//! counts what the group has and what it has itself: the members of a group get equal parts.
//!
//! What a holder would have is its *need*. Of those that wait, the smallest need is served first, equal needs in the order of arrival.

use rental_core::value::OrganizationId;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

/// How long a request waits for a part. It bounds the time until the request is refused.
const PATIENCE: Duration = Duration::from_millis(100);

/// Who takes parts: a group such as an organization, or one member of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Holder {
    group: u128,
    member: Option<u128>,
}

impl Holder {
    pub(crate) const fn new(group: u128) -> Self {
        Self { group, member: None }
    }

    /// A member of this group.
    pub(crate) const fn member(self, member: u128) -> Self {
        Self { member: Some(member), ..self }
    }
}

impl From<OrganizationId> for Holder {
    fn from(id: OrganizationId) -> Self {
        Self::new(id.uuid().as_u128())
    }
}

/// The resource.
#[derive(Debug)]
pub(crate) struct FairShare {
    most: usize,
    /// The same as in `state`.
    taken: AtomicUsize,
    state: Mutex<State>,
    /// Signalled when nothing is taken any more.
    idle: Notify,
}

/// A part that is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Part {
    of: Arc<FairShare>,
    holder: Holder,
    amount: usize,
}

impl FairShare {
    /// `most` is what all holders together can have.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0), state: Mutex::default(), idle: Notify::new() })
    }

    /// Takes an amount now, if the holder may have it.
    pub(crate) fn try_take(self: &Arc<Self>, holder: Holder, amount: usize) -> Option<Part> {
        let mut state = self.state();
        let may = state.need(holder).saturating_add(amount) <= self.free(&state);
        may.then(|| self.add(&mut state, holder, amount))
    }

    /// Takes an amount whatever the holder may have: what exists already can only be counted.
    pub(crate) fn take_anyway(self: &Arc<Self>, holder: Holder, amount: usize) -> Part {
        self.add(&mut self.state(), holder, amount)
    }

    /// An amount, or what will receive it. Dropping the receiver ends the wait.
    pub(crate) fn queue(self: &Arc<Self>, holder: Holder, amount: usize) -> Result<Part, oneshot::Receiver<Part>> {
        if let Some(part) = self.try_take(holder, amount) {
            return Ok(part);
        }
        let (turn, receiver) = oneshot::channel();
        self.state().wait(holder, amount, turn);
        // Something can have been given back between the two.
        self.grant();
        Err(receiver)
    }

    /// Takes an amount; waits a moment until the holder may have it. `None` when it may not.
    pub(crate) async fn take(self: &Arc<Self>, holder: Holder, amount: usize) -> Option<Part> {
        match self.queue(holder, amount) {
            Ok(part) => Some(part),
            Err(turn) => match timeout(PATIENCE, turn).await {
                Ok(part) => part.ok(),
                // It may have waited behind one that wants more.
                Err(_) => self.try_take(holder, amount),
            },
        }
    }

    /// Whether a group may have anything more.
    pub(crate) fn has_room(&self, group: Holder) -> bool {
        // Nobody has more than what is taken, so most requests need no lock.
        if self.taken.load(Relaxed) < self.most / 2 {
            return true;
        }
        let state = self.state();
        state.need(group) < self.free(&state)
    }

    /// Waits until nothing is taken.
    pub(crate) async fn until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.state().taken == 0 {
                return;
            }
            idle.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self, state: &State) -> usize {
        self.most.saturating_sub(state.taken)
    }

    fn add(self: &Arc<Self>, state: &mut State, holder: Holder, amount: usize) -> Part {
        state.change(holder, |member| member.taken = member.taken.saturating_add(amount));
        self.taken.store(state.taken, Relaxed);
        Part { of: Arc::clone(self), holder, amount }
    }

    /// Gives those that wait what they may have.
    fn grant(self: &Arc<Self>) {
        let (mut granted, mut state) = (Vec::new(), self.state());
        while let free = self.free(&state)
            && let Some((holder, waiter)) = state.next(free)
        {
            if !waiter.turn.is_closed() {
                granted.push((waiter.turn, self.add(&mut state, holder, waiter.amount)));
            }
        }
        drop(state);
        // One that has just stopped to wait drops its part, which locks again.
        for (turn, part) in granted {
            let _ = turn.send(part);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut state = self.of.state();
        state.change(self.holder, |member| member.taken -= self.amount);
        self.of.taken.store(state.taken, Relaxed);
        if state.taken == 0 {
            self.of.idle.notify_waiters();
        }
        let somebody_waits = !state.queue.is_empty();
        drop(state);
        if somebody_waits {
            self.of.grant();
        }
    }
}

/// The order among those that wait: their need, then their number in the order of arrival.
type Place = (usize, u64);

/// What is taken, and who waits.
#[derive(Debug, Default)]
struct State {
    taken: usize,
    groups: HashMap<u128, Group>,
    /// The groups with members that wait, each at the place of its first member.
    queue: BTreeMap<Place, u128>,
    arrivals: u64,
}

/// It is there while it has something or a member waits.
#[derive(Debug, Default)]
struct Group {
    taken: usize,
    members: HashMap<Option<u128>, Member>,
    /// The members that wait, without what the group has.
    waiting: BTreeMap<Place, Option<u128>>,
}

#[derive(Debug, Default)]
struct Member {
    taken: usize,
    waiters: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    arrival: u64,
    amount: usize,
    turn: oneshot::Sender<Part>,
}

impl Group {
    fn place(&self) -> Option<Place> {
        self.waiting.first_key_value().map(|((need, arrival), _)| (self.taken.saturating_add(*need), *arrival))
    }
}

impl Member {
    /// What counts beside what the group has.
    fn own(&self, holder: Holder) -> usize {
        if holder.member.is_some() { self.taken } else { 0 }
    }

    fn place(&self, holder: Holder) -> Option<Place> {
        self.waiters.front().map(|first| (self.own(holder).saturating_add(first.amount), first.arrival))
    }
}

impl State {
    /// What a holder has, as it counts.
    fn need(&self, holder: Holder) -> usize {
        let Some(group) = self.groups.get(&holder.group) else { return 0 };
        group.taken + group.members.get(&holder.member).map_or(0, |member| member.own(holder))
    }

    fn wait(&mut self, holder: Holder, amount: usize, turn: oneshot::Sender<Part>) {
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.change(holder, |member| {
            while member.waiters.front().is_some_and(|first| first.turn.is_closed()) {
                member.waiters.pop_front();
            }
            member.waiters.push_back(Waiter { arrival, amount, turn });
        });
    }

    /// Removes the one with the smallest need from those that wait, if that is free.
    fn next(&mut self, free: usize) -> Option<(Holder, Waiter)> {
        let ((need, _), group) = self.queue.first_key_value()?;
        if *need > free {
            return None;
        }
        let (_, member) = self.groups.get(group)?.waiting.first_key_value()?;
        let holder = Holder { group: *group, member: *member };
        let waiter = self.change(holder, |member| member.waiters.pop_front())?;
        Some((holder, waiter))
    }

    /// Changes a member, and what is derived from it.
    fn change<T>(&mut self, holder: Holder, change: impl FnOnce(&mut Member) -> T) -> T {
        let group = self.groups.entry(holder.group).or_default();
        group.place().and_then(|place| self.queue.remove(&place));
        let member = group.members.entry(holder.member).or_default();
        member.place(holder).and_then(|place| group.waiting.remove(&place));
        let before = member.taken;
        let result = change(member);
        group.taken = group.taken - before + member.taken;
        self.taken = self.taken - before + member.taken;
        if let Some(place) = member.place(holder) {
            group.waiting.insert(place, holder.member);
        } else if member.taken == 0 {
            group.members.remove(&holder.member);
        }
        if let Some(place) = group.place() {
            self.queue.insert(place, holder.group);
        } else if group.members.is_empty() {
            self.groups.remove(&holder.group);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use proptest::prelude::*;

    fn endpoint(organization: u128, endpoint: u128) -> Holder {
        Holder::new(organization).member(endpoint)
    }

    fn fill(share: &Arc<FairShare>, holder: Holder) -> Vec<Part> {
        std::iter::from_fn(|| share.try_take(holder, 1)).collect()
    }

    /// Takes parts for these holders in turn, until none gets one.
    fn flood(share: &Arc<FairShare>, holders: &[Holder]) -> Vec<Part> {
        let mut parts = Vec::new();
        loop {
            let before = parts.len();
            parts.extend(holders.iter().filter_map(|holder| share.try_take(*holder, 1)));
            if parts.len() == before {
                return parts;
            }
        }
    }

    fn is_empty(share: &FairShare) -> bool {
        let state = share.state();
        state.taken == 0 && share.taken.load(Relaxed) == 0 && state.groups.is_empty() && state.queue.is_empty()
    }

    #[test]
    fn one_alone_gets_half_and_a_second_one_half_of_the_rest() {
        let share = FairShare::new(64);
        let (first, second) = (fill(&share, Holder::new(1)), fill(&share, Holder::new(2)));
        assert_eq!((first.len(), second.len()), (32, 16));
        drop((first, second));
        assert!(is_empty(&share));
    }

    /// All take turns, as if each gave back and took again: the shares become equal, and one part stays free.
    #[test]
    fn many_that_want_all_get_equal_parts_and_leave_one() {
        let share = FairShare::new(60);
        let mut holders: Vec<(Holder, Vec<Part>)> = (0..5).map(|one| (Holder::new(one), Vec::new())).collect();
        for _ in 0..100 {
            for (holder, parts) in &mut holders {
                parts.pop();
                parts.extend(share.try_take(*holder, 1));
                parts.extend(share.try_take(*holder, 1));
            }
        }
        let sizes: Vec<usize> = holders.iter().map(|(_, parts)| parts.len()).collect();
        assert!(sizes.iter().all(|size| (9..=11).contains(size)), "{sizes:?}");
        assert!(share.try_take(Holder::new(9), 5).is_some(), "{sizes:?}");
    }

    #[test]
    fn one_organization_gets_at_most_half_and_each_of_its_endpoints_as_much() {
        let share = FairShare::new(1024);
        let endpoints: Vec<Holder> = (0..50).map(|one| endpoint(1, one)).collect();
        let parts = flood(&share, &endpoints);
        assert!((500..=512).contains(&parts.len()), "{}", parts.len());
        for one in endpoints {
            let own = parts.iter().filter(|part| part.holder == one).count();
            assert!((9..=11).contains(&own), "{own}");
        }
    }

    #[test]
    fn three_organizations_leave_a_quarter_to_a_fourth() {
        let share = FairShare::new(1024);
        let all: Vec<Holder> = (0..50).flat_map(|one| (1..=3).map(move |owner| endpoint(owner, one))).collect();
        let parts = flood(&share, &all);
        assert!((1024 / 4..1024 / 2).contains(&(1024 - parts.len())), "{} in use", parts.len());
        let fourth: Vec<Part> = (0..100).filter_map(|one| share.try_take(endpoint(4, one), 1)).collect();
        assert_eq!(fourth.len(), 100);
    }

    #[test]
    fn more_than_there_is_is_never_taken_and_leaves_no_trace() {
        let (share, one) = (FairShare::new(100), Holder::new(1));
        assert!(share.try_take(one, 101).is_none() && share.try_take(one, usize::MAX).is_none());
        let held = share.try_take(one, 50);
        assert!(held.is_some() && share.try_take(one, 1).is_none());
        drop(held);
        assert!(share.try_take(one, 100).is_some() && is_empty(&share));
    }

    #[test]
    fn what_is_taken_anyway_leaves_no_room_until_it_is_given_back() {
        let (share, [first, second, third]) = (FairShare::new(100), [1, 2, 3].map(Holder::new));
        let held = share.take_anyway(first, 70);
        assert!(!share.has_room(first) && share.has_room(second));
        let more = share.take_anyway(second, 900);
        assert!(!share.has_room(third) && share.try_take(third, 1).is_none());
        drop((held, more));
        assert!(share.has_room(first) && share.try_take(second, 50).is_some());
    }

    #[test]
    fn an_endpoint_that_has_none_gets_a_part_before_an_endpoint_that_has_many() {
        let share = FairShare::new(4);
        let mut held = fill(&share, Holder::new(1));
        held.extend([2, 3, 4].map(|one| share.take_anyway(Holder::new(one), 1)));
        let mut has_two = share.queue(Holder::new(1), 1).expect_err("nothing is free");
        let mut has_none = share.queue(Holder::new(5), 1).expect_err("nothing is free");
        held.pop();
        held.pop();
        assert!(has_none.try_recv().is_ok() && has_two.try_recv().is_err());
    }

    #[test]
    fn equal_needs_are_served_in_the_order_of_arrival() {
        let share = FairShare::new(1);
        let mut last = share.try_take(Holder::new(9), 1).expect("all is free");
        let mut waiting = [3, 1, 2].map(|one| share.queue(Holder::new(one), 1).expect_err("nothing is free"));
        for next in 0..3 {
            drop(last);
            last = waiting[next].try_recv().expect("its turn");
            assert!(waiting[next + 1..].iter_mut().all(|later| later.try_recv().is_err()));
        }
    }

    #[tokio::test]
    async fn one_that_waits_gets_what_is_given_back_and_else_nothing() {
        let (share, one) = (FairShare::new(4), Holder::new(1));
        let mut held = fill(&share, one);
        assert!(share.take(one, 1).await.is_none());
        let give_back = async {
            tokio::task::yield_now().await;
            held.clear();
        };
        let (first, second, ()) = tokio::join!(share.take(one, 1), share.take(one, 1), give_back);
        assert!(first.is_some() && second.is_some());
        drop((first, second));
        assert!(is_empty(&share));
    }

    #[tokio::test]
    async fn one_that_waited_behind_another_tries_once_more_at_the_end() {
        let (share, one) = (FairShare::new(8), Holder::new(1));
        let held = [share.try_take(one, 2), share.try_take(one, 2)];
        let large = share.queue(one, 9).expect_err("too much");
        let mut small = Box::pin(share.take(one, 2));
        assert!(small.as_mut().now_or_never().is_none());
        drop(held);
        assert!(small.await.is_some());
        drop(large);
    }

    /// Those that stopped to wait keep nothing, and no memory.
    #[test]
    fn many_refused_requests_leave_nothing_behind() {
        let (share, one) = (FairShare::new(2), Holder::new(1));
        let held = fill(&share, one);
        (0..1000).for_each(|_| drop(share.queue(one, 1)));
        assert_eq!(share.state().groups[&1].members[&None].waiters.len(), 1);
        drop(held);
        assert!(is_empty(&share));
    }

    proptest! {
        /// Random operations, against a model that reads everything.
        #[test]
        fn parts_are_conserved_and_nobody_waits_who_may_have_one(
            most in 1usize..40,
            steps in proptest::collection::vec((0u8..3, 0u128..4, 0u128..4, 1usize..4), 1..200),
        ) {
            let share = FairShare::new(most);
            let mut used: Vec<Part> = Vec::new();
            let mut waiting: Vec<(Holder, usize, oneshot::Receiver<Part>)> = Vec::new();
            for (what, group, member, amount) in steps {
                // Who wants more than there is waits in vain.
                let amount = amount.min(most);
                let holder = if member == 0 { Holder::new(group) } else { endpoint(group, member) };
                match what {
                    0 if used.iter().any(|part| part.holder == holder) => {
                        drop(used.swap_remove(used.iter().position(|part| part.holder == holder).unwrap()));
                    }
                    _ if waiting.iter().any(|(one, ..)| *one == holder) => {}
                    _ => match share.queue(holder, amount) {
                        Ok(part) => used.push(part),
                        Err(turn) => waiting.push((holder, amount, turn)),
                    },
                }
                waiting.retain_mut(|(_, _, turn)| turn.try_recv().map(|part| used.push(part)).is_err());
                let sum = |is: &dyn Fn(Holder) -> bool| -> usize {
                    used.iter().filter(|part| is(part.holder)).map(|part| part.amount).sum()
                };
                let need = |holder: Holder| {
                    let own = holder.member.map_or(0, |_| sum(&|one| one == holder));
                    sum(&|one| one.group == holder.group) + own
                };
                let taken = sum(&|_| true);
                prop_assert_eq!(share.state().taken, taken);
                prop_assert!(taken <= most);
                for (holder, amount, _) in &waiting {
                    prop_assert!(need(*holder) + amount > most - taken, "somebody waits in vain");
                }
            }
            waiting.clear();
            used.clear();
            prop_assert!(is_empty(&share), "{:?}", share);
        }
    }
}
