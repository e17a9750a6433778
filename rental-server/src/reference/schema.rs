//! JSON Schemas of the resources, from their descriptions.

use crate::{
    endpoint::{Documentation, Endpoint, Example, camel},
    http::problem::catalogue::CATALOGUE,
    reference::shapes::{self, described, named, object, optional_id, text},
};
use rental_core::{
    request::body::Verb,
    resources::event,
    schema::{FieldSpec, Kind, Presence, ResourceSpec},
    value::EarlierVehicle,
};
use serde_json::{Map, Value, json};

/// Text without control characters, in the regular expressions of ECMA-262.
const PLAIN: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";
/// The same with line breaks.
const LINES: &str = r"^(?:\u000d\u000a|[^\u0000-\u0009\u000b-\u001f\u007f-\u009f])*$";
/// As [`PLAIN`], with at least one character that is not white space.
const FILLED: &str = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$";
/// Language, script and region; variants and extensions are taken too.
const LANGUAGE: &str = "^[A-Za-z]{2,8}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?$";

/// Every schema of the document: of the resources, of webhooks, and those that endpoints define.
pub(super) fn all(endpoints: &[Endpoint], webhooks: impl Iterator<Item = (String, Value)>) -> Value {
    let mut schemas = Map::new();
    for spec in specs(endpoints) {
        let name = camel(spec.object);
        schemas.insert(name.clone(), resource(spec));
        for (suffix, verb) in [("Create", Verb::Create), ("Update", Verb::Update)] {
            if spec.fields.iter().any(|field| verb.presence(field) != Presence::Never) {
                schemas.insert(format!("{name}{suffix}"), body(spec, verb));
            }
        }
        if lists(endpoints, spec) {
            schemas.insert(format!("{name}List"), list(&name));
        }
    }
    schemas.insert("InvoiceLine".into(), line());
    schemas.insert("InvoiceLineCreate".into(), line_create());
    schemas.insert("CreditLine".into(), credit_line());
    schemas.insert("CreditLineCreate".into(), credit_line_create());
    schemas.extend(webhooks);
    for (name, schema) in endpoints.iter().flat_map(|endpoint| &endpoint.schemas) {
        schemas.insert((*name).to_owned(), schema.clone());
    }
    schemas.insert("Error".into(), error());
    Value::Object(schemas)
}

/// The resources that endpoints are about, in the order of the table.
pub(super) fn specs(endpoints: &[Endpoint]) -> Vec<&'static ResourceSpec> {
    let mut specs: Vec<&'static ResourceSpec> = Vec::new();
    for endpoint in endpoints {
        if let Documentation::Operation(operation) = &endpoint.documentation
            && !specs.iter().any(|known| known.object == operation.spec.object)
        {
            specs.push(operation.spec);
        }
    }
    specs
}

/// Whether an endpoint lists objects of this resource.
fn lists(endpoints: &[Endpoint], spec: &ResourceSpec) -> bool {
    endpoints.iter().any(|endpoint| match &endpoint.documentation {
        Documentation::Operation(operation) => {
            operation.spec.object == spec.object && operation.reply.example == Example::List
        }
        Documentation::Whole(_) => false,
    })
}

/// An object as the server returns it: every field is always there.
fn resource(spec: &ResourceSpec) -> Value {
    let properties = spec.fields.iter().map(|field| (field.name, property(field, spec, field.nullable))).collect();
    let mut schema = object(spec.doc, properties);
    schema["example"] = example_object(spec);
    schema
}

