//! `store check` and `store repair` of a file that a server filled.

use super::{Cli, ran};
use crate::{
    events_in_store::stop,
    support::{Organization, Server, flip},
};
use rental_core::{
    resources::{Resource as _, customer::Customer, vehicle::Vehicle},
    store::{Batch, Store as _, redb::Redb},
    value::{Id, OrganizationId},
};
use serde_json::{Value, json};

#[test]
fn a_file_with_a_rotten_page_is_checked_and_repaired_by_no_command_and_leads_to_a_backup() {
    let Some(cli) = Cli::find() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.redb");
    let server = Server::start_on_file(directory.path(), &[]);
    let whose = server.organization();
    whose.post("/v1/customers", &json!({"full_name": "Damaged Ada"})).ok();
    drop(whose);
    stop(server);
    flip(&path, "Damaged Ada");
    let rotten = std::fs::read(&path).expect("the file");
    for words in ["check", "repair --yes"] {
        let refused = ran(&mut cli.command("http://127.0.0.1:1", &format!("store {words} redb:{}", path.display())));
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!((refused.stdout.clone() + &refused.stderr).contains("is damaged"), "{refused:?}");
        assert!(refused.stderr.contains("store restore"), "{refused:?}");
    }
    assert!(std::fs::read(&path).expect("the file") == rotten, "nothing was written");
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

#[test]
fn what_names_a_lost_customer_and_a_lost_vehicle_is_served_after_a_repair_and_its_nights_stay_taken() {
    let Some(cli) = Cli::find() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.redb");
    let server = Server::start_on_file(directory.path(), &[]);
    let whose = server.organization();
    let (vehicle, customer) = (whose.vehicle(json!({})), whose.customer(json!({})));
    let dates = json!({"vehicle_id": vehicle, "customer_id": customer, "start_date": "2096-06-01", "end_date": "2096-06-09", "status": "APPROVED"});
    let rental = whose.post("/v1/rentals", &dates).id();
    let toll =
        whose.recorded("tolls", &json!({"amount": 5, "agency": "E", "vehicle_id": vehicle, "customer_id": customer}));
    let bill = json!({"customer_id": customer, "rental_id": rental, "lines": [{"description": "Days", "amount": 10}]});
    let invoice = server.admin("POST", &format!("/admin/v1/organizations/{}/invoices", whose.id), &bill).id();
    let (id, read, write) = (whose.id.clone(), whose.read.clone(), whose.write.clone());
    drop(whose);
    stop(server);

    let organization: OrganizationId = Id::parse(&id).expect("an id");
    let mut lost = Batch::default();
    lost.delete(Vehicle::key(organization, Id::parse(&vehicle).expect("an id")));
    lost.delete(Customer::key(organization, Id::parse(&customer).expect("an id")));
    let store = Redb::open(&path, 1 << 20).expect("the store");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(store.commit(lost)).expect("a commit");
    store.close().expect("it closes");
    let run =
        |words: &str| ran(&mut cli.command("http://127.0.0.1:1", &format!("store {words} redb:{}", path.display())));
    assert_eq!(run("check").code, Some(1), "index entries lead to nothing");
    let repaired = run("repair --yes --json");
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    let told: Vec<String> = repaired.json()["left_listed"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| format!("{} {}", one["place"].as_str().expect("text"), one["what"].as_str().expect("text")))
        .collect();
    let tells = |whose: &str, of: &str| told.iter().any(|line| line.contains(whose) && line.contains(of));
    assert!(
        tells(&rental, &vehicle) && tells(&rental, &customer) && tells(&toll, &customer) && tells(&invoice, &customer)
    );
    let checked = run("check");
    assert!(checked.code == Some(0) && checked.stderr.contains("is gone"), "{checked:?}");

    let server = Server::start_on_file(directory.path(), &[]);
    let whose = Organization { server: &server, id: id.clone(), read, write };
    for (path, field, gone) in [
        (format!("/v1/rentals/{rental}"), "vehicle_id", &vehicle),
        (format!("/v1/tolls/{toll}"), "customer_id", &customer),
        (format!("/v1/invoices/{invoice}"), "customer_id", &customer),
    ] {
        assert_eq!(whose.get(&path).ok()[field], json!(gone), "{path}");
    }
    whose.get(&format!("/v1/customers/{customer}")).error(404, "invalid_request_error", "resource_missing");
    let count = |path: &str| whose.get(path).ok()["data"].as_array().map(Vec::len);
    assert_eq!(count(&format!("/v1/rentals?customer={customer}")), Some(1));
    assert_eq!(count(&format!("/v1/tolls?vehicle={vehicle}")), Some(1));
    assert_eq!(count("/v1/vehicles"), Some(0));
    assert_eq!(count("/v1/availability?from=2096-06-01&to=2096-06-09"), Some(0));
    for path in [
        format!("/admin/v1/invoices/{invoice}/print"),
        format!("/admin/v1/organizations/{id}/tolls/suggestions"),
        format!("/admin/v1/organizations/{id}/export"),
    ] {
        assert_eq!(server.admin("GET", &path, &Value::Null).status, 200, "{path}");
    }
    let other = whose.customer(json!({}));
    let again = json!({"vehicle_id": vehicle, "customer_id": other, "start_date": "2096-06-05", "end_date": "2096-06-06", "status": "APPROVED"});
    assert!(whose.post("/v1/rentals", &again).status < 500, "nobody gets a vehicle that is not there");
    assert!(whose.patch(&format!("/v1/tolls/{toll}"), &json!({"customer_id": other})).status < 500);
    whose.patch(&format!("/v1/rentals/{rental}"), &json!({"status": "CANCELLED"})).ok();
    drop(whose);
    stop(server);
    assert_eq!(run("check").code, Some(0));
}
