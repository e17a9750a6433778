//! The specification's tables, the OpenAPI document and the server agree.

use super::{
    openapi, read,
    shell::{Kind, Program},
    whole,
};
use crate::support::{Connection, Reply, rules::OPERATIONS};
use serde_json::Value;
use std::collections::BTreeSet;

/// A table of a Markdown text, under its heading.
struct Table {
    heading: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn tables(text: &str) -> Vec<Table> {
    let mut found: Vec<Table> = Vec::new();
    let (mut heading, mut inside) = (String::new(), false);
    for line in text.lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_owned();
        }
        let Some(cells) = line.strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) else {
            inside = false;
            continue;
        };
        let cells: Vec<String> = cells.split('|').map(|cell| cell.trim().to_owned()).collect();
        if !inside {
            found.push(Table { heading: heading.clone(), header: cells, rows: Vec::new() });
        } else if !cells[0].starts_with("---") {
            found.last_mut().expect("it was begun").rows.push(cells);
        }
        inside = true;
    }
    found
}

/// What stands outside of parentheses.
fn outside(text: &str) -> String {
    let mut depth = 0;
    let keep = |c: &char| {
        depth += i32::from(*c == '(');
        let kept = depth == 0;
        depth -= i32::from(*c == ')');
        kept
    };
    text.chars().filter(keep).collect()
}

/// The names in a request cell, as (place, name, required): `path`, `query` or `body`.
fn named(request: &str) -> Vec<(&'static str, String, bool)> {
    let mut found = Vec::new();
    let (mut place, mut required) = ("", false);
    for (at, part) in outside(request).split('`').enumerate() {
        if at % 2 == 1 {
            found.push((place, part.to_owned(), required));
            continue;
        }
        place = ["query", "path", "body"].into_iter().find(|word| part.contains(word)).unwrap_or(place);
        required = part.contains("required") || required && !part.contains("optional");
    }
    found
}

/// The fields that a response cell was seen with: `vehicle object (seen: object, id)`.
fn seen(response: &str) -> Vec<&str> {
    let Some((_, rest)) = response.split_once("(seen") else { return Vec::new() };
    let (_, fields) = rest.split_once(':').expect("`seen:`");
    fields.trim_end_matches(')').split(',').map(str::trim).collect()
}

/// Follows a `$ref` inside the document.
fn resolve<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.map_or(value, |pointer| document.pointer(pointer).expect("the reference leads somewhere"))
}

fn body<'d>(document: &'d Value, content: &'d Value) -> &'d Value {
    resolve(document, &content["content"]["application/json"]["schema"])
}

fn has_field(schema: &Value, name: &str) -> bool {
    !schema["properties"][name].is_null()
}

#[test]
fn every_endpoint_parameter_and_field_of_the_specification_is_in_the_document() {
    let document = openapi();
    let mut rows = 0;
    for table in tables(&read("docs/spec.md")).iter().filter(|table| table.header[0] == "Method") {
        for row in &table.rows {
            let [method, path, scope, request, response] = row.as_slice() else { panic!("{row:?}") };
            rows += 1;
            let what = format!("{method} {path}");
            let operation = &document["paths"][path][method.to_lowercase()];
            assert!(operation.is_object(), "{what}");
            let words = format!("scope `{scope}`");
            assert!(operation["description"].as_str().expect("text").contains(&words), "{what}: {scope}");
            let taken = body(&document, &operation["requestBody"]);
            for (place, name, required) in named(request) {
                if place == "body" {
                    assert!(has_field(taken, &name), "{what}: {name} of the body");
                    let must = taken["required"].as_array().is_some_and(|names| names.contains(&Value::from(&*name)));
                    assert_eq!(must, required, "{what}: whether {name} is required");
                } else {
                    let mut all = operation["parameters"].as_array().expect("parameters").iter();
                    let known = |one: &&Value| {
                        let one = resolve(&document, one);
                        one["in"] == place && one["name"] == *name
                    };
                    assert!(all.find(known).is_some(), "{what}: {name} in the {place}");
                }
            }
            let mut given = body(&document, &operation["responses"]["200"]);
            if response.starts_with("list") {
                given = resolve(&document, &given["properties"]["data"]["items"]);
            }
            assert!(given["properties"].is_object(), "{what}: {response}");
            seen(response).iter().for_each(|name| assert!(has_field(given, name), "{what}: {name} of the answer"));
        }
    }
    let served = document["paths"].as_object().expect("paths").iter().filter(|row| row.0.starts_with("/v1/"));
    assert_eq!(served.map(|(_, item)| item.as_object().expect("operations").len()).sum::<usize>(), OPERATIONS.len());
    assert_eq!(rows, 21);
}

#[test]
fn every_field_and_event_type_of_the_specification_is_in_the_document() {
    let document = openapi();
    let schemas = &document["components"]["schemas"];
    let mut checked = BTreeSet::new();
    for table in tables(&read("docs/spec.md")) {
        let names = table.rows.iter().map(|row| row[0].as_str());
        let schema = match (table.header[0].as_str(), table.heading.as_str()) {
            ("Field", "List envelope") => &schemas["VehicleList"],
            ("Field", "Delivery") => &schemas["Event"],
            ("Field", resource) => &schemas[resource],
            ("Type", _) => {
                names.for_each(|name| assert!(document["webhooks"][name].is_object(), "{name}"));
                let ours = ["credit_note.created", "credit_note.refunded", "toll.detached", "violation.detached"];
                let all = document["webhooks"].as_object().map(serde_json::Map::len);
                assert_eq!(all, Some(table.rows.len() + ours.len()));
                continue;
            }
            _ => continue,
        };
        names.for_each(|name| assert!(has_field(schema, name), "{}: {name}", table.heading));
        checked.insert(table.heading);
    }
    assert_eq!(checked.len(), 9, "{checked:?}");
}

