//! Sync lists: all objects with a time or date in a range, ordered by it and the id, ascending.
//!
//! An object that changes while a client reads such a list moves to its end, so the client sees it again. The cursor
//! contains the time or date and the id of a page's last object. It is opaque to clients, and a cursor of another list is an error.

use crate::{
    error::{Error, FieldCode, FieldError},
    rows::key,
    schema::{FilterSpec, IndexPrefix, IndexSpec, Kind, ResourceSpec},
    store::{self, Key, Order, Record, Span},
    value::{Date, OrganizationId, Timestamp},
};
use serde_json::value::RawValue;
use std::collections::HashMap;
use uuid::Uuid;

/// The first byte of every cursor: the version of its format.
const CURSOR_VERSION: u8 = 1;
/// Version, tag of the resource, number of the index, place, id.
const CURSOR_BYTES: usize = 1 + 1 + 1 + 8 + 16;

/// A place in the order of a sync list: the milliseconds of a time, or the number of a day.
type Place = u64;

/// A range of a time or date field, and the position after which a page begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Range {
    /// The name of its parameters before the bracket: `updated`.
    pub param: &'static str,
    /// The field: `updated_at`.
    pub field: &'static str,
    /// Only objects at this place or a later one.
    pub gte: Option<Place>,
    /// Only objects before this place.
    pub lt: Option<Place>,
    /// The position of the last object of the page before; `None` for the first page.
    pub after: Option<Position>,
}

/// A position in a sync list: that of the object with this place and id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Position {
    place: Place,
    id: Uuid,
}

impl Range {
    pub(super) fn new(range: &'static FilterSpec) -> Self {
        Self { param: range.param, field: range.field, gte: None, lt: None, after: None }
    }

    /// The span of the index that contains the objects of this list.
    pub(super) fn span(&self, organization: OrganizationId, spec: &ResourceSpec, index: &IndexSpec) -> Span {
        let all = IndexPrefix::new(index.number).prefix(organization, spec);
        let at = |place: Place| first_at(organization, spec, index, place);
        let mut from = self.gte.map_or_else(|| all.clone(), at);
        if let Some(after) = self.after {
            from = from.max(store::after(&key::entry(&at(after.place), after.id)));
        }
        let to = self.lt.map_or_else(|| store::after(&all), at);
        let span = Span { from, to, order: Order::Ascending, follow: None };
        span.following(key::records(organization, spec))
    }

    /// The cursor of a page whose last record this is.
    ///
    /// # Errors
    /// The record lacks the field of the list: the store is damaged.
    pub(super) fn cursor(&self, spec: &ResourceSpec, record: &Record) -> Result<String, Error> {
        let members: HashMap<&str, &RawValue> =
            crate::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
        let text = members.get(self.field).and_then(|raw| serde_json::from_str::<&str>(raw.get()).ok());
        let place = text.and_then(|text| place_of(text, self.field, spec));
        let whole = place.zip(record.key.id()).zip(spec.index_over(&[], Some(self.field)));
        let ((place, id), index) =
            whole.ok_or_else(|| Error::Internal(format!("a {} has no {}", spec.object, self.field)))?;
        Ok(Position { place, id }.cursor(spec, index))
    }
}

/// The first key of the entries with this place.
fn first_at(organization: OrganizationId, spec: &ResourceSpec, index: &IndexSpec, place: Place) -> Key {
    IndexPrefix::new(index.number).with(&place.to_be_bytes()).prefix(organization, spec)
}

/// The place of a value of a time or date field.
fn place_of(text: &str, field: &str, spec: &ResourceSpec) -> Option<Place> {
    match spec.field(field)?.kind {
        Kind::Date => Date::parse(text).map(|date| u64::from(date.day_number())),
        _ => Timestamp::parse_bound(text).map(Timestamp::millis),
    }
}

/// Parses the bound of a range of times or dates.
pub(super) fn bound(name: &str, value: &str, range: &FilterSpec, spec: &ResourceSpec) -> Result<Place, FieldError> {
    let rule = || match spec.field(range.field).map(|field| field.kind) {
        Some(Kind::Date) => "must be a date, such as 2026-05-05".into(),
        _ => Timestamp::rule(value),
    };
    place_of(value, range.field, spec).ok_or_else(|| FieldError::new(name, FieldCode::Invalid, &rule()))
}

impl Position {
    fn cursor(self, spec: &ResourceSpec, index: &IndexSpec) -> String {
        let mut bytes = Vec::with_capacity(CURSOR_BYTES);
        bytes.extend_from_slice(&[CURSOR_VERSION, spec.tag, index.number]);
        bytes.extend_from_slice(&self.place.to_be_bytes());
        bytes.extend_from_slice(self.id.as_bytes());
        hex::encode(bytes)
    }

    /// Parses a cursor. The boolean says whether it belongs to this list; `None` when the text is no cursor.
    pub(super) fn parse(text: &str, spec: &ResourceSpec, index: Option<&IndexSpec>) -> Option<(Self, bool)> {
        if text.len() != 2 * CURSOR_BYTES || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        let bytes = hex::decode(text).ok()?;
        let (&[version, tag, number], rest) = bytes.split_first_chunk::<3>()?;
        let (place, id) = rest.split_first_chunk::<8>()?;
        let position = Self { place: u64::from_be_bytes(*place), id: Uuid::from_slice(id).ok()? };
        let known = version == CURSOR_VERSION;
        known.then_some((position, tag == spec.tag && index.is_some_and(|index| index.number == number)))
    }
}
