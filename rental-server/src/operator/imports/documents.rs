//! The documentation of imports.

use crate::{
    endpoint::{BodySchema, Documented, Parameter, camel, post},
    http::progress::LINES,
    reference::{
        parts::query,
        schema::example_object,
        shapes::{self, described, word},
    },
};
use rental_core::{
    imports::{
        organization::{end_line, first_line},
        statements::{DEFAULT_ISSUER, Kind},
    },
    resources::{credit_note, customer, invoice, organization, toll, violation},
    schema::ResourceSpec,
};
use serde_json::{Map, Value, json};

const AMOUNTS: &str = "The sums of the amounts of the rows that each count counts, in the organization's currency. A charge is added, a credit or payment is subtracted; of a violation it is the amount due. A row whose amount cannot be read is in no sum. Of an export: tolls, violations, and the totals of invoices and credit notes, which bill the same tolls and violations. So they show that nothing is lost, and are no revenue.";
const AMOUNTS_BY_RESOURCE: &str = "Only of exports: the same sums for `tolls` (their amount), `violations` (the amount due), `invoices` and `credit_notes` (their total). Those of an export and of its import are equal when nothing is lost.";
const ROWS: &str = "Records each row once: a repeated import creates nothing. A row that cannot be used is reported, and the other rows are recorded. A file that does not match its format is refused as a whole.";

/// An import of statements of this kind.
pub(super) fn statement(kind: &Kind) -> Documented {
    let names: Vec<&str> = kind.formats.iter().map(|(name, _)| *name).collect();
    let about: Vec<String> = kind.formats.iter().map(|(name, about)| format!("`{name}`: {about}")).collect();
    let format = query(
        "format",
        &format!("Format of the file. Default: the first one. {}.", about.join("; ")),
        word(&format!("{}Format", camel(kind.resource.object)), &names),
    );
    let zone = query(
        "time_zone",
        "The zone of its local times, when it is not that of the format or mapping, or the organization's. A list of violations without `format` and `mapping` in an organization outside of New York needs it.",
        json!({"type": "string", "maxLength": 64}),
    );
    let mapping = query(
        "mapping",
        "JSON that describes the file of an agency or city without a format; instead of `format`.",
        json!({"type": "string", "maxLength": 8192}),
    );
    let issuer = kind.has_issuer.then(|| {
        let about = format!(
            "Authority that numbered the summonses. Default: that of the format or mapping, else {DEFAULT_ISSUER}."
        );
        query("issuer", &about, json!({"type": "string", "minLength": 1, "maxLength": 255}))
    });
    let own = [format, zone, dry_run(), mapping].into_iter().chain(issuer);
    let spec = kind.resource;
    import(format!("/admin/v1/organizations/{{organization}}/{}/import", spec.plural), spec, statement_file(kind))
        .says(ROWS)
        .parameters(own.map(Parameter::Own).collect())
}

fn statement_file(kind: &Kind) -> Value {
    let csv = text("The file of `format`, with its header.", kind.example.into());
    if !kind.json {
        return file("The file as it is, at most 2 GiB, uncompressed.", &json!({"text/csv": csv}));
    }
    let about = "The file as it is, at most 2 GiB, uncompressed. The server recognizes CSV and JSON by content.";
    let content = json!({
        "text/csv": csv,
        "application/json": {
            "schema": {
                "type": "array",
                "description": "The same rows as one list; the names of the columns are those of the CSV file.",
                "items": {"type": "object", "additionalProperties": true},
            },
            "example": [object_example(kind)],
        },
        "application/x-ndjson": text("The same rows, one JSON object a line.", format!("{}\n", object_example(kind))),
    });
    file(about, &content)
}

/// An import of an export.
pub(super) fn export() -> Documented {
    let lines = text("What an export gives: one JSON object a line.", lines_example());
    let file = file("The lines of an export, at most 16 GiB, uncompressed.", &json!({"application/x-ndjson": lines}));
    import("/admin/v1/organizations/{organization}/import".into(), &organization::SPEC, file)
        .says("Records the lines of an export: objects keep their ids and times, and no events are sent. Existing objects do not change, so a repeated import creates nothing. A line that cannot be used is reported, and the other lines are recorded. An incomplete file, or one in another currency, is refused. A line of the list of erased people (`object` is `erasure`) that names a customer who is there and not erased erases that customer: only the admin token and operators with the role `owner` may do that, and for others the line is invalid.")
        .parameters(vec![Parameter::Own(dry_run())])
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

fn dry_run() -> Value {
    let schema = json!({"type": "string", "enum": ["true", "false"], "default": "false"});
    query("dry_run", "With `true`, all rows are checked and counted, and none is recorded.", schema)
}

/// The response to a client that asks for lines.
fn progress() -> Value {
    json!({
        "schema": {"type": "string", "description": "For `Accept: application/x-ndjson`: lines with the progress, and the result or an error as the last line."},
        "example": "{\"object\":\"import_progress\",\"rows\":200,\"of\":450}\n{\"object\":\"import\",\"received\":450}\n",
    })
}

/// An export with one customer.
fn lines_example() -> String {
    let mut customer = example_object(&customer::SPEC);
    // The same time as in its id.
    customer["created_at"] = json!("2024-07-20T16:21:10.842Z");
    let objects = [example_object(&organization::SPEC), customer].map(|object| format!("{object}\n"));
    first_line() + &objects.concat() + &end_line(3)
}

/// The row of a kind's example as a JSON object.
fn object_example(kind: &Kind) -> Value {
    let mut lines = kind.example.lines().map(|line| line.split(','));
    let (names, values) = (lines.next().into_iter().flatten(), lines.next().into_iter().flatten());
    names.zip(values).collect()
}

/// The result of an import.
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
        ("review_omitted", "Rows that a person should look at and that are not in `review`, which lists a thousand."),
    ];
    let mut properties = json!({
        "object": {"type": "string", "const": "import"},
        "format": {"type": "string", "description": "How the file was read: a format, `mapping`, or `export`."},
        "dry_run": {"type": "boolean", "description": "Whether nothing was recorded."},
    });
    for (name, description) in counts {
        properties[name] = described(shapes::at_least(0), description);
    }
    let summed = counts.iter().filter(|(name, _)| !name.ends_with("_omitted"));
    let sums: Map<String, Value> = summed.map(|(name, _)| ((*name).to_owned(), shapes::sum())).collect();
    let sums = Value::from(sums);
    properties["amounts"] = shapes::object(AMOUNTS, sums.clone());
    let charging = [&toll::SPEC, &violation::SPEC, &invoice::SPEC, &credit_note::SPEC];
    let by_resource = charging.map(|spec| (spec.plural.to_owned(), shapes::object("", sums.clone())));
    let by_resource = shapes::object(AMOUNTS_BY_RESOURCE, Map::from_iter(by_resource).into());
    for (name, description, why) in [
        ("errors", "Rows that cannot be used.", "Why it cannot be used."),
        ("review", "Rows that were recorded and that a person should look at.", "What is wrong, and what to do."),
    ] {
        let row = json!({
            "row": described(shapes::at_least(1), "The line of the file where the row begins."),
            "message": shapes::text(why),
        });
        properties[name] = json!({"type": "array", "description": description, "items": shapes::object("", row)});
    }
    let mut schema = shapes::object("The result of an import.", properties);
    // Not required: statements have none.
    schema["properties"]["amounts_by_resource"] = by_resource;
    schema
}
