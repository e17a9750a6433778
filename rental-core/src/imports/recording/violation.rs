//! Violations: the issuer's list is the truth about them, and its last word counts.

use super::{CHUNK, Intake, MOST_ATTEMPTS, contended};
use crate::{
    error::Error,
    imports::{Fate, statements::ViolationRow},
    operation,
    resources::{
        Resource,
        violation::{self, Violation},
    },
    store::{Batch, Commit, Key, key},
};
use std::collections::HashMap;
use uuid::Uuid;

#[derive(Default)]
struct Plan {
    batch: Batch,
    fates: Vec<(u64, Fate)>,
    matched: u64,
    /// Identities of the chunk, with the rows that have them.
    places: HashMap<Key, ViolationRow>,
}

impl Intake<'_> {
    /// Records rows of a list of `issuer`, [`CHUNK`] of them at most.
    ///
    /// # Errors
    /// The store cannot serve; the chunks before this one are recorded.
    pub async fn violations(&mut self, issuer: &str, rows: Vec<(u64, ViolationRow)>) -> Result<(), Error> {
        let mut rest = rows.as_slice();
        while !rest.is_empty() {
            rest = &rest[self.chunk(issuer, rest).await?..];
        }
        Ok(())
    }

    async fn chunk(&mut self, issuer: &str, rows: &[(u64, ViolationRow)]) -> Result<usize, Error> {
        'attempts: for _ in 0..MOST_ATTEMPTS {
            let (mut plan, mut taken) = (Plan::default(), 0);
            for (row, read) in rows.iter().take(CHUNK) {
                match self.one(issuer, *row, read, &mut plan).await {
                    Ok(true) => taken += 1,
                    Ok(false) => break,
                    // Recorded by somebody else since it was looked up.
                    Err(Error::Conflict(_)) => continue 'attempts,
                    Err(error) => return Err(error),
                }
            }
            if self.commit(std::mem::take(&mut plan.batch)).await? == Commit::Applied {
                plan.places.keys().for_each(|place| self.see(place));
                self.counts.matched += plan.matched;
                plan.fates.into_iter().for_each(|(row, fate)| self.counts.add(row, fate));
                return Ok(taken);
            }
        }
        Err(contended())
    }

    /// Adds one row to the plan; `false` when it must wait for the next transaction, as it changes a row of this one.
    async fn one(&mut self, issuer: &str, row: u64, read: &ViolationRow, plan: &mut Plan) -> Result<bool, Error> {
        let place = self.place(&violation::SPEC, &violation::identity(issuer, &read.summons_number));
        let fate = match plan.places.get(&place) {
            Some(earlier) if earlier == read => Fate::Duplicate,
            Some(_) => return Ok(false),
            None => {
                let vehicle = self.vehicle(None, read.plate.as_deref(), read.state.as_deref()).await?;
                match self.known(&place).await? {
                    Some(known) => self.update(known.id, read, vehicle, &mut plan.batch).await?,
                    // What a trial run would have made it cannot compare with.
                    None if self.has_seen(&place) => Fate::Updated,
                    None => {
                        let made = self.violation(issuer, read, vehicle);
                        plan.matched += u64::from(vehicle.is_some());
                        let batch = std::mem::take(&mut plan.batch);
                        plan.batch =
                            operation::insert(self.store, self.edge, self.organization, made.id, &made, batch).await?;
                        Fate::Created
                    }
                }
            }
        };
        plan.places.insert(place, read.clone());
        plan.fates.push((row, fate));
        Ok(true)
    }

    fn violation(&self, issuer: &str, row: &ViolationRow, vehicle_id: Option<Uuid>) -> Violation {
        let id = self.edge.new_id();
        let now = operation::created_at(id);
        let mut made = Violation {
            id,
            object: violation::SPEC.object.into(),
            summons_number: row.summons_number.clone(),
            issuer: Some(issuer.to_owned()),
            amount_due: row.amount_due,
            currency: self.organization.default_currency,
            vehicle_id,
            customer_id: None,
            plate: None,
            state: None,
            issue_date: None,
            violation_time: None,
            issued_on: None,
            issued_at: None,
            violation: None,
            fine_amount: None,
            penalty_amount: None,
            interest_amount: None,
            reduction_amount: None,
            payment_amount: None,
            issuing_agency: None,
            attribution: None,
            rental_id: None,
            created_at: now,
            updated_at: now,
        };
        take_over(&mut made, row);
        made
    }

    async fn update(
        &self,
        id: Uuid,
        row: &ViolationRow,
        vehicle: Option<Uuid>,
        batch: &mut Batch,
    ) -> Result<Fate, Error> {
        let place = key::record(self.organization.id, &violation::SPEC, id);
        let before = self.store.get(&[place]).await?.pop().flatten();
        let before = before.ok_or_else(|| Error::Internal("an identity leads to no violation".into()))?;
        let now = self.edge.now();
        let rule = |object: &mut Violation| {
            let old = object.clone();
            take_over(object, row);
            object.vehicle_id = object.vehicle_id.or(vehicle);
            if *object != old {
                object.touch(now);
            }
            Ok(Vec::new())
        };
        let prepared = operation::edit(self.store, self.edge, self.organization, before, rule).await?;
        let fate = if prepared.batch.is_empty() { Fate::Duplicate } else { Fate::Updated };
        batch.checks.extend(prepared.batch.checks);
        batch.writes.extend(prepared.batch.writes);
        Ok(fate)
    }
}

/// What the list says of a violation; a list that leaves something out does not take it away.
fn take_over(object: &mut Violation, row: &ViolationRow) {
    fn keep<T: Clone>(old: &mut Option<T>, new: &Option<T>) {
        if new.is_some() {
            old.clone_from(new);
        }
    }
    object.amount_due = row.amount_due;
    keep(&mut object.plate, &row.plate);
    keep(&mut object.state, &row.state);
    keep(&mut object.issue_date, &row.issue_date);
    keep(&mut object.violation_time, &row.violation_time);
    keep(&mut object.violation, &row.violation);
    keep(&mut object.fine_amount, &row.fine_amount);
    keep(&mut object.penalty_amount, &row.penalty_amount);
    keep(&mut object.interest_amount, &row.interest_amount);
    keep(&mut object.reduction_amount, &row.reduction_amount);
    keep(&mut object.payment_amount, &row.payment_amount);
    keep(&mut object.issuing_agency, &row.issuing_agency);
    keep(&mut object.issued_on, &row.issued_on);
    keep(&mut object.issued_at, &row.issued_at);
}
