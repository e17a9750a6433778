//! The kinds of rows, and the class of each.

use crate::value::{DeliveryId, EndpointId, EventId, OrganizationId, RentalId, ServerId, TaskId, VehicleId};
use uuid::Uuid;

/// How copies, upgrades and repairs of a store treat a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// An object, as a GET returns it.
    Record,
    /// Can be computed from the records alone.
    Derived,
    /// Cannot be computed from other rows, so it must be kept.
    State,
    /// Belongs to running servers and has no meaning in a copy.
    Server,
}

/// A decoded key. The table has one line for each kind, with the parts of its key in order.
///
/// | Tag | Key: tag, then | Value | Class |
/// |---|---|---|---|
/// | `!` | nothing, or `upgrade` | empty: a copy into this store is not complete; JSON: where an upgrade stands | Server; State |
/// | `a` | first half of the SHA-256 of an API key | the whole hash, the id of its record | State |
/// | `b` | organization, toll or violation | id of the invoice that bills it | State |
/// | `c` | organization, vehicle | length classes of its holds, as bits; the revision guards every new hold | Derived |
/// | `d` | endpoint, class (0 first attempts, 1 retries), milliseconds, delivery | organization | State |
/// | `e` | organization, resource, id | reserved: an object that was deleted or erased | State |
/// | `h` | organization, vehicle, length class, first day, rental | the day after the last, 4 bytes | Derived |
/// | `i` | organization, resource, index, values (each after its length, 2 bytes), id | empty; leads to the record | Derived |
/// | `j` | server, endpoint | empty: something new is due | Server |
/// | `l` | server | empty; the revision is its heartbeat | Server |
/// | `m` | organization, idempotency key | JSON: the first response | State |
/// | `n` | organization, name | empty; the revision is the last number | State |
/// | `o` | event | organization, event type: no delivery was made yet | State |
/// | `q` | organization | empty: it has or had webhook endpoints | Derived |
/// | `r` | organization, resource, id | the JSON of a GET | Record |
/// | `s` | endpoint | JSON: its sealed secrets | State |
/// | `t` | task | JSON: kind and state of a long task that goes on after a restart | State |
/// | `u` | organization, resource, half a SHA-256 | id of the one object with this identity, its amount | State |
/// | `w` | endpoint | id of the server that sends for it | Server |
/// | `x` | milliseconds, organization, idempotency key | empty: when the response is removed | State |
///
/// The id of a record or index entry is a plain [`Uuid`], because the tag of the resource says what it names. So is the id in
/// a billing marker, which names a toll or a violation.
///
/// Ids have 16 bytes, milliseconds 8, days 4, a resource, an index and a class one; numbers are big-endian. So the order of
/// the bytes is the order of the parts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Row<'a> {
    /// About the store as a whole.
    Marker(Marker),
    /// Leads from an API key to its record.
    Access {
        /// The first half of the key's SHA-256.
        selector: [u8; 16],
    },
    /// Claims a toll or violation for the one invoice that bills it.
    Billed {
        /// Whose it is.
        organization: OrganizationId,
        /// The toll or violation.
        source: Uuid,
    },
    /// The length classes of a vehicle's holds.
    Calendar {
        /// Whose it is.
        organization: OrganizationId,
        /// The vehicle.
        vehicle: VehicleId,
    },
    /// When a delivery is due.
    Due {
        /// Where to.
        endpoint: EndpointId,
        /// 0 for a first attempt, 1 for a retry.
        class: u8,
        /// Milliseconds since 1970.
        millis: u64,
        /// The delivery.
        delivery: DeliveryId,
    },
    /// Reserved: the mark of an object that was deleted or erased.
    Erased {
        /// Whose it was.
        organization: OrganizationId,
        /// Tag of its resource.
        resource: u8,
        /// Its id.
        id: Uuid,
    },
    /// The nights for which a rental holds a vehicle.
    Hold {
        /// Whose they are.
        organization: OrganizationId,
        /// The vehicle.
        vehicle: VehicleId,
        /// Class n lasts 2^n to 2^(n+1)-1 nights.
        class: u8,
        /// Number of the first day.
        start: u32,
        /// The rental.
        rental: RentalId,
    },
    /// Leads from values to a record that has them.
    IndexEntry {
        /// Whose it is.
        organization: OrganizationId,
        /// Tag of the resource.
        resource: u8,
        /// Number of the index.
        index: u8,
        /// The values, each after its length in 2 bytes.
        values: &'a [u8],
        /// The id of the record.
        id: Uuid,
    },
    /// Tells a server that one of its endpoints has a new due delivery.
    Bell {
        /// The server.
        server: ServerId,
        /// The endpoint.
        endpoint: EndpointId,
    },
    /// A server is alive.
    Beat {
        /// The server.
        server: ServerId,
    },
    /// The first response to an idempotency key.
    Memo {
        /// Whose it is.
        organization: OrganizationId,
        /// The idempotency key.
        name: &'a str,
    },
    /// A sequence of numbers without gaps.
    Counter {
        /// Whose it is.
        organization: OrganizationId,
        /// What it counts.
        name: &'a str,
    },
    /// An event of which no delivery was made yet.
    Outbox {
        /// The event.
        event: EventId,
    },
    /// The organization has or had webhook endpoints, so its events go through the outbox.
    Subscribed {
        /// The organization.
        organization: OrganizationId,
    },
    /// An object.
    Record {
        /// Whose it is; nil for what the operator has.
        organization: OrganizationId,
        /// Tag of its resource.
        resource: u8,
        /// Its id.
        id: Uuid,
    },
    /// The sealed secrets of a webhook endpoint.
    Secrets {
        /// The endpoint.
        endpoint: EndpointId,
    },
    /// A long task that goes on after a restart.
    Task {
        /// The task.
        id: TaskId,
    },
    /// Claims an identity for the one object that has it.
    Identity {
        /// Whose it is.
        organization: OrganizationId,
        /// Tag of the resource.
        resource: u8,
        /// The first half of the identity's SHA-256.
        hash: [u8; 16],
    },
    /// Which server sends for an endpoint.
    Owner {
        /// The endpoint.
        endpoint: EndpointId,
    },
    /// When the response to an idempotency key is removed.
    MemoExpiry {
        /// Milliseconds since 1970.
        millis: u64,
        /// Whose it is.
        organization: OrganizationId,
        /// The idempotency key.
        name: &'a str,
    },
}

/// What a marker says about the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Marker {
    /// Another store is being copied into this one, and the copy is not complete.
    Loading,
    /// The store is being upgraded to another version.
    Upgrade,
}

impl Row<'_> {
    /// How copies, upgrades and repairs of a store treat it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Record { .. } => Class::Record,
            Self::Calendar { .. } | Self::Hold { .. } | Self::IndexEntry { .. } | Self::Subscribed { .. } => {
                Class::Derived
            }
            Self::Access { .. }
            | Self::Billed { .. }
            | Self::Due { .. }
            | Self::Erased { .. }
            | Self::Memo { .. }
            | Self::Counter { .. }
            | Self::Outbox { .. }
            | Self::Secrets { .. }
            | Self::Task { .. }
            | Self::Identity { .. }
            | Self::MemoExpiry { .. }
            // A copy made during an upgrade needs it, so that the upgrade continues there.
            | Self::Marker(Marker::Upgrade) => Class::State,
            Self::Bell { .. } | Self::Beat { .. } | Self::Owner { .. } | Self::Marker(Marker::Loading) => Class::Server,
        }
    }
}
