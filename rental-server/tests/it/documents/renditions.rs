//! Integrators and operators have documents of their own. The one in OpenAPI 3.0 says the same as the one in 3.1.

use super::{openapi, served, served_at};
use crate::{operator::listener, support::Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Calls `check` with every schema and with every other object that is not an example or a map of names.
fn walk(value: &Value, check: &mut impl FnMut(&Value)) {
    match value {
        Value::Object(members) => {
            check(value);
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("properties", Value::Object(properties)) => properties.values().for_each(|one| walk(one, check)),
                    ("example" | "examples" | "default" | "enum", _) => {}
                    _ => walk(value, check),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| walk(value, check)),
        _ => {}
    }
}

/// Method, path and id of every operation.
fn operations(document: &Value) -> BTreeSet<(String, String, String)> {
    let paths = document["paths"].as_object().expect("paths").iter();
    paths
        .flat_map(|(path, item)| {
            let id = |operation: &Value| operation["operationId"].as_str().expect("an id").to_owned();
            let item = item.as_object().expect("operations").iter();
            item.map(move |(method, operation)| (method.clone(), path.clone(), id(operation)))
        })
        .collect()
}

fn names(members: &Value) -> BTreeSet<&String> {
    members.as_object().expect("members").keys().collect()
}

/// Pointers to all components of a document.
fn components(document: &Value) -> BTreeSet<String> {
    let sections = document["components"].as_object().expect("components").iter();
    let pointer = |section, name| format!("/components/{section}/{name}");
    sections.flat_map(|(section, members)| names(members).into_iter().map(move |name| pointer(section, name))).collect()
}

/// Pointers to the components that the operations and webhooks of a document refer to.
fn used(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for part in ["paths", "webhooks"] {
        follow(document, &document[part], &mut found);
    }
    found
}

fn follow(document: &Value, value: &Value, found: &mut BTreeSet<String>) {
    walk(value, &mut |object| {
        if let Some(reference) = object["$ref"].as_str() {
            let pointer = reference.strip_prefix('#').expect("a reference inside");
            if found.insert(pointer.to_owned()) {
                follow(document, document.pointer(pointer).expect(pointer), found);
            }
        }
    });
}

/// Integrators generate clients from what is theirs (decisions, Second round).
#[track_caller]
fn check_that_operators_are_apart(public: &str, operators: &str) {
    let theirs = served_at(operators, "/openapi-admin.json");
    assert!(operations(&theirs).iter().filter(|(_, path, _)| path.starts_with("/admin/v1/")).count() > 60);
    let only_theirs = &components(&theirs) - &used(&served_at(public, "/openapi.json"));
    assert!(only_theirs.contains("/components/schemas/ApiKey"), "{only_theirs:?}");
    for path in ["/openapi.json", "/openapi-3.0.json"] {
        let api = served_at(public, path);
        let described = names(&api["paths"]);
        let of_operators: Vec<_> = described.iter().filter(|path| path.starts_with("/admin/v1")).collect();
        assert!(of_operators.is_empty(), "{path}: {of_operators:?}");
        assert!(described.len() > 20 && described.is_disjoint(&names(&theirs["paths"])), "{path}");
        assert_eq!(&components(&api) & &only_theirs, BTreeSet::new(), "{path}");
        assert_eq!(names(&api["components"]["securitySchemes"]), BTreeSet::from([&"apiKey".to_owned()]));
    }
}

#[test]
fn operators_have_a_document_of_their_own() {
    let address = &Server::shared().address;
    check_that_operators_are_apart(address, address);
}

#[test]
fn operators_with_an_address_of_their_own_have_their_document_there() {
    let (server, public) = listener::server();
    check_that_operators_are_apart(&public, &server.address);
    check_that_operators_are_apart(&server.address, &server.address);
}

#[test]
fn the_document_in_openapi_3_0_has_the_same_operations_and_types_and_no_words_of_3_1() {
    let (newer, older) = (openapi(), served("/openapi-3.0.json"));
    assert_eq!((&newer["openapi"], &older["openapi"]), (&"3.1.0".into(), &"3.0.3".into()));
    assert_eq!(operations(&older), operations(&newer));
    for section in names(&newer["components"]) {
        assert_eq!(names(&older["components"][section]), names(&newer["components"][section]));
    }
    assert_eq!(names(&older["x-webhooks"]), names(&newer["webhooks"]));
    assert!(older["webhooks"].is_null() && older["info"]["summary"].is_null());
    let (mut nullable, mut references) = (0, 0);
    walk(&older, &mut |object| {
        for word in ["const", "contentMediaType", "contentEncoding", "prefixItems", "if", "patternProperties"] {
            assert!(object.get(word).is_none(), "{object}");
        }
        assert!(!object["type"].is_array() && object["type"] != "null" && !object["examples"].is_array(), "{object}");
        assert!(!object["exclusiveMinimum"].is_number() && !object["exclusiveMaximum"].is_number(), "{object}");
        if object["nullable"] == true {
            nullable += 1;
            assert!(object["type"].is_string(), "{object}");
            assert!(object["enum"].as_array().is_none_or(|words| words.contains(&Value::Null)), "{object}");
        }
        if object["$ref"].is_string() {
            references += 1;
            assert_eq!(object.as_object().map(serde_json::Map::len), Some(1), "{object}");
        }
    });
    assert!(nullable > 200 && references > 900, "{nullable} {references}");
}

#[test]
fn the_operators_document_has_what_its_operations_refer_to_and_nothing_else() {
    let (api, theirs) = (openapi(), served("/openapi-admin.json"));
    let (scheme, used) = ("/components/securitySchemes/adminToken".to_owned(), used(&theirs));
    assert_eq!(&components(&theirs) - &used, BTreeSet::from([scheme]));
    let scheme = "/components/securitySchemes/apiKey".to_owned();
    assert_eq!(&components(&api) - &self::used(&api), BTreeSet::from([scheme]), "no component without a use");
    for pointer in used.iter().filter(|pointer| api.pointer(pointer).is_some()) {
        assert_eq!(theirs.pointer(pointer), api.pointer(pointer), "{pointer}");
    }
    let admin_token = json!([{"adminToken": []}]);
    assert_eq!(theirs["security"], admin_token);
    for (path, item) in theirs["paths"].as_object().expect("paths") {
        for operation in item.as_object().expect("operations").values() {
            // Anyone may read metrics and documents.
            let security = if path.starts_with("/admin/v1/") { admin_token.clone() } else { json!([]) };
            assert_eq!(operation["security"], security, "{path}");
            let tag = &operation["tags"][0];
            assert!(theirs["tags"].as_array().expect("tags").iter().any(|one| one["name"] == *tag), "{tag}");
        }
    }
}

/// Generators make one type of all errors of an operation: one without members, if a response has no body.
#[test]
fn every_error_has_the_same_body_and_every_array_has_items() {
    let mut errors = 0;
    for document in [openapi(), served("/openapi-admin.json"), served("/openapi-3.0.json")] {
        let paths = document["paths"].as_object().expect("paths").values();
        for operation in paths.flat_map(|item| item.as_object().expect("operations").values()) {
            let responses = operation["responses"].as_object().expect("responses").iter();
            for (status, response) in responses.filter(|(status, _)| status.as_str() >= "400") {
                let name = response["$ref"].as_str().expect("a shared response").rsplit('/').next().unwrap_or_default();
                let schema = &document["components"]["responses"][name]["content"]["application/json"]["schema"];
                assert_eq!(schema["$ref"], "#/components/schemas/Error", "{status} {operation}");
                errors += 1;
            }
        }
        walk(&document, &mut |object| {
            assert!(object["type"] != "array" || object["items"].is_object(), "{object}");
        });
    }
    assert!(errors > 1000, "{errors}");
}
