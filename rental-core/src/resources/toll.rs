//! Tolls (spec, Toll). They are imported from statements of toll agencies and attached to the customer who pays.

use crate::{
    resources::{
        Billable, Resource,
        attribution::{AUTOMATIC, Attributable, Charged, Occasion, POSTING, Payer, Posting, REVIEW, UNATTACHED},
        event::EventType,
        fields,
    },
    schema::{
        AMOUNT_BILLED, ATTRIBUTION, ATTRIBUTION_REASON, Attribution, BY_UPDATE, CREATED_AT, CURRENCY, Charge, Effects,
        INVOICE_IDS, IndexPrefix, Kind, LookUpSpec, RENTAL_ID, REVIEW_REASON, ResourceSpec, STATEMENT_ZONE, UPDATED_AT,
        field, filter, id, index, look_up, object, ordered_index,
    },
    value::{
        Currency, CustomerId, Date, InvoiceId, Money, Name, Plate, RentalId, Text, Timestamp, TollId, VehicleId, When,
        Zone, folded, nfc, tag_number,
    },
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The look-up of tolls by a hash of passage and amount.
const PASSAGE: LookUpSpec = look_up(129, "passage");

/// The description of a toll. The API changes only `customer_id` (spec, Tolls); the import sets all other fields.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "toll",
    plural: "tolls",
    tag: 5,
    doc: "A toll of a vehicle, imported from a toll agency.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000005\""),
        object("\"toll\""),
        field("amount", Kind::Money, "Toll amount.", "6.94").required().fixed(),
        CURRENCY,
        field("agency", Kind::Name(255), "Toll agency name.", "\"MTAB&T\"").required().fixed(),
        field(
            "vehicle_id",
            Kind::Reference("vehicle"),
            "Vehicle the toll belongs to.",
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
        field("transaction_id", Kind::Text(255), "The agency's transaction number.", "\"61231234567\"")
            .optional()
            .fixed(),
        field("occurred_at", Kind::Time, "When the vehicle passed.", "\"2026-06-02T14:03:00.000Z\"").optional().fixed(),
        field("occurred_on", Kind::Date, "The day of it where it happened.", "\"2026-06-02\"").optional().fixed(),
        STATEMENT_ZONE,
        field("plaza", Kind::Text(255), "Plaza or gantry.", "\"RKB\"").optional().fixed(),
        field("plate", Kind::Text(255), "License plate as reported.", "\"ABC1234\"").optional().fixed(),
        field("plate_state", Kind::Text(255), "State of the plate as reported.", "\"NY\"").optional().fixed(),
        field("transponder_number", Kind::Text(255), "Transponder tag as reported.", "\"00412345678\"")
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
        filter("transaction_id", "transaction_id"),
        filter("billed", "billed"),
        filter("attached", "attached"),
    ],
    ranges: BY_UPDATE,
    indexes: &[
        index(1, &["vehicle_id"]),
        index(2, &["customer_id"]),
        index(3, &["vehicle_id", "customer_id"]),
        index(8, &["billed"]),
        index(9, &["customer_id", "billed"]),
        index(10, &["attached"]),
        ordered_index(16, "updated_at"),
        index(20, &["transaction_id"]),
    ],
    look_ups: &[UNATTACHED, PASSAGE, AUTOMATIC, REVIEW, POSTING],
    usual_changes: &["customer_id"],
};

fields! {
    /// A toll that a vehicle caused (spec, Toll).
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct Toll {
        pub id: TollId,
        pub object: String,
        pub amount: Money,
        pub currency: Currency,
        pub agency: Name,
        pub vehicle_id: Option<VehicleId>,
        pub customer_id: Option<CustomerId>,
        pub transaction_id: Option<Text>,
        pub occurred_at: Option<Timestamp>,
        pub occurred_on: Option<Date>,
        pub time_zone: Option<Zone>,
        pub plaza: Option<Text>,
        pub plate: Option<Text>,
        pub plate_state: Option<Text>,
        pub transponder_number: Option<Text>,
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

impl Resource for Toll {
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
            entries: self.attachment_entries().chain(self.passage()).collect(),
            identity: self.identity(),
            charge: Some(Charge { customer: self.customer_id, amount: Some(self.amount), billed: self.billed() }),
            grounds: self.grounds(),
            posting: self.posting().map(|posting| (posting.vehicle, posting.at)),
            ..Effects::default()
        }
    }
}

