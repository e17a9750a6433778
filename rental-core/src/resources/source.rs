//! What a line of an invoice bills, and the change of its account in the batch of the invoice.

use super::{
    billing::Billable,
    effects,
    rental::Rental,
    resource::{Resource, parse},
    rules::{Change, Outcome},
    toll::Toll,
    violation::Violation,
};
use crate::{
    error::Error,
    store::{Key, Record},
    value::{InvoiceId, Money, OrganizationId, RentalId, Timestamp, TollId, ViolationId},
};
use uuid::Uuid;

/// What a line of an invoice bills.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// A rental.
    Rental(RentalId),
    /// A toll.
    Toll(TollId),
    /// A violation.
    Violation(ViolationId),
}

impl Source {
    /// The source that a line names, and the member with its id.
    pub(crate) fn of(
        rental: Option<RentalId>,
        toll: Option<TollId>,
        violation: Option<ViolationId>,
    ) -> Option<(&'static str, Self)> {
        let toll = || toll.map(|id| ("toll_id", Self::Toll(id)));
        let violation = || violation.map(|id| ("violation_id", Self::Violation(id)));
        rental.map(|id| ("rental_id", Self::Rental(id))).or_else(toll).or_else(violation)
    }

    /// The key of its record.
    #[must_use]
    pub(crate) fn key(self, organization: OrganizationId) -> Key {
        match self {
            Self::Rental(id) => Rental::key(organization, id),
            Self::Toll(id) => Toll::key(organization, id),
            Self::Violation(id) => Violation::key(organization, id),
        }
    }

    /// What invoices bill of its record above what it costs now: its amount fell after it was billed.
    ///
    /// # Errors
    /// The record is damaged.
    pub(crate) fn billed_in_excess(self, record: &Record) -> Result<Money, Error> {
        fn of<T: Billable>(record: &Record) -> Result<Money, Error> {
            let object: T = parse(&record.key, &record.value)?;
            let (billed, _) = object.account();
            Ok(object.price().and_then(|price| billed.minus(price)).unwrap_or_default())
        }
        match self {
            Self::Rental(_) => of::<Rental>(record),
            Self::Toll(_) => of::<Toll>(record),
            Self::Violation(_) => of::<Violation>(record),
        }
    }

    /// Whether a person is asked to credit what is billed of its record above the present cost.
    ///
    /// # Errors
    /// The record is damaged.
    pub(crate) fn is_billed_too_high(self, record: &Record) -> Result<bool, Error> {
        match self {
            Self::Rental(_) | Self::Toll(_) => Ok(false),
            Self::Violation(_) => Ok(parse::<Violation>(&record.key, &record.value)?.is_billed_too_high()),
        }
    }

    /// The change of its record by an entry in its account. `credited` is what is credited of it for good, then.
    pub(crate) fn change(
        self,
        record: Record,
        entry: AccountEntry,
        credited: Money,
        now: Timestamp,
    ) -> Result<Change, Error> {
        match self {
            Self::Rental(_) => change::<Rental>(record, entry, credited, now),
            Self::Toll(_) => change::<Toll>(record, entry, credited, now),
            Self::Violation(_) => change::<Violation>(record, entry, credited, now),
        }
    }

    /// The id of what the line bills.
    #[must_use]
    pub(crate) fn id(self) -> Uuid {
        match self {
            Self::Rental(id) => id.uuid(),
            Self::Toll(id) => id.uuid(),
            Self::Violation(id) => id.uuid(),
        }
    }
}

/// An entry in the account of what invoices bill.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AccountEntry {
    /// An invoice bills this amount of it.
    Billed(InvoiceId, Money),
    /// This invoice, which billed the amount, is void.
    Voided(InvoiceId, Money),
    /// A credit note makes this amount billable again.
    Credited(Money),
    /// A credit note credits a part of it for good: that stays billed.
    CreditedForGood,
}

fn change<T: Billable>(before: Record, entry: AccountEntry, credited: Money, now: Timestamp) -> Result<Change, Error> {
    let mut object: T = parse(&before.key, &before.value)?;
    let effects_before = Some(effects::of(&object));
    match entry {
        AccountEntry::Billed(invoice, amount) => {
            object.add_invoice(invoice, amount).ok_or_else(|| Error::too_large("lines"))?;
        }
        AccountEntry::Voided(invoice, amount) => object.take_off(invoice, amount),
        AccountEntry::Credited(amount) => object.credit(amount),
        AccountEntry::CreditedForGood => {}
    }
    object.note_bill(credited);
    object.touch(now);
    Ok(Change { before, outcome: Outcome::new(object, true, Vec::new(), effects_before)? })
}
