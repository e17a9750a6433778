//! Decodes keys.

use super::{
    key,
    recheck::Marked,
    row::{Marker, Row},
    tag::Tag,
};
use crate::store::{Key, marks};
use crate::value::{Holder, Id};
use uuid::Uuid;

impl<'a> Row<'a> {
    /// Decodes a key; `None` for a key that this version does not write.
    #[must_use]
    pub fn decode(key: &'a Key) -> Option<Self> {
        let (tag, rest) = key.as_bytes().split_first()?;
        let mut parts = Parts(rest);
        let row = match Tag::of(*tag)? {
            Tag::Marker => return Marker::decode(rest).map(Self::Marker),
            Tag::Access => Self::Access { selector: *parts.take()? },
            Tag::Calendar => Self::Calendar { organization: parts.id()?, vehicle: parts.id()? },
            Tag::Due => Self::Due {
                endpoint: parts.id()?,
                class: parts.byte()?,
                millis: parts.millis()?,
                delivery: parts.id()?,
            },
            Tag::Erased => Self::Erased { organization: parts.id()?, resource: parts.byte()?, id: parts.uuid()? },
            Tag::VehicleFeed => Self::VehicleFeed { organization: parts.id()?, vehicle: parts.id()? },
            Tag::CalendarFeed => Self::CalendarFeed { organization: parts.id()?, feed: parts.id()? },
            Tag::Hold => Self::Hold {
                organization: parts.id()?,
                vehicle: parts.id()?,
                class: parts.byte()?,
                start: u32::from_be_bytes(*parts.take()?),
                holder: parts.holder()?,
            },
            Tag::IndexEntry => Self::IndexEntry {
                organization: parts.id()?,
                resource: parts.byte()?,
                index: parts.byte()?,
                values: parts.values()?,
                id: parts.uuid()?,
            },
            Tag::Bell => Self::Bell { server: parts.id()?, endpoint: parts.id()? },
            Tag::Recheck => Self::Recheck { organization: parts.id()?, marked: Marked::of_key(parts.uuid()?) },
            Tag::Heartbeat => Self::Heartbeat { server: parts.id()? },
            Tag::IdempotencyRecord => Self::IdempotencyRecord { organization: parts.id()?, name: parts.text()? },
            Tag::Counter => Self::Counter { organization: parts.id()?, name: parts.text()? },
            Tag::Outbox => Self::Outbox { organization: parts.id()?, event: parts.id()? },
            Tag::Logo => Self::Logo { organization: parts.id()? },
            Tag::Subscribed => Self::Subscribed { organization: parts.id()? },
            Tag::Record => Self::Record { organization: parts.id()?, resource: parts.byte()?, id: parts.uuid()? },
            Tag::Secrets => Self::Secrets { endpoint: parts.id()? },
            Tag::Task => Self::Task { id: parts.id()? },
            Tag::Identity => {
                Self::Identity { organization: parts.id()?, resource: parts.byte()?, hash: *parts.take()? }
            }
            Tag::Usage => Self::Usage { server: parts.id()?, organization: parts.id()? },
            Tag::Owner => Self::Owner { endpoint: parts.id()? },
            Tag::IdempotencyExpiry => {
                Self::IdempotencyExpiry { millis: parts.millis()?, organization: parts.id()?, name: parts.text()? }
            }
        };
        parts.0.is_empty().then_some(row)
    }
}

impl Marker {
    fn decode(name: &[u8]) -> Option<Self> {
        match name {
            b"" => Some(Self::Loading),
            key::MASTER_KEY => Some(Self::MasterKey),
            marks::UPGRADE => Some(Self::Upgrade),
            _ => None,
        }
    }
}

/// The part of a key that is not decoded yet.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (part, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(part)
    }

    fn uuid(&mut self) -> Option<Uuid> {
        self.take().copied().map(Uuid::from_bytes)
    }

    fn id<K>(&mut self) -> Option<Id<K>> {
        self.uuid().map(Id::from_uuid)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| *byte)
    }

    /// An id, and the tag of its resource, which holds of rentals do not have.
    fn holder(&mut self) -> Option<Holder> {
        let id = self.uuid()?;
        match self.byte() {
            None => Some(Holder::Rental(Id::from_uuid(id))),
            Some(Holder::RENTAL) => None,
            Some(resource) => Holder::of(resource, id),
        }
    }

    fn millis(&mut self) -> Option<u64> {
        self.take().copied().map(u64::from_be_bytes)
    }

    /// The rest of the key as text.
    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(std::mem::take(&mut self.0)).ok()
    }

    /// Values with their lengths, up to the id at the end.
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
