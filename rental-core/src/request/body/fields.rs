//! Parses a body into [`Fields`], and sets the fields of an object from them.

use super::{
    check::{check, duplicate},
    lines,
    members::{Members, members},
    plain_value::one_value,
    suggestion::{did_you_mean, shorten},
    verb::Verb,
};
use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    schema::{FieldSpec, Fields, Kind, Presence, ResourceSpec},
    value::{FieldValue, FromFields},
};
use std::{borrow::Cow, collections::HashSet};
use uuid::Uuid;

#[cfg(test)]
thread_local! {
    /// How often this thread has parsed a body.
    pub(crate) static READINGS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Fields {
    /// Parses `body` as one JSON object with fields of `spec`. An empty body is `{}`.
    ///
    /// `digits` is the number of decimals of the organization's currency.
    ///
    /// # Errors
    /// [`Error::Malformed`] when the body is not one JSON object, else [`Error::Invalid`] with every bad field.
    pub fn parse(body: &[u8], spec: &'static ResourceSpec, verb: Verb, digits: u32) -> Result<Self, Error> {
        let (fields, errors) = Self::read(body, spec, verb, digits)?;
        errors.or(fields)
    }

    /// Parses like [`Fields::parse`], and returns both the valid fields and the errors of the others.
    ///
    /// # Errors
    /// [`Error::Malformed`] when the body is not one JSON object.
    pub(crate) fn read(
        body: &[u8],
        spec: &'static ResourceSpec,
        verb: Verb,
        digits: u32,
    ) -> Result<(Self, FieldErrors), Error> {
        #[cfg(test)]
        READINGS.set(READINGS.get() + 1);
        let sent = if body.is_empty() { Members::default() } else { members(body)? };
        let mut errors = FieldErrors::default();
        let mut values = vec![None; spec.fields.len()];
        let mut given = vec![false; spec.fields.len()];
        let mut named = vec![false; spec.fields.len()]; // by an error
        let mut unknown_names = HashSet::new();
        for (name, raw) in sent.0 {
            let place = spec.fields.iter().position(|field| field.name == name);
            let is_new = match place {
                Some(at) => !std::mem::replace(&mut given[at], true),
                None => unknown_names.insert(name.clone()),
            };
            let taken = |field: &FieldSpec| verb.presence(field) != Presence::Never;
            match place.map(|at| (at, &spec.fields[at])) {
                known if !is_new => {
                    known.into_iter().for_each(|(at, _)| named[at] = true);
                    errors.add(|| duplicate(&name));
                }
                Some((at, field)) if taken(field) => match check(field, verb, raw, digits) {
                    Ok(value) => values[at] = value,
                    Err(mistakes) => {
                        // Also by the error of a part, such as `lines[0].amount`.
                        named[at] = true;
                        errors.extend(mistakes);
                    }
                },
                known => errors.add(|| unknown(&name, known.map(|(_, field)| field), spec, verb)),
            }
        }
        for (at, field) in spec.fields.iter().enumerate() {
            let required = verb.presence(field) == Presence::Required;
            if required && values[at].is_none() && !named[at] {
                errors.add(|| FieldError::new(field.name, FieldCode::Missing, "is required"));
            }
        }
        Ok((Self { spec, values }, errors))
    }

    /// Replaces references to missing objects by the nil id, so that the rules of other fields can still be checked.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `missing` for a resource with invoice lines, because its rules read the referenced objects.
    pub(crate) fn forget_missing(&mut self, missing: FieldErrors) -> Result<FieldErrors, Error> {
        if self.spec.fields.iter().any(|field| field.kind == Kind::Lines) {
            return missing.or(FieldErrors::default());
        }
        for (field, value) in self.spec.fields.iter().zip(&mut self.values) {
            if missing.listed().iter().any(|error| error.param == field.name) {
                *value = Some(FieldValue::Plain(Uuid::nil().to_string()));
            }
        }
        Ok(missing)
    }

    /// The references in the body: field (`customer_id`, `lines[0].toll_id`), resource, and id as sent.
    #[must_use]
    pub(crate) fn references(&self) -> Vec<(String, &'static str, &str)> {
        let mut named = Vec::new();
        for (field, value) in self.spec.fields.iter().zip(&self.values) {
            match (field.kind, value) {
                (Kind::Reference(object), Some(FieldValue::Plain(id))) => {
                    named.push((field.name.to_owned(), object, id.as_str()));
                }
                (Kind::Lines, Some(FieldValue::Objects(lines))) => named.extend(lines::references(field.name, lines)),
                (Kind::EarlierVehicles, Some(FieldValue::Objects(vehicles))) => {
                    let ids = vehicles.iter().flatten().filter_map(|(_, value)| value.plain()).enumerate();
                    named.extend(ids.map(|(at, id)| (format!("{}[{at}].vehicle_id", field.name), "vehicle", id)));
                }
                _ => {}
            }
        }
        named
    }

    /// Builds a whole object. Each field has the sent value, else that of `otherwise`, else its default, else null.
    ///
    /// # Errors
    /// The name of the first field whose value has another type in the struct.
    pub fn object<T: FromFields>(
        &self,
        otherwise: &dyn Fn(&FieldSpec) -> Option<FieldValue>,
    ) -> Result<T, &'static str> {
        let mut fields = self.spec.fields.iter().zip(&self.values).map(|(field, sent)| {
            let other = || otherwise(field).or_else(|| default_of(field)).unwrap_or(FieldValue::Null);
            (field.name, sent.as_ref().map_or_else(|| Cow::Owned(other()), Cow::Borrowed))
        });
        T::from_fields(&mut || fields.next())
    }

    /// Sets each field of `object` that was sent.
    ///
    /// # Errors
    /// The name of the first field whose value has another type in the struct.
    pub fn apply<T: FromFields>(&self, object: &mut T) -> Result<(), &'static str> {
        let mut sent = self.spec.fields.iter().zip(&self.values);
        sent.try_for_each(|(field, value)| value.as_ref().map_or(Ok(()), |value| object.set(field.name, value)))
    }
}

/// The default value of a field, if it has one. No default is an amount.
pub(super) fn default_of(field: &FieldSpec) -> Option<FieldValue> {
    one_value(field.kind, field.default?, 0).ok()
}

/// The error of a field that the resource does not have or that this request cannot set.
fn unknown(name: &str, known: Option<&FieldSpec>, spec: &ResourceSpec, verb: Verb) -> FieldError {
    let rule = match (known, verb) {
        (Some(field), Verb::Update) if field.create != Presence::Never => "cannot be changed".to_owned(),
        (Some(field), Verb::Create) if field.update != Presence::Never => "can only be set by an update".to_owned(),
        (Some(_), _) => "is set by the server and cannot be sent".to_owned(),
        (None, _) => {
            let taken = spec.fields.iter().filter(|field| verb.presence(field) != Presence::Never);
            format!(
                "is not a field of this {}{}",
                spec.object.replace('_', " "),
                did_you_mean(name, taken.map(|field| field.name))
            )
        }
    };
    FieldError::new(&shorten(name), FieldCode::Unknown, &rule)
}
