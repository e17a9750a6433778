//! Builds keys and spans: one function for each kind of row and each range that is read. [`Row`] defines the layout.
//!
//! Ids are UUIDv7, so records and index entries are in the order of creation. A list reads them in descending order, and
//! its cursor is an id.

use super::{
    recheck::Marked,
    row::{Class, Row},
    tag::Tag,
};
use crate::{
    schema::ResourceSpec,
    store::{Key, Order, Span},
    value::{CalendarFeedId, DeliveryId, EndpointId, EventId, Holder, OrganizationId, ServerId, TaskId, VehicleId},
};
use uuid::Uuid;

#[inline]
fn key(tag: Tag, parts: &[&[u8]]) -> Key {
    let mut bytes = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    bytes.push(tag as u8);
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    Key::from(bytes)
}

/// A record of `spec` in `organization`, for code that knows the resource at run time only. Other code calls the function
/// `key` of the resource's type, which takes a typed id.
#[must_use]
pub fn record(organization: OrganizationId, spec: &ResourceSpec, id: Uuid) -> Key {
    record_of(organization, spec.tag, id)
}

/// The key of a record of the resource with this tag.
#[inline]
pub(super) fn record_of(organization: OrganizationId, resource: u8, id: Uuid) -> Key {
    key(Tag::Record, &[organization.as_bytes(), &[resource], id.as_bytes()])
}

/// The prefix of all records of `spec` in `organization`.
#[must_use]
pub fn records(organization: OrganizationId, spec: &ResourceSpec) -> Key {
    key(Tag::Record, &[organization.as_bytes(), &[spec.tag]])
}

/// The prefix of all entries of an index with these values ([`IndexPrefix`](crate::schema::IndexPrefix)).
#[must_use]
pub(crate) fn index(organization: OrganizationId, spec: &ResourceSpec, number_and_values: &[u8]) -> Key {
    key(Tag::IndexEntry, &[organization.as_bytes(), &[spec.tag], number_and_values])
}

/// The key of an index entry. `values` already contains the lengths of the values.
pub(super) fn entry_of(organization: OrganizationId, (resource, index): (u8, u8), values: &[u8], id: Uuid) -> Key {
    key(Tag::IndexEntry, &[organization.as_bytes(), &[resource, index], values, id.as_bytes()])
}

/// The key of an index entry: `prefix` followed by an id.
#[must_use]
pub fn entry(prefix: &Key, id: Uuid) -> Key {
    prefix.followed_by(id.as_bytes())
}

/// The key of the row that finds the record of an API key or of an operator. It contains half of the hash; the value contains all of it.
#[must_use]
pub fn access(sha256: &[u8; 32]) -> Key {
    key(Tag::Access, &[&sha256[..16]])
}

pub(super) fn access_of(selector: [u8; 16]) -> Key {
    key(Tag::Access, &[&selector])
}

/// The key of a vehicle's calendar, whose revision changes with every hold.
#[must_use]
pub fn calendar(organization: OrganizationId, vehicle: VehicleId) -> Key {
    key(Tag::Calendar, &[organization.as_bytes(), vehicle.as_bytes()])
}

/// The prefix of the calendars of an organization's vehicles.
#[must_use]
pub fn calendars(organization: OrganizationId) -> Key {
    key(Tag::Calendar, &[organization.as_bytes()])
}

/// The key of a hold: length class, number of the first day, holder. The tag of the holder's resource follows, except of rentals:
/// their keys are those of schema versions without blocks.
#[must_use]
pub fn hold(organization: OrganizationId, vehicle: VehicleId, class: u8, start: u32, holder: Holder) -> Key {
    let resource = [holder.resource()];
    let resource: &[u8] = if matches!(holder, Holder::Rental(_)) { &[] } else { &resource };
    let (start, id) = (start.to_be_bytes(), holder.uuid());
    key(Tag::Hold, &[organization.as_bytes(), vehicle.as_bytes(), &[class], &start, id.as_bytes(), resource])
}

/// The key of the record of a holder.
#[must_use]
pub fn holder(organization: OrganizationId, holder: Holder) -> Key {
    record_of(organization, holder.resource(), holder.uuid())
}

/// The least key of the holds of one length class that start on day `start` or later.
#[must_use]
pub fn holds_from(organization: OrganizationId, vehicle: VehicleId, class: u8, start: u32) -> Key {
    key(Tag::Hold, &[organization.as_bytes(), vehicle.as_bytes(), &[class], &start.to_be_bytes()])
}

