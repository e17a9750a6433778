//! The OpenAPI documents have what generators of clients need.

use super::{openapi, whole};
use crate::support::Server;
use rental_core::resources::event::EVENT_NAMES;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Calls `check` with the place and value of every object of the document, except in examples.
fn walk(value: &Value, place: &str, check: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(members) => {
            check(place, value);
            for (name, value) in members.iter().filter(|(name, _)| !["example", "examples"].contains(&name.as_str())) {
                walk(value, &format!("{place}/{name}"), check);
            }
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(at, value)| walk(value, &format!("{place}/{at}"), check));
        }
        _ => {}
    }
}

/// Whether a schema allows values of a JSON type.
fn allows(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
}

fn fits_32_bits(bound: &Value) -> bool {
    bound.as_i64().is_some_and(|bound| i32::try_from(bound).is_ok())
}

/// Generators make one class for each tag: a shared tag lets webhooks overwrite the class of the API.
#[test]
fn webhooks_share_no_tag_with_a_path() {
    let document = whole();
    let tag = |operation: &Value| operation["tags"][0].as_str().expect("a tag").to_owned();
    let operations = |items: &Value| -> BTreeSet<String> {
        let items = items.as_object().expect("items").values();
        items.flat_map(|item| item.as_object().expect("operations").values()).map(tag).collect()
    };
    let (paths, webhooks) = (operations(&document["paths"]), operations(&document["webhooks"]));
    assert_eq!(webhooks, BTreeSet::from(["Webhooks".to_owned()]));
    assert!(paths.is_disjoint(&webhooks), "{paths:?}");
    let declared = document["tags"].as_array().expect("tags").iter().find(|tag| tag["name"] == "Webhooks");
    assert!(declared.is_some_and(|tag| !tag["description"].as_str().expect("text").is_empty()), "{declared:?}");
    assert_eq!(document["webhooks"].as_object().map(serde_json::Map::len), Some(EVENT_NAMES.len()));
}

