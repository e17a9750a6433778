//! The kinds of rows, and the class of each.

use super::recheck::Marked;
use crate::value::{
    CalendarFeedId, DeliveryId, EndpointId, EventId, Holder, OrganizationId, ServerId, TaskId, VehicleId,
};
use uuid::Uuid;

/// The class of a row: how copies, upgrades and repairs of a store treat it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// An object, as a GET returns it.
    Record,
    /// A row that can be computed from the records.
    Derived,
    /// A row that cannot be computed from other rows, so it must be kept.
    State,
    /// A row of running servers, which a copy leaves out.
    Server,
}

/// A decoded key. The table has one line for each kind, with the parts of its key in order.
///
/// | Tag | Key: tag, then | Value | Class |
/// |---|---|---|---|
/// | `!` | nothing, `master-key` or `upgrade` | empty: a copy into this store is not complete; JSON: which master key seals secrets; JSON: the progress of an upgrade | Server; State; State |
/// | `a` | first half of the SHA-256 of an API key or of an operator's token | the whole hash, the id of its record, for a token its rotation | State |
/// | `c` | organization, vehicle | lengths of its holds: bit n for 2^n to 2^(n+1)-1 nights; the revision guards every new hold | Derived |
/// | `d` | endpoint, class (0 first attempts, 1 retries), milliseconds, delivery | organization | State |
/// | `e` | organization, resource, id | JSON: when a customer was erased, and the report; reserved for other resources | State |
/// | `f` | organization, vehicle | JSON: the hash of the token of the vehicle's calendar feed, and when it was made | State |
/// | `g` | organization, calendar feed | JSON: the sealed address of a calendar of others, when it is read next, and how the last readings ended | State |
/// | `h` | organization, vehicle, length class, first day, rental; of a block its id and the tag of blocks | the day after the last, 4 bytes | Derived |
/// | `i` | organization, resource, index, values (each after its length, 2 bytes), id | empty; leads to the record | Derived |
/// | `j` | server, endpoint | empty: something new is due | Server |
/// | `k` | organization, vehicle or number | JSON: from which day on its tolls and violations must be derived again, and how far that is done | State |
/// | `l` | server | JSON: the fingerprints of its master keys; the revision is its heartbeat | Server |
/// | `m` | organization, idempotency key | JSON: the first response | State |
/// | `n` | organization, name | empty; the revision is the last number, or how often vehicles got or lost a transponder or plate | State |
/// | `o` | organization, event | organization, event type: no delivery was made yet | State |
/// | `p` | organization | PNG: its logo on invoices | State |
/// | `q` | organization | empty: it has or had webhook endpoints | Derived |
/// | `r` | organization, resource, id | the JSON of a GET | Record |
/// | `s` | endpoint | JSON: its sealed secrets | State |
/// | `t` | task | JSON: kind and state of a task, which continues after a restart | State |
/// | `u` | organization, resource, half a SHA-256 | id of the one object with this identity, its amount | State |
/// | `v` | server, organization | JSON: what the server has counted of the organization; for the nil organization, whether all of it is saved; for the nil server and organization, the last recount | Server |
/// | `w` | endpoint | id of the server that sends for it | Server |
/// | `x` | milliseconds, organization, idempotency key | empty: when the response is removed | State |
///
/// The id of a record or index entry is a plain [`Uuid`], because the tag of the resource says what it names.
///
/// Ids have 16 bytes, milliseconds 8, days 4, a resource, an index and a class one; numbers are big-endian. So the order of
/// the bytes is the order of the parts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Row<'a> {
    /// A marker: a row about the store as a whole.
    Marker(Marker),
    /// Finds the record of an API key, or of an operator by a token.
    Access {
        /// The first half of the SHA-256 of the key or token.
        selector: [u8; 16],
    },
    /// The lengths of a vehicle's holds.
    Calendar {
        /// The organization that owns the row.
        organization: OrganizationId,
        /// The id of the vehicle.
        vehicle: VehicleId,
    },
    /// The time of the next attempt of a delivery.
    Due {
        /// The endpoint of the delivery.
        endpoint: EndpointId,
        /// 0 for a first attempt, 1 for a retry.
        class: u8,
        /// The time, in milliseconds since 1970.
        millis: u64,
        /// The id of the delivery.
        delivery: DeliveryId,
    },
    /// The mark of an erased customer. Reserved for other resources.
    Erased {
        /// The organization that owns the object.
        organization: OrganizationId,
        /// The tag of the object's resource.
        resource: u8,
        /// The id of the object.
        id: Uuid,
    },
    /// The calendar feed of a vehicle, which everyone reads who has its token.
    VehicleFeed {
        /// The organization that owns the row.
        organization: OrganizationId,
        /// The id of the vehicle.
        vehicle: VehicleId,
    },
    /// A calendar of others: its sealed address, and when it is read next.
    CalendarFeed {
        /// The organization that owns the row.
        organization: OrganizationId,
        /// The id of the calendar feed.
        feed: CalendarFeedId,
    },
    /// The nights for which a rental or a block holds a vehicle.
    Hold {
        /// The organization that owns the vehicle.
        organization: OrganizationId,
        /// The id of the vehicle.
        vehicle: VehicleId,
        /// The length class: class n has holds of 8^n to 8^(n+1)-1 nights.
        class: u8,
        /// The number of the first day, see [`Date::day_number`](crate::value::Date::day_number).
        start: u32,
        /// The rental or the block.
        holder: Holder,
    },
    /// Finds a record by values of its fields.
    IndexEntry {
        /// The organization that owns the row.
        organization: OrganizationId,
        /// The tag of the resource.
        resource: u8,
        /// The number of the index.
        index: u8,
        /// The values, each after its length in 2 bytes.
        values: &'a [u8],
        /// The id of the record.
        id: Uuid,
    },
    /// Tells a server that one of its endpoints has a new due delivery.
    Bell {
        /// The id of the server.
        server: ServerId,
        /// The id of the webhook endpoint.
        endpoint: EndpointId,
    },
    /// Marks a vehicle or number whose tolls and violations must be derived again.
    Recheck {
        /// The organization that owns the row.
        organization: OrganizationId,
        /// The vehicle or number.
        marked: Marked,
    },
    /// The heartbeat of a running server.
    Heartbeat {
        /// The id of the server.
        server: ServerId,
    },
    /// The stored response of an idempotency key.
    IdempotencyRecord {
        /// The organization that owns the row.
        organization: OrganizationId,
        /// The idempotency key.
        name: &'a str,
    },
    /// A sequence of numbers without gaps, or the changes of a transponder or plate.
    Counter {
        /// The organization that owns the row.
        organization: OrganizationId,
        /// The name of the counter.
        name: &'a str,
    },
    /// An event without deliveries so far.
    Outbox {
        /// The organization that owns the event.
        organization: OrganizationId,
        /// The id of the event.
        event: EventId,
    },
    /// The logo of an organization, as a PNG.
    Logo {
        /// The organization.
        organization: OrganizationId,
    },
    /// The organization has or had webhook endpoints, so its events go through the outbox.
    Subscribed {
        /// The organization.
        organization: OrganizationId,
    },
    /// An object, as a GET returns it.
    Record {
        /// The organization that owns the object; the nil id for the operator's own objects.
        organization: OrganizationId,
        /// The tag of the object's resource.
        resource: u8,
        /// The id of the object.
        id: Uuid,
    },
    /// The encrypted secrets of a webhook endpoint.
    Secrets {
        /// The id of the webhook endpoint.
        endpoint: EndpointId,
    },
    /// A task, which continues after a restart.
    Task {
        /// The id of the task.
        id: TaskId,
    },
    /// Claims an identity for the only object that has it.
    Identity {
        /// The organization that owns the row.
        organization: OrganizationId,
        /// The tag of the resource.
        resource: u8,
        /// The first half of the identity's SHA-256.
        hash: [u8; 16],
    },
    /// What a server has counted of the rows of an organization.
    Usage {
        /// The id of the server; the nil id for the recount.
        server: ServerId,
        /// The organization; the nil id for the head of the server's rows.
        organization: OrganizationId,
    },
    /// The owner of an endpoint: the server that sends its deliveries.
    Owner {
        /// The id of the webhook endpoint.
        endpoint: EndpointId,
    },
    /// The time at which the stored response of an idempotency key expires.
    IdempotencyExpiry {
        /// The time, in milliseconds since 1970.
        millis: u64,
        /// The organization that owns the row.
        organization: OrganizationId,
        /// The idempotency key.
        name: &'a str,
    },
}

