//! Leads (spec, Lead): inquiries of future customers. The API can only create them.

use crate::{
    error::Error,
    resources::{Create, Portable, Resource, RuleContext, event::EventType, fields},
    schema::{CREATED_AT, Kind, ResourceSpec, UPDATED_AT, field, id, object},
    value::{CustomerId, LeadId, Text, Timestamp, words},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

words! {
    /// The state of a lead.
    pub enum LeadStatus {
        /// The fleet has not handled the lead.
        New = "NEW",
    }
}

/// The description of a lead.
pub const SPEC: ResourceSpec = ResourceSpec {
    object: "lead",
    plural: "leads",
    tag: 7,
    doc: "An inquiry from an intake form.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000007\""),
        object("\"lead\""),
        field("source_channel", Kind::Text(255), "Where the lead came from.", "\"api\"")
            .starts_as("\"api\"")
            .fixed()
            .personal("\"erased\""),
        field(
            "customer_id",
            Kind::Reference("customer"),
            "Link to an existing customer, if known.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000002\"",
        )
        .optional()
        .fixed(),
        field(
            "raw_data",
            Kind::Json(65_536),
            "Any form fields or notes, given back exactly as received.",
            "{\"message\":\"Need an SUV in June\"}",
        )
        .optional()
        .fixed()
        .personal("null"),
        field("status", Kind::Word(LeadStatus::WORDS), "Where the lead stands.", "\"NEW\""),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[],
    ranges: &[],
    indexes: &[],
    look_ups: &[],
    usual_changes: &[],
};

fields! {
    /// An inquiry of a future customer (spec, Lead).
    #[derive(Clone, Debug, Deserialize, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct Lead {
        pub id: LeadId,
        pub object: String,
        pub source_channel: Text,
        pub customer_id: Option<CustomerId>,
        pub raw_data: Option<Box<RawValue>>,
        pub status: Option<LeadStatus>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Resource for Lead {
    const SPEC: &'static ResourceSpec = &SPEC;
}

impl Portable for Lead {}

impl Create for Lead {
    fn create(&mut self, _: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        self.status = Some(LeadStatus::New);
        Ok(vec![EventType::LeadReceived])
    }
}
