//! What a resource is, as plain data: one description that everything else reads.
//!
//! A [`ResourceSpec`] feeds the checks of bodies and queries, the indexes behind filters, the OpenAPI document and the
//! flags and columns of the command line. The struct of a resource stays hand-written; a test fails when the two drift.

use crate::value::words;

mod description;
mod effects;
mod hold;
mod index;
mod sent;

pub use description::describe;
pub use effects::{Charge, Effects};
pub use hold::Hold;
pub use index::{IndexPrefix, IndexSpec, IndexValue, LookUpSpec, index, look_up, ordered_index};
pub use sent::Fields;

/// The version of the API that this program speaks (spec, Versioning): the `Service-Version` of responses, and the
/// `api_version` of events and webhook endpoints made by it.
pub const API_VERSION: &str = "2026-05-05";

/// One resource: its names, fields in the order of a response, and the filters of its list.
#[derive(Debug)]
pub struct ResourceSpec {
    /// The value of the `object` field: `vehicle`.
    pub object: &'static str,
    /// The word in paths: `vehicles`.
    pub plural: &'static str,
    /// The byte that stands for the resource in store keys. Never reused for another resource.
    pub tag: u8,
    /// One sentence for documents.
    pub doc: &'static str,
    /// Every field of a response, in order.
    pub fields: &'static [FieldSpec],
    /// Query parameters of the list beside `limit`, `starting_after` and the `created` range.
    pub filters: &'static [FilterSpec],
    /// Time fields by ranges of which the list is taken, each alone: `updated[gte]`, `updated[lt]`. It is then ordered by
    /// that time, rising.
    pub ranges: &'static [FilterSpec],
    /// The indexes behind the filters. A combination of filters without an index is refused.
    pub indexes: &'static [IndexSpec],
    /// How else objects are found.
    pub look_ups: &'static [LookUpSpec],
    /// The fields that a PATCH usually changes: the example of documents.
    pub usual_changes: &'static [&'static str],
}

impl ResourceSpec {
    /// The field called `name`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static FieldSpec> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// When a request may carry a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// Set by the server alone.
    Never,
    /// May be sent.
    Optional,
    /// Must be sent.
    Required,
}

/// One field of a resource.
#[derive(Debug)]
pub struct FieldSpec {
    /// Its name in JSON.
    pub name: &'static str,
    /// Which values it holds.
    pub kind: Kind,
    /// Whether POST takes it.
    pub create: Presence,
    /// Whether PATCH takes it.
    pub update: Presence,
    /// Whether it can be empty, which is written `null`.
    pub nullable: bool,
    /// The JSON text that stands there when POST leaves it out; without one, `null`.
    pub default: Option<&'static str>,
    /// One sentence for documents.
    pub doc: &'static str,
    /// An example value as JSON text.
    pub example: &'static str,
}

/// Which values a field holds. The rules stand in `docs/decisions.md`, "Identity and values".
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// The object's own id, a UUIDv7.
    Id,
    /// The constant name of the resource.
    Object,
    /// Text of at most this many characters.
    Text(usize),
    /// The same, not blank.
    Name(usize),
    /// An e-mail address.
    Email,
    /// A phone number in E.164.
    Phone,
    /// A BCP 47 language tag.
    Language,
    /// A whole number from..=to.
    Integer(i64, i64),
    /// An amount in the object's currency.
    Money,
    /// An ISO 4217 code.
    Currency,
    /// `true` or `false`.
    Boolean,
    /// A calendar date.
    Date,
    /// A point in time.
    Time,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The id of an object of the same organization.
    Reference(&'static str),
    /// Any JSON object of at most this many bytes, kept as received.
    Json(usize),
    /// An http or https URL of at most 2048 bytes.
    Url,
    /// A list of 1 to 14 different event types.
    EventTypes,
    /// The attempts of a delivery.
    AttemptLog,
    /// Lines of an invoice: a list of objects with `description`, `amount` and at most one thing that they bill.
    Lines,
    /// A name of the IANA time zone database.
    TimeZone,
}

