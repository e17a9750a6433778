//! `/v1/rentals`

mod create;
mod get;
mod list;
mod swap;
mod update;

use crate::support::{
    Organization,
    fields::{Table, boolean, date, money, paragraph, text, time, word},
};
use serde_json::json;

const STATUSES: [&str; 5] = ["NEW", "APPROVED", "ACTIVE", "COMPLETED", "CANCELLED"];

/// Every field that clients set, but the references (spec, Rental; decisions, "extra documented fields").
fn table(organization: &Organization<'_>) -> Table {
    let base = json!({"customer_id": organization.customer(json!({})), "vehicle_id": organization.vehicle(json!({}))});
    let fields = vec![
        text("booking_id", 255),
        date("start_date"),
        date("end_date"),
        word("pickup_type", &["pickup", "delivery"]),
        paragraph("delivery_location", 1000),
        money("final_price"),
        word("status", &STATUSES).starts_as("\"NEW\"").followed_by(&["activated_at", "completed_at"]),
        boolean("damage_at_return").starts_as("false").patch_only(),
        time("activated_at"),
        time("completed_at"),
    ];
    Table { plural: "rentals", base, fields }
}

/// What only the server sets.
const SERVER_ONLY: [&str; 4] = ["currency", "organization_id", "rental_days", "earlier_vehicles"];
