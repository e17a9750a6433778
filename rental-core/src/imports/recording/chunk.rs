//! The rows of one transaction.

use super::{
    importable::Importable,
    recorder::{CHUNK, Claim, Compared, MAX_ATTEMPTS, PARTS, Recorder, contended},
};
use crate::{
    error::Error,
    fleet::twins,
    imports::{RowOutcome, statements::StatementRow},
    operations,
    resources::{Payer, parse},
    rows::{claim, recheck::Marked},
    store::{Batch, DamagedRow, Key, get_one},
    value::{Money, SignedMoney},
};
use std::collections::{HashMap, HashSet};

/// Milliseconds of a day.
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// The rows of one transaction: its batch, and the outcomes that are counted after its commit.
struct Chunk<'r, T, R> {
    batch: Batch,
    outcomes: Vec<(u64, RowOutcome, SignedMoney)>,
    /// The amounts of the new objects whose vehicles were found.
    matched: Vec<SignedMoney>,
    /// The rows without plate and transponder.
    unidentified: Vec<u64>,
    /// The rows of the chunk, by the key of their identity.
    rows: HashMap<Key, &'r R>,
    /// The new objects of the chunk.
    new: Vec<T>,
    /// The transponders and plates that its new and changed objects name.
    named: HashSet<Marked>,
    /// The rows near which a posting of their vehicle is recorded, and those postings.
    near: HashSet<u64>,
    postings: twins::Near<T>,
    /// The identities of recorded objects that differ from those of these rows in leading zeros only.
    respelled: HashMap<u64, Key>,
    /// The messages of the rows that a person should look at for another reason, such as a probable second posting.
    review: Vec<(u64, String)>,
    /// The identities of the rows that only a day tells from others.
    told_by_day: Vec<Key>,
    /// The identities of the charges, and whether they are known.
    seen: Vec<(Key, bool)>,
}

/// How a try to record rows in one transaction ended.
enum Tried {
    /// So many rows are recorded.
    Recorded(usize),
    /// Concurrent writes changed what it had read.
    Overtaken,
    /// One more row needs what is damaged in the store.
    Damaged,
}

/// Damaged rows of the store, by the number of the row of the file that needs them. The other rows are recorded.
type Unreadable = HashMap<u64, DamagedRow>;

