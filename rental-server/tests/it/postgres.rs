//! Servers that share a database: each answers as if it were alone with all the data.

mod access;
mod alike;
mod holds;
mod idempotency;
mod invoices;
mod killed;

use crate::support::{
    ADMIN_TOKEN, Cluster, Connection, Organization, Server, database,
    receiver::{PATIENCE, Receiver},
};
use rental_core::store::archive::Reader;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Three servers on a new database.
fn three() -> Option<[Server; 3]> {
    let url = database()?;
    Some([(); 3].map(|()| Server::start_on(&url, &[])))
}

/// The same organization by way of each server.
fn everywhere<'s>(servers: &'s [Server; 3], organization: &Organization<'_>) -> [Organization<'s>; 3] {
    servers.each_ref().map(|server| organization.by_way_of(server))
}

/// Becomes true when it goes out of scope, also when the test fails: threads that wait for it end.
pub(crate) struct AtTheEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn what_one_server_changed_the_others_show_at_once() {
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    for n in 0..21 {
        let [here, there, third] = [0, 1, 2].map(|other| &all[(n + other) % 3]);
        let path = format!("/v1/vehicles/{}", here.vehicle(json!({"year": 2000 + n})));
        for year in [2000 + n, 1999, 1998] {
            for organization in [there, third, here] {
                let (one, list) = (organization.get(&path).ok(), organization.get("/v1/vehicles?limit=1").ok());
                assert_eq!(one["year"], json!(year));
                assert_eq!(list["data"][0], one);
            }
            [third, there, here][year % 3].patch(&path, &json!({"year": if year == 1999 { 1998 } else { 1999 }})).ok();
        }
    }
}

