//! Outbox rows: events of which no delivery was made yet.

use crate::{
    error::Error,
    store::Record,
    value::{EventId, OrganizationId},
};
use bytes::Bytes;

/// An event that waits in the outbox.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OutboxEvent {
    /// Its id.
    pub event: EventId,
    /// Whose it is.
    pub organization: OrganizationId,
    /// Its type.
    pub kind: String,
}

/// What an outbox row holds beside the event's id in its key: the organization, then the type.
#[must_use]
pub fn value(organization: OrganizationId, kind: &str) -> Bytes {
    [organization.as_bytes().as_slice(), kind.as_bytes()].concat().into()
}

/// Reads an outbox row.
///
/// # Errors
/// The row is not one that [`value`] made.
pub fn read(row: &Record) -> Result<OutboxEvent, Error> {
    let damaged = || Error::damaged_row(&row.key, "it names no organization and type");
    let event = row.key.id().map(EventId::from_uuid).ok_or_else(damaged)?;
    let (organization, kind) = row.value.split_at_checked(16).ok_or_else(damaged)?;
    let organization = OrganizationId::from_slice(organization).ok_or_else(damaged)?;
    let kind = String::from_utf8(kind.to_vec()).map_err(|_| damaged())?;
    Ok(OutboxEvent { event, organization, kind })
}
