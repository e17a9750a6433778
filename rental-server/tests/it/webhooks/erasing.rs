//! An erased person: what is sent, logged and stored afterwards (decisions, Second round).

use super::{
    PRIVATE,
    damage::{on_file, put},
    hook, observed, signed, usual, wait_for, with_schedule,
};
use crate::{
    events_in_store::stop,
    support::{
        ADMIN_TOKEN, Connection, Organization, Server,
        receiver::{Act, Receiver},
    },
};
use rental_core::{
    resources::{Resource, customer::Customer, invoice},
    rows::Row,
    store::{Record, Store, archive::Reader},
    tasks::organization_hold,
    value::{CustomerId, OrganizationId, Timestamp},
};
use serde_json::{Value, json};
use std::sync::mpsc;

/// What only objects of the person say.
const SECRETS: [&str; 6] =
    ["Grace Hopper", "grace@navy.example", "+12025550142", "allergic to cats", "BK-GRACE", "license D1234567"];
/// What an invoice says, which is kept.
const KEPT: &str = "Cleaning for Grace";

/// A person with everything that the API takes, and the idempotency key of the request.
fn person(organization: &Organization) -> String {
    let [name, email, phone, notes, booking, license] = SECRETS;
    let body = json!({"full_name": name, "email": email, "phone": phone, "notes": notes});
    let made = organization.call_with("POST", "/v1/customers", &[("Idempotency-Key", "grace")], &body);
    let customer = made.id();
    let vehicle = organization.vehicle(json!({}));
    let rental = json!({"vehicle_id": vehicle, "customer_id": customer, "booking_id": booking});
    organization.post("/v1/rentals", &rental).ok();
    organization.post("/v1/leads", &json!({"customer_id": customer, "raw_data": {"text": license}})).ok();
    organization.post("/v1/leads", &json!({"raw_data": {"text": license, "mail": email}})).ok();
    organization.recorded("invoices", &json!({"customer_id": customer, "lines": [{"description": KEPT, "amount": 5}]}));
    organization.recorded("tolls", &json!({"amount": 1, "agency": "MTA", "customer_id": customer}));
    customer
}

fn erase(server: &Server, customer: &str) -> Value {
    server.admin("POST", &format!("/admin/v1/customers/{customer}/erase"), &Value::Null).ok()
}

/// Waits until everything is rewritten, and gives the report.
#[track_caller]
pub(crate) fn complete(server: &Server, customer: &str) -> Value {
    let report = || server.admin("GET", &format!("/admin/v1/customers/{customer}/erasure"), &Value::Null).ok();
    wait_for(
        "the end of the erasure",
        || Some(report()).filter(|one| one["status"] == "complete"),
        || report().to_string(),
    )
}

/// All rows of the store, whatever its engine is.
#[track_caller]
pub(crate) fn rows(server: &Server) -> Vec<Record> {
    let token = format!("Bearer {ADMIN_TOKEN}");
    let reply = wait_for(
        "a backup",
        || {
            let mut connection = Connection::open(&server.address);
            let headers = [("Authorization", token.as_str())];
            let reply = connection.send("GET", "/admin/v1/backup?pace=full", &headers, b"");
            Some(reply).filter(|reply| reply.status != 409)
        },
        String::new,
    );
    let mut reader = Reader::open(&reply.body[..]).expect("it is an archive");
    let mut rows = Vec::new();
    while let Some(frame) = reader.next_frame().expect("it is whole") {
        rows.extend(frame);
    }
    rows
}

/// The rows without the invoices, which keep their buyer as it was when they were issued.
fn not_invoices(rows: &[Record]) -> Vec<Record> {
    let is_invoice = |row: &&Record| matches!(Row::decode(&row.key), Some(Row::Record { resource, .. }) if resource == invoice::SPEC.tag);
    rows.iter().filter(|row| !is_invoice(row)).cloned().collect()
}

/// The values and keys of rows that contain `word`, as text.
pub(crate) fn holding(rows: &[Record], word: &str) -> Vec<String> {
    let is_in = |bytes: &[u8]| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    let found = rows.iter().filter(|row| is_in(&row.value) || is_in(row.key.as_bytes()));
    found.map(|row| String::from_utf8_lossy(&row.value).into_owned()).collect()
}