/// The organization of a request comes from its key and from nowhere else.
#[test]
fn no_request_of_the_public_api_names_an_organization() {
    let document = openapi();
    let paths = document["paths"].as_object().expect("paths").iter().filter(|row| row.0.starts_with("/v1/"));
    for (path, item) in paths {
        for operation in item.as_object().expect("operations").values() {
            let parameters = operation["parameters"].as_array().expect("parameters").iter();
            let mut names: Vec<&str> =
                parameters.filter_map(|one| resolve(&document, one)["name"].as_str()).chain([path.as_str()]).collect();
            let fields = body(&document, &operation["requestBody"])["properties"].as_object();
            names.extend(fields.into_iter().flat_map(|fields| fields.keys().map(String::as_str)));
            assert!(!names.iter().any(|name| name.contains("organization")), "{path}: {names:?}");
        }
    }
}

/// A PNG image of one pixel: the example of a document cannot have its bytes.
const ONE_PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\nIDAT\x78\x9c\x63\xa8\x07\0\0\x81\0\x80\xd3\x94\x53\x4a\0\0\0\0IEND\xae\x42\x60\x82";

/// Operations whose examples the demo does not serve yet: it has no endpoint, event or delivery with a known id.
const WITHOUT_SAMPLES: [&str; 4] = ["Webhook endpoints", "Events", "Deliveries", "Audit entries"];

#[test]
fn every_example_request_of_the_documents_works_on_a_fresh_demo() {
    let demo = Program::start(Kind::Demo);
    let document = whole();
    let paths = document["paths"].as_object().expect("paths").iter();
    let each =
        |(path, item)| Value::as_object(item).expect("operations").iter().map(move |(verb, of)| (path, verb, of));
    let mut operations: Vec<_> = paths.flat_map(each).collect();
    operations.retain(|(.., operation)| !WITHOUT_SAMPLES.contains(&operation["tags"][0].as_str().expect("a tag")));
    assert!(operations.len() > 40, "{}", operations.len());
    // What is erased or deleted cannot be used afterwards.
    operations.sort_by_key(|(_, verb, operation)| match operation["operationId"].as_str() {
        // The demo has no logo, and no vehicle has a calendar feed.
        Some("eraseCustomer" | "getOrganizationLogo" | "getVehicleCalendarFeed") => 1,
        Some("getErasure" | "deleteOrganizationLogo") => 2,
        Some("exportOrganization") => 3,
        Some("getOrganizationDeletion") => 5,
        _ if *verb == "delete" => 4,
        _ => 0,
    });
    let mut wrong = Vec::new();
    let export = operations.iter().find(|(.., operation)| operation["operationId"] == "exportOrganization");
    for (path, verb, operation) in &operations {
        let id = operation["operationId"].as_str().expect("an id");
        let mut reply = ask(&demo, &document, (path, verb, operation));
        // The erasing of before changes objects until it is complete.
        for _ in 0..50 {
            if id != "deleteOrganization" || reply.status != 409 {
                break;
            }
            ask(&demo, &document, *export.expect("an export"));
            reply = ask(&demo, &document, (path, verb, operation));
        }
        let expected = match id {
            // The example invoice was paid by the operation before.
            "voidInvoice" => 409,
            // Nobody knows the token of a calendar.
            "getCalendar" => 404,
            // The demo reads no calendars of others.
            "getCalendarFeed" | "pollCalendarFeed" | "deleteCalendarFeed" => 404,
            _ => 200,
        };
        if reply.status != expected {
            wrong.push(format!("{id}: {}", reply.text()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Sends the example of an operation.
fn ask(demo: &Program, document: &Value, (path, verb, operation): (&String, &String, &Value)) -> Reply {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let required = parameters.clone().filter(|one| one["in"] == "query" && one["required"] == true);
    let query = required.filter_map(|one| Some(format!("{}={}", one["name"].as_str()?, one["example"].as_str()?)));
    let query = query.collect::<Vec<_>>().join("&");
    let path = parameters.filter(|one| one["in"] == "path").fold(path.clone(), |path, one| {
        let (name, example) = (one["name"].as_str().expect("a name"), one["example"].as_str().expect("an example"));
        path.replace(&format!("{{{name}}}"), example)
    });
    let path = if query.is_empty() { path } else { format!("{path}?{query}") };
    let schemes = operation.get("security").unwrap_or_else(|| &document["security"]);
    let secret = match schemes[0].as_object().and_then(|scheme| scheme.keys().next()).map(String::as_str) {
        Some("adminToken") => Some("RENTAL_ADMIN_TOKEN"),
        Some(_) => Some("RENTAL_API_KEY"),
        None => None,
    };
    let bearer = secret.map(|variable| format!("Bearer {}", demo.variables[variable]));
    let mut headers: Vec<(&str, &str)> = bearer.iter().map(|value| ("Authorization", value.as_str())).collect();
    let content = &operation["requestBody"]["content"];
    let file =
        ["text/csv", "application/x-ndjson"].iter().find_map(|kind| Some((*kind, content[*kind]["example"].as_str()?)));
    let (kind, sent) = match (file, &content["application/json"]["example"]) {
        (Some((kind, file)), _) => (kind, file.as_bytes().to_owned()),
        _ if content["image/png"].is_object() => ("image/png", ONE_PIXEL.to_owned()),
        (_, Value::Null) => ("", Vec::new()),
        (_, example) => ("application/json", example.to_string().into_bytes()),
    };
    if !sent.is_empty() {
        headers.push(("Content-Type", kind));
    }
    Connection::open(demo.address()).send(&verb.to_uppercase(), &path, &headers, &sent)
}
