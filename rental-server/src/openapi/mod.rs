//! The OpenAPI 3.1 document, made from the rows that the server runs on and the descriptions that it checks with.

mod files;
mod numbers;
mod parts;
mod schema;
mod webhooks;

use crate::routes::{Action, Endpoint, Guard, Routes};
use rental_core::spec::{Presence, ResourceSpec};
use serde_json::{Map, Value, json};

/// The document as it is served.
pub(crate) fn document(routes: &Routes) -> Vec<u8> {
    serde_json::to_vec(&value(routes)).unwrap_or_default()
}

/// The same as a value, for the documentation page.
pub(crate) fn value(routes: &Routes) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rental platform API",
            "version": crate::API_VERSION,
            "summary": "Vehicles, customers, rentals, invoices, tolls, violations and leads of a vehicle rental platform.",
            "description": parts::INTRODUCTION,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This server"}],
        "security": [{"apiKey": []}],
        "tags": tags(),
        "paths": paths(routes),
        "webhooks": webhooks::operations(),
        "components": {
            "securitySchemes": parts::security_schemes(),
            "parameters": parts::parameters(),
            "headers": parts::headers(),
            "responses": parts::responses(),
            "schemas": schema::all(),
        },
    })
}

fn tags() -> Value {
    let mut tags: Vec<Value> =
        crate::routes::specs().map(|spec| json!({"name": tag(spec), "description": spec.doc})).collect();
    tags.push(webhooks::tag());
    tags.push(json!({"name": "Store", "description": "Everything at once, for the operator."}));
    tags.push(json!({"name": "Service", "description": "Health, status, metrics and this document."}));
    Value::Array(tags)
}

fn tag(spec: &ResourceSpec) -> String {
    title(&spec.plural.replace('_', " "))
}

