//! One import of a file into one organization, with the state that its chunks and credits share.

use super::importable::{Importable, NewObject};
use crate::{
    error::Error,
    fleet::{Holders, VehicleMatch},
    imports::{Counts, RowOutcome, statements::DEFAULT_ISSUER},
    operations::{self, edge::Edge, number},
    resources::{organization::Organization, parse},
    rows::{
        claim,
        number::{Counted, counter},
        recheck::{self, Marked},
    },
    store::{Batch, Commit, DamagedRow, Key, Record, Store, get_one},
    value::{Id, Money, Name, VehicleId},
};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// Rows in one transaction.
pub const CHUNK: usize = 500;
/// How often a transaction is tried when concurrent writes change the rows it has read.
pub(super) const MAX_ATTEMPTS: usize = 64;
/// Most cached results of searches for the holders of a transponder or plate.
const MAX_HOLDERS: usize = 50_000;
/// Most credits that are kept until the other rows are recorded.
const MAX_CREDITS: usize = 20_000;
/// Most identities of charges of a file that are remembered, to find those that it states twice.
const MAX_SEEN: usize = 50_000;

/// What to do with a file in which rows of several parts of a trip have one number.
pub(super) const PARTS: &str = "if rows with one number are parts of a trip, tell them apart in the mapping file, such as \
     \"transaction_id\": {\"join\": [\"number\", \"section\", \"amount\"]} with the names of their columns";

/// The options of recording a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Whether the store is an [`Overlay`](crate::imports::Overlay), so that nothing is recorded. It changes words alone.
    pub dry_run: bool,
    /// The authority that numbered the summonses of a list of violations. [`DEFAULT_ISSUER`] when absent.
    pub issuer: Option<&'a Name>,
    /// Whether a charge with a known number and another amount is listed for review and not recorded: nothing says whether it replaces
    /// the known one or is another part of the same trip.
    pub keeps_amounts: bool,
    /// Whether the number of a row is joined of several columns. Then a row that is equal to an earlier one of its file is listed for
    /// review: it can be another part of the same trip.
    pub joins_number: bool,
}

/// Records the rows of one file as objects of one organization.
pub struct Recorder<'a, T: Importable> {
    pub(super) store: &'a dyn Store,
    pub(super) edge: &'a dyn Edge,
    pub(super) organization: &'a Organization,
    pub(super) options: Options<'a>,
    issuer: Name,
    /// The outcomes of the rows so far.
    pub counts: Counts,
    /// Damaged rows of the store that rows of the file needed. Those rows are not recorded, and counted as invalid.
    pub damaged: Vec<DamagedRow>,
    /// Cached holders of transponders and plates, because many rows of a statement have the same ones.
    holders: HashMap<[Option<String>; 3], Holders>,
    /// The counters of these transponders and plates, read before their holders.
    numbers: HashMap<Marked, Option<Counted>>,
    credits: Vec<(u64, T::Row)>,
    /// The identities of the rows so far that only a day tells from others.
    pub(super) told_by_day: HashSet<Key>,
    /// The identities of the charges so far, and whether the file states one twice with one amount.
    seen: HashMap<Key, bool>,
    /// How many more charges came after than before the one above them, by their times.
    rising: i64,
    /// The time of the charge above.
    above: Option<i64>,
    /// An id from the beginning of the import. Objects with greater ids are of its own rows.
    pub(super) first: Uuid,
}

/// A claim: the row with the identity of an object.
pub(super) struct Claim<K> {
    pub(super) record: Record,
    pub(super) id: Id<K>,
    /// The amount that the last row stated.
    pub(super) amount: Option<Money>,
    /// The amounts that earlier rows stated.
    pub(super) former: Vec<Money>,
}

/// How a row compares with the object that has its number.
pub(super) enum Compared {
    /// It is about the object, and perhaps brings a value that the object lacks.
    Agrees { completes: bool },
    /// It is about another one. The message says why.
    Contradicts(String),
    /// Its amounts, or its plate and day, are former ones of the object. The message says so.
    IsOlder(String),
}

impl<K> Claim<K> {
    /// Whether an earlier row stated this amount.
    pub(super) fn is_stated_again(&self, stated: Option<Money>) -> bool {
        let is_former = self.former.iter().any(|former| Some(*former) == stated);
        is_former || stated.is_some() && (self.amount.is_none() || self.amount == stated)
    }

    /// The amounts of each former state of an object that has so many ([`Importable::amounts`]).
    pub(super) fn states(&self, amounts: usize) -> impl Iterator<Item = Vec<Money>> {
        let all: Vec<Money> = self.amount.iter().chain(&self.former).copied().collect();
        all.chunks_exact(amounts.max(1)).map(<[Money]>::to_vec).collect::<Vec<_>>().into_iter()
    }
}

