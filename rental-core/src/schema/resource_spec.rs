//! The description of one resource.

use super::{
    field_spec::FieldSpec,
    filter_spec::FilterSpec,
    index::{IndexSpec, LookUpSpec},
};

/// One resource: its names, fields in the order of a response, and the filters of its list.
#[derive(Debug)]
pub struct ResourceSpec {
    /// The value of the `object` field: `vehicle`.
    pub object: &'static str,
    /// The word in paths: `vehicles`.
    pub plural: &'static str,
    /// The byte of the resource in the keys of the store. Never reused for another resource.
    pub tag: u8,
    /// One sentence for documents.
    pub doc: &'static str,
    /// Every field of a response, in order.
    pub fields: &'static [FieldSpec],
    /// Query parameters of the list beside `limit`, `starting_after` and the `created` range.
    pub filters: &'static [FilterSpec],
    /// Time fields that limit the list by a range, one at a time: `updated[gte]`, `updated[lt]`. The list is then ordered by
    /// that time, ascending.
    pub ranges: &'static [FilterSpec],
    /// The indexes behind the filters. A combination of filters without an index is refused.
    pub indexes: &'static [IndexSpec],
    /// Further ways to find objects, which are no filters.
    pub look_ups: &'static [LookUpSpec],
    /// The fields that a PATCH usually changes, for the examples in documents.
    pub usual_changes: &'static [&'static str],
}

impl ResourceSpec {
    /// The field called `name`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static FieldSpec> {
        self.fields.iter().find(|field| field.name == name)
    }
}