/// The kinds of markers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Marker {
    /// An incomplete copy: another store is being copied into this one.
    Loading,
    /// The fingerprint of the master key that seals secrets.
    MasterKey,
    /// The progress of an incomplete upgrade.
    Upgrade,
}

impl Row<'_> {
    /// The organization that the key names. Rows whose key names none can belong to one as well: their value or their
    /// endpoint says so. [`Tag::is_owned`](super::Tag::is_owned) says whether the organization is the first part of the key.
    #[must_use]
    pub fn organization(&self) -> Option<OrganizationId> {
        match self {
            Self::Calendar { organization, .. }
            | Self::Erased { organization, .. }
            | Self::VehicleFeed { organization, .. }
            | Self::CalendarFeed { organization, .. }
            | Self::Hold { organization, .. }
            | Self::IndexEntry { organization, .. }
            | Self::IdempotencyRecord { organization, .. }
            | Self::Counter { organization, .. }
            | Self::Outbox { organization, .. }
            | Self::Logo { organization }
            | Self::Subscribed { organization }
            | Self::Recheck { organization, .. }
            | Self::Record { organization, .. }
            | Self::Identity { organization, .. }
            | Self::IdempotencyExpiry { organization, .. } => Some(*organization),
            Self::Marker(_)
            | Self::Access { .. }
            | Self::Due { .. }
            | Self::Bell { .. }
            | Self::Heartbeat { .. }
            | Self::Secrets { .. }
            | Self::Task { .. }
            // A server counts in it. It removes the row when nothing of the organization is left.
            | Self::Usage { .. }
            | Self::Owner { .. } => None,
        }
    }

    /// The class of the row.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Record { .. } => Class::Record,
            Self::Calendar { .. }
            | Self::Hold { .. }
            | Self::IndexEntry { .. }
            | Self::Subscribed { .. } => Class::Derived,
            Self::Access { .. }
            | Self::Due { .. }
            | Self::Erased { .. }
            | Self::VehicleFeed { .. }
            | Self::CalendarFeed { .. }
            | Self::IdempotencyRecord { .. }
            | Self::Counter { .. }
            | Self::Outbox { .. }
            | Self::Logo { .. }
            | Self::Recheck { .. }
            | Self::Secrets { .. }
            | Self::Task { .. }
            | Self::Identity { .. }
            | Self::IdempotencyExpiry { .. }
            | Self::Marker(Marker::MasterKey)
            // A copy made during an upgrade needs it, so that the upgrade continues there.
            | Self::Marker(Marker::Upgrade) => Class::State,
            Self::Bell { .. }
            | Self::Heartbeat { .. }
            | Self::Usage { .. }
            | Self::Owner { .. }
            | Self::Marker(Marker::Loading) => Class::Server,
        }
    }
}
