//! Encodes the key of a row.

use super::{
    key,
    row::{Marker, Row},
};
use crate::store::{Key, marks};

impl Row<'_> {
    /// Encodes the key. [`Row::decode`] returns the same row for it.
    #[must_use]
    pub fn encode(&self) -> Key {
        match *self {
            Self::Marker(Marker::Loading) => marks::loading(),
            Self::Marker(Marker::MasterKey) => key::master_key(),
            Self::Marker(Marker::Upgrade) => marks::upgrade(),
            Self::Access { selector } => key::access_of(selector),
            Self::Calendar { organization, vehicle } => key::calendar(organization, vehicle),
            Self::Due { endpoint, class, millis, delivery } => key::due(endpoint, class, millis, delivery),
            Self::Erased { organization, resource, id } => key::erased_of(organization, resource, id),
            Self::VehicleFeed { organization, vehicle } => key::vehicle_feed(organization, vehicle),
            Self::CalendarFeed { organization, feed } => key::calendar_feed(organization, feed),
            Self::Hold { organization, vehicle, class, start, holder } => {
                key::hold(organization, vehicle, class, start, holder)
            }
            Self::IndexEntry { organization, resource, index, values, id } => {
                key::entry_of(organization, (resource, index), values, id)
            }
            Self::Bell { server, endpoint } => key::bell(server, endpoint),
            Self::Recheck { organization, marked } => key::recheck(organization, marked),
            Self::Heartbeat { server } => key::heartbeat(server),
            Self::IdempotencyRecord { organization, name } => key::idempotency_record(organization, name),
            Self::Counter { organization, name } => key::counter(organization, name),
            Self::Outbox { organization, event } => key::outbox(organization, event),
            Self::Logo { organization } => key::logo(organization),
            Self::Subscribed { organization } => key::subscribed(organization),
            Self::Record { organization, resource, id } => key::record_of(organization, resource, id),
            Self::Secrets { endpoint } => key::secrets(endpoint),
            Self::Task { id } => key::task(id),
            Self::Identity { organization, resource, hash } => key::identity_of(organization, resource, hash),
            Self::Usage { server, organization } => key::usage(server, organization),
            Self::Owner { endpoint } => key::owner(endpoint),
            Self::IdempotencyExpiry { millis, organization, name } => {
                key::idempotency_expiry(millis, organization, name)
            }
        }
    }
}
