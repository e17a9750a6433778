//! Derives the tolls and violations of a marked vehicle or number again: who pays for automatic attachments, for what the server
//! detached and for second postings, and of which vehicle they and the undecided ones are.

use super::derivation::{Derived, Deriving};
use crate::{
    error::Error,
    fleet::attribution::Verdict,
    operations::{self, Edge, recheck::automatic},
    resources::{
        Attributable, Payer, Resource, derived_events,
        organization::{Organization, SYSTEM},
        parse,
        toll::Toll,
        violation::Violation,
    },
    rows::{
        Row,
        recheck::{Marked, Recheck, absorb},
    },
    store::{Batch, Check, Commit, DamagedRow, Key, Record, Span, Store, Write, get_each, get_one, key_of},
    tasks::Step,
    value::{Id, OrganizationId, Text},
};

/// Tolls and violations that one batch derives again.
pub const PAGE: usize = 32;

/// Derives the next tolls and violations of the vehicle or number that `record` marks, and commits them with the progress of
/// the mark. Damaged rows that the step skips are added to `damaged`.
///
/// # Errors
/// The store is not available, or `record` is no mark.
pub async fn step(
    store: &dyn Store,
    edge: &dyn Edge,
    record: &Record,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Step, Error> {
    let (Some(Row::Recheck { organization, marked }), mark) = (Row::decode(&record.key), Recheck::read(record)?) else {
        return Err(Error::damaged_row(&record.key, "it is no mark of a vehicle or number"));
    };
    let Some(owner) = get_one(store, &Organization::key(SYSTEM, organization)).await? else {
        // The task that deletes the organization removes the mark.
        return Ok(Step::Done);
    };
    let owner: Organization = parse(&owner.key, &owner.value)?;
    // A change of a rental or a number that it keeps marks the vehicle or number again, and then the batch is not committed.
    let (batch, deriving) = (Batch::default(), Deriving::new(store, &owner));
    let mut round = Round { store, edge, owner: &owner, marked, batch, deriving, last: None, room: PAGE, damaged };
    let all = async {
        round.derive_next::<Toll>(&mark).await?;
        round.derive_next::<Violation>(&mark).await
    };
    match all.await {
        Ok(()) => {}
        // Somebody billed one of them since it was read.
        Err(Error::Conflict(_)) => return Ok(Step::Overtaken),
        Err(error) => return Err(error),
    }
    let Round { mut batch, last, room, .. } = round;
    let is_done = room > 0;
    let is_marked_again = batch.writes.iter().any(|write| matches!(write, Write::Put(key, ..) if *key == record.key));
    let is_done = is_done && !is_marked_again;
    match last.filter(|_| !is_done) {
        // One of them no longer is a posting of this vehicle, so others that were handled before can change.
        _ if is_marked_again => {}
        Some(last) => {
            let after = Some(hex::encode(last.as_bytes()));
            batch.replace(record.key.clone(), record.revision, Recheck { from: mark.from, after }.value());
        }
        None => {
            batch.checks.push(Check::At(record.key.clone(), record.revision));
            batch.delete(record.key.clone());
        }
    }
    Ok(match operations::commit_for(store, organization, batch).await {
        Ok(Commit::Applied) if is_done => Step::Done,
        Ok(Commit::Applied) => Step::Continue,
        Ok(Commit::Stale(key)) if key == record.key => Step::Overtaken,
        // Another change of what the step read: the next step reads it again.
        Ok(Commit::Stale(_)) => Step::Continue,
        Err(Error::NotFound { .. }) => Step::Done,
        Err(error) => return Err(error),
    })
}

/// One batch of a mark.
struct Round<'a> {
    store: &'a dyn Store,
    edge: &'a dyn Edge,
    owner: &'a Organization,
    marked: Marked,
    batch: Batch,
    deriving: Deriving<'a>,
    /// The index entry of the last attachment that was handled.
    last: Option<Key>,
    /// How many more attachments the batch can have.
    room: usize,
    damaged: &'a mut Vec<DamagedRow>,
}

