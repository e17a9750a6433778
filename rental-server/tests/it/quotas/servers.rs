//! Counts of several servers on one database, and of stores that came from elsewhere.

use super::{corrected, make, refused, seen, set, settled, until, used, work};
use crate::support::{Server, database};
use serde_json::json;

#[test]
fn what_several_servers_write_counts_together() {
    let Some(database) = database() else { return };
    let (one, other) = (Server::start_on(&database, &[]), Server::start_on(&database, &[]));
    let here = one.organization_with(&json!({"name": "Everywhere", "max_objects": 20}));
    let there = here.by_way_of(&other);
    for _ in 0..8 {
        make(&here).ok();
        make(&there).ok();
    }
    for organization in [&here, &there] {
        until("the sum of both", || (used(organization).0 == 16).then_some(()));
    }
    // A server that is gone leaves its counts, and another one takes them over.
    one.signal("KILL");
    one.wait_until_gone();
    until("the recount after the crash", || corrected(&other));
    assert_eq!(settled(&there).0, 16);
    until("a refusal", || (make(&there).status == 403).then_some(()));
    refused(&make(&there), "objects");
    let third = Server::start_on(&database, &[]);
    let again = here.by_way_of(&third);
    until("the counts of all", || (used(&again) == used(&there)).then_some(()));
    // A quota that one server changes is in force at the others.
    set(&again, &json!({"max_objects": 1000}));
    make(&there).ok();
}

#[test]
fn a_server_that_was_taken_for_dead_counts_on() {
    let Some(database) = database() else { return };
    let (one, other) = (Server::start_on(&database, &[]), Server::start_on(&database, &[]));
    let here = one.organization();
    let there = here.by_way_of(&other);
    make(&here).ok();
    until("the count", || (used(&there).0 == 1).then_some(()));
    one.signal("STOP");
    // Its head says that it counts, so its rows are moved and all is counted again.
    let recounted = || other.log().matches("what organizations use was recounted").count();
    let before = recounted();
    make(&there).ok();
    until("the recount", || (recounted() > before).then_some(()));
    one.signal("CONT");
    make(&here).ok();
    for organization in [&here, &there] {
        until("the sum of all", || (used(organization).0 == 3).then_some(()));
    }
    assert_eq!((settled(&here), seen(&there)["usage"]["objects"].as_u64()), (settled(&there), Some(3)));
}

#[test]
fn a_store_without_counts_gets_them() {
    let directory = crate::upgrade::older();
    let server = Server::start_on_file(directory.path(), &[]);
    until("the first recount", || corrected(&server));
    let list = server.admin("GET", "/admin/v1/organizations", &json!(null)).ok();
    let all = list["data"].as_array().expect("a list").len();
    let objects = |row: &serde_json::Value| {
        let path = format!("/admin/v1/organizations/{}", row["id"].as_str().expect("an id"));
        server.admin("GET", &path, &json!(null)).ok()["usage"]["objects"].as_u64()
    };
    let counted = list["data"].as_array().into_iter().flatten().filter(|row| objects(row) > Some(0)).count();
    assert!(all > 0 && counted > 0, "{list}");
    let fresh = server.organization();
    work(&fresh);
    assert_eq!(settled(&fresh).0, 22);
}
