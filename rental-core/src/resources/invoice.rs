//! Invoices (spec, Invoice). The operator creates them; the API only reads them.

mod creditable;
mod line;

pub(crate) use creditable::Creditable;
pub use line::Line;

use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    resources::{
        Change, Create, Object, Portable, Resource, RuleContext, Series, Source,
        customer::Customer,
        event::EventType,
        fields,
        rental::Rental,
        source::AccountEntry,
        tax::{self, Tax},
        vehicle::Vehicle,
    },
    schema::{
        CREATED_AT, CURRENCY, IndexValue, Kind, ResourceSpec, UPDATED_AT, field, filter, id, index, object,
        ordered_index,
    },
    store::Key,
    value::{
        CreditNoteId, Currency, CustomerId, Date, Email, InvoiceId, MOST_LINES, Money, Name, Percent, Phone, RentalId,
        SignedMoney, Text, Timestamp, words,
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
    /// The customer paid the invoice: at this time, or now. The time can be earlier than the booking, because a credit note that was
    /// issued between them is refunded.
    Paid(Option<Timestamp>),
    /// The operator cancelled the invoice.
    Void,
}

/// The example of the lines in the documentation.
const INVOICE_LINES: &str = "[{\"description\":\"Extra cleaning\",\"amount\":25,\"rental_id\":null,\"toll_id\":null,\"violation_id\":null,\"vehicle\":null}]";

/// The description of an invoice.
pub static SPEC: ResourceSpec = ResourceSpec {
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
        field("lines", Kind::Lines, "What is billed, less discounts: lines with a negative amount.", INVOICE_LINES)
            .sent_as("[{\"description\":\"Extra cleaning\",\"amount\":25}]")
            .required()
            .fixed()
            .personal_but_kept("\"erased\""),
        field("total", Kind::Money, "Invoice total: the sum of the lines, and the tax unless they contain it.", "25"),
        field("tax_name", Kind::Name(50), "Name of the tax; goes with `tax_rate`.", "null").optional().fixed(),
        field("tax_rate", Kind::Percent, "Its rate in percent, with at most 4 decimals.", "null").optional().fixed(),
        field("tax_included", Kind::Boolean, "Whether the lines contain the tax; otherwise it is added.", "null")
            .optional()
            .fixed(),
        field("tax_amount", Kind::Money, "The tax of all lines together, rounded half up.", "null").or_null(),
        CURRENCY,
        field("status", Kind::Word(InvoiceStatus::WORDS), "Whether it is open, paid or void.", "\"open\""),
        field("paid_at", Kind::Time, "When it was paid.", "null").or_null(),
        field("voided_at", Kind::Time, "When it was voided.", "null").or_null(),
        field(
            "due_date",
            Kind::Date,
            "Day until which the customer pays: by default `payment_terms_days` of the organization after the day of creation.",
            "\"2099-05-19\"",
        )
        .optional()
        .fixed(),
        field("amount_credited", Kind::Money, "What credit notes credit of its total.", "0"),
        field("credit_note_ids", Kind::References("credit_note"), "Its credit notes, in order.", "[]"),
        field("seller_name", Kind::Name(255), "Seller when it was issued: name.", "\"Sunrise Rentals LLC\"").or_null(),
        field("seller_address", Kind::Paragraph(500, MOST_LINES), "Address of the seller.", "null").or_null(),
        field("seller_tax_id", Kind::Text(100), "Tax number of the seller.", "null").or_null(),
        field("seller_email", Kind::Email, "Email address of the seller.", "null").or_null(),
        field("seller_phone", Kind::Phone, "Phone number of the seller.", "null").or_null(),
        field("buyer_name", Kind::Name(255), "Customer when it was issued: name.", "\"Ada Lovelace\"")
            .or_null()
            .personal_but_kept("\"erased\""),
        field("buyer_address", Kind::Paragraph(500, MOST_LINES), "Address of the customer.", "null")
            .or_null()
            .personal_but_kept("null"),
        field("buyer_email", Kind::Email, "Email address of the customer.", "\"ada@example.com\"")
            .or_null()
            .personal_but_kept("null"),
        field("buyer_phone", Kind::Phone, "Phone number of the customer.", "\"+14155550123\"")
            .or_null()
            .personal_but_kept("null"),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[
        filter("status", "status"),
        filter("customer", "customer_id"),
        filter("invoice_number", "invoice_number"),
    ],
    ranges: &[filter("updated", "updated_at"), filter("due_date", "due_date")],
    indexes: &[
        index(1, &["status"]),
        index(2, &["customer_id"]),
        index(3, &["status", "customer_id"]),
        ordered_index(16, "updated_at"),
        index(20, &["invoice_number"]),
        // Of invoices of which something is owed: those that are overdue are a range of it.
        ordered_index(21, "due_date"),
    ],
    look_ups: &[],
    usual_changes: &[],
};

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
        pub tax_name: Option<Name>,
        pub tax_rate: Option<Percent>,
        pub tax_included: Option<bool>,
        pub tax_amount: Option<Money>,
        pub currency: Currency,
        pub status: Option<InvoiceStatus>,
        pub paid_at: Option<Timestamp>,
        pub voided_at: Option<Timestamp>,
        pub due_date: Option<Date>,
        pub amount_credited: Money,
        pub credit_note_ids: Vec<CreditNoteId>,
        pub seller_name: Option<Name>,
        pub seller_address: Option<Text>,
        pub seller_tax_id: Option<Text>,
        pub seller_email: Option<Email>,
        pub seller_phone: Option<Phone>,
        pub buyer_name: Option<Name>,
        pub buyer_address: Option<Text>,
        pub buyer_email: Option<Email>,
        pub buyer_phone: Option<Phone>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// The name of the vehicle of a line in the context of the rule.
