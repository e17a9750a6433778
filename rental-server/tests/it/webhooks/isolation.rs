//! One endpoint's trouble is nobody else's.

use super::{PRIVATE, hook, many_events, one_event, state, usual, wait_for, wait_for_deliveries};
use crate::support::{
    Server,
    receiver::{Act, Receiver, Seen},
};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

#[test]
fn nine_endpoints_get_everything_while_the_tenth_hangs() {
    let server = Server::start(&[PRIVATE, "--webhook-timeout", "5m"]);
    let organization = server.organization();
    let hanging = Receiver::that(Act::Hang);
    hook(&organization, &hanging);
    let healthy = [(); 9].map(|()| Receiver::start());
    let hooks = healthy.each_ref().map(|receiver| hook(&organization, receiver));
    many_events(&organization, 60);
    for (receiver, hook) in healthy.iter().zip(&hooks) {
        let seen = receiver.wait_for(60);
        assert_eq!(seen.iter().map(Seen::event).collect::<BTreeSet<_>>().len(), 60);
        wait_for_deliveries(&organization, hook, 60, "delivered");
    }
    let seen = hanging.wait_for(10);
    assert!(seen.iter().all(|one| one.ended.is_none()), "the tenth hangs all the while");
    assert_eq!(seen.len(), 10, "at most ten attempts are under way for one endpoint");
}

#[test]
fn a_hanging_endpoint_does_not_delay_another_organization() {
    let (ours, theirs) = (usual().organization(), usual().organization());
    let (hanging, receiver) = (Receiver::that(Act::Hang), Receiver::start());
    hook(&ours, &hanging);
    hook(&theirs, &receiver);
    many_events(&ours, 20);
    hanging.wait_for(1);
    one_event(&theirs);
    receiver.wait_for(1);
}

/// Processor time of the server so far.
fn cpu(server: &Server) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid)).expect("Linux");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    let ticks: u64 = [11, 12].iter().map(|at| fields[*at].parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}

/// Waiting is asleep, not asking the time again and again: also while a retry is due and an attempt is under way.
#[test]
fn waiting_for_a_hanging_endpoint_costs_no_processor_time() {
    let server = Server::start(&[PRIVATE, "--webhook-retry-schedule", "50ms,50ms", "--webhook-timeout", "1500ms"]);
    let organization = server.organization();
    let receiver = Receiver::that(Act::Hang);
    let hook = hook(&organization, &receiver);
    many_events(&organization, 4);
    wait_for(
        "a failure",
        || state(&server, &hook)["failures_in_a_row"].as_u64().filter(|failures| *failures >= 4),
        || state(&server, &hook).to_string(),
    );
    let (before, started) = (cpu(&server), Instant::now());
    receiver.wait_for(receiver.count() + 3);
    let (spent, passed) = (cpu(&server) - before, started.elapsed());
    assert!(spent < passed / 4, "{spent:?} of processor time in {passed:?} of waiting");
}