impl<T: Importable> Recorder<'_, T> {
    /// Records the first of these rows in one transaction. Returns how many rows it recorded.
    pub(super) async fn chunk(&mut self, rows: &[(u64, T::Row)]) -> Result<usize, Error> {
        let (mut unreadable, mut overtaken) = (Unreadable::new(), 0);
        while overtaken < MAX_ATTEMPTS {
            match self.try_once(&rows[..rows.len().min(CHUNK)], &mut unreadable).await? {
                Tried::Recorded(count) => {
                    self.damaged.extend(unreadable.into_values());
                    return Ok(count);
                }
                Tried::Overtaken => overtaken += 1,
                Tried::Damaged => {}
            }
        }
        Err(contended())
    }

    async fn try_once(&mut self, rows: &[(u64, T::Row)], unreadable: &mut Unreadable) -> Result<Tried, Error> {
        self.limit_holders();
        let objects = self.objects(rows, unreadable).await?;
        let mut chunk = Chunk {
            batch: Batch::default(),
            outcomes: Vec::with_capacity(CHUNK),
            matched: Vec::new(),
            unidentified: Vec::new(),
            rows: HashMap::with_capacity(CHUNK),
            new: Vec::new(),
            named: HashSet::new(),
            near: self.near(&objects).await?,
            postings: twins::Near::default(),
            respelled: self.respelled(&objects).await?,
            review: Vec::new(),
            told_by_day: Vec::new(),
            seen: Vec::new(),
        };
        let mut taken = 0;
        let mut objects = objects.into_iter();
        for (number, row) in rows {
            if let Some(damage) = unreadable.get(number) {
                chunk.outcomes.push((*number, RowOutcome::beside_damage(damage), row.sum()));
                taken += 1;
                continue;
            }
            let Some((_, object)) = objects.next() else { break };
            match self.add(*number, row, object, &mut chunk).await {
                Ok(true) => taken += 1,
                Ok(false) => break,
                // The batch may already have writes of this row, so it is built again without the row.
                Err(Error::Damaged(damage)) => {
                    unreadable.insert(*number, *damage);
                    return Ok(Tried::Damaged);
                }
                // A concurrent import recorded the object after this one had looked it up.
                Err(Error::Conflict(_)) => return Ok(Tried::Overtaken),
                Err(error) => return Err(error),
            }
        }
        if !self.commit_naming(chunk.batch, &chunk.named).await? {
            return Ok(Tried::Overtaken);
        }
        chunk.matched.into_iter().for_each(|amount| self.counts.add_matched(amount));
        let dry_run = self.options.dry_run;
        let unidentified = chunk.unidentified.into_iter();
        unidentified.for_each(|number| self.counts.add_review(number, unidentified_message::<T>(dry_run)));
        chunk.review.into_iter().for_each(|(number, message)| self.counts.add_review(number, message));
        self.told_by_day.extend(chunk.told_by_day);
        chunk.seen.into_iter().for_each(|(key, is_duplicate)| self.note_seen(key, is_duplicate));
        chunk.outcomes.into_iter().for_each(|(number, outcome, sum)| self.counts.add(number, outcome, sum));
        Ok(Tried::Recorded(taken))
    }

    /// The objects of the rows that can be read, with their vehicles and the numbers of the rows.
    async fn objects(&mut self, rows: &[(u64, T::Row)], unreadable: &mut Unreadable) -> Result<Vec<(u64, T)>, Error> {
        let mut objects = Vec::with_capacity(rows.len());
        for (number, row) in rows {
            if unreadable.contains_key(number) {
                continue;
            }
            match self.with_vehicle(self.object(row)).await {
                Err(Error::Damaged(damage)) => {
                    unreadable.insert(*number, *damage);
                }
                object => objects.push((*number, object?)),
            }
        }
        Ok(objects)
    }

    /// The numbers of the rows near which a posting of their vehicle is recorded, by one call of the store for all of them.
    async fn near(&self, objects: &[(u64, T)]) -> Result<HashSet<u64>, Error> {
        let near = |(number, object): &(u64, T)| {
            twins::entries_near(self.organization.id, object).map(|span| (*number, (span, 1)))
        };
        let (numbers, scans): (Vec<u64>, Vec<_>) = objects.iter().filter_map(near).unzip();
        let found = self.store.scan_each(&scans).await?;
        let near = numbers.into_iter().zip(found).filter(|(_, entries)| !entries.is_empty());
        Ok(near.map(|(number, _)| number).collect())
    }

    /// Which rows have the number of a recorded object but for leading zeros, by one call of the store for all of them.
    async fn respelled(&self, objects: &[(u64, T)]) -> Result<HashMap<u64, Key>, Error> {
        let (mut numbers, mut places) = (Vec::new(), Vec::new());
        for (number, object) in objects {
            let others = self.respellings(object);
            numbers.extend(std::iter::repeat_n(*number, others.len()));
            places.extend(others);
        }
        if places.is_empty() {
            return Ok(HashMap::new());
        }
        let found = self.store.get(&places).await?;
        let known = numbers.into_iter().zip(places).zip(found);
        Ok(known.filter(|(_, claim)| claim.is_some()).map(|(row, _)| row).collect())
    }

    fn respellings(&self, object: &T) -> Vec<Key> {
        let identities = object.respellings().into_iter().filter_map(|other| other.identity());
        identities.map(|identity| self.identity_key(&identity)).collect()
    }

    /// The outcome of a row whose number differs from that of a recorded object in leading zeros only, if it is about this object.
    async fn same_but_for_zeros(
        &mut self,
        (number, row): (u64, &T::Row),
        object: &T,
        place: &Key,
        review: &mut Vec<(u64, String)>,
    ) -> Result<Option<RowOutcome>, Error> {
        let Some(claim) = self.claim(place).await? else { return Ok(None) };
        let Some(record) = get_one(self.store, &T::key(self.organization.id, claim.id)).await? else { return Ok(None) };
        let known: T = self.with_vehicle(parse(&record.key, &record.value)?).await?;
        if !known.is_respelled(object) {
            return Ok(None);
        }
        let (whose, what) = (self.name_of(claim.id), T::SPEC.object);
        let stated = T::stated_amount(row);
        let is_equal = match stated {
            Some(_) => claim.amount.iter().chain(&claim.former).any(|amount| Some(*amount) == stated),
            None => known.amounts() == object.amounts(),
        };
        let zeros = "leading zeros, which spreadsheets remove";
        Ok(Some(if is_equal {
            let message = format!(
                "differs from {whose} only in {zeros}, so it counts as a duplicate; look at the statement, because if it is \
                 another {what}, it is not recorded"
            );
            review.push((number, message));
            RowOutcome::Duplicate
        } else {
            RowOutcome::Invalid(format!(
                "has the number of {whose} but for {zeros}, and other amounts; import the file as the agency made it"
            ))
        }))
    }

    /// Adds one row to a chunk. Returns `false` when the row changes an object of the same chunk and so belongs into the
    /// next transaction.
    async fn add<'r>(
        &mut self,
        number: u64,
        row: &'r T::Row,
        object: T,
        chunk: &mut Chunk<'r, T, T::Row>,
    ) -> Result<bool, Error> {
        let Some(identity) = object.identity() else {
            let why = "has neither a transaction number nor a time, so it could not be told from others";
            chunk.outcomes.push((number, RowOutcome::Invalid(why.into()), row.sum()));
            return Ok(true);
        };
        let key = self.identity_key(&identity);
        let stated = T::stated_amount(row);
        // A wrong row is not remembered: the next rows are compared with the one that was recorded.
        let earlier = chunk.rows.get(&key).copied();
        let claim = if earlier.is_none() { self.claim(&key).await? } else { None };
        let completes = match self.compare(&object, earlier, claim.as_ref()).await? {
            Compared::Agrees { completes } => completes,
            Compared::Contradicts(wrong) => {
                chunk.outcomes.push((number, RowOutcome::Invalid(wrong), row.sum()));
                return Ok(true);
            }
            Compared::IsOlder(why) => {
                chunk.outcomes.push((number, RowOutcome::Duplicate, row.sum()));
                chunk.review.push((number, why));
                return Ok(true);
            }
        };
        if self.options.keeps_amounts
            && let Some(stated) = stated
            && let Some(known) = other_amount::<T>(stated, earlier, claim.as_ref())
        {
            chunk.outcomes.push((number, RowOutcome::Duplicate, row.sum()));
            chunk.review.push((number, part_message(stated, known)));
            return Ok(true);
        }
        let is_of_this_file = match (&claim, earlier) {
            (Some(claim), _) => self.is_own(claim.id),
            (None, Some(_)) => chunk.new.iter().any(|new| new.identity().as_ref() == Some(&identity)),
            (None, None) => false,
        };
        let is_told_by_day = object.is_told_by_day();
        if is_told_by_day && (earlier.is_some() || self.told_by_day.contains(&key)) {
            chunk.review.push((number, equal_message()));
        }
        let outcome = match earlier {
            Some(earlier) if stated.map_or(earlier == row, |_| T::stated_amount(earlier) == stated) => {
                RowOutcome::Duplicate
            }
            Some(_) => return Ok(false),
            None => match claim {
                Some(claim) if claim.is_stated_again(stated) && completes => {
                    chunk.named.extend(object.numbers());
                    self.complete(claim.id, &object, &mut chunk.batch).await?
                }
                Some(claim) if claim.is_stated_again(stated) => RowOutcome::Duplicate,
                // The row above it is the newer one of this file.
                Some(claim) if stated.is_some() && self.is_own(claim.id) && self.is_newest_first() => {
                    let (older, newer) = (stated.unwrap_or_default(), claim.amount.unwrap_or_default());
                    let value = claim::stated_value(claim.id.uuid(), newer, Some(older), &claim.former);
                    chunk.batch.replace(claim.record.key, claim.record.revision, value);
                    chunk.review.push((number, older_message(older, newer)));
                    RowOutcome::Duplicate
                }
                Some(claim) => {
                    let (outcome, remark) = self.correct(claim, row, &object, &mut chunk.batch).await?;
                    chunk.review.extend(remark.map(|remark| (number, remark.to_owned())));
                    if outcome == RowOutcome::Updated {
                        chunk.named.extend(object.numbers());
                    }
                    outcome
                }
                None => {
                    if self.respellings(&object).iter().any(|other| chunk.rows.contains_key(other)) {
                        return Ok(false);
                    }
                    let same = match chunk.respelled.get(&number) {
                        Some(place) => {
                            self.same_but_for_zeros((number, row), &object, place, &mut chunk.review).await?
                        }
                        None => None,
                    };
                    match same {
                        Some(outcome) => outcome,
                        None => {
                            self.create(number, row, object, chunk).await?;
                            RowOutcome::Created
                        }
                    }
                }
            },
        };
        if is_told_by_day {
            chunk.told_by_day.push(key.clone());
        }
        if self.options.joins_number && is_of_this_file && !is_told_by_day && outcome == RowOutcome::Duplicate {
            chunk.review.push((number, same_part_message()));
        }
        if stated.is_some() {
            chunk.seen.push((key.clone(), outcome == RowOutcome::Duplicate));
        }
        chunk.rows.insert(key, row);
        chunk.outcomes.push((number, outcome, row.sum()));
        Ok(true)
    }
    /// Adds a new object to a chunk.
    async fn create(
        &mut self,
        number: u64,
        row: &T::Row,
        mut object: T,
        chunk: &mut Chunk<'_, T, T::Row>,
    ) -> Result<(), Error> {
        chunk.matched.extend(object.vehicle().map(|_| row.sum()));
        if let [None, None, _] = object.identifiers() {
            chunk.unidentified.push(number);
        }
        let tomorrow = self.edge.now().plus_millis(DAY_MILLIS).millis();
        if T::at(row).and_then(|at| u64::try_from(at).ok()).is_some_and(|at| at > tomorrow) {
            chunk.review.push((number, future_message(&object)));
        }
        let first = match chunk.near.contains(&number) {
            true => chunk.postings.first_twin(self.store, self.organization.id, &object, &chunk.new).await?,
            false => twins::first_among(&object, chunk.new.iter()),
        };
        if let Some(first) = first {
            let reason = twins::reason(&first);
            let whose = self.name_of(first.id());
            object.set_payer(Payer { review: Some(reason), ..Payer::default() });
            chunk.review.push((number, twin_message::<T>(&whose)));
        }
        chunk.named.extend(object.numbers());
        chunk.new.push(object.clone());
        let batch = std::mem::take(&mut chunk.batch);
        chunk.batch = operations::insert(self.store, self.edge, self.organization, object, batch).await?.batch;
        Ok(())
    }
}