/// A query parameter that compares one field exactly.
#[derive(Debug)]
pub struct FilterSpec {
    /// Its name in the query.
    pub param: &'static str,
    /// The field that it compares.
    pub field: &'static str,
}

/// A filter called `param` over `field`.
#[must_use]
pub const fn filter(param: &'static str, field: &'static str) -> FilterSpec {
    FilterSpec { param, field }
}

/// The one range of lists that are taken again and again: by `updated_at`.
pub const BY_UPDATE: &[FilterSpec] = &[filter("updated", "updated_at")];

/// A field that only the server sets.
#[must_use]
pub const fn field(name: &'static str, kind: Kind, doc: &'static str, example: &'static str) -> FieldSpec {
    FieldSpec {
        name,
        kind,
        create: Presence::Never,
        update: Presence::Never,
        nullable: false,
        default: None,
        doc,
        example,
    }
}

impl FieldSpec {
    /// Required on POST, changeable on PATCH, never empty.
    #[must_use]
    pub const fn required(mut self) -> Self {
        (self.create, self.update) = (Presence::Required, Presence::Optional);
        self
    }

    /// Optional on POST and PATCH; empty until set, and cleared by `null`.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        (self.create, self.update, self.nullable) = (Presence::Optional, Presence::Optional, true);
        self
    }

    /// Optional on POST and PATCH, never empty: starts as this JSON text.
    #[must_use]
    pub const fn starts_as(mut self, default: &'static str) -> Self {
        (self.create, self.update, self.default) = (Presence::Optional, Presence::Optional, Some(default));
        self
    }

    /// May be empty.
    #[must_use]
    pub const fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// Not changed by PATCH.
    #[must_use]
    pub const fn fixed(mut self) -> Self {
        self.update = Presence::Never;
        self
    }

    /// Set by PATCH alone.
    #[must_use]
    pub const fn update_only(mut self) -> Self {
        (self.create, self.update) = (Presence::Never, Presence::Optional);
        self
    }
}

/// `id`, as every object has it.
#[must_use]
pub const fn id(example: &'static str) -> FieldSpec {
    field("id", Kind::Id, "Unique identifier.", example)
}

/// `currency`, on every object with an amount.
pub const CURRENCY: FieldSpec = field(
    "currency",
    Kind::Currency,
    "ISO 4217 currency of the amounts: the organization's default at creation.",
    "\"USD\"",
);
/// `created_at`, on every object.
pub const CREATED_AT: FieldSpec =
    field("created_at", Kind::Time, "When the object was created.", "\"2026-05-05T09:30:00.000Z\"");
/// `updated_at`, on every object.
pub const UPDATED_AT: FieldSpec =
    field("updated_at", Kind::Time, "When the object last changed.", "\"2026-05-05T09:30:00.000Z\"");

words! {
    /// How a toll or violation got its customer.
    pub enum Attribution {
        /// Somebody chose the customer, or that there is none.
        Manual = "manual",
        /// The customer followed from the rental that had the vehicle.
        Automatic = "automatic",
    }
}

/// How a toll or violation got its customer.
pub const ATTRIBUTION: FieldSpec = field(
    "attribution",
    Kind::Word(Attribution::WORDS),
    "Whether somebody chose the customer, or it followed from the rental that had the vehicle; a choice is never changed \
     by a suggestion.",
    "null",
)
.or_null();
/// The rental from which the customer of a toll or violation followed.
pub const RENTAL_ID: FieldSpec =
    field("rental_id", Kind::Reference("rental"), "The rental from which the customer followed.", "null").or_null();

/// `object`, the constant name of the resource.
#[must_use]
pub const fn object(example: &'static str) -> FieldSpec {
    field("object", Kind::Object, "The object's type.", example)
}
