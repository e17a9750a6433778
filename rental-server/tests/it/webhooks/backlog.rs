//! What `/metrics` says about deliveries that wait.

use super::{PRIVATE, act, hook, many_events, metric, one_event, wait_for, wait_for_deliveries, with_schedule};
use crate::support::{
    Connection, Server,
    receiver::{Act, Receiver},
};
use serde_json::Value;

/// The names of [`backlog`].
const NAMES: [&str; 5] =
    ["outbox_events", "deliveries_waiting", "deliveries_kept", "oldest_due_seconds", "oldest_undelivered_age_seconds"];

/// The numbers of one scrape.
#[track_caller]
fn backlog(server: &Server) -> [f64; 5] {
    metric(server, "rental_webhook_outbox_events");
    let page = Connection::open(&server.address).send("GET", "/metrics", &[], b"").text();
    NAMES.map(|name| {
        let wanted = format!("rental_webhook_{name} ");
        let value = page.lines().find_map(|line| line.strip_prefix(&wanted));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {wanted}in {page}"))
    })
}

#[track_caller]
fn wait_for_backlog(server: &Server, what: &str, wanted: impl Fn([f64; 5]) -> bool) {
    wait_for(what, || Some(backlog(server)).filter(|now| wanted(*now)), || format!("{:?}", backlog(server)));
}

#[test]
fn deliveries_kept_for_a_disabled_endpoint_are_not_overdue() {
    let server = Server::start(&[PRIVATE]);
    let (organization, receiver) = (server.organization(), Receiver::start());
    let hook = hook(&organization, &receiver);
    act(&server, &hook, "disable", &Value::Null).ok();
    many_events(&organization, 3);
    wait_for_backlog(&server, "three kept deliveries", |now| now == [0.0, 0.0, 3.0, 0.0, 0.0]);
    act(&server, &hook, "enable", &Value::Null).ok();
    receiver.wait_for(3);
    wait_for_backlog(&server, "an empty backlog", |now| now == [0.0; 5]);
}

#[test]
fn a_retry_that_waits_is_backlog_and_what_a_probe_keeps_waiting_is_overdue() {
    let server = with_schedule("5s,1h");
    let (organization, receiver) = (server.organization(), Receiver::with(|_, _| Act::Status(500)));
    let hook = hook(&organization, &receiver);
    one_event(&organization);
    receiver.wait_for(1);
    wait_for_backlog(&server, "one retry that is not due", |now| now[..4] == [0.0, 1.0, 0.0, 0.0] && now[4] > 0.0);
    many_events(&organization, 4);
    wait_for_backlog(&server, "deliveries that are overdue", |now| now[1] == 5.0 && now[3] > 0.0);
    receiver.now_does(Act::Status(200));
    wait_for_deliveries(&organization, &hook, 5, "delivered");
    wait_for_backlog(&server, "an empty backlog", |now| now == [0.0; 5]);
}
