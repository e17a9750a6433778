//! JSON Schemas of the resources, from their descriptions.

use crate::openapi::{camel, files, is_amount};
use rental_core::{
    event,
    spec::{FieldSpec, Kind, Presence, ResourceSpec},
    value::Money,
};
use serde_json::{Map, Value, json};

/// Text without control characters, in the regular expressions of ECMA-262.
const PLAIN: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";
/// The same with at least one character that is not white space.
const FILLED: &str = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$";
/// Language, script and region; variants and extensions are taken too.
const LANGUAGE: &str = "^[A-Za-z]{2,8}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?$";

/// Every schema of the document.
pub(super) fn all() -> Value {
    let mut schemas = Map::new();
    for collection in crate::routes::collections() {
        let spec = collection.spec;
        let name = camel(spec.object);
        schemas.insert(name.clone(), object(spec));
        for (suffix, create) in [("Create", true), ("Update", false)] {
            if spec.fields.iter().any(|field| presence(field, create) != Presence::Never) {
                schemas.insert(format!("{name}{suffix}"), body(spec, create));
            }
        }
        if collection.list {
            schemas.insert(format!("{name}List"), list(&name));
        }
    }
    schemas.insert("NewApiKey".into(), new_key());
    schemas.insert("NewWebhookEndpoint".into(), new_endpoint());
    schemas.insert(
        "Deleted".into(),
        outcome(&[("id", "string"), ("object", "string"), ("organization_id", "string"), ("deleted", "boolean")]),
    );
    let test = [
        ("object", "string"),
        ("endpoint_id", "string"),
        ("event_type", "string"),
        ("delivered", "boolean"),
        ("duration_ms", "integer"),
    ];
    schemas.insert("WebhookTest".into(), outcome(&test));
    let recovery = [("object", "string"), ("examined", "integer"), ("resent", "integer"), ("has_more", "boolean")];
    schemas.insert("Recovery".into(), outcome(&recovery));
    schemas.insert("Import".into(), files::import_schema());
    schemas.insert("SuggestionList".into(), files::suggestions_schema());
    schemas.insert("Status".into(), status());
    schemas.insert("Error".into(), error());
    Value::Object(schemas)
}

fn presence(field: &FieldSpec, create: bool) -> Presence {
    if create { field.create } else { field.update }
}

/// A whole object: every field is always there.
fn object(spec: &ResourceSpec) -> Value {
    let properties: Map<String, Value> =
        spec.fields.iter().map(|field| (field.name.to_owned(), property(field, spec, field.nullable))).collect();
    let names: Vec<&str> = spec.fields.iter().map(|field| field.name).collect();
    json!({"type": "object", "description": spec.doc, "required": names, "properties": properties, "example": example_object(spec, false)})
}