impl<'a, T: Importable> Recorder<'a, T> {
    /// Starts recording a file.
    #[must_use]
    pub fn new(store: &'a dyn Store, edge: &'a dyn Edge, organization: &'a Organization, options: Options<'a>) -> Self {
        Self {
            store,
            edge,
            organization,
            options,
            issuer: options.issuer.cloned().unwrap_or_else(|| Name::constant(DEFAULT_ISSUER)),
            counts: Counts::default(),
            damaged: Vec::new(),
            holders: HashMap::new(),
            numbers: HashMap::new(),
            credits: Vec::new(),
            told_by_day: HashSet::new(),
            seen: HashMap::new(),
            rising: 0,
            above: None,
            first: edge.new_id(),
        }
    }

    /// Records the next rows of the file, each with its number. Credits are kept until [`Recorder::finish`], because a
    /// statement can contain a credit before its charge.
    ///
    /// # Errors
    /// The store is not available. The chunks before the failed one are recorded.
    pub async fn record(&mut self, rows: Vec<(u64, T::Row)>) -> Result<(), Error> {
        let mut charges = Vec::with_capacity(rows.len());
        for (number, row) in rows {
            match T::is_credit(&row) {
                true if self.credits.len() < MAX_CREDITS => self.credits.push((number, row)),
                true => self.credit(number, &row).await?,
                false => {
                    let at = T::at(&row).or(self.above);
                    self.rising += at.zip(self.above).map_or(0, |(at, above)| (at - above).signum());
                    self.above = at;
                    charges.push((number, row));
                }
            }
        }
        let mut rest = charges.as_slice();
        while !rest.is_empty() {
            rest = &rest[self.chunk(rest).await?..];
        }
        Ok(())
    }

