//! Imports and suggestions in the document: requests that carry files, and answers that are no objects.

use crate::openapi::numbers;
use rental_core::{
    imports::statements::{DEFAULT_ISSUER, KINDS, Kind, Parameter},
    resources::{customer, organization},
    spec::ResourceSpec,
    transfer,
};
use serde_json::{Value, json};

/// The query parameters of an import.
pub(super) fn import_parameters(spec: &ResourceSpec) -> Vec<Value> {
    let Some(kind) = Kind::of(spec) else { return vec![dry_run()] };
    let names: Vec<&str> = kind.formats.iter().map(|(name, _)| *name).collect();
    let about: Vec<String> = kind.formats.iter().map(|(name, about)| format!("`{name}`: {about}")).collect();
    let mut parameters = vec![
        query(
            "format",
            &format!("What the file is; the first when it is left out. {}.", about.join("; ")),
            json!({"type": "string", "enum": names}),
        ),
        query(
            "time_zone",
            "The zone of its local times, when it is not the format's own.",
            json!({"type": "string", "maxLength": 64}),
        ),
        dry_run(),
    ];
    parameters.push(match kind.parameter {
        Parameter::Mapping => query(
            "mapping",
            "JSON that says which columns of another agency's file are what; instead of `format`.",
            json!({"type": "string", "maxLength": 8192}),
        ),
        Parameter::Issuer => query(
            "issuer",
            "Whose summons numbers they are.",
            json!({"type": "string", "minLength": 1, "maxLength": 255, "default": DEFAULT_ISSUER}),
        ),
    });
    parameters
}

fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "required": false, "description": description, "schema": schema})
}

fn dry_run() -> Value {
    let schema = json!({"type": "string", "enum": ["true", "false"], "default": "false"});
    query("dry_run", "With `true`, everything is checked and counted and nothing recorded.", schema)
}

/// The answer of an import to a client that asks for lines.
pub(super) fn progress() -> Value {
    json!({
        "schema": {"type": "string", "description": "For `Accept: application/x-ndjson`: lines that say how far it is, and the result, or an error, as the last one."},
        "example": "{\"object\":\"import_progress\",\"rows\":200,\"of\":450}\n{\"object\":\"import\",\"received\":450}\n",
    })
}

/// The file itself, with an example for each media type.
pub(super) fn import_body(spec: &ResourceSpec) -> Value {
    let text = |description: &str, example: String| json!({"schema": {"type": "string", "description": description}, "example": example});
    let (description, content) = match Kind::of(spec) {
        None => (
            "The lines of an export, at most 16 GiB, uncompressed.",
            json!({"application/x-ndjson": text("What an export gives: one JSON object a line.", lines_example())}),
        ),
        Some(kind) if !kind.json => (
            "The file as it is, at most 2 GiB, uncompressed.",
            json!({"text/csv": text("The file of `format`, with its header.", kind.example.into())}),
        ),
        Some(kind) => (
            "The file as it is, at most 2 GiB, uncompressed. The server recognizes CSV and JSON by content.",
            json!({
                "text/csv": text("The file of `format`, with its header.", kind.example.into()),
                "application/json": {
                    "schema": {
                        "type": "array",
                        "description": "The same rows as one list; the names of the columns are those of the CSV file.",
                        "items": {"type": "object", "additionalProperties": true},
                    },
                    "example": [object_example(kind)],
                },
                "application/x-ndjson": text("The same rows, one JSON object a line.", format!("{}\n", object_example(kind))),
            }),
        ),
    };
    json!({"required": true, "description": description, "content": content})
}

/// An export with one customer.
fn lines_example() -> String {
    let mut customer = super::example_object(&customer::SPEC);
    // The time in its id.
    customer["created_at"] = json!("2024-07-20T16:21:10.842Z");
    [super::example_object(&organization::SPEC), customer]
        .iter()
        .map(|object| format!("{object}\n"))
        .collect::<String>()
        + &transfer::end_line(2)
}

/// The row of a kind's example as a JSON object.
fn object_example(kind: &Kind) -> Value {
    let mut lines = kind.example.lines().map(|line| line.split(','));
    let (names, values) = (lines.next(), lines.next());
    names
        .into_iter()
        .flatten()
        .zip(values.into_iter().flatten())
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect()
}

/// What comes of an import.
pub(super) fn import_schema() -> Value {
    let counts = [
        ("received", "Rows of the file: the sum of the next five."),
        ("created", "New objects."),
        ("updated", "Objects that changed: corrections, credits, another amount due."),
        ("duplicates", "Rows that say what is known already."),
        ("skipped", "Rows that are nothing to record, such as payments and fees."),
        ("invalid", "Rows that cannot be used."),
        ("matched", "New objects whose vehicle was found."),
        ("errors_omitted", "Rows that cannot be used and are not in `errors`, which lists a thousand."),
    ];
    let mut properties = json!({
        "object": {"type": "string", "const": "import"},
        "format": {"type": "string", "description": "How the file was read: a format, `mapping`, or `export`."},
        "dry_run": {"type": "boolean", "description": "Whether nothing was recorded."},
    });
    for (name, description) in counts {
        properties[name] = numbers::at_least(0);
        properties[name]["description"] = json!(description);
    }
    let mut row = numbers::at_least(1);
    row["description"] = json!("The line of the file where the row begins.");
    properties["errors"] = json!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["row", "message"],
            "properties": {
                "row": row,
                "message": {"type": "string", "description": "Why it cannot be used."},
            },
        },
    });
    let names: Vec<String> = properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    json!({"type": "object", "description": "What came of the rows of a file.", "required": names, "properties": properties})
}

/// The body that attaches a page of suggestions.
pub(super) fn attach_body() -> Value {
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many to look at. Default: `100`."},
            "starting_after": {"type": "string", "format": "uuid", "description": "`next_cursor` of the answer before."},
        },
    });
    json!({"required": false, "content": {"application/json": {"schema": schema, "example": {}}}})
}

/// A page of suggestions.
pub(super) fn suggestions_schema() -> Value {
    let id = |description: &str| json!({"type": ["string", "null"], "format": "uuid", "description": description});
    let candidate = json!({
        "type": "object",
        "required": ["rental_id", "customer_id", "reason"],
        "properties": {
            "rental_id": id("The rental."), "customer_id": id("Its customer."),
            "reason": {"type": "string", "description": "What speaks for and against it."},
        },
    });
    let suggestion = json!({
        "type": "object",
        "required": ["object", "resource", "id", "verdict", "reason", "vehicle_id", "rental_id", "customer_id", "attached", "candidates"],
        "properties": {
            "object": {"type": "string", "const": "suggestion"},
            "resource": {"type": "string", "enum": KINDS.map(|kind| kind.resource.object)},
            "id": id("The toll or violation."),
            "verdict": {"type": "string", "enum": ["clear", "unclear", "nobody"], "description": "Whether one rental answers for it, somebody has to decide, or none comes into question."},
            "reason": {"type": "string", "description": "Why."},
            "vehicle_id": id("The vehicle that it is about, when it is known."),
            "rental_id": id("The rental that answers for it, when that is clear."),
            "customer_id": id("The customer of that rental."),
            "attached": {"type": "boolean", "description": "Whether this request attached it."},
            "candidates": {"type": "array", "items": candidate},
        },
    });
    json!({
        "type": "object",
        "required": ["object", "has_more", "next_cursor", "data"],
        "properties": {
            "object": {"type": "string", "const": "list"},
            "has_more": {"type": "boolean"},
            "next_cursor": id("Pass it as `starting_after` for the next page."),
            "data": {"type": "array", "items": suggestion},
        },
    })
}
