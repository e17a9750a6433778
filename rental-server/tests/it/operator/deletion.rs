//! `DELETE /admin/v1/organizations/{id}`: after an export, at once, whole, and over kills.

use crate::{
    events_in_store::stop,
    support::{
        ADMIN_TOKEN, Connection, Server,
        receiver::{Act, Receiver},
    },
    webhooks::{PRIVATE, hook, wait_for},
};
use rental_core::{
    check,
    resources::{api_key, audit_entry, organization::SYSTEM, row_words::in_words},
    rows::{Tag, key},
    store::{
        Key, Record, Span, Store,
        redb::{ClosedFile, Redb},
    },
    value::OrganizationId,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

fn path(id: &str) -> String {
    format!("/admin/v1/organizations/{id}")
}

fn begin(server: &Server, id: &str) -> Value {
    server.admin("DELETE", &format!("{}?without_export=true", path(id)), &Value::Null).ok()
}

/// Waits until nothing of an organization is left; gives the deletion.
fn wait_for_end(server: &Server, id: &str) -> Value {
    let look = || server.admin("GET", &format!("{}/deletion", path(id)), &Value::Null).ok();
    wait_for(
        "the end of the deletion",
        || Some(look()).filter(|found| found["status"] == "finished"),
        || look().to_string(),
    )
}

fn export(server: &Server, id: &str) {
    let reply = server.admin("GET", &format!("{}/export?pace=full", path(id)), &Value::Null);
    assert!(reply.text().contains("export_end"), "{}", reply.text());
}

#[test]
fn an_organization_is_deleted_only_after_an_export_of_its_last_change_or_without_any_if_asked() {
    let server = Server::start(&[]);
    let organization = server.organization();
    let refused = |says: &str| {
        let reply = server.admin("DELETE", &path(&organization.id), &Value::Null);
        reply.error(409, "invalid_request_error", "export_required");
        assert!(reply.text().contains(says), "{}", reply.text());
    };
    refused("was never exported");
    let elsewhere = Server::start(&[]);
    let there = elsewhere.organization();
    there.vehicle(json!({"name": "Moved"}));
    let file = elsewhere.admin("GET", &format!("{}/export?pace=full", path(&there.id)), &Value::Null).body;
    export(&server, &organization.id);
    // The objects of an import keep their times, which are older than the export.
    let token = format!("Bearer {ADMIN_TOKEN}");
    let headers = [("Authorization", token.as_str()), ("Content-Type", "application/x-ndjson")];
    let import = format!("{}/import", path(&organization.id));
    let imported = Connection::open(&server.address).send("POST", &import, &headers, &file).ok();
    assert_eq!(imported["created"], 1, "{imported}");
    refused("and changed at");
    export(&server, &organization.id);
    organization.post("/v1/leads", &json!({})).ok();
    refused("was last exported at");
    organization.get("/v1/vehicles").ok();
    // As often as a client needs: it may have lost the first file.
    export(&server, &organization.id);
    export(&server, &organization.id);
    let begun = server.admin("DELETE", &path(&organization.id), &Value::Null).ok();
    assert_eq!((&begun["status"], &begun["organization_id"]), (&json!("running"), &json!(organization.id)));
    wait_for_end(&server, &organization.id);
    server.admin("DELETE", &path(&organization.id), &Value::Null).error(
        404,
        "invalid_request_error",
        "resource_missing",
    );
    let other = server.organization();
    let bad = server.admin("DELETE", &format!("{}?without_export=yes", path(&other.id)), &Value::Null);
    assert_eq!(bad.bad_fields(), [("without_export".to_owned(), "parameter_invalid".to_owned())]);
    let unknown = server.admin("DELETE", &format!("{}?force", path(&other.id)), &Value::Null);
    assert_eq!(unknown.bad_fields(), [("force".to_owned(), "parameter_unknown".to_owned())]);
    assert!(
        unknown.text().contains("is not a parameter of this request; it takes `without_export`"),
        "{}",
        unknown.text()
    );
    begin(&server, &other.id);
    let ended = wait_for_end(&server, &other.id);
    assert!(ended["rows"].as_u64() > Some(0) && ended["finished_at"].is_string(), "{ended}");
    let audit = server.admin("GET", &format!("/admin/v1/audit_entries?organization={}", other.id), &Value::Null).ok();
    let actions: Vec<&Value> = audit["data"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert!(
        actions.contains(&&json!("deleteOrganization")) && actions.contains(&&json!("organizationDeleted")),
        "{audit}"
    );
}

#[test]
fn no_write_that_was_accepted_after_the_export_is_deleted() {
    let server = Server::start(&[]);
    let (mut deleted, mut refused) = (0, 0);
    for round in 0..20u64 {
        let organization = server.organization();
        export(&server, &organization.id);
        let outcome = thread::scope(|scope| {
            let writer = scope.spawn(|| {
                thread::sleep(Duration::from_micros(round * 150));
                let status = organization.post("/v1/leads", &json!({})).status;
                assert!([200, 401, 503].contains(&status), "{status}");
                status
            });
            let reply = server.admin("DELETE", &path(&organization.id), &Value::Null);
            (reply.status, writer.join().expect("the writer does not panic"))
        });
        match outcome {
            (200, written) => {
                assert_ne!(written, 200, "round {round}: a lead was accepted and deleted");
                deleted += 1;
            }
            (409, written) => {
                assert_eq!(written, 200, "round {round}");
                // The organization is as it was.
                organization.post("/v1/leads", &json!({})).ok();
                refused += 1;
            }
            other => panic!("round {round}: {other:?}"),
        }
    }
    assert_eq!(deleted + refused, 20);
}

#[test]
fn an_export_among_writes_allows_the_deletion_only_if_it_has_all_of_them() {
    let server = Server::start(&[]);
    for round in 0..10 {
        let organization = server.organization();
        let accepted = Mutex::new(Vec::new());
        let exporting = AtomicBool::new(true);
        let file = thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while exporting.load(Ordering::Relaxed) {
                        let lead = organization.post("/v1/leads", &json!({})).ok();
                        accepted
                            .lock()
                            .expect("no writer panics")
                            .push(lead["id"].as_str().unwrap_or_default().to_owned());
                    }
                });
            }
            thread::sleep(Duration::from_millis(5 + round));
            let file = server.admin("GET", &format!("{}/export?pace=full", path(&organization.id)), &Value::Null);
            exporting.store(false, Ordering::Relaxed);
            file.text()
        });
        let reply = server.admin("DELETE", &path(&organization.id), &Value::Null);
        let accepted = accepted.into_inner().expect("no writer panics");
        let missing = accepted.iter().filter(|id| !file.contains(id.as_str())).count();
        match reply.status {
            200 => assert_eq!(missing, 0, "round {round}: the export lacks leads that were deleted"),
            // It can lack another row of the last lead, such as its event. One among no writes has everything.
            409 => {
                export(&server, &organization.id);
                server.admin("DELETE", &path(&organization.id), &Value::Null).ok();
            }
            other => panic!("round {round}: {other} {}", reply.text()),
        }
    }
}

