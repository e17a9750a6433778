//! SIGTERM and SIGSTOP while more is sent than the server can do.

use crate::{
    crash::{CLIENTS, World, check_everything, check_replays, client, try_perform},
    support::{
        Connection, Organization, Server,
        receiver::{Receiver, Seen},
    },
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// Writes on one connection after the other until nobody listens, or until it has to stop. A response that says so ends its connection; any other
/// end of a connection that has served before is an error.
pub(super) fn keep_writing(
    organization: &Organization<'_>,
    number: usize,
    acknowledged: &Mutex<Vec<String>>,
    (broken, stop): (&AtomicUsize, &AtomicBool),
) {
    let bearer = format!("Bearer {}", organization.write);
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    while let Ok(mut connection) = Connection::try_open(&organization.server.address) {
        for served in 0.. {
            if stop.load(Ordering::SeqCst) {
                return;
            }
            let body = json!({"name": format!("{number} {served}")}).to_string();
            match connection.try_send("POST", "/v1/vehicles", &headers, body.as_bytes()) {
                Ok(reply) => {
                    if reply.status == 503 {
                        assert!(reply.header("retry-after").is_some());
                    } else {
                        acknowledged.lock().unwrap().push(reply.id());
                    }
                    if reply.header("connection") == Some("close") {
                        break;
                    }
                }
                Err(_) => {
                    // A connection that nobody accepted before the socket was closed has no server to answer it.
                    broken.fetch_add(usize::from(served > 0), Ordering::SeqCst);
                    break;
                }
            }
        }
    }
}

#[test]
fn sigterm_under_overload_answers_what_was_sent_and_loses_nothing() {
    const CLIENTS: usize = 200;
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::start_in(directory.path(), &[]);
    let organization = server.organization();
    let (id, read, write) = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    let (acknowledged, broken, stop) = (Mutex::new(Vec::new()), AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (organization, acknowledged, broken, stop) = (&organization, &acknowledged, &broken, &stop);
        for number in 0..CLIENTS {
            scope.spawn(move || keep_writing(organization, number, acknowledged, (broken, stop)));
        }
        while acknowledged.lock().unwrap().len() < 5 * CLIENTS {
            thread::sleep(Duration::from_millis(5));
        }
        organization.server.signal("TERM");
    });
    drop(organization);
    assert_eq!(server.exit_code(), Some(0));
    let acknowledged = acknowledged.into_inner().unwrap();
    assert_eq!(broken.into_inner(), 0, "connections were broken, beside {} writes", acknowledged.len());
    let server = Server::start_in(directory.path(), &[]);
    let organization = Organization { server: &server, id, read, write };
    let mut connection = Connection::open(&server.address);
    let bearer = format!("Bearer {}", organization.write);
    for id in &acknowledged {
        let reply = connection.send("GET", &format!("/v1/vehicles/{id}"), &[("Authorization", &bearer)], b"");
        assert_eq!(reply.status, 200, "{id} was acknowledged, and is gone");
    }
    println!("{} writes were acknowledged", acknowledged.len());
}

#[test]
fn a_server_that_is_stopped_under_load_goes_on_where_it_was() {
    let server = Server::start(&["--webhook-allow-private"]);
    let (mut world, receiver) = (World::new(&server), Receiver::start());
    let hook = json!({"organization_id": world.organization(&server).id, "url": receiver.url()});
    server.admin("POST", "/admin/v1/webhook_endpoints", &hook).ok();
    let before = world.promised_events();
    let stop = AtomicBool::new(false);
    let histories: Vec<_> = thread::scope(|scope| {
        let (world, server, stop) = (&world, &server, &stop);
        let run = |number| {
            scope.spawn(move || {
                let (organization, mut connection) = (world.organization(server), Connection::open(&server.address));
                client(world, number, 11, |request| {
                    let going = !stop.load(Ordering::SeqCst);
                    going.then(|| {
                        // After the pause a database can have ended what was on its way: the client asks again.
                        loop {
                            let reply = try_perform(&organization.write, &mut connection, request).expect("a response");
                            if reply.status != 503 {
                                return reply;
                            }
                            thread::sleep(Duration::from_millis(50));
                        }
                    })
                })
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(run).collect();
        for _ in 0..2 {
            thread::sleep(Duration::from_millis(500));
            server.signal("STOP");
            thread::sleep(Duration::from_secs(5));
            server.signal("CONT");
        }
        thread::sleep(Duration::from_millis(500));
        stop.store(true, Ordering::SeqCst);
        clients.into_iter().map(|client| client.join().expect("a client ends")).collect()
    });
    // The last request of each client was never sent.
    world.done.extend(histories.into_iter().flat_map(|(done, _)| done));
    let organization = world.organization(&server);
    check_everything(&organization, &world);
    check_replays(&organization, &world);
    check_everything(&organization, &world);
    assert_eq!(Connection::open(&server.address).send("GET", "/readyz", &[], b"").status, 200);
    // A delivery that was under way can come twice, with the same id.
    let mut promised = world.promised_events();
    for (event, count) in before {
        *promised.entry(event).or_insert(0) -= count;
    }
    promised.retain(|_, count| *count > 0);
    let told = |seen: &[Seen]| {
        let (mut ids, mut told) = (BTreeSet::new(), BTreeMap::new());
        for event in seen.iter().map(Seen::json) {
            let [id, kind, object] = [&event["id"], &event["type"], &event["data"]["id"]];
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            if ids.insert(text(id)) {
                *told.entry((text(kind), text(object))).or_insert(0) += 1;
            }
        }
        told
    };
    receiver.wait_until("every event of an acknowledged write", |seen| told(seen) == promised);
}
