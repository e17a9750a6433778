//! What this server has counted, what it has saved of that, and what the other servers have saved. No I/O.

use rental_core::{
    rows::{
        key,
        usage::{Amount, Head},
    },
    store::{Batch, Change, Check, Key, Prior, Revision, Write},
    value::{OrganizationId, ServerId},
};
use serde::Serialize;
use std::collections::{HashMap, hash_map::Entry};
use uuid::Uuid;

/// Most organizations whose rows one batch changes.
pub(super) const MOST_ROWS: usize = 500;
/// Turns without a change after which the head says that everything is saved.
const QUIET_TURNS: u32 = 5;

/// The counts of all organizations, as this server knows them.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// The revision of the head of this server's rows; 0 while there is none.
    pub(super) head: Revision,
    /// What the head says.
    state: Head,
    /// Turns since the last change.
    quiet: u32,
    /// What the rows of this server say.
    pub(super) saved: HashMap<OrganizationId, Amount>,
    /// What the rows of this server do not say yet.
    pending: HashMap<OrganizationId, Amount>,
    /// What the rows of all other servers say together.
    pub(super) others: HashMap<OrganizationId, Amount>,
    /// What has changed in the organization that is recounted, since its recount began.
    watched: Option<(OrganizationId, Change)>,
}

/// A batch that saves counts, and what it saves.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) batch: Batch,
    /// The revision of the head after it.
    pub(super) head: Revision,
    state: Head,
    saves: Vec<(OrganizationId, Amount)>,
}

/// The sum of two amounts.
pub(super) fn sum(one: Amount, other: Amount) -> Amount {
    Amount { objects: one.objects.saturating_add(other.objects), bytes: one.bytes.saturating_add(other.bytes) }
}

/// The amount that `one` has more than `other`.
pub(super) fn difference(one: Amount, other: Amount) -> Amount {
    Amount { objects: one.objects.saturating_sub(other.objects), bytes: one.bytes.saturating_sub(other.bytes) }
}

fn add(amounts: &mut HashMap<OrganizationId, Amount>, organization: OrganizationId, amount: Amount) {
    match amounts.entry(organization) {
        Entry::Vacant(place) => drop(place.insert(amount)),
        Entry::Occupied(mut place) => {
            let sum = sum(*place.get(), amount);
            if sum == Amount::default() {
                place.remove();
            } else {
                *place.get_mut() = sum;
            }
        }
    }
}

/// The write of a row; the removal of one that says nothing.
fn row(key: Key, amount: Amount) -> Write {
    match amount == Amount::default() {
        true => Write::Delete(key),
        false => Write::Put(key, 0, json(&amount), Prior::Any),
    }
}

/// JSON of a value of one of these rows. It always can be written.
pub(super) fn json(value: &impl Serialize) -> bytes::Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// The check that a head has this revision; 0 for no head.
pub(super) fn head_is(server: ServerId, revision: Revision) -> Check {
    let head = key::usage(server, OrganizationId::nil());
    if revision == 0 { Check::Absent(head) } else { Check::At(head, revision) }
}

/// The write of a head.
pub(super) fn head_row(server: ServerId, revision: Revision, state: Head) -> Write {
    Write::Put(key::usage(server, OrganizationId::nil()), revision, json(&state), Prior::Any)
}

impl Book {
    /// Adds what the store has counted; gives the organizations that it concerns.
    pub(super) fn add(&mut self, changes: HashMap<Uuid, Change>) -> Vec<OrganizationId> {
        let mut changed = Vec::with_capacity(changes.len());
        for (owner, change) in changes {
            let organization = OrganizationId::from_uuid(owner);
            if let Some((watched, all)) = &mut self.watched
                && *watched == organization
            {
                all.add(change);
            }
            self.correct(organization, Amount { objects: change.objects, bytes: change.bytes });
            changed.push(organization);
        }
        changed
    }

    /// Adds an amount that is not saved yet.
    pub(super) fn correct(&mut self, organization: OrganizationId, amount: Amount) {
        if amount != Amount::default() {
            self.quiet = 0;
            add(&mut self.pending, organization, amount);
        }
    }

    /// What an organization uses.
    pub(super) fn used(&self, organization: OrganizationId) -> Amount {
        let of = |amounts: &HashMap<OrganizationId, Amount>| amounts.get(&organization).copied().unwrap_or_default();
        sum(sum(of(&self.saved), of(&self.pending)), of(&self.others))
    }

