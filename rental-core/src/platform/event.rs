//! Events as they are stored and delivered.

use super::list::Listed;
use crate::{
    error::Error,
    resources::{
        Resource,
        event::{self, EVENT_TYPES, EventSpec, EventType},
    },
    schema::ResourceSpec,
    store::Record,
    value::{EventId, kinds},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An event: a change of an object, stored in the transaction of the change.
#[derive(Clone, Debug)]
pub struct Event {
    /// The id of the event. Receivers recognize a repeated delivery by it.
    pub id: EventId,
    /// The type of the event.
    pub event_type: EventType,
    /// The time of the change, in seconds since 1970-01-01T00:00:00Z.
    pub created: u64,
    body: Bytes,
}

#[derive(Deserialize)]
struct Members<'a> {
    id: EventId,
    r#type: &'a str,
    created: u64,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl Event {
    /// The JSON that every delivery sends, byte for byte: `id`, `object`, `type`, `created` and `data`.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The object in `data`, as it was after the change.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the event carries another kind of object than `T`; [`Error::Internal`] when it is
    /// damaged.
    pub fn data<T: Resource>(&self) -> Result<T, Error> {
        let spec = EVENT_TYPES.iter().find(|spec| spec.event_type == self.event_type);
        let object = spec.map_or("", EventSpec::object);
        if object != T::SPEC.object {
            let name = self.event_type.as_str();
            return Err(Error::Conflict(format!("{name} carries a {object}, not a {}.", T::SPEC.object)));
        }
        let damaged = |error: serde_json::Error| Error::Internal(format!("event {} does not parse: {error}", self.id));
        let members: Members<'_> = crate::value::read_json(&self.body).map_err(damaged)?;
        serde_json::from_str(members.data.get()).map_err(damaged)
    }
}

impl Listed for Event {
    type Kind = kinds::Event;

    const SPEC: &'static ResourceSpec = &event::SPEC;

    fn read(record: Record) -> Result<Self, Error> {
        let members: Members<'_> =
            crate::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
        let known = EVENT_TYPES.iter().find(|spec| spec.name == members.r#type);
        let event_type = known
            .ok_or_else(|| Error::Internal(format!("event {} has the unknown type {}", members.id, members.r#type)))?
            .event_type;
        Ok(Self { id: members.id, event_type, created: members.created, body: record.value.clone() })
    }
}
