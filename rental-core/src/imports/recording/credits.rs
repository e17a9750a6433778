//! Credits: rows that reduce the amount of another row's object.

use super::{
    importable::Importable,
    recorder::{MAX_ATTEMPTS, Recorder, contended},
};
use crate::{
    error::Error,
    imports::{RowOutcome, statements::StatementRow},
    resources::parse,
    rows::claim,
    store::{Batch, Commit, all_sound, get_one},
    value::Id,
};

impl<T: Importable> Recorder<'_, T> {
    /// Records one credit in its own transaction.
    pub(super) async fn credit(&mut self, number: u64, credit: &T::Row) -> Result<(), Error> {
        for _ in 0..MAX_ATTEMPTS {
            let (mut batch, mut review) = (Batch::default(), None);
            let outcome = match self.take_back(credit, &mut batch, &mut review).await {
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
                review.into_iter().for_each(|message| self.counts.add_review(number, message));
                return Ok(());
            }
        }
        Err(contended())
    }

    async fn take_back(
        &mut self,
        credit: &T::Row,
        batch: &mut Batch,
        review: &mut Option<String>,
    ) -> Result<RowOutcome, Error> {
        let charge = self.object(credit);
        let charge = self.with_vehicle(charge).await?;
        let Some(identity) = charge.identity() else {
            return Ok(RowOutcome::Invalid("is a credit without a transaction number and a time".into()));
        };
        let key = self.identity_key(&format!("credit\n{identity}"));
        let (amount, object) = (T::stated_amount(credit).unwrap_or_default(), T::SPEC.object);
        let known = self.claim(&key).await?;
        // An agency can give back parts under one number. Its claim has the amounts that were given back.
        let given_back = known.iter().flat_map(|known| known.amount.iter().chain(&known.former));
        if given_back.into_iter().any(|given_back| *given_back == amount) {
            return Ok(RowOutcome::Duplicate);
        }
        if let Some(known) = known.as_ref().filter(|known| known.former.len() >= claim::MOST_FORMER) {
            let most = claim::MOST_FORMER + 1;
            return Ok(RowOutcome::Invalid(format!(
                "gives back another {amount} for {}, for which {most} other amounts were given back; no more are \
                 remembered, so this one is not given back",
                self.name_of(known.id)
            )));
        }
        let place = self.identity_key(&identity);
        let own = self.claim(&place).await?;
        let charged = match (&known, &own) {
            (Some(known), _) => Some(known.id),
            (None, Some(own)) => Some(own.id),
            (None, None) => self.newest_charge(&charge).await?,
        };
        let Some(charged) = charged else {
            return Ok(RowOutcome::Invalid(format!(
                "gives back {amount} for no {object} that is known; import the statement that has the {object}, then \
                 this one again"
            )));
        };
        if let Some(wrong) = self.of_another(&charge, charged).await? {
            let whose = self.name_of(charged);
            if wrong == "vehicle" {
                return Ok(RowOutcome::Invalid(format!(
                    "gives back {amount} under the number of {whose}, but for another {wrong}; an agency gives each {object} a \
                     number of its own, so look at the statement and correct the wrong row"
                )));
            }
            *review = Some(format!(
                "gives back {amount} for {whose}, which has its number and another {wrong}; look at the statement if that is wrong"
            ));
        }
        let replaced = own.filter(|own| own.former.contains(&amount)).and_then(|own| own.amount);
        let outcome = match replaced {
            Some(present) => {
                *review = Some(format!(
                    "gives back {amount}, which this {object} was charged with before {present} replaced it, so {present} stays; \
                     if the agency gives back a part of the {present}, credit it to the customer by hand"
                ));
                RowOutcome::Duplicate
            }
            None if self.is_stated_twice(&place) => {
                *review = Some(format!(
                    "gives back {amount}, which this file charges twice under one number, so it stays charged once; look at the \
                     statement, because if the second charge is a repetition, nothing is owed"
                ));
                RowOutcome::Duplicate
            }
            None => self.change(charged, batch, |object| object.take_back(credit)).await?,
        };
        if matches!(outcome, RowOutcome::Updated | RowOutcome::Duplicate) {
            match known {
                None => batch.insert(key, claim::claim_value(charged.uuid(), Some(amount))),
                Some(known) => {
                    let value = claim::stated_value(charged.uuid(), amount, known.amount, &known.former);
                    batch.replace(known.record.key, known.record.revision, value);
                }
            }
        }
        Ok(outcome)
    }

    /// What contradicts that a credit is for this object, if something does.
    async fn of_another(&mut self, credit: &T, charged: Id<T::Kind>) -> Result<Option<&'static str>, Error> {
        let Some(record) = get_one(self.store, &T::key(self.organization.id, charged)).await? else { return Ok(None) };
        let known = self.with_vehicle(parse(&record.key, &record.value)?).await?;
        Ok(known.contradiction(credit))
    }

    /// The newest object under the look-up of a credit whose identity no object has.
    async fn newest_charge(&self, charge: &T) -> Result<Option<Id<T::Kind>>, Error> {
        let Some(look_up) = charge.credit_look_up() else { return Ok(None) };
        let span = look_up.span(self.organization.id, T::SPEC);
        let found = all_sound(self.store.scan(&span, 1).await?)?;
        Ok(found.first().and_then(|record| record.key.id()).map(Id::from_uuid))
    }
}