    /// All organizations with an amount.
    pub(super) fn organizations(&self) -> Vec<OrganizationId> {
        let mut all: Vec<_> =
            [&self.saved, &self.pending, &self.others].into_iter().flat_map(HashMap::keys).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Begins to note what changes in an organization; gives what the other servers have saved of it.
    pub(super) fn watch(&mut self, organization: OrganizationId) -> Amount {
        self.watched = Some((organization, Change::default()));
        self.others.get(&organization).copied().unwrap_or_default()
    }

    /// What has changed in the organization since [`Book::watch`].
    pub(super) fn watched(&mut self) -> Change {
        self.watched.take().map(|(_, change)| change).unwrap_or_default()
    }

    /// The next batch that saves counts. Without any, the head is written after a few turns, or at once when the server stops.
    pub(super) fn step(&mut self, server: ServerId, stopping: bool) -> Option<Step> {
        let saves: Vec<_> = self.pending.iter().take(MOST_ROWS).map(|(id, amount)| (*id, *amount)).collect();
        let state = match (saves.is_empty(), stopping) {
            (false, _) => Head::Counting,
            (true, true) if self.head > 0 && self.state != Head::Stopped => Head::Stopped,
            (true, false) if self.head > 0 && !matches!(self.state, Head::Settled | Head::Stopped) => {
                self.quiet += 1;
                (self.quiet > QUIET_TURNS).then_some(Head::Settled)?
            }
            _ => return None,
        };
        let rows = saves.iter().map(|(id, amount)| {
            row(key::usage(server, *id), sum(self.saved.get(id).copied().unwrap_or_default(), *amount))
        });
        let head = self.head + 1;
        let writes = rows.chain([head_row(server, head, state)]).collect();
        Some(Step { batch: Batch { checks: vec![head_is(server, self.head)], writes }, head, state, saves })
    }

    /// Notes that a step is saved.
    pub(super) fn saved(&mut self, step: &Step) {
        for (organization, amount) in &step.saves {
            add(&mut self.saved, *organization, *amount);
        }
        self.no_longer_pending(step);
        (self.head, self.state) = (step.head, step.state);
    }

    /// Sets what the rows of this server say, as they were read; `step` is saved if the head says so.
    pub(super) fn read_again(
        &mut self,
        (head, state): (Revision, Head),
        saved: HashMap<OrganizationId, Amount>,
        step: Option<&Step>,
    ) {
        if let Some(step) = step
            && (head, state) == (step.head, step.state)
        {
            self.no_longer_pending(step);
        }
        (self.head, self.state, self.saved) = (head, state, saved);
    }

    fn no_longer_pending(&mut self, step: &Step) {
        for (organization, amount) in &step.saves {
            add(&mut self.pending, *organization, difference(Amount::default(), *amount));
        }
    }

    /// The writes that add amounts of another server to the rows of this one.
    pub(super) fn adopting(&self, server: ServerId, amounts: &[(OrganizationId, Amount)]) -> Batch {
        let rows = amounts.iter().map(|(id, amount)| {
            row(key::usage(server, *id), sum(self.saved.get(id).copied().unwrap_or_default(), *amount))
        });
        let writes = rows.chain([head_row(server, self.head + 1, Head::Counting)]).collect();
        Batch { checks: vec![head_is(server, self.head)], writes }
    }

    /// Notes that amounts of another server are now in the rows of this one.
    pub(super) fn adopted(&mut self, amounts: &[(OrganizationId, Amount)]) {
        (self.head, self.state, self.quiet) = (self.head + 1, Head::Counting, 0);
        for (organization, amount) in amounts {
            add(&mut self.saved, *organization, *amount);
            add(&mut self.others, *organization, difference(Amount::default(), *amount));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ServerId = ServerId::from_u128(1);

    fn counted(objects: i64, bytes: i64) -> HashMap<Uuid, Change> {
        let change =
            Change { objects, bytes, objects_touched: objects.unsigned_abs(), bytes_touched: bytes.unsigned_abs() };
        HashMap::from([(Uuid::from_u128(7), change)])
    }

    fn used(book: &Book) -> (i64, i64) {
        let used = book.used(OrganizationId::from_u128(7));
        (used.objects, used.bytes)
    }

    #[test]
    fn what_is_saved_is_not_saved_again_and_nothing_is_lost_meanwhile() {
        let mut book = Book::default();
        book.add(counted(2, 200));
        let step = book.step(SERVER, false).expect("there is something to save");
        book.add(counted(1, 50));
        book.saved(&step);
        assert_eq!(used(&book), (3, 250));
        let next = book.step(SERVER, false).expect("the rest");
        assert_eq!(next.saves, [(OrganizationId::from_u128(7), Amount { objects: 1, bytes: 50 })]);
        assert_eq!(next.batch.checks, [head_is(SERVER, 1)]);
        book.saved(&next);
        assert_eq!(used(&book), (3, 250));
    }

    #[test]
    fn an_idle_server_writes_its_head_once() {
        let mut book = Book::default();
        assert!(book.step(SERVER, true).is_none(), "a server that counted nothing has no rows");
        book.add(counted(1, 1));
        let step = book.step(SERVER, false).expect("the count");
        book.saved(&step);
        let steps: Vec<Step> =
            (0..100).filter_map(|_| book.step(SERVER, false).inspect(|step| book.saved(step))).collect();
        assert_eq!(steps.iter().map(|step| step.state).collect::<Vec<_>>(), [Head::Settled]);
        let last = book.step(SERVER, true).expect("the head");
        assert_eq!(last.state, Head::Stopped);
        book.saved(&last);
        assert!(book.step(SERVER, true).is_none(), "the head already says that the server has stopped");
    }

    #[test]
    fn a_commit_of_unknown_outcome_counts_once() {
        let (id, amount) = (OrganizationId::from_u128(7), Amount { objects: 2, bytes: 200 });
        for happened in [true, false] {
            let mut book = Book::default();
            book.add(counted(2, 200));
            let step = book.step(SERVER, false).expect("the count");
            let (head, saved) = if happened { (1, HashMap::from([(id, amount)])) } else { (0, HashMap::new()) };
            book.read_again((head, Head::Counting), saved, Some(&step));
            assert_eq!(used(&book), (2, 200), "{happened}");
            assert_eq!(book.step(SERVER, false).is_none_or(|step| step.saves.is_empty()), happened);
        }
    }

    #[test]
    fn adopted_amounts_stay_in_the_sum() {
        let (id, amount) = (OrganizationId::from_u128(7), Amount { objects: 2, bytes: 200 });
        let mut book = Book::default();
        book.others.insert(id, amount);
        assert_eq!(used(&book), (2, 200));
        book.adopted(&[(id, amount)]);
        assert_eq!((used(&book), book.others.len()), ((2, 200), 0));
    }
}
