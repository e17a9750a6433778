//! Tolls (spec, Toll): imported from toll agencies, attached to the customer who pays.

use crate::{
    body::Fields,
    error::Error,
    event::EventType,
    resources::{Create, Facts, Resource, Update, attached},
    spec::{CREATED_AT, CURRENCY, Kind, ResourceSpec, UPDATED_AT, field, filter, id, object},
    value::{Currency, Money, Timestamp},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What a toll is. Over the API only `customer_id` changes (spec, Tolls); the rest comes with the import.
pub const SPEC: ResourceSpec = ResourceSpec {
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
        field("plaza", Kind::Text(255), "Plaza or gantry.", "\"RKB\"").optional().fixed(),
        field("plate", Kind::Text(255), "License plate as reported.", "\"ABC1234\"").optional().fixed(),
        field("plate_state", Kind::Text(255), "State of the plate as reported.", "\"NY\"").optional().fixed(),
        field("transponder_number", Kind::Text(255), "Transponder tag as reported.", "\"00412345678\"")
            .optional()
            .fixed(),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[filter("vehicle", "vehicle_id"), filter("customer", "customer_id")],
    usual_changes: &["customer_id"],
};

/// A toll.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[expect(missing_docs, reason = "each field is documented in SPEC, once")]
pub struct Toll {
    pub id: Uuid,
    pub object: String,
    pub amount: Money,
    pub currency: Currency,
    pub agency: String,
    pub vehicle_id: Option<Uuid>,
    pub customer_id: Option<Uuid>,
    pub transaction_id: Option<String>,
    pub occurred_at: Option<Timestamp>,
    pub plaza: Option<String>,
    pub plate: Option<String>,
    pub plate_state: Option<String>,
    pub transponder_number: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Resource for Toll {
    const SPEC: &'static ResourceSpec = &SPEC;

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = self.updated_at.max(now);
    }
}

impl Create for Toll {
    fn create(&mut self, _: &Facts<'_>) -> Result<Vec<EventType>, Error> {
        Ok(attached(EventType::TollAttached, None, self.customer_id))
    }
}

impl Update for Toll {
    fn events(&self, before: &Self, _: bool, _: &Fields) -> Vec<EventType> {
        attached(EventType::TollAttached, before.customer_id, self.customer_id)
    }
}
