//! `store check` and `store repair` of a file that a server filled.

use super::{Cli, ran};
use crate::{
    events_in_store::stop,
    support::{Organization, Server, flip},
};
use serde_json::json;

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
