//! Organizations: the tenants. The operator manages them, and every other object belongs to one.

mod rules;

use crate::{
    resources::{Resource, fields},
    schema::{CREATED_AT, Kind, ResourceSpec, UPDATED_AT, field, id, object},
    value::{Currency, Email, MOST_LINES, Money, Name, OrganizationId, Percent, Phone, Text, Timestamp, Zone, words},
};
use serde::{Deserialize, Serialize};

/// The owner of the operator's own objects, such as organizations and API keys: the nil id.
pub const SYSTEM: OrganizationId = OrganizationId::nil();

/// The greatest limit: every program that reads JSON has this number exactly.
const MOST: i64 = (1 << 53) - 1;

/// The description of an organization.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "organization",
    plural: "organizations",
    tag: 8,
    doc: "A tenant: a fleet operator with its own vehicles, customers and keys.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000000\""),
        object("\"organization\""),
        field("name", Kind::Name(255), "Display name.", "\"Sunrise Rentals\"").required(),
        field("plan", Kind::Word(Plan::WORDS), "API access requires `pro`.", "\"pro\"").starts_as("\"pro\""),
        field("default_currency", Kind::Currency, "ISO 4217 currency of new amounts.", "\"USD\"")
            .starts_as("\"USD\"")
            .fixed(),
        field(
            "booking_policy",
            Kind::Word(BookingPolicy::WORDS),
            "`exclusive` refuses two rentals of one vehicle on one night; `open` records them.",
            "\"exclusive\"",
        )
        .starts_as("\"exclusive\""),
        field(
            "time_zone",
            Kind::TimeZone,
            "Where its days begin and end: a name of the IANA time zone database.",
            "\"America/New_York\"",
        )
        .starts_as("\"America/New_York\""),
        field(
            "max_objects",
            Kind::Integer(0, MOST),
            "Most vehicles, customers, rentals, invoices, tolls, violations and leads together; `null` is the default of the server.",
            "250000",
        )
        .optional(),
        field(
            "max_bytes",
            Kind::Integer(0, MOST),
            "Most bytes that its data takes in the store; `null` is the default of the server.",
            "5000000000",
        )
        .optional(),
        field(
            "max_requests_per_second",
            Kind::Integer(1, 1_000_000),
            "Requests per second of all its API keys together at each server, with a burst of twice that; `null` is the default of the server.",
            "500",
        )
        .optional(),
        field("legal_name", Kind::Name(255), "Name on invoices; `null` for `name`.", "\"Sunrise Rentals LLC\"").optional(),
        field(
            "address",
            Kind::Paragraph(500, MOST_LINES),
            "Address on invoices, in lines.",
            "\"1 Ocean Drive\\nMiami Beach, FL 33139\\nUnited States\"",
        )
        .optional(),
        field("tax_id", Kind::Text(100), "Tax number on invoices.", "\"12-3456789\"").optional(),
        field("contact_email", Kind::Email, "Email address on invoices.", "\"billing@sunrise.example\"").optional(),
        field("contact_phone", Kind::Phone, "Phone number on invoices, in E.164 format.", "\"+13055550100\"").optional(),
        field(
            "payment_instructions",
            Kind::Paragraph(1000, MOST_LINES),
            "How to pay, printed below the total of an open invoice.",
            "\"Bank: First Example Bank\\nIBAN: DE02 1203 0000 0000 2020 51\"",
        )
        .optional(),
        field(
            "invoice_language",
            Kind::Word(InvoiceLanguage::WORDS),
            "Language of the fixed words on invoices to customers whose `preferred_language` is none of these.",
            "\"en\"",
        )
        .starts_as("\"en\""),
        field(
            "paper_size",
            Kind::Word(PaperSize::WORDS),
            "Paper of invoices; `null` is `letter` when `default_currency` is USD or CAD, and `a4` otherwise.",
            "\"letter\"",
        )
        .optional(),
        field("toll_fee", Kind::Money, "Fee for each toll that an invoice made of a rental bills.", "1.5").optional(),
        field("violation_fee", Kind::Money, "The same for each violation.", "25").optional(),
        field("tax_name", Kind::Name(50), "Name of the tax on invoices made of rentals; goes with `tax_rate`.", "\"VAT\"")
            .optional(),
        field("tax_rate", Kind::Percent, "Its rate in percent, with at most 4 decimals.", "19").optional(),
        field("tax_included", Kind::Boolean, "Whether prices contain the tax; otherwise it is added.", "false")
            .starts_as("false"),
        field(
            "payment_terms_days",
            Kind::Integer(0, 365),
            "Days from the creation of an invoice until it is due; `null` for invoices without a due date.",
            "14",
        )
        .optional(),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[],
    ranges: &[],
    indexes: &[],
    look_ups: &[],
    usual_changes: &["booking_policy"],
};

