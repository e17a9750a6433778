//! SQL views of the records, for people who query the database: one view for each resource, with a column for each field.
//! They are built from the same descriptions as the API.
//!
//! The views are read-only and read the table of rows. The column `organization_id` comes from the key, so that every query
//! can filter by it.

use crate::{
    resources,
    rows::Tag,
    schema::{FieldSpec, Kind, ResourceSpec},
};

/// The SQL view of one resource.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct View {
    /// The name of the view: the plural of the resource.
    pub name: &'static str,
    /// The statement that creates or replaces the view.
    pub create: String,
    /// The comment of the view in the database.
    pub comment: String,
}

/// The views of all resources in `schema`, over its table `rows`.
#[must_use]
pub fn all(schema: &str) -> Vec<View> {
    resources::specs().map(|spec| view(schema, spec)).collect()
}

fn view(schema: &str, spec: &'static ResourceSpec) -> View {
    let own = spec.fields.iter().any(|field| field.name == "organization_id");
    let mut columns: Vec<String> = Vec::new();
    if !own {
        // Bytes 2 to 17 of a record's key (`rows::Row::Record`).
        columns.push("encode(substring(key from 2 for 16), 'hex')::uuid AS organization_id".into());
    }
    columns.extend(spec.fields.iter().filter(|field| field.name != "object").map(column));
    columns.push("revision".into());
    let text = "convert_from(value, 'UTF8')";
    // PostgreSQL has no text with U+0000 and rejects JSON in which it is escaped. Only free JSON of clients can contain it.
    // The view shows it as U+FFFD.
    let free = spec.fields.iter().any(|field| matches!(field.kind, Kind::Json(_)));
    let text = if free { format!(r"replace({text}, '\u0000', '\ufffd')") } else { text.to_owned() };
    let create = format!(
        "CREATE OR REPLACE VIEW {schema}.{name} AS SELECT\n  {columns}\nFROM (SELECT key, revision, {text}::json AS object FROM {schema}.rows WHERE key >= '\\x{first:02x}'::bytea AND key < '\\x{behind:02x}'::bytea AND length(key) = 34 \
         AND get_byte(key, 17) = {tag}) AS records",
        name = spec.plural,
        columns = columns.join(",\n  "),
        first = Tag::Record as u8,
        behind = Tag::Record as u8 + 1,
        tag = spec.tag,
    );
    View { name: spec.plural, create, comment: spec.doc.replace('\'', "''") }
}

/// The type is `json`, because `jsonb` rejects some escapes in the JSON of clients and one such row would break the view.
fn column(field: &FieldSpec) -> String {
    let name = field.name;
    match sql_type(field.kind) {
        "json" => format!("object->'{name}' AS {name}"),
        "text" => format!("object->>'{name}' AS {name}"),
        other => format!("(object->>'{name}')::{other} AS {name}"),
    }
}

/// The type of a column.
fn sql_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Id | Kind::Reference(_) => "uuid",
        Kind::Money | Kind::Percent => "numeric",
        Kind::Integer(..) => "bigint",
        Kind::Boolean => "boolean",
        Kind::Date => "date",
        Kind::Time => "timestamptz",
        Kind::References(_)
        | Kind::EarlierVehicles
        | Kind::Json(_)
        | Kind::Lines
        | Kind::CreditLines
        | Kind::Assignments
        | Kind::EventTypes
        | Kind::AttemptLog => "json",
        Kind::Object
        | Kind::Text(_)
        | Kind::Name(_)
        | Kind::Paragraph(..)
        | Kind::Email
        | Kind::Phone
        | Kind::Language
        | Kind::Currency
        | Kind::Word(_)
        | Kind::Url
        | Kind::TimeZone => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> String {
        all("rental").into_iter().find(|view| view.name == name).unwrap().create
    }

    #[test]
    fn every_resource_has_a_view_with_all_its_fields() {
        for (view, spec) in all("rental").iter().zip(resources::specs()) {
            assert_eq!(view.name, spec.plural);
            for field in spec.fields.iter().filter(|field| field.name != "object") {
                assert!(view.create.contains(&format!(" AS {}", field.name)), "{}.{}", spec.plural, field.name);
            }
            assert_eq!(view.create.matches(" AS organization_id").count(), 1, "{}", spec.plural);
        }
    }

    #[test]
    fn columns_have_the_types_of_their_kinds() {
        let rentals = named("rentals");
        for column in [
            "(object->>'vehicle_id')::uuid AS vehicle_id",
            "(object->>'start_date')::date AS start_date",
            "(object->>'final_price')::numeric AS final_price",
            "(object->>'rental_days')::bigint AS rental_days",
            "(object->>'damage_at_return')::boolean AS damage_at_return",
            "(object->>'created_at')::timestamptz AS created_at",
            "object->>'status' AS status",
            "get_byte(key, 17) = 3",
        ] {
            assert!(rentals.contains(column), "{column} in {rentals}");
        }
        assert!(named("invoices").contains("object->'lines' AS lines"));
    }
}
