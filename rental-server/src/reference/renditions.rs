//! The parts of the document: the API, and what is for operators, each with its own security scheme and the components that it
//! uses. Each operation is in one of them.

use crate::endpoint::is_for_operators;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const INTRODUCTION: &str = "\
The calls of those who run the server, such as organizations, API keys, webhook endpoints, invoices and imports. Every \
request to `/admin/v1` carries `Authorization: Bearer <TOKEN>`: the admin token, or the token of a named operator, whose \
role decides what it allows. With `--operator-listen`, the server takes these calls at that address only.

What holds for amounts, lists, retries, lost updates and errors is in `/openapi.json`.";

/// The part of an OpenAPI 3.1 document for clients with an API key: all but what is for operators.
pub(super) fn for_clients(document: &Value) -> Value {
    let mut part = document.clone();
    part["paths"] = paths(document, |path| !is_for_operators(path));
    let used = json!([part["paths"], part["webhooks"]]);
    part["tags"] = tags(document, &used);
    part["components"] = components(document, &used, "apiKey");
    part
}

/// The part of an OpenAPI 3.1 document for operators.
pub(super) fn for_operators(document: &Value) -> Value {
    let paths = paths(document, is_for_operators);
    let mut info = document["info"].clone();
    info["title"] = json!("Rental platform API for operators");
    info["summary"] =
        json!("Organizations, keys, webhook endpoints, invoices, imports and the store of a rental platform.");
    info["description"] = json!(INTRODUCTION);
    json!({
        "openapi": document["openapi"],
        "info": info,
        "servers": document["servers"],
        "security": [{"adminToken": []}],
        "tags": tags(document, &json!([paths])),
        "components": components(document, &paths, "adminToken"),
        "paths": paths,
    })
}

fn paths(document: &Value, is_wanted: impl Fn(&str) -> bool) -> Value {
    let paths = document["paths"].as_object().into_iter().flatten().filter(|(path, _)| is_wanted(path));
    paths.map(|(path, item)| (path.clone(), item.clone())).collect::<Map<_, _>>().into()
}

/// The tags of the operations of these lists of paths.
fn tags(document: &Value, lists: &Value) -> Value {
    let paths = lists.as_array().into_iter().flatten().filter_map(Value::as_object).flat_map(Map::values);
    let operations = paths.filter_map(Value::as_object).flat_map(Map::values);
    let used: BTreeSet<&str> = operations.filter_map(|operation| operation["tags"][0].as_str()).collect();
    let tags = document["tags"].as_array().into_iter().flatten();
    tags.filter(|tag| tag["name"].as_str().is_some_and(|name| used.contains(name))).cloned().collect()
}

/// The components that these paths lead to.
fn components(document: &Value, paths: &Value, scheme: &str) -> Value {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![paths]);
    while let Some(value) = waiting.pop() {
        references(value, &mut |pointer| {
            if found.insert(pointer.to_owned()) {
                waiting.extend(document.pointer(pointer));
            }
        });
    }
    let kept = |section: &str, name: &str| match section {
        "securitySchemes" => name == scheme,
        _ => found.contains(&format!("/components/{section}/{name}")),
    };
    let section = |(section, members): (&String, &Value)| {
        let members = members.as_object().into_iter().flatten().filter(|(name, _)| kept(section, name));
        (section.clone(), members.map(|(name, member)| (name.clone(), member.clone())).collect::<Value>())
    };
    document["components"].as_object().into_iter().flatten().map(section).collect()
}

/// Calls `each` with the pointer of every reference.
fn references(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| references(value, each)),
        Value::Object(members) => {
            if let Some(pointer) = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
                each(pointer);
            }
            members.values().for_each(|value| references(value, each));
        }
        _ => {}
    }
}
