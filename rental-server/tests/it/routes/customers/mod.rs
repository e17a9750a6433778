//! `/v1/customers`

mod create;
mod get;
mod list;
mod update;

use crate::support::fields::{Table, email, language, name, paragraph, phone, text};
use serde_json::json;

/// Every field that clients set (spec, Customer; decisions, "extra documented fields").
fn table() -> Table {
    let fields = vec![
        name("full_name", 255).required(),
        email("email"),
        phone("phone"),
        language("preferred_language").starts_as("\"en\"").followed_by(&["language_chosen"]),
        text("source_channel", 255),
        paragraph("notes", 10_000),
        paragraph("address", 500),
    ];
    Table { plural: "customers", base: json!({"full_name": "Ada Lovelace"}), fields }
}
