//! One endpoint's trouble is nobody else's.

use super::{PRIVATE, hook, many_events, one_event, usual, wait_for_deliveries};
use crate::support::{
    Server,
    receiver::{Act, Receiver, Seen},
};
use std::{collections::BTreeSet, fs};

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

/// How often the server's threads have gone to sleep so far.
fn naps(server: &Server) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", server.pid)).expect("Linux").flatten();
    let status = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let naps = |status: String| {
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    status.filter_map(naps).sum()
}

/// Waiting is asleep, not asking the time again and again: also when a retry falls due while a probe is under way.
#[test]
fn waiting_for_a_hanging_endpoint_is_one_long_sleep() {
    let server = Server::start(&[PRIVATE, "--webhook-retry-schedule", "3s,3s", "--webhook-timeout", "4s"]);
    let organization = server.organization();
    let receiver = Receiver::that(Act::Hang);
    hook(&organization, &receiver);
    let given_up = |count| move |seen: &[Seen]| seen.iter().filter(|one| one.ended.is_some()).count() >= count;
    one_event(&organization);
    receiver.wait_until("the first to be given up", given_up(1));
    one_event(&organization);
    receiver.wait_for(2);
    let before = naps(&server);
    receiver.wait_until("the second to be given up", given_up(2));
    let spent = naps(&server) - before;
    assert!(spent < 400, "the server woke up {spent} times while it waited for one answer");
}
