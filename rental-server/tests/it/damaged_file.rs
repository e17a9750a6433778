//! A file with damage after a crash: the server starts, and nothing but what is damaged is missing.

use crate::{
    cli::Cli,
    events_in_store::stop,
    support::{Connection, Organization, Reply, Server, flip, flip_bytes},
    webhooks::{PRIVATE, hook, one_event},
};
use rental_core::store::redb::Redb;
use serde_json::{Value, json};
use std::{fs, path::Path};

/// What the log says of a file that was replaced.
const SALVAGED: &str = "was damaged so that it could not be opened";
const MARKED: &str = "break-me-here";

/// Adds customers one after the other, and gives what was acknowledged.
fn add(server: &Server, key: &str, customers: usize) -> Vec<Value> {
    let mut connection = Connection::open(&server.address);
    let mut send = |body: Value| send(&mut connection, key, "POST", "/v1/customers", &body).ok();
    let notes = "n".repeat(1000);
    let all = (0..customers).map_while(|n| send(json!({"full_name": format!("Customer {n}"), "notes": notes})));
    all.take_while(|reply| reply.status == 200).map(|reply| reply.json()).collect()
}

fn send(connection: &mut Connection, key: &str, method: &str, path: &str, body: &Value) -> std::io::Result<Reply> {
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    connection.try_send(method, path, &headers, body.to_string().as_bytes())
}

/// Whether `rental-cli store VERB` ends well, and what it prints; `None` where it is not built.
fn store(directory: &Path, verb: &str, flags: &str) -> Option<(bool, String)> {
    let words = format!("store {verb} redb:{} {flags}", directory.join("store.redb").display());
    let ran = Cli::find()?.command("", &words).output().expect("it runs");
    Some((ran.status.success(), String::from_utf8_lossy(&ran.stdout).into_owned()))
}

#[test]
fn a_flipped_bit_in_the_file_of_a_server_that_was_killed_under_load_harms_only_its_row() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("store.redb");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let made = server.organization();
    let receiver = crate::support::receiver::Receiver::start();
    hook(&made, &receiver);
    let broken = made.post("/v1/vehicles", &json!({"name": MARKED})).ok();
    let (id, read, write) = (made.id.clone(), made.read.clone(), made.write.clone());
    drop(made);
    let acknowledged: Vec<Value> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| add(&server, &write, 100_000))).collect();
        // While they write: a store that has had nothing to write for a moment opens without a check.
        let mut connection = Connection::open(&server.address);
        for _ in 0..100 {
            send(&mut connection, &write, "POST", "/v1/vehicles", &json!({"name": "beside"})).expect("an answer");
        }
        server.signal("KILL");
        clients.into_iter().flat_map(|client| client.join().expect("a client ends")).collect()
    });
    server.wait_until_gone();
    flip(&file, MARKED);

    if let Some((copied, _)) =
        store(directory.path(), "copy --from", &format!("--to redb:{}/copy.redb", directory.path().display()))
    {
        assert!(!copied && !directory.path().join("store.redb.damaged").exists(), "a copy replaces nothing");
    }
    if let Some((sound, told)) = store(directory.path(), "check", "") {
        assert!(!sound && told.contains("vehicle") && told.contains("problems"), "{told}");
    }
    let server = Server::start_on_file(directory.path(), &[PRIVATE]).expecting_errors("damaged");
    assert!(server.log().contains(SALVAGED), "{}", server.log());
    let organization = Organization { server: &server, id, read, write };
    assert!(acknowledged.len() > 50, "{}", acknowledged.len());
    for customer in &acknowledged {
        let path = format!("/v1/customers/{}", customer["id"].as_str().expect("an id"));
        assert_eq!(organization.get(&path).ok(), *customer);
    }
    let path = format!("/v1/vehicles/{}", broken["id"].as_str().expect("an id"));
    assert_eq!(organization.get(&path).json()["error"]["code"], "data_damaged");
    assert_eq!(organization.get("/v1/vehicles?limit=100").ok()["data"].as_array().expect("a list").len(), 100);
    one_event(&organization);
    assert_eq!(organization.get("/readyz").status, 200);
    drop(organization);
    stop(server);
    assert!(fs::metadata(directory.path().join("store.redb.damaged")).is_ok(), "the damaged file is kept");
    if let Some((repaired, told)) = store(directory.path(), "repair", "--yes") {
        assert!(repaired && told.contains("remove vehicle"), "{told}");
        assert_eq!(store(directory.path(), "check", "").map(|(sound, _)| sound), Some(true));
    }
}

/// Rows that only guard others follow from these, so they are written again before anything is accepted.
#[test]
fn what_was_lost_of_the_nights_and_numbers_that_are_taken_is_there_again_before_the_server_accepts_anything() {
    loses_what_guards(|_| {});
    // A server that was killed after it replaced the file.
    loses_what_guards(|file| {
        let store = Redb::open_or_salvage(file, 1 << 20).expect("it is salvaged");
        assert!(store.salvaged().is_some(), "by this process");
        store.close().expect("it is closed");
    });
}

/// Loses the nights of a rental and the counter of invoices, does something with the file, and starts the server.
fn loses_what_guards(before_the_start: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("store.redb");
    let server = Server::start_on_file(directory.path(), &[]);
    let made = server.organization();
    let vehicle = made.vehicle(json!({}));
    let nights = json!({"status": "APPROVED", "start_date": "2026-06-01", "end_date": "2026-06-05"});
    made.rental(&vehicle, nights.clone());
    let customer = made.customer(json!({}));
    let invoice = json!({"customer_id": customer, "lines": [{"description": "x", "amount": 10}]});
    for _ in 0..2 {
        made.recorded("invoices", &invoice);
    }
    let (id, read, write) = (made.id.clone(), made.read.clone(), made.write.clone());
    drop(made);
    // Enough rows, on a busy machine too, for what is lost to be few.
    assert_eq!(add(&server, &write, 300).len(), 300);
    std::thread::scope(|scope| {
        scope.spawn(|| add(&server, &write, 100_000));
        std::thread::sleep(std::time::Duration::from_millis(300));
        server.signal("KILL");
    });
    server.wait_until_gone();
    let bytes = |id: &str| uuid::Uuid::parse_str(id).expect("an id").into_bytes();
    flip_bytes(&file, &[b"h".as_slice(), &bytes(&id), &bytes(&vehicle)].concat());
    flip_bytes(&file, &[b"n".as_slice(), &bytes(&id), b"invoice"].concat());

    before_the_start(&file);
    let server = Server::start_on_file(directory.path(), &[]).expecting_errors("damaged");
    assert!(server.log().contains("were written again"), "{}", server.log());
    let organization = Organization { server: &server, id, read, write };
    let mut second = nights;
    second["vehicle_id"] = json!(vehicle);
    second["customer_id"] = json!(customer);
    assert_eq!(organization.post("/v1/rentals", &second).status, 409, "the nights are taken");
    let third = organization.recorded("invoices", &invoice);
    let third = organization.get(&format!("/v1/invoices/{third}")).ok();
    assert_eq!(third["invoice_number"], "INV-000003");
    drop(organization);
    stop(server);
}
