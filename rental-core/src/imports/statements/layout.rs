//! Finds the columns of a format in the header of a file.

use super::{
    cells::filled,
    field::{FIELDS, Field},
    header::Header,
    mapping::Mapping,
};

#[derive(Debug)]
pub(super) struct Layout {
    /// For each field the numbers of its columns. The first one with a value counts.
    columns: [Vec<usize>; FIELDS],
    /// For each field the name of its first column, for messages.
    labels: [String; FIELDS],
    skip: Option<usize>,
}

impl Layout {
    /// Finds the columns of a mapping. Each field in `required`, or each field of the mapping, needs at least one.
    ///
    /// # Errors
    /// A column is missing, or the header names it twice.
    pub(super) fn find(mapping: &Mapping, required: Option<&[Field]>, header: &Header) -> Result<Self, String> {
        let none = || std::array::from_fn(|_| String::new());
        let mut layout = Self { columns: std::array::from_fn(|_| Vec::new()), labels: none(), skip: None };
        for (field, names) in &mapping.columns {
            let columns: Vec<usize> = names.iter().filter_map(|name| header.find(name)).collect();
            let name = names.first().map_or("", String::as_str);
            if columns.is_empty() && required.is_none_or(|required| required.contains(field)) {
                return Err(header.lacks(&[name]));
            }
            layout.labels[*field as usize] = columns.first().map_or(name, |first| header.name(*first)).to_owned();
            layout.columns[*field as usize] = columns;
        }
        if let Some((column, _)) = &mapping.skip {
            layout.skip = Some(header.find(column).ok_or_else(|| header.lacks(&[column]))?);
        }
        let all: Vec<usize> = layout.columns.iter().flatten().copied().chain(layout.skip).collect();
        match header.repeated(&all) {
            Some(name) => Err(format!("there are two columns `{name}`, of which only one may stay")),
            None => Ok(layout),
        }
    }

    /// Keeps only the first column of each field, because the other names are spellings of it.
    pub(super) fn without_alternatives(mut self) -> Self {
        self.columns.iter_mut().for_each(|columns| columns.truncate(1));
        self
    }

    /// Whether the file has a column for the field.
    pub(super) fn has(&self, field: Field) -> bool {
        !self.columns[field as usize].is_empty()
    }

    /// The values of a field's columns that are not blank.
    pub(super) fn values<'a>(&self, row: &[&'a str], field: Field) -> impl Iterator<Item = &'a str> {
        self.columns[field as usize].iter().filter_map(|at| filled(row.get(*at)?))
    }

    /// The name of a field's column in the spelling of the file.
    pub(super) fn label(&self, field: Field) -> &str {
        &self.labels[field as usize]
    }

    /// The value in the column of a mapping's `skip`.
    pub(super) fn skip_value<'a>(&self, row: &[&'a str]) -> Option<&'a str> {
        self.skip.and_then(|at| filled(row.get(at)?))
    }
}
