//! What the document says about imports.

use crate::{
    endpoint::{BodySchema, Documented, Parameter, camel, post},
    http::progress::LINES,
    reference::{numbers, schema::example_object},
};
use rental_core::{
    import,
    resources::{customer, organization, toll, violation},
    spec::ResourceSpec,
    transfer,
};
use serde_json::{Value, json};

const ROWS: &str = "Records each row once, however often it is imported: a repeated import creates nothing. A row that cannot be used is reported and stops no other; a file that is not what it claims is refused whole.";

/// An import of statements of tolls.
pub(super) fn tolls() -> Documented {
    let mapping = query(
        "mapping",
        "JSON that says which columns of another agency's file are what; instead of `format`.",
        json!({"type": "string", "maxLength": 8192}),
    );
    let csv = text("The file of `format`, with its header.", TOLL_ROWS.into());
    let file = file("The file as it is, at most 2 GiB, uncompressed.", &json!({"text/csv": csv}));
    of_rows(&toll::SPEC, import::TOLL_FORMATS, mapping, file)
}

/// An import of lists of violations.
pub(super) fn violations() -> Documented {
    let issuer = query(
        "issuer",
        "Whose summons numbers they are.",
        json!({"type": "string", "minLength": 1, "maxLength": 255, "default": "NYC"}),
    );
    let about = "The file as it is, at most 2 GiB, uncompressed. The server recognizes CSV and JSON by content.";
    let content = json!({
        "text/csv": text("The file of `format`, with its header.", VIOLATION_ROWS.into()),
        "application/json": {
            "schema": {
                "type": "array",
                "description": "The same rows as one list; the names of the columns are those of the CSV file.",
                "items": {"type": "object", "additionalProperties": true},
            },
            "example": [violation_example()],
        },
        "application/x-ndjson": text("The same rows, one JSON object a line.", format!("{}\n", violation_example())),
    });
    of_rows(&violation::SPEC, import::VIOLATION_FORMATS, issuer, file(about, &content))
}

/// An import of an export.
pub(super) fn objects() -> Documented {
    let lines = text("What an export gives: one JSON object a line.", lines_example());
    let file = file("The lines of an export, at most 16 GiB, uncompressed.", &json!({"application/x-ndjson": lines}));
    import("/admin/v1/organizations/{organization}/import".into(), &organization::SPEC, file)
        .says("Records the lines of an export: objects keep their ids and times, and nothing is announced. What is there already is left as it is, so a repeated import creates nothing. A line that cannot be used is reported and stops no other; a file that is not whole, or in another currency, is refused.")
        .parameters(vec![Parameter::Own(dry_run())])
}

fn of_rows(
    spec: &'static ResourceSpec,
    formats: &[(&'static str, &'static str)],
    own: Value,
    file: Value,
) -> Documented {
    let names: Vec<&str> = formats.iter().map(|(name, _)| *name).collect();
    let about: Vec<String> = formats.iter().map(|(name, about)| format!("`{name}`: {about}")).collect();
    let format = query(
        "format",
        &format!("What the file is; the first when it is left out. {}.", about.join("; ")),
        json!({"type": "string", "enum": names}),
    );
    let zone = query(
        "time_zone",
        "The zone of its local times, when it is not the format's own.",
        json!({"type": "string", "maxLength": 64}),
    );
    import(format!("/admin/v1/organizations/{{organization}}/{}/import", spec.plural), spec, file)
        .says(ROWS)
        .parameters([format, zone, dry_run(), own].map(Parameter::Own).into())
}

fn import(path: String, spec: &'static ResourceSpec, file: Value) -> Documented {
    let (id, summary) = match spec.object {
        "organization" => ("importOrganization".into(), "Import the objects of an organization".into()),
        _ => (format!("import{}", camel(spec.plural)), format!("Import {}", spec.plural.replace('_', " "))),
    };
    post(path)
        .about(spec, id, summary)
        .takes(BodySchema::Own(file))
        .replies("Import")
        .replies_also_in(LINES, progress())
        .without_revision()
        .without_replay()
        .takes_its_time()
        .defines("Import", schema())
}

/// A file in one of these media types.
fn file(about: &str, content: &Value) -> Value {
    json!({"required": true, "description": about, "content": content})
}

fn text(description: &str, example: String) -> Value {
    json!({"schema": {"type": "string", "description": description}, "example": example})
}

fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "required": false, "description": description, "schema": schema})
}

fn dry_run() -> Value {
    let schema = json!({"type": "string", "enum": ["true", "false"], "default": "false"});
    query("dry_run", "With `true`, everything is checked and counted and nothing recorded.", schema)
}

/// The answer of an import to a client that asks for lines.
fn progress() -> Value {
    json!({
        "schema": {"type": "string", "description": "For `Accept: application/x-ndjson`: lines that say how far it is, and the result, or an error, as the last one."},
        "example": "{\"object\":\"import_progress\",\"rows\":200,\"of\":450}\n{\"object\":\"import\",\"received\":450}\n",
    })
}

/// An export with one customer.
fn lines_example() -> String {
    let mut customer = example_object(&customer::SPEC, false);
    // The time in its id.
    customer["created_at"] = json!("2024-07-20T16:21:10.842Z");
    [example_object(&organization::SPEC, false), customer]
        .iter()
        .map(|object| format!("{object}\n"))
        .collect::<String>()
        + &transfer::end_line(2)
}

/// Files with one row.
const TOLL_ROWS: &str = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n61231234567,2026-06-02T10:03:00-04:00,MTAB&T,RKB,ABC1234,NY,,6.94\n";
const VIOLATION_ROWS: &str = "plate,state,summons_number,issue_date,violation_time,violation,amount_due\nABC1234,NY,4631234567,06/02/2026,02:03P,PHTO SCHOOL ZN SPEED VIOLATION,50\n";

/// The row of [`VIOLATION_ROWS`] as a JSON object.
fn violation_example() -> Value {
    let mut lines = VIOLATION_ROWS.lines().map(|line| line.split(','));
    let (names, values) = (lines.next(), lines.next());
    names
        .into_iter()
        .flatten()
        .zip(values.into_iter().flatten())
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect()
}

/// What comes of an import.
fn schema() -> Value {
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
