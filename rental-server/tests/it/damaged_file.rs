//! A file with damage after a crash: the server starts, and nothing but what is damaged is missing.

use crate::{
    cli::Cli,
    events_in_store::stop,
    support::{Connection, Organization, Reply, Server, flip, flip_bytes},
    webhooks::{PRIVATE, hook, one_event},
};
use rental_core::{
    resources::{Resource as _, organization},
    store::redb::Redb,
    value::OrganizationId,
};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::MetadataExt as _, path::Path, process::Command};

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

/// A clean close is no protection: the engine looks at no page when it opens such a file.
#[test]
fn a_flipped_bit_in_a_page_that_leads_to_others_of_a_file_that_was_closed_locks_nobody_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("store.redb");
    let server = Server::start_on_file(directory.path(), &[]);
    let made = server.organization();
    let (id, read, write) = (made.id.clone(), made.read.clone(), made.write.clone());
    drop(made);
    let before = add(&server, &write, 300);
    stop(server);
    let sound = fs::read(&file).expect("the file");
    // A branch begins with a 2; the keys of its children come last.
    let branches = (0..sound.len()).step_by(4096).filter(|at| sound[*at] == 2);
    let mut noticed = 0;
    for (branch, byte) in branches.flat_map(|at| [2, 700, 1000].map(|byte| (at, byte))) {
        let _ = fs::remove_file(directory.path().join("store.redb.damaged"));
        let mut bytes = sound.clone();
        bytes[branch + byte] ^= 4;
        fs::write(&file, bytes).expect("the file");
        let server = Server::start_on_file(directory.path(), &[]).expecting_errors("damaged");
        noticed += u32::from(server.log().contains(SALVAGED));
        let organization = Organization { server: &server, id: id.clone(), read: read.clone(), write: write.clone() };
        for customer in before.iter().step_by(23) {
            let path = format!("/v1/customers/{}", customer["id"].as_str().expect("an id"));
            assert_eq!(organization.get(&path).ok(), *customer, "byte {byte} of the page at {branch}");
        }
        drop(organization);
        stop(server);
    }
    assert!(noticed > 1, "{noticed}");
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

/// No other row has its settings, so nothing can restore it: the operator must be told.
#[test]
fn the_loss_of_an_organization_is_told_at_the_start_and_by_a_check() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("store.redb");
    let server = Server::start_on_file(directory.path(), &[]);
    let made = server.organization();
    let (id, write) = (made.id.clone(), made.write.clone());
    drop(made);
    assert_eq!(add(&server, &write, 200).len(), 200);
    std::thread::scope(|scope| {
        scope.spawn(|| add(&server, &write, 100_000));
        std::thread::sleep(std::time::Duration::from_millis(300));
        server.signal("KILL");
    });
    server.wait_until_gone();
    let lost = OrganizationId::parse(&id).expect("an id");
    flip_bytes(&file, organization::Organization::key(organization::SYSTEM, lost).as_bytes());
    let server = Server::start_on_file(directory.path(), &[]).expecting_errors("lost");
    let log = server.log();
    let told = log.lines().find(|line| line.contains("the record of an organization is lost")).unwrap_or_default();
    assert!(told.contains(&id) && told.contains("restore a backup"), "{log}");
    stop(server);
    if let Some((sound, told)) = store(directory.path(), "check", "") {
        let first = format!("organization {id}");
        assert!(!sound && told.contains(&first) && told.contains("its record is lost, and"), "{told}");
    }
}

/// Lets reads of these pages of a file fail, as a disk with bad sectors does.
const BAD_SECTORS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static int is_bad(int fd, off_t from, size_t size) {
    const char *inode = getenv("BAD_INODE"), *pages = getenv("BAD_PAGES");
    struct stat found;
    if (!inode || !pages || fstat(fd, &found) || found.st_ino != strtoull(inode, 0, 10)) return 0;
    for (char *end = (char *)pages; *end;) {
        off_t page = strtoll(end, &end, 10);
        if (*end == ',') end++;
        if (from < page + 4096 && from + (off_t)size > page) return 1;
    }
    return 0;
}
ssize_t pread64(int fd, void *to, size_t size, off_t from) {
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "pread64");
    if (is_bad(fd, from, size)) { errno = EIO; return -1; }
    return real(fd, to, size, from);
}
ssize_t pread(int fd, void *to, size_t size, off_t from) { return pread64(fd, to, size, from); }
"#;

