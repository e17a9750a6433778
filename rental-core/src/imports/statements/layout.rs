//! Finds the columns of a mapping in a header.

use super::{
    cells::filled,
    field::{FIELDS, Field},
    header::Header,
    mapping::{Mapping, Take},
};
use std::borrow::Cow;

#[derive(Debug)]
pub(super) struct Layout {
    columns: [Columns; FIELDS],
    skip: Option<usize>,
    /// Number of columns of the header.
    pub(super) count: usize,
}

/// The columns of a field.
#[derive(Debug, Default)]
struct Columns {
    /// Their numbers, from 0.
    at: Vec<usize>,
    take: Take,
    /// The name of the first one, for messages.
    label: String,
}

impl Layout {
    /// Finds the columns of a mapping. Each that is not optional must be there.
    ///
    /// # Errors
    /// A column is missing, or the header names it twice.
    pub(super) fn find(mapping: &Mapping, header: &Header) -> Result<Self, String> {
        let (layout, mut missing) = Self::some(mapping, header);
        if let Some((column, _)) = mapping.skip.as_ref().filter(|_| layout.skip.is_none()) {
            missing.push(column);
        }
        let columns = || layout.columns.iter().flat_map(|columns| &columns.at).chain(&layout.skip);
        match (missing.as_slice(), header.repeated(columns().copied())) {
            ([], None) => Ok(layout),
            ([], Some(name)) => Err(format!("there are two columns `{name}`, of which only one may stay")),
            (missing, _) => Err(header.lacks_all(missing)),
        }
    }

    /// The columns of a mapping as far as the header has them, and those that it lacks although they are not optional.
    pub(super) fn some<'m>(mapping: &'m Mapping, header: &Header) -> (Self, Vec<&'m str>) {
        let mut layout = Self {
            columns: std::array::from_fn(|_| Columns::default()),
            skip: mapping.skip.as_ref().and_then(|(column, _)| header.find(column)),
            count: header.count(),
        };
        let mut missing = Vec::new();
        for (field, source) in &mapping.columns {
            let at: Vec<usize> = source.names.iter().filter_map(|name| header.find(name)).collect();
            let name = source.names.first().map_or("", String::as_str);
            let absent = source.names.iter().find(|name| header.find(name).is_none());
            let absent = absent.filter(|_| at.is_empty() || source.take != Take::First);
            missing.extend(absent.filter(|_| !source.is_optional).map(String::as_str));
            let label = at.first().map_or(name, |first| header.name(*first)).to_owned();
            let at = if absent.is_some() { Vec::new() } else { at };
            layout.columns[*field as usize] = Columns { at, take: source.take, label };
        }
        (layout, missing)
    }

    /// Keeps only the first column of each field, because the other names are spellings of it.
    pub(super) fn without_alternatives(mut self) -> Self {
        self.columns.iter_mut().for_each(|columns| columns.at.truncate(1));
        self
    }

    /// Whether the file has a column for the field.
    pub(super) fn has(&self, field: Field) -> bool {
        !self.columns[field as usize].at.is_empty()
    }

    /// Whether the amounts in the columns of a field are added up.
    pub(super) fn is_sum(&self, field: Field) -> bool {
        self.columns[field as usize].take == Take::Sum
    }

    /// Whether the texts in the columns of a field are joined.
    pub(super) fn is_joined(&self, field: Field) -> bool {
        self.columns[field as usize].take == Take::Joined
    }

    /// The values of a field's columns that are not blank.
    pub(super) fn values<'a>(&self, row: &[&'a str], field: Field) -> impl Iterator<Item = &'a str> {
        self.columns[field as usize].at.iter().filter_map(|at| filled(row.get(*at)?))
    }

    /// The value in the first column of a field.
    pub(super) fn first<'a>(&self, row: &[&'a str], field: Field) -> Option<&'a str> {
        self.columns[field as usize].at.first().and_then(|at| filled(row.get(*at)?))
    }

    /// The value of a field: the first one, or all of them joined.
    pub(super) fn value<'a>(&self, row: &[&'a str], field: Field) -> Option<Cow<'a, str>> {
        let mut values = self.values(row, field);
        let first = values.next()?;
        if !self.is_joined(field) {
            return Some(Cow::Borrowed(first));
        }
        Some(values.fold(Cow::Borrowed(first), |joined, value| joined + " " + value))
    }

    /// The name of a field's column in the spelling of the file.
    pub(super) fn label(&self, field: Field) -> &str {
        &self.columns[field as usize].label
    }

    /// The value in the column of a mapping's `skip`.
    pub(super) fn skip_value<'a>(&self, row: &[&'a str]) -> Option<&'a str> {
        self.skip.and_then(|at| filled(row.get(at)?))
    }
}