/// Without a format, generators choose 32 bits: `1234567.89` became `1234567.9`, and `Event.created` ended in 2038.
#[test]
fn every_number_of_the_document_says_how_wide_it_is() {
    let (mut numbers, mut integers, mut wrong) = (0, 0, Vec::new());
    walk(&whole(), "", &mut |place, schema| {
        if allows(schema, "number") {
            numbers += 1;
            if schema["format"] != "double" {
                wrong.push(format!("{place}: no `double`"));
            }
        }
        if allows(schema, "integer") {
            integers += 1;
            let small = fits_32_bits(&schema["minimum"]) && fits_32_bits(&schema["maximum"]);
            if schema["format"] != if small { "int32" } else { "int64" } {
                wrong.push(format!("{place}: {schema}"));
            }
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(numbers > 20 && integers > 25, "{numbers} {integers}");
}

/// Generators for Go make a function `NewVehicle` for a schema `Vehicle`: a schema of that name is declared twice.
#[test]
fn no_schema_is_named_like_a_constructor_of_another() {
    let document = whole();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let wrong: Vec<&String> =
        schemas.keys().filter(|name| name.strip_prefix("New").is_some_and(|rest| schemas.contains_key(rest))).collect();
    assert!(schemas.contains_key("ApiKey") && wrong.is_empty(), "{wrong:?}");
}

/// The members that generators and type checkers read must be beside an `anyOf`, `oneOf` or `allOf`, not inside parts
/// that only say `required`.
#[test]
fn no_part_of_a_combined_schema_is_without_a_type() {
    let mut wrong = Vec::new();
    walk(&whole(), "", &mut |place, schema| {
        for combined in ["anyOf", "oneOf", "allOf"] {
            for part in schema[combined].as_array().into_iter().flatten() {
                if part["type"].is_null() && part["$ref"].is_null() {
                    wrong.push(format!("{place}/{combined}: {part}"));
                }
            }
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_rule_for_invoice_lines_is_in_the_description() {
    let document = whole();
    let schemas = &document["components"]["schemas"];
    let items = |schema: &str| schemas[schema]["properties"]["lines"]["items"]["$ref"].clone();
    assert_eq!(items("Invoice"), "#/components/schemas/InvoiceLine");
    assert_eq!(items("InvoiceCreate"), "#/components/schemas/InvoiceLineCreate");
    let described =
        [&schemas["InvoiceCreate"]["properties"]["lines"]["description"], &schemas["InvoiceLineCreate"]["description"]];
    for text in described {
        let text = text.as_str().expect("text");
        let names = ["`description`", "`amount`", "`rental_id`", "`toll_id`", "`violation_id`"];
        assert!(names.iter().all(|name| text.contains(name)), "{text}");
    }
    // Each line of a response has all of its members.
    let line = &schemas["InvoiceLine"];
    let names = line["properties"].as_object().expect("properties").keys();
    assert_eq!(names.map(|name| Value::from(name.as_str())).collect::<Vec<_>>(), *line["required"].as_array().unwrap());
}

/// openapi-typescript makes every property with a `default` a required one.
#[test]
fn no_schema_of_a_body_has_a_default() {
    let document = whole();
    let mut wrong = Vec::new();
    let mut check = |place: &str, schema: &Value| {
        if schema.get("default").is_some() {
            wrong.push(place.to_owned());
        }
    };
    walk(&document["components"]["schemas"], "", &mut check);
    for (path, item) in document["paths"].as_object().expect("paths") {
        for operation in item.as_object().expect("operations").values() {
            walk(&operation["requestBody"], path, &mut check);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    let schemas = &document["components"]["schemas"];
    for (schema, field, default) in [
        ("VehicleCreate", "status", "available"),
        ("CustomerCreate", "preferred_language", "en"),
        ("RentalCreate", "status", "NEW"),
        ("LeadCreate", "source_channel", "api"),
        ("OrganizationCreate", "plan", "pro"),
    ] {
        let text = schemas[schema]["properties"][field]["description"].as_str().expect("text");
        assert!(text.ends_with(&format!("Default: `{default}`.")), "{schema}.{field}: {text}");
    }
}

/// openapi-typescript makes `Record<string, never>` of an object without `additionalProperties`.
#[test]
fn an_object_of_any_members_says_so() {
    let mut free = BTreeSet::new();
    walk(&whole(), "", &mut |place, schema| {
        if allows(schema, "object") && schema["properties"].is_null() {
            let members = &schema["additionalProperties"];
            assert!(members == true || members.is_object(), "{place}: {members}");
            if members == true {
                free.insert(place.to_owned());
            }
        }
    });
    for known in ["Lead/properties/raw_data", "LeadCreate/properties/raw_data", "Event/properties/data"] {
        assert!(free.contains(&format!("/components/schemas/{known}")), "{known}");
    }
}

/// `allOf` of a free `data` and a typed one is a type without values. Each webhook has one schema of its own.
#[test]
fn the_type_of_a_webhook_decides_the_schema_of_its_data() {
    let document = openapi();
    let schemas = &document["components"]["schemas"];
    let event: BTreeSet<&String> = schemas["Event"]["properties"].as_object().expect("properties").keys().collect();
    for (name, item) in document["webhooks"].as_object().expect("webhooks") {
        let reference = item["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
        let schema = document.pointer(&reference.expect("a reference")[1..]).expect("it leads somewhere");
        let properties = schema["properties"].as_object().expect("properties");
        assert_eq!(properties.keys().collect::<BTreeSet<_>>(), event, "{name}");
        assert_eq!(schema["required"].as_array().map(Vec::len), Some(event.len()), "{name}");
        assert_eq!(properties["type"]["const"], **name);
        let object = name.split('.').next().expect("a word");
        let data = document.pointer(&properties["data"]["$ref"].as_str().expect("a reference")[1..]).expect("a schema");
        assert_eq!(data["properties"]["object"]["const"], object, "{name}");
    }
}

/// A program passes on the `next_cursor` of a response, which is null at the end.
#[test]
fn a_cursor_in_a_body_may_be_null_as_the_document_says() {
    let (organization, document) = (Server::shared().organization(), whole());
    let url = json!({"organization_id": organization.id, "url": "https://example.com/hooks"});
    let endpoint = organization.server.admin("POST", "/admin/v1/webhook_endpoints", &url).id();
    let time = "2026-05-05T00:00:00Z";
    for (path, id, mut body) in [
        ("/admin/v1/webhook_endpoints/{id}/recover", endpoint.as_str(), json!({"since": time})),
        ("/admin/v1/webhook_endpoints/enable", "", json!({"disabled_since": "2100-01-01T00:00:00Z", "dry_run": true})),
        ("/admin/v1/organizations/{organization}/tolls/suggestions", organization.id.as_str(), json!({})),
        ("/admin/v1/organizations/{organization}/violations/suggestions", organization.id.as_str(), json!({})),
    ] {
        let content = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"];
        let cursor = &content["schema"]["properties"]["starting_after"];
        assert!(allows(cursor, "null") && allows(cursor, "string"), "{path}: {cursor}");
        body["starting_after"] = Value::Null;
        organization.server.admin("POST", &path.replace("{id}", id).replace("{organization}", id), &body).ok();
    }
}
