//! Fields that several resources have.

use super::{
    field_spec::{FieldSpec, field},
    kind::Kind,
};

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

/// `object`, the constant name of the resource.
#[must_use]
pub const fn object(example: &'static str) -> FieldSpec {
    field("object", Kind::Object, "The object's type.", example)
}
