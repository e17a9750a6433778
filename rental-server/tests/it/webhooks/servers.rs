//! Several servers on one database: every endpoint has one sender at a time, whoever it is and whatever becomes of it.

use super::{PRIVATE, act, hook, observed, signed, wait_for, wait_for_deliveries};
use crate::support::{
    Organization, Server, database,
    receiver::{Act, Receiver, Seen},
};
use rental_core::{
    rows::key,
    store::{
        Batch, Commit, Prior, Store,
        postgres::{Address, Postgres, Settings},
    },
    value::{EndpointId, ServerId},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// So many servers on a new database.
fn servers<const N: usize>(flags: &[&str]) -> Option<[Server; N]> {
    let url = database()?;
    let flags: Vec<&str> = [PRIVATE].iter().chain(flags).copied().collect();
    Some([(); N].map(|()| Server::start_on(&url, &flags)))
}

/// How often each event came.
fn times(seen: &[Seen]) -> BTreeMap<String, usize> {
    seen.iter().fold(BTreeMap::new(), |mut times, one| {
        *times.entry(one.event().to_owned()).or_default() += 1;
        times
    })
}

/// Waits until each endpoint has a sender: a first event has come everywhere.
fn wait_until_served(organization: &Organization, receivers: &[Receiver]) {
    organization.post("/v1/leads", &json!({"source_channel": "first"})).ok();
    for receiver in receivers {
        receiver.wait_for(1);
    }
}

#[test]
fn each_event_of_any_server_comes_once_to_each_endpoint() {
    let Some(url) = database() else { return };
    let start = || Server::start_on(&url, &[PRIVATE]);
    let first = start();
    let before = first.organization();
    let receivers: Vec<Receiver> = (0..6).map(|_| Receiver::start()).collect();
    receivers.iter().for_each(|receiver| drop(hook(&before, receiver)));
    // These two find the endpoints when they start.
    let servers = [&first, &start(), &start()];
    let here = before.by_way_of(servers[0]);
    wait_until_served(&here, &receivers);
    std::thread::scope(|scope| {
        for server in servers {
            let organization = here.by_way_of(server);
            scope.spawn(move || {
                for n in 0..40 {
                    organization.post("/v1/leads", &json!({"source_channel": n.to_string()})).ok();
                }
            });
        }
    });
    for receiver in &receivers {
        let seen = receiver.wait_for(121);
        assert!(times(&seen).len() == 121 && seen.len() == 121, "{} of 121, {} times", times(&seen).len(), seen.len());
    }
    super::quiet_while();
    assert_eq!(receivers.iter().map(Receiver::count).collect::<Vec<_>>(), [121; 6]);
}

#[test]
fn endpoints_of_a_server_that_is_killed_are_taken_over_and_no_event_is_lost() {
    let Some(servers) = servers::<3>(&[]) else { return };
    let here = servers[0].organization();
    let receivers: Vec<Receiver> = (0..6).map(|_| Receiver::start()).collect();
    receivers.iter().for_each(|receiver| drop(hook(&here, receiver)));
    wait_until_served(&here, &receivers);
    for round in 0..2 {
        for n in 0..10 {
            here.post("/v1/leads", &json!({"source_channel": format!("{round} {n}")})).ok();
        }
        servers[2 - round].signal("KILL");
    }
    for n in 0..10 {
        here.post("/v1/leads", &json!({"source_channel": format!("last {n}")})).ok();
    }
    for receiver in &receivers {
        receiver.wait_until("all 31 events", |seen| times(seen).len() == 31);
    }
}

/// How many deliveries this server has made: the counter of its own attempts.
fn delivered_by(server: &Server) -> u64 {
    super::metric(server, "rental_webhook_attempt_duration_seconds_count{outcome=\"delivered\"}") as u64
}

/// The bound is that of the design, 10 s without a heartbeat and up to 2 s to look, and as much again for a busy machine.
#[test]
fn the_owner_of_an_endpoint_is_killed_and_another_server_delivers_soon() {
    let Some(servers) = servers::<3>(&[]) else { return };
    let (mut alive, receiver) = (Vec::from_iter(&servers), Receiver::start());
    let here = servers[0].organization();
    hook(&here, &receiver);
    wait_until_served(&here, std::slice::from_ref(&receiver));
    for _ in 0..2 {
        let before: Vec<u64> = alive.iter().map(|server| delivered_by(server)).collect();
        let seen = receiver.count();
        here.by_way_of(alive[0]).post("/v1/leads", &json!({})).ok();
        receiver.wait_for(seen + 1);
        let grown = || alive.iter().zip(&before).position(|(server, before)| delivered_by(server) > *before);
        let owner = wait_for("the delivery to be counted", grown, String::new);
        let victim = alive.remove(owner);
        victim.signal("KILL");
        let killed = Instant::now();
        victim.wait_until_gone();
        let lead = here.by_way_of(alive[0]).post("/v1/leads", &json!({})).id();
        // An attempt whose outcome the killed server had not yet written is made again before.
        let of_lead = |seen: &[Seen]| seen.iter().position(|one| one.json()["data"]["id"] == json!(lead));
        let seen = receiver.wait_until("the new event", |seen| of_lead(seen).is_some());
        let after = seen[of_lead(&seen).unwrap()].began.duration_since(killed);
        println!("another server delivered {after:?} after the kill of the one that sent before");
        assert!(after < Duration::from_secs(24), "{after:?}");
    }
}

#[test]
fn a_server_that_stops_in_order_hands_its_endpoints_over() {
    let Some([mut first, second]) = servers::<2>(&[]) else { return };
    let here = second.organization();
    let receivers: Vec<Receiver> = (0..6).map(|_| Receiver::start()).collect();
    receivers.iter().for_each(|receiver| drop(hook(&here, receiver)));
    wait_until_served(&here, &receivers);
    first.signal("TERM");
    assert_eq!(first.exit_code(), Some(0));
    for _ in 0..5 {
        here.post("/v1/leads", &json!({})).ok();
    }
    for receiver in &receivers {
        assert_eq!(times(&receiver.wait_for(6)).len(), 6);
    }
    super::quiet_while();
    assert_eq!(receivers.iter().map(Receiver::count).collect::<Vec<_>>(), [6; 6]);
}

#[test]
fn what_one_server_changes_about_an_endpoint_its_sender_heeds() {
    let Some([first, second]) = servers::<2>(&[]) else { return };
    let here = first.organization();
    let (old, new) = (Receiver::start(), Receiver::start());
    let hook = hook(&here, &old);
    wait_until_served(&here, std::slice::from_ref(&old));
    for server in [&first, &second] {
        let path = format!("/admin/v1/webhook_endpoints/{}", hook.id);
        let url = if server.pid == first.pid { new.url() } else { old.url() };
        server.admin("PATCH", &path, &json!({"url": url})).ok();
        let (target, other) = if server.pid == first.pid { (&new, &old) } else { (&old, &new) };
        // A change is heeded within a heartbeat of the servers; until then the old address may still get some.
        wait_for(
            "a delivery to the new address alone",
            || {
                let before = (target.count(), other.count());
                here.post("/v1/leads", &json!({})).ok();
                std::thread::sleep(Duration::from_millis(300));
                (target.count() > before.0 && other.count() == before.1).then_some(())
            },
            String::new,
        );
    }
    act(&second, &hook, "disable", &Value::Null).ok();
    std::thread::sleep(Duration::from_secs(3));
    let before = old.count();
    here.post("/v1/leads", &json!({})).ok();
    super::quiet_while();
    assert_eq!(old.count(), before, "disabled by another server");
    act(&second, &hook, "enable", &Value::Null).ok();
    old.wait_for(before + 1);
}

#[test]
fn a_secret_that_one_server_rotates_is_used_by_the_sender_of_another() {
    let Some([first, second]) = servers::<2>(&[]) else { return };
    let (here, receiver) = (first.organization(), Receiver::start());
    let hook = hook(&here, &receiver);
    wait_until_served(&here, std::slice::from_ref(&receiver));
    let mut secret = hook.secret.clone();
    // One of the two is not the one that sends.
    for server in [&first, &second] {
        let rotated = act(server, &hook, "rotate_secret", &json!({"overlap_seconds": 0})).ok();
        secret = rotated["secret"].as_str().expect("a secret").to_owned();
        wait_for(
            "a delivery that the new secret signs",
            || {
                let before = receiver.count();
                here.post("/v1/leads", &json!({})).ok();
                let seen = receiver.wait_for(before + 1);
                let last = seen.last().expect("a delivery");
                (last.header("Service-Signature") == signed(last, &[&secret])).then_some(())
            },
            String::new,
        );
    }
    assert_ne!(secret, hook.secret);
}

#[test]
fn twenty_failures_disable_an_endpoint_once_whoever_saw_them() {
    let Some(servers) = servers::<3>(&["--webhook-retry-schedule", "10ms,10ms,10ms,10ms,10ms"]) else { return };
    let here = servers[0].organization();
    let receiver = Receiver::with(|_, _| Act::Status(500));
    let hook = hook(&here, &receiver);
    for server in servers.iter().cycle().take(6) {
        here.by_way_of(server).post("/v1/leads", &json!({})).ok();
    }
    let state = || servers[1].admin("GET", &format!("/admin/v1/webhook_endpoints/{}", hook.id), &Value::Null).ok();
    wait_for("the endpoint to be disabled", || (state()["status"] == "disabled").then_some(()), || state().to_string());
    assert_eq!(state()["failures_in_a_row"], 20);
    super::quiet_while();
    assert_eq!(receiver.count(), 20);
    receiver.now_does(Act::Status(200));
    act(&servers[2], &hook, "enable", &Value::Null).ok();
    wait_for(
        "the rest to arrive",
        || {
            let all = observed(&here, "deliveries", "");
            all.iter().all(|one| one["status"] != "pending").then_some(())
        },
        String::new,
    );
}

#[test]
fn a_resent_event_goes_out_whichever_server_is_asked() {
    let Some(servers) = servers::<2>(&[]) else { return };
    let here = servers[0].organization();
    let receiver = Receiver::start();
    let hook = hook(&here, &receiver);
    wait_until_served(&here, std::slice::from_ref(&receiver));
    let event = receiver.seen()[0].event().to_owned();
    for (n, server) in servers.iter().enumerate() {
        server.admin("POST", &format!("/admin/v1/events/{event}/resend"), &Value::Null).ok();
        receiver.wait_for(n + 2);
    }
    wait_for_deliveries(&here, &hook, 3, "delivered");
}

#[test]
fn bells_of_servers_that_are_gone_are_removed() {
    let Some(url) = database() else { return };
    drop(Server::start_on(&url, &[PRIVATE]));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let settings = Settings { writer: uuid::Uuid::from_u128(1), patience: Duration::from_secs(10) };
    let address = Address::parse(&url).expect("a URL");
    let store = runtime.block_on(Postgres::open(&address, None, settings)).expect("the database opens");
    let bells = || runtime.block_on(store.scan(&key::bells_of_all(), 2_000)).expect("the database answers").len();
    // Two servers that were killed; nobody ever saw the heartbeat of the second.
    let mut batch = Batch::default();
    let [seen, unseen] = [1, 2].map(ServerId::from_u128);
    batch.insert(key::heartbeat(seen), bytes::Bytes::new());
    for endpoint in (0..700).map(EndpointId::from_u128) {
        [seen, unseen].into_iter().for_each(|server| batch.mark(key::bell(server, endpoint), Prior::New));
    }
    assert_eq!(runtime.block_on(store.commit(batch)), Ok(Commit::Applied));
    let _server = Server::start_on(&url, &[PRIVATE]);
    wait_for("the bells to be removed", || (bells() == 0).then_some(()), || bells().to_string());
}
