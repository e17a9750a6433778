//! Fields that several resources have.

use super::{
    field_spec::{FieldSpec, field},
    kind::Kind,
};

/// The field `id` of every object.
#[must_use]
pub(crate) const fn id(example: &'static str) -> FieldSpec {
    field("id", Kind::Id, "Unique identifier.", example)
}

/// The field `currency` of every object with an amount.
pub(crate) const CURRENCY: FieldSpec = field(
    "currency",
    Kind::Currency,
    "ISO 4217 currency of the amounts: the organization's default at creation.",
    "\"USD\"",
);
/// The field `created_at` of every object.
pub(crate) const CREATED_AT: FieldSpec =
    field("created_at", Kind::Time, "When the object was created.", "\"2026-05-05T09:30:00.000Z\"");
/// The field `updated_at` of every object.
pub(crate) const UPDATED_AT: FieldSpec =
    field("updated_at", Kind::Time, "When the object last changed.", "\"2026-05-05T09:30:00.000Z\"");

/// The field `object`: the constant name of the resource.
#[must_use]
pub(crate) const fn object(example: &'static str) -> FieldSpec {
    field("object", Kind::Object, "The object's type.", example)
}

/// Most invoices that bill parts of one rental, toll or violation.
pub(crate) const MOST_INVOICES: usize = 100;

/// The field `amount_billed` of what invoices bill.
pub(crate) const AMOUNT_BILLED: FieldSpec =
    field("amount_billed", Kind::Money, "What invoices bill of it: those that are not void, less credit notes.", "0");
/// The field `invoice_ids` of what invoices bill.
pub(crate) const INVOICE_IDS: FieldSpec =
    field("invoice_ids", Kind::References("invoice"), "The invoices that bill it and are not void, in order.", "[]");
