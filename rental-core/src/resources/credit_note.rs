//! Credit notes: what an operator takes back of an issued invoice, and the refund of it.
//!
//! A credit note names lines of one invoice, and never credits more of a line than it billed less its part of the discounts. What it credits can be billed
//! again when it says so: the toll of a wrong renter, but not a kindness.

mod refund;

pub use refund::Refund;

use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    resources::{
        Change, Create, Object, Outcome, Portable, Resource, RuleContext, Series, Source, effects,
        event::EventType,
        fields,
        invoice::{Creditable, Invoice, InvoiceStatus},
        parse,
        source::AccountEntry,
    },
    schema::{
        BY_UPDATE, CREATED_AT, CURRENCY, Kind, MOST_INVOICES, ResourceSpec, UPDATED_AT, field, filter, id, index,
        object, ordered_index,
    },
    store::Key,
    value::{
        CreditNoteId, Currency, CustomerId, FieldValue, FromField, Id, InvoiceId, Money, Name, RentalId, Text,
        Timestamp, TollId, ViolationId, objects,
    },
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The example of the lines in the documentation.
const CREDIT_LINES: &str = "[{\"line\":0,\"description\":\"Extra cleaning\",\"amount\":25,\"rebill\":false,\
    \"rental_id\":null,\"toll_id\":null,\"violation_id\":null}]";

/// The numbers of credit notes.
const NUMBERS: Series = Series { counter: "credit_notes", prefix: "CN-", field: "credit_note_number" };

/// Most characters of how money was given back.
pub const LONGEST_REFUND_METHOD: usize = 100;

/// The description of a credit note.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "credit_note",
    plural: "credit_notes",
    tag: 22,
    doc: "A credit of an invoice to its customer: of all of it, or of lines or parts of them.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000016\""),
        object("\"credit_note\""),
        field(
            "credit_note_number",
            Kind::Text(255),
            "Human-readable number, without gaps within an organization.",
            "\"CN-000007\"",
        ),
        field(
            "invoice_id",
            Kind::Reference("invoice"),
            "Invoice that it credits.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000004\"",
        )
        .required()
        .fixed(),
        field("invoice_number", Kind::Text(255), "Number of that invoice.", "\"INV-000042\""),
        field(
            "customer_id",
            Kind::Reference("customer"),
            "Customer of that invoice.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000002\"",
        ),
        field("reason", Kind::Text(500), "Why it is credited; customers read it.", "\"Cleaned by the customer\"")
            .optional()
            .fixed()
            .personal_but_kept("\"erased\""),
        field(
            "rebill",
            Kind::Boolean,
            "Whether the rentals, tolls and violations that it credits can be billed again. A line can say otherwise. A line that credits \
             at most what is billed above the present cost can always be billed again, unless it says otherwise: nothing is left to bill.",
            "false",
        )
        .starts_as("false")
        .fixed(),
        field(
            "lines",
            Kind::CreditLines,
            "What it credits; when left out, all that is left of the invoice.",
            CREDIT_LINES,
        )
        .or_computed("[{\"line\":0,\"amount\":25}]")
        .personal_but_kept("\"erased\""),
        field("total", Kind::Money, "What it credits: the sum of the lines, and the tax unless they contain it.", "25"),
        field("tax_amount", Kind::Money, "The tax of the lines, if the invoice has one.", "null").or_null(),
        CURRENCY,
        field("refunded_at", Kind::Time, "When the money was given back.", "null").or_null(),
        field("refund_method", Kind::Text(LONGEST_REFUND_METHOD), "How it was given back.", "null").or_null(),
        field("refund_reference", Kind::Text(255), "Number of the payment.", "null")
            .or_null()
            .personal_but_kept("\"erased\""),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[
        filter("customer", "customer_id"),
        filter("invoice", "invoice_id"),
        filter("credit_note_number", "credit_note_number"),
    ],
    ranges: BY_UPDATE,
    indexes: &[
        index(1, &["customer_id"]),
        index(2, &["invoice_id"]),
        ordered_index(16, "updated_at"),
        index(20, &["credit_note_number"]),
    ],
    look_ups: &[],
    usual_changes: &[],
};

