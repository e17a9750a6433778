//! Invoices (spec, Invoice). The operator creates them; the API only reads them.

use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    resources::{
        Billable, Change, Create, Object, Portable, Resource, RuleContext, Series, Source, event::EventType, fields,
        rental::Rental, source::AccountEntry, toll::Toll, violation::Violation,
    },
    schema::{
        BY_UPDATE, CREATED_AT, CURRENCY, Kind, ResourceSpec, UPDATED_AT, field, filter, id, index, object,
        ordered_index,
    },
    value::{
        CreditNoteId, Currency, CustomerId, FieldValue, FromField, InvoiceId, Money, Name, RentalId, Text, Timestamp,
        TollId, ViolationId, objects, words,
    },
};
use serde::{Deserialize, Serialize};

words! {
    /// The states of an invoice. `open` becomes `paid` or `void`; there are no other changes.
    pub enum InvoiceStatus {
        /// The customer has not paid the invoice.
        Open = "open",
        /// The customer has paid the invoice.
        Paid = "paid",
        /// The invoice is cancelled, and what it billed can be billed again.
        Void = "void",
    }
}

/// How an open invoice is closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Settlement {
    /// The customer paid the invoice.
    Paid,
    /// The operator cancelled the invoice.
    Void,
}

/// The example of the lines in the documentation.
const INVOICE_LINES: &str =
    "[{\"description\":\"Extra cleaning\",\"amount\":25,\"rental_id\":null,\"toll_id\":null,\"violation_id\":null}]";

/// The description of an invoice.
pub const SPEC: ResourceSpec = ResourceSpec {
    object: "invoice",
    plural: "invoices",
    tag: 4,
    doc: "A bill to a customer for rentals, tolls and violations.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000004\""),
        object("\"invoice\""),
        field(
            "invoice_number",
            Kind::Text(255),
            "Human-readable number, without gaps within an organization.",
            "\"INV-000042\"",
        ),
        field(
            "customer_id",
            Kind::Reference("customer"),
            "Billed customer.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000002\"",
        )
        .required()
        .fixed(),
        field(
            "rental_id",
            Kind::Reference("rental"),
            "Rental that it bills, if it is for one.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000003\"",
        )
        .optional()
        .fixed(),
        field("lines", Kind::Lines, "What is billed.", INVOICE_LINES)
            .required()
            .fixed()
            .personal_but_kept("\"erased\""),
        field("total", Kind::Money, "Invoice total: the sum of the lines.", "25"),
        CURRENCY,
        field("status", Kind::Word(InvoiceStatus::WORDS), "Whether it is open, paid or void.", "\"open\""),
        field("paid_at", Kind::Time, "When it was paid.", "null").or_null(),
        field("voided_at", Kind::Time, "When it was voided.", "null").or_null(),
        field("amount_credited", Kind::Money, "What credit notes credit of its total.", "0"),
        field("credit_note_ids", Kind::References("credit_note"), "Its credit notes, in order.", "[]"),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[
        filter("status", "status"),
        filter("customer", "customer_id"),
        filter("invoice_number", "invoice_number"),
    ],
    ranges: BY_UPDATE,
    indexes: &[
        index(1, &["status"]),
        index(2, &["customer_id"]),
        index(3, &["status", "customer_id"]),
        ordered_index(16, "updated_at"),
        index(20, &["invoice_number"]),
    ],
    look_ups: &[],
    usual_changes: &[],
};

fields! {
    /// One line of an invoice. Description and amount are optional in a request that bills an object, and always stored.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "the names say it")]
    pub struct Line {
        pub description: Option<Name>,
        pub amount: Option<Money>,
        pub rental_id: Option<RentalId>,
        pub toll_id: Option<TollId>,
        pub violation_id: Option<ViolationId>,
    }
}