    /// Records the remaining credits, and sorts the errors.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn finish(&mut self) -> Result<(), Error> {
        for (number, credit) in std::mem::take(&mut self.credits) {
            self.credit(number, &credit).await?;
        }
        self.counts.sort();
        Ok(())
    }

    /// Notes that the file states this charge, and whether it is known.
    pub(super) fn note_seen(&mut self, key: Key, is_duplicate: bool) {
        if self.seen.len() < MAX_SEEN || self.seen.contains_key(&key) {
            self.seen.entry(key).and_modify(|twice| *twice |= is_duplicate).or_insert(false);
        }
    }

    /// Whether the file states this charge twice with one amount.
    pub(super) fn is_stated_twice(&self, key: &Key) -> bool {
        self.seen.get(key).copied().unwrap_or_default()
    }

    /// Whether the file has the newest charges first, as far as it was read.
    pub(super) fn is_newest_first(&self) -> bool {
        self.rising < 0
    }

    /// Creates the object of a row, with a new id.
    pub(super) fn object(&self, row: &T::Row) -> T {
        let uuid = self.edge.new_id();
        let (id, created_at) = (Id::from_uuid(uuid), operations::created_at(uuid, self.edge.now()));
        let issuer = &self.issuer;
        T::from_row(row, &NewObject { id, created_at, organization: self.organization, issuer })
    }

    /// The vehicle that had the identifiers of an object at its time; `None` when there is not exactly one.
    pub(super) async fn vehicle(&mut self, object: &T) -> Result<Option<VehicleId>, Error> {
        let [tag, plate, state] = object.identifiers();
        let identifiers = [tag, plate, state].map(|text| text.map(str::to_owned));
        let when = object.when();
        let found = match self.holders.get(&identifiers) {
            Some(known) => known.at(when, self.organization.time_zone),
            None => {
                self.read_counters(object).await?;
                let holders = Holders::read(self.store, self.organization.id, tag, (plate, state)).await?;
                let found = holders.at(when, self.organization.time_zone);
                self.holders.insert(identifiers, holders);
                found
            }
        };
        Ok(match found {
            VehicleMatch::One(id) => Some(id),
            VehicleMatch::None | VehicleMatch::Unclear(..) => None,
        })
    }

    /// Reads the counters of the transponder and the plate of an object, unless they were read for another one.
    async fn read_counters(&mut self, object: &T) -> Result<(), Error> {
        let new = object.numbers().filter(|number| !self.numbers.contains_key(number));
        let new: Vec<Marked> = new.collect();
        if !new.is_empty() {
            let counters: Vec<Key> = new.iter().map(|new| counter(self.organization.id, *new)).collect();
            let found = self.store.get(&counters).await?.into_iter().map(|row| row.as_ref().map(Counted::of));
            self.numbers.extend(new.into_iter().zip(found));
        }
        Ok(())
    }

    /// Forgets what is known of transponders and plates and who has them, if that is much. Only between transactions: each checks the
    /// counters that were read before the holders that it used.
    pub(super) fn limit_holders(&mut self) {
        if self.holders.len() >= MAX_HOLDERS {
            self.forget_holders();
        }
    }

    fn forget_holders(&mut self) {
        self.holders.clear();
        self.numbers.clear();
    }

    /// Commits a batch that records what names these transponders and plates. Returns whether it was applied. It is not when a
    /// vehicle got or lost one of them since its holders were read.
    pub(super) async fn commit_naming(&mut self, mut batch: Batch, named: &HashSet<Marked>) -> Result<bool, Error> {
        let mut counters = HashMap::with_capacity(named.len());
        for number in named {
            let place = counter(self.organization.id, *number);
            let seen = self.numbers.get(number).copied().flatten();
            counters.insert(place.clone(), (*number, number::check_unchanged(&mut batch, place, seen)));
        }
        match self.commit(batch).await? {
            Commit::Applied => {
                self.numbers.extend(counters.into_values().map(|(number, counted)| (number, Some(counted))));
                Ok(true)
            }
            Commit::Stale(key) => {
                if counters.contains_key(&key) {
                    self.forget_holders();
                }
                Ok(false)
            }
        }
    }

    pub(super) fn identity_key(&self, identity: &str) -> Key {
        claim::identity_key(self.organization.id, T::SPEC, identity)
    }

    pub(super) async fn claim(&self, place: &Key) -> Result<Option<Claim<T::Kind>>, Error> {
        let Some(record) = get_one(self.store, place).await? else { return Ok(None) };
        let claim::Stated { id, amount, former } = claim::read_stated(&record)?;
        Ok(Some(Claim { record, id: Id::from_uuid(id), amount, former }))
    }

    /// How a row compares with the object that has its number: that of an earlier row of the same transaction, or of a claim.
    pub(super) async fn compare(
        &mut self,
        from_row: &T,
        earlier: Option<&T::Row>,
        claim: Option<&Claim<T::Kind>>,
    ) -> Result<Compared, Error> {
        let (known, whose) = match (earlier, claim) {
            (Some(earlier), _) => (self.object(earlier), "an earlier row".to_owned()),
            (None, Some(claim)) => {
                let found = get_one(self.store, &T::key(self.organization.id, claim.id)).await?;
                let Some(record) = found else { return Ok(Compared::Agrees { completes: false }) };
                (parse(&record.key, &record.value)?, self.name_of(claim.id))
            }
            (None, None) => return Ok(Compared::Agrees { completes: false }),
        };
        let (known, object): (T, _) = (self.with_vehicle(known).await?, T::SPEC.object);
        if let Some(what) = known.contradiction(from_row) {
            let parts = if self.options.keeps_amounts { format!("; {PARTS}") } else { String::new() };
            return Ok(Compared::Contradicts(format!(
                "has the number of {whose}, but another {what}; an agency gives each {object} a number of its own, so look \
                 at the statement and correct the wrong row{parts}"
            )));
        }
        // The rows of one file are in their order, whatever they state.
        let claim = claim.filter(|claim| !self.is_own(claim.id));
        let former = match (known.place(), from_row.place()) {
            // Another plate or day is news, whatever the amounts.
            (Some(place), Some(stated)) if place != stated => {
                let had = claim.is_some() && get_one(self.store, &self.place_key(from_row, &stated)).await?.is_some();
                had.then_some("this plate and day")
            }
            _ => {
                let amounts = from_row.amounts();
                let had = claim.is_some_and(|claim| claim.states(amounts.len()).any(|state| state == amounts));
                (had && !amounts.is_empty() && known.amounts() != amounts).then_some("these amounts")
            }
        };
        Ok(match former {
            Some(what) => Compared::IsOlder(format!(
                "is taken for a row of an older list: {whose} had {what} before a later list changed them, so it was \
                 not changed; look it up at its issuer, because if it has {what} again, this {object} is wrong here"
            )),
            None => Compared::Agrees { completes: earlier.is_none() && known.is_completed_by(from_row) },
        })
    }

    /// The key of the claim that remembers a former [`Importable::place`] of an object.
    fn place_key(&self, object: &T, place: &str) -> Key {
        self.identity_key(&format!("place\n{}\n{place}", object.identity().unwrap_or_default()))
    }

    /// Whether an earlier row of this file made the object.
    pub(super) fn is_own(&self, id: Id<T::Kind>) -> bool {
        id.uuid() > self.first
    }

    /// An object in messages. A dry run has no objects of its own rows, so they are named like the rows.
    pub(super) fn name_of(&self, id: Id<T::Kind>) -> String {
        if self.is_own(id) { "an earlier row".to_owned() } else { format!("{} {id}", T::SPEC.object) }
    }

    /// The object with its vehicle, if it was not known before.
    pub(super) async fn with_vehicle(&mut self, mut object: T) -> Result<T, Error> {
        if object.vehicle().is_none() {
            *object.vehicle() = self.vehicle(&object).await?;
        }
        Ok(object)
    }

    /// Gives an object the value that it lacks and a row about it has.
    pub(super) async fn complete(&self, id: Id<T::Kind>, from_row: &T, batch: &mut Batch) -> Result<RowOutcome, Error> {
        self.change(id, batch, |object| {
            object.complete(from_row);
            Some(())
        })
        .await
    }

    /// Updates the object of a claim from a later row. Also returns what a person should know of it.
    pub(super) async fn correct(
        &mut self,
        claim: Claim<T::Kind>,
        row: &T::Row,
        from_row: &T,
        batch: &mut Batch,
    ) -> Result<(RowOutcome, Option<&'static str>), Error> {
        let vehicle = self.vehicle(from_row).await?;
        let before = claim.amount.unwrap_or_default();
        let (mut amounts, mut places) = ([Vec::new(), Vec::new()], [None, None]);
        let outcome = self
            .change(claim.id, batch, |object| {
                (amounts[0], places[0]) = (object.amounts(), object.place());
                object.correct(row, vehicle, before)?;
                (amounts[1], places[1]) = (object.amounts(), object.place());
                Some(())
            })
            .await?;
        if outcome != RowOutcome::Updated {
            return Ok((outcome, None));
        }
        if let [Some(before), Some(after)] = places
            && before != after
        {
            let place = self.place_key(from_row, &before);
            if get_one(self.store, &place).await?.is_none() {
                batch.insert(place, claim::claim_value(claim.id.uuid(), None));
            }
        }
        let [before, after] = amounts;
        let remark = T::remark(&before, &after);
        if let Some(stated) = T::stated_amount(row) {
            let value = claim::stated_value(claim.id.uuid(), stated, claim.amount, &claim.former);
            batch.replace(claim.record.key, claim.record.revision, value);
        } else if before != after {
            let former = claim.states(before.len()).filter(|state| *state != before && *state != after);
            let states: Vec<Vec<Money>> = std::iter::once(before.clone()).chain(former).collect();
            let value = claim::states_value(claim.id.uuid(), &states);
            batch.replace(claim.record.key, claim.record.revision, value);
        }
        Ok((outcome, remark))
    }

    /// Adds a change of an object to a batch. The change returns `None` when the object would have an impossible amount.
    pub(super) async fn change(
        &self,
        id: Id<T::Kind>,
        batch: &mut Batch,
        change: impl FnOnce(&mut T) -> Option<()>,
    ) -> Result<RowOutcome, Error> {
        let place = T::key(self.organization.id, id);
        let before = get_one(self.store, &place).await?;
        let before =
            before.ok_or_else(|| Error::damaged_row(&place, "it is not there, though its number leads to it"))?;
        let old: T = parse(&before.key, &before.value)?;
        let mut new = old.clone();
        if change(&mut new).is_none() {
            let whose = self.name_of(id);
            return Ok(RowOutcome::Invalid(format!(
                "would make the amount of {whose} less than 0 or more than any amount"
            )));
        }
        // Not for a list that says the same again: a person can have looked at it.
        if new.price() != old.price() {
            new.note_bill(operations::credited(self.store, self.organization.id, &new).await?);
        }
        if new != old {
            new.touch(self.edge.now());
        }
        let rule = |object: &mut T| {
            *object = new;
            Ok(Vec::new())
        };
        let prepared = match operations::edit(self.store, self.edge, self.organization, before, rule).await {
            Ok(prepared) => prepared,
            Err(Error::Conflict(why)) => {
                return Ok(RowOutcome::Invalid(format!("{why} Then import the file again.")));
            }
            Err(error) => return Err(error),
        };
        let outcome = if prepared.batch.is_empty() { RowOutcome::Duplicate } else { RowOutcome::Updated };
        recheck::absorb(batch, prepared.batch);
        Ok(outcome)
    }

    /// Commits a batch.
    pub(super) async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        if batch.is_empty() {
            Ok(Commit::Applied)
        } else {
            operations::commit_for(self.store, self.organization.id, batch).await
        }
    }
}

/// The error when concurrent writes made every attempt of a transaction stale.
pub(super) fn contended() -> Error {
    Error::Unavailable("others changed the same tolls, violations or vehicles too often; import the file again".into())
}
