//! Secrets: shown once, kept encrypted, rotated with an overlap in which old and new both sign (decisions, Webhooks).

use super::{PRIVATE, act, hook, observed, one_event, quiet_while, signed, state, usual, wait_for};
use crate::support::{
    Organization, Server,
    receiver::{Receiver, Seen},
};
use serde_json::{Value, json};
use std::{fs, path::Path};

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Everything that the directory of a store holds, logs included, except the admin token and the key of secrets.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let read = |entry: fs::DirEntry| (entry.path().display().to_string(), fs::read(entry.path()).expect("a file"));
    entries.map(read).collect()
}

#[test]
fn a_secret_is_shown_once_and_stored_nowhere_in_the_clear() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE, "--log-level", "debug"]);
    let (organization, receiver) = (server.organization(), Receiver::start());
    let hook = hook(&organization, &receiver);
    let rotated = act(&server, &hook, "rotate_secret", &Value::Null).ok();
    let new = rotated["secret"].as_str().expect("a secret").to_owned();
    assert_ne!(hook.secret, new);
    for secret in [&hook.secret, &new] {
        assert!(secret.starts_with("whsec_") && secret.len() >= 38, "{secret}");
        assert!(secret.bytes().all(|byte| byte.is_ascii_graphic()), "{secret}");
    }
    one_event(&organization);
    receiver.wait_for(1);
    let path = format!("/admin/v1/webhook_endpoints?organization={}", organization.id);
    let change = format!("/admin/v1/webhook_endpoints/{}", hook.id);
    let answers = [
        server.admin("GET", &path, &Value::Null),
        server.admin("GET", &change, &Value::Null),
        server.admin("PATCH", &change, &json!({"events": ["lead.received"]})),
        act(&server, &hook, "disable", &Value::Null),
        act(&server, &hook, "enable", &Value::Null),
        act(&server, &hook, "test", &Value::Null),
    ];
    for answer in answers {
        assert!(!answer.ok().to_string().contains("whsec_"), "{}", answer.text());
    }
    for plural in ["events", "deliveries"] {
        assert!(!json!(observed(&organization, plural, "")).to_string().contains("whsec_"));
    }
    server.signal("TERM");
    server.wait_until_gone();
    let found = files(directory.path());
    assert!(found.iter().any(|(name, _)| name.ends_with("store.redb")), "{found:?}");
    for (name, bytes) in found {
        for secret in [&hook.secret, &new] {
            assert!(!contains(&bytes, secret), "{name} holds a secret");
            assert!(!contains(&bytes, &secret["whsec_".len()..]), "{name} holds a secret without its prefix");
        }
    }
}

#[test]
fn a_repeated_creation_does_not_show_the_secret_again() {
    let (server, organization) = (usual(), usual().organization());
    let body = json!({"organization_id": organization.id, "url": "https://example.com/"}).to_string();
    let token = format!("Bearer {}", server.admin_token);
    let send = || {
        let headers = [
            ("Authorization", token.as_str()),
            ("Content-Type", "application/json"),
            ("Idempotency-Key", organization.id.as_str()),
        ];
        let mut connection = crate::support::Connection::open(&server.address);
        connection.send("POST", "/admin/v1/webhook_endpoints", &headers, body.as_bytes())
    };
    let (first, again) = (send(), send());
    assert!(first.ok()["secret"].is_string());
    assert_eq!((again.id(), again.header("idempotent-replayed")), (first.id(), Some("true")));
    assert!(!again.text().contains("whsec_"), "{}", again.text());
}

/// Makes an event and gives the request that tells of it.
fn next(organization: &Organization, receiver: &Receiver) -> Seen {
    let before = receiver.count();
    one_event(organization);
    receiver.wait_for(before + 1).remove(before)
}

#[test]
fn old_and_new_secret_both_sign_until_the_overlap_ends_and_then_only_the_new_one() {
    let (organization, receiver) = (usual().organization(), Receiver::start());
    let hook = hook(&organization, &receiver);
    let old = next(&organization, &receiver);
    assert_eq!(old.header("Service-Signature"), signed(&old, &[&hook.secret]));
    let rotated = act(usual(), &hook, "rotate_secret", &json!({"overlap_seconds": 3})).ok();
    let new = rotated["secret"].as_str().expect("a secret");
    let during = next(&organization, &receiver);
    assert_eq!(during.header("Service-Signature").matches("v1=").count(), 2, "{during:?}");
    assert_eq!(during.header("Service-Signature"), signed(&during, &[new, &hook.secret]));
    // Nothing is restarted or changed in between: the end of the overlap is noticed by itself.
    let after = wait_for(
        "the end of the overlap",
        || {
            Some(next(&organization, &receiver))
                .filter(|seen| seen.header("Service-Signature").matches("v1=").count() == 1)
        },
        String::new,
    );
    assert_eq!(after.header("Service-Signature"), signed(&after, &[new]));
    assert!(after.unix_seconds >= during.unix_seconds + 2, "the overlap ended early");
}