fields! {
    /// An invoice to a customer (spec, Invoice).
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct Invoice {
        pub id: InvoiceId,
        pub object: String,
        pub invoice_number: Option<Text>,
        pub customer_id: CustomerId,
        pub rental_id: Option<RentalId>,
        pub lines: Vec<Line>,
        pub total: Option<Money>,
        pub currency: Currency,
        pub status: Option<InvoiceStatus>,
        pub paid_at: Option<Timestamp>,
        pub voided_at: Option<Timestamp>,
        pub amount_credited: Money,
        pub credit_note_ids: Vec<CreditNoteId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl FromField for Vec<Line> {
    fn from_field(value: &FieldValue) -> Option<Self> {
        objects(value)
    }
}

/// The numbers of invoices.
const NUMBERS: Series = Series { counter: "invoices", prefix: "INV-", field: "invoice_number" };

impl Resource for Invoice {
    const SPEC: &'static ResourceSpec = &SPEC;
    const SERIES: Option<Series> = Some(NUMBERS);
}

impl Create for Invoice {
    /// Completes each line from the object that it bills, and computes the total.
    fn create(&mut self, context: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        let mut errors = FieldErrors::default();
        for (at, line) in self.lines.iter_mut().enumerate() {
            match line.complete(at, self.customer_id, context) {
                Err(Error::Invalid(wrong)) => errors.extend(wrong.listed().iter().cloned()),
                other => other?,
            }
        }
        errors.extend(self.billed_twice());
        errors.or(())?;
        self.total = Some(self.sum().ok_or_else(|| Error::too_large("lines"))?);
        self.invoice_number = Some(NUMBERS.text(context.number));
        self.status = Some(InvoiceStatus::Open);
        Ok(vec![EventType::InvoiceCreated])
    }

    /// What the lines bill gets their amounts in the same batch, so that racing invoices cannot bill it twice.
    fn elsewhere(&self, context: &RuleContext<'_>) -> Result<Vec<Change>, Error> {
        let billed = |(at, line): (usize, &Line)| {
            let (member, source) = line.source()?;
            let record = context.references.get(&format!("lines[{at}].{member}"))?.clone();
            let entry = AccountEntry::Billed(self.id, line.amount.unwrap_or_default());
            Some(source.change(record, entry, context.now))
        };
        self.lines.iter().enumerate().filter_map(billed).collect()
    }
}

impl Portable for Invoice {
    /// Checks that the number follows the last one and, unless the invoice is void, that its lines match what they bill.
    fn arrive(&self, context: &RuleContext<'_>) -> Result<(), Error> {
        NUMBERS.check(self.invoice_number.as_deref(), context.number, "invoices")?;
        if self.lines.iter().any(|line| line.description.is_none() || line.amount.is_none()) {
            return Err(Error::field("lines", FieldCode::Missing, "must all have `description` and `amount`"));
        }
        if self.total.is_none() || self.total != self.sum() {
            return Err(Error::field("total", FieldCode::Invalid, "must be the sum of the lines"));
        }
        let has_credits = !self.credit_note_ids.is_empty();
        let is_void = self.status == Some(InvoiceStatus::Void);
        if self.total < Some(self.amount_credited)
            || has_credits == self.amount_credited.is_zero()
            || has_credits && is_void
        {
            let rule = "must be at most the total, and go with `credit_note_ids`; a void invoice has neither";
            return Err(Error::field("amount_credited", FieldCode::Invalid, rule));
        }
        match (self.status, self.paid_at, self.voided_at) {
            (Some(InvoiceStatus::Open), None, None)
            | (Some(InvoiceStatus::Paid), Some(_), None)
            | (Some(InvoiceStatus::Void), None, Some(_)) => {}
            _ => {
                let rule = "must go with `paid_at` and `voided_at`: an open invoice has neither, another one its own";
                return Err(Error::field("status", FieldCode::Invalid, rule));
            }
        }
        let mut errors = FieldErrors::from(self.billed_twice());
        if self.status != Some(InvoiceStatus::Void) {
            for (at, line) in self.lines.iter().enumerate() {
                errors.extend(line.unlike(at, self, context)?);
            }
        }
        errors.or(())
    }
}

impl Line {
    /// What it bills, and the member with its id.
    #[must_use]
    pub fn source(&self) -> Option<(&'static str, Source)> {
        Source::of(self.rental_id, self.toll_id, self.violation_id)
    }

    /// The error when the object that this line of an imported invoice bills has another customer or does not list the
    /// invoice, or when a toll is smaller than the line.
    fn unlike(&self, at: usize, invoice: &Invoice, context: &RuleContext<'_>) -> Result<Option<FieldError>, Error> {
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
            _ if customer != Some(invoice.customer_id) && invoice.credit_note_ids.is_empty() => {
                wrong(&place, "is not attached to this customer")
            }
            _ if !account.contains(&invoice.id) => wrong(&place, "does not have this invoice in its `invoice_ids`"),
            Some(toll) if invoice.credit_note_ids.is_empty() && self.amount.is_none_or(|amount| amount > toll) => {
                wrong(&format!("lines[{at}].amount"), "must be at most that of the toll")
            }
            _ => None,
        })
    }

    /// Completes description and amount from the object that the line bills, whose customer must be that of the invoice. A
    /// fee needs a separate line.
    fn complete(&mut self, at: usize, customer: CustomerId, context: &RuleContext<'_>) -> Result<(), Error> {
        let place = |member: &str| format!("lines[{at}].{member}");
        let refuse = |member: &str, rule: &str| Err(Error::field(&place(member), FieldCode::Invalid, rule));
        let (amount, what, details) = if let Some(toll) = context.reference::<Toll>(&place("toll_id"))? {
            if toll.customer_id != Some(customer) {
                return refuse("toll_id", "is not attached to this customer; attach it first");
            }
            let when = toll.occurred_on.map(|date| date.to_string());
            let parts = [Some(&*toll.agency), toll.plaza.as_deref(), when.as_deref()];
            (toll.amount_to_bill(self.amount)?, "Toll", parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
        } else if let Some(violation) = context.reference::<Violation>(&place("violation_id"))? {
            if violation.customer_id != Some(customer) {
                return refuse("violation_id", "is not attached to this customer; attach it first");
            }
            let parts =
                [Some(&*violation.summons_number), violation.violation.as_deref(), violation.issue_date.as_deref()];
            let details = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
            (violation.amount_to_bill(self.amount)?, "Violation", details)
        } else if let Some(rental) = context.reference::<Rental>(&place("rental_id"))? {
            if rental.customer_id != customer {
                return refuse("rental_id", "is a rental of another customer");
            }
            let dates = rental.start_date.zip(rental.end_date).map(|(start, end)| format!("{start} to {end}"));
            (rental.amount_to_bill(self.amount)?, "Rental", dates.unwrap_or_default())
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
        self.amount = Some(amount);
        if self.description.is_none() {
            self.description = Name::fit(format!("{what} {details}").trim_end(), 255);
        }
    }
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

impl Invoice {
    /// What its lines bill; nothing when it is void.
    pub(crate) fn sources(&self) -> Vec<Source> {
        let lines = self.lines.iter().filter(|_| self.status != Some(InvoiceStatus::Void));
        lines.filter_map(Line::source).map(|(_, source)| source).collect()
    }

    /// The sum of the lines; `None` above [`Money::MAX`].
    fn sum(&self) -> Option<Money> {
        self.lines.iter().try_fold(Money::default(), |sum, line| sum.plus(line.amount.unwrap_or_default()))
    }

    /// The errors of lines that bill the same object as an earlier line.
    fn billed_twice(&self) -> Vec<FieldError> {
        let sources: Vec<Option<(&str, Source)>> = self.lines.iter().map(Line::source).collect();
        let twice = |source: &Option<(&str, Source)>| {
            source.is_some() && sources.iter().filter(|other| *other == source).count() > 1
        };
        let rule = "bills what another line of this invoice bills";
        let wrong = |(at, _)| FieldError::new(&format!("lines[{at}]"), FieldCode::Duplicate, rule);
        sources.iter().enumerate().filter(|(_, source)| twice(source)).map(wrong).collect()
    }

    /// Adds a credit note. `None` above the total.
    pub(crate) fn add_credit(&mut self, note: CreditNoteId, amount: Money, now: Timestamp) -> Option<()> {
        self.amount_credited = self.amount_credited.plus(amount).filter(|sum| Some(*sum) <= self.total)?;
        self.credit_note_ids.push(note);
        self.touch(now);
        Some(())
    }

    /// Marks an open invoice as paid or void, and returns the event. What a void invoice billed changes separately.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the invoice is not open.
    pub(crate) fn settle(&mut self, how: Settlement, now: Timestamp) -> Result<EventType, Error> {
        let status = self.status.unwrap_or(InvoiceStatus::Open);
        if status != InvoiceStatus::Open {
            return Err(Error::Conflict(format!("This invoice is {status}; only an open one can be paid or voided.")));
        }
        if how == Settlement::Void && !self.credit_note_ids.is_empty() {
            let (credited, total) = (self.amount_credited, self.total.unwrap_or_default());
            return Err(Error::Conflict(format!(
                "Credit notes credit {credited} of the {total} of this invoice, so it cannot be voided. Credit the rest instead."
            )));
        }
        let (status, time, event) = match how {
            Settlement::Paid => (InvoiceStatus::Paid, &mut self.paid_at, EventType::InvoicePaid),
            Settlement::Void => (InvoiceStatus::Void, &mut self.voided_at, EventType::InvoiceVoided),
        };
        *time = Some(now);
        self.status = Some(status);
        self.touch(now);
        Ok(event)
    }
}
