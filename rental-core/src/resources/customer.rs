//! Customers (spec, Customer).

use crate::{
    error::Error,
    resources::{Create, Portable, Resource, RuleContext, Update, event::EventType, fields},
    schema::{
        Ask, BY_UPDATE, CREATED_AT, Fields, Kind, ResourceSpec, SAME_EMAIL, UPDATED_AT, field, filter, id, index,
        object, ordered_index,
    },
    value::{CustomerId, Email, Language, MOST_LINES, Name, Phone, Text, Timestamp},
};
use serde::{Deserialize, Serialize};

/// The description of a customer.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "customer",
    plural: "customers",
    tag: 2,
    doc: "A person or company that rents vehicles.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000002\""),
        object("\"customer\""),
        field("full_name", Kind::Name(255), "Customer name.", "\"Ada Lovelace\"").required().personal("\"erased\""),
        field("email", Kind::Email, "Email address.", "\"ada@example.com\"").optional().personal("null"),
        field("phone", Kind::Phone, "Phone number in E.164 format.", "\"+14155550123\"").optional().personal("null"),
        field("preferred_language", Kind::Language, "BCP 47 language tag.", "\"en\"")
            .starts_as("\"en\"")
            .personal("\"en\""),
        field(
            "language_chosen",
            Kind::Boolean,
            "Whether a request sent `preferred_language`: documents are in it then, otherwise in the organization's `invoice_language`.",
            "true",
        )
        .personal("false"),
        field("source_channel", Kind::Text(255), "Acquisition channel.", "\"website\"").optional().personal("null"),
        field("notes", Kind::Paragraph(10_000, 10_000), "Internal notes.", "\"Prefers morning pickups\"")
            .optional()
            .personal("null"),
        field(
            "address",
            Kind::Paragraph(500, MOST_LINES),
            "Address on invoices, in lines.",
            "\"12 Main St\\nSpringfield\"",
        )
        .optional()
        .personal("null"),
        field("erased_at", Kind::Time, "When the customer was erased; an erased customer cannot be changed.", "null")
            .or_null(),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[filter("email", "email")],
    ranges: BY_UPDATE,
    indexes: &[index(1, &["email"]), ordered_index(16, "updated_at")],
    look_ups: &[],
    usual_changes: &["email", "phone"],
};

fields! {
    /// A customer of an organization (spec, Customer).
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct Customer {
        pub id: CustomerId,
        pub object: String,
        pub full_name: Name,
        pub email: Option<Email>,
        pub phone: Option<Phone>,
        pub preferred_language: Language,
        pub language_chosen: bool,
        pub source_channel: Option<Text>,
        pub notes: Option<Text>,
        pub address: Option<Text>,
        pub erased_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Resource for Customer {
    const SPEC: &'static ResourceSpec = &SPEC;

    fn asks(&self, before: Option<&Self>) -> Vec<Ask> {
        let email = self.entry(&["email"]).filter(|_| before.is_none_or(|before| before.email != self.email));
        email.map(|entry| Ask::Another(&SAME_EMAIL, entry)).into_iter().collect()
    }
}

impl Portable for Customer {}

impl Create for Customer {
    fn create(&mut self, _: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        Ok(vec![EventType::CustomerCreated])
    }
}

impl Update for Customer {
    fn apply(&mut self, before: &Self, sent: &Fields, _: &RuleContext<'_>) -> Result<(), Error> {
        if before.erased_at.is_some() {
            return Err(Error::Conflict("This customer was erased and cannot be changed.".into()));
        }
        self.language_chosen |= sent.has("preferred_language");
        Ok(())
    }

    fn events(&self, _: &Self, changed: bool, _: &Fields) -> Vec<EventType> {
        if changed { vec![EventType::CustomerUpdated] } else { Vec::new() }
    }
}
