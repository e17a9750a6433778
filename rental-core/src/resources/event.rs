//! The event types (spec, Event types), how each is caused, and the body that every delivery of an event sends.

use crate::{
    rows,
    schema::{API_VERSION, IndexValue, Kind, ResourceSpec, field, filter, id, index, object},
    store::Key,
    value::{EventId, OrganizationId, Timestamp},
};
use bytes::Bytes;

/// The change through the API that emits an event. `rental-cli trigger` makes this change.
#[derive(Clone, Copy, Debug)]
pub enum Cause {
    /// A POST that creates an object.
    Create,
    /// A PATCH that sets this field to this value, which is JSON text.
    Set(&'static str, &'static str),
    /// A PATCH that sets this field to the id of an object that it can refer to.
    Attach(&'static str),
    /// A POST of the operator that takes back the choice of a person in this field. The server then derives who pays: nobody,
    /// because no rental had the vehicle.
    Release(&'static str),
    /// A POST of the operator to this path below the object.
    Operator(&'static str),
    /// The same for an object of an invoice, which must be paid before.
    OfPaid(&'static str),
}

/// One event type: what it is called, when it is emitted, and how to cause it.
#[derive(Clone, Copy, Debug)]
pub struct EventSpec {
    /// The type.
    pub event_type: EventType,
    /// The name of the type: the object in `data`, a dot, and what happened.
    pub name: &'static str,
    /// One sentence for the documentation of the API: when the event is emitted.
    pub doc: &'static str,
    /// A change that emits the event.
    pub cause: Cause,
}

impl EventSpec {
    /// The object in `data`: `rental` for `rental.created`.
    #[must_use]
    pub fn object(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(object, _)| object)
    }
}

/// Declares the event types, in the order of the documentation: variant, name, when it is emitted, cause.
macro_rules! event_types {
    ($($variant:ident, $name:literal, $doc:literal, $cause:expr;)+) => {
        /// The type of an event (spec, Event types).
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum EventType {
            $(#[doc = concat!("`", $name, "`: ", $doc)] $variant,)+
        }

        impl EventType {
            /// The name of the type: `rental.created`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        /// The names of all types.
        pub const EVENT_NAMES: &[&str] = &[$($name),+];

        /// The descriptions of all types.
        pub const EVENT_TYPES: &[EventSpec] =
            &[$(EventSpec { event_type: EventType::$variant, name: $name, doc: $doc, cause: $cause }),+];
    };
}

event_types! {
    RentalCreated, "rental.created", "A rental was created.", Cause::Create;
    RentalUpdated, "rental.updated", "A rental changed.", Cause::Set("damage_at_return", "true");
    RentalCompleted, "rental.completed", "A rental was set to `COMPLETED`.", Cause::Set("status", "\"COMPLETED\"");
    RentalCancelled, "rental.cancelled", "A rental was set to `CANCELLED`.", Cause::Set("status", "\"CANCELLED\"");
    CustomerCreated, "customer.created", "A customer was created.", Cause::Create;
    CustomerUpdated, "customer.updated", "A customer changed.", Cause::Set("notes", "\"Prefers morning pickups\"");
    InvoiceCreated, "invoice.created", "An invoice was created.", Cause::Create;
    InvoicePaid, "invoice.paid", "An invoice was paid.", Cause::Operator("pay");
    InvoiceVoided, "invoice.voided", "An invoice was voided.", Cause::Operator("void");
    CreditNoteCreated, "credit_note.created", "A credit note was created.", Cause::Create;
    CreditNoteRefunded, "credit_note.refunded", "The money of a credit note was given back.", Cause::OfPaid("refund");
    VehicleCreated, "vehicle.created", "A vehicle was created.", Cause::Create;
    VehicleUpdated, "vehicle.updated", "A vehicle changed.", Cause::Set("color", "\"Blue\"");
    TollAttached, "toll.attached", "A toll was attached to a customer.", Cause::Attach("customer_id");
    ViolationAttached, "violation.attached", "A violation was attached to a customer.", Cause::Attach("customer_id");
    TollDetached, "toll.detached", "The server detached a toll: it is no longer clear who pays.", Cause::Release("customer_id");
    ViolationDetached, "violation.detached", "The server detached a violation: it is no longer clear who pays.", Cause::Release("customer_id");
    LeadReceived, "lead.received", "A lead came in.", Cause::Create;
}

/// The description of an event, as it is stored, listed and delivered (spec, Delivery 3).
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "event",
    plural: "events",
    tag: 10,
    doc: "Something that happened, as webhooks deliver it.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-0000000000e1\""),
        object("\"event\""),
        field("api_version", Kind::Text(255), "The version of the API that `data` is in.", "\"2026-05-05\""),
        field("type", Kind::Word(EVENT_NAMES), "One of the event types.", "\"rental.created\""),
        field("created", Kind::Integer(0, i64::MAX), "Unix timestamp in seconds.", "1777973400"),
        field("data", Kind::Json(1 << 20), "The resource that triggered the event, as a GET returned it then.", "{}"),
    ],
    filters: &[filter("type", "type")],
    ranges: &[],
    indexes: &[index(1, &["type"])],
    look_ups: &[],
    usual_changes: &[],
};

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
    use crate::{
        request::body::Verb,
        resources::RESOURCES,
        schema::{Fields, Presence},
    };

    #[test]
    fn every_type_has_a_cause_that_the_api_offers() {
        for event in EVENT_TYPES {
            let entry = RESOURCES.iter().find(|entry| entry.spec.object == event.object());
            let entry = entry.unwrap_or_else(|| panic!("{} carries no resource", event.name));
            let created = [entry.public, entry.recorded].into_iter().flatten().any(|offer| offer.create.is_some());
            assert!(created, "{}: nothing creates its object", event.name);
            let update = |field: &str| {
                let field = entry.spec.field(field).unwrap_or_else(|| panic!("{} sets no field", event.name));
                assert_ne!(field.update, Presence::Never, "{}", event.name);
                field.kind
            };
            match event.cause {
                Cause::Create | Cause::Operator(_) | Cause::OfPaid(_) => {}
                Cause::Set(field, value) => {
                    update(field);
                    let body = format!("{{\"{field}\":{value}}}");
                    let parsed = Fields::parse(body.as_bytes(), entry.spec, Verb::Update, 2);
                    assert!(parsed.is_ok(), "{}: {parsed:?}", event.name);
                }
                Cause::Attach(field) | Cause::Release(field) => {
                    assert!(matches!(update(field), Kind::Reference(_)), "{}", event.name)
                }
            }
        }
    }

    #[test]
    fn the_body_has_the_members_of_the_specification() {
        let body = body(EventId::nil(), EventType::LeadReceived, Timestamp::from_millis(1_999), br#"{"a":1.50}"#);
        let expected = r#"{"id":"00000000-0000-0000-0000-000000000000","object":"event","api_version":"2026-05-05","type":"lead.received","created":1,"data":{"a":1.50}}"#;
        assert_eq!(body, expected);
    }
}