/// The body of POST or PATCH.
fn body(spec: &ResourceSpec, verb: Verb) -> Value {
    let taken = spec.fields.iter().filter(|field| verb.presence(field) != Presence::Never);
    let mut properties = Map::new();
    for field in taken {
        // On POST, null is the same as absent (docs/decisions.md, PATCH).
        let nullable = if verb == Verb::Create { field.create == Presence::Optional } else { field.nullable };
        let mut schema = property(field, spec, nullable);
        // Not as `default`: openapi-typescript makes each property with a default a required one.
        if verb == Verb::Create
            && let Some(default) = field.default
        {
            schema["description"] = json!(format!("{} Default: `{}`.", field.doc, default.trim_matches('"')));
        }
        schema["examples"] = json!([parse(field.example_sent)]);
        if field.kind == Kind::CreditLines {
            schema["items"] = json!({"$ref": "#/components/schemas/CreditLineCreate"});
        }
        if field.kind == Kind::Lines {
            schema["items"] = json!({"$ref": "#/components/schemas/InvoiceLineCreate"});
            schema["description"] = json!(format!("{} {LINE_RULE}", field.doc));
        }
        properties.insert(field.name.into(), schema);
    }
    let required = spec.fields.iter().filter(|field| verb.presence(field) == Presence::Required);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    let mut schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn list(name: &str) -> Value {
    let properties = json!({
        "object": {"type": "string", "const": "list"},
        "has_more": {"type": "boolean", "description": "Whether more results follow."},
        "next_cursor": {"type": ["string", "null"], "description": "Cursor for the next page; null when there is none."},
        "data": {"type": "array", "maxItems": 100, "items": {"$ref": format!("#/components/schemas/{name}")}},
    });
    object("One page of a list.", properties)
}

/// The result of an action, by member and type or, of texts, format.
pub(crate) fn outcome(members: &[(&str, &str)]) -> Value {
    let schema = |kind: &str| match kind {
        "integer" => shapes::at_least(0),
        "uuid" | "date-time" => json!({"type": "string", "format": kind}),
        _ => json!({"type": kind}),
    };
    object("", members.iter().map(|(name, kind)| (*name, schema(kind))).collect())
}

fn error() -> Value {
    let types = [
        "authentication_error",
        "permission_error",
        "invalid_request_error",
        "idempotency_error",
        "rate_limit_error",
        "api_error",
    ];
    let mut codes: Vec<&str> = CATALOGUE.iter().map(|row| row.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let item = json!({
        "param": text("The field or parameter."),
        "code": described(shapes::word("ErrorCode", &codes), "What is wrong with it."),
        "message": text("The same for people."),
    });
    let item = named("FieldError", object("An error in one field or parameter.", item));
    let error = json!({
        "title": "ApiError",
        "type": "object",
        "description": "What went wrong.",
        "required": ["type", "code", "message", "request_id"],
        "properties": {
            "type": described(shapes::word("ErrorType", &types), "The class of the error."),
            "code": described(shapes::word("ErrorCode", &codes), "The exact error, for programs. Later versions may add codes."),
            "message": text("What is wrong and what to do next, for people."),
            "param": text("The first bad field or parameter."),
            "errors": {"type": "array", "description": "Every bad field or parameter.", "items": item},
            "conflicting_rental_id": shapes::id("The rental that holds the vehicle."),
            "conflicting_block_id": shapes::id("The block that holds the vehicle."),
            "request_id": text("The same as the `Request-Id` header."),
        },
    });
    object("The body of every response that is no success.", json!({"error": error}))
}

/// The name of the type of a field whose values are words. Types that several resources have are not named after one.
pub(super) fn word_name(spec: &ResourceSpec, field: &str) -> String {
    match field {
        "attribution" | "booking_policy" | "invoice_language" | "paper_size" | "pickup_type" | "plan" => camel(field),
        _ => camel(spec.object) + &camel(field),
    }
}

pub(super) fn property(field: &FieldSpec, spec: &ResourceSpec, nullable: bool) -> Value {
    let mut schema = of_kind(field.kind, spec);
    if let Kind::Word(_) = field.kind {
        schema["title"] = json!(word_name(spec, field.name));
    }
    if nullable {
        if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            words.push(Value::Null);
        }
        schema["type"] = json!([schema["type"], "null"]);
    }
    schema["description"] = json!(field.doc);
    schema["examples"] = json!([parse(field.example)]);
    schema
}

/// The schema of one value.
pub(super) fn of_kind(kind: Kind, spec: &ResourceSpec) -> Value {
    match kind {
        Kind::Id | Kind::Reference(_) => json!({"type": "string", "format": "uuid"}),
        Kind::Object => json!({"type": "string", "const": spec.object}),
        Kind::Text(max) => json!({"type": "string", "maxLength": max, "pattern": PLAIN}),
        Kind::Name(max) => json!({"type": "string", "minLength": 1, "maxLength": max, "pattern": FILLED}),
        Kind::Paragraph(max, _) => json!({"type": "string", "maxLength": max, "pattern": LINES}),
        Kind::Email => json!({"type": "string", "format": "email", "maxLength": 254}),
        Kind::Phone => json!({"type": "string", "pattern": r"^\+[1-9][0-9]{6,14}$"}),
        Kind::Language => json!({"type": "string", "pattern": LANGUAGE}),
        Kind::Integer(from, to) => shapes::integer(from, to),
        Kind::Money => shapes::amount(),
        Kind::Percent => {
            let mut percent = shapes::amount();
            percent["maximum"] = json!(100);
            percent
        }
        Kind::Currency => json!({"type": "string", "pattern": "^[A-Z]{3}$"}),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Date => json!({"type": "string", "format": "date"}),
        Kind::Time => json!({"type": "string", "format": "date-time"}),
        Kind::Word(words) => json!({"type": "string", "enum": words}),
        // Without `additionalProperties`, openapi-typescript makes an object that can have no member.
        Kind::Json(_) => json!({"type": "object", "additionalProperties": true}),
        Kind::TimeZone => json!({"type": "string", "pattern": "^[A-Za-z0-9_+/-]{1,64}$"}),
        Kind::Url => json!({"type": "string", "format": "uri", "maxLength": 2048}),
        Kind::EventTypes => {
            let names = event::EVENT_NAMES;
            json!({"type": "array", "minItems": 1, "maxItems": names.len(), "uniqueItems": true, "items": shapes::word("EventType", names)})
        }
        Kind::References(_) => {
            json!({"type": "array", "maxItems": 100, "uniqueItems": true, "items": {"type": "string", "format": "uuid"}})
        }
        Kind::EarlierVehicles => {
            json!({"type": "array", "maxItems": EarlierVehicle::MOST, "items": earlier_vehicle()})
        }
        Kind::AttemptLog => json!({"type": "array", "maxItems": 10, "items": attempt()}),
        // Its own endpoints describe it.
        Kind::Assignments => json!({"type": "array", "maxItems": 100}),
        Kind::Lines => {
            json!({"type": "array", "minItems": 1, "maxItems": 200, "items": {"$ref": "#/components/schemas/InvoiceLine"}})
        }
        Kind::CreditLines => {
            json!({"type": "array", "minItems": 1, "maxItems": 200, "items": {"$ref": "#/components/schemas/CreditLine"}})
        }
    }
}

fn earlier_vehicle() -> Value {
    let properties = json!({
        "vehicle_id": {"type": "string", "format": "uuid", "description": "The vehicle."},
        "until": {"type": "string", "format": "date-time", "description": "When the customer got the next one for it."},
    });
    named("EarlierVehicle", object("A vehicle that a rental had before.", properties))
}

fn attempt() -> Value {
    let properties = json!({
        "at": {"type": "string", "format": "date-time", "description": "When it began."},
        "duration_ms": described(shapes::at_least(0), "How long it took, in milliseconds."),
        "status": {"type": ["integer", "null"], "format": "int32", "minimum": 100, "maximum": 999, "description": "Status of the answer."},
        "error": {"type": ["string", "null"], "description": "Why there was no answer."},
        "response": {"type": ["string", "null"], "description": "The first kilobyte of the answer."},
    });
    named("DeliveryAttempt", object("An attempt to deliver an event.", properties))
}

/// A line of an invoice, as the server returns it.
fn line() -> Value {
    let properties = json!({
        "description": {"type": "string", "maxLength": 255, "description": "What is billed."},
        "amount": described(shapes::signed_amount(), "Amount of the line; negative for a discount, which bills no object."),
        "rental_id": optional_id("Rental that the line bills."),
        "toll_id": optional_id("Toll that the line bills."),
        "violation_id": optional_id("Violation that the line bills."),
        "vehicle": {"type": ["string", "null"], "maxLength": 600, "description": "Vehicle of the rental when the invoice was issued: name and plate."},
    });
    object("A line of an invoice.", properties)
}

/// A line of a credit note, as the server returns it.
fn credit_line() -> Value {
    let properties = json!({
        "line": described(shapes::integer(0, 199), "Place of the credited line in the invoice; the first one is 0."),
        "description": {"type": "string", "maxLength": 255, "description": "Description of that line."},
        "amount": described(shapes::amount(), "What is credited of it."),
        "rebill": {"type": "boolean", "description": "Whether what it bills can be billed again."},
        "rental_id": optional_id("Rental that the line bills."),
        "toll_id": optional_id("Toll that the line bills."),
        "violation_id": optional_id("Violation that the line bills."),
    });
    let mut schema = object("A line of a credit note.", properties);
    let discount = "The part of the invoice's discounts that goes with the amount; only on invoices with discounts. What the line \
                    bills can be billed again up to both together.";
    schema["properties"]["discount"] = described(shapes::amount(), discount);
    schema
}

/// A line of a credit note, as the operator sends it.
fn credit_line_create() -> Value {
    let mut amount = described(
        shapes::amount(),
        "What to credit of it: at most its amount less its part of the discounts. Default: all that is left of it.",
    );
    amount["type"] = json!(["number", "null"]);
    json!({
        "type": "object",
        "description": "A line of the invoice, to credit.",
        "additionalProperties": false,
        "required": ["line"],
        "properties": {
            "line": described(shapes::integer(0, 199), "Place of the line in the invoice; the first one is 0."),
            "amount": amount,
            "rebill": {"type": ["boolean", "null"], "description": "Whether what it bills can be billed again. Default: `rebill` of the credit note."},
        },
    })
}

/// The required members of a line. In words: with an `anyOf` of `required`, client generators drop the properties.
const LINE_RULE: &str = "A line has a `description` and an `amount`, or names what it bills in one of `rental_id`, \
    `toll_id` and `violation_id`. The server takes a missing description or amount from what the line bills. A line that names none can \
    have a negative amount: a discount. The lines together add up to 0 or more.";

/// A line of an invoice, as the operator sends it.
fn line_create() -> Value {
    let what = "Amount of the line; negative, a discount, only on a line that bills no object. Default: the amount of what the line bills.";
    let mut amount = described(shapes::signed_amount(), what);
    amount["type"] = json!(["number", "null"]);
    json!({
        "type": "object",
        "description": LINE_RULE,
        "additionalProperties": false,
        "properties": {
            "description": {
                "type": ["string", "null"], "minLength": 1, "maxLength": 255, "pattern": FILLED,
                "description": "What is billed. Default: a text made from what the line bills.",
            },
            "amount": amount,
            "rental_id": optional_id("A rental of the customer. Without an `amount`, the line has its price."),
            "toll_id": optional_id("A toll that is attached to the customer and that no other invoice bills."),
            "violation_id": optional_id("A violation that is attached to the customer and that no other invoice bills."),
        },
    })
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// A whole object from the examples of its fields.
pub(crate) fn example_object(spec: &ResourceSpec) -> Value {
    Value::Object(spec.fields.iter().map(|field| (field.name.to_owned(), parse(field.example))).collect())
}

/// The response of an operation, from the same examples.
pub(super) fn example_reply(spec: &ResourceSpec, example: Example) -> Value {
    let mut object = example_object(spec);
    match example {
        Example::None => Value::Null,
        Example::Object => object,
        Example::ObjectWith(member, json) => {
            object[member] = parse(json);
            object
        }
        Example::List => json!({"object": "list", "has_more": false, "next_cursor": null, "data": [object]}),
    }
}

/// A body of POST with every field, or of PATCH with the first two that usually change.
pub(super) fn example_body(spec: &ResourceSpec, verb: Verb) -> Value {
    let taken = spec.fields.iter().filter(|field| verb.presence(field) != Presence::Never);
    let usual = |field: &&FieldSpec| verb == Verb::Create || spec.usual_changes.contains(&field.name);
    Value::Object(taken.filter(usual).map(|field| (field.name.to_owned(), parse(field.example_sent))).collect())
}
