//! The query parameters that filter a list.

/// A query parameter of a list that compares one field with a value.
#[derive(Debug)]
pub struct FilterSpec {
    /// The name of the parameter: `customer`.
    pub param: &'static str,
    /// The field that it compares: `customer_id`.
    pub field: &'static str,
}

/// A filter with the name `param` that compares `field`.
#[must_use]
pub(crate) const fn filter(param: &'static str, field: &'static str) -> FilterSpec {
    FilterSpec { param, field }
}

/// The range by `updated_at`, for sync lists.
pub(crate) const BY_UPDATE: &[FilterSpec] = &[filter("updated", "updated_at")];
