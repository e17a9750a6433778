//! The document in OpenAPI 3.0 and the operators' part of it say the same as the whole one.

use super::{openapi, served};
use serde_json::Value;
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
        }
        if object["$ref"].is_string() {
            references += 1;
            assert_eq!(object.as_object().map(serde_json::Map::len), Some(1), "{object}");
        }
    });
    assert!(nullable > 300 && references > 1000, "{nullable} {references}");
}

#[test]
fn the_operators_document_has_every_call_of_operators_and_what_they_refer_to() {
    let (whole, part) = (openapi(), served("/openapi-admin.json"));
    let expected: BTreeSet<_> =
        operations(&whole).into_iter().filter(|(_, path, _)| path.starts_with("/admin/v1/")).collect();
    assert_eq!(operations(&part), expected);
    assert!(expected.len() > 60, "{}", expected.len());
    assert_eq!(names(&part["components"]["securitySchemes"]), BTreeSet::from([&"adminToken".to_owned()]));
    let admin_token = serde_json::json!([{"adminToken": []}]);
    assert_eq!(part["security"], admin_token);
    let mut used = BTreeSet::new();
    walk(&part, &mut |object| {
        if let Some(reference) = object["$ref"].as_str() {
            let pointer = reference.strip_prefix('#').expect("a reference inside");
            assert_eq!(part.pointer(pointer).expect(pointer), whole.pointer(pointer).expect(pointer));
            used.insert(pointer.to_owned());
        }
        if object.get("operationId").is_some() {
            assert_eq!(object["security"], admin_token, "{}", object["operationId"]);
            let tag = &object["tags"][0];
            assert!(part["tags"].as_array().expect("tags").iter().any(|one| one["name"] == *tag), "{tag}");
        }
    });
    for (section, members) in part["components"].as_object().expect("components") {
        for name in names(members).into_iter().filter(|_| section != "securitySchemes") {
            assert!(used.contains(&format!("/components/{section}/{name}")), "{section} {name}");
        }
    }
}
