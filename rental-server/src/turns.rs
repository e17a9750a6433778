//! The connections of organizations take turns.
//!
//! The runtime polls the tasks that are ready in the order in which they became ready. An organization with five hundred
//! requests would be five hundred places before another one with a single request. So, while more than one party is active,
//! the connections of each party have a few turns in a round; the others wait in a queue of their party. A round ends when
//! the runtime has looked for new requests and polled what was ready. So a request waits for a few turns of each other
//! party, however many requests they have, and no processor is idle while there is one.
//!
//! A party is an organization. All connections that have shown no valid key yet are one, and all operators are one.

use crate::contest::{Contender, Contest};
use arc_swap::ArcSwap;
use prometheus_client::metrics::counter::Counter;
use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    mem,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::{Poll, Waker},
    time::Instant,
};

/// Turns of a party in a round, for each processor. With 4, a request beside a flood waited longer (p99 1.9 instead of 1.2 ms), and the
/// flood got no more.
const TURNS: u64 = 2;
/// Bits of a party's state that count turns. The others are the round.
const COUNT_BITS: u32 = 16;

/// All that take turns.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Turns of a party in a round.
    each: u64,
    round: AtomicU64,
    /// Parties are active when they have turns.
    parties: Contest,
    waiting: Mutex<Waiting>,
    /// The party of connections that belong to no other one yet.
    strangers: Arc<Party>,
    waits: Counter,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The parties with connections that wait.
    parties: Vec<Arc<Party>>,
    /// Whether a task ends the rounds. There is one while connections wait.
    paced: bool,
}

/// Connections that share their turns.
#[derive(Debug, Default)]
pub(crate) struct Party {
    /// The round of its last turn, and its turns in that round.
    turns: AtomicU64,
    contender: Contender,
    /// The connections that wait, while the party is in the list of [`Waiting`].
    waiting: Mutex<VecDeque<Arc<Place>>>,
}

/// The place of a connection in the queue.
#[derive(Debug)]
struct Place {
    waker: Waker,
    /// Whether it has a turn.
    called: AtomicBool,
}

/// A connection's party.
#[derive(Debug)]
pub(crate) struct Member {
    turns: Arc<Turns>,
    party: ArcSwap<Party>,
}

impl Turns {
    /// `waits` counts how often a connection has waited.
    pub(crate) fn new(waits: Counter) -> Arc<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        Self::of((TURNS * processors).min((1 << COUNT_BITS) - 1), Instant::now(), waits)
    }

    /// `each`: turns of a party in a round.
    fn of(each: u64, begun: Instant, waits: Counter) -> Arc<Self> {
        Arc::new(Self {
            each,
            round: AtomicU64::new(1),
            parties: Contest::new(begun),
            waiting: Mutex::default(),
            strangers: Arc::default(),
            waits,
        })
    }

    /// A connection that belongs to no party yet.
    pub(crate) fn member(self: &Arc<Self>) -> Arc<Member> {
        Arc::new(Member { turns: Arc::clone(self), party: ArcSwap::new(Arc::clone(&self.strangers)) })
    }

    /// Takes a turn for the party if it has one left, or no other party is active.
    fn take(&self, party: &Party) -> bool {
        self.parties.acts(&party.contender);
        let round = self.round.load(Relaxed) << COUNT_BITS;
        // Two processors may count two turns as one: nothing depends on the exact number.
        let used = party.turns.load(Relaxed).saturating_sub(round);
        if used >= self.each && self.parties.is_contested(&party.contender) {
            return false;
        }
        party.turns.store(round + used % self.each + 1, Relaxed);
        true
    }

    /// A place in the queue of the party.
    fn wait(self: &Arc<Self>, party: &Arc<Party>, waker: &Waker) -> Arc<Place> {
        self.waits.inc();
        let place = Arc::new(Place { waker: waker.clone(), called: AtomicBool::new(false) });
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut queue = party.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.is_empty() {
            waiting.parties.push(Arc::clone(party));
        }
        queue.push_back(Arc::clone(&place));
        if !mem::replace(&mut waiting.paced, true) {
            tokio::spawn(Arc::clone(self).pace());
        }
        place
    }

    /// Ends rounds until no connection waits.
    async fn pace(self: Arc<Self>) {
        let mut called = Vec::new();
        loop {
            // What is ready is polled first, and the runtime looks for new requests.
            tokio::task::yield_now().await;
            let goes_on = self.call(&mut called);
            called.drain(..).for_each(|place: Arc<Place>| {
                place.called.store(true, Release);
                place.waker.wake_by_ref();
            });
            if !goes_on {
                return;
            }
        }
    }

    /// Begins a round: the first of each party have their turns. Whether others still wait.
    fn call(&self, called: &mut Vec<Arc<Place>>) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let round = self.round.fetch_add(1, Relaxed) + 1;
        waiting.parties.retain(|party| {
            let mut queue = party.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let turns = queue.len().min(self.each as usize);
            called.extend(queue.drain(..turns));
            party.turns.store((round << COUNT_BITS) + turns as u64, Relaxed);
            !queue.is_empty()
        });
        waiting.paced = !waiting.parties.is_empty();
        waiting.paced
    }
}