/// The number of the first day and the holder in the key of a hold.
#[must_use]
pub fn hold_parts(key: &Key) -> Option<(u32, Holder)> {
    match Row::decode(key)? {
        Row::Hold { start, holder, .. } => Some((start, holder)),
        _ => None,
    }
}

/// The key of the stored response of an idempotency key.
#[must_use]
pub fn idempotency_record(organization: OrganizationId, name: &str) -> Key {
    key(Tag::IdempotencyRecord, &[organization.as_bytes(), name.as_bytes()])
}

/// The key of the row that says when a stored response expires, in milliseconds since 1970.
#[must_use]
pub fn idempotency_expiry(millis: u64, organization: OrganizationId, name: &str) -> Key {
    key(Tag::IdempotencyExpiry, &[&millis.to_be_bytes(), organization.as_bytes(), name.as_bytes()])
}

/// The expiries up to `millis`, earliest first.
#[must_use]
pub fn idempotency_expiries_until(millis: u64) -> Span {
    let at = |millis: &[u8]| key(Tag::IdempotencyExpiry, &[millis]);
    Span { from: at(&[]), to: at(&millis.to_be_bytes()), order: Order::Ascending, follow: None }
}

/// The time of an expiry, in milliseconds since 1970.
#[must_use]
pub fn idempotency_expiry_millis(key: &Key) -> Option<u64> {
    match Row::decode(key)? {
        Row::IdempotencyExpiry { millis, .. } => Some(millis),
        _ => None,
    }
}

/// The key of the stored response that belongs to an expiry.
#[must_use]
pub fn idempotency_record_of(expiry: &Key) -> Option<Key> {
    match Row::decode(expiry)? {
        Row::IdempotencyExpiry { organization, name, .. } => Some(idempotency_record(organization, name)),
        _ => None,
    }
}

/// The key of the outbox row of an event.
#[must_use]
pub fn outbox(organization: OrganizationId, event: EventId) -> Key {
    key(Tag::Outbox, &[organization.as_bytes(), event.as_bytes()])
}

/// The outbox rows of an organization, oldest event first.
#[must_use]
pub fn outbox_of(organization: OrganizationId) -> Span {
    Span::under(key(Tag::Outbox, &[organization.as_bytes()]))
}

/// The organization in the key of an outbox row.
#[must_use]
pub fn outbox_organization(key: &Key) -> Option<OrganizationId> {
    match Row::decode(key)? {
        Row::Outbox { organization, .. } => Some(organization),
        _ => None,
    }
}

/// All outbox rows, one organization after the other.
#[must_use]
pub fn outbox_rows() -> Span {
    Span::under(key(Tag::Outbox, &[]))
}

/// The key of the calendar feed of a vehicle.
#[must_use]
pub fn vehicle_feed(organization: OrganizationId, vehicle: VehicleId) -> Key {
    key(Tag::VehicleFeed, &[organization.as_bytes(), vehicle.as_bytes()])
}

/// The key of the row of a calendar of others.
#[must_use]
pub fn calendar_feed(organization: OrganizationId, feed: CalendarFeedId) -> Key {
    key(Tag::CalendarFeed, &[organization.as_bytes(), feed.as_bytes()])
}

/// The rows of all calendars of others, one organization after the other.
#[must_use]
pub fn calendar_feeds() -> Span {
    Span::under(key(Tag::CalendarFeed, &[]))
}

/// The key of the logo of an organization.
#[must_use]
pub fn logo(organization: OrganizationId) -> Key {
    key(Tag::Logo, &[organization.as_bytes()])
}

/// The key of the row that exists when an organization has or had a webhook endpoint. Without it, events need no outbox
/// row.
#[must_use]
pub fn subscribed(organization: OrganizationId) -> Key {
    key(Tag::Subscribed, &[organization.as_bytes()])
}

/// The key of a due row: the time of the next attempt of a delivery. `class` is 0 for a first attempt, 1 for a retry.
#[must_use]
pub fn due(endpoint: EndpointId, class: u8, millis: u64, delivery: DeliveryId) -> Key {
    key(Tag::Due, &[endpoint.as_bytes(), &[class], &millis.to_be_bytes(), delivery.as_bytes()])
}

/// The due rows of one class of an endpoint, earliest first.
#[must_use]
pub fn due_rows(endpoint: EndpointId, class: u8) -> Span {
    Span::under(key(Tag::Due, &[endpoint.as_bytes(), &[class]]))
}

/// All due rows of an endpoint.
#[must_use]
pub fn all_due_rows(endpoint: EndpointId) -> Span {
    Span::under(key(Tag::Due, &[endpoint.as_bytes()]))
}

