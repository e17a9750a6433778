//! The rows of one transaction.

use super::{
    importable::Importable,
    recorder::{CHUNK, Compared, MAX_ATTEMPTS, Recorder, contended},
};
use crate::{
    error::Error,
    fleet::twins,
    imports::{RowOutcome, statements::StatementRow},
    operations,
    resources::Payer,
    rows::recheck::Marked,
    store::{Batch, DamagedRow, Key},
    value::Sum,
};
use std::collections::{HashMap, HashSet};

/// The rows of one transaction: its batch, and the outcomes that are counted after its commit.
struct Chunk<'r, T, R> {
    batch: Batch,
    outcomes: Vec<(u64, RowOutcome, Sum)>,
    /// The amounts of the new objects whose vehicles were found.
    matched: Vec<Sum>,
    /// The rows without plate and transponder.
    unidentified: Vec<u64>,
    /// The rows of the chunk, by the key of their identity.
    rows: HashMap<Key, &'r R>,
    /// The new objects of the chunk.
    new: Vec<T>,
    /// The transponders and plates that its new and changed objects name.
    named: HashSet<Marked>,
    /// The rows near which a posting of their vehicle is recorded.
    near: HashSet<u64>,
    /// The messages of the rows that a person should look at for another reason, such as a probable second posting.
    review: Vec<(u64, String)>,
    /// The identities of the rows that only a day tells from others.
    told_by_day: Vec<Key>,
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
        let mut chunk = Chunk {
            batch: Batch::default(),
            outcomes: Vec::with_capacity(CHUNK),
            matched: Vec::new(),
            unidentified: Vec::new(),
            rows: HashMap::with_capacity(CHUNK),
            new: Vec::new(),
            named: HashSet::new(),
            near: self.near(rows, unreadable).await?,
            review: Vec::new(),
            told_by_day: Vec::new(),
        };
        let mut taken = 0;
        for (number, row) in rows {
            if let Some(damage) = unreadable.get(number) {
                chunk.outcomes.push((*number, RowOutcome::beside_damage(damage), row.sum()));
                taken += 1;
                continue;
            }
            match self.add(*number, row, &mut chunk).await {
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
        chunk.outcomes.into_iter().for_each(|(number, outcome, sum)| self.counts.add(number, outcome, sum));
        Ok(Tried::Recorded(taken))
    }

    /// The numbers of the rows near which a posting of their vehicle is recorded, by one call of the store for all of them.
    async fn near(&mut self, rows: &[(u64, T::Row)], unreadable: &mut Unreadable) -> Result<HashSet<u64>, Error> {
        let (mut numbers, mut scans) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for (number, row) in rows {
            if unreadable.contains_key(number) {
                continue;
            }
            let object = self.object_with(row, self.first);
            let object = match self.with_vehicle(object).await {
                Err(Error::Damaged(damage)) => {
                    unreadable.insert(*number, *damage);
                    continue;
                }
                object => object?,
            };
            if let Some(span) = twins::entries_near(self.organization.id, &object) {
                numbers.push(*number);
                scans.push((span, 1));
            }
        }
        let found = self.store.scan_each(&scans).await?;
        let near = numbers.into_iter().zip(found).filter(|(_, entries)| !entries.is_empty());
        Ok(near.map(|(number, _)| number).collect())
    }

    /// Adds one row to a chunk. Returns `false` when the row changes an object of the same chunk and so belongs into the
    /// next transaction.
    async fn add<'r>(&mut self, number: u64, row: &'r T::Row, chunk: &mut Chunk<'r, T, T::Row>) -> Result<bool, Error> {
        let object = self.object(row);
        let Some(identity) = object.identity() else {
            let why = "has neither a transaction number nor a time, so it could not be told from others";
            chunk.outcomes.push((number, RowOutcome::Invalid(why.into()), row.sum()));
            return Ok(true);
        };
        let key = self.identity_key(&identity);
        let stated = T::stated_amount(row);
        let mut object = self.with_vehicle(object).await?;
        // A wrong row is not remembered: the next rows are compared with the one that was recorded.
        let earlier = chunk.rows.get(&key).copied();
        let claim = if earlier.is_none() { self.claim(&key).await? } else { None };
        match self.compare(row, &object, earlier, claim.as_ref()).await? {
            Compared::Agrees => {}
            Compared::Contradicts(wrong) => {
                chunk.outcomes.push((number, RowOutcome::Invalid(wrong), row.sum()));
                return Ok(true);
            }
            Compared::IsOlder(why) => {
                chunk.outcomes.push((number, RowOutcome::Duplicate, row.sum()));
                chunk.review.push((number, why));
                return Ok(true);
            }
        }
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
                Some(claim) if claim.former.iter().any(|former| Some(*former) == stated) => RowOutcome::Duplicate,
                Some(claim) if stated.is_some() && (claim.amount.is_none() || claim.amount == stated) => {
                    RowOutcome::Duplicate
                }
                Some(claim) => {
                    let outcome = self.correct(claim, row, &object, &mut chunk.batch).await?;
                    if outcome == RowOutcome::Updated {
                        chunk.named.extend(object.numbers());
                    }
                    outcome
                }
                None => {
                    chunk.matched.extend(object.vehicle().map(|_| row.sum()));
                    if let [None, None, _] = object.identifiers() {
                        chunk.unidentified.push(number);
                    }
                    let first = match chunk.near.contains(&number) {
                        true => twins::first_twin(self.store, self.organization.id, &object, &chunk.new).await?,
                        false => twins::first_among(&object, chunk.new.iter().cloned()),
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
                    chunk.batch =
                        operations::insert(self.store, self.edge, self.organization, object, batch).await?.batch;
                    RowOutcome::Created
                }
            },
        };
        if is_told_by_day {
            chunk.told_by_day.push(key.clone());
        }
        chunk.rows.insert(key, row);
        chunk.outcomes.push((number, outcome, row.sum()));
        Ok(true)
    }
}

/// The review message for a row that is probably the second posting of a passage.
fn twin_message<T: Importable>(whose: &str) -> String {
    let object = T::SPEC.object;
    format!(
        "is probably the same passage as {whose}; this {object} is not attached automatically: attach it to a customer if it is \
         another passage, else set its customer to nobody"
    )
}

/// The review message for a row that is equal to an earlier one of its file, although it can be another passage.
fn equal_message() -> String {
    "has neither a number nor a time, and is equal to an earlier row of this file, so it counts as a duplicate; if the vehicle \
     passed there twice on that day, import this row again with its time or a number of its own"
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
