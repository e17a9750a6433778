//! The OpenAPI 3.1 document, made from the table of endpoints and the specs of the resources.

use crate::{
    endpoint::{BodySchema, Documentation, Endpoint, Example, Handler, Operation, Parameter, camel, capitalized},
    http::Method,
    reference::{parts, schema, webhooks},
};
use rental_core::{
    request::body::Verb,
    resources::operator::Role,
    schema::{Presence, ResourceSpec},
};
use serde_json::{Map, Value, json};

/// Responses that are no plain lists of stored objects, and leave out what needs a damaged row.
const LEAVING_OUT: [&str; 5] = ["InvoiceDraftList", "Recovery", "ReviewList", "SuggestionList", "VehicleList"];

/// The document about these endpoints.
pub(super) fn value(endpoints: &[Endpoint]) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rental platform API",
            "version": rental_core::API_VERSION,
            "summary": "Vehicles, customers, rentals, invoices, tolls, violations and leads of a vehicle rental platform.",
            "description": parts::INTRODUCTION,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This server"}],
        "security": [{"apiKey": []}],
        "tags": tags(endpoints),
        "paths": paths(endpoints),
        "webhooks": webhooks::operations(),
        "components": {
            "securitySchemes": parts::security_schemes(),
            "parameters": parts::parameters(),
            "headers": parts::headers(),
            "responses": parts::responses(),
            "schemas": schema::all(endpoints, webhooks::schemas()),
        },
    })
}

fn tags(endpoints: &[Endpoint]) -> Value {
    let specs = schema::specs(endpoints);
    let mut tags: Vec<Value> =
        specs.into_iter().map(|spec| json!({"name": tag(spec), "description": spec.doc})).collect();
    tags.push(webhooks::tag());
    tags.push(json!({"name": "Store", "description": "Everything at once, for the operator."}));
    tags.push(json!({"name": "Service", "description": "Health, status, metrics and this document."}));
    Value::Array(tags)
}

fn tag(spec: &ResourceSpec) -> String {
    capitalized(&spec.plural.replace('_', " "))
}

fn paths(endpoints: &[Endpoint]) -> Value {
    let mut paths = Map::new();
    for endpoint in endpoints {
        let item = paths.entry(endpoint.path.clone()).or_insert_with(|| json!({}));
        item[endpoint.method.as_str().to_lowercase()] = match &endpoint.documentation {
            Documentation::Whole(operation) => operation.clone(),
            Documentation::Operation(operation) => described(endpoint, operation),
        };
    }
    Value::Object(paths)
}

fn described(endpoint: &Endpoint, operation: &Operation) -> Value {
    let (scope, for_operators) = match endpoint.handler {
        Handler::Open(_) => ("No key is needed.", false),
        Handler::Reader(_) => ("Needs the token of an operator, of any role, or the admin token.", true),
        Handler::Operator(_) => {
            ("Needs the token of an operator with the role `operator` or `owner`, or the admin token.", true)
        }
        Handler::Owner(_) => ("Needs the token of an operator with the role `owner`, or the admin token.", true),
        Handler::Key(action, _) if action.writes() => ("Needs a key with scope `read_write`.", false),
        Handler::Key(..) => ("Needs a key with scope `read` or `read_write`.", false),
    };
    let mut value = json!({
        "operationId": operation.id,
        "tags": [tag(operation.spec)],
        "summary": operation.summary,
        "description": format!("{} {scope}", operation.description).trim(),
        "parameters": parameters(endpoint, operation),
    });
    if for_operators {
        value["security"] = json!([{"adminToken": []}]);
    }
    if let Some(body) = &operation.body {
        value["requestBody"] = request_body(operation.spec, body);
    }
    value["responses"] = responses(endpoint, operation);
    value
}

fn parameters(endpoint: &Endpoint, operation: &Operation) -> Value {
    let spec = operation.spec;
    let mut list = Vec::new();
    if endpoint.path.contains("{id}") {
        list.push(parts::path_id("id", spec.object, spec.fields[0].example));
    }
    if endpoint.path.contains("{organization}") {
        list.push(parts::path_id("organization", "organization", "\"0190d0f2-7c3a-7cc0-8000-000000000000\""));
    }
    for parameter in &operation.parameters {
        match parameter {
            Parameter::Shared(name) => list.push(json!({"$ref": format!("#/components/parameters/{name}")})),
            Parameter::Filters => {
                list.extend(spec.filters.iter().map(|filter| parts::filter(spec, filter)));
                list.extend(spec.ranges.iter().flat_map(|range| parts::range(spec, range)));
            }
            Parameter::Own(parameter) => list.push(parameter.clone()),
        }
    }
    Value::Array(list)
}

fn request_body(spec: &'static ResourceSpec, body: &BodySchema) -> Value {
    let named = |suffix: &str| json!({"$ref": format!("#/components/schemas/{}{suffix}", camel(spec.object))});
    match body {
        BodySchema::Create => {
            let required = spec.fields.iter().any(|field| field.create == Presence::Required);
            parts::json_body(required, named("Create"), schema::example_body(spec, Verb::Create))
        }
        BodySchema::Update => parts::json_body(false, named("Update"), schema::example_body(spec, Verb::Update)),
        BodySchema::Own(body) => body.clone(),
    }
}

fn responses(endpoint: &Endpoint, operation: &Operation) -> Value {
    let (spec, reply) = (operation.spec, &operation.reply);
    let name = reply.schema.clone().unwrap_or_else(|| camel(spec.object));
    let example = schema::example_reply(spec, reply.example);
    let mut ok = parts::success(&name, example);
    if reply.revision {
        ok["headers"]["ETag"] = parts::header("ETag");
    }
    if reply.replayed {
        ok["headers"]["Idempotent-Replayed"] = parts::header("IdempotentReplayed");
    }
    if matches!(operation.body, Some(BodySchema::Create | BodySchema::Update)) && parts::has_notices(spec) {
        ok["headers"]["Rental-Notice"] = parts::header("RentalNotice");
    }
    if reply.example == Example::List || LEAVING_OUT.contains(&&*name) {
        ok["headers"]["Rental-Damaged-Rows"] = parts::header("DamagedRows");
    }
    if let Some(content) = &reply.instead {
        ok["content"] = content.clone();
    }
    if let Some((media, content)) = &reply.beside {
        ok["content"][*media] = content.clone();
    }
    let mut responses = Map::new();
    responses.insert("200".into(), ok);
    let takes =
        |name: &str| operation.parameters.iter().any(|one| matches!(one, Parameter::Shared(known) if *known == name));
    if takes("IfNoneMatch") {
        responses.insert("304".into(), json!({"$ref": "#/components/responses/NotModified"}));
    }
    let writes = endpoint.method != Method::GET;
    let keyed = matches!(endpoint.handler, Handler::Key(..));
    for (status, applies) in [
        ("400", true),
        ("401", true),
        ("403", keyed || endpoint.handler.role().is_some_and(|role| role != Role::ReadOnly)),
        ("404", endpoint.path.contains('{')),
        ("408", writes),
        ("409", operation.conflicts),
        ("412", takes("IfMatch")),
        ("413", writes),
        ("415", writes),
        ("422", writes),
        ("429", keyed),
        ("500", true),
        ("501", writes),
        ("503", true),
    ] {
        if applies {
            responses.insert(status.into(), parts::problem(status));
        }
    }
    Value::Object(responses)
}
