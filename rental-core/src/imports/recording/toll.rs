//! Tolls: new ones, repeated ones, corrected ones, and money back.

use super::{CHUNK, Intake, Known, MOST_ATTEMPTS, MOST_CREDITS, contended};
use crate::{
    effects,
    error::Error,
    imports::{Fate, statements::TollRow},
    operation,
    resources::{
        Resource,
        toll::{self, Toll},
    },
    store::{Batch, Commit, Key, Span, key},
    value::{Money, Timestamp},
};
use std::collections::HashMap;
use uuid::Uuid;

/// A credit and its row.
pub(super) type Waiting = (u64, TollRow);

/// What a chunk would come to.
#[derive(Default)]
struct Plan {
    batch: Batch,
    fates: Vec<(u64, Fate)>,
    matched: u64,
    /// Identities of the chunk, with their amounts.
    places: HashMap<Key, Money>,
    /// Where credits would find its tolls.
    passages: Vec<Key>,
}

impl Intake<'_> {
    /// Records rows of a statement, [`CHUNK`] of them at most. Credits wait for the end ([`Intake::finish_tolls`]): a
    /// statement may list them before the toll that they take back.
    ///
    /// # Errors
    /// The store cannot serve; the chunks before this one are recorded.
    pub async fn tolls(&mut self, rows: Vec<(u64, TollRow)>) -> Result<(), Error> {
        let mut rest = Vec::with_capacity(rows.len());
        for (row, toll) in rows {
            match toll.credit {
                true if self.credits.len() < MOST_CREDITS => self.credits.push((row, toll)),
                true => self.credit(row, toll).await?,
                false => rest.push((row, toll)),
            }
        }
        while !rest.is_empty() {
            let taken = self.charges(&rest).await?;
            rest.drain(..taken);
        }
        Ok(())
    }

    /// Takes back what credits say.
    ///
    /// # Errors
    /// The store cannot serve.
    pub async fn finish_tolls(&mut self) -> Result<(), Error> {
        for (row, credit) in std::mem::take(&mut self.credits) {
            self.credit(row, credit).await?;
        }
        self.counts.sort();
        Ok(())
    }

    /// Records the first of these rows in one transaction; gives how many they were.
    async fn charges(&mut self, rows: &[(u64, TollRow)]) -> Result<usize, Error> {
        'attempts: for _ in 0..MOST_ATTEMPTS {
            let mut plan = Plan::default();
            let mut taken = 0;
            for (row, toll) in rows.iter().take(CHUNK) {
                match self.charge(*row, toll, &mut plan).await {
                    Ok(true) => taken += 1,
                    Ok(false) => break,
                    // Recorded by somebody else since it was looked up.
                    Err(Error::Conflict(_)) => continue 'attempts,
                    Err(error) => return Err(error),
                }
            }
            if self.commit(std::mem::take(&mut plan.batch)).await? == Commit::Applied {
                plan.places.keys().chain(&plan.passages).for_each(|place| self.see(place));
                self.counts.matched += plan.matched;
                plan.fates.into_iter().for_each(|(row, fate)| self.counts.add(row, fate));
                return Ok(taken);
            }
        }
        Err(contended())
    }

    /// Adds one row to the plan; `false` when it must wait for the next transaction, because it corrects a row of this one.
    async fn charge(&mut self, row: u64, read: &TollRow, plan: &mut Plan) -> Result<bool, Error> {
        let mut toll = self.toll(read);
        let Some(identity) = toll.identity() else {
            let why = "has neither a transaction number nor a time, so it could not be told from others";
            plan.fates.push((row, Fate::Invalid(why.into())));
            return Ok(true);
        };
        let place = self.place(&toll::SPEC, &identity);
        let fate = match plan.places.get(&place) {
            Some(amount) if *amount == toll.amount => Fate::Duplicate,
            Some(_) => return Ok(false),
            None => match self.known(&place).await? {
                Some(known) if known.amount.is_none_or(|amount| amount == toll.amount) => Fate::Duplicate,
                Some(known) => self.correct(known, &toll, &mut plan.batch).await?,
                None if self.has_seen(&place) => Fate::Duplicate,
                None => {
                    let named =
                        (read.transponder_number.as_deref(), read.plate.as_deref(), read.plate_state.as_deref());
                    toll.vehicle_id = self.vehicle(named.0, named.1, named.2).await?;
                    plan.matched += u64::from(toll.vehicle_id.is_some());
                    plan.passages.extend(self.passage(&toll));
                    let batch = std::mem::take(&mut plan.batch);
                    plan.batch =
                        operation::insert(self.store, self.edge, self.organization, toll.id, &toll, batch).await?;
                    Fate::Created
                }
            },
        };
        plan.places.insert(place, read.amount);
        plan.fates.push((row, fate));
        Ok(true)
    }

    fn toll(&self, row: &TollRow) -> Toll {
        let id = self.edge.new_id();
        let now = operation::created_at(id);
        let zone = self.organization.time_zone;
        Toll {
            id,
            object: toll::SPEC.object.into(),
            amount: row.amount,
            currency: self.organization.default_currency,
            agency: row.agency.clone(),
            vehicle_id: None,
            customer_id: None,
            transaction_id: row.transaction_id.clone(),
            occurred_at: row.occurred_at,
            occurred_on: row.occurred_on.or_else(|| row.occurred_at.map(|time| zone.local(time).date())),
            plaza: row.plaza.clone(),
            plate: row.plate.clone(),
            plate_state: row.plate_state.clone(),
            transponder_number: row.transponder_number.clone(),
            attribution: None,
            rental_id: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// The agency sends a number again with another amount: the toll changes by the difference.
    async fn correct(&self, known: Known, row: &Toll, batch: &mut Batch) -> Result<Fate, Error> {
        let charged = known.amount.unwrap_or_default();
        let fate = self
            .change_amount(known.id, batch, |amount| amount.plus(row.amount).and_then(|sum| sum.minus(charged)))
            .await?;
        if fate == Fate::Updated {
            batch.replace(known.record.key, known.record.revision, effects::claim_value(known.id, Some(row.amount)));
        }
        Ok(fate)
    }

    /// Money back: the toll that it belongs to becomes smaller.
    async fn credit(&mut self, row: u64, credit: TollRow) -> Result<(), Error> {
        for _ in 0..MOST_ATTEMPTS {
            let mut batch = Batch::default();
            let fate = self.take_back(&credit, &mut batch).await?;
            if self.commit(batch).await? == Commit::Applied {
                self.counts.add(row, fate);
                return Ok(());
            }
        }
        Err(contended())
    }

    async fn take_back(&mut self, credit: &TollRow, batch: &mut Batch) -> Result<Fate, Error> {
        let charge = self.toll(credit);
        let Some(identity) = charge.identity() else {
            return Ok(Fate::Invalid("is a credit without a transaction number and a time".into()));
        };
        let place = self.place(&toll::SPEC, &format!("credit\n{identity}"));
        if self.known(&place).await?.is_some() || self.has_seen(&place) {
            return Ok(Fate::Duplicate);
        }
        let Some(original) = self.original(&charge, &identity).await? else {
            let passage = self.passage(&charge);
            if self.has_seen(&self.place(&toll::SPEC, &identity)) || passage.is_some_and(|key| self.has_seen(&key)) {
                self.see(&place);
                return Ok(Fate::Updated);
            }
            return Ok(Fate::Invalid(format!(
                "gives back {} for no toll that is known; import the statement that has the toll, then this one again",
                credit.amount
            )));
        };
        let fate = self.change_amount(original, batch, |amount| amount.minus(credit.amount)).await?;
        if fate == Fate::Updated {
            batch.insert(place.clone(), effects::claim_value(original, Some(credit.amount)));
            self.see(&place);
        }
        Ok(fate)
    }

    /// The toll that a credit takes back: the same number, else the same passage and amount.
    async fn original(&self, charge: &Toll, identity: &str) -> Result<Option<Uuid>, Error> {
        if let Some(known) = self.known(&self.place(&toll::SPEC, identity)).await? {
            return Ok(Some(known.id));
        }
        let Some(passage) = self.passage(charge) else { return Ok(None) };
        let span = Span::newest_first(&passage);
        Ok(self.store.scan(&span, 1).await?.first().and_then(|record| record.key.id()))
    }

    /// Where tolls of the same passage and amount lie.
    fn passage(&self, toll: &Toll) -> Option<Key> {
        toll.passage().map(|look_up| look_up.prefix(self.organization.id, &toll::SPEC))
    }

    async fn change_amount(
        &self,
        id: Uuid,
        batch: &mut Batch,
        change: impl FnOnce(Money) -> Option<Money>,
    ) -> Result<Fate, Error> {
        let place = key::record(self.organization.id, &toll::SPEC, id);
        let before = self.store.get(&[place]).await?.pop().flatten();
        let before = before.ok_or_else(|| Error::Internal("an identity leads to no toll".into()))?;
        let toll: Toll = crate::resources::parse(&before.key, &before.value)?;
        let Some(amount) = change(toll.amount) else {
            return Ok(Fate::Invalid(format!("would make toll {id} less than 0 or more than any amount")));
        };
        let now: Timestamp = self.edge.now();
        let rule = |toll: &mut Toll| {
            toll.amount = amount;
            toll.touch(now);
            Ok(Vec::new())
        };
        match operation::edit(self.store, self.edge, self.organization, before, rule).await {
            Ok(prepared) => {
                batch.checks.extend(prepared.batch.checks);
                batch.writes.extend(prepared.batch.writes);
                Ok(Fate::Updated)
            }
            Err(Error::Conflict(why)) => Ok(Fate::Invalid(format!("{why} Then import the file again."))),
            Err(error) => Err(error),
        }
    }
}
