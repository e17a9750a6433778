//! The query parameters that filter a list.

use super::index::IndexPrefix;

/// A query parameter of a list that compares one field with a value.
#[derive(Debug)]
pub struct FilterSpec {
    /// The name of the parameter: `customer`.
    pub param: &'static str,
    /// The field that it compares: `customer_id`. Or what the resource computes instead: `billed`.
    pub field: &'static str,
    /// For a field that is compared in a canonical form: the entries of a look-up for a value, if there can be any. `None` for
    /// a field that is compared exactly, by an index.
    pub look_up: Option<fn(&str) -> Option<IndexPrefix>>,
}

/// The values of a filter by something that the program computes of an object, such as `billed`, and that is no field.
pub(crate) const TRUTH: &[&str] = &["true", "false"];

/// A filter with the name `param` that compares `field`.
#[must_use]
pub(crate) const fn filter(param: &'static str, field: &'static str) -> FilterSpec {
    FilterSpec { param, field, look_up: None }
}

/// A filter with the name of its field, which compares values in a canonical form by a look-up. It combines with no other.
#[must_use]
pub(crate) const fn filter_by(field: &'static str, look_up: fn(&str) -> Option<IndexPrefix>) -> FilterSpec {
    FilterSpec { param: field, field, look_up: Some(look_up) }
}

/// The range by `updated_at`, for sync lists.
pub(crate) const BY_UPDATE: &[FilterSpec] = &[filter("updated", "updated_at")];
