//! A full disk: writes are refused, reads go on, and writes are taken again once there is room, without a restart.

use crate::{
    calendars::day,
    support::{Connection, Organization, Reply, Server, SmallDisk, receiver::Receiver},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::PathBuf,
    sync::mpsc,
    time::{Duration, Instant},
};

/// A disk of 40 MB, of which a file takes 20.
struct Disk {
    ballast: PathBuf,
    store: String,
    disk: SmallDisk,
}

impl Disk {
    fn new() -> Option<Self> {
        let disk = SmallDisk::mount("40m")?;
        let ballast = disk.path().join("ballast");
        fs::write(&ballast, vec![1; 20 << 20]).expect("there is room");
        let store = format!("redb:{}", disk.path().join("rental.redb").display());
        Some(Self { ballast, store, disk })
    }

    fn server(&self, min_free_space: &str) -> Server {
        let flags = ["--store", &self.store, "--min-free-space", min_free_space, "--webhook-allow-private"];
        Server::start(&flags).expecting_errors("too little room")
    }

    fn make_room(&self) {
        assert!(self.disk.path().is_dir());
        fs::remove_file(&self.ballast).expect("the ballast is there");
    }
}

/// A large customer, under an idempotency key of its own.
fn create(organization: &Organization<'_>, number: usize) -> Reply {
    let body = json!({"full_name": format!("Customer {number}"), "notes": "n".repeat(10_000)});
    organization.call_with("POST", "/v1/customers", &[("Idempotency-Key", &format!("k{number}"))], &body)
}

/// Creates customers until one is refused; gives the created ones.
fn fill(organization: &Organization<'_>) -> (Vec<Value>, Reply) {
    let mut created = Vec::new();
    for number in 0..5_000 {
        let reply = create(organization, number);
        match reply.status {
            200 => created.push(reply.json()),
            503 => return (created, reply),
            _ => panic!("{}", reply.text()),
        }
    }
    panic!("the disk is larger than it should be")
}

fn readiness(server: &Server) -> Value {
    Connection::open(&server.address).send("GET", "/readyz", &[], b"").ok()
}

fn metric(server: &Server) -> bool {
    let page = Connection::open(&server.address).send("GET", "/metrics", &[], b"").text();
    page.lines().any(|line| line == "rental_storage_full 1")
}

/// Waits until this is so. The bound tells a hang from progress.
fn until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// How often each event has arrived.
fn arrivals(receiver: &Receiver) -> BTreeMap<String, usize> {
    let mut arrivals = BTreeMap::new();
    receiver.seen().iter().for_each(|seen| *arrivals.entry(seen.event().to_owned()).or_default() += 1);
    arrivals
}

fn all_are_there(organization: &Organization<'_>, created: &[Value]) {
    for customer in created {
        let id = customer["id"].as_str().expect("an id");
        assert_eq!(organization.get(&format!("/v1/customers/{id}")).ok(), *customer);
    }
}

#[test]
fn below_the_least_free_space_clients_cannot_write_and_everything_else_works() {
    let Some(disk) = Disk::new() else { return };
    let server = disk.server("12MB");
    let organization = server.organization();
    let (created, refused) = fill(&organization);
    assert!(created.len() > 50, "only {} writes", created.len());
    refused.error(503, "api_error", "storage_full");
    assert_eq!(refused.header("retry-after"), Some("5"));
    // Reads, and replays of responses.
    all_are_there(&organization, &created);
    let replay = create(&organization, 0);
    assert_eq!((replay.header("idempotent-replayed"), replay.json()), (Some("true"), created[0].clone()));
    // A load balancer keeps sending requests; operators and their tools see it.
    assert_eq!(readiness(&server), json!({"status": "read_only"}));
    assert!(metric(&server));
    assert_eq!(server.admin("GET", "/admin/v1/status", &Value::Null).ok()["ready"], false);
    // Operators can write, so that they can make room; imports would fill it.
    let path = format!("/admin/v1/organizations/{}", organization.id);
    server.admin("PATCH", &path, &json!({"name": "Still here"})).ok();
    server.admin("POST", &format!("{path}/import"), &Value::Null).error(503, "api_error", "storage_full");
    disk.make_room();
    until("writes are taken again", || create(&organization, created.len()).status == 200);
    assert_eq!(readiness(&server), json!({"status": "ready"}));
    assert!(!metric(&server));
}

