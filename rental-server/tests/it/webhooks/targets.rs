//! Where deliveries may go: the guard against server-side request forgery, at saving and again at each connection
//! (decisions, Webhooks; contract, `--webhook-allow-private`).

use super::{Hook, PRIVATE, hook, hook_at, observed, one_event, quiet_while, state, usual, wait_for};
use crate::support::{Organization, Reply, Server, receiver::Receiver};
use serde_json::{Value, json};
use std::net::{SocketAddr, ToSocketAddrs};

/// Private, loopback, link-local, reserved and translated addresses, in every spelling that a URL parser understands.
const FORBIDDEN: [&str; 58] = [
    "http://127.0.0.1/",
    "https://127.0.0.1/",
    "http://127.0.0.1:8080/hooks",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://0x7f.1/",
    "http://017700000001/",
    "http://127.0.0.1./",
    "http://0/",
    "http://0.0.0.0/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.64.0.1/",
    "http://192.0.0.1/",
    "http://192.0.2.1/",
    "http://192.88.99.1/",
    "http://198.18.0.1/",
    "http://198.51.100.1/",
    "http://203.0.113.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://１２７.0.0.1/",
    "http://127。0。0。1/",
    "http://%31%32%37.0.0.1/",
    "http:\\\\127.0.0.1\\",
    "HTTP://127.0.0.1",
    "http://[::]/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001::1]/",
    "http://[2001:10::1]/",
    "http://[2001:20::1]/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[fe80::1]/",
    "http://[fec0::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[ff02::1]/",
    "http://[100::1]/",
    "http://[2606:2800::5efe:7f00:1]/",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://foo.localhost/",
    "http://printer.local/",
    "http://metadata.google.internal/",
];

const UNUSABLE: [&str; 16] = [
    "",
    "example.com",
    "//example.com",
    "/hooks",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "javascript:alert(1)",
    "http://",
    "https://user@example.com/",
    "https://user:pass@example.com/",
    "https://example.com/#x",
    "https://exa mple.com/",
    "http://[::1%25eth0]/",
    "https://example.com:0/",
    "https://example.com:99999/",
];

#[track_caller]
fn refused(reply: &Reply, url: &str, words: &str) {
    assert_eq!(reply.status, 400, "{url}: {}", reply.text());
    assert_eq!(reply.bad_fields(), [("url".to_owned(), "parameter_invalid".to_owned())], "{url}");
    let message = reply.json()["error"]["message"].as_str().expect("text").to_owned();
    assert!(message.contains(words), "{url}: {message}");
}

fn create(organization: &Organization, url: &str) -> Reply {
    let body = json!({"organization_id": organization.id, "url": url});
    organization.server.admin("POST", "/admin/v1/webhook_endpoints", &body)
}

fn change(server: &Server, hook: &Hook, url: &str) -> Reply {
    server.admin("PATCH", &format!("/admin/v1/webhook_endpoints/{}", hook.id), &json!({"url": url}))
}

