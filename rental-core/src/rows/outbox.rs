//! Outbox rows: events without deliveries so far.

use crate::{
    error::Error,
    rows::Row,
    store::Record,
    value::{EventId, OrganizationId},
};
use bytes::Bytes;

/// An event in the outbox.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OutboxEvent {
    /// The id of the event.
    pub event: EventId,
    /// The organization that owns the event.
    pub organization: OrganizationId,
    /// The type of the event: `rental.created`.
    pub kind: String,
}

/// The value of an outbox row: the organization, then the type. The key contains the organization and the event's id.
#[must_use]
pub fn value(organization: OrganizationId, kind: &str) -> Bytes {
    [organization.as_bytes().as_slice(), kind.as_bytes()].concat().into()
}

/// Parses an outbox row.
///
/// # Errors
/// [`Error::Damaged`]: the value is not one of [`value`].
pub fn read(row: &Record) -> Result<OutboxEvent, Error> {
    let damaged = || Error::damaged_row(&row.key, "it names no organization and type");
    let Some(Row::Outbox { organization, event }) = Row::decode(&row.key) else { return Err(damaged()) };
    let (owner, kind) = row.value.split_at_checked(16).ok_or_else(damaged)?;
    if owner != organization.as_bytes() {
        return Err(damaged());
    }
    let kind = String::from_utf8(kind.to_vec()).map_err(|_| damaged())?;
    Ok(OutboxEvent { event, organization, kind })
}