fn vehicle_place(at: usize) -> String {
    format!("lines[{at}].vehicle")
}

/// The numbers of invoices.
const NUMBERS: Series = Series { counter: "invoices", prefix: "INV-", field: "invoice_number" };

impl Resource for Invoice {
    const SPEC: &'static ResourceSpec = &SPEC;
    const SERIES: Option<Series> = Some(NUMBERS);

    /// Only an open invoice that is not credited as a whole has an entry by its due date.
    fn indexed(&self, name: &str) -> Option<IndexValue<'_>> {
        if name == "due_date" && !self.is_owed() { None } else { self.index_value(name) }
    }
}

impl Create for Invoice {
    const READS_MORE: bool = true;

    /// The vehicles of the rentals that it bills.
    fn reads(&self, context: &RuleContext<'_>) -> Result<Vec<(String, Key)>, Error> {
        let mut vehicles = Vec::new();
        for at in (0..self.lines.len()).filter(|at| self.lines.get(*at).is_some_and(|line| line.rental_id.is_some())) {
            if let Some(rental) = context.reference::<Rental>(&format!("lines[{at}].rental_id"))? {
                vehicles.push((vehicle_place(at), Vehicle::key(context.organization.id, rental.vehicle_id)));
            }
        }
        Ok(vehicles)
    }

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
        errors.extend(tax::incomplete(self.tax_name.as_ref(), self.tax_rate, self.tax_included));
        errors.extend(self.set_due_date(context).err());
        errors.or(())?;
        self.check_discounts()?;
        if self.tax_rate.is_some() {
            self.tax_included.get_or_insert(false);
        }
        self.compute_total().ok_or_else(|| Error::too_large("lines"))?;
        self.keep_parties(context)?;
        self.invoice_number = Some(NUMBERS.text(context.number));
        self.status = Some(InvoiceStatus::Open);
        Ok(vec![EventType::InvoiceCreated])
    }

    /// What the lines bill gets their amounts in the same batch, so that racing invoices cannot bill it twice.
    fn elsewhere(&self, context: &RuleContext<'_>) -> Result<Vec<Change>, Error> {
        let billed = |(at, line): (usize, &Line)| {
            let (member, source) = line.source()?;
            let record = context.references.get(&format!("lines[{at}].{member}"))?.clone();
            let entry = AccountEntry::Billed(self.id, line.billed());
            // No more is billed than it costs.
            Some(source.change(record, entry, Money::default(), context.now))
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
        self.check_discounts()?;
        let mut again = self.clone();
        let is_taxed = (self.tax_name.is_some(), self.tax_included.is_some()) == (true, true);
        let fits =
            if self.tax_rate.is_some() { is_taxed } else { self.tax_name.is_none() && self.tax_included.is_none() };
        if !fits || again.compute_total().is_none() || again.tax_amount != self.tax_amount {
            let rule = "must be that of the lines, with `tax_name`, `tax_rate` and `tax_included`, or null like them";
            return Err(Error::field("tax_amount", FieldCode::Invalid, rule));
        }
        if self.total.is_none() || self.total != again.total {
            return Err(Error::field(
                "total",
                FieldCode::Invalid,
                "must be the sum of the lines, and the tax if it is added",
            ));
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
                errors.extend(line.unlike(
                    at,
                    (self.id, self.customer_id),
                    !self.credit_note_ids.is_empty(),
                    context,
                )?);
            }
        }
        errors.or(())
    }
}

