//! Violations (spec, Violation). They are imported from lists of cities and attached to the customer who pays.

use crate::{
    resources::{
        Billable, Resource,
        attribution::{AUTOMATIC, Attributable, Charged, Occasion, Payer, REVIEW, UNATTACHED},
        event::EventType,
        fields,
    },
    schema::{
        AMOUNT_BILLED, ATTRIBUTION, ATTRIBUTION_REASON, Attribution, CREATED_AT, CURRENCY, Charge, Effects,
        INVOICE_IDS, Kind, RENTAL_ID, REVIEW_REASON, ResourceSpec, STATEMENT_ZONE, UPDATED_AT, field, filter, id,
        index, object, ordered_index,
    },
    value::{
        Currency, CustomerId, Date, InvoiceId, Money, Name, RentalId, Text, Timestamp, VehicleId, ViolationId, When,
        Zone, folded, nfc,
    },
};
use serde::{Deserialize, Serialize};

/// The description of a violation: the fields of the specification, and the columns of New York's open data.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "violation",
    plural: "violations",
    tag: 6,
    doc: "A parking or camera violation of a vehicle, imported from a city system.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000006\""),
        object("\"violation\""),
        field("summons_number", Kind::Name(255), "Summons number.", "\"4631234567\"").required().fixed(),
        field("issuer", Kind::Name(255), "Whose summons numbers these are.", "\"NYC\"").optional().fixed(),
        field("amount_due", Kind::Money, "Amount due.", "50").required().fixed(),
        CURRENCY,
        field(
            "vehicle_id",
            Kind::Reference("vehicle"),
            "Vehicle the violation belongs to.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000001\"",
        )
        .optional()
        .fixed(),
        field(
            "customer_id",
            Kind::Reference("customer"),
            "Customer to bill; set by attaching.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000002\"",
        )
        .optional(),
        field("plate", Kind::Text(255), "License plate as reported.", "\"ABC1234\"").optional().fixed(),
        field("state", Kind::Text(255), "State of the plate as reported.", "\"NY\"").optional().fixed(),
        field("issue_date", Kind::Text(255), "Date of issue as reported.", "\"06/02/2026\"").optional().fixed(),
        field("violation_time", Kind::Text(255), "Time of the violation as reported.", "\"02:03P\"").optional().fixed(),
        field("issued_on", Kind::Date, "The day of issue, when what is reported can be read.", "\"2026-06-02\"")
            .optional()
            .fixed(),
        field("issued_at", Kind::Time, "The time of issue, likewise.", "\"2026-06-02T18:03:00.000Z\"")
            .optional()
            .fixed(),
        STATEMENT_ZONE,
        field("violation", Kind::Text(255), "What was violated.", "\"PHTO SCHOOL ZN SPEED VIOLATION\"")
            .optional()
            .fixed(),
        field("fine_amount", Kind::Money, "Fine.", "50").optional().fixed(),
        field("penalty_amount", Kind::Money, "Penalty for late payment.", "0").optional().fixed(),
        field("interest_amount", Kind::Money, "Interest.", "0").optional().fixed(),
        field("reduction_amount", Kind::Money, "Reduction.", "0").optional().fixed(),
        field("payment_amount", Kind::Money, "Paid so far.", "0").optional().fixed(),
        field("issuing_agency", Kind::Text(255), "Who issued it.", "\"DEPARTMENT OF TRANSPORTATION\"")
            .optional()
            .fixed(),
        field("status", Kind::Text(255), "Status of the violation as reported.", "\"HEARING PENDING\"")
            .optional()
            .fixed(),
        field("plate_type", Kind::Text(255), "Type of the plate as reported.", "\"PAS\"").optional().fixed(),
        field("respond_by", Kind::Date, "Last day to pay, contest or name the driver.", "\"2026-07-26\"")
            .optional()
            .fixed(),
        ATTRIBUTION,
        RENTAL_ID,
        ATTRIBUTION_REASON,
        REVIEW_REASON,
        AMOUNT_BILLED,
        INVOICE_IDS,
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[
        filter("vehicle", "vehicle_id"),
        filter("customer", "customer_id"),
        filter("summons_number", "summons_number"),
        filter("billed", "billed"),
        filter("attached", "attached"),
    ],
    ranges: &[filter("updated", "updated_at"), filter("respond_by", "respond_by")],
    indexes: &[
        index(1, &["vehicle_id"]),
        index(2, &["customer_id"]),
        index(3, &["vehicle_id", "customer_id"]),
        index(8, &["billed"]),
        index(9, &["customer_id", "billed"]),
        index(10, &["attached"]),
        ordered_index(16, "updated_at"),
        index(20, &["summons_number"]),
        ordered_index(21, "respond_by"),
    ],
    look_ups: &[UNATTACHED, AUTOMATIC, REVIEW],
    usual_changes: &["customer_id"],
};

