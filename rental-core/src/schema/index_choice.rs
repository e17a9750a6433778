//! Chooses the index for a list, and computes the index entries of an object.

use super::{
    filter_spec::FilterSpec,
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

    /// The index entries of an object: one for each index whose fields are all set. `value` returns the value of a field.
    pub(crate) fn index_prefixes<'a>(&self, value: impl Fn(&str) -> Option<IndexValue<'a>> + Copy) -> Vec<IndexPrefix> {
        self.indexes.iter().filter_map(|index| index.with(value)).collect()
    }

    /// The words by which a list can be filtered by this field: those in its indexes. `None` if the field is no word.
    #[must_use]
    pub fn filter_words(&self, field: &str) -> Option<&'static [&'static str]> {
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
        let filters: Vec<String> = self.indexes.iter().filter(|index| !index.fields.is_empty()).map(one).collect();
        let exact = match filters.is_empty() {
            true => "`created`".to_owned(),
            false => format!("{}, each also with `created`", filters.join(", ")),
        };
        let ranges: String = self.ranges.iter().map(|range| format!("; or `{}` alone", range.param)).collect();
        format!("{exact}{ranges}")
    }
}
