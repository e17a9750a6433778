//! A server that is killed, or the database, while clients write through three servers: nothing that was acknowledged is
//! lost, a request that is repeated elsewhere with its idempotency key has one effect, and the others go on.

use super::AtTheEnd;
use crate::{
    crash::{CLIENTS, Request, World, check_everything, check_replays, client, try_perform},
    support::{Cluster, Connection, Reply, Server, database},
    webhooks::observed,
};
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Longest time in which a server that runs answers no write. It is generous, since the machine may be busy.
const MOST_PAUSE: Duration = Duration::from_secs(15);

/// What all clients know.
struct Load {
    /// Where the servers are; one that was started again is elsewhere.
    addresses: RwLock<Vec<String>>,
    key: String,
    stop: AtomicBool,
    /// When each server answered a write.
    answered: Mutex<Vec<(usize, Instant)>>,
}

impl Load {
    /// Sends a request to one server after the other until it is answered; `None` once it is time to stop.
    fn send(&self, turn: &mut usize, request: &Request) -> Option<Reply> {
        if self.stop.load(Ordering::SeqCst) {
            return None;
        }
        let deadline = Instant::now() + 4 * MOST_PAUSE;
        loop {
            *turn += 1;
            let server = *turn % 3;
            let address = self.addresses.read().unwrap()[server].clone();
            let sent = Connection::try_open(&address).and_then(|mut connection| {
                // A server that is stopped accepts connections and never answers.
                connection.stream.get_ref().set_read_timeout(Some(MOST_PAUSE / 5))?;
                try_perform(&self.key, &mut connection, request)
            });
            match sent {
                // Down for a moment, or the first attempt still runs: both say to come back.
                Ok(reply) if reply.header("retry-after").is_some() => {
                    let class = (reply.status, reply.json()["error"]["code"].clone());
                    let known = [(503, "service_unavailable".into()), (409, "idempotency_key_in_use".into())];
                    assert!(known.contains(&class), "{class:?}");
                }
                Ok(reply) => {
                    self.answered.lock().unwrap().push((server, Instant::now()));
                    return Some(reply);
                }
                Err(_) => {}
            }
            assert!(Instant::now() < deadline, "no server answers {request:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The longest time without an answer of this server, from `began` to now.
    fn pause(&self, server: usize, began: Instant) -> Duration {
        let answered = self.answered.lock().unwrap();
        let mut moments: Vec<Instant> =
            answered.iter().filter(|(who, at)| *who == server && *at > began).map(|(_, at)| *at).collect();
        moments.push(Instant::now());
        moments.sort();
        let before = std::iter::once(began).chain(moments.iter().copied());
        moments.iter().zip(before).map(|(at, before)| at.duration_since(before)).max().unwrap_or_default()
    }

    /// Waits until each of these servers has answered some writes since `began`: it goes on by itself.
    #[track_caller]
    fn wait_for_answers(&self, servers: &[usize], began: Instant) {
        let goes_on = |server: usize| {
            let answered = self.answered.lock().unwrap();
            answered.iter().filter(|(who, at)| *who == server && *at > began).count() >= 25
        };
        while !servers.iter().all(|server| goes_on(*server)) {
            assert!(began.elapsed() < 2 * MOST_PAUSE, "a server of {servers:?} does not serve");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Lets clients write through three servers while `disturb` does its work; then every server must tell the same story as
/// the answers.
fn write_while(servers: &mut [Server; 3], seed: u64, disturb: impl FnOnce(&mut [Server; 3], &Load)) {
    let mut world = World::new(&servers[0]);
    let load = Load {
        addresses: RwLock::new(servers.iter().map(|server| server.address.clone()).collect()),
        key: world.organization(&servers[0]).write.clone(),
        stop: AtomicBool::new(false),
        answered: Mutex::default(),
    };
    let histories: Vec<_> = thread::scope(|scope| {
        let (load, world) = (&load, &world);
        let run = |number| {
            scope.spawn(move || {
                let mut turn = number as usize;
                client(world, number, seed, |request| load.send(&mut turn, request))
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(run).collect();
        let ended = AtTheEnd(&load.stop);
        disturb(servers, load);
        drop(ended);
        clients.into_iter().map(|client| client.join().expect("a client ends")).collect()
    });
    // The last request of each client was never sent.
    world.done.extend(histories.into_iter().flat_map(|(done, _)| done));
    for server in &*servers {
        let organization = world.organization(server);
        check_everything(&organization, &world);
        check_replays(&organization, &world);
        check_everything(&organization, &world);
        let mut events = BTreeMap::new();
        for event in observed(&organization, "events", "") {
            let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
            *events.entry((text(&event["type"]), text(&event["data"]["id"]))).or_insert(0) += 1;
        }
        assert_eq!(events, world.promised_events());
    }
    println!("{} writes were answered", world.done.len());
}

#[test]
fn writes_through_three_servers_survive_kill_9_of_each_and_the_others_go_on() {
    let Some(url) = database() else { return };
    let mut servers = [(); 3].map(|()| Server::start_on(&url, &[]));
    write_while(&mut servers, 1, |servers, load| {
        for victim in [1, 2, 0] {
            let others = [(victim + 1) % 3, (victim + 2) % 3];
            load.wait_for_answers(&[0, 1, 2], Instant::now());
            let killed = Instant::now();
            servers[victim].signal("KILL");
            servers[victim].wait_until_gone();
            load.wait_for_answers(&others, Instant::now());
            thread::sleep(Duration::from_millis(300));
            for other in others {
                let pause = load.pause(other, killed);
                println!("server {victim} was killed: server {other} paused for {pause:?} at most");
                assert!(pause < MOST_PAUSE, "{pause:?}");
            }
            servers[victim] = Server::start_on(&url, &[]);
            load.addresses.write().unwrap()[victim].clone_from(&servers[victim].address);
            load.wait_for_answers(&[0, 1, 2], Instant::now());
        }
    });
}

/// Long enough for the others to take over what the stopped server owned. When it goes on, it finds its leases expired.
#[test]
fn writes_through_three_servers_survive_one_that_is_stopped_and_goes_on() {
    let Some(url) = database() else { return };
    let mut servers = [(); 3].map(|()| Server::start_on(&url, &[]));
    write_while(&mut servers, 4, |servers, load| {
        for stopped in [1, 2] {
            load.wait_for_answers(&[0, 1, 2], Instant::now());
            let others = [(stopped + 1) % 3, (stopped + 2) % 3];
            let began = Instant::now();
            servers[stopped].signal("STOP");
            thread::sleep(Duration::from_millis(12_000));
            servers[stopped].signal("CONT");
            load.wait_for_answers(&[0, 1, 2], Instant::now());
            for other in others {
                println!("server {stopped} was stopped: server {other} paused for {:?}", load.pause(other, began));
            }
        }
    });
}

#[test]
fn writes_through_three_servers_survive_a_crash_of_the_database() {
    let Some(cluster) = Cluster::start() else { return };
    let url = cluster.database();
    let mut servers = [(); 3].map(|()| Server::start_on(&url, &[]));
    write_while(&mut servers, 2, |_, load| {
        for _ in 0..2 {
            load.wait_for_answers(&[0, 1, 2], Instant::now());
            let crashed = Instant::now();
            cluster.restart();
            let back = crashed.elapsed();
            load.wait_for_answers(&[0, 1, 2], Instant::now());
            for server in 0..3 {
                let pause = load.pause(server, crashed);
                println!("the database was back after {back:?}, server {server} paused for {pause:?} at most");
                assert!(pause < back + MOST_PAUSE, "{pause:?}");
            }
        }
    });
}

/// Each acknowledged commit is on both: the standby may replace the primary at any moment.
#[test]
fn writes_through_three_servers_survive_the_loss_of_the_primary() {
    let Some(primary) = Cluster::start() else { return };
    let standby = primary.standby();
    let url = format!("{}&host={}", primary.database(), standby.directory.display());
    let mut servers = [(); 3].map(|()| Server::start_on(&url, &[]));
    write_while(&mut servers, 3, |_, load| {
        load.wait_for_answers(&[0, 1, 2], Instant::now());
        let killed = Instant::now();
        primary.kill();
        standby.promote();
        let promoted = killed.elapsed();
        load.wait_for_answers(&[0, 1, 2], Instant::now());
        for server in 0..3 {
            let pause = load.pause(server, killed);
            println!("promoted after {promoted:?}, server {server} paused for {pause:?} at most");
            assert!(pause < promoted + MOST_PAUSE, "{pause:?}");
        }
    });
}