/// Many readers at once may share a read of the store: none may be given one that began before it asked.
#[test]
fn a_crowd_of_readers_never_sees_what_was_changed_before_it_asked() {
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    let path = format!("/v1/vehicles/{}", all[0].vehicle(json!({"daily_rate": 1})));
    let (answered, ended, looked) = (AtomicU64::new(1), AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for reader in 0..24 {
            let (organization, path, answered, ended, looked) =
                (&all[1 + reader % 2], &path, &answered, &ended, &looked);
            scope.spawn(move || {
                let mut connection = Connection::open(&organization.server.address);
                let key = format!("Bearer {}", organization.write);
                while !ended.load(Ordering::SeqCst) {
                    let at_least = answered.load(Ordering::SeqCst);
                    let path = if reader % 3 == 0 { "/v1/vehicles" } else { path };
                    let found = connection.send("GET", path, &[("Authorization", &key)], b"").ok();
                    let object = found["data"].get(0).unwrap_or(&found);
                    let rate = object["daily_rate"].as_u64().expect("a rate");
                    assert!(rate >= at_least, "{rate} is shown after {at_least} was answered");
                    looked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _end = AtTheEnd(&ended);
        for rate in 2..300 {
            all[0].patch(&path, &json!({"daily_rate": rate})).ok();
            answered.store(rate, Ordering::SeqCst);
        }
    });
    assert!(looked.into_inner() > 200, "nobody looked");
}

#[test]
fn a_backup_of_a_database_has_all_its_rows_and_restores_into_a_file() {
    let Some([first, second, _]) = three() else { return };
    let here = first.organization();
    let made = here.one_of_each();
    let backup = second.admin("GET", "/admin/v1/backup?pace=full", &Value::Null);
    assert_eq!(backup.status, 200);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.redb");
    let mut archive = Reader::open(backup.body.as_slice()).unwrap();
    rental_core::store::redb::restore(&path, 16 << 20, &mut archive, &mut |_| {}).unwrap();
    fs::write(directory.path().join("store.redb.master-key"), "5".repeat(64)).unwrap();
    let restored = Server::start_on_file(directory.path(), &[]);
    let there = here.by_way_of(&restored);
    for (plural, id) in made {
        let path = format!("/v1/{plural}/{id}");
        assert_eq!(there.get(&path).body, here.get(&path).body, "{path}");
    }
}

#[test]
fn the_engine_is_named_and_ready_and_has_no_file() {
    let Some([server, ..]) = three() else { return };
    let status = server.admin("GET", "/admin/v1/status", &Value::Null).ok();
    assert_eq!((&status["engine"], &status["ready"]), (&json!("postgres"), &json!(true)));
    assert_eq!(status["data_bytes"], Value::Null);
    assert_eq!(Connection::open(&server.address).send("GET", "/readyz", &[], b"").status, 200);
}

#[test]
fn a_database_that_restarts_is_a_503_and_then_served_again() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start_on(&cluster.database(), &[]);
    let organization = server.organization();
    let (stop, statuses) = (AtomicBool::new(false), Mutex::new(BTreeSet::new()));
    let acknowledged = AtomicUsize::new(0);
    let made: Vec<String> = thread::scope(|scope| {
        let work = || {
            let mut made = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let reply = organization.post("/v1/vehicles", &json!({"name": "One"}));
                statuses.lock().unwrap().extend([reply.status, organization.get("/v1/vehicles").status]);
                if reply.status == 200 {
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                    made.push(reply.id());
                }
            }
            made
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        let end = AtTheEnd(&stop);
        let some_more = || {
            let enough = acknowledged.load(Ordering::Relaxed) + 8;
            let deadline = Instant::now() + PATIENCE;
            while acknowledged.load(Ordering::Relaxed) < enough {
                assert!(Instant::now() < deadline, "no vehicle is made any more");
                thread::sleep(Duration::from_millis(5));
            }
        };
        for _ in 0..3 {
            some_more();
            cluster.restart();
        }
        some_more();
        drop(end);
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread ends")).collect()
    });
    let statuses = statuses.into_inner().unwrap();
    assert!(statuses.is_subset(&BTreeSet::from([200, 503])), "{statuses:?}");
    assert_eq!(Connection::open(&server.address).send("GET", "/readyz", &[], b"").status, 200);
    assert!(made.len() >= 32, "{}", made.len());
    for id in made {
        assert_eq!(organization.get(&format!("/v1/vehicles/{id}")).status, 200, "{id} was acknowledged");
    }
}

/// The endpoint was made by way of the other server, which has ended: nobody else can deliver.
#[test]
fn an_event_of_one_server_reaches_an_endpoint_made_by_another() {
    let Some(url) = database() else { return };
    let (first, second) =
        (Server::start_on(&url, &["--webhook-allow-private"]), Server::start_on(&url, &["--webhook-allow-private"]));
    let (receiver, here) = (Receiver::start(), first.organization());
    let there = here.by_way_of(&second);
    let body = json!({"organization_id": here.id, "url": receiver.url(), "events": ["vehicle.created"]});
    first.admin("POST", "/admin/v1/webhook_endpoints", &body).ok();
    drop(here);
    drop(first);
    let vehicle = there.vehicle(json!({}));
    let seen = receiver.wait_for(1).remove(0);
    assert_eq!(seen.json()["data"]["id"], json!(vehicle));
}

/// Starts the program where it cannot start; gives its one line.
#[track_caller]
fn refused(store: &str, environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rental-server"));
    command.args(["--listen", "127.0.0.1:0"]).env("RENTAL_STORE", store).env_remove("RENTAL_ADMIN_TOKEN");
    let ended = command.envs(environment.iter().copied()).output().expect("the program runs");
    let said = String::from_utf8(ended.stderr).expect("text");
    assert_eq!((ended.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(!said.contains("s3cret") && ended.stdout.is_empty(), "{said}");
    said
}

#[test]
fn what_a_database_needs_beside_its_url_is_asked_for() {
    let Some(url) = database() else { return };
    let token = ("RENTAL_ADMIN_TOKEN", ADMIN_TOKEN);
    let said = refused(&url, &[]);
    assert!(said.contains("RENTAL_ADMIN_TOKEN") && said.contains("--admin-token-file"), "{said}");
    let said = refused(&url, &[token]);
    assert!(said.contains("--master-key-file") && said.contains("openssl rand -hex 32"), "{said}");
    for (wrong, part) in [
        ("postgres://u:s3cret@/d?host=/nowhere", "postgres:///nowhere:5432/d"),
        ("postgres://u:s3cret@h:s3cret/d", "postgres://USER@HOST"),
        ("postgress://u:s3cret@h/d", "it must begin with postgres://"),
    ] {
        let said = refused(wrong, &[token]);
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_password_comes_from_where_libpq_takes_it_and_is_shown_nowhere() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    cluster.sql("postgres", "CREATE ROLE locked LOGIN SUPERUSER PASSWORD 's3cret'");
    let (locked, token) = (url.replace("postgres@", "locked@"), ("RENTAL_ADMIN_TOKEN", ADMIN_TOKEN));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pass");
    fs::write(&file, "*:*:*:other:wrong\n*:*:*:locked:s3cret\n").unwrap();
    let name = file.to_string_lossy().into_owned();
    let said = refused(&locked, &[("PGPASSFILE", &name), token]);
    assert!(said.contains("chmod 600"), "{said}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    for source in [("PGPASSFILE", name.as_str()), ("PGPASSWORD", "s3cret")] {
        // The login is past: only the master key is missing.
        let said = refused(&locked, &[source, token]);
        assert!(said.contains("--master-key-file"), "{said}");
    }
    let said = refused(&locked, &[("PGPASSWORD", "s3cret-no"), token]);
    assert!(said.contains("refused the login"), "{said}");
    let mut help = Command::new(env!("CARGO_BIN_EXE_rental-server"));
    let help = help.arg("--help").env("RENTAL_STORE", "postgres://u:s3cret@h/d").output().unwrap();
    assert!(!String::from_utf8_lossy(&help.stdout).contains("s3cret"));
}

/// People who query see what the API shows, with proper types; one odd row breaks no view.
#[test]
fn sql_views_show_what_the_api_shows() {
    let Some(url) = database() else { return };
    let cluster = Cluster::shared().expect("it made the database");
    let name = url.rsplit('/').nth(url.matches('/').count() - 3).and_then(|rest| rest.split('?').next());
    let sql = |statement: &str| cluster.sql(name.expect("a database"), statement);
    let server = Server::start_on(&url, &["--webhook-allow-private"]);
    let organization = server.organization();
    let made = organization.one_of_each();
    let vehicle = organization.vehicle(json!({"daily_rate": 89.5, "year": 2023, "plate": "O'Brien"}));
    let odd = organization.post("/v1/leads", &json!({"raw_data": {"a": "\u{0} and \\u0000"}})).id();
    let row = sql(&format!(
        "SELECT daily_rate * 2, year + 1, plate, organization_id, revision, make IS NULL FROM rental.vehicles WHERE id = '{vehicle}'"
    ));
    assert_eq!(row, format!("179.0\t2024\tO'Brien\t{}\t1\tt", organization.id));
    // An event has `created` instead of `created_at`.
    for (plural, id) in made.into_iter().filter(|(plural, _)| *plural != "events") {
        let object = organization.get(&format!("/v1/{plural}/{id}")).ok();
        let row = sql(&format!(
            "SELECT created_at = '{}', organization_id FROM rental.{plural} WHERE id = '{id}'",
            object["created_at"].as_str().unwrap()
        ));
        assert_eq!(row, format!("t\t{}", organization.id), "{plural}");
    }
    assert_eq!(sql("SELECT lines->0->>'amount', total FROM rental.invoices"), "10\t10");
    assert_eq!(sql(&format!("SELECT count(raw_data->>'a') FROM rental.leads WHERE id = '{odd}'")), "1");
    for view in
        ["customers", "rentals", "tolls", "violations", "leads", "organizations", "api_keys", "events", "audit_entries"]
    {
        assert!(sql(&format!("SELECT count(*) FROM rental.{view}")).parse::<u32>().unwrap() > 0, "{view}");
    }
    for view in ["webhook_endpoints", "deliveries"] {
        assert_eq!(sql(&format!("SELECT count(*) FROM rental.{view}")), "0");
    }
    sql("DROP VIEW rental.vehicles; CREATE VIEW rental.vehicles AS SELECT 1 AS other");
    let again = Server::start_on(&url, &[]);
    assert_eq!(sql("SELECT count(*) > 0 FROM rental.vehicles WHERE daily_rate > 0"), "t", "an older view is made anew");
    drop(again);
}