impl Member {
    /// The connection belongs to this party from now on.
    pub(crate) fn join(&self, party: &Arc<Party>) {
        if !Arc::ptr_eq(&self.party.load(), party) {
            self.party.store(Arc::clone(party));
        }
    }

    /// Polls a future only when it is the party's turn. It must be all of its task.
    pub(crate) async fn in_turn<F: Future>(self: Arc<Self>, future: F) -> F::Output {
        let (mut future, mut place) = (pin!(future), None::<Arc<Place>>);
        poll_fn(|context| {
            match &place {
                Some(waiting) if !waiting.called.load(Acquire) => return Poll::Pending,
                Some(_) => place = None,
                None => {
                    let party = self.party.load();
                    if !self.turns.take(&party) {
                        place = Some(self.turns.wait(&party, context.waker()));
                        return Poll::Pending;
                    }
                }
            }
            future.as_mut().poll(context)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::task::{JoinSet, yield_now};

    /// Who was served, in order.
    type Served = Arc<Mutex<Vec<&'static str>>>;

    /// A connection with one request, which is ready.
    fn request(
        turns: &Arc<Turns>,
        party: &Arc<Party>,
        name: &'static str,
        served: &Served,
    ) -> impl Future<Output = ()> + use<> {
        let (member, served) = (turns.member(), Arc::clone(served));
        member.join(party);
        member.in_turn(async move { served.lock().expect("no test panics with it").push(name) })
    }

    /// Two parties that had a turn a moment ago.
    async fn two_parties(turns: &Arc<Turns>) -> [Arc<Party>; 2] {
        let parties = [Arc::default(), Arc::default()];
        for party in parties.iter().chain(&parties) {
            request(turns, party, "before", &Served::default()).await;
        }
        parties
    }

    #[tokio::test]
    async fn one_request_waits_for_a_few_of_another_party_that_has_many() {
        let (turns, served) = (Turns::of(8, Instant::now(), Counter::default()), Served::default());
        let [large, small] = two_parties(&turns).await;
        let mut tasks = JoinSet::new();
        for _ in 0..500 {
            tasks.spawn(request(&turns, &large, "large", &served));
        }
        tasks.spawn(request(&turns, &small, "small", &served));
        tasks.join_all().await;
        let served = served.lock().expect("no task panics");
        let before = served.iter().position(|name| *name == "small").expect("it was served");
        assert!(before <= 16, "it waited for {before}");
        assert_eq!(served.len(), 501);
    }

    #[tokio::test]
    async fn alone_nobody_waits() {
        let (turns, served) =
            (Turns::of(8, Instant::now() - Duration::from_secs(2), Counter::default()), Served::default());
        let party = Arc::default();
        for _ in 0..20 {
            request(&turns, &party, "before", &served).await;
        }
        party.contender.forget_contests();
        let waits = turns.waits.get();
        let tasks: JoinSet<()> = (0..500).map(|_| request(&turns, &party, "large", &served)).collect();
        assert_eq!(tasks.join_all().await.len(), 500);
        assert_eq!(turns.waits.get(), waits);
    }

    #[tokio::test]
    async fn connections_that_are_closed_while_they_wait_keep_no_place() {
        let (turns, served) = (Turns::of(2, Instant::now(), Counter::default()), Served::default());
        let [large, _small] = two_parties(&turns).await;
        let (mut closed, mut open) = (JoinSet::new(), JoinSet::new());
        for _ in 0..50 {
            closed.spawn(request(&turns, &large, "closed", &served));
            open.spawn(request(&turns, &large, "open", &served));
        }
        yield_now().await;
        closed.shutdown().await;
        open.join_all().await;
        let open = served.lock().expect("no task panics").iter().filter(|name| **name == "open").count();
        assert_eq!(open, 50);
        let waiting = turns.waiting.lock().expect("no task panics");
        assert!(
            waiting.parties.is_empty() && !waiting.paced && large.waiting.lock().expect("no task panics").is_empty()
        );
    }
}