/// The review message for a row that is more than a day in the future.
fn future_message<T: Importable>(object: &T) -> String {
    let (what, when) = (T::SPEC.object, object.when());
    let time = when.at.map(|at| at.to_string()).or_else(|| when.on.map(|on| on.to_string())).unwrap_or_default();
    format!(
        "is of {time}, more than a day in the future; look at its date in the statement: when that is wrong, its renter cannot be \
         found, so attach this {what} to a customer by hand"
    )
}

/// The review message for a row that is probably the second posting of a passage.
fn twin_message<T: Importable>(whose: &str) -> String {
    let object = T::SPEC.object;
    format!(
        "is probably the same passage as {whose}; this {object} is not attached automatically: attach it to a customer if it is \
         another passage, else set its customer to nobody"
    )
}

/// The review message for a row with the number of one above it, in a file that has the newest rows first.
fn older_message(older: Money, newer: Money) -> String {
    format!(
        "states {older} for the number of a row above it, which states {newer}; the newest rows of this file come first, so \
         {newer} stays; look at the statement if that is wrong"
    )
}

/// The known amount of a number, when it is not the one that a row states: that of an earlier row of the transaction, or of a claim.
fn other_amount<T: Importable>(
    stated: Money,
    earlier: Option<&T::Row>,
    claim: Option<&Claim<T::Kind>>,
) -> Option<Money> {
    let of_claim = || claim.filter(|claim| !claim.is_stated_again(Some(stated)))?.amount;
    earlier.map_or_else(of_claim, T::stated_amount).filter(|known| *known != stated)
}

