//! The same document in the words of OpenAPI 3.0, for tools that cannot read 3.1.
//!
//! A pure conversion: nothing about the API is written here.

use super::components::DATA;
use serde_json::{Map, Value, json};

/// An OpenAPI 3.1 document as 3.0.3. Webhooks, which 3.0 has not, are in `x-webhooks`.
pub(super) fn of(document: &Value) -> Value {
    let mut older = converted(document, document);
    older["openapi"] = json!("3.0.3");
    if let Some(info) = older["info"].as_object_mut() {
        info.retain(|name, _| name != "summary");
    }
    // Its name is an SPDX expression too.
    older["info"]["license"] =
        json!({"name": document["info"]["license"]["name"], "url": "https://spdx.org/licenses/"});
    older
}

fn converted(value: &Value, document: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(|value| converted(value, document)).collect(),
        Value::Object(members) => object(members, document),
        other => other.clone(),
    }
}

/// Converts the members one by one, so that they keep their order.
fn object(members: &Map<String, Value>, document: &Value) -> Value {
    let mut older = Map::new();
    for (name, value) in members {
        let (name, value) = match (name.as_str(), value) {
            ("webhooks", _) => ("x-webhooks", converted(value, document)),
            ("properties", Value::Object(properties)) => {
                let converted = |(name, schema): (&String, &Value)| (name.clone(), converted(schema, document));
                ("properties", properties.iter().map(converted).collect())
            }
            ("const", _) => ("enum", json!([value])),
            ("examples", Value::Array(examples)) => ("example", examples.first().cloned().unwrap_or_default()),
            ("type", Value::Array(kinds)) => {
                let others: Vec<&Value> = kinds.iter().filter(|kind| *kind != "null").collect();
                if others.len() < kinds.len() {
                    older.insert("nullable".into(), json!(true));
                }
                match others.as_slice() {
                    [kind] => ("type", json!(kind)),
                    _ => ("anyOf", others.iter().map(|kind| json!({"type": kind})).collect()),
                }
            }
            // In 3.0 a reference cannot be null, so the type is repeated here.
            ("anyOf", Value::Array(parts)) if parts.len() == 2 && parts[1]["type"] == "null" => {
                for (name, value) in nullable(resolved(&parts[0], document), document) {
                    older.entry(name).or_insert(value);
                }
                continue;
            }
            // 3.0 ignores what is beside a reference.
            ("$ref", _) if members.len() > 1 => ("allOf", json!([{"$ref": value}])),
            (name, _) if DATA.contains(&name) => (name, value.clone()),
            (name, _) => (name, converted(value, document)),
        };
        older.insert(name.to_owned(), value);
    }
    Value::Object(older)
}

/// What a reference leads to.
fn resolved<'v>(schema: &'v Value, document: &'v Value) -> &'v Value {
    let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

/// The members of a schema that takes null as well.
fn nullable(schema: &Value, document: &Value) -> Map<String, Value> {
    let mut schema = converted(schema, document);
    schema["nullable"] = json!(true);
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    schema.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: Value) {
        let document = json!({"components": {"schemas": {"Size": {"type": "string", "enum": ["a4"]}}}});
        assert_eq!(converted(&schema, &document), expected);
    }

    #[test]
    fn null_becomes_nullable() {
        check(json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true}));
        check(json!({"type": ["string", "integer"]}), json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}));
        let (size, nothing) = (json!({"$ref": "#/components/schemas/Size"}), json!({"type": "null"}));
        check(
            json!({"anyOf": [size, nothing], "description": "Of pages."}),
            json!({"type": "string", "enum": ["a4", null], "nullable": true, "description": "Of pages."}),
        );
    }

    #[test]
    fn a_reference_stays_alone() {
        check(json!({"$ref": "#/a"}), json!({"$ref": "#/a"}));
        check(json!({"$ref": "#/a", "description": "B"}), json!({"allOf": [{"$ref": "#/a"}], "description": "B"}));
    }

    #[test]
    fn names_of_properties_and_examples_of_responses_are_no_keywords() {
        let property =
            json!({"properties": {"const": {"const": 1, "examples": [1]}, "type": {"type": ["integer", "null"]}}});
        check(
            property,
            json!({"properties": {"const": {"enum": [1], "example": 1}, "type": {"type": "integer", "nullable": true}}}),
        );
        let kept = json!({"examples": {"one": {"value": {"const": 1, "type": ["a"]}}}, "example": {"const": [null]}});
        check(kept.clone(), kept);
    }
}
