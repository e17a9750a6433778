//! `store repair` of a file that a server filled: afterwards the server serves, exports and attaches as before.

use super::{Cli, ran};
use crate::{
    events_in_store::stop,
    support::{ADMIN_TOKEN, Connection, Organization, Server, flip},
};
use serde_json::{Value, json};

fn export(organization: &Organization<'_>) -> String {
    let path = format!("/admin/v1/organizations/{}/export?pace=full", organization.id);
    organization.server.admin("GET", &path, &Value::Null).text()
}

#[test]
fn after_the_loss_of_a_customer_and_a_vehicle_tolls_are_attached_and_an_export_is_imported_whole() {
    let Some(cli) = Cli::find() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.redb");
    let server = Server::start_on_file(directory.path(), &[]);
    let whose = server.organization();
    let vehicle =
        whose.post("/v1/vehicles", &json!({"name": "Damaged Kia", "plate": "ABC1234", "plate_state": "NY"})).id();
    let customer = whose.post("/v1/customers", &json!({"full_name": "Damaged Ada"})).id();
    let dates = json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "status": "APPROVED", "customer_id": customer, "vehicle_id": vehicle});
    let rental = whose.post("/v1/rentals", &dates).id();
    let active = json!({"status": "ACTIVE", "activated_at": "2026-06-01T09:00:00Z"});
    whose.patch(&format!("/v1/rentals/{rental}"), &active).ok();
    let toll = |plaza: &str| json!({"amount": 2.5, "agency": "MTA", "vehicle_id": vehicle, "occurred_at": "2026-06-02T14:03:00Z", "plaza": plaza});
    let first = whose.recorded("tolls", &toll("A"));
    let suggestions = format!("/admin/v1/organizations/{}/tolls/suggestions", whose.id);
    server.admin("POST", &suggestions, &json!({"limit": 10})).ok();
    whose.recorded("invoices", &json!({"customer_id": customer, "lines": [{"toll_id": first}]}));
    let (id, read, write) = (whose.id.clone(), whose.read.clone(), whose.write.clone());
    drop(whose);
    stop(server);

    ["Damaged Kia", "Damaged Ada"].into_iter().for_each(|name| flip(&path, name));
    let words = |word: &str| format!("store {word} redb:{}", path.display());
    let run = |words: &str| ran(&mut cli.command("http://127.0.0.1:1", words));
    assert_eq!(run(&words("check")).code, Some(1));
    let repaired = run(&format!("{} --yes", words("repair")));
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    assert!(
        repaired.stdout.contains("write the customer") || repaired.stdout.contains("write customer"),
        "{repaired:?}"
    );
    assert_eq!(run(&words("check")).code, Some(0));

    let server = Server::start_on_file(directory.path(), &[]);
    let whose = Organization { server: &server, id, read, write };
    assert_eq!(whose.get(&format!("/v1/customers/{customer}")).ok()["full_name"], "Lost record");
    assert_eq!(whose.get(&format!("/v1/tolls/{first}")).ok()["customer_id"], json!(customer));
    // The night is held still, and a later toll finds its customer.
    let again = json!({"vehicle_id": vehicle, "customer_id": customer, "start_date": "2026-06-03", "end_date": "2026-06-04", "status": "APPROVED"});
    whose.post("/v1/rentals", &again).error(409, "invalid_request_error", "vehicle_unavailable");
    let second = whose.recorded("tolls", &toll("B"));
    server.admin("POST", &suggestions, &json!({"limit": 10})).ok();
    assert_eq!(whose.get(&format!("/v1/tolls/{second}")).ok()["customer_id"], json!(customer));
    // A person gives the data back.
    whose.patch(&format!("/v1/customers/{customer}"), &json!({"full_name": "Ada Lovelace", "notes": null})).ok();
    let file = export(&whose);

    let elsewhere = Server::start(&[]);
    let there = elsewhere.organization();
    let token = format!("Bearer {ADMIN_TOKEN}");
    let headers = [("Authorization", token.as_str()), ("Content-Type", "application/x-ndjson")];
    let import = format!("/admin/v1/organizations/{}/import", there.id);
    let imported = Connection::open(&elsewhere.address).send("POST", &import, &headers, file.as_bytes()).ok();
    let objects = file.lines().count() as u64 - 3;
    assert_eq!((&imported["created"], &imported["invalid"]), (&json!(objects), &json!(0)), "{imported}");
}

#[test]
fn a_vehicle_that_is_booked_twice_is_told_with_both_ids_and_the_nights_and_a_repair_leaves_it_to_a_person() {
    let Some(cli) = Cli::find() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.redb");
    let server = Server::start_on_file(directory.path(), &[]);
    let whose = server.organization_with(&json!({"name": "Twice", "booking_policy": "open"}));
    let (vehicle, customer) = (whose.vehicle(json!({})), whose.customer(json!({})));
    let rental = |start: &str, end: &str| {
        let body = json!({"vehicle_id": vehicle, "customer_id": customer, "start_date": start, "end_date": end, "status": "APPROVED"});
        whose.post("/v1/rentals", &body).id()
    };
    let long = rental("2026-06-01", "2026-07-20");
    let short = rental("2026-06-03", "2026-06-05");
    // The day of return is free.
    rental("2026-07-20", "2026-07-22");
    let block = json!({"vehicle_id": vehicle, "start_date": "2026-07-19", "end_date": "2026-07-20"});
    let block = whose.post("/v1/blocks", &block).id();
    let (id, read, write) = (whose.id.clone(), whose.read.clone(), whose.write.clone());
    drop(whose);
    stop(server);

    let words = |word: &str| format!("store {word} redb:{}", path.display());
    let run = |words: &str| ran(&mut cli.command("http://127.0.0.1:1", words));
    assert_eq!(run(&words("check")).code, Some(0), "an open organization records such bookings");
    let server = Server::start_on_file(directory.path(), &[]);
    server.admin("PATCH", &format!("/admin/v1/organizations/{id}"), &json!({"booking_policy": "exclusive"})).ok();
    stop(server);
    let checked = run(&format!("{} --json", words("check")));
    assert!(checked.code == Some(1) && checked.stderr.contains("a person must decide"), "{checked:?}");
    let listed = checked.json()["listed"].as_array().expect("a list").clone();
    let told: Vec<(&str, &str)> =
        listed.iter().map(|one| (one["what"].as_str().expect("text"), one["remedy"].as_str().expect("text"))).collect();
    let first = format!("rental {long} and rental {short} both hold it on the nights from 2026-06-03 to 2026-06-04");
    let second = format!("rental {long} and block {block} both hold it on the night of 2026-07-19");
    assert_eq!(told, [(first.as_str(), "decision"), (second.as_str(), "decision")]);
    assert!(listed.iter().all(|one| one["place"].as_str().expect("text").contains(&vehicle)), "{listed:?}");
    let repaired = run(&format!("{} --yes", words("repair")));
    assert!(repaired.code == Some(1) && repaired.stdout.contains("a person must decide: vehicle"), "{repaired:?}");
    assert!(!repaired.stdout.contains("remove"), "{repaired:?}");

    let server = Server::start_on_file(directory.path(), &[]);
    let whose = Organization { server: &server, id, read, write };
    whose.patch(&format!("/v1/rentals/{long}"), &json!({"status": "CANCELLED"})).ok();
    drop(whose);
    stop(server);
    assert_eq!(run(&words("check")).code, Some(0));
}
