//! `/v1/vehicles`

mod create;
mod get;
mod list;
mod update;

use crate::support::fields::{Table, integer, money, name, text, word};
use serde_json::json;

/// Every field that clients set (spec, Vehicle; decisions, "extra documented fields").
fn table() -> Table {
    let fields = vec![
        name("name", 255).required(),
        text("make", 255),
        text("model", 255),
        integer("year", 1900, 2100),
        text("color", 255),
        text("plate", 255),
        text("plate_state", 255),
        text("transponder_number", 255),
        text("turo_listing_id", 255),
        money("daily_rate"),
        money("deposit_amount"),
        word("status", &["available", "rented", "maintenance", "unavailable"]).starts_as("\"available\""),
    ];
    Table { plural: "vehicles", base: json!({"name": "White Tesla"}), fields }
}

/// What only the server sets.
const SERVER_ONLY: [&str; 2] = ["currency", "organization_id"];