impl Round<'_> {
    /// Derives the next attachments of one resource, as far as the batch has room.
    async fn derive_next<T: Attributable>(&mut self, mark: &Recheck) -> Result<(), Error> {
        let span = rest::<T>(self.owner.id, self.marked, mark);
        if self.room == 0 || span.from >= span.to {
            return Ok(());
        }
        let entries = self.store.scan(&span, self.room).await?;
        let ids = entries.iter().map(|row| key_of(row).id().unwrap_or_default());
        let places: Vec<Key> = ids.map(|id| T::key(self.owner.id, Id::from_uuid(id))).collect();
        let found = get_each(self.store, &places).await?;
        for (entry, found) in entries.iter().zip(found) {
            match found {
                Ok(Some(record)) => {
                    Error::note_damage(self.derive_one::<T>(record).await, self.damaged)?;
                }
                Ok(None) => {}
                Err(row) => self.damaged.push(*row),
            }
            self.room -= 1;
            self.last = Some(key_of(entry).clone());
        }
        Ok(())
    }

    async fn derive_one<T: Attributable>(&mut self, record: Record) -> Result<(), Error> {
        let object: T = parse(&record.key, &record.value)?;
        let before = object.payer();
        if !object.is_derived_again() && !object.is_undecided() {
            return Ok(());
        }
        let derived = self.deriving.derive(&object).await?;
        let billed = object.billed().is_some();
        let mut after = if before.is_second_posting() || object.is_undecided() {
            // It is never attached here; only its vehicle and its reason follow.
            derived.without_customer(&object)
        } else if billed {
            billed_payer(&before, &derived)
        } else {
            derived.payer()
        };
        if before.customer.is_some() && after.customer.is_none() {
            // What is attached comes before its twin, and what is not comes behind it.
            let mut free = object.clone();
            free.set_payer(after.clone());
            after = self.deriving.derive(&free).await?.without_customer(&free);
        }
        if after.review.is_none() {
            after.review = operations::bill_review(self.store, self.owner.id, &object).await?;
        }
        // What had a customer keeps the vehicle that was known last.
        let kept = object.known_vehicle().filter(|_| after != Payer::default());
        let vehicle = derived.vehicle.filter(|_| !billed).or(kept);
        if after == before && vehicle == object.known_vehicle() {
            return Ok(());
        }
        let now = self.edge.now();
        let rule = |object: &mut T| {
            let events = derived_events::<T>(before.customer, after.customer);
            *object.vehicle() = vehicle;
            object.set_payer(after);
            object.touch(now);
            Ok(events)
        };
        let prepared = operations::edit(self.store, self.edge, self.owner, record, rule).await?;
        absorb(&mut self.batch, prepared.batch);
        Ok(())
    }
}

/// The index entries that a mark has not handled.
fn rest<T: Resource>(organization: OrganizationId, marked: Marked, mark: &Recheck) -> Span {
    let mut span = automatic(organization, T::SPEC, marked, mark.from);
    if let Some(after) = mark.after.as_ref().and_then(|text| hex::decode(text).ok()) {
        span.from = span.from.max(Key::from(after).next());
    }
    span
}

/// The payer of what an invoice bills: it keeps its customer, and says why a person has to look at it.
fn billed_payer(before: &Payer, derived: &Derived) -> Payer {
    let clear = derived.clear();
    if clear.is_some_and(|one| Some(one.customer) == before.customer) {
        return Payer { review: None, ..before.clone() };
    }
    let now = match (clear, &derived.verdict) {
        (Some(_), _) => "another customer pays",
        (None, Verdict::Nobody(..)) => "nobody pays",
        (None, _) => "it is unclear who pays",
    };
    let review = format!("An invoice bills it, but by what is recorded now {now}: {}", derived.reason());
    Payer { review: Some(Text::fit(&review, 255)), ..before.clone() }
}