fields! {
    /// One line of a credit note. A request has the first, and may have amount and rebill. `discount` is stored for invoices with
    /// discounts only.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "the names say it")]
    pub struct CreditLine {
        pub line: u32,
        pub description: Option<Name>,
        pub amount: Option<Money>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub discount: Option<Money>,
        pub rebill: Option<bool>,
        pub rental_id: Option<RentalId>,
        pub toll_id: Option<TollId>,
        pub violation_id: Option<ViolationId>,
    }
}

fields! {
    /// A credit of lines of an invoice.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct CreditNote {
        pub id: CreditNoteId,
        pub object: String,
        pub credit_note_number: Option<Text>,
        pub invoice_id: InvoiceId,
        pub invoice_number: Option<Text>,
        pub customer_id: Option<CustomerId>,
        pub reason: Option<Text>,
        pub rebill: bool,
        pub lines: Vec<CreditLine>,
        pub total: Option<Money>,
        pub tax_amount: Option<Money>,
        pub currency: Currency,
        pub refunded_at: Option<Timestamp>,
        pub refund_method: Option<Text>,
        pub refund_reference: Option<Text>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl FromField for Vec<CreditLine> {
    fn from_field(value: &FieldValue) -> Option<Self> {
        if matches!(value, FieldValue::Null) { Some(Self::new()) } else { objects(value) }
    }
}

impl Resource for CreditNote {
    const SPEC: &'static ResourceSpec = &SPEC;
    const SERIES: Option<Series> = Some(NUMBERS);
}

impl Create for CreditNote {
    const READS_MORE: bool = true;

    /// The earlier credit notes of the invoice, and what its lines bill.
    fn reads(&self, context: &RuleContext<'_>) -> Result<Vec<(String, Key)>, Error> {
        let Some(invoice) = context.reference::<Invoice>("invoice_id")? else { return Ok(Vec::new()) };
        let organization = context.organization.id;
        let note = |(at, id): (usize, &CreditNoteId)| (note_place(at), Self::key(organization, *id));
        let mut all: Vec<(String, Key)> = invoice.credit_note_ids.iter().enumerate().map(note).collect();
        let sources = invoice.lines.iter().enumerate().filter_map(|(at, line)| Some((at, line.source()?.1)));
        all.extend(sources.map(|(at, source)| (source_place(at), source.key(organization))));
        Ok(all)
    }

    /// Completes each line from that of the invoice, and computes the total.
    fn create(&mut self, context: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        let invoice = invoice(context)?;
        let number = invoice.invoice_number.as_deref().unwrap_or_default();
        if invoice.status == Some(InvoiceStatus::Void) {
            return Err(Error::Conflict(format!("Invoice {number} is void, so there is nothing to credit.")));
        }
        if invoice.credit_note_ids.len() >= MOST_INVOICES {
            return Err(Error::Conflict(format!(
                "Invoice {number} has {MOST_INVOICES} credit notes, which is the most, so no more of it can be credited. They credit \
                 {} of its {}. One credit note can have all lines of an invoice: send them together.",
                invoice.amount_credited,
                invoice.total.unwrap_or_default()
            )));
        }
        let billed = creditable(&invoice, context)?;
        if self.lines.is_empty() {
            self.lines = rest(&billed);
        }
        if self.lines.is_empty() {
            let (all, total) = (invoice.amount_credited, invoice.total.unwrap_or_default());
            return Err(Error::Conflict(format!(
                "Nothing of invoice {number} is left to credit: of {total}, {all} is credited already."
            )));
        }
        let mut errors = FieldErrors::default();
        for at in 0..self.lines.len() {
            let twice = self.lines.iter().take(at).any(|other| other.line == self.lines[at].line);
            errors.extend(self.lines[at].complete(at, self.rebill, twice, &invoice, &billed).err());
        }
        errors.or(())?;
        for line in self.lines.iter_mut().filter(|line| line.rebill.is_none()) {
            line.rebill = Some(line.credits_excess(context)?);
        }
        let before = billed.iter().try_fold(Money::default(), |sum, line| sum.plus(line.credited));
        self.compute_total(&invoice, before.unwrap_or(Money::MAX)).ok_or_else(|| Error::too_large("lines"))?;
        self.credit_note_number = Some(NUMBERS.text(context.number));
        self.invoice_number = invoice.invoice_number;
        self.customer_id = Some(invoice.customer_id);
        Ok(vec![EventType::CreditNoteCreated])
    }

    /// The invoice lists the credit note, and what can be billed again changes, all in the same batch. So racing credit notes
    /// cannot credit a line twice.
    fn elsewhere(&self, context: &RuleContext<'_>) -> Result<Vec<Change>, Error> {
        let mut changes = vec![self.of_invoice(context)?];
        for line in &self.lines {
            let found = usize::try_from(line.line).ok().and_then(|at| context.references.get(&source_place(at)));
            let (Some(source), Some(record)) = (line.source(), found) else { continue };
            let (amount, credited) = (line.gross(), context.credited(source.id()));
            let (entry, credited) = match line.rebill {
                Some(true) => (AccountEntry::Credited(amount), credited),
                // It can leave the review.
                _ if source.is_billed_too_high(record)? => {
                    (AccountEntry::CreditedForGood, credited.plus(amount).unwrap_or(Money::MAX))
                }
                _ => continue,
            };
            changes.push(source.change(record.clone(), entry, credited, context.now)?);
        }
        Ok(changes)
    }
}

/// The name of an earlier credit note in the context of the rule.
fn note_place(at: usize) -> String {
    format!("invoice.credit_note_ids[{at}]")
}

/// The name of what a line of the invoice bills.
fn source_place(at: usize) -> String {
    format!("invoice.lines[{at}]")
}

fn invoice(context: &RuleContext<'_>) -> Result<Invoice, Error> {
    let missing = || Error::Internal("a credit note was made without its invoice".into());
    context.reference::<Invoice>("invoice_id")?.ok_or_else(missing)
}

/// What can be credited of each line of the invoice, and what is credited so far.
fn creditable(invoice: &Invoice, context: &RuleContext<'_>) -> Result<Vec<Creditable>, Error> {
    let (mut lines, mut sum) = (invoice.creditable(), Money::default());
    for at in 0..invoice.credit_note_ids.len() {
        let Some(note) = context.reference::<CreditNote>(&note_place(at))? else { continue };
        sum = sum.plus(note.total.unwrap_or_default()).unwrap_or(Money::MAX);
        for line in note.lines {
            if let Some(billed) = usize::try_from(line.line).ok().and_then(|place| lines.get_mut(place)) {
                billed.credited = billed.credited.plus(line.amount.unwrap_or_default()).unwrap_or(Money::MAX);
            }
        }
    }
    if sum != invoice.amount_credited {
        let all = invoice.amount_credited;
        return Err(Error::Conflict(format!(
            "Of the {all} that is credited of this invoice, credit notes tell of {sum} only, so what is left is not known. Run \
             `rental-cli store check`."
        )));
    }
    Ok(lines)
}

/// The lines that credit all that is left of an invoice.
fn rest(billed: &[Creditable]) -> Vec<CreditLine> {
    let left = (0..).zip(billed).filter(|(_, line)| !line.left().is_zero());
    left.map(|(at, _)| CreditLine::whole(at)).collect()
}

impl CreditLine {
    fn whole(line: u32) -> Self {
        let (rental_id, toll_id, violation_id) = (None, None, None);
        Self { line, description: None, amount: None, discount: None, rebill: None, rental_id, toll_id, violation_id }
    }

    /// So much of what the line billed is taken back: the amount, and the part of the discounts that goes with it.
    pub(crate) fn gross(&self) -> Money {
        self.amount.unwrap_or_default().plus(self.discount.unwrap_or_default()).unwrap_or(Money::MAX)
    }

    /// What the line of the invoice bills.
    fn source(&self) -> Option<Source> {
        Source::of(self.rental_id, self.toll_id, self.violation_id).map(|(_, source)| source)
    }

    /// Whether the line of the invoice bills the object with this id.
    pub(crate) fn bills(&self, id: Uuid) -> bool {
        let ids = [self.rental_id.map(Id::uuid), self.toll_id.map(Id::uuid), self.violation_id.map(Id::uuid)];
        ids.contains(&Some(id))
    }

    /// Checks the amount, and takes the rest from the line of the invoice.
    fn complete(
        &mut self,
        at: usize,
        rebill: bool,
        twice: bool,
        invoice: &Invoice,
        billed: &[Creditable],
    ) -> Result<(), FieldError> {
        let wrong = |member: &str, code, rule: &str| FieldError::new(&format!("lines[{at}].{member}"), code, rule);
        let place = usize::try_from(self.line).unwrap_or(usize::MAX);
        let (Some(line), Some(credit)) = (invoice.lines.get(place), billed.get(place)) else {
            let (count, last) = (invoice.lines.len(), invoice.lines.len().saturating_sub(1));
            let rule = format!("must be 0 to {last}: the invoice has {count} lines, and the first one is 0");
            return Err(wrong("line", FieldCode::Invalid, &rule));
        };
        if twice {
            return Err(wrong("line", FieldCode::Duplicate, "is a line that another line of this credit note credits"));
        }
        let Creditable { billed, discount, credited } = *credit;
        if let Some(amount) = line.amount.filter(|amount| !amount.below_zero().is_zero()) {
            let rule =
                format!("is a discount of {amount}, which lowers what can be credited of the other lines: name those");
            return Err(wrong("line", FieldCode::Invalid, &rule));
        }
        let left = credit.left();
        let amount = self.amount.unwrap_or(left);
        if amount > left || left.is_zero() {
            let less = if discount.is_zero() { String::new() } else { format!(" less {discount} of the discounts") };
            let line = self.line;
            let rule = format!(
                "must be at most {left}: line {line} billed {billed}{less}, and {credited} is credited already"
            );
            return Err(wrong("amount", FieldCode::Invalid, &rule));
        }
        if amount.is_zero() {
            return Err(wrong("amount", FieldCode::Invalid, "must be more than 0"));
        }
        self.amount = Some(amount);
        self.discount = (!discount.is_zero()).then(|| credit.discount_with(amount, invoice.currency.digits()));
        self.description.clone_from(&line.description);
        (self.rental_id, self.toll_id, self.violation_id) = (line.rental_id, line.toll_id, line.violation_id);
        // Only what is an object of its own can be billed again.
        self.rebill = match (self.source(), self.rebill) {
            (None, _) => Some(false),
            (Some(_), None) => rebill.then_some(true),
            (Some(_), told) => told,
        };
        Ok(())
    }

    /// Whether it credits what is billed above the present cost. That can be billed again: nothing is left to bill of it, and it no
    /// longer is billed in excess.
    fn credits_excess(&self, context: &RuleContext<'_>) -> Result<bool, Error> {
        let found = usize::try_from(self.line).ok().and_then(|at| context.references.get(&source_place(at)));
        let Some((source, record)) = self.source().zip(found) else { return Ok(false) };
        Ok(self.gross() <= source.billed_in_excess(record)?)
    }

    /// Whether this imported line can be one that credits a line of the invoice.
    fn is_of(&self, invoice: &Invoice, billed: &[Creditable]) -> bool {
        let place = usize::try_from(self.line).unwrap_or(usize::MAX);
        invoice.lines.get(place).zip(billed.get(place)).is_some_and(|(line, billed)| {
            let ids = (line.rental_id, line.toll_id, line.violation_id);
            let amount = self.amount.is_some_and(|amount| !amount.is_zero() && amount <= billed.most());
            let discount = self.discount.unwrap_or_default() <= billed.discount;
            amount && discount && ids == (self.rental_id, self.toll_id, self.violation_id)
        })
    }
}

impl CreditNote {
    /// The sum of the lines; `None` above [`Money::MAX`].
    fn sum(&self) -> Option<Money> {
        self.lines.iter().try_fold(Money::default(), |sum, line| sum.plus(line.amount.unwrap_or_default()))
    }

    /// Sets total and tax. All credit notes of an invoice together have its tax to the cent, when they credit all of it.
    /// `before` is the sum of the lines of earlier ones. `None` above [`Money::MAX`].
    fn compute_total(&mut self, invoice: &Invoice, before: Money) -> Option<()> {
        let sum = self.sum()?;
        let Some(tax) = invoice.tax() else {
            (self.total, self.tax_amount) = (Some(sum), None);
            return Some(());
        };
        let amount = tax.on_further(before, sum)?;
        (self.total, self.tax_amount) = (Some(tax.total(sum, amount)?), Some(amount));
        Some(())
    }

    /// Whether total and tax of an imported credit note can be right. The order of credit notes decides how cents of the tax
    /// are rounded, so only the sums are exact.
    fn has_right_total(&self, invoice: &Invoice) -> bool {
        let Some(sum) = self.sum() else { return false };
        let expected = match (invoice.tax(), self.tax_amount) {
            (None, None) => Some(sum),
            (Some(tax), Some(amount)) if Some(amount) <= invoice.tax_amount => tax.total(sum, amount),
            _ => None,
        };
        self.total.is_some() && self.total == expected && self.total <= Some(invoice.amount_credited)
    }

    /// The change of the invoice that goes with a new credit note.
    fn of_invoice(&self, context: &RuleContext<'_>) -> Result<Change, Error> {
        let missing = || Error::Internal("a credit note was made without its invoice".into());
        let before = context.references.get("invoice_id").ok_or_else(missing)?.clone();
        let mut invoice: Invoice = parse(&before.key, &before.value)?;
        let effects_before = Some(effects::of(&invoice));
        let above = || Error::Internal("a credit note is above its invoice".into());
        invoice.add_credit(self.id, self.total.unwrap_or_default(), context.now).ok_or_else(above)?;
        Ok(Change { before, outcome: Outcome::new(invoice, true, Vec::new(), effects_before)? })
    }

    /// Lets what its lines credit be billed again. Returns what could not until now: what each line billed, and the amount.
    pub(crate) fn rebill(&mut self, now: Timestamp) -> Vec<(Source, Money)> {
        let mut again = Vec::new();
        for line in &mut self.lines {
            if let (Some(source), Some(false) | None) = (line.source(), line.rebill) {
                line.rebill = Some(true);
                again.push((source, line.gross()));
            }
        }
        if !again.is_empty() {
            self.touch(now);
        }
        again
    }
}

impl Portable for CreditNote {
    /// Checks that the number follows the last one, and that the invoice lists it and has its lines.
    fn arrive(&self, context: &RuleContext<'_>) -> Result<(), Error> {
        NUMBERS.check(self.credit_note_number.as_deref(), context.number, "credit notes")?;
        let invoice = invoice(context)?;
        let refuse = |field: &str, rule: &str| Err(Error::field(field, FieldCode::Invalid, rule));
        if !invoice.credit_note_ids.contains(&self.id) {
            return refuse("invoice_id", "is an invoice that does not have this credit note in its `credit_note_ids`");
        }
        if self.customer_id != Some(invoice.customer_id) || self.invoice_number != invoice.invoice_number {
            return refuse("invoice_id", "is an invoice of another customer, or with another number");
        }
        let mut places: Vec<u32> = self.lines.iter().map(|line| line.line).collect();
        places.sort_unstable();
        places.dedup();
        let billed = invoice.creditable();
        if places.len() != self.lines.len() || !self.lines.iter().all(|line| line.is_of(&invoice, &billed)) {
            return refuse(
                "lines",
                "must each credit another line of the invoice, at most its amount less its part of the discounts, and more than 0",
            );
        }
        if !self.has_right_total(&invoice) {
            let rule = "must be the sum of the lines, and the tax if it is added, and at most `amount_credited` of the invoice";
            return refuse("total", rule);
        }
        if self.refunded_at.is_none() && (self.refund_method.is_some() || self.refund_reference.is_some()) {
            return refuse("refunded_at", "must be there when the refund has a method or reference");
        }
        Ok(())
    }
}
