//! Webhooks as receivers, operators and attackers meet them (spec, Events; decisions, Events and Webhooks).

mod admin;
mod answers;
mod backlog;
mod concurrency;
mod crash;
pub(crate) mod damage;
mod deletions;
mod delivery;
mod disabling;
mod disconnects;
mod enabling;
pub(crate) mod erasing;
mod events;
mod failed;
mod fairness;
mod isolation;
mod limits;
mod master_key;
mod outages;
mod resending;
mod retention;
mod retries;
mod sdk;
mod secrets;
mod servers;
mod switched_off;
mod targets;

use crate::support::{
    Connection, Organization, Reply, Server, assert_this_test_runs_on_each_store,
    receiver::{PATIENCE, Receiver, Seen},
};
use serde_json::{Value, json};
use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

/// Lets endpoints be on this machine.
pub(crate) const PRIVATE: &str = "--webhook-allow-private";

/// A server with the documented schedule that all tests share which need nothing special.
fn usual() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    assert_this_test_runs_on_each_store();
    SERVER.get_or_init(|| Server::start(&[PRIVATE]))
}

/// A server of one's own with this schedule of retries.
fn with_schedule(schedule: &str) -> Server {
    Server::start(&[PRIVATE, "--webhook-retry-schedule", schedule])
}

/// An endpoint and the secret that its creation showed.
pub(crate) struct Hook {
    pub(crate) id: String,
    secret: String,
}

/// An endpoint of an organization at `url`, with more fields such as `events`.
#[track_caller]
fn hook_at(organization: &Organization, url: &str, mut fields: Value) -> Hook {
    fields["organization_id"] = json!(organization.id);
    fields["url"] = json!(url);
    let made = organization.server.admin("POST", "/admin/v1/webhook_endpoints", &fields).ok();
    let text = |name: &str| made[name].as_str().unwrap_or_else(|| panic!("no {name} in {made}")).to_owned();
    Hook { id: text("id"), secret: text("secret") }
}

/// An endpoint for all events.
#[track_caller]
pub(crate) fn hook(organization: &Organization, receiver: &Receiver) -> Hook {
    hook_at(organization, &receiver.url(), json!({}))
}

/// Does something to an endpoint: `enable`, `disable`, `test`, `recover`, `rotate_secret`.
#[track_caller]
fn act(server: &Server, hook: &Hook, word: &str, body: &Value) -> Reply {
    server.admin("POST", &format!("/admin/v1/webhook_endpoints/{}/{word}", hook.id), body)
}

/// The endpoint as it is now.
#[track_caller]
fn state(server: &Server, hook: &Hook) -> Value {
    server.admin("GET", &format!("/admin/v1/webhook_endpoints/{}", hook.id), &Value::Null).ok()
}

/// Waits until the endpoint is as wanted, and gives it.
#[track_caller]
fn wait_for_state(server: &Server, hook: &Hook, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    wait_for(what, || Some(state(server, hook)).filter(|state| wanted(state)), || state(server, hook).to_string())
}

#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>, instead: impl Fn() -> String) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}; there is {}", instead());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// All objects of an organization that only operators see, `events` or `deliveries`, newest first.
#[track_caller]
pub(crate) fn observed(organization: &Organization, plural: &str, query: &str) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/admin/v1/organizations/{}/{plural}?limit=100{query}{cursor}", organization.id);
        let page = organization.server.admin("GET", &path, &Value::Null).ok();
        found.extend(page["data"].as_array().expect("a list").iter().cloned());
        let Some(next) = page["next_cursor"].as_str() else { return found };
        cursor = format!("&starting_after={next}");
    }
}

/// Waits until all deliveries of an endpoint have this status and are at least `count`; gives them, newest first.
#[track_caller]
fn wait_for_deliveries(organization: &Organization, hook: &Hook, count: usize, status: &str) -> Vec<Value> {
    let look = || observed(organization, "deliveries", &format!("&endpoint={}", hook.id));
    wait_for(
        &format!("{count} deliveries that are {status}"),
        || {
            let found = look();
            let fine = found.len() >= count && found.iter().all(|one| one["status"] == status);
            fine.then_some(found)
        },
        || format!("{:?}", look().iter().map(|one| one["status"].to_string()).collect::<Vec<_>>()),
    )
}

/// Makes a customer, which is one event: `customer.created`.
#[track_caller]
pub(crate) fn one_event(organization: &Organization) {
    organization.customer(json!({}));
}

fn many_events(organization: &Organization, count: usize) {
    (0..count).for_each(|_| one_event(organization));
}

/// The header that signs a request: what `secrets` make of its own `t` and its raw body.
fn signed(seen: &Seen, secrets: &[&str]) -> String {
    let keys = secrets.iter().map(|secret| secret.as_bytes());
    rental_core::webhooks::signature::header(keys, signed_at(seen), &seen.body)
}

/// The `t` of the signature.
#[track_caller]
fn signed_at(seen: &Seen) -> u64 {
    let header = seen.header("Service-Signature");
    let digits = header.strip_prefix("t=").and_then(|rest| rest.split(',').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no t in {header}"))
}

/// A pause in which nothing may happen; a machine that is too slow to notice makes the test weaker, never red.
fn quiet_while() {
    std::thread::sleep(Duration::from_millis(300));
}

/// The value of a metric. The backlog has none before its first count.
#[track_caller]
pub(crate) fn metric(server: &Server, name: &str) -> f64 {
    let page = || Connection::open(&server.address).send("GET", "/metrics", &[], b"").text();
    let value = |page: &str| page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    wait_for(name, || value(&page()), page)
}