fields! {
    /// A parking or camera violation of a vehicle (spec, Violation).
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct Violation {
        pub id: ViolationId,
        pub object: String,
        pub summons_number: Name,
        pub issuer: Option<Name>,
        pub amount_due: Money,
        pub currency: Currency,
        pub vehicle_id: Option<VehicleId>,
        pub customer_id: Option<CustomerId>,
        pub plate: Option<Text>,
        pub state: Option<Text>,
        pub issue_date: Option<Text>,
        pub violation_time: Option<Text>,
        pub issued_on: Option<Date>,
        pub issued_at: Option<Timestamp>,
        pub time_zone: Option<Zone>,
        pub violation: Option<Text>,
        pub fine_amount: Option<Money>,
        pub penalty_amount: Option<Money>,
        pub interest_amount: Option<Money>,
        pub reduction_amount: Option<Money>,
        pub payment_amount: Option<Money>,
        pub issuing_agency: Option<Text>,
        pub status: Option<Text>,
        pub plate_type: Option<Text>,
        pub respond_by: Option<Date>,
        pub attribution: Option<Attribution>,
        pub rental_id: Option<RentalId>,
        pub attribution_reason: Option<Text>,
        pub review_reason: Option<Text>,
        pub amount_billed: Money,
        pub invoice_ids: Vec<InvoiceId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Resource for Violation {
    const SPEC: &'static ResourceSpec = &SPEC;

    fn computed(&self, name: &str) -> Option<bool> {
        match name {
            "billed" => Some(self.left_to_bill().is_zero()),
            "attached" => Some(self.customer_id.is_some()),
            _ => None,
        }
    }

    fn effects(&self) -> Effects {
        Effects {
            entries: self.attachment_entries().collect(),
            identity: self.issuer.as_deref().map(|issuer| identity(issuer, &self.summons_number)),
            charge: Some(Charge { customer: self.customer_id, amount: None, billed: self.billed() }),
            grounds: self.grounds(),
            ..Effects::default()
        }
    }
}

impl Violation {
    /// What it costs the customer: the amount due or, when nothing is due any more, what was paid to the city.
    pub(crate) fn cost(&self) -> Money {
        let paid = self.payment_amount.unwrap_or_default();
        if self.amount_due.is_zero() { paid } else { self.amount_due }
    }

    /// Whether it is listed because more is billed than it costs.
    pub(super) fn is_billed_too_high(&self) -> bool {
        self.review_reason.as_ref().is_some_and(|reason| reason.starts_with(BILL_TOO_HIGH))
    }
}

/// With what the reason begins of a violation of which more is billed than it costs.
const BILL_TOO_HIGH: &str = "More is billed than it costs now";

/// The identity of a violation: its issuer and summons number.
#[must_use]
pub fn identity(issuer: &str, summons_number: &str) -> String {
    format!("{}\n#{}", folded(issuer), nfc(summons_number))
}

impl Billable for Violation {
    fn price(&self) -> Option<Money> {
        Some(self.cost())
    }

    fn account(&self) -> (Money, &[InvoiceId]) {
        (self.amount_billed, &self.invoice_ids)
    }

    fn set_account(&mut self, billed: Money, invoices: Vec<InvoiceId>) {
        (self.amount_billed, self.invoice_ids) = (billed, invoices);
    }

    /// Lists a violation of which more is billed than it costs: the city dismissed or reduced it after that. Removes what this
    /// function had said once the bill is credited.
    fn note_bill(&mut self, credited: Money) {
        let reason = self.bill_review(credited);
        if reason.is_some() || self.is_billed_too_high() {
            self.review_reason = reason;
        }
    }
}

impl Attributable for Violation {
    const ATTACHED: EventType = EventType::ViolationAttached;
    const DETACHED: EventType = EventType::ViolationDetached;

    fn charged(&self) -> Charged<'_> {
        Charged {
            agency: self.issuer.as_deref(),
            number: Some(&self.summons_number),
            place: self.violation.as_deref(),
            amount: self.cost(),
            currency: self.currency,
        }
    }

    /// The violation with the earliest day to respond is the most urgent one; then, of those without such a day, the one that
    /// was issued first: cities raise what is not paid or contested in time.
    fn review_order(&self) -> u32 {
        match (self.respond_by, self.day()) {
            (Some(last), _) => u32::MAX - last.day_number(),
            (None, 0) => 0,
            (None, day) => u32::MAX / 2 - day,
        }
    }

    fn respond_by(&self) -> Option<Date> {
        self.respond_by
    }

    fn reported(&self) -> [Option<&str>; 2] {
        [&self.status, &self.plate_type].map(Option::as_deref)
    }

    fn bill_review(&self, credited: Money) -> Option<Text> {
        // The violation costs the same after the fleet has paid a part of it.
        let paid = self.payment_amount.unwrap_or_default();
        let (billed, cost) = (self.amount_billed, self.amount_due.plus(paid).unwrap_or(Money::MAX));
        if billed.minus(credited).unwrap_or_default() <= cost {
            return None;
        }
        let credits = if credited.is_zero() { String::new() } else { format!(", {credited} of it is credited") };
        let text = format!(
            "{BILL_TOO_HIGH}: {billed} {} is billed{credits}, and by the last list it costs {cost}. Look it up at its issuer, \
             then credit the difference on the invoice.",
            self.currency
        );
        Some(Text::fit(&text, 255))
    }

    /// A camera takes a vehicle that is driven. New York's lists name these violations so.
    fn occasion(&self) -> Occasion {
        const CAMERAS: [&str; 7] = ["PHOTO", "PHTO", "SPEED", "CAMERA", "RED LIGHT", "BUS LANE", "IN MOTION"];
        let text = self.violation.as_deref().unwrap_or_default().to_ascii_uppercase();
        if CAMERAS.iter().any(|word| text.contains(word)) { Occasion::Driving } else { Occasion::Parking }
    }

    fn vehicle(&mut self) -> &mut Option<VehicleId> {
        &mut self.vehicle_id
    }

    fn known_vehicle(&self) -> Option<VehicleId> {
        self.vehicle_id
    }

    fn identifiers(&self) -> [Option<&str>; 3] {
        [None, self.plate.as_deref(), self.state.as_deref()]
    }

    fn when(&self) -> When {
        When { at: self.issued_at, on: self.issued_on, zone: self.time_zone }
    }

    fn set_date(&mut self, date: Date) {
        self.issued_on = Some(date);
    }

    fn payer(&self) -> Payer {
        Payer {
            customer: self.customer_id,
            attribution: self.attribution,
            rental: self.rental_id,
            reason: self.attribution_reason.clone(),
            review: self.review_reason.clone(),
        }
    }

    fn set_payer(&mut self, payer: Payer) {
        (self.customer_id, self.attribution, self.rental_id) = (payer.customer, payer.attribution, payer.rental);
        (self.attribution_reason, self.review_reason) = (payer.reason, payer.review);
    }
}
