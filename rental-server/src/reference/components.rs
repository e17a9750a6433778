//! Gives names to the types inside of schemas: a schema with a `title` becomes a component of that name.
//!
//! `/docs` shows such a type where it is used. Generated clients need the names: they would call the type of a status
//! `Status1`, or `RentalCreateStatusType2Type1`.

use serde_json::{Map, Value, json};

/// Members whose values are no schemas.
pub(super) const DATA: [&str; 4] = ["default", "enum", "example", "examples"];
/// Members that belong to one use of a type, not to the type.
const OF_A_USE: [&str; 2] = ["default", "examples"];

/// The document with a component for each title.
pub(super) fn with_names(document: &Value) -> Value {
    let mut types = Map::new();
    let mut document = named(document, &mut types);
    if let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
        schemas.extend(types);
    }
    document
}

fn named(value: &Value, types: &mut Map<String, Value>) -> Value {
    match value {
        Value::Array(values) => values.iter().map(|value| named(value, types)).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let value = if DATA.contains(&name.as_str()) { value.clone() } else { named(value, types) };
                (name.clone(), value)
            };
            let members: Map<String, Value> = members.iter().map(member).collect();
            match &members.get("title") {
                Some(Value::String(name)) if members.contains_key("type") => reference(name, &members, types),
                _ => Value::Object(members),
            }
        }
        other => other.clone(),
    }
}

/// A reference to the type of this name, which gets its component when this is the first use.
fn reference(name: &str, members: &Map<String, Value>, types: &mut Map<String, Value>) -> Value {
    let is_null = |value: &Value| value.is_null() || value == "null";
    let nullable = members["type"].as_array().is_some_and(|kinds| kinds.iter().any(is_null));
    let mut definition = Map::new();
    for (member, value) in
        members.iter().filter(|(member, _)| *member != "title" && !OF_A_USE.contains(&member.as_str()))
    {
        let value = match value {
            Value::Array(values) if member == "enum" => values.iter().filter(|one| !is_null(one)).cloned().collect(),
            Value::Array(kinds) if member == "type" => {
                kinds.iter().find(|kind| !is_null(kind)).cloned().unwrap_or_default()
            }
            other => other.clone(),
        };
        definition.insert(member.clone(), value);
    }
    types.entry(name).or_insert(Value::Object(definition));
    let reference = json!({"$ref": format!("#/components/schemas/{name}")});
    let mut using = if nullable { json!({"anyOf": [reference, {"type": "null"}]}) } else { reference };
    for member in OF_A_USE.iter().chain(members.contains_key("enum").then_some(&"description")) {
        if let Some(value) = members.get(*member) {
            using[*member] = value.clone();
        }
    }
    using
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{endpoints::ENDPOINTS, reference::document};
    use std::collections::BTreeMap;

    #[test]
    fn a_schema_with_a_title_becomes_a_component() {
        let words = json!({"title": "Size", "type": ["string", "null"], "enum": ["a4", null], "description": "Of pages.", "examples": ["a4"]});
        let place = json!({"title": "Place", "type": "object", "description": "A place.", "properties": {"title": {"type": "string"}, "size": words}});
        let document = json!({"info": {"title": "An API"}, "components": {"schemas": {"Thing": {"type": "object", "properties": {"at": place}}}}});
        let named = with_names(&document);
        let size = json!({"anyOf": [{"$ref": "#/components/schemas/Size"}, {"type": "null"}], "examples": ["a4"], "description": "Of pages."});
        assert_eq!(named["info"], document["info"]);
        assert_eq!(
            named["components"]["schemas"],
            json!({
                "Thing": {"type": "object", "properties": {"at": {"$ref": "#/components/schemas/Place"}}},
                "Size": {"type": "string", "enum": ["a4"], "description": "Of pages."},
                "Place": {"type": "object", "description": "A place.", "properties": {"title": {"type": "string"}, "size": size}},
            })
        );
    }

    /// Calls `check` with each schema that has a title.
    fn titled(value: &Value, check: &mut impl FnMut(&str, &Value)) {
        if let (Some(name), Some(_)) = (value["title"].as_str(), value.get("type")) {
            check(name, value);
        }
        match value {
            Value::Array(values) => values.iter().for_each(|value| titled(value, check)),
            Value::Object(members) => members.values().for_each(|value| titled(value, check)),
            _ => {}
        }
    }

    #[test]
    fn schemas_of_one_title_are_alike_and_no_component_has_that_name() {
        let document = document::value(&ENDPOINTS);
        let mut known = BTreeMap::new();
        titled(&document, &mut |name, schema| {
            let words: Vec<Value> =
                schema["enum"].as_array().into_iter().flatten().filter(|one| !one.is_null()).cloned().collect();
            let what = (words, schema["properties"].clone(), schema["required"].clone());
            assert_eq!(*known.entry(name.to_owned()).or_insert_with(|| what.clone()), what, "{name}");
            assert!(document["components"]["schemas"].get(name).is_none(), "{name}");
        });
        assert!(known.len() > 30, "{:?}", known.keys());
    }
}