impl Invoice {
    /// What its lines bill; nothing when it is void.
    pub(crate) fn sources(&self) -> Vec<Source> {
        let lines = self.lines.iter().filter(|_| self.status != Some(InvoiceStatus::Void));
        lines.filter_map(Line::source).map(|(_, source)| source).collect()
    }

    /// Whether the customer has something to pay: it is open, and credit notes left something of its total.
    fn is_owed(&self) -> bool {
        let is_credited = !self.credit_note_ids.is_empty() && Some(self.amount_credited) == self.total;
        self.status == Some(InvoiceStatus::Open) && !is_credited
    }

    /// The sum of the lines; `None` below 0, or if what they bill is above [`Money::MAX`].
    fn sum(&self) -> Option<Money> {
        let add = |of: fn(&Line) -> Money| self.lines.iter().try_fold(Money::default(), |sum, line| sum.plus(of(line)));
        add(Line::billed)?.minus(add(Line::discount)?)
    }

    /// The errors of discounts that take the total below 0.
    fn check_discounts(&self) -> Result<(), Error> {
        let mut sum = SignedMoney::default();
        self.lines.iter().for_each(|line| sum += line.amount.unwrap_or_default());
        if sum.below_zero().is_zero() {
            return Ok(());
        }
        let rule = format!("takes the total below 0: the lines add up to {sum}");
        let discounts = self.lines.iter().enumerate().filter(|(_, line)| !line.discount().is_zero());
        let wrong = discounts.map(|(at, _)| FieldError::new(&format!("lines[{at}].amount"), FieldCode::Invalid, &rule));
        FieldErrors::from(wrong.collect::<Vec<_>>()).or(())
    }

    /// How it is taxed, if it is.
    pub(crate) fn tax(&self) -> Option<Tax> {
        let included = self.tax_included.unwrap_or(false);
        self.tax_rate.map(|rate| Tax { rate, included, currency: self.currency })
    }

    /// Sets total and tax from the lines. `None` above [`Money::MAX`].
    fn compute_total(&mut self) -> Option<()> {
        let sum = self.sum()?;
        let tax = self.tax().map(|tax| (tax, tax.on(sum)));
        self.total = Some(tax.map_or(Some(sum), |(tax, amount)| tax.total(sum, amount))?);
        self.tax_amount = tax.map(|(_, amount)| amount);
        Some(())
    }

