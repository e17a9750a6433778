//! Credits: rows that reduce the amount of another row's object.

use super::{
    importable::Importable,
    recorder::{MAX_ATTEMPTS, Recorder, contended},
};
use crate::{
    error::Error,
    imports::{RowOutcome, statements::StatementRow},
    rows::claim,
    store::{Batch, Commit, all_sound},
    value::Id,
};

impl<T: Importable> Recorder<'_, T> {
    /// Records one credit in its own transaction.
    pub(super) async fn credit(&mut self, number: u64, credit: &T::Row) -> Result<(), Error> {
        for _ in 0..MAX_ATTEMPTS {
            let mut batch = Batch::default();
            let outcome = match self.take_back(credit, &mut batch).await {
                Err(Error::Damaged(damage)) => {
                    let outcome = RowOutcome::beside_damage(&damage);
                    self.damaged.push(*damage);
                    self.counts.add(number, outcome, credit.sum());
                    return Ok(());
                }
                outcome => outcome?,
            };
            if self.commit(batch).await? == Commit::Applied {
                self.counts.add(number, outcome, credit.sum());
                return Ok(());
            }
        }
        Err(contended())
    }

    async fn take_back(&mut self, credit: &T::Row, batch: &mut Batch) -> Result<RowOutcome, Error> {
        let charge = self.object(credit);
        let Some(identity) = charge.identity() else {
            return Ok(RowOutcome::Invalid("is a credit without a transaction number and a time".into()));
        };
        let key = self.identity_key(&format!("credit\n{identity}"));
        let (amount, object) = (T::stated_amount(credit).unwrap_or_default(), T::SPEC.object);
        let Some(known) = self.claim(&key).await? else {
            let Some(original) = self.charge_of(&charge, &identity).await? else {
                return Ok(RowOutcome::Invalid(format!(
                    "gives back {amount} for no {object} that is known; import the statement that has the {object}, then \
                     this one again"
                )));
            };
            let outcome = self.change(original, batch, |object| object.take_back(credit)).await?;
            if outcome == RowOutcome::Updated {
                batch.insert(key, claim::claim_value(original.uuid(), Some(amount)));
            }
            return Ok(outcome);
        };
        // An agency can give back parts under one number. Its claim has the amounts that were given back.
        if known.amount.iter().chain(&known.former).any(|given_back| *given_back == amount) {
            return Ok(RowOutcome::Duplicate);
        }
        if known.former.len() >= claim::MOST_FORMER {
            let most = claim::MOST_FORMER + 1;
            return Ok(RowOutcome::Invalid(format!(
                "gives back another {amount} for {}, for which {most} other amounts were given back; no more are \
                 remembered, so this one is not given back",
                self.name_of(known.id)
            )));
        }
        let outcome = self.change(known.id, batch, |object| object.take_back(credit)).await?;
        if outcome == RowOutcome::Updated {
            let value = claim::stated_value(known.id.uuid(), amount, known.amount, &known.former);
            batch.replace(known.record.key, known.record.revision, value);
        }
        Ok(outcome)
    }

    /// The object that a credit belongs to: the one with the same identity, else the newest one under its look-up.
    async fn charge_of(&self, charge: &T, identity: &str) -> Result<Option<Id<T::Kind>>, Error> {
        if let Some(claim) = self.claim(&self.identity_key(identity)).await? {
            return Ok(Some(claim.id));
        }
        let Some(look_up) = charge.credit_look_up() else { return Ok(None) };
        let span = look_up.span(self.organization.id, T::SPEC);
        let found = all_sound(self.store.scan(&span, 1).await?)?;
        Ok(found.first().and_then(|record| record.key.id()).map(Id::from_uuid))
    }
}
