//! Chooses the index for a list, and computes the index entries of an object.

use super::{
    filter_spec::{FilterSpec, TRUTH},
    index::{IndexPrefix, IndexSpec},
    kind::Kind,
    resource_spec::ResourceSpec,
};
use crate::value::IndexValue;

impl ResourceSpec {
    /// The index for a list filtered by exactly these fields, in order of creation or by a time field.
    #[must_use]
    pub(crate) fn index_over(&self, fields: &[&str], ordered_by: Option<&str>) -> Option<&'static IndexSpec> {
        self.indexes.iter().find(|index| index.serves(fields, ordered_by))
    }

    /// Whether a list can be filtered by exactly these fields, in order of creation.
    #[must_use]
    pub(crate) fn takes(&self, fields: &[&str]) -> bool {
        fields.is_empty() || self.index_over(fields, None).is_some() || self.look_up_over(fields).is_some()
    }

    /// The filter of a list filtered by this one field, if a look-up serves it.
    pub(crate) fn look_up_over(&self, fields: &[&str]) -> Option<&'static FilterSpec> {
        let looks_up = |filter: &&FilterSpec| filter.look_up.is_some() && [filter.field] == *fields;
        self.filters.iter().find(looks_up)
    }

    /// The index entries of an object: one for each index whose fields are all set. `value` returns the value of a field.
    pub(crate) fn index_prefixes<'a>(&self, value: impl Fn(&str) -> Option<IndexValue<'a>> + Copy) -> Vec<IndexPrefix> {
        self.indexes.iter().filter_map(|index| index.with(value)).collect()
    }

    /// The words by which a list can be filtered by this field: those in its indexes, or `true` and `false` of what is
    /// computed. `None` if the field is no word.
    #[must_use]
    pub fn filter_words(&self, field: &str) -> Option<&'static [&'static str]> {
        if self.field(field).is_none() {
            return Some(TRUTH);
        }
        let Some(Kind::Word(words)) = self.field(field).map(|field| field.kind) else { return None };
        let only = self.indexes.iter().filter_map(|index| index.only).find(|(of, _)| *of == field);
        Some(only.map_or(words, |(_, words)| words))
    }

    /// The name of the query parameter that compares `field`.
    fn parameter_of(&self, field: &str) -> &'static str {
        self.filters.iter().find(|filter| filter.field == field).map_or("", |filter: &FilterSpec| filter.param)
    }

    /// The combinations of filters that the list takes: ``"`status`, `customer`, `status` with `customer`; or `updated` alone"``.
    #[must_use]
    pub(crate) fn offered_combinations(&self) -> String {
        let one = |index: &IndexSpec| {
            let names: Vec<String> =
                index.fields.iter().map(|field| format!("`{}`", self.parameter_of(field))).collect();
            names.join(" with ")
        };
        let looked_up = self.filters.iter().filter(|filter| filter.look_up.is_some());
        let looked_up = looked_up.map(|filter| format!("`{}`", filter.param));
        let indexed = self.indexes.iter().filter(|index| !index.fields.is_empty()).map(one);
        let filters: Vec<String> = indexed.chain(looked_up).collect();
        let exact = match filters.is_empty() {
            true => "`created`".to_owned(),
            false => format!("{}, each also with `created`", filters.join(", ")),
        };
        let ranges: String = self.ranges.iter().map(|range| format!("; or `{}` alone", range.param)).collect();
        format!("{exact}{ranges}")
    }
}