impl Toll {
    /// The identity of the toll: the agency's transaction number, else all values of the passage.
    pub(crate) fn identity(&self) -> Option<String> {
        let number = self.transaction_id.as_ref().map(|number| format!("{}\n#{}", folded(&self.agency), nfc(number)));
        number.or_else(|| self.content())
    }

    /// The look-up prefix of tolls with the same passage and amount, for credits with another transaction number.
    pub(crate) fn passage(&self) -> Option<IndexPrefix> {
        let hash: [u8; 32] = Sha256::digest(self.content()?).into();
        Some(PASSAGE.of(&[&hash[..16]]))
    }

    /// The values of the passage as text: vehicle, place, time and amount.
    fn content(&self) -> Option<String> {
        let agency = folded(&self.agency);
        let tag = self.transponder_number.as_deref().map(|tag| tag_number(tag).unwrap_or_else(|| tag.to_owned()));
        let plate = self.plate.as_deref().and_then(|plate| Plate::parse(plate, self.plate_state.as_deref()));
        let plate = plate.map(|plate| format!("{} {}", plate.state.unwrap_or_default(), plate.number));
        let whose = tag.or(plate)?;
        let day = || self.occurred_on.map(|date| date.to_string());
        let when = self.occurred_at.map(|time| time.to_string()).or_else(day)?;
        let place = folded(self.plaza.as_deref().unwrap_or_default());
        Some(format!("{agency}\n{whose}\n{when}\n{place}\n{}", self.amount))
    }
}

impl Billable for Toll {
    fn price(&self) -> Option<Money> {
        Some(self.amount)
    }

    fn account(&self) -> (Money, &[InvoiceId]) {
        (self.amount_billed, &self.invoice_ids)
    }

    fn set_account(&mut self, billed: Money, invoices: Vec<InvoiceId>) {
        (self.amount_billed, self.invoice_ids) = (billed, invoices);
    }
}

impl Attributable for Toll {
    const ATTACHED: EventType = EventType::TollAttached;
    const DETACHED: EventType = EventType::TollDetached;

    fn charged(&self) -> Charged<'_> {
        Charged {
            agency: Some(&self.agency),
            number: self.transaction_id.as_deref(),
            place: self.plaza.as_deref(),
            amount: self.amount,
            currency: self.currency,
        }
    }

    /// Tolls have no order but that of their import.
    fn review_order(&self) -> u32 {
        0
    }

    fn occasion(&self) -> Occasion {
        Occasion::Driving
    }

    fn vehicle(&mut self) -> &mut Option<VehicleId> {
        &mut self.vehicle_id
    }

    fn known_vehicle(&self) -> Option<VehicleId> {
        self.vehicle_id
    }

    fn identifiers(&self) -> [Option<&str>; 3] {
        [&self.transponder_number, &self.plate, &self.plate_state].map(Option::as_deref)
    }

    fn when(&self) -> When {
        When { at: self.occurred_at, on: self.occurred_on, zone: self.time_zone }
    }

    /// A toll of 0 was given back, and one that a person gave to nobody is settled.
    fn posting(&self) -> Option<Posting<'_>> {
        let is_settled = self.customer_id.is_none() && self.attribution.is_some();
        let is_read = self.transponder_number.is_some() || self.plate.is_some();
        if self.amount.is_zero() || is_settled || !is_read {
            return None;
        }
        Some(Posting {
            vehicle: self.vehicle_id?,
            at: self.occurred_at?,
            agency: &self.agency,
            plaza: self.plaza.as_deref(),
            by_tag: self.transponder_number.is_some(),
            number: self.transaction_id.as_deref(),
        })
    }

    fn set_date(&mut self, date: Date) {
        self.occurred_on = Some(date);
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
