//! The lines of an invoice: what each bills, and for how much.

use crate::{
    error::{Error, FieldCode, FieldError},
    resources::{Billable, RuleContext, Source, fields, rental::Rental, toll::Toll, violation::Violation},
    value::{
        CustomerId, FieldValue, FromField, InvoiceId, Money, Name, RentalId, SignedMoney, Text, TollId, ViolationId,
        Zone, objects,
    },
};
use serde::{Deserialize, Serialize};

fields! {
    /// One line of an invoice. Description and amount are optional in a request that bills an object, and always stored. A line that
    /// bills no object can have a negative amount: a discount.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "the names say it")]
    pub struct Line {
        pub description: Option<Name>,
        pub amount: Option<SignedMoney>,
        pub rental_id: Option<RentalId>,
        pub toll_id: Option<TollId>,
        pub violation_id: Option<ViolationId>,
        pub vehicle: Option<Text>,
    }
}

impl FromField for Vec<Line> {
    fn from_field(value: &FieldValue) -> Option<Self> {
        objects(value)
    }
}

impl Line {
    /// Its amount; 0 of a discount.
    #[must_use]
    pub fn billed(&self) -> Money {
        self.amount.unwrap_or_default().above_zero()
    }

    /// By how much a discount lowers the total; 0 of another line.
    pub(super) fn discount(&self) -> Money {
        self.amount.unwrap_or_default().below_zero()
    }

    /// What it bills, and the member with its id.
    #[must_use]
    pub fn source(&self) -> Option<(&'static str, Source)> {
        Source::of(self.rental_id, self.toll_id, self.violation_id)
    }

    /// The error when the object that this line of an imported invoice bills has another customer than `owner` or does not
    /// list the invoice, or when a toll is smaller than the line. `credited`: the invoice has credit notes.
    pub(super) fn unlike(
        &self,
        at: usize,
        (invoice, owner): (InvoiceId, CustomerId),
        credited: bool,
        context: &RuleContext<'_>,
    ) -> Result<Option<FieldError>, Error> {
        let Some((member, _)) = self.source() else { return Ok(None) };
        let place = format!("lines[{at}].{member}");
        let (customer, account, amount) = match member {
            "toll_id" => stated(context.reference::<Toll>(&place)?, |toll| (toll.customer_id, Some(toll.amount))),
            "violation_id" => stated(context.reference::<Violation>(&place)?, |one| (one.customer_id, None)),
            _ => stated(context.reference::<Rental>(&place)?, |rental| (Some(rental.customer_id), None)),
        };
        let wrong = |place: &str, rule| Some(FieldError::new(place, FieldCode::Invalid, rule));
        Ok(match amount {
            // What was credited may have got another customer since.
            _ if customer != Some(owner) && !credited => wrong(&place, "is not attached to this customer"),
            _ if !account.contains(&invoice) => wrong(&place, "does not have this invoice in its `invoice_ids`"),
            Some(toll) if !credited && (self.amount.is_none() || self.billed() > toll) => {
                wrong(&format!("lines[{at}].amount"), "must be at most that of the toll")
            }
            _ => None,
        })
    }

    /// Completes description and amount from the object that the line bills, whose customer must be that of the invoice. A
    /// fee needs a separate line.
    pub(super) fn complete(&mut self, at: usize, customer: CustomerId, context: &RuleContext<'_>) -> Result<(), Error> {
        let wanted = self.amount.map(|_| self.billed());
        let place = |member: &str| format!("lines[{at}].{member}");
        let refuse = |member: &str, rule: &str| Err(Error::field(&place(member), FieldCode::Invalid, rule));
        let (amount, what, details) = if let Some(toll) = context.reference::<Toll>(&place("toll_id"))? {
            if toll.customer_id != Some(customer) {
                return refuse("toll_id", "is not attached to this customer; attach it first");
            }
            let when = moment(&toll, context.organization.time_zone);
            let read = toll.plate.as_deref().or(toll.transponder_number.as_deref());
            let parts = [Some(&*toll.agency), toll.plaza.as_deref(), when.as_deref(), read];
            (toll.amount_to_bill(wanted)?, "Toll", parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
        } else if let Some(violation) = context.reference::<Violation>(&place("violation_id"))? {
            if violation.customer_id != Some(customer) {
                return refuse("violation_id", "is not attached to this customer; attach it first");
            }
            // The day as a date, which the document writes in its language.
            let issued = violation.issued_on.map(|day| day.to_string());
            let issued = issued.as_deref().or(violation.issue_date.as_deref());
            let parts = [Some(&*violation.summons_number), violation.violation.as_deref(), issued];
            let details = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
            (violation.amount_to_bill(wanted)?, "Violation", details)
        } else if let Some(rental) = context.reference::<Rental>(&place("rental_id"))? {
            if rental.customer_id != customer {
                return refuse("rental_id", "is a rental of another customer");
            }
            let dates = rental.start_date.zip(rental.end_date).map(|(start, end)| format!("{start} to {end}"));
            (rental.amount_to_bill(wanted)?, "Rental", dates.unwrap_or_default())
        } else {
            return Ok(());
        };
        match amount {
            Ok(amount) => self.settle(amount, what, &details),
            Err(rule) => return refuse("amount", &rule),
        }
        Ok(())
    }

    fn settle(&mut self, amount: Money, what: &str, details: &str) {
        self.amount = Some(amount.into());
        if self.description.is_none() {
            self.description = Name::fit(format!("{what} {details}").trim_end(), 255);
        }
    }
}

/// When a toll was caused, as its statement says: its day, and the time if that is the same day where the statement has it, else
/// in the time zone of the organization.
fn moment(toll: &Toll, zone: Zone) -> Option<String> {
    let day = toll.occurred_on?.to_string();
    let shown = toll.occurred_at.map(|at| toll.time_zone.unwrap_or(zone).shown(at));
    let minute = shown.as_deref().filter(|shown| shown.starts_with(&day)).and_then(|shown| shown.get(..16));
    Some(minute.map_or_else(|| day.clone(), str::to_owned))
}

/// The customer, the invoices and the amount of what a line bills.
fn stated<T: Billable>(
    object: Option<T>,
    of: impl FnOnce(&T) -> (Option<CustomerId>, Option<Money>),
) -> (Option<CustomerId>, Vec<InvoiceId>, Option<Money>) {
    object.map_or_else(Default::default, |object| {
        let (customer, amount) = of(&object);
        (customer, object.account().1.to_vec(), amount)
    })
}