#[test]
fn a_repeated_request_gets_the_response_of_the_first() {
    let server = Server::start(&[]);
    let organization = server.organization();
    export(&server, &organization.id);
    let bearer = format!("Bearer {}", server.admin_token);
    let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", "once")];
    let send = || Connection::open(&server.address).send("DELETE", &path(&organization.id), &headers, b"").ok();
    let first = send();
    wait_for_end(&server, &organization.id);
    assert_eq!(send(), first);
}

#[test]
fn keys_endpoints_and_reads_of_a_deleted_organization_end_at_once() {
    let server = Server::start(&[PRIVATE]);
    let [gone, stays] = [server.organization(), server.organization()];
    let receiver = Receiver::start();
    let hook = hook(&gone, &receiver);
    gone.one_of_each();
    begin(&server, &gone.id);
    gone.get("/v1/vehicles").error(401, "authentication_error", "api_key_invalid");
    gone.post("/v1/leads", &json!({})).error(401, "authentication_error", "api_key_invalid");
    for place in ["", "/events", "/deliveries", "/export"] {
        server.admin("GET", &format!("{}{place}", path(&gone.id)), &Value::Null).error(
            404,
            "invalid_request_error",
            "resource_missing",
        );
    }
    let endpoint = format!("/admin/v1/webhook_endpoints/{}", hook.id);
    server.admin("GET", &endpoint, &Value::Null).error(404, "invalid_request_error", "resource_missing");
    let key = json!({"organization_id": gone.id, "scope": "read"});
    server.admin("POST", "/admin/v1/api_keys", &key).error(400, "invalid_request_error", "resource_missing");
    wait_for_end(&server, &gone.id);
    let after = backed_up(&server);
    for (plural, id) in stays.one_of_each() {
        stays.get(&format!("/v1/{plural}/{id}")).ok();
    }
    assert!(!after.values().any(|row| names(row, &gone.id)), "a row names it");
}

/// Rows of the operator that stay: audit entries, and what finds them.
fn is_audit(key: &Key) -> bool {
    let records = key::records(SYSTEM, &audit_entry::SPEC);
    let entries = [&[Tag::IndexEntry as u8], &records.as_bytes()[1..]].concat();
    key.as_bytes().starts_with(records.as_bytes()) || key.as_bytes().starts_with(&entries)
}

/// Rows without audit entries, by their key.
fn without_audit(all: Vec<Record>) -> BTreeMap<Key, Record> {
    all.into_iter().filter(|row| !is_audit(&row.key)).map(|row| (row.key.clone(), row)).collect()
}

/// Every row of the file of a server that is gone.
fn rows(directory: &Path) -> BTreeMap<Key, Record> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let store = Redb::open(&directory.join("store.redb"), 16 << 20).expect("the server is gone");
    let all = runtime.block_on(store.scan(&Span::everything(), usize::MAX)).expect("the store answers");
    store.close().expect("the file is whole");
    // A running server counts in these rows. The next recount forgets organizations that are gone.
    let all = all.into_iter().map(|row| row.expect("a sound row")).filter(|row| row.key.as_bytes()[0] != b'v');
    without_audit(all.collect())
}

