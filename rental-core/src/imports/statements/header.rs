//! The header of a file: which column is which, however it is spelled.

use super::{Failed, Refused, csv::Record};
use crate::body::{did_you_mean, shorten};

/// The names of a file's columns.
pub(super) struct Header {
    names: Vec<String>,
    normal: Vec<String>,
}

impl Header {
    pub(super) fn read(record: &Record<'_>) -> Result<Self, Failed> {
        let Some(fields) = record.fields() else {
            let advice = "save it as \"CSV UTF-8\"";
            return Err(
                Refused(format!("expected a header in UTF-8, but line {} is not; {advice}", record.line)).into()
            );
        };
        let names: Vec<String> = fields.iter().map(|name| shorten(name.trim())).collect();
        Ok(Self { normal: names.iter().map(|name| normal(name)).collect(), names })
    }

    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// The name of a column as the file spells it.
    pub(super) fn name(&self, at: usize) -> &str {
        self.names.get(at).map_or("", String::as_str)
    }

    /// The place of a column; case, spaces and underscores in its name do not matter.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let name = normal(name);
        self.normal.iter().position(|known| *known == name)
    }

    /// A name that stands there twice, of those that are read.
    pub(super) fn repeated(&self, places: &[usize]) -> Option<&str> {
        let twice = |at: &&usize| self.normal.iter().filter(|name| **name == self.normal[**at]).count() > 1;
        places.iter().find(twice).map(|at| self.name(*at))
    }

    /// `; did you mean X?` for a name that is missing.
    pub(super) fn near(&self, name: &str) -> String {
        let near = did_you_mean(&normal(name), self.normal.iter().map(String::as_str));
        let found = self.normal.iter().position(|known| near.contains(&format!("`{known}`")));
        found.map_or_else(String::new, |at| format!("; is `{}` it?", self.name(at)))
    }

    /// The columns that are not in `known`.
    pub(super) fn others<'a>(&'a self, known: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let known: Vec<String> = known.iter().map(|name| normal(name)).collect();
        let columns = self.names.iter().zip(&self.normal);
        columns.filter(move |(_, normal)| !known.contains(normal)).map(|(name, _)| name.as_str())
    }

    /// The header as a sentence shows it.
    pub(super) fn shown(&self) -> String {
        let most = 12;
        let more = if self.names.len() > most { ", …" } else { "" };
        format!("{}{more}", self.names.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", "))
    }
}

/// A name without what exports spell differently: `Plate ID`, `plate_id` and `PLATE  ID` are one.
pub(super) fn normal(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace() && *c != '_').flat_map(char::to_lowercase).collect()
}
