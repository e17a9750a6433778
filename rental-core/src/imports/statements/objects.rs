//! Reads the rows of a JSON file. The members of an object are the columns of the format.

use super::{
    cells::filled,
    failure::{Failed, Refused},
    header::{Header, normal},
    input::Input,
    json::Json,
    table::Fields,
};
use crate::request::body::Members;
use serde_json::value::RawValue;
use std::io::Read;

pub(super) struct Objects<R> {
    /// Every column that the format knows.
    pub(super) header: Header,
    json: Json<R>,
    /// The values of the present row, by column. Blank ones are empty.
    values: Vec<String>,
}

impl<R: Read> Objects<R> {
    /// Reads a file whose objects have members with these names.
    pub(super) fn open(input: Input<R>, names: &[&str]) -> Result<Self, Failed> {
        let header = Header::of(names.iter().map(|name| (*name).to_owned()).collect());
        Ok(Self { header, json: Json::open(input)?, values: Vec::new() })
    }

    pub(super) fn next(&mut self) -> Result<Option<Fields<'_>>, Failed> {
        let Some((number, element)) = self.json.next()? else { return Ok(None) };
        let Ok(element) = std::str::from_utf8(element) else {
            return Ok(Some((number, Err("is not UTF-8 text".into()))));
        };
        let members: Members<'_> = serde_json::from_str(element).map_err(|error| {
            Refused(format!(
                "expected a JSON array of objects, or one object in each line, but at object {number} there is something \
                 else: {error}; download the file again"
            ))
        })?;
        if number == 1 && !members.0.iter().any(|(name, _)| self.header.find(name).is_some()) {
            let names: Vec<&str> = (0..3).map(|at| self.header.name(at)).collect();
            return Err(Refused(format!(
                "expected objects with {} and so on, but the first one has none of them; download the rows themselves, \
                 not a page or a description of them",
                names.join(", ")
            ))
            .into());
        }
        self.values.clear();
        self.values.resize(self.header.count(), String::new());
        let fields = fill(&mut self.values, &self.header, &members);
        Ok(Some((number, fields.map(|()| self.values.iter().map(String::as_str).collect()))))
    }
}

/// Copies the members of an object to the columns of their names. `null` and unknown members are ignored.
fn fill(values: &mut [String], header: &Header, members: &Members<'_>) -> Result<(), String> {
    for (name, raw) in &members.0 {
        let Some(value) = header.find(name).and_then(|at| values.get_mut(at)) else { continue };
        if !value.is_empty() {
            return Err(format!("`{}` is there twice", normal(name)));
        }
        *value = scalar(raw).map_err(|rule| format!("`{name}` {rule}"))?;
    }
    Ok(())
}

/// A text or number as text; empty for `null` and for blank texts.
fn scalar(raw: &RawValue) -> Result<String, String> {
    let json = raw.get();
    let value = match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json).map_err(|_| "is not a text that can be read".to_owned())?,
        Some(b'-' | b'0'..=b'9') if json.contains(['e', 'E']) => {
            return Err("has an exponent, so its digits may be lost; write it in full".into());
        }
        Some(b'-' | b'0'..=b'9') => json.to_owned(),
        Some(b'n') => String::new(),
        _ => return Err("must be a text or a number".into()),
    };
    Ok(filled(&value).unwrap_or_default().to_owned())
}
