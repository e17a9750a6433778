//! The webhooks of the document (spec, Delivery), as operations of the receiver.

use crate::{
    endpoint::camel,
    reference::{schema, shapes},
};
use rental_core::{
    resources::event::{self, EVENT_TYPES, EventSpec},
    schema::FieldSpec,
};
use serde_json::{Map, Value, json};

/// The tag of every webhook. No path has it: generators make one class for each tag, and would overwrite the class of
/// the API with the one of the webhooks.
const TAG: &str = "Webhooks";

pub(super) fn tag() -> Value {
    json!({"name": TAG, "description": "Requests that the server sends to webhook endpoints, one for each event type."})
}

/// One operation for each event type.
pub(super) fn operations() -> Value {
    let mut webhooks = Map::new();
    for event in EVENT_TYPES {
        let EventSpec { name, doc, .. } = *event;
        let spec = rental_core::resources::spec_of(event.object());
        let data = spec.map_or(Value::Null, schema::example_object);
        let example = json!({"id": "0190d0f2-7c3a-7cc0-8000-0000000000e1", "object": "event", "api_version": rental_core::API_VERSION, "type": name, "created": 1_777_973_400, "data": data});
        let schema = json!({"$ref": format!("#/components/schemas/{}", schema_name(name))});
        let operation = json!({
            "operationId": format!("on{}", event_name(name)),
            "tags": [TAG],
            "summary": name,
            "description": doc,
            "security": [],
            "parameters": headers(),
            "requestBody": {"required": true, "content": {"application/json": {"schema": schema, "example": example}}},
            "responses": {
                "2XX": {"description": "Received. Anything else, or no answer within 10 seconds, is a failure and is sent again."},
                "4XX": {"description": "Not received: it is sent again later."},
            },
        });
        webhooks.insert(name.into(), json!({"post": operation}));
    }
    Value::Object(webhooks)
}

/// The body of each webhook: an event whose `type` is one word and whose `data` is the schema of its resource.
///
/// Each has all its members. `allOf` with `Event` would not do: its free `data` and the typed one have no common type
/// in most languages.
pub(super) fn schemas() -> impl Iterator<Item = (String, Value)> {
    EVENT_TYPES.iter().map(|event| {
        let EventSpec { name, doc, .. } = *event;
        let property = |field: &FieldSpec| match field.name {
            "type" => json!({"type": "string", "const": name, "description": "The event type."}),
            "data" => json!({"$ref": format!("#/components/schemas/{}", camel(event.object()))}),
            _ => schema::property(field, &event::SPEC, false),
        };
        let properties = event::SPEC.fields.iter().map(|field| (field.name, property(field))).collect();
        (schema_name(name), shapes::object(doc, properties))
    })
}

/// `rental.created` as `RentalCreated`.
fn event_name(name: &str) -> String {
    camel(&name.replace('.', "_"))
}

/// `rental.created` as `RentalCreatedEvent`.
fn schema_name(name: &str) -> String {
    event_name(name) + "Event"
}

/// The headers of a delivery (spec, Delivery 2).
fn headers() -> Value {
    let header = |name: &str, description: &str, example: &str| json!({"name": name, "in": "header", "required": true, "description": description, "schema": {"type": "string"}, "example": example});
    json!([
        header(
            "Service-Signature",
            "`t=<unix seconds>,v1=<HMAC-SHA256 of \"t.body\" in lower-case hex>`.",
            "t=1777973400,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd"
        ),
        header(
            "Service-Event-Id",
            "The event's id: deliveries are at least once, so use it to recognize repeats.",
            "0190d0f2-7c3a-7cc0-8000-0000000000e1"
        ),
        header("Service-Event-Type", "The event's type.", "rental.created"),
        header(
            "traceparent",
            "The trace of W3C Trace Context: its id is the event's id without hyphens, and each attempt is a span.",
            "00-0190d0f27c3a7cc080000000000000e1-b7ad6b7169203331-00"
        ),
        header("User-Agent", "The server that sends it.", "Service-Webhooks/1.0"),
    ])
}
