//! The description of one resource.

use super::{
    field_spec::{FieldSpec, Personal},
    filter_spec::FilterSpec,
    index::{IndexSpec, LookUpSpec},
    kind::Kind,
};

/// The resource whose objects are the people that can be erased.
const PERSON: &str = "customer";

/// The description of one resource: its names, fields, filters and indexes.
#[derive(Debug)]
pub struct ResourceSpec {
    /// The value of the `object` field: `vehicle`.
    pub object: &'static str,
    /// The name in paths: `vehicles`.
    pub plural: &'static str,
    /// The byte of the resource in the keys of the store. It is never reused for another resource.
    pub tag: u8,
    /// One sentence for the documentation of the API.
    pub doc: &'static str,
    /// All fields of a response, in order.
    pub fields: &'static [FieldSpec],
    /// Query parameters of the list in addition to `limit`, `starting_after` and the `created` range.
    pub filters: &'static [FilterSpec],
    /// Time fields that limit the list by a range, one at a time: `updated[gte]`, `updated[lt]`. The list is then ordered by
    /// that time, ascending.
    pub ranges: &'static [FilterSpec],
    /// The indexes of the filters. A query with a combination of filters that has no index is an error.
    pub indexes: &'static [IndexSpec],
    /// Further indexes, which are no filters of the list.
    pub look_ups: &'static [LookUpSpec],
    /// The fields that a PATCH usually changes, for the examples in the documentation.
    pub usual_changes: &'static [&'static str],
}

impl ResourceSpec {
    /// The description of the field called `name`, if the resource has one.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static FieldSpec> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field with the id of the customer whom the personal fields of an object are about: `id` of a customer,
    /// `customer_id` of a rental. `None` for a resource without personal fields.
    #[must_use]
    pub fn person(&self) -> Option<&'static str> {
        if self.fields.iter().all(|field| field.personal == Personal::No) {
            return None;
        }
        let is_person = |field: &&FieldSpec| match field.kind {
            Kind::Id => self.object == PERSON && field.name == "id",
            kind => kind == Kind::Reference(PERSON),
        };
        self.fields.iter().find(is_person).map(|field| field.name)
    }
}