fn title(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `api_key` as `ApiKey`.
fn camel(object: &str) -> String {
    object.split('_').map(title).collect()
}

fn paths(routes: &Routes) -> Value {
    let mut paths = Map::new();
    for endpoint in &routes.endpoints {
        let item = paths.entry(endpoint.path.clone()).or_insert_with(|| json!({}));
        item[endpoint.method.as_str().to_lowercase()] = operation(endpoint);
    }
    Value::Object(paths)
}

fn operation(endpoint: &Endpoint) -> Value {
    let Some(collection) = endpoint.collection else {
        return match endpoint.action {
            Action::Backup => parts::backup(),
            Action::Status => parts::status_operation(),
            _ => parts::open_operation(endpoint),
        };
    };
    let spec = collection.spec;
    let writes = endpoint.method != warp::http::Method::GET;
    let mut operation = json!({
        "operationId": operation_id(endpoint, spec),
        "tags": [tag(spec)],
        "summary": summary(endpoint, spec),
        "description": description(endpoint, spec),
        "parameters": parameters(endpoint, spec),
    });
    if endpoint.guard == Guard::Admin {
        operation["security"] = json!([{"adminToken": []}]);
    }
    if let Some(body) = request_body(endpoint, spec) {
        operation["requestBody"] = body;
    }
    operation["responses"] = responses(endpoint, spec, writes);
    operation
}

/// The name of an operation in the document, and in the audit log.
pub(crate) fn operation_id(endpoint: &Endpoint, spec: &ResourceSpec) -> String {
    let (one, many) = (camel(spec.object), camel(spec.plural));
    let recorded = endpoint.path.contains("{organization}");
    match endpoint.action {
        Action::List => format!("list{many}"),
        Action::Get => format!("get{one}"),
        Action::Create if recorded => format!("record{one}"),
        Action::Create => format!("create{one}"),
        Action::Update => format!("update{one}"),
        Action::RevokeKey => "revokeApiKey".into(),
        Action::RotateKey => "rotateApiKey".into(),
        Action::Delete => format!("delete{one}"),
        Action::Enable => format!("enable{one}"),
        Action::Disable => format!("disable{one}"),
        Action::RotateSecret => "rotateWebhookSecret".into(),
        Action::TestEndpoint => format!("test{one}"),
        Action::Recover => "recoverEvents".into(),
        Action::Resend => "resendEvent".into(),
        Action::PayInvoice => "payInvoice".into(),
        Action::VoidInvoice => "voidInvoice".into(),
        Action::PrintInvoice => "printInvoice".into(),
        Action::Import if spec.object == "organization" => "importOrganization".into(),
        Action::Export => "exportOrganization".into(),
        Action::Import => format!("import{many}"),
        Action::Suggest => format!("suggestCustomersOf{many}"),
        Action::Attach => format!("attach{many}"),
        Action::Status
        | Action::Backup
        | Action::Health
        | Action::Ready
        | Action::Metrics
        | Action::OpenApi
        | Action::Docs
        | Action::DocsStyle => String::new(),
    }
}

fn summary(endpoint: &Endpoint, spec: &ResourceSpec) -> String {
    let (one, many) = (spec.object.replace('_', " "), spec.plural.replace('_', " "));
    match endpoint.action {
        Action::List => format!("List {many}"),
        Action::Get => format!("Retrieve {one}"),
        Action::Create if endpoint.guard == Guard::Admin && endpoint.path.contains("{organization}") => {
            format!("Record {one} for an organization")
        }
        Action::Create => format!("Create {one}"),
        Action::Update => format!("Update {one}"),
        Action::RevokeKey => "Revoke API key".into(),
        Action::RotateKey => "Rotate API key".into(),
        Action::Delete => format!("Delete {one}"),
        Action::Enable => format!("Enable {one}"),
        Action::Disable => format!("Disable {one}"),
        Action::RotateSecret => "Rotate webhook secret".into(),
        Action::TestEndpoint => format!("Test {one}"),
        Action::Recover => "Send again what did not arrive".into(),
        Action::Resend => "Resend event".into(),
        Action::PayInvoice => "Mark invoice as paid".into(),
        Action::VoidInvoice => "Void invoice".into(),
        Action::PrintInvoice => "Print invoice".into(),
        Action::Import if spec.object == "organization" => "Import the objects of an organization".into(),
        Action::Export => "Export an organization".into(),
        Action::Import => format!("Import {many}"),
        Action::Suggest => format!("Suggest who pays for {many}"),
        Action::Attach => format!("Attach {many} to who clearly pays"),
        Action::Status
        | Action::Backup
        | Action::Health
        | Action::Ready
        | Action::Metrics
        | Action::OpenApi
        | Action::Docs
        | Action::DocsStyle => String::new(),
    }
}

fn description(endpoint: &Endpoint, spec: &ResourceSpec) -> String {
    let scope = match (endpoint.guard, endpoint.method == warp::http::Method::GET) {
        (Guard::Admin, _) => "Needs the admin token.",
        (_, true) => "Needs a key with scope `read` or `read_write`.",
        (_, false) => "Needs a key with scope `read_write`.",
    };
    let what = match (endpoint.action, spec.object) {
        (Action::List, _) => "Newest first. Pass `next_cursor` as `starting_after` to get the next page.",
        (Action::Create, "rental") => {
            "A rental in `APPROVED` or `ACTIVE` with both dates holds its vehicle for the nights from pickup to return: a second one is refused with 409."
        }
        (Action::Update, "rental") => {
            "Setting `status` to `COMPLETED` or `CANCELLED` sends the matching webhook and frees the vehicle."
        }
        (Action::Update, "toll" | "violation") => "Attaches it to the customer who pays. Nothing else can be changed.",
        (Action::Create, "api_key") => "The answer is the only one that shows the key.",
        (Action::RotateKey, _) => {
            "Makes a new key with the same rights and shows it once; the old one works until the overlap ends."
        }
        (Action::Create, "webhook_endpoint") => "The answer is the only one that shows the secret.",
        (Action::Enable, _) => "It gets events again, and what waited for it, with a clean record of failures.",
        (Action::Disable, _) => "Its deliveries wait until it is enabled again.",
        (Action::Delete, _) => "What waited for it is not sent any more.",
        (Action::RotateSecret, _) => {
            "Old and new secret both sign until the overlap ends. The answer is the only one that shows the new one."
        }
        (Action::TestEndpoint, _) => {
            "Makes one signed attempt with an example event and says how it went. It is not recorded."
        }
        (Action::Recover, _) => {
            "Makes new deliveries of events since a time that the endpoint wants and did not get, one page of events at a time."
        }
        (Action::Resend, _) => {
            "Makes new deliveries of the event: to one endpoint, or to all of its organization that want it."
        }
        (Action::PrintInvoice, _) => "A page that prints well and loads nothing from elsewhere.",
        (Action::Export, _) => {
            "All its objects as they are at this moment, one a line, each as a GET gives it: the organization, then vehicles, customers, rentals, tolls, violations, invoices and leads, oldest first. The last line says how many came before it. No key or secret is in it. One export or backup at a time."
        }
        (Action::Import, "organization") => {
            "Records the lines of an export: objects keep their ids and times, and nothing is announced. What is there already is left as it is, so a repeated import creates nothing. A line that cannot be used is reported and stops no other; a file that is not whole, or in another currency, is refused."
        }
        (Action::Import, _) => {
            "Records each row once, however often it is imported: a repeated import creates nothing. A row that cannot be used is reported and stops no other; a file that is not what it claims is refused whole."
        }
        (Action::Suggest, _) => {
            "Those without a customer, newest first, each with the rental that had the vehicle at that time, as far as that is clear, and why."
        }
        (Action::Attach, _) => {
            "Attaches what is clear on one page, and says what is not. What somebody decided is never changed."
        }
        (Action::RevokeKey, _) => "The key is refused from the next request on.",
        (Action::Update, _) => "Absent fields stay as they are; `null` clears a field that can be empty.",
        _ => "",
    };
    format!("{what} {scope}").trim().to_owned()
}

fn parameters(endpoint: &Endpoint, spec: &ResourceSpec) -> Value {
    let shared = |name: &str| json!({"$ref": format!("#/components/parameters/{name}")});
    let mut list = Vec::new();
    if endpoint.path.contains("{id}") {
        list.push(parts::path_id("id", spec.object, spec.fields[0].example));
    }
    if endpoint.path.contains("{organization}") {
        list.push(parts::path_id("organization", "organization", "\"0190d0f2-7c3a-7cc0-8000-000000000000\""));
    }
    match endpoint.action {
        Action::List => {
            list.extend(["Limit", "StartingAfter", "CreatedGte", "CreatedLt"].map(shared));
            list.extend(spec.filters.iter().map(|filter| parts::filter(spec, filter)));
            list.extend(spec.ranges.iter().flat_map(parts::range));
        }
        Action::TestEndpoint | Action::PrintInvoice => {}
        Action::Import => list.extend(files::import_parameters(spec)),
        Action::Export => list.push(parts::pace()),
        Action::Suggest => list.extend(["Limit", "StartingAfter"].map(shared)),
        Action::Get => list.push(shared("IfNoneMatch")),
        Action::Update => list.extend([shared("IdempotencyKey"), shared("IfMatch")]),
        _ => list.push(shared("IdempotencyKey")),
    }
    Value::Array(list)
}

fn request_body(endpoint: &Endpoint, spec: &ResourceSpec) -> Option<Value> {
    let body = |required: bool, schema: Value, example: Value| json!({"required": required, "content": {"application/json": {"schema": schema, "example": example}}});
    let named = |suffix: &str| json!({"$ref": format!("#/components/schemas/{}{suffix}", camel(spec.object))});
    match endpoint.action {
        Action::Import => Some(files::import_body(spec)),
        Action::Attach => Some(files::attach_body()),
        Action::Create => {
            let required = spec.fields.iter().any(|field| field.create == Presence::Required);
            Some(body(required, named("Create"), schema::example_body(spec, true)))
        }
        Action::Update => Some(body(false, named("Update"), schema::example_body(spec, false))),
        Action::RotateSecret => {
            let seconds = overlap(604_800, "Seconds for which the old secret keeps signing. Default: `86400`.");
            let schema =
                json!({"type": "object", "additionalProperties": false, "properties": {"overlap_seconds": seconds}});
            Some(body(false, schema, json!({"overlap_seconds": 3600})))
        }
        Action::Recover => {
            let since = json!({"type": "string", "format": "date-time", "description": "Events from this time on."});
            let after =
                json!({"type": "string", "format": "uuid", "description": "`next_cursor` of the answer before."});
            let schema = json!({"type": "object", "additionalProperties": false, "required": ["since"], "properties": {"since": since, "starting_after": after}});
            Some(body(true, schema, json!({"since": "2026-05-05T00:00:00Z"})))
        }
        Action::Resend => {
            let endpoint = json!({"type": "string", "format": "uuid", "description": "Only to this endpoint."});
            let schema =
                json!({"type": "object", "additionalProperties": false, "properties": {"endpoint_id": endpoint}});
            Some(body(false, schema, json!({})))
        }
        Action::RotateKey => {
            let seconds = overlap(2_592_000, "Seconds for which the old key keeps working. Default: `86400`.");
            let schema =
                json!({"type": "object", "additionalProperties": false, "properties": {"overlap_seconds": seconds}});
            Some(body(false, schema, json!({"overlap_seconds": 3600})))
        }
        _ => None,
    }
}

/// `overlap_seconds` of a rotation.
fn overlap(max: i64, description: &str) -> Value {
    let mut seconds = numbers::integer(0, max);
    seconds["description"] = json!(description);
    seconds
}

fn responses(endpoint: &Endpoint, spec: &ResourceSpec, writes: bool) -> Value {
    let shows_key =
        matches!(endpoint.action, Action::RotateKey) || (endpoint.action == Action::Create && spec.object == "api_key");
    let shows_secret = endpoint.action == Action::RotateSecret
        || (endpoint.action == Action::Create && spec.object == "webhook_endpoint");
    let name = match endpoint.action {
        Action::List => format!("{}List", camel(spec.object)),
        Action::Delete => "Deleted".into(),
        Action::TestEndpoint => "WebhookTest".into(),
        Action::Recover => "Recovery".into(),
        Action::Resend => "DeliveryList".into(),
        Action::Import => "Import".into(),
        Action::Suggest | Action::Attach => "SuggestionList".into(),
        _ if shows_secret => "NewWebhookEndpoint".into(),
        _ if shows_key => "NewApiKey".into(),
        _ => camel(spec.object),
    };
    let mut responses = Map::new();
    responses.insert(
        "200".into(),
        parts::success(
            &name,
            !matches!(
                endpoint.action,
                Action::List | Action::Import | Action::Export | Action::Suggest | Action::Attach
            ),
            writes && endpoint.action != Action::Import,
            match endpoint.action {
                Action::Delete
                | Action::TestEndpoint
                | Action::Recover
                | Action::Resend
                | Action::Import
                | Action::Export
                | Action::Suggest
                | Action::Attach => Value::Null,
                action => schema::example_reply(spec, action == Action::List, shows_key),
            },
        ),
    );
    if endpoint.action == Action::PrintInvoice {
        responses["200"]["content"] = json!({"text/html": {"schema": {"type": "string"}}});
    }
    if endpoint.action == Action::Export {
        responses["200"]["content"] = json!({"application/x-ndjson": {"schema": {"type": "string"}}});
    }
    if endpoint.action == Action::Import {
        responses["200"]["content"]["application/x-ndjson"] = files::progress();
    }
    if endpoint.action == Action::Get {
        responses.insert("304".into(), json!({"$ref": "#/components/responses/NotModified"}));
    }
    let object = endpoint.path.contains('{');
    let update = endpoint.action == Action::Update;
    let conflicts = writes || endpoint.action == Action::Export;
    for (status, applies) in [
        ("400", true),
        ("401", true),
        ("403", endpoint.guard == Guard::Key),
        ("404", object),
        ("408", writes),
        ("409", conflicts),
        ("412", update),
        ("413", writes),
        ("415", writes),
        ("422", writes),
        ("429", endpoint.guard == Guard::Key),
        ("500", true),
        ("503", true),
    ] {
        if applies {
            responses.insert(status.into(), json!({"$ref": format!("#/components/responses/Problem{status}")}));
        }
    }
    Value::Object(responses)
}

/// An object of a resource from the examples of its fields.
pub(crate) fn example_object(spec: &ResourceSpec) -> Value {
    schema::example_object(spec, false)
}
