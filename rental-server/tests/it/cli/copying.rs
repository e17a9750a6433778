//! `store copy`: a fleet that outgrows its file moves to a database, and may come back.

use super::{Cli, ran};
use crate::support::{
    Cluster, Organization, Server, database,
    receiver::{Act, Receiver},
};
use rental_core::{
    check,
    store::redb::{ClosedFile, Redb},
};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};

fn by_way_of<'s>(server: &'s Server, organization: &Organization<'_>) -> Organization<'s> {
    let Organization { id, read, write, .. } = organization;
    Organization { server, id: id.clone(), read: read.clone(), write: write.clone() }
}

fn copy(cli: &Cli, from: &str, to: &str) -> Value {
    let ran = ran(&mut cli.command("http://127.0.0.1:1", &format!("store copy --json --from {from} --to {to}")));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()
}

/// A server on the file in `directory`, with the master key that servers on databases have here.
fn on_file(directory: &Path) -> Server {
    let key = directory.join("key");
    fs::write(&key, "5".repeat(64)).unwrap();
    Server::start_on_file(directory, &["--webhook-allow-private", "--master-key-file", &key.to_string_lossy()])
}

#[test]
fn a_store_grows_up_and_comes_back_with_keys_order_cursors_secrets_and_what_is_due() {
    let (Some(cli), Some(url)) = (Cli::find(), database()) else { return };
    let directory = tempfile::tempdir().unwrap();
    let receiver = Receiver::with(|_, _| Act::Status(500));
    let mut server = on_file(directory.path());
    let before = server.organization();
    let fields = json!({"organization_id": before.id, "url": receiver.url()});
    let hook = server.admin("POST", "/admin/v1/webhook_endpoints", &fields).ok();
    server
        .admin("POST", &format!("/admin/v1/webhook_endpoints/{}/disable", hook["id"].as_str().unwrap()), &Value::Null)
        .ok();
    let made = before.one_of_each();
    let vehicles: Vec<String> = (0..30).map(|n| before.vehicle(json!({"year": 2000 + n}))).collect();
    let page = before.get("/v1/vehicles?limit=10").ok();
    let cursor = page["next_cursor"].as_str().unwrap().to_owned();
    let rest = before.get(&format!("/v1/vehicles?limit=100&starting_after={cursor}")).body;
    let shown: Vec<_> = made.iter().map(|(plural, id)| before.get(&format!("/v1/{plural}/{id}"))).collect();
    let organization =
        Organization { server: &server, id: before.id.clone(), read: before.read.clone(), write: before.write.clone() };
    let (id, read, write) = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    drop((before, organization));
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    drop(server);

    let file = format!("redb:{}", directory.path().join("store.redb").display());
    let copied = copy(&cli, &file, &url);
    assert!(copied["rows"].as_u64().unwrap() > 100, "{copied}");
    let again = ran(&mut cli.command("http://127.0.0.1:1", &format!("store copy --from {file} --to {url}")));
    assert_eq!(again.code, Some(6), "nothing is overwritten: {again:?}");

    let mut grown = Server::start_on(&url, &["--webhook-allow-private"]);
    {
        let there = Organization { server: &grown, id: id.clone(), read: read.clone(), write: write.clone() };
        for ((plural, id), before) in made.iter().zip(&shown) {
            let reply = there.get(&format!("/v1/{plural}/{id}"));
            assert_eq!((&reply.body, reply.header("etag")), (&before.body, before.header("etag")), "{plural}");
        }
        assert_eq!(there.get(&format!("/v1/vehicles?limit=100&starting_after={cursor}")).body, rest);
        assert_eq!(there.get("/v1/vehicles?limit=1").ok()["data"][0]["id"], json!(vehicles.last()));
        receiver.now_does(Act::Status(200));
        let enable = format!("/admin/v1/webhook_endpoints/{}/enable", hook["id"].as_str().unwrap());
        grown.admin("POST", &enable, &Value::Null).ok();
        let seen = receiver.wait_for(34);
        let secret = hook["secret"].as_str().unwrap();
        for one in &seen {
            let header = one.header("Service-Signature");
            let at = header.strip_prefix("t=").and_then(|rest| rest.split(',').next()).unwrap().parse().unwrap();
            assert_eq!(header, rental_core::webhooks::signature::header([secret.as_bytes()], at, &one.body));
        }
        let line = json!([{"description": "Days", "amount": 10}]);
        let customer = there.customer(json!({}));
        let invoice = there.recorded("invoices", &json!({"customer_id": customer, "lines": line}));
        assert_eq!(there.get(&format!("/v1/invoices/{invoice}")).ok()["invoice_number"], "INV-000002");
    }
    grown.signal("TERM");
    assert_eq!(grown.exit_code(), Some(0));
    drop(grown);

    let home = tempfile::tempdir().unwrap();
    let back = format!("redb:{}", home.path().join("store.redb").display());
    copy(&cli, &url, &back);
    let closed = ClosedFile::open(&home.path().join("store.redb"), 16 << 20).unwrap();
    let report = check::of_file(&closed, &mut |_| {});
    assert_eq!(report.problems, 0, "{:?}", report.listed);
    drop(closed);
    let server = on_file(home.path());
    let there = Organization { server: &server, id, read, write };
    assert_eq!(by_way_of(&server, &there).get("/v1/invoices?limit=1").ok()["data"][0]["invoice_number"], "INV-000002");
    assert_eq!(there.get(&format!("/v1/vehicles?limit=100&starting_after={cursor}")).body, rest);
}