#[test]
fn a_waiting_delivery_a_resent_one_and_a_replay_say_nothing_of_an_erased_person() {
    let server = with_schedule("300ms,300ms,300ms,300ms,300ms,300ms");
    let organization = server.organization();
    let echo = |_, seen: &crate::support::receiver::Seen| Act::body(500, &seen.body);
    let receiver = Receiver::with(echo);
    let hook = hook(&organization, &receiver);
    let customer = person(&organization);
    receiver.wait_until("the first attempts", |seen| seen.iter().any(|one| one.kind() == "lead.received"));
    let report = erase(&server, &customer);
    assert_eq!((&report["object"], &report["customer_id"]), (&json!("erasure"), &json!(customer)));
    let report = complete(&server, &customer);
    let before = receiver.count();
    assert_eq!((&report["kept"]["invoices"], &report["damaged"]), (&json!(1), &json!(0)), "{report}");
    receiver.now_does(Act::Status(200));
    let created = receiver.seen().iter().find(|one| one.kind() == "customer.created").unwrap().event().to_owned();
    server.admin("POST", &format!("/admin/v1/events/{created}/resend"), &Value::Null).ok();
    let arrived = |wanted: &str| {
        receiver.wait_until(wanted, |seen| seen.iter().skip(before + 1).any(|one| one.event() == wanted))
    };
    let seen = arrived(&created);
    // One attempt may have been in flight when the person was erased.
    for one in &seen[before + 1..] {
        let body = String::from_utf8_lossy(&one.body);
        assert!(SECRETS.iter().chain(&[KEPT]).all(|word| !body.contains(word)), "{body}");
        assert_eq!(one.header("Service-Signature"), signed(one, &[&hook.secret]), "the redacted bytes are signed");
    }
    let resent = seen.iter().rev().find(|one| one.event() == created).unwrap();
    assert_eq!(resent.json()["data"]["full_name"], "erased");

    let body = json!({"full_name": SECRETS[0], "email": SECRETS[1], "phone": SECRETS[2], "notes": SECRETS[3]});
    let replay = organization.call_with("POST", "/v1/customers", &[("Idempotency-Key", "grace")], &body);
    assert_eq!((replay.header("idempotent-replayed"), replay.id()), (Some("true"), customer.clone()));
    assert_eq!(replay.json()["full_name"], "erased");
    assert_eq!(organization.get("/v1/customers?email=grace%40navy.example").ok()["data"], json!([]));
    let all = rows(&server);
    for word in SECRETS {
        assert_eq!(holding(&not_invoices(&all), word), Vec::<String>::new(), "{word}");
    }
    let kept = holding(&all, KEPT);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(kept[0].contains(report["invoices"][0]["invoice_number"].as_str().unwrap()), "{kept:?}");
}

#[test]
fn an_attempt_that_is_in_flight_leaves_no_answer_in_the_log() {
    let server = Server::start(&[PRIVATE]);
    let organization = server.organization();
    let (done, erased) = mpsc::channel::<()>();
    let receiver = Receiver::with(move |_, seen| {
        let _ = erased.recv_timeout(std::time::Duration::from_secs(8));
        Act::body(200, &seen.body)
    });
    let hook = hook(&organization, &receiver);
    let customer = organization.post("/v1/customers", &json!({"full_name": SECRETS[0], "email": SECRETS[1]})).id();
    // It names no customer, and the address leads to one.
    organization.post("/v1/leads", &json!({"raw_data": {"text": SECRETS[5], "mail": SECRETS[1]}})).ok();
    receiver.wait_until("the attempts", |seen| seen.len() >= 2);
    erase(&server, &customer);
    complete(&server, &customer);
    drop(done);
    super::wait_for_deliveries(&organization, &hook, 3, "delivered");
    let logs: Vec<Value> =
        observed(&organization, "deliveries", "").into_iter().map(|one| one["log"].clone()).collect();
    let all = rows(&server);
    for word in [SECRETS[0], SECRETS[1], SECRETS[5]] {
        assert!(logs.iter().all(|log| !log.to_string().contains(word)), "{logs:?}");
        assert_eq!(holding(&not_invoices(&all), word), Vec::<String>::new(), "{word}");
    }
}

