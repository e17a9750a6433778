//! The query parameters that filter a list.

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

/// The range by `updated_at`, for lists that clients read again and again to synchronize.
pub const BY_UPDATE: &[FilterSpec] = &[filter("updated", "updated_at")];