/// As a copy that was killed leaves it.
#[test]
fn half_of_a_store_is_neither_served_nor_copied_nor_upgraded_nor_filled() {
    let (Some(cli), Some(url)) = (Cli::find(), database()) else { return };
    drop(Server::start_on(&url, &[]));
    let cluster = Cluster::shared().expect("it made the database");
    let name = url.split(['/', '?']).find(|part| part.starts_with("test")).expect("a database");
    cluster.sql(name, "INSERT INTO rental.rows VALUES (convert_to('!', 'UTF8'), 0, '')");
    let directory = tempfile::tempdir().unwrap();
    let (to, file) = (directory.path().join("to.redb"), directory.path().join("store.redb"));
    Redb::open(&file, 1 << 20).unwrap().close().unwrap();
    let refused = "holds half of a store: copying into it was broken off. Drop its schema `rental` and copy again";
    for (words, code, said) in [
        (format!("store copy --from {url} --to redb:{}", to.display()), 1, refused),
        (format!("store upgrade {url}"), 1, refused),
        (format!("store upgrade {url} --dry-run"), 1, refused),
        (format!("store copy --from redb:{} --to {url}", file.display()), 6, "drop the schema `rental`"),
    ] {
        let ended = ran(&mut cli.command("http://127.0.0.1:1", &words));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{words}: {ended:?}");
        assert!(ended.stderr.contains(said), "{words}: {ended:?}");
    }
    assert!(!to.exists());
    let mut server = Command::new(env!("CARGO_BIN_EXE_rental-server"));
    let server = server.args(["--listen", "127.0.0.1:0", "--store", &url]).output().expect("the program runs");
    let told = String::from_utf8_lossy(&server.stderr).into_owned();
    assert!(server.status.code() == Some(1) && told.contains(refused) && told.lines().count() == 1, "{told}");
}

#[test]
fn what_cannot_be_copied_is_said_in_one_line_and_makes_nothing() {
    let (Some(cli), Some(url)) = (Cli::find(), database()) else { return };
    let directory = tempfile::tempdir().unwrap();
    let none = format!("redb:{}", directory.path().join("none.redb").display());
    let to = format!("redb:{}", directory.path().join("to.redb").display());
    let ran_with = |words: &str| ran(&mut cli.command("http://127.0.0.1:1", words));
    for (words, code) in [
        (format!("store copy --from {none} --to {to}"), 1),
        (format!("store copy --from {none} --to {none}"), 2),
        (format!("store copy --from postgres://nobody@127.0.0.1:1/none --to {to}"), 1),
        (format!("store copy --from mysql://x --to {to}"), 2),
    ] {
        let ended = ran_with(&words);
        assert_eq!(ended.code, Some(code), "{words}: {ended:?}");
        assert!(ended.stdout.is_empty() && ended.stderr.lines().count() <= 5, "{ended:?}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let server = Server::start_on_file(directory.path(), &[]);
    let open =
        ran_with(&format!("store copy --from redb:{} --to {url}", directory.path().join("store.redb").display()));
    assert!(open.code == Some(1) && open.stderr.contains("in use by another process"), "{open:?}");
    drop(server);
}

/// As when the name of the database is wrong.
#[test]
fn a_database_without_a_store_is_neither_copied_nor_upgraded_nor_filled() {
    let (Some(cli), Some(cluster)) = (Cli::find(), Cluster::shared()) else { return };
    let url = cluster.database();
    let name = url.split(['/', '?']).nth(3).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let to = format!("redb:{}", directory.path().join("store.redb").display());
    for words in [
        format!("store copy --from {url} --to {to}"),
        format!("store upgrade {url} --dry-run"),
        format!("store upgrade {url}"),
    ] {
        let ran = ran(&mut cli.command("http://127.0.0.1:1", &words));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.stderr.contains("holds no store"), "{ran:?}");
        assert_eq!(cluster.sql(name, "SELECT count(*) FROM pg_namespace WHERE nspname = 'rental'"), "0", "{words}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