#[test]
fn a_customer_is_erased_once_in_its_own_organization_and_not_changed_afterwards() {
    let server = usual();
    let (organization, other) = (server.organization(), server.organization());
    let customer = person(&organization);
    let path = format!("/admin/v1/customers/{customer}/erase");
    let erasure = format!("/admin/v1/customers/{customer}/erasure");
    server.admin("GET", &erasure, &Value::Null).error(404, "invalid_request_error", "resource_missing");
    let wrong = server.admin("POST", &path, &json!({"organization_id": other.id}));
    wrong.error(404, "invalid_request_error", "resource_missing");
    assert_eq!(organization.get(&format!("/v1/customers/{customer}")).ok()["full_name"], SECRETS[0]);
    server.admin("POST", &path, &json!({"organization_id": organization.id})).ok();
    let first = complete(server, &customer);
    assert_eq!(server.admin("POST", &path, &Value::Null).ok(), first, "a second request changes nothing");
    let patch = organization.patch(&format!("/v1/customers/{customer}"), &json!({"notes": "n"}));
    patch.error(409, "invalid_request_error", "state_conflict");
    let vehicle = organization.vehicle(json!({}));
    let rental = organization.post("/v1/rentals", &json!({"customer_id": customer, "vehicle_id": vehicle}));
    assert_eq!(rental.bad_fields(), [("customer_id".to_owned(), "parameter_invalid".to_owned())]);
    let audit = format!("/admin/v1/audit_entries?organization={}&action=eraseCustomer", organization.id);
    assert_eq!(server.admin("GET", &audit, &Value::Null).ok()["data"].as_array().unwrap().len(), 1);
}

#[test]
fn an_erasure_ends_after_the_server_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_in(directory.path(), &[PRIVATE]);
    let organization = server.organization();
    let customer = person(&organization);
    for n in 0..60 {
        organization
            .patch(&format!("/v1/customers/{customer}"), &json!({"notes": format!("allergic to cats {n}")}))
            .ok();
    }
    erase(&server, &customer);
    server.signal("KILL");
    server.wait_until_gone();
    drop(organization);
    let server = Server::start_in(directory.path(), &[PRIVATE]);
    complete(&server, &customer);
    let all = rows(&server);
    assert!(SECRETS.iter().all(|word| holding(&not_invoices(&all), word).is_empty()));
}

/// A restore brings an erased customer back, and a server was killed while it decided whether to delete the organization.
#[test]
fn a_hold_that_a_killed_server_left_behind_keeps_no_erasure_from_beginning() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let organization = server.organization();
    let customer = person(&organization);
    let owner = OrganizationId::parse(&organization.id).expect("an id");
    let (id, read, write) = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    drop(organization);
    stop(server);
    let place = Customer::key(owner, CustomerId::parse(&customer).expect("an id"));
    let before = on_file(directory.path(), async |store| store.get(std::slice::from_ref(&place)).await).expect("a row");
    let before = before[0].clone().expect("a customer");

    let server = Server::start_on_file(directory.path(), &[]);
    erase(&server, &customer);
    complete(&server, &customer);
    stop(server);
    put(directory.path(), vec![(place, &before.value)]);
    let long_ago = Timestamp::from_millis(1_577_836_800_000);
    let held = on_file(directory.path(), async |store| organization_hold::hold(store, owner, long_ago).await);
    assert_eq!(held, Ok(()));

    let server = Server::start_on_file(directory.path(), &[]);
    let organization = Organization { server: &server, id, read, write };
    let look = || organization.get(&format!("/v1/customers/{customer}")).ok();
    wait_for("the erasure", || (!look()["erased_at"].is_null()).then_some(()), || look().to_string());
    complete(&server, &customer);
    let left = rows(&server);
    for secret in SECRETS {
        assert_eq!(holding(&not_invoices(&left), secret), Vec::<String>::new());
    }
}