#[test]
fn no_spelling_of_a_private_address_can_be_saved() {
    let organization = Server::shared().organization();
    let hook = hook_at(&organization, "https://hooks.example.com/a", json!({}));
    for url in FORBIDDEN {
        refused(&create(&organization, url), url, "start the server with --webhook-allow-private");
        refused(&create(&organization, url), url, "`rental-cli listen --forward-to URL`");
        refused(&change(Server::shared(), &hook, url), url, "private");
    }
    assert_eq!(state(Server::shared(), &hook)["url"], "https://hooks.example.com/a");
    let path = format!("/admin/v1/webhook_endpoints?organization={}", organization.id);
    assert_eq!(Server::shared().admin("GET", &path, &Value::Null).ok()["data"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_no_plain_web_address_cannot_be_saved_whatever_the_operator_allows() {
    let long = format!("https://example.com/{}", "a".repeat(2048));
    for server in [Server::shared(), usual()] {
        let organization = server.organization();
        let hook = hook_at(&organization, "https://hooks.example.com/a", json!({}));
        for url in UNUSABLE.into_iter().chain([long.as_str(), "https://example.com/\n", "https://example.com/\u{0}"]) {
            refused(&create(&organization, url), url, "url");
            refused(&change(server, &hook, url), url, "url");
        }
        for value in [Value::Null, json!(1), json!([]), json!({})] {
            let body = json!({"organization_id": organization.id, "url": value});
            assert_eq!(server.admin("POST", "/admin/v1/webhook_endpoints", &body).status, 400, "{value}");
        }
    }
}

#[test]
fn public_addresses_can_be_saved() {
    let organization = Server::shared().organization();
    for url in [
        "https://example.com/hooks",
        "http://example.com:8080/a?b=c",
        "https://93.184.216.34/",
        "https://[2606:2800:220:1:248:1893:25c8:1946]/",
    ] {
        hook_at(&organization, url, json!({}));
    }
}

/// Waits for the first attempt of the organization's only delivery, and gives its error.
#[track_caller]
fn error_of_the_attempt(organization: &Organization) -> String {
    let look = || observed(organization, "deliveries", "").pop();
    let tried = |one: &Value| one["attempts"] != 0;
    let delivery = wait_for("an attempt", || look().filter(tried), || format!("{:?}", look()));
    delivery["last_error"].as_str().unwrap_or_else(|| panic!("no error in {delivery}")).to_owned()
}

#[test]
fn an_address_that_is_allowed_no_more_is_not_dialled() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let receiver = Receiver::start();
    let lenient = Server::start_in(directory.path(), &[PRIVATE]);
    let before = lenient.organization();
    let hook = hook(&before, &receiver);
    lenient.signal("TERM");
    lenient.wait_until_gone();
    let strict = Server::start_in(directory.path(), &[]);
    let after =
        Organization { server: &strict, id: before.id.clone(), read: before.read.clone(), write: before.write.clone() };
    one_event(&after);
    assert_eq!(error_of_the_attempt(&after), "address_forbidden");
    let tested = super::act(&strict, &hook, "test", &Value::Null).ok();
    assert_eq!((&tested["delivered"], &tested["error"]), (&json!(false), &json!("address_forbidden")), "{tested}");
    quiet_while();
    assert_eq!((receiver.count(), receiver.connections()), (0, 0));
}

/// The machine's own name and a private address that it resolves to, where it has such.
fn own_name() -> Option<(String, SocketAddr)> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned();
    let found = (name.as_str(), 0).to_socket_addrs().ok()?.next()?;
    (name != "localhost" && !rental_core::webhooks::target::is_public(found.ip())).then_some((name, found))
}

#[test]
fn a_name_is_judged_by_what_it_resolves_to() {
    let Some((name, address)) = own_name() else {
        eprintln!("skipped a_name_is_judged_by_what_it_resolves_to: this machine's name has no private address");
        return;
    };
    let receiver = Receiver::at(address, |_, _| crate::support::receiver::Act::Status(200));
    let url = format!("http://{name}:{}/", receiver.address.port());
    let organization = Server::shared().organization();
    hook_at(&organization, &url, json!({}));
    one_event(&organization);
    let error = error_of_the_attempt(&organization);
    quiet_while();
    assert_eq!(receiver.connections(), 0, "{url} was dialled");
    assert_eq!(error, "address_forbidden");
    let allowed = usual().organization();
    hook_at(&allowed, &url, json!({}));
    one_event(&allowed);
    receiver.wait_for(1);
}

#[test]
fn with_https_only_no_other_url_is_saved_or_dialled() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let receiver = Receiver::start();
    let lenient = Server::start_in(directory.path(), &[PRIVATE]);
    let before = lenient.organization();
    let saved = hook(&before, &receiver);
    lenient.signal("TERM");
    lenient.wait_until_gone();
    let strict = Server::start_in(directory.path(), &[PRIVATE, "--webhook-https-only"]);
    let after =
        Organization { server: &strict, id: before.id.clone(), read: before.read.clone(), write: before.write.clone() };
    let body = |url: &str| json!({"organization_id": after.id, "url": url, "events": ["vehicle.created"]});
    for url in [receiver.url().as_str(), "http://example.com/"] {
        let refused = strict.admin("POST", "/admin/v1/webhook_endpoints", &body(url));
        assert_eq!(refused.bad_fields(), [("url".to_owned(), "parameter_invalid".to_owned())]);
        assert!(refused.text().contains("must begin with https://"), "{}", refused.text());
    }
    let made = strict.admin("POST", "/admin/v1/webhook_endpoints", &body("https://example.com/")).id();
    let path = format!("/admin/v1/webhook_endpoints/{made}");
    let changed = strict.admin("PATCH", &path, &json!({"url": "http://example.com/"}));
    assert_eq!(changed.bad_fields().len(), 1);
    one_event(&after);
    assert_eq!(error_of_the_attempt(&after), "https_required");
    assert_eq!((receiver.count(), receiver.connections()), (0, 0), "{}", saved.id);
}
