//! Every kind of row in the store: how its key is made and read, and its class.
//!
//! The store knows bytes; here they get their meaning, once. Whoever has to know all kinds of rows (the check of a store,
//! copies, upgrades, the words for operators) matches on [`Row`], so that a new kind does not compile before each of them
//! has been thought of.

pub mod claim;
mod index_entries;
pub mod key;
pub mod outbox;

use crate::store::{Key, marks};
use uuid::Uuid;

/// Defines the tags once: as an enum, as a list, and as what a byte means.
macro_rules! tags {
    ($($(#[$doc:meta])* $name:ident = $byte:literal,)+) => {
        /// The first byte of a key: the kind of the row. A byte is never used again for something else.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[repr(u8)]
        pub enum Tag {
            $($(#[$doc])* $name = $byte,)+
        }

        impl Tag {
            /// All of them, by rising byte.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The kind of row that this byte begins; `None` for a byte that begins none.
            #[must_use]
            pub fn of(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

tags! {
    /// See [`Row::Marker`].
    Marker = b'!',
    /// See [`Row::Access`].
    Access = b'a',
    /// See [`Row::Billed`].
    Billed = b'b',
    /// See [`Row::Calendar`].
    Calendar = b'c',
    /// See [`Row::Due`].
    Due = b'd',
    /// See [`Row::Erased`].
    Erased = b'e',
    /// See [`Row::Hold`].
    Hold = b'h',
    /// See [`Row::IndexEntry`].
    IndexEntry = b'i',
    /// See [`Row::Bell`].
    Bell = b'j',
    /// See [`Row::Beat`].
    Beat = b'l',
    /// See [`Row::Memo`].
    Memo = b'm',
    /// See [`Row::Counter`].
    Counter = b'n',
    /// See [`Row::Outbox`].
    Outbox = b'o',
    /// See [`Row::Subscribed`].
    Subscribed = b'q',
    /// See [`Row::Record`].
    Record = b'r',
    /// See [`Row::Secrets`].
    Secrets = b's',
    /// See [`Row::Task`].
    Task = b't',
    /// See [`Row::Identity`].
    Identity = b'u',
    /// See [`Row::Owner`].
    Owner = b'w',
    /// See [`Row::MemoExpiry`].
    MemoExpiry = b'x',
}

/// What becomes of a row when a store is copied, upgraded or repaired.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// An object, as a GET returns it.
    Record,
    /// Can be computed again from the records alone.
    Derived,
    /// Cannot be computed: it has to be kept.
    State,
    /// Of running servers. It means nothing in a copy.
    Server,
}

/// A key, taken apart. The table has one line for each kind; the parts follow each other in the key in this order.
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
        organization: Uuid,
        /// The toll or violation.
        source: Uuid,
    },
    /// The length classes of a vehicle's holds.
    Calendar {
        /// Whose it is.
        organization: Uuid,
        /// The vehicle.
        vehicle: Uuid,
    },
    /// When a delivery is due.
    Due {
        /// Where to.
        endpoint: Uuid,
        /// 0 for a first attempt, 1 for a retry.
        class: u8,
        /// Milliseconds since 1970.
        millis: u64,
        /// The delivery.
        delivery: Uuid,
    },
    /// Reserved: the mark of an object that was deleted or erased.
    Erased {
        /// Whose it was.
        organization: Uuid,
        /// Tag of its resource.
        resource: u8,
        /// Its id.
        id: Uuid,
    },
    /// The nights for which a rental holds a vehicle.
    Hold {
        /// Whose they are.
        organization: Uuid,
        /// The vehicle.
        vehicle: Uuid,
        /// Class n lasts 2^n to 2^(n+1)-1 nights.
        class: u8,
        /// Number of the first day.
        start: u32,
        /// The rental.
        rental: Uuid,
    },
    /// Leads from values to a record that has them.
    IndexEntry {
        /// Whose it is.
        organization: Uuid,
        /// Tag of the resource.
        resource: u8,
        /// Number of the index.
        index: u8,
        /// The values, each after its length in 2 bytes.
        values: &'a [u8],
        /// The id of the record.
        id: Uuid,
    },
    /// Tells a server that something new is due for one of its endpoints.
    Bell {
        /// The server.
        server: Uuid,
        /// The endpoint.
        endpoint: Uuid,
    },
    /// A server is alive.
    Beat {
        /// The server.
        server: Uuid,
    },
    /// The first response to an idempotency key.
    Memo {
        /// Whose it is.
        organization: Uuid,
        /// The idempotency key.
        name: &'a str,
    },
    /// A sequence of numbers without gaps.
    Counter {
        /// Whose it is.
        organization: Uuid,
        /// What it counts.
        name: &'a str,
    },
    /// An event of which no delivery was made yet.
    Outbox {
        /// The event.
        event: Uuid,
    },
    /// The organization has or had webhook endpoints, so its events go through the outbox.
    Subscribed {
        /// The organization.
        organization: Uuid,
    },
    /// An object.
    Record {
        /// Whose it is; nil for what the operator has.
        organization: Uuid,
        /// Tag of its resource.
        resource: u8,
        /// Its id.
        id: Uuid,
    },
    /// The sealed secrets of a webhook endpoint.
    Secrets {
        /// The endpoint.
        endpoint: Uuid,
    },
    /// A long task that goes on after a restart.
    Task {
        /// The task.
        id: Uuid,
    },
    /// Claims an identity for the one object that has it.
    Identity {
        /// Whose it is.
        organization: Uuid,
        /// Tag of the resource.
        resource: u8,
        /// The first half of the identity's SHA-256.
        hash: [u8; 16],
    },
    /// Which server sends for an endpoint.
    Owner {
        /// The endpoint.
        endpoint: Uuid,
    },
    /// When the response to an idempotency key is removed.
    MemoExpiry {
        /// Milliseconds since 1970.
        millis: u64,
        /// Whose it is.
        organization: Uuid,
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

impl<'a> Row<'a> {
    /// What the key says; `None` for a key that no program of this version makes.
    #[must_use]
    pub fn decode(key: &'a Key) -> Option<Self> {
        let (tag, rest) = key.as_bytes().split_first()?;
        let mut parts = Parts(rest);
        let row = match Tag::of(*tag)? {
            Tag::Marker => return Marker::decode(rest).map(Self::Marker),
            Tag::Access => Self::Access { selector: *parts.take()? },
            Tag::Billed => Self::Billed { organization: parts.id()?, source: parts.id()? },
            Tag::Calendar => Self::Calendar { organization: parts.id()?, vehicle: parts.id()? },
            Tag::Due => Self::Due {
                endpoint: parts.id()?,
                class: parts.byte()?,
                millis: parts.millis()?,
                delivery: parts.id()?,
            },
            Tag::Erased => Self::Erased { organization: parts.id()?, resource: parts.byte()?, id: parts.id()? },
            Tag::Hold => Self::Hold {
                organization: parts.id()?,
                vehicle: parts.id()?,
                class: parts.byte()?,
                start: u32::from_be_bytes(*parts.take()?),
                rental: parts.id()?,
            },
            Tag::IndexEntry => Self::IndexEntry {
                organization: parts.id()?,
                resource: parts.byte()?,
                index: parts.byte()?,
                values: parts.values()?,
                id: parts.id()?,
            },
            Tag::Bell => Self::Bell { server: parts.id()?, endpoint: parts.id()? },
            Tag::Beat => Self::Beat { server: parts.id()? },
            Tag::Memo => Self::Memo { organization: parts.id()?, name: parts.text()? },
            Tag::Counter => Self::Counter { organization: parts.id()?, name: parts.text()? },
            Tag::Outbox => Self::Outbox { event: parts.id()? },
            Tag::Subscribed => Self::Subscribed { organization: parts.id()? },
            Tag::Record => Self::Record { organization: parts.id()?, resource: parts.byte()?, id: parts.id()? },
            Tag::Secrets => Self::Secrets { endpoint: parts.id()? },
            Tag::Task => Self::Task { id: parts.id()? },
            Tag::Identity => {
                Self::Identity { organization: parts.id()?, resource: parts.byte()?, hash: *parts.take()? }
            }
            Tag::Owner => Self::Owner { endpoint: parts.id()? },
            Tag::MemoExpiry => {
                Self::MemoExpiry { millis: parts.millis()?, organization: parts.id()?, name: parts.text()? }
            }
        };
        parts.0.is_empty().then_some(row)
    }

    /// Its key. [`Row::decode`] gives the row again.
    #[must_use]
    pub fn encode(&self) -> Key {
        match *self {
            Self::Marker(Marker::Loading) => marks::loading(),
            Self::Marker(Marker::Upgrade) => marks::upgrade(),
            Self::Access { selector } => key::access_of(selector),
            Self::Billed { organization, source } => key::billed(organization, source),
            Self::Calendar { organization, vehicle } => key::calendar(organization, vehicle),
            Self::Due { endpoint, class, millis, delivery } => key::due(endpoint, class, millis, delivery),
            Self::Erased { organization, resource, id } => key::erased_of(organization, resource, id),
            Self::Hold { organization, vehicle, class, start, rental } => {
                key::hold(organization, vehicle, class, start, rental)
            }
            Self::IndexEntry { organization, resource, index, values, id } => {
                key::entry_of(organization, (resource, index), values, id)
            }
            Self::Bell { server, endpoint } => key::bell(server, endpoint),
            Self::Beat { server } => key::beat(server),
            Self::Memo { organization, name } => key::memo(organization, name),
            Self::Counter { organization, name } => key::counter(organization, name),
            Self::Outbox { event } => key::outbox(event),
            Self::Subscribed { organization } => key::subscribed(organization),
            Self::Record { organization, resource, id } => key::record_of(organization, resource, id),
            Self::Secrets { endpoint } => key::secrets(endpoint),
            Self::Task { id } => key::task(id),
            Self::Identity { organization, resource, hash } => key::identity_of(organization, resource, hash),
            Self::Owner { endpoint } => key::owner(endpoint),
            Self::MemoExpiry { millis, organization, name } => key::memo_expiry(millis, organization, name),
        }
    }

    /// What becomes of it when the store is copied, upgraded or repaired.
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
            // In a copy that was made during an upgrade it tells that the upgrade has to go on.
            | Self::Marker(Marker::Upgrade) => Class::State,
            Self::Bell { .. } | Self::Beat { .. } | Self::Owner { .. } | Self::Marker(Marker::Loading) => Class::Server,
        }
    }
}

impl Marker {
    fn decode(name: &[u8]) -> Option<Self> {
        match name {
            b"" => Some(Self::Loading),
            marks::UPGRADE => Some(Self::Upgrade),
            _ => None,
        }
    }
}

/// What is left of a key.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (part, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(part)
    }

    fn id(&mut self) -> Option<Uuid> {
        self.take().copied().map(Uuid::from_bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| *byte)
    }

    fn millis(&mut self) -> Option<u64> {
        self.take().copied().map(u64::from_be_bytes)
    }

    /// All that is left.
    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(std::mem::take(&mut self.0)).ok()
    }

    /// Values, each after its length, up to the id at the end.
    fn values(&mut self) -> Option<&'a [u8]> {
        let (values, id) = self.0.split_at_checked(self.0.len().checked_sub(16)?)?;
        let mut rest = Parts(values);
        while !rest.0.is_empty() {
            let length = usize::from(u16::from_be_bytes(*rest.take()?));
            rest.0 = rest.0.get(length..)?;
        }
        self.0 = id;
        Some(values)
    }
}

#[cfg(test)]
mod tests;
