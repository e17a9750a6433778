//! Leads (spec, Lead): inquiries of future customers. API keys can only create them; operators read and settle them.

use crate::{
    error::Error,
    resources::{Create, Portable, Resource, RuleContext, Update, event::EventType, fields},
    schema::{CREATED_AT, Fields, Kind, ResourceSpec, UPDATED_AT, field, filter, id, index, object},
    value::{CustomerId, LeadId, Text, Timestamp, words},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

words! {
    /// The state of a lead.
    pub enum LeadStatus {
        /// The fleet has not handled the lead.
        New = "NEW",
        /// Somebody is in contact with the person.
        InProgress = "IN_PROGRESS",
        /// The person became a customer.
        Converted = "CONVERTED",
        /// Nothing came of it.
        Closed = "CLOSED",
    }
}

/// The description of a lead.
pub static SPEC: ResourceSpec = ResourceSpec {
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
        .optional(),
        field(
            "raw_data",
            Kind::Json(65_536),
            "Any form fields or notes, given back exactly as received.",
            "{\"message\":\"Need an SUV in June\"}",
        )
        .optional()
        .fixed()
        .personal("null"),
        field("status", Kind::Word(LeadStatus::WORDS), "Where the lead stands.", "\"NEW\"").update_only(),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[filter("status", "status")],
    ranges: &[],
    // None by customer: erasing a person reads all leads, because those without a customer can contain the address.
    indexes: &[index(1, &["status"])],
    look_ups: &[],
    usual_changes: &["status"],
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

impl PartialEq for Lead {
    /// `raw_data` is compared as text, because it is kept as received.
    fn eq(&self, other: &Self) -> bool {
        let raw = |lead: &Self| lead.raw_data.as_ref().map(|raw| raw.get().to_owned());
        (self.id, &self.source_channel, self.customer_id, self.status, self.created_at, self.updated_at)
            == (other.id, &other.source_channel, other.customer_id, other.status, other.created_at, other.updated_at)
            && raw(self) == raw(other)
    }
}

impl Portable for Lead {}

impl Update for Lead {
    /// None: the specification has no event for it.
    fn events(&self, _: &Self, _: bool, _: &Fields) -> Vec<EventType> {
        Vec::new()
    }
}

impl Create for Lead {
    fn create(&mut self, _: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        self.status = Some(LeadStatus::New);
        Ok(vec![EventType::LeadReceived])
    }
}
