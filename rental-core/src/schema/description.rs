//! The description of a resource as JSON, for the file of a schema version.

use super::{field_spec::Presence, kind::Kind, resource_spec::ResourceSpec};
use serde_json::{Value, json};

/// The parts of a description that stored rows depend on: names and kinds of fields, numbers of indexes and look-ups.
///
/// Any change in this JSON needs a new schema version. Documentation and examples are not part of it.
#[must_use]
pub fn describe(spec: &ResourceSpec) -> Value {
    let fields = spec.fields.iter().map(|field| {
        json!({
            "name": field.name,
            "kind": kind(field.kind),
            "nullable": field.nullable,
            "default": field.default,
            "on_create": presence(field.create),
            "on_update": presence(field.update),
        })
    });
    let indexes = spec.indexes.iter().map(|index| {
        let mut described = json!({"number": index.number, "fields": index.fields, "ordered_by": index.ordered_by});
        if let Some((field, words)) = index.only {
            described["only"] = json!({ field: words });
        }
        described
    });
    let look_ups = spec.look_ups.iter().map(|look_up| json!({"number": look_up.number, "name": look_up.name}));
    json!({
        "object": spec.object,
        "plural": spec.plural,
        "tag": spec.tag,
        "fields": fields.collect::<Vec<_>>(),
        "indexes": indexes.collect::<Vec<_>>(),
        "look_ups": look_ups.collect::<Vec<_>>(),
    })
}

fn presence(presence: Presence) -> &'static str {
    match presence {
        Presence::Never => "never",
        Presence::Optional => "optional",
        Presence::Required => "required",
    }
}

fn kind(kind: Kind) -> Value {
    let named = |name: &str| json!({"is": name});
    match kind {
        Kind::Id => named("id"),
        Kind::Object => named("object"),
        Kind::Text(max) => json!({"is": "text", "most_characters": max}),
        Kind::Name(max) => json!({"is": "name", "most_characters": max}),
        Kind::Paragraph(max, _) => json!({"is": "paragraph", "most_characters": max}),
        Kind::Email => named("email"),
        Kind::Phone => named("phone"),
        Kind::Language => named("language"),
        Kind::Integer(from, to) => json!({"is": "integer", "from": from, "to": to}),
        Kind::Money => named("money"),
        Kind::Currency => named("currency"),
        Kind::Boolean => named("boolean"),
        Kind::Date => named("date"),
        Kind::Time => named("time"),
        Kind::Word(words) => json!({"is": "word", "words": words}),
        Kind::Reference(object) => json!({"is": "reference", "object": object}),
        Kind::References(object) => json!({"is": "references", "object": object}),
        Kind::EarlierVehicles => named("earlier_vehicles"),
        Kind::Json(max) => json!({"is": "json", "most_bytes": max}),
        Kind::Url => named("url"),
        Kind::EventTypes => named("event_types"),
        Kind::AttemptLog => named("attempt_log"),
        Kind::Lines => named("lines"),
        Kind::CreditLines => named("credit_lines"),
        Kind::Assignments => named("assignments"),
        Kind::Percent => named("percent"),
        Kind::TimeZone => named("time_zone"),
    }
}