/// Neither an upload nor a download takes the room that writes need.
#[test]
fn a_file_on_its_way_is_refused_before_writes_are() {
    let Some(disk) = Disk::new() else { return };
    disk.make_room();
    let server = disk.server("8MB");
    let organization = server.organization();
    let path = format!("/admin/v1/organizations/{}/tolls/import?dry_run=true", organization.id);
    let upload = |bytes: usize| {
        let token = format!("Bearer {}", server.admin_token);
        let headers = [("Authorization", token.as_str()), ("Content-Type", "text/csv")];
        Connection::open(&server.address).send("POST", &path, &headers, &vec![b'x'; bytes])
    };
    upload(30 << 20).error(503, "api_error", "storage_full");
    // Its room is free again, and there was always enough for writes.
    assert_eq!(create(&organization, 0).status, 200);
    assert!(!server.log().contains("writes of API keys and imports are refused"), "{}", server.log());
    assert_eq!(upload(4 << 20).status, 400, "it is no statement");
    let names: Vec<_> = fs::read_dir(disk.disk.path()).unwrap().map(|found| found.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name.to_string_lossy().starts_with("rental.redb")), "{names:?}");
    fs::write(&disk.ballast, vec![1; 25 << 20]).unwrap();
    server.admin("GET", "/admin/v1/backup", &Value::Null).error(503, "api_error", "storage_full");
    assert_eq!(create(&organization, 1).status, 200);
}

/// A reading that began while there was room ends when there is none.
#[test]
fn below_the_least_free_space_a_calendar_that_is_being_read_makes_no_blocks() {
    let Some(disk) = Disk::new() else { return };
    let server = disk.server("12MB");
    let organization = server.organization();
    let (begun, is_begun) = mpsc::channel();
    let (full, is_full) = mpsc::channel::<()>();
    let [from, to] = [30, 32].map(|ahead| day(ahead).replace('-', ""));
    let calendar = format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:{from}\r\n\
         DTEND;VALUE=DATE:{to}\r\nSUMMARY:Reserved\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = begun.send(());
            let _ = is_full.recv_timeout(Duration::from_secs(20));
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/calendar\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all([head, &calendar].concat().as_bytes());
        }
    });
    let body = json!({"vehicle_id": organization.vehicle(json!({})), "url": url});
    let feed = organization.post("/v1/calendar_feeds", &body).ok();
    let path = format!("/v1/calendar_feeds/{}", feed["id"].as_str().unwrap());
    is_begun.recv_timeout(Duration::from_secs(20)).expect("the calendar is asked for");
    fill(&organization);
    full.send(()).unwrap();
    let words = "The disk of the server has too little room";
    until("the reading ends", || {
        organization.get(&path).ok()["last_error"].as_str().is_some_and(|why| why.contains(words))
    });
    let blocks = || organization.get("/v1/blocks").ok()["data"].as_array().unwrap().len();
    assert_eq!(blocks(), 0);
    disk.make_room();
    until("writes are taken again", || organization.post(&format!("{path}/poll"), &json!({})).status == 200);
    drop(full);
    until("the block is there", || blocks() == 1);
}

#[test]
fn a_disk_that_is_full_stops_writes_only_and_only_while_it_is_full() {
    let Some(disk) = Disk::new() else { return };
    let server = disk.server("0");
    let organization = server.organization();
    let receiver = Receiver::start();
    let endpoint = json!({"organization_id": organization.id, "url": receiver.url()});
    server.admin("POST", "/admin/v1/webhook_endpoints", &endpoint).ok();
    let (created, refused) = fill(&organization);
    // The write that found no room may have been half-way to the disk: its outcome was unknown then.
    let code = refused.json()["error"]["code"].as_str().map(str::to_owned);
    assert!(matches!(code.as_deref(), Some("storage_full" | "service_unavailable")), "{code:?}");
    until("the server notices", || readiness(&server)["status"] == "read_only");
    all_are_there(&organization, &created);
    create(&organization, created.len()).error(503, "api_error", "storage_full");
    // It is sampled every second.
    until("the metric says so", || metric(&server));
    // The outcome of a delivery cannot be saved now, so it is not repeated either.
    std::thread::sleep(Duration::from_secs(3));
    let most = arrivals(&receiver).into_values().max();
    assert!(most <= Some(3), "a receiver got an event {most:?} times");
    disk.make_room();
    until("writes are taken again", || create(&organization, created.len()).status == 200);
    until("every event arrives", || arrivals(&receiver).len() == created.len() + 1);
    until("the server is ready", || readiness(&server)["status"] == "ready");
    // The refused request had its effect once, and nothing acknowledged is lost.
    let last = create(&organization, created.len());
    assert_eq!(last.header("idempotent-replayed"), Some("true"));
    all_are_there(&organization, &created);
    let mut newest = organization.get("/v1/customers?limit=2").ok()["data"].take();
    assert_eq!(newest[0].take()["id"], last.json()["id"]);
    assert_eq!(newest[1].take()["id"], created[created.len() - 1]["id"]);
}
