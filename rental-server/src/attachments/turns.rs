//! In which order the marks of vehicles are handled: organizations take turns, and within a turn the marks of one.

use futures_util::future::{BoxFuture, join_all};
use rental_core::{
    error::Error,
    rows::{Row, key},
    store::{Key, Record, Scanned, Store, StoreError, key_of},
    value::OrganizationId,
};
use std::collections::{HashMap, HashSet};

/// Marks that have a step at the same time. Each step waits for its durable commit, and commits that wait together become one.
const AT_ONCE: usize = 8;
/// Marks that are read at a time.
const PAGE: usize = 3 * AT_ONCE;

/// How a step of a mark ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ended {
    /// The mark has more steps.
    More,
    /// The mark was removed.
    Done,
    /// The step failed, or another server does it.
    Later,
}

/// What is done with marks.
pub(super) trait Work: Send + Sync {
    /// An organization has its turn.
    fn begin_turn(&mut self);
    /// Whether the turn is not over.
    fn has_time(&self) -> bool;
    /// The marks that are not damaged.
    fn sound(&self, page: Vec<Scanned>) -> Vec<Record>;
    /// The rows of a scan; none when damaged pages are all that it found.
    fn rows(&self, scanned: Result<Vec<Scanned>, StoreError>) -> Result<Vec<Scanned>, StoreError>;
    /// Does one step of a mark.
    fn step<'a>(&'a self, mark: &'a Record) -> BoxFuture<'a, Ended>;
}

/// The last mark that had a step in the turn of each organization, unless all marks of the organization had one.
#[derive(Default)]
pub(super) struct Turns {
    last: HashMap<OrganizationId, Key>,
}

impl Turns {
    /// Gives each organization that has marks a turn. Returns whether there is more to do now.
    pub(super) async fn round(&mut self, store: &dyn Store, work: &mut impl Work) -> Result<bool, Error> {
        let (mut rest, mut more, mut marked) = (key::rechecks(), false, HashSet::new());
        while let Some(row) = work.rows(store.scan(&rest, 1).await)?.first().map(key_of) {
            let Some(Row::Recheck { organization, .. }) = Row::decode(row) else {
                rest.from = row.next();
                continue;
            };
            rest.from = key::rechecks_of(organization).to;
            marked.insert(organization);
            work.begin_turn();
            more |= self.turn(store, organization, work).await?;
        }
        self.last.retain(|organization, _| marked.contains(organization));
        Ok(more)
    }