#[test]
fn without_an_overlap_only_the_new_secret_signs_at_once() {
    let (organization, receiver) = (usual().organization(), Receiver::start());
    let hook = hook(&organization, &receiver);
    next(&organization, &receiver);
    let rotated = act(usual(), &hook, "rotate_secret", &json!({"overlap_seconds": 0})).ok();
    let seen = next(&organization, &receiver);
    assert_eq!(seen.header("Service-Signature"), signed(&seen, &[rotated["secret"].as_str().expect("a secret")]));
}

#[test]
fn the_usual_overlap_outlives_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let receiver = Receiver::start();
    let first = Server::start_in(directory.path(), &[PRIVATE]);
    let before = first.organization();
    let hook = hook(&before, &receiver);
    let new = act(&first, &hook, "rotate_secret", &Value::Null).ok()["secret"].as_str().expect("one").to_owned();
    first.signal("KILL");
    first.wait_until_gone();
    let second = Server::start_in(directory.path(), &[PRIVATE]);
    let seen = next(&again(&second, &before), &receiver);
    assert_eq!(seen.header("Service-Signature"), signed(&seen, &[&new, &hook.secret]));
}

fn again<'s>(server: &'s Server, old: &Organization) -> Organization<'s> {
    Organization { server, id: old.id.clone(), read: old.read.clone(), write: old.write.clone() }
}

#[test]
fn an_overlap_that_is_none_is_refused() {
    let organization = usual().organization();
    let hook = super::hook_at(&organization, "https://example.com/", json!({}));
    for body in
        [json!({"overlap_seconds": -1}), json!({"overlap_seconds": 99_999_999}), json!({"overlap_seconds": "1"})]
    {
        assert_eq!(act(usual(), &hook, "rotate_secret", &body).status, 400, "{body}");
    }
    assert_eq!(act(usual(), &hook, "rotate_secret", &json!({"overlap": 1})).status, 400);
}

#[test]
fn each_endpoint_has_a_secret_of_its_own() {
    let organization = usual().organization();
    let secrets: std::collections::BTreeSet<String> =
        (0..20).map(|_| super::hook_at(&organization, "https://example.com/", json!({})).secret).collect();
    assert_eq!(secrets.len(), 20);
}

/// What cannot be signed is not sent: it waits, everything else works, and the right key brings it all back.
#[test]
fn with_a_replaced_master_key_nothing_is_sent_unsigned_and_everything_else_works() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let keys = ["a", "b"].map(|name| directory.path().join(name));
    keys.iter().zip(["11", "22"]).for_each(|(path, pair)| fs::write(path, pair.repeat(32)).expect("a file"));
    let [right, wrong] = keys.each_ref().map(|path| path.display().to_string());
    let flags = |key| [PRIVATE, "--master-key-file", key];
    let receiver = Receiver::start();
    let first = Server::start_in(directory.path(), &flags(&right));
    let before = first.organization();
    let hook = hook(&before, &receiver);
    first.signal("TERM");
    first.wait_until_gone();
    let replacing = |key| [PRIVATE, "--replace-master-key", "--master-key-file", key];
    let second = Server::start_in(directory.path(), &replacing(&wrong));
    let during = again(&second, &before);
    one_event(&during);
    wait_for("a line about it", || second.log().contains("master key").then_some(()), || second.log());
    quiet_while();
    assert_eq!(receiver.count(), 0, "sent without a signature that its owner can verify");
    assert_eq!(state(&second, &hook)["status"], "enabled");
    assert_eq!(during.get("/v1/customers").ok()["data"].as_array().map(Vec::len), Some(1));
    second.signal("TERM");
    second.wait_until_gone();
    let _third = Server::start_in(directory.path(), &replacing(&right));
    let seen = receiver.wait_for(1).remove(0);
    assert_eq!(seen.header("Service-Signature"), signed(&seen, &[&hook.secret]));
}