#[test]
fn a_sector_that_cannot_be_read_waits_for_a_person_and_costs_its_rows_alone() {
    let Some(cli) = Cli::find() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let (source, library) = (directory.path().join("bad.c"), directory.path().join("bad.so"));
    fs::write(&source, BAD_SECTORS).expect("a file");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    if !compiled.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "cc is not there");
        println!("skipped: a disk with bad sectors needs cc");
        return;
    }
    let file = directory.path().join("store.redb");
    let server = Server::start_on_file(directory.path(), &[]);
    let made = server.organization();
    // Rows between the marked one and those of the API keys, which come before the first vehicle.
    let others = || (0..30).for_each(|_| drop(made.post("/v1/vehicles", &json!({"name": "n".repeat(250)})).ok()));
    others();
    let broken = made.post("/v1/vehicles", &json!({"name": MARKED})).ok();
    others();
    let (id, read, write) = (made.id.clone(), made.read.clone(), made.write.clone());
    drop(made);
    let before = add(&server, &write, 200);
    std::thread::scope(|scope| {
        scope.spawn(|| add(&server, &write, 100_000));
        std::thread::sleep(std::time::Duration::from_millis(300));
        server.signal("KILL");
    });
    server.wait_until_gone();
    let bytes = fs::read(&file).expect("the file");
    let mark = format!("\"{MARKED}\"");
    let marked = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(mark.as_bytes()));
    let bad: Vec<String> = marked.map(|at| (at / 4096 * 4096).to_string()).collect();
    let inode = fs::metadata(&file).expect("the file").ino().to_string();
    let on_the_bad_disk = |command: &mut Command| {
        command.env("LD_PRELOAD", &library).env("BAD_INODE", &inode).env("BAD_PAGES", bad.join(","));
        let ran = command.output().expect("it runs");
        let [out, err] = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (ran.status.code(), out, err)
    };
    let url = format!("redb:{}", file.display());
    let mut start = Command::new(env!("CARGO_BIN_EXE_rental-server"));
    let (code, _, refused) = on_the_bad_disk(start.args(["--listen", "127.0.0.1:0", "--store", &url]));
    assert_eq!(code, Some(1), "{refused}");
    for words in ["Input/output error", "a sector that it cannot read", "`rental-cli store repair --dry-run`"] {
        assert!(refused.contains(words), "`{words}` in {refused}");
    }
    assert!(fs::read(&file).expect("the file") == bytes, "nothing was changed");
    let repair = |flags: &str| on_the_bad_disk(&mut cli.command("", &format!("store repair {url} {flags}")));
    let (code, _, told) = repair("--dry-run");
    assert!(code == Some(1) && told.contains("rows of") && told.contains("can be read"), "{told}");
    assert!(fs::read(&file).expect("the file") == bytes, "nothing was changed");
    let (code, out, told) = repair("--yes");
    assert_eq!(code, Some(0), "{out}{told}");
    assert!(told.contains("lost; the damaged file is kept as"), "{told}");
    // It asks whether the store is whole.
    assert_eq!(store(directory.path(), "check", "").map(|(sound, _)| sound), Some(true));

    let server = Server::start_on_file(directory.path(), &[]);
    let organization = Organization { server: &server, id, read, write };
    let path = format!("/v1/vehicles/{}", broken["id"].as_str().expect("an id"));
    assert_eq!(organization.get(&path).status, 404);
    let there = before.iter().filter(|one| {
        let path = format!("/v1/customers/{}", one["id"].as_str().expect("an id"));
        organization.get(&path).status == 200
    });
    assert!(there.count() + 20 > before.len(), "those of other pages are there");
    drop(organization);
    stop(server);
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