/// The due rows of all endpoints, ordered by endpoint.
#[must_use]
pub fn due_rows_of_all() -> Span {
    Span::under(key(Tag::Due, &[]))
}

/// The endpoint in the key of a due row.
#[must_use]
pub fn due_endpoint(key: &Key) -> Option<EndpointId> {
    match Row::decode(key)? {
        Row::Due { endpoint, .. } => Some(endpoint),
        _ => None,
    }
}

/// The milliseconds in the key of a due row.
#[must_use]
pub fn due_millis(key: &Key) -> Option<u64> {
    match Row::decode(key)? {
        Row::Due { millis, .. } => Some(millis),
        _ => None,
    }
}

/// The key of the encrypted secrets of an endpoint.
#[must_use]
pub fn secrets(endpoint: EndpointId) -> Key {
    key(Tag::Secrets, &[endpoint.as_bytes()])
}

/// The encrypted secrets of all endpoints, by endpoint.
#[must_use]
pub fn secrets_of_all() -> Span {
    Span::under(key(Tag::Secrets, &[]))
}

/// The rest of the key of [`master_key`].
pub(super) const MASTER_KEY: &[u8] = b"master-key";

/// The key of the row that says which master key seals secrets.
#[must_use]
pub fn master_key() -> Key {
    key(Tag::Marker, &[MASTER_KEY])
}

/// The key of a counter of an organization.
#[must_use]
pub fn counter(organization: OrganizationId, name: &str) -> Key {
    key(Tag::Counter, &[organization.as_bytes(), name.as_bytes()])
}

/// The key of the mark of a vehicle or number whose tolls and violations must be derived again.
#[must_use]
pub fn recheck(organization: OrganizationId, marked: Marked) -> Key {
    key(Tag::Recheck, &[organization.as_bytes(), marked.as_bytes()])
}

/// The marks of all vehicles and numbers whose tolls and violations must be derived again.
#[must_use]
pub fn rechecks() -> Span {
    Span::under(key(Tag::Recheck, &[]))
}

/// The marks of the vehicles and numbers of an organization.
#[must_use]
pub fn rechecks_of(organization: OrganizationId) -> Span {
    Span::under(key(Tag::Recheck, &[organization.as_bytes()]))
}

/// The key of a server's heartbeat.
#[must_use]
pub fn heartbeat(server: ServerId) -> Key {
    key(Tag::Heartbeat, &[server.as_bytes()])
}

/// The heartbeats of all servers.
#[must_use]
pub fn heartbeats() -> Span {
    Span::under(key(Tag::Heartbeat, &[]))
}

/// The key of the owner of an endpoint: the server that sends its deliveries.
#[must_use]
pub fn owner(endpoint: EndpointId) -> Key {
    key(Tag::Owner, &[endpoint.as_bytes()])
}

/// The owners of all endpoints.
#[must_use]
pub fn owners() -> Span {
    Span::under(key(Tag::Owner, &[]))
}

/// The key of a bell: it tells a server that an endpoint that it owns has a new due delivery.
#[must_use]
pub fn bell(server: ServerId, endpoint: EndpointId) -> Key {
    key(Tag::Bell, &[server.as_bytes(), endpoint.as_bytes()])
}

/// The bells of a server.
#[must_use]
pub fn bells(server: ServerId) -> Span {
    Span::under(key(Tag::Bell, &[server.as_bytes()]))
}

/// The bells of all servers, ordered by server.
#[must_use]
pub fn bells_of_all() -> Span {
    Span::under(key(Tag::Bell, &[]))
}

/// The server in the key of a bell.
#[must_use]
pub fn bell_server(key: &Key) -> Option<ServerId> {
    match Row::decode(key)? {
        Row::Bell { server, .. } => Some(server),
        _ => None,
    }
}

/// The key of what a server has counted of an organization.
#[must_use]
pub fn usage(server: ServerId, organization: OrganizationId) -> Key {
    key(Tag::Usage, &[server.as_bytes(), organization.as_bytes()])
}

/// What a server has counted, by organization.
#[must_use]
pub fn usage_of(server: ServerId) -> Span {
    Span::under(key(Tag::Usage, &[server.as_bytes()]))
}

/// What all servers have counted, ordered by server.
#[must_use]
pub fn usage_of_all() -> Span {
    Span::under(key(Tag::Usage, &[]))
}

/// The rows whose keys begin with this organization, by kind.
pub fn owned(organization: OrganizationId) -> impl Iterator<Item = Span> {
    Tag::ALL.iter().filter(|tag| tag.is_owned()).map(move |tag| of_organization(*tag, organization))
}

