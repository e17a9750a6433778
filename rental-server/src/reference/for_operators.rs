//! The operators' part of the document: `/admin/v1`, with its own security scheme, and the components that it uses.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const INTRODUCTION: &str = "\
The calls of those who run the server, such as organizations, API keys, webhook endpoints, invoices and imports. Every \
request carries `Authorization: Bearer <TOKEN>`: the admin token, or the token of a named operator, whose role decides \
what it allows. With `--operator-listen`, the server takes these calls at that address only.

What holds for amounts, lists, retries, lost updates and errors is in `/openapi.json`.";

/// The part of an OpenAPI 3.1 document for operators.
pub(super) fn of(document: &Value) -> Value {
    let paths = document["paths"].as_object().into_iter().flatten().filter(|(path, _)| path.starts_with("/admin/v1/"));
    let paths: Map<String, Value> = paths.map(|(path, item)| (path.clone(), item.clone())).collect();
    let paths = Value::Object(paths);
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
        "tags": tags(document, &paths),
        "components": components(document, &paths),
        "paths": paths,
    })
}

/// The tags of these operations.
fn tags(document: &Value, paths: &Value) -> Value {
    let operations =
        paths.as_object().into_iter().flat_map(Map::values).filter_map(Value::as_object).flat_map(Map::values);
    let used: BTreeSet<&str> = operations.filter_map(|operation| operation["tags"][0].as_str()).collect();
    let tags = document["tags"].as_array().into_iter().flatten();
    tags.filter(|tag| tag["name"].as_str().is_some_and(|name| used.contains(name))).cloned().collect()
}

/// The components that these paths lead to.
fn components(document: &Value, paths: &Value) -> Value {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![paths]);
    while let Some(value) = waiting.pop() {
        references(value, &mut |pointer| {
            if found.insert(pointer.to_owned()) {
                waiting.extend(document.pointer(pointer));
            }
        });
    }
    let kept = |section: &str, name: &str| match section {
        "securitySchemes" => name == "adminToken",
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
