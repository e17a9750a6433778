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