/// The key of a task, which continues after a restart.
#[must_use]
pub fn task(id: TaskId) -> Key {
    key(Tag::Task, &[id.as_bytes()])
}

/// The rows of all tasks.
#[must_use]
pub fn tasks() -> Span {
    Span::under(key(Tag::Task, &[]))
}

/// All rows of a kind.
pub(crate) fn of_kind(tag: Tag) -> Span {
    Span::under(key(tag, &[]))
}

/// The rows of a kind whose key has this organization as its first part.
pub(crate) fn of_organization(tag: Tag, organization: OrganizationId) -> Span {
    Span::under(key(tag, &[organization.as_bytes()]))
}

/// The rows of a kind whose key has this webhook endpoint as its first part.
pub(crate) fn of_endpoint(tag: Tag, endpoint: EndpointId) -> Span {
    Span::under(key(tag, &[endpoint.as_bytes()]))
}

/// The key of the mark of an erased customer. Reserved for other resources.
#[must_use]
pub fn erased(organization: OrganizationId, spec: &ResourceSpec, id: Uuid) -> Key {
    erased_of(organization, spec.tag, id)
}

pub(super) fn erased_of(organization: OrganizationId, resource: u8, id: Uuid) -> Key {
    key(Tag::Erased, &[organization.as_bytes(), &[resource], id.as_bytes()])
}

/// Whether a row is only meaningful for running servers, so that a copy of the store leaves it out.
#[must_use]
pub fn is_of_servers(key: &Key) -> bool {
    Row::decode(key).is_some_and(|row| row.class() == Class::Server)
}

/// The key of the claim of an identity. It contains half of the identity's hash.
#[must_use]
pub fn identity(organization: OrganizationId, spec: &ResourceSpec, sha256: &[u8; 32]) -> Key {
    key(Tag::Identity, &[organization.as_bytes(), &[spec.tag], &sha256[..16]])
}

pub(super) fn identity_of(organization: OrganizationId, resource: u8, hash: [u8; 16]) -> Key {
    key(Tag::Identity, &[organization.as_bytes(), &[resource], &hash])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        resources::{rental, vehicle},
        schema::IndexPrefix,
        store::Follow,
    };
    use proptest::prelude::*;

    fn uuid(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    fn organization(n: u128) -> OrganizationId {
        OrganizationId::from_u128(n)
    }

    #[test]
    fn an_index_entry_points_at_its_record() {
        let prefix = IndexPrefix::new(3).with(b"NEW").with(uuid(9).as_bytes()).prefix(organization(7), &rental::SPEC);
        let entry = entry(&prefix, uuid(42));
        let follow = Follow { prefix: records(organization(7), &rental::SPEC) };
        assert_eq!(follow.target(entry.as_bytes()), Some(record(organization(7), &rental::SPEC, uuid(42))));
        assert_eq!(follow.target(&[7; 15]), None, "too short for an id");
    }

    #[test]
    fn a_span_of_one_organization_never_reaches_the_next() {
        for n in [0, 255, u128::MAX - 1, u128::MAX] {
            let span = Span::newest_first(&records(organization(n), &vehicle::SPEC));
            let inside = record(organization(n), &vehicle::SPEC, uuid(u128::MAX));
            assert!(span.from <= inside && inside < span.to);
            let next = record(organization(n.wrapping_add(1)), &vehicle::SPEC, uuid(0));
            assert!(next < span.from || next >= span.to);
        }
    }

    #[test]
    fn values_of_an_index_cannot_run_into_each_other() {
        let one = IndexPrefix::new(3).with(b"AB").with(b"C").prefix(organization(1), &rental::SPEC);
        let other = IndexPrefix::new(3).with(b"A").with(b"BC").prefix(organization(1), &rental::SPEC);
        assert!(!one.as_bytes().starts_with(other.as_bytes()) && !other.as_bytes().starts_with(one.as_bytes()));
    }

    proptest! {
        #[test]
        fn byte_order_of_records_is_id_order(org: u128, a: u128, b: u128) {
            let (left, right) = (record(organization(org), &vehicle::SPEC, uuid(a)), record(organization(org), &vehicle::SPEC, uuid(b)));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left.id(), Some(uuid(a)));
        }

        #[test]
        fn a_hold_keeps_its_start_and_holder(class: u8, start: u32, id: u128, is_block: bool) {
            let resource = if is_block { Holder::BLOCK } else { Holder::RENTAL };
            let holder = Holder::of(resource, uuid(id)).unwrap();
            let key = hold(organization(1), VehicleId::from_u128(2), class, start, holder);
            prop_assert_eq!(hold_parts(&key), Some((start, holder)));
        }
    }
}