words! {
    /// The plan of an organization (spec, Authentication 3).
    pub enum Plan {
        /// The organization has no access to the API.
        Free = "free",
        /// The organization has access to the API.
        Pro = "pro",
    }
}

words! {
    /// Whether two rentals may hold one vehicle on one night.
    pub enum BookingPolicy {
        /// No: the second rental is an error.
        Exclusive = "exclusive",
        /// Yes, for organizations that copy their bookings from another system.
        Open = "open",
    }
}

words! {
    /// The languages that an invoice can be in.
    pub enum InvoiceLanguage {
        /// English.
        English = "en",
        /// Spanish.
        Spanish = "es",
        /// French.
        French = "fr",
        /// German.
        German = "de",
    }
}

words! {
    /// The sizes of paper that an invoice can be made for.
    pub enum PaperSize {
        /// A4: 210 by 297 mm.
        A4 = "a4",
        /// US Letter: 8.5 by 11 inches.
        Letter = "letter",
    }
}

fields! {
    /// An organization, which owns vehicles, customers, rentals and all other objects.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct Organization {
        pub id: OrganizationId,
        pub object: String,
        pub name: Name,
        pub plan: Plan,
        pub default_currency: Currency,
        pub booking_policy: BookingPolicy,
        pub time_zone: Zone,
        pub max_objects: Option<i64>,
        pub max_bytes: Option<i64>,
        pub max_requests_per_second: Option<u32>,
        pub legal_name: Option<Name>,
        pub address: Option<Text>,
        pub tax_id: Option<Text>,
        pub contact_email: Option<Email>,
        pub contact_phone: Option<Phone>,
        pub payment_instructions: Option<Text>,
        pub invoice_language: InvoiceLanguage,
        pub paper_size: Option<PaperSize>,
        pub toll_fee: Option<Money>,
        pub violation_fee: Option<Money>,
        pub tax_name: Option<Name>,
        pub tax_rate: Option<Percent>,
        pub tax_included: bool,
        pub payment_terms_days: Option<u32>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Organization {
    /// The organization with the id [`SYSTEM`], which is no tenant: it owns the operator's own objects.
    ///
    /// # Panics
    /// Never: USD is a currency.
    #[must_use]
    pub fn system() -> Self {
        let Some(default_currency) = Currency::parse("USD") else { unreachable!("USD is a currency") };
        Self {
            id: SYSTEM,
            object: "organization".into(),
            name: Name::constant("system"),
            plan: Plan::Pro,
            default_currency,
            booking_policy: BookingPolicy::Exclusive,
            time_zone: Zone::NEW_YORK,
            max_objects: None,
            max_bytes: None,
            max_requests_per_second: None,
            legal_name: None,
            address: None,
            tax_id: None,
            contact_email: None,
            contact_phone: None,
            payment_instructions: None,
            invoice_language: InvoiceLanguage::English,
            paper_size: None,
            toll_fee: None,
            violation_fee: None,
            tax_name: None,
            tax_rate: None,
            tax_included: false,
            payment_terms_days: None,
            created_at: Timestamp::default(),
            updated_at: Timestamp::default(),
        }
    }
}

impl Resource for Organization {
    const SPEC: &'static ResourceSpec = &SPEC;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.id)
    }
}