/// The review message for a row with a known number and another amount, in a file whose mapping does not say what that means.
fn part_message(stated: Money, known: Money) -> String {
    format!(
        "states {stated} for a number of which {known} is known, and was not recorded; {PARTS}; if the last amount is the right one, write \
         \"repeated_number\": \"replaces\" there; then import the file again"
    )
}

/// The review message for a row that is equal to an earlier one of its file, although it can be another passage.
fn equal_message() -> String {
    "has neither a number nor a time, and is equal to an earlier row of this file, so it counts as a duplicate; if the vehicle \
     passed there twice on that day, import this row again with its time or a number of its own"
        .to_owned()
}

/// The review message for a row with a joined number that is equal to an earlier one of its file, although it can be another part.
fn same_part_message() -> String {
    "is equal to an earlier row of this file, so it counts as a duplicate; if it is another part of the trip, import this row again with \
     a number of its own"
        .to_owned()
}

/// The review message for a row without plate and transponder, whose vehicle cannot be found.
fn unidentified_message<T: Importable>(dry_run: bool) -> String {
    let (object, plain) = (T::SPEC.object, "recorded without a plate and a transponder, so its vehicle");
    if dry_run {
        return format!(
            "would be {plain} could not be found; attach this {object} to a customer by hand after the import"
        );
    }
    format!("was {plain} cannot be found; attach this {object} to a customer by hand")
}