/// What POST or PATCH takes.
fn body(spec: &ResourceSpec, create: bool) -> Value {
    let taken = spec.fields.iter().filter(|field| presence(field, create) != Presence::Never);
    let mut properties = Map::new();
    for field in taken {
        // On POST, null is the same as absent (docs/decisions.md, PATCH).
        let nullable = if create { field.create == Presence::Optional } else { field.nullable };
        let mut schema = property(field, spec, nullable);
        if create && let Some(default) = field.default {
            schema["default"] = parse(default);
        }
        properties.insert(field.name.into(), schema);
    }
    let required: Vec<&str> = spec
        .fields
        .iter()
        .filter(|field| presence(field, create) == Presence::Required)
        .map(|field| field.name)
        .collect();
    let mut schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn list(name: &str) -> Value {
    json!({
        "type": "object",
        "description": "One page of a list.",
        "required": ["object", "has_more", "next_cursor", "data"],
        "properties": {
            "object": {"type": "string", "const": "list"},
            "has_more": {"type": "boolean", "description": "Whether more results follow."},
            "next_cursor": {"type": ["string", "null"], "description": "Cursor for the next page; null when there is none."},
            "data": {"type": "array", "maxItems": 100, "items": {"$ref": format!("#/components/schemas/{name}")}},
        },
    })
}

fn new_key() -> Value {
    let key =
        json!({"type": "string", "description": "The key. It is shown here and never again; absent on a replay."});
    json!({"allOf": [{"$ref": "#/components/schemas/ApiKey"}, {"type": "object", "properties": {"key": key}}]})
}

fn new_endpoint() -> Value {
    let secret = json!({"type": "string", "description": "The signing secret. It is shown here and never again; absent on a replay."});
    json!({"allOf": [{"$ref": "#/components/schemas/WebhookEndpoint"}, {"type": "object", "properties": {"secret": secret}}]})
}

/// The answer of an action, by member and type.
fn status() -> Value {
    let members = &crate::status::MEMBERS;
    let properties: Map<String, Value> = members
        .iter()
        .map(|(name, kinds, doc)| ((*name).to_owned(), json!({"type": kinds, "description": doc})))
        .collect();
    let names: Vec<&str> = members.iter().map(|member| member.0).collect();
    json!({"type": "object", "required": names, "properties": properties})
}

fn outcome(members: &[(&str, &str)]) -> Value {
    let properties: Map<String, Value> =
        members.iter().map(|(name, kind)| ((*name).to_owned(), json!({"type": kind}))).collect();
    let names: Vec<&str> = members.iter().map(|member| member.0).collect();
    json!({"type": "object", "required": names, "properties": properties})
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
    let text = |description: &str| json!({"type": "string", "description": description});
    let item = json!({"type": "object", "required": ["param", "code", "message"], "properties": {
        "param": text("The field or parameter."), "code": text("What is wrong with it."), "message": text("The same for people."),
    }});
    let error = json!({
        "type": "object",
        "required": ["type", "code", "message", "request_id"],
        "properties": {
            "type": {"type": "string", "enum": types, "description": "The class of the error."},
            "code": text("The exact error, for programs."),
            "message": text("What is wrong and what to do next, for people."),
            "param": text("The first bad field or parameter."),
            "errors": {"type": "array", "description": "Every bad field or parameter.", "items": item},
            "conflicting_rental_id": text("The rental that holds the vehicle."),
            "request_id": text("The same as the `Request-Id` header."),
        },
    });
    json!({"type": "object", "required": ["error"], "properties": {"error": error}})
}

fn property(field: &FieldSpec, spec: &ResourceSpec, nullable: bool) -> Value {
    let mut schema = of_kind(field.kind, spec);
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
    if is_amount(kind) {
        let max = parse(&Money::MAX.to_string());
        return json!({"type": "number", "minimum": 0, "maximum": max});
    }
    match kind {
        Kind::Id | Kind::Reference(_) => json!({"type": "string", "format": "uuid"}),
        Kind::Object => json!({"type": "string", "const": spec.object}),
        Kind::Text(max) => json!({"type": "string", "maxLength": max, "pattern": PLAIN}),
        Kind::Name(max) => json!({"type": "string", "minLength": 1, "maxLength": max, "pattern": FILLED}),
        Kind::Email => json!({"type": "string", "format": "email", "maxLength": 254}),
        Kind::Phone => json!({"type": "string", "pattern": r"^\+[1-9][0-9]{6,14}$"}),
        Kind::Language => json!({"type": "string", "pattern": LANGUAGE}),
        Kind::Integer(from, to) => json!({"type": "integer", "minimum": from, "maximum": to}),
        Kind::Currency => json!({"type": "string", "pattern": "^[A-Z]{3}$"}),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Date => json!({"type": "string", "format": "date"}),
        Kind::Time => json!({"type": "string", "format": "date-time"}),
        Kind::Word(words) => json!({"type": "string", "enum": words}),
        Kind::Json(_) => json!({"type": "object"}),
        Kind::TimeZone => json!({"type": "string", "pattern": "^[A-Za-z0-9_+/-]{1,64}$"}),
        Kind::Url => json!({"type": "string", "format": "uri", "maxLength": 2048}),
        Kind::EventTypes => {
            let names: Vec<&str> = event::EVENT_TYPES.iter().map(|row| row.1).collect();
            json!({"type": "array", "minItems": 1, "maxItems": 14, "uniqueItems": true, "items": {"type": "string", "enum": names}})
        }
        Kind::AttemptLog => json!({"type": "array", "maxItems": 10, "items": attempt()}),
        Kind::Lines | Kind::Money => json!({"type": "array", "minItems": 1, "maxItems": 200, "items": line()}),
    }
}

fn attempt() -> Value {
    json!({
        "type": "object",
        "required": ["at", "duration_ms", "status", "error", "response"],
        "properties": {
            "at": {"type": "string", "format": "date-time", "description": "When it began."},
            "duration_ms": {"type": "integer", "minimum": 0, "description": "How long it took."},
            "status": {"type": ["integer", "null"], "description": "Status of the answer."},
            "error": {"type": ["string", "null"], "description": "Why there was no answer."},
            "response": {"type": ["string", "null"], "description": "The first kilobyte of the answer."},
        },
    })
}

fn line() -> Value {
    let max = parse(&Money::MAX.to_string());
    json!({
        "type": "object",
        "additionalProperties": false,
        "anyOf": [
            {"required": ["description", "amount"]},
            {"required": ["rental_id"]},
            {"required": ["toll_id"]},
            {"required": ["violation_id"]},
        ],
        "properties": {
            "description": {
                "type": ["string", "null"], "minLength": 1, "maxLength": 255, "pattern": FILLED,
                "description": "What is billed; made from what the line bills when it is left out.",
            },
            "amount": {
                "type": ["number", "null"], "minimum": 0, "maximum": max,
                "description": "How much; that of what the line bills when it is left out.",
            },
            "rental_id": source("A rental of the customer; its price, unless there is an amount."),
            "toll_id": source("A toll attached to the customer, which no other invoice bills."),
            "violation_id": source("A violation attached to the customer, which no other invoice bills."),
        },
    })
}

fn source(doc: &str) -> Value {
    json!({"type": ["string", "null"], "format": "uuid", "description": doc})
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// A whole object from the examples of its fields.
pub(super) fn example_object(spec: &ResourceSpec, with_key: bool) -> Value {
    let mut object: Map<String, Value> =
        spec.fields.iter().map(|field| (field.name.to_owned(), parse(field.example))).collect();
    if with_key {
        object.insert("key".into(), json!("rk_live_…"));
    }
    Value::Object(object)
}

/// The answer of an operation, from the same examples.
pub(super) fn example_reply(spec: &ResourceSpec, list: bool, with_key: bool) -> Value {
    let object = example_object(spec, with_key);
    if list { json!({"object": "list", "has_more": false, "next_cursor": null, "data": [object]}) } else { object }
}

/// A body of POST with every field, or of PATCH with the first two that usually change.
pub(super) fn example_body(spec: &ResourceSpec, create: bool) -> Value {
    let taken = spec.fields.iter().filter(|field| presence(field, create) != Presence::Never);
    let usual = |field: &&FieldSpec| create || spec.usual_changes.contains(&field.name);
    Value::Object(taken.filter(usual).map(|field| (field.name.to_owned(), parse(field.example))).collect())
}
