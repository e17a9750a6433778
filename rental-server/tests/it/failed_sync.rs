//! A sync that fails: the server ends with 1, acknowledges nothing after it, and has lost nothing at its next start.

use crate::support::{Connection, Organization, Server};
use serde_json::json;
use std::process::Command;

/// Whether strace can make system calls fail; with `RENTAL_REQUIRE_ALL` it has to.
pub(crate) fn can_inject() -> bool {
    let mut traced = Command::new("strace");
    let runs = traced.args(["-f", "-qq", "-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success());
    assert!(runs || std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "strace does not run");
    if !runs {
        println!("skipped: strace does not run");
    }
    runs
}

#[test]
fn a_failed_sync_ends_the_server_and_loses_nothing_acknowledged() {
    if !can_inject() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let store = format!("redb:{}", directory.path().join("rental.redb").display());
    let flags = ["--store", store.as_str()];
    let mut all = 0;
    for failing in [40, 41, 52] {
        let inject = format!("inject=fdatasync:error=EIO:when={failing}+");
        // With -D the server itself is the child that the test ends.
        let strace = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", &inject];
        let mut server = Server::start_by(&strace, &flags).expecting_errors("store");
        let made = server.organization();
        let (id, read, write) = (made.id.clone(), made.read.clone(), made.write.clone());
        drop(made);
        let mut acknowledged = Vec::new();
        let mut connection = Connection::open(&server.address);
        let bearer = format!("Bearer {}", write);
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        for number in 0..200 {
            let body = json!({"full_name": format!("Customer {number}")}).to_string();
            match connection.try_send("POST", "/v1/customers", &headers, body.as_bytes()) {
                Ok(reply) if reply.status == 200 => acknowledged.push(reply.json()),
                _ => break,
            }
        }
        assert!(acknowledged.len() < 200, "no sync failed");
        assert_eq!(server.exit_code(), Some(1));
        assert!(server.log().contains("the store failed and nothing more can be saved"), "{}", server.log());
        // What the system has cached of the file need not be on the disk, so the recovery must not read that.
        let trace = directory.path().join("trace");
        let traced = ["strace", "-D", "-f", "-qq", "-o", trace.to_str().expect("text"), "-e", "trace=fadvise64,flock"];
        let again = Server::start_by(&traced, &flags);
        let calls = std::fs::read_to_string(&trace).expect("a trace");
        let at = |call: &str| calls.find(call).unwrap_or_else(|| panic!("no {call}: {calls}"));
        assert!(at("POSIX_FADV_DONTNEED") < at("LOCK_EX"), "dropped before the recovery: {calls}");
        let organization = Organization { server: &again, id, read, write };
        all += acknowledged.len();
        for customer in acknowledged {
            let path = format!("/v1/customers/{}", customer["id"].as_str().expect("an id"));
            assert_eq!(organization.get(&path).ok(), customer);
        }
    }
    assert!(all > 10, "only {all} writes before a sync failed");
}
