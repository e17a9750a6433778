//! Sync lists: all objects with a time in a range, ordered by that time and the id, rising.
//!
//! An object that changes while somebody walks through such a list moves to its end, so it comes again. The cursor holds
//! time and id of a page's last object; it is opaque to clients, and one of another list is refused.

use crate::{
    error::Error,
    rows::key,
    schema::{FilterSpec, IndexPrefix, IndexSpec, ResourceSpec},
    store::{self, Key, Order, Record, Span},
    value::{OrganizationId, Timestamp},
};
use serde_json::value::RawValue;
use std::collections::HashMap;
use uuid::Uuid;

/// The first byte of every cursor; another one is written when its form changes.
const CURSOR_VERSION: u8 = 1;
/// Version, tag of the resource, number of the index, milliseconds, id.
const CURSOR_BYTES: usize = 1 + 1 + 1 + 8 + 16;

/// A range of a time field, and where the page before ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Range {
    /// The name of its parameters before the bracket: `updated`.
    pub param: &'static str,
    /// The field that it is about: `updated_at`.
    pub field: &'static str,
    /// At this time or later.
    pub gte: Option<Timestamp>,
    /// Before this time.
    pub lt: Option<Timestamp>,
    /// The last object of the page before.
    pub after: Option<Position>,
}

/// A place in a sync list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Position {
    time: Timestamp,
    id: Uuid,
}

impl Range {
    pub(super) fn new(range: &'static FilterSpec) -> Self {
        Self { param: range.param, field: range.field, gte: None, lt: None, after: None }
    }

    /// The one index range that answers it.
    pub(super) fn span(&self, organization: OrganizationId, spec: &ResourceSpec, index: &IndexSpec) -> Span {
        let all = IndexPrefix::new(index.number).prefix(organization, spec);
        let at = |time: Timestamp| place(organization, spec, index, time);
        let mut from = self.gte.map_or_else(|| all.clone(), at);
        if let Some(after) = self.after {
            from = from.max(store::after(&key::entry(&at(after.time), after.id)));
        }
        let to = self.lt.map_or_else(|| store::after(&all), at);
        let span = Span { from, to, order: Order::Ascending, follow: None };
        span.following(key::records(organization, spec))
    }

    /// The cursor of a page that ends with this record.
    ///
    /// # Errors
    /// The record does not have the field that the list is ordered by: the store is damaged.
    pub(super) fn cursor(&self, spec: &ResourceSpec, record: &Record) -> Result<String, Error> {
        let members: HashMap<&str, &RawValue> =
            serde_json::from_slice(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
        let time = members.get(self.field).and_then(|raw| serde_json::from_str::<Timestamp>(raw.get()).ok());
        let whole = time.zip(record.key.id()).zip(spec.index_over(&[], Some(self.field)));
        let ((time, id), index) =
            whole.ok_or_else(|| Error::Internal(format!("a {} has no {}", spec.object, self.field)))?;
        Ok(Position { time, id }.cursor(spec, index))
    }
}

/// Where the entries of this time begin.
fn place(organization: OrganizationId, spec: &ResourceSpec, index: &IndexSpec, time: Timestamp) -> Key {
    IndexPrefix::new(index.number).with(&time.millis().to_be_bytes()).prefix(organization, spec)
}

impl Position {
    fn cursor(self, spec: &ResourceSpec, index: &IndexSpec) -> String {
        let mut bytes = Vec::with_capacity(CURSOR_BYTES);
        bytes.extend_from_slice(&[CURSOR_VERSION, spec.tag, index.number]);
        bytes.extend_from_slice(&self.time.millis().to_be_bytes());
        bytes.extend_from_slice(self.id.as_bytes());
        hex::encode(bytes)
    }

    /// The position in a cursor, and whether the cursor is one of this list; `None` when the text is no cursor.
    pub(super) fn parse(text: &str, spec: &ResourceSpec, index: Option<&IndexSpec>) -> Option<(Self, bool)> {
        if text.len() != 2 * CURSOR_BYTES || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        let bytes = hex::decode(text).ok()?;
        let (&[version, tag, number], rest) = bytes.split_first_chunk::<3>()?;
        let (millis, id) = rest.split_first_chunk::<8>()?;
        let time = Timestamp::from_millis(i64::try_from(u64::from_be_bytes(*millis)).ok()?);
        let position = Self { time, id: Uuid::from_slice(id).ok()? };
        let known = version == CURSOR_VERSION && time.millis() == u64::from_be_bytes(*millis);
        known.then_some((position, tag == spec.tag && index.is_some_and(|index| index.number == number)))
    }
}
