//! The header of a file. Names of columns are compared without case, spaces and underscores.

use crate::request::body::{did_you_mean, shorten};
use crate::value::nfc;
use std::collections::HashSet;

/// Longest name, in characters, that a message shows.
const MAX_SHOWN: usize = 40;

/// The names of a file's columns.
pub(super) struct Header {
    names: Vec<String>,
    normal: Vec<String>,
}

impl Header {
    /// The header with these names.
    pub(super) fn of(names: Vec<String>) -> Self {
        Self { normal: names.iter().map(|name| normal(name)).collect(), names }
    }

    /// The header that these fields of a record are.
    pub(super) fn read(fields: &[&str]) -> Self {
        Self::of(fields.iter().map(|name| shorten(name.trim())).collect())
    }

    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// How many columns have one of these names.
    pub(super) fn count_of(&self, names: &[&str]) -> usize {
        let names: HashSet<String> = names.iter().map(|name| normal(name)).collect();
        self.normal.iter().filter(|name| names.contains(*name)).count()
    }

    /// The name of a column in the spelling of the file.
    pub(super) fn name(&self, at: usize) -> &str {
        self.names.get(at).map_or("", String::as_str)
    }

    /// The number of a column, from 0.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let name = normal(name);
        self.normal.iter().position(|known| *known == name)
    }

    /// A duplicate name among `columns`, which are those that are read.
    pub(super) fn repeated(&self, mut columns: impl Iterator<Item = usize>) -> Option<&str> {
        let twice = |at: &usize| self.normal.iter().filter(|name| **name == self.normal[*at]).count() > 1;
        columns.find(twice).map(|at| self.name(at))
    }

    /// The error for a file without any of these columns. It suggests the most similar column of the file.
    pub(super) fn lacks(&self, names: &[&str]) -> String {
        let near = names.first().map_or_else(String::new, |name| self.near(name));
        format!("there is no column `{}`{near}", names.join("` or `"))
    }

    /// The error for a file that lacks each of these columns.
    pub(super) fn lacks_all(&self, names: &[&str]) -> String {
        let [first, rest @ ..] = names else { return String::new() };
        let rest = if rest.is_empty() { String::new() } else { format!(", nor `{}`", rest.join("`, `")) };
        self.lacks(&[first]) + &rest
    }

    /// The suggestion `; is X it?` for a missing name.
    fn near(&self, name: &str) -> String {
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

    /// The names for a message, at most 12. A first line that does not look like names is only described, because the file can
    /// be a secret that was given by mistake.
    pub(super) fn shown(&self) -> String {
        if let [name] = self.names.as_slice() {
            // A shortened name ends with an ellipsis.
            let (more, count) = match name.strip_suffix('…') {
                Some(kept) => ("more than ", kept.chars().count()),
                None => ("", name.chars().count()),
            };
            return format!("one column, whose name has {more}{count} characters");
        }
        if let Some(long) = self.names.iter().position(|name| name.chars().count() > MAX_SHOWN) {
            let (count, at) = (self.names.len(), long + 1);
            return format!("{count} columns, of which number {at} has a name of more than {MAX_SHOWN} characters");
        }
        let most = 12;
        let more = if self.names.len() > most { ", …" } else { "" };
        format!("{}{more}", self.names.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", "))
    }
}

/// A name without the differences in spelling: `Plate ID`, `plate_id` and `PLATE  ID` are one name, and so are `N° d'avis` and `Nº d’avis`.
pub(super) fn normal(name: &str) -> String {
    let letters = nfc(name);
    let letters = letters.chars().filter(|c| !c.is_whitespace() && *c != '_').map(|c| match c {
        '\u{2019}' => '\'',
        'º' => '°',
        c => c,
    });
    letters.flat_map(char::to_lowercase).collect()
}