/// The same of a server that runs, on any engine.
fn backed_up(server: &Server) -> BTreeMap<Key, Record> {
    let backup = server.admin("GET", "/admin/v1/backup?pace=full", &Value::Null);
    without_audit(crate::backup::rows(&backup.body))
}

/// Compares stores before an organization was created and after it was deleted.
#[track_caller]
fn assert_never_existed(before: &BTreeMap<Key, Record>, after: &BTreeMap<Key, Record>, id: &str) {
    let left: Vec<String> = after.keys().filter(|key| !before.contains_key(key)).map(in_words).collect();
    assert_eq!(left, Vec::<String>::new(), "rows are left");
    // `last_used_at` of a key is written a little after its use.
    let keys = key::records(SYSTEM, &api_key::SPEC);
    let others = before.iter().filter(|(key, _)| !key.as_bytes().starts_with(keys.as_bytes()));
    let changed = others.filter(|(key, row)| after.get(key) != Some(row)).map(|(key, _)| in_words(key));
    assert_eq!(changed.collect::<Vec<_>>(), Vec::<String>::new(), "rows of others changed");
    assert!(!after.values().any(|row| names(row, id)), "a row names it");
}

fn problems(directory: &Path) -> u64 {
    let closed = ClosedFile::open(&directory.join("store.redb"), 16 << 20).expect("the server is gone");
    let report = check::of_file(&closed, &mut |_| {});
    assert_eq!(report.problems, 0, "{:?}", report.listed);
    report.problems
}

/// Kills the server again and again while an organization is deleted to which clients write and receivers are slow to answer.
#[test]
fn a_deletion_over_kills_leaves_the_store_as_if_the_organization_had_never_existed() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    server.organization().one_of_each();
    stop(server);
    let before = rows(directory.path());

    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let gone = server.organization();
    gone.one_of_each();
    let receiver = Receiver::that(Act::After(Duration::from_millis(300), Box::new(Act::Status(500))));
    hook(&gone, &receiver);
    (0..1500).for_each(|_| drop(gone.post("/v1/leads", &json!({"raw_data": {"message": "hello"}})).ok()));
    let (id, stopped) = (gone.id.clone(), AtomicBool::new(false));
    thread::scope(|scope| {
        let writers = [(); 4].map(|()| {
            scope.spawn(|| {
                while !stopped.load(Ordering::Relaxed) {
                    let reply = gone.post("/v1/leads", &json!({}));
                    assert!([200, 401].contains(&reply.status), "{}", reply.text());
                    if reply.status == 401 {
                        return true;
                    }
                }
                false
            })
        });
        receiver.wait_for(1);
        begin(&server, &id);
        let refused = writers.into_iter().all(|writer| writer.join().expect("no writer panics"));
        stopped.store(true, Ordering::Relaxed);
        assert!(refused, "each writer was refused");
    });
    drop(gone);
    server.signal("KILL");
    server.wait_until_gone();
    drop(server);
    // Each time a little later, so that each server does at least one step.
    for kills in 1.. {
        let server = Server::start_on_file(directory.path(), &[PRIVATE]);
        let end = || server.admin("GET", &format!("{}/deletion", path(&id)), &Value::Null).ok()["status"] == "finished";
        thread::sleep(Duration::from_millis(20 * kills));
        let finished = end();
        server.signal("KILL");
        server.wait_until_gone();
        drop(server);
        assert_eq!(problems(directory.path()), 0, "after {kills} kills");
        if finished {
            break;
        }
    }
    let after = rows(directory.path());
    assert_never_existed(&before, &after, &id);
}

/// Whether a row has the id, as bytes or as text.
fn names(row: &Record, id: &str) -> bool {
    let bytes = OrganizationId::parse(id).expect("an id");
    let has = |all: &[u8], part: &[u8]| all.windows(part.len()).any(|window| window == part);
    has(row.key.as_bytes(), bytes.as_bytes()) || has(&row.value, bytes.as_bytes()) || has(&row.value, id.as_bytes())
}

#[test]
fn every_server_of_a_cluster_refuses_the_keys_at_once_and_finishes_the_deletion() {
    let Some(url) = crate::support::database() else { return };
    let [asked, other] = [(); 2].map(|()| Server::start_on(&url, &[PRIVATE]));
    other.organization().one_of_each();
    let before = backed_up(&other);
    let gone = other.organization();
    gone.one_of_each();
    hook(&gone, &Receiver::start());
    (0..600).for_each(|_| drop(gone.post("/v1/leads", &json!({})).ok()));
    begin(&asked, &gone.id);
    gone.get("/v1/vehicles").error(401, "authentication_error", "api_key_invalid");
    gone.post("/v1/leads", &json!({})).error(401, "authentication_error", "api_key_invalid");
    asked.signal("KILL");
    asked.wait_until_gone();
    wait_for_end(&other, &gone.id);
    assert_never_existed(&before, &backed_up(&other), &gone.id);
}
