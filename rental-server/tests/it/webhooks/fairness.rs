//! One organization's slow receivers keep no other organization, and one endpoint no other endpoint, from its deliveries.

use super::{PRIVATE, act, hook, many_events, one_event, quiet_while};
use crate::support::{
    Organization, Server,
    receiver::{Act, Receiver},
};
use serde_json::Value;
use std::time::Duration;

/// Receivers that never respond. The attempt time-out is longer than the test, so no permit of theirs is returned.
const ENDLESS: [&str; 3] = [PRIVATE, "--webhook-timeout", "10m"];

/// Gives an organization so many endpoints at receivers that never respond, and events for all of them.
fn flood(organization: &Organization, receiver: &Receiver, endpoints: usize, events: usize) {
    (0..endpoints).for_each(|_| drop(hook(organization, receiver)));
    many_events(organization, events);
}

#[test]
fn three_organizations_with_hanging_receivers_delay_no_other_organization() {
    let server = Server::start(&ENDLESS);
    let hanging = Receiver::that(Act::Hang);
    let floods = [(); 3].map(|()| server.organization());
    for organization in &floods {
        flood(organization, &hanging, 40, 12);
    }
    let (victim, receiver) = (server.organization(), Receiver::start());
    hook(&victim, &receiver);
    // As many as were ever in flight at once for all endpoints together.
    hanging.wait_for(512);
    for count in 1..=20 {
        one_event(&victim);
        receiver.wait_for(count);
    }
    assert!(hanging.seen().iter().all(|one| one.ended.is_none()), "the flood hangs all the while");
}

/// Their receivers kept up at first, so each of the eight may have a hundred attempts in flight: more than one organization
/// gets.
#[test]
fn hanging_endpoints_of_an_organization_do_not_delay_its_other_endpoint() {
    const QUICK: usize = 8 * 200;
    let server = Server::start(&ENDLESS);
    let organization = server.organization();
    let slow = Receiver::with(|number, _| match number {
        0..QUICK => Act::After(Duration::from_millis(50), Box::new(Act::Status(200))),
        _ => Act::Hang,
    });
    let hooks: Vec<_> = (0..8).map(|_| hook(&organization, &slow)).collect();
    hooks.iter().for_each(|hook| drop(act(&server, hook, "disable", &Value::Null).ok()));
    many_events(&organization, 400);
    hooks.iter().for_each(|hook| drop(act(&server, hook, "enable", &Value::Null).ok()));
    // Less than half of all permits: this organization has what it gets.
    slow.wait_for(QUICK + 400);
    quiet_while();
    let receiver = Receiver::start();
    hook(&organization, &receiver);
    for count in 1..=20 {
        one_event(&organization);
        receiver.wait_for(count);
    }
    let in_flight = slow.seen().iter().filter(|one| one.ended.is_none()).count();
    assert!((400..=512).contains(&in_flight), "{in_flight} in flight");
}
