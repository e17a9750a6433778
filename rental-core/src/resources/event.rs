//! The fourteen event types (spec, Event types) and the body that every delivery of an event sends.

use crate::{
    rows,
    schema::{API_VERSION, IndexValue, Kind, ResourceSpec, field, filter, id, index, object},
    store::Key,
    value::{EventId, OrganizationId, Timestamp},
};
use bytes::Bytes;

/// The type of an event (spec, Event types).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventType {
    /// `rental.created`: a rental was created.
    RentalCreated,
    /// `rental.updated`: a field of a rental changed.
    RentalUpdated,
    /// `rental.completed`: a PATCH set the status `COMPLETED`.
    RentalCompleted,
    /// `rental.cancelled`: a PATCH set the status `CANCELLED`.
    RentalCancelled,
    /// `customer.created`: a customer was created.
    CustomerCreated,
    /// `customer.updated`: a field of a customer changed.
    CustomerUpdated,
    /// `invoice.created`: an invoice was created.
    InvoiceCreated,
    /// `invoice.paid`: an invoice was paid.
    InvoicePaid,
    /// `invoice.voided`: an invoice was voided.
    InvoiceVoided,
    /// `vehicle.created`: a vehicle was created.
    VehicleCreated,
    /// `vehicle.updated`: a field of a vehicle changed.
    VehicleUpdated,
    /// `toll.attached`: a toll was attached to a customer, or to another one.
    TollAttached,
    /// `violation.attached`: a violation was attached to a customer, or to another one.
    ViolationAttached,
    /// `lead.received`: a lead was created.
    LeadReceived,
}

/// The names of the fourteen types.
pub const EVENT_NAMES: &[&str] = &{
    let mut names = [""; EVENT_TYPES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = EVENT_TYPES[at].1;
        at += 1;
    }
    names
};

/// One row for each type: type, name, resource in `data`, and when the event is emitted.
pub const EVENT_TYPES: [(EventType, &str, &str, &str); 14] = [
    (EventType::RentalCreated, "rental.created", "rental", "A rental was created."),
    (EventType::RentalUpdated, "rental.updated", "rental", "A rental changed."),
    (EventType::RentalCompleted, "rental.completed", "rental", "A rental was set to `COMPLETED`."),
    (EventType::RentalCancelled, "rental.cancelled", "rental", "A rental was set to `CANCELLED`."),
    (EventType::CustomerCreated, "customer.created", "customer", "A customer was created."),
    (EventType::CustomerUpdated, "customer.updated", "customer", "A customer changed."),
    (EventType::InvoiceCreated, "invoice.created", "invoice", "An invoice was created."),
    (EventType::InvoicePaid, "invoice.paid", "invoice", "An invoice was paid."),
    (EventType::InvoiceVoided, "invoice.voided", "invoice", "An invoice was voided."),
    (EventType::VehicleCreated, "vehicle.created", "vehicle", "A vehicle was created."),
    (EventType::VehicleUpdated, "vehicle.updated", "vehicle", "A vehicle changed."),
    (EventType::TollAttached, "toll.attached", "toll", "A toll was attached to a customer."),
    (EventType::ViolationAttached, "violation.attached", "violation", "A violation was attached to a customer."),
    (EventType::LeadReceived, "lead.received", "lead", "A lead came in."),
];

/// The description of an event, as it is stored, listed and delivered (spec, Delivery 3).
pub const SPEC: ResourceSpec = ResourceSpec {
    object: "event",
    plural: "events",
    tag: 10,
    doc: "Something that happened, as webhooks deliver it.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-0000000000e1\""),
        object("\"event\""),
        field("api_version", Kind::Text(255), "The version of the API that `data` is in.", "\"2026-05-05\""),
        field("type", Kind::Word(EVENT_NAMES), "One of the fourteen event types.", "\"rental.created\""),
        field("created", Kind::Integer(0, i64::MAX), "Unix timestamp in seconds.", "1777973400"),
        field("data", Kind::Json(1 << 20), "The resource that triggered the event, as a GET returned it then.", "{}"),
    ],
    filters: &[filter("type", "type")],
    ranges: &[],
    indexes: &[index(1, &["type"])],
    look_ups: &[],
    usual_changes: &[],
};

impl EventType {
    /// The name of the type: `rental.created`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        EVENT_TYPES.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }
}

/// The key of an event.
#[must_use]
pub fn key(organization: OrganizationId, id: EventId) -> Key {
    rows::key::record(organization, &SPEC, id.uuid())
}

/// The keys of the index entries of an event of this type.
#[must_use]
pub fn index_keys(organization: OrganizationId, id: EventId, kind: &str) -> Vec<Key> {
    SPEC.index_keys(organization, id.uuid(), |_| Some(IndexValue::Text(kind)))
}

/// The body of an event. It is stored with the change, and every attempt sends the same bytes (spec, Delivery 3).
///
/// `data` is the whole object as a GET returns it.
#[must_use]
pub fn body(id: EventId, kind: EventType, created: Timestamp, data: &[u8]) -> Bytes {
    let head = format!(
        "{{\"id\":\"{}\",\"object\":\"event\",\"api_version\":\"{API_VERSION}\",\"type\":\"{}\",\"created\":{},\"data\":",
        id,
        kind.as_str(),
        created.seconds()
    );
    let mut bytes = Vec::with_capacity(head.len() + data.len() + 1);
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(data);
    bytes.push(b'}');
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_fourteen_types_named_after_their_resource() {
        for (kind, name, object, _) in EVENT_TYPES {
            assert_eq!(kind.as_str(), name);
            assert!(name.starts_with(object), "{name} carries a {object}");
        }
    }

    #[test]
    fn the_body_has_the_members_of_the_specification() {
        let body = body(EventId::nil(), EventType::LeadReceived, Timestamp::from_millis(1_999), br#"{"a":1.50}"#);
        let expected = r#"{"id":"00000000-0000-0000-0000-000000000000","object":"event","api_version":"2026-05-05","type":"lead.received","created":1,"data":{"a":1.50}}"#;
        assert_eq!(body, expected);
    }
}
