//! Clients race on a few objects, and what each saw is written down. The histories must be linearizable for each object, a
//! repeated idempotency key has one effect, and a walk shows every object that was there when it began.
//!
//! `RENTAL_HISTORIES` sets the number of rounds for each engine (2 without it).

mod checker;

use crate::{
    postgres::AtTheEnd,
    support::{Organization, Reply, Server, database, rules},
};
use checker::{Answer, Call, Operation, State, is_linearizable};
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

const CLIENTS: u64 = 8;
const OBJECTS: usize = 3;
const CALLS: u64 = 60;
/// Years that a vehicle may have, so that clients often write the value that is there.
const YEARS: u64 = 4;

fn rounds() -> u64 {
    std::env::var("RENTAL_HISTORIES").map_or(2, |rounds| rounds.parse().expect("a number"))
}

/// A small generator, so that what a client does follows from its number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn state_of(reply: &Reply) -> State {
    let revision = reply.header("etag").and_then(|tag| tag.trim_matches('"').parse().ok()).expect("an ETag");
    State { revision, value: reply.ok()["year"].as_u64().expect("a year") }
}

fn answer_of(reply: &Reply) -> Answer {
    match reply.status {
        200 => Answer::Object(state_of(reply)),
        412 => Answer::OtherRevision,
        _ => panic!("{}", reply.text()),
    }
}

/// Sends a write to two servers at once, with one idempotency key. Gives the answer: both have the same, or one says that the
/// other runs.
fn sent_twice(
    one: &Organization<'_>,
    other: &Organization<'_>,
    path: &str,
    headers: &[(&str, &str)],
    year: u64,
) -> Reply {
    let body = json!({"year": year});
    let send = |organization: &Organization<'_>| organization.call_with("PATCH", path, headers, &body);
    let (first, second) = thread::scope(|scope| {
        let second = scope.spawn(|| send(other));
        (send(one), second.join().expect("it is answered"))
    });
    let code = |reply: &Reply| reply.json()["error"]["code"].clone();
    match (first.status, second.status) {
        (409, _) if code(&first) == "idempotency_key_in_use" => second,
        (_, 409) if code(&second) == "idempotency_key_in_use" => first,
        _ => {
            let once =
                [&first, &second].map(|reply| (reply.status, reply.text(), reply.header("etag").map(str::to_owned)));
            // The key of a request that failed for its revision is free again: each of both was compared by itself.
            assert!(once[0] == once[1] || first.status == 412 || second.status == 412, "{once:?}");
            if first.status == 200 { first } else { second }
        }
    }
}

/// What one client did to each object.
fn client(
    servers: &[Organization<'_>],
    paths: &[String],
    number: u64,
    seed: u64,
    clock: Instant,
) -> Vec<(usize, Operation)> {
    let mut dice = Dice(seed * 1000 + number);
    let mut known = vec![1; paths.len()];
    let now = || u64::try_from(clock.elapsed().as_nanos()).expect("a short test");
    let one_call = |turn: u64| {
        let object = dice.roll(paths.len() as u64) as usize;
        let (path, year) = (&paths[object], 2000 + dice.roll(YEARS));
        let server = |at: u64| &servers[(at % servers.len() as u64) as usize];
        let at = dice.roll(8);
        let (call, tag) = match dice.roll(5) {
            0 | 1 => (Call::Read, None),
            2 => (Call::Write(year, Some(known[object])), Some(format!("\"{}\"", known[object]))),
            _ => (Call::Write(year, None), None),
        };
        let key = format!("s{seed}-c{number}-{turn}");
        let mut headers = vec![("Idempotency-Key", key.as_str())];
        headers.extend(tag.as_deref().map(|tag| ("If-Match", tag)));
        let sent = now();
        let reply = match call {
            Call::Read => server(at).get(path),
            Call::Write(..) if tag.is_none() && dice.roll(4) == 0 => {
                sent_twice(server(at), server(at + 1), path, &headers, year)
            }
            Call::Write(..) => server(at).call_with("PATCH", path, &headers, &json!({"year": year})),
        };
        let answered = now();
        let answer = answer_of(&reply);
        if let Answer::Object(state) = answer {
            known[object] = state.revision;
        }
        (object, Operation { call, answer, sent, answered })
    };
    (0..CALLS).map(one_call).collect()
}

/// Walks the list while others make objects; every object that was answered before the walk began is shown once.
fn walk_while(servers: &[Organization<'_>], ended: &AtomicBool) {
    let (mut walks, mut made) = (0, BTreeSet::new());
    while !ended.load(Ordering::SeqCst) || walks < 3 {
        made.insert(servers[walks % servers.len()].vehicle(json!({"year": 1990})));
        let seen = rules::ids(&rules::walk(&servers[(walks + 1) % servers.len()], "vehicles", "", 7));
        assert!(seen.is_sorted_by(|newer, older| newer > older), "newest first, none twice: {seen:?}");
        assert!(made.iter().all(|id| seen.contains(id)), "an object is missing");
        walks += 1;
    }
}

/// The histories of one round, for each object.
fn race(servers: &[Organization<'_>], seed: u64) -> Vec<Vec<Operation>> {
    let paths: Vec<String> =
        (0..OBJECTS).map(|_| format!("/v1/vehicles/{}", servers[0].vehicle(json!({"year": 2000})))).collect();
    let (clock, ended) = (Instant::now(), AtomicBool::new(false));
    let mut histories = vec![Vec::new(); OBJECTS];
    thread::scope(|scope| {
        let (paths, ended) = (&paths, &ended);
        scope.spawn(move || walk_while(servers, ended));
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || client(servers, paths, number, seed, clock))).collect();
        let _end = AtTheEnd(ended);
        for client in clients {
            for (object, operation) in client.join().expect("a client ends") {
                histories[object].push(operation);
            }
        }
    });
    histories
}

const FIRST: State = State { revision: 1, value: 2000 };

fn check(servers: &[Organization<'_>]) {
    for seed in 0..rounds() {
        for (object, history) in race(servers, seed).into_iter().enumerate() {
            assert!(is_linearizable(FIRST, &history), "seed {seed}, object {object}: {history:#?}");
            let writes = history
                .iter()
                .filter(|operation| matches!(operation.answer, Answer::Object(state) if state.revision > 1));
            assert!(writes.count() > 20, "the run says nothing");
            tampered(history, seed);
        }
    }
}

/// One read is made stale: the check must notice.
fn tampered(mut history: Vec<Operation>, seed: u64) {
    let last = history.iter().map(|operation| operation.answered).max().expect("operations");
    history.push(Operation { call: Call::Read, answer: Answer::Object(FIRST), sent: last + 1, answered: last + 2 });
    assert!(!is_linearizable(FIRST, &history), "seed {seed}: a stale read was not noticed");
}

#[test]
fn racing_clients_of_one_server_see_one_order() {
    let server = Server::start(&[]);
    check(&[server.organization()]);
}

#[test]
fn racing_clients_of_three_servers_see_one_order() {
    let Some(url) = database() else { return };
    let servers = [(); 3].map(|()| Server::start_on(&url, &[]));
    let organization = servers[0].organization();
    let all: Vec<Organization<'_>> = servers.iter().map(|server| organization.by_way_of(server)).collect();
    check(&all);
}