    /// Sets the due date by the terms of the organization, unless it was sent.
    fn set_due_date(&mut self, context: &RuleContext<'_>) -> Result<(), FieldError> {
        let today = context.organization.time_zone.local(context.now).date();
        let terms = context.organization.payment_terms_days;
        match self.due_date {
            None => self.due_date = terms.and_then(|days| today.plus_days(days)),
            Some(due) if due < today => {
                let rule = format!("must be {today}, the day of the invoice, or later");
                return Err(FieldError::new("due_date", FieldCode::Invalid, &rule));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Keeps what is known of seller, buyer and vehicles when the invoice is issued.
    fn keep_parties(&mut self, context: &RuleContext<'_>) -> Result<(), Error> {
        let seller = context.organization;
        self.seller_name = Some(seller.legal_name.as_ref().unwrap_or(&seller.name).clone());
        (self.seller_address, self.seller_tax_id) = (seller.address.clone(), seller.tax_id.clone());
        (self.seller_email, self.seller_phone) = (seller.contact_email.clone(), seller.contact_phone.clone());
        if let Some(buyer) = context.reference::<Customer>("customer_id")? {
            (self.buyer_name, self.buyer_address) = (Some(buyer.full_name), buyer.address);
            (self.buyer_email, self.buyer_phone) = (buyer.email, buyer.phone);
        }
        for (at, line) in self.lines.iter_mut().enumerate().filter(|(_, line)| line.rental_id.is_some()) {
            let vehicle = context.reference::<Vehicle>(&vehicle_place(at))?;
            line.vehicle = vehicle.map(|vehicle| {
                let plate = vehicle.plate.as_deref().map(|plate| format!(" · {plate}")).unwrap_or_default();
                Text::fit(&format!("{}{plate}", vehicle.name), 600)
            });
        }
        Ok(())
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

    /// Marks an open invoice as paid or void, and returns the event. What a void invoice billed changes separately. A paid invoice
    /// takes an earlier time of its payment, without an event.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the invoice is not open; [`Error::Invalid`] for a time of the payment in the future or before the
    /// invoice.
    pub(crate) fn settle(&mut self, how: Settlement, now: Timestamp) -> Result<Option<EventType>, Error> {
        let status = self.status.unwrap_or(InvoiceStatus::Open);
        if let (Some(paid), Settlement::Paid(Some(at))) = (self.paid_at, how) {
            if at >= paid {
                let what = "The time of its payment can only be corrected to an earlier one.";
                return Err(Error::Conflict(format!("This invoice was paid on {paid}. {what}")));
            }
            // Never a later time: a credit note may have been refunded because it was issued after the payment.
            self.paid_at = Some(self.checked_payment(at, now)?);
            self.touch(now);
            return Ok(None);
        }
        if status != InvoiceStatus::Open {
            return Err(Error::Conflict(format!("This invoice is {status}; only an open one can be paid or voided.")));
        }
        if how == Settlement::Void && !self.credit_note_ids.is_empty() {
            let (credited, total) = (self.amount_credited, self.total.unwrap_or_default());
            return Err(Error::Conflict(format!(
                "Credit notes credit {credited} of the {total} of this invoice, so it cannot be voided. Credit the rest instead."
            )));
        }
        let (status, event) = match how {
            Settlement::Paid(at) => {
                self.paid_at = Some(at.map_or(Ok(now), |at| self.checked_payment(at, now))?);
                (InvoiceStatus::Paid, EventType::InvoicePaid)
            }
            Settlement::Void => {
                self.voided_at = Some(now);
                (InvoiceStatus::Void, EventType::InvoiceVoided)
            }
        };
        self.status = Some(status);
        self.touch(now);
        Ok(Some(event))
    }

    /// A time of the payment that is neither in the future nor before the invoice.
    fn checked_payment(&self, at: Timestamp, now: Timestamp) -> Result<Timestamp, Error> {
        let rule = match at {
            _ if at > now => format!("must be {now}, which is now, or earlier"),
            _ if at < self.created_at => format!("must be {}, when the invoice was issued, or later", self.created_at),
            _ => return Ok(at),
        };
        Err(Error::field("paid_at", FieldCode::Invalid, &rule))
    }
}
