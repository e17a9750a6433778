//! What operators do for an organization: imports, who pays, invoices that bill once, and the log of all of it.

mod assignments;
mod attachments;
mod audit;
mod billing;
mod billing_settings;
mod conservation;
mod credits;
mod deletion;
mod discounts;
mod drafts;
mod erased_in_imports;
mod formats;
mod identifiers;
mod imports;
mod leads;
pub(crate) mod listener;
pub(crate) mod operators;
mod reductions;
pub(crate) mod suggestions;
mod transfer;
mod twins;
mod violation_lists;

use crate::support::{Connection, Organization, Reply};
use serde_json::Value;

/// Sends a file; `query` begins with `?` or is empty.
pub(crate) fn import(organization: &Organization, plural: &str, query: &str, file: &str) -> Reply {
    let path = format!("/admin/v1/organizations/{}/{plural}/import{query}", organization.id);
    let token = format!("Bearer {}", organization.server.admin_token);
    let headers = [("Authorization", token.as_str()), ("Content-Type", "text/csv")];
    Connection::open(&organization.server.address).send("POST", &path, &headers, file.as_bytes())
}

/// `created`, `updated`, `duplicates`, `skipped`, `invalid`; that they add up is checked on the way.
#[track_caller]
fn counts(answer: &Value) -> [u64; 5] {
    let counts = ["created", "updated", "duplicates", "skipped", "invalid"].map(|name| answer[name].as_u64().unwrap());
    assert_eq!(answer["received"].as_u64(), Some(counts.iter().sum()), "{answer}");
    let listed = answer["errors"].as_array().unwrap().len() as u64 + answer["errors_omitted"].as_u64().unwrap();
    assert_eq!(listed, counts[4], "{answer}");
    if let Some(received) = answer["amounts"]["received"].as_f64() {
        let sum = |name| answer["amounts"][name].as_f64().unwrap();
        let sums: f64 = ["created", "updated", "duplicates", "skipped", "invalid"].map(sum).iter().sum();
        assert!((received - sums).abs() < 0.001, "{answer}");
    }
    counts
}

/// Every object of a list, newest first.
#[track_caller]
pub(crate) fn all(organization: &Organization, plural: &str) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = organization.get(&format!("/v1/{plural}?limit=100{cursor}")).ok();
        found.extend(page["data"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next_cursor"].as_str() else { return found };
        cursor = format!("&starting_after={next}");
    }
}