    /// Does steps of the marks of an organization, some marks at once and each before one has its next step, until its time is over.
    /// Returns whether there is more to do now.
    async fn turn(
        &mut self,
        store: &dyn Store,
        organization: OrganizationId,
        work: &mut impl Work,
    ) -> Result<bool, Error> {
        let mut is_whole = !self.last.contains_key(&organization);
        let (mut more, mut has_done) = (false, false);
        loop {
            let mut marks = key::rechecks_of(organization);
            if let Some(last) = self.last.get(&organization) {
                marks.from = last.next();
            }
            let page = work.rows(store.scan(&marks, PAGE).await)?;
            let (is_last, end) = (page.len() < PAGE, page.last().map(key_of).cloned());
            for marks in work.sound(page).chunks(AT_ONCE) {
                let ended = join_all(marks.iter().map(|mark| work.step(mark))).await;
                more |= ended.contains(&Ended::More);
                has_done |= ended.iter().any(|ended| *ended != Ended::Later);
                self.last.extend(marks.last().map(|mark| (organization, mark.key.clone())));
                if !work.has_time() {
                    return Ok(has_done);
                }
            }
            self.last.extend(end.map(|end| (organization, end)));
            if is_last {
                self.last.remove(&organization);
                if is_whole && !more {
                    return Ok(false);
                }
                (is_whole, more) = (true, false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rental_core::{
        rows::recheck::{Marked, Recheck},
        store::{Batch, Prior, Write, all_sound, memory::Memory},
        value::VehicleId,
    };
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    /// Marks with so many steps each, in turns of `slice` steps.
    struct Steps<'a> {
        store: &'a Memory,
        left: Mutex<HashMap<Key, usize>>,
        made: Mutex<Vec<Key>>,
        slice: usize,
        in_turn: AtomicUsize,
        running: AtomicUsize,
        /// Most steps that ran at the same time.
        most: AtomicUsize,
        fails: bool,
    }

    impl Work for Steps<'_> {
        fn begin_turn(&mut self) {
            self.in_turn = AtomicUsize::new(0);
        }

        fn has_time(&self) -> bool {
            self.in_turn.load(Ordering::Relaxed) < self.slice
        }

        fn sound(&self, page: Vec<Scanned>) -> Vec<Record> {
            all_sound(page).unwrap()
        }

        fn rows(&self, scanned: Result<Vec<Scanned>, StoreError>) -> Result<Vec<Scanned>, StoreError> {
            scanned
        }

        fn step<'a>(&'a self, mark: &'a Record) -> BoxFuture<'a, Ended> {
            Box::pin(async {
                self.in_turn.fetch_add(1, Ordering::Relaxed);
                self.made.lock().unwrap().push(mark.key.clone());
                let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
                self.most.fetch_max(running, Ordering::Relaxed);
                tokio::task::yield_now().await;
                self.running.fetch_sub(1, Ordering::Relaxed);
                if self.fails {
                    return Ended::Later;
                }
                let left = {
                    let mut all = self.left.lock().unwrap();
                    let left = all.get_mut(&mark.key).unwrap();
                    *left -= 1;
                    *left
                };
                if left > 0 {
                    return Ended::More;
                }
                let mut batch = Batch::default();
                batch.delete(mark.key.clone());
                self.store.commit(batch).await.unwrap();
                Ended::Done
            })
        }
    }

    async fn marked(store: &Memory, organizations: &[(u128, u128, usize)]) -> HashMap<Key, usize> {
        let mut left = HashMap::new();
        for (organization, vehicles, steps) in organizations {
            for vehicle in 1..=*vehicles {
                let place = key::recheck(
                    OrganizationId::from_u128(*organization),
                    Marked::vehicle(VehicleId::from_u128(vehicle)),
                );
                let mut batch = Batch::default();
                batch.writes.push(Write::Put(place.clone(), 1, Recheck::of_all().value(), Prior::Any));
                store.commit(batch).await.unwrap();
                left.insert(place, *steps);
            }
        }
        left
    }

    fn steps(store: &Memory, left: HashMap<Key, usize>, slice: usize) -> Steps<'_> {
        let [in_turn, running, most] = Default::default();
        Steps { store, left: left.into(), made: Mutex::default(), slice, in_turn, running, most, fails: false }
    }

    #[tokio::test]
    async fn one_organization_with_many_marks_lets_another_one_have_its_turns() {
        let store = Memory::default();
        let left = marked(&store, &[(1, 400, 30), (2, 1, 32)]).await;
        let (mut turns, mut work) = (Turns::default(), steps(&store, left, AT_ONCE));
        let other = key::recheck(OrganizationId::from_u128(2), Marked::vehicle(VehicleId::from_u128(1)));
        let mut rounds = 0;
        while work.left.lock().unwrap()[&other] > 0 {
            assert!(turns.round(&store, &mut work).await.unwrap());
            rounds += 1;
        }
        assert_eq!(rounds, 32 / AT_ONCE, "as many steps in each as the first one has, which does them at once");
        // The first one had the same number of steps, of one vehicle after the other.
        let made: Vec<Key> = work.made.lock().unwrap().iter().filter(|key| **key != other).cloned().collect();
        assert_eq!(made.len(), 32);
        assert!(made.is_sorted_by(|one, next| one < next));
    }

    #[tokio::test]
    async fn every_mark_is_done_and_each_has_a_step_before_one_has_the_next() {
        for slice in [1, 7, 1000] {
            let store = Memory::default();
            let left = marked(&store, &[(1, 45, 3), (2, 20, 1), (3, 1, 50)]).await;
            let (mut turns, mut work) = (Turns::default(), steps(&store, left, slice));
            while turns.round(&store, &mut work).await.unwrap() {}
            assert!(work.left.lock().unwrap().values().all(|left| *left == 0), "{slice}");
            let made: Vec<Key> =
                work.made.lock().unwrap().iter().filter(|key| key.as_bytes()[16] == 1).cloned().collect();
            for pass in made.chunks(45) {
                assert!(pass.len() == 45 && pass.is_sorted_by(|one, next| one < next), "{slice}");
            }
            assert_eq!(*work.most.get_mut(), AT_ONCE, "they wait for their commits together");
            turns.round(&store, &mut work).await.unwrap();
            assert!(turns.last.is_empty());
        }
    }

    #[tokio::test]
    async fn marks_that_fail_are_left_for_later_and_keep_none_from_its_step() {
        let store = Memory::default();
        let left = marked(&store, &[(1, 25, 1), (2, 1, 1)]).await;
        let (mut turns, mut work) = (Turns::default(), Steps { fails: true, ..steps(&store, left, 10) });
        for _ in 0..3 {
            assert!(!turns.round(&store, &mut work).await.unwrap(), "the server waits before it tries again");
        }
        let mut made = work.made.lock().unwrap().clone();
        made.sort();
        made.dedup();
        assert_eq!(made.len(), 26);
    }
}
