//! kill -9 at any moment: what was acknowledged is there, what was not is there whole or not at all, and a repeated
//! request with the same idempotency key has one effect. `RENTAL_KILLS` sets the number of kills (8 without it).
//!
//! Seen failing in a scratch copy that committed with `Durability::None` ("acknowledged, and gone"), and in one that
//! committed the idempotency record in a second transaction ("nobody was told of").

use crate::{
    events_in_store::{stop, stored_events},
    holds::double_bookings,
    support::{ADMIN_TOKEN, Connection, Organization, Reply, Server, percent_encode},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

pub(crate) const CLIENTS: u64 = 6;
const VEHICLES: usize = 5;
const EMAILS: [&str; 3] = ["a@example.com", "b@example.com", "c+d@example.com"];
const STATUSES: [&str; 5] = ["NEW", "APPROVED", "ACTIVE", "COMPLETED", "CANCELLED"];

#[derive(Clone, Debug)]
pub(crate) struct Request {
    key: String,
    method: &'static str,
    path: String,
    body: Value,
}

/// One organization's history: what was asked and answered, in an order that is right for each object.
pub(crate) struct World {
    id: String,
    keys: [String; 2],
    pub(crate) done: Vec<(Request, Reply)>,
    /// Sent, not answered: the server was killed meanwhile.
    pending: Vec<Request>,
}

/// A small generator, so that what a client does follows from its number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}

/// `key` is the organization's.
pub(crate) fn try_perform(key: &str, connection: &mut Connection, request: &Request) -> std::io::Result<Reply> {
    let bearer = format!("Bearer {key}");
    let headers =
        [("Authorization", bearer.as_str()), ("Content-Type", "application/json"), ("Idempotency-Key", &request.key)];
    connection.try_send(request.method, &request.path, &headers, request.body.to_string().as_bytes())
}

fn perform(organization: &Organization, request: &Request) -> Reply {
    let mut connection = Connection::open(&organization.server.address);
    try_perform(&organization.write, &mut connection, request).expect("a running server answers")
}

impl World {
    /// An organization with vehicles for all and a customer for each client.
    pub(crate) fn new(server: &Server) -> Self {
        let organization = server.organization();
        let vehicles = (0..VEHICLES).map(|n| ("/v1/vehicles", format!("v{n}"), json!({"name": format!("v{n}")})));
        let customers = (0..CLIENTS).map(|n| ("/v1/customers", format!("p{n}"), json!({"full_name": format!("p{n}")})));
        let requests = vehicles.chain(customers);
        let make = |(path, key, body): (&str, String, Value)| {
            let request = Request { key, method: "POST", path: path.to_owned(), body };
            let reply = perform(&organization, &request);
            (request, reply)
        };
        let done = requests.map(make).collect();
        let keys = [organization.read.clone(), organization.write.clone()];
        Self { id: organization.id.clone(), keys, done, pending: Vec::new() }
    }

    pub(crate) fn organization<'s>(&self, server: &'s Server) -> Organization<'s> {
        let [read, write] = self.keys.clone();
        Organization { server, id: self.id.clone(), read, write }
    }

    fn ids(&self, plural: &str) -> Vec<String> {
        let path = format!("/v1/{plural}");
        let made = self.done.iter().filter(|(request, reply)| request.path == path && reply.status == 200);
        made.map(|(_, reply)| reply.id()).collect()
    }

    /// Path and bytes of every object, as the answers tell it.
    fn objects(&self) -> BTreeMap<String, String> {
        let mut objects = BTreeMap::new();
        for (request, reply) in self.done.iter().filter(|(_, reply)| reply.status == 200) {
            let path = if request.method == "POST" {
                format!("{}/{}", request.path, reply.id())
            } else {
                request.path.clone()
            };
            objects.insert(path, reply.text());
        }
        objects
    }

    /// Type and object of every event that the answers promise.
    pub(crate) fn promised_events(&self) -> BTreeMap<(String, String), usize> {
        let (mut state, mut events) = (BTreeMap::new(), BTreeMap::new());
        for (request, reply) in self.done.iter().filter(|(_, reply)| reply.status == 200) {
            let (object, id) = (reply.ok()["object"].as_str().expect("a type").to_owned(), reply.id());
            let changed = state.insert(id.clone(), reply.text()) != Some(reply.text());
            let mut promise = |kind: &str| *events.entry((format!("{object}.{kind}"), id.clone())).or_insert(0) += 1;
            match request.method {
                "POST" => promise("created"),
                _ if changed => promise("updated"),
                _ => {}
            }
            match request.body["status"].as_str().filter(|_| request.method == "PATCH") {
                Some("COMPLETED") => promise("completed"),
                Some("CANCELLED") => promise("cancelled"),
                _ => {}
            }
        }
        events
    }
}

/// Writes until `send` has no answer; the request without one comes last. A client changes its own objects only, so that
/// each object's history is known.
pub(crate) fn client(
    world: &World,
    number: u64,
    seed: u64,
    mut send: impl FnMut(&Request) -> Option<Reply>,
) -> (Vec<(Request, Reply)>, Request) {
    let mut dice = Dice(seed * 100 + number);
    let (vehicles, customer) = (world.ids("vehicles"), world.ids("customers")[number as usize].clone());
    let mut own = vec![format!("/v1/customers/{customer}")];
    let mut done: Vec<(Request, Reply)> = Vec::new();
    loop {
        let key = format!("c{number}-{}", done.len());
        let (method, path, body) = match dice.roll(6) {
            0 => ("POST", "/v1/customers".to_owned(), json!({"full_name": key, "email": dice.pick(&EMAILS)})),
            1 | 2 => ("POST", "/v1/rentals".to_owned(), booking(&mut dice, &vehicles, &customer, &key)),
            _ => match dice.pick(&own).clone() {
                path if path.starts_with("/v1/customers") => {
                    ("PATCH", path, json!({"email": dice.pick(&EMAILS), "notes": key}))
                }
                path => ("PATCH", path, json!({"status": dice.pick(&STATUSES)})),
            },
        };
        let request = Request { key, method, path, body };
        let Some(reply) = send(&request) else { return (done, request) };
        assert!([200, 409].contains(&reply.status), "{request:?}: {}", reply.text());
        if request.method == "POST" && reply.status == 200 {
            own.push(format!("{}/{}", request.path, reply.id()));
        }
        done.push((request, reply));
    }
}

fn booking(dice: &mut Dice, vehicles: &[String], customer: &str, key: &str) -> Value {
    let (start, nights) = (1 + dice.roll(20), dice.roll(8));
    let day = |day: usize| format!("2027-0{}-{day:02}", 1 + (start * 7 + nights) % 9);
    json!({
        "vehicle_id": dice.pick(vehicles), "customer_id": customer, "booking_id": key,
        "start_date": day(start), "end_date": day(start + nights), "status": dice.pick(&STATUSES),
    })
}

/// Lets clients write for a while and kills the server; gives what they know.
fn write_and_kill(server: Server, world: &mut World, after: Duration, seed: u64) {
    let organization = world.organization(&server);
    let histories: Vec<_> = std::thread::scope(|scope| {
        let (organization, world) = (&organization, &*world);
        let run = |number| {
            scope.spawn(move || {
                let mut connection = Connection::open(&organization.server.address);
                client(world, number, seed, |request| try_perform(&organization.write, &mut connection, request).ok())
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(run).collect();
        std::thread::sleep(after);
        server.signal("KILL");
        clients.into_iter().map(|client| client.join().expect("a client ends")).collect()
    });
    for (done, pending) in histories {
        world.done.extend(done);
        world.pending.push(pending);
    }
    drop(organization);
    server.wait_until_gone();
}

/// Starts a server on the file and kills it while it opens: recovery itself must survive that.
fn kill_while_opening(directory: &Path, after: Duration) {
    let mut opening = Command::new(env!("CARGO_BIN_EXE_rental-server"))
        .args(["--listen", "127.0.0.1:0", "--store"])
        .arg(format!("redb:{}", directory.join("store.redb").display()))
        .env("RENTAL_ADMIN_TOKEN", ADMIN_TOKEN)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    std::thread::sleep(after);
    opening.kill().expect("it is a child");
    opening.wait().expect("it ends");
}

/// Everything that was acknowledged is there, also before any request in doubt is repeated.
fn check_acknowledged(organization: &Organization, world: &World) {
    let in_doubt: Vec<&str> = world.pending.iter().map(|request| request.path.as_str()).collect();
    for (path, text) in world.objects() {
        if !in_doubt.contains(&path.as_str()) {
            let found = organization.get(&path);
            assert_eq!((found.status, found.text()), (200, text), "{path} was acknowledged, and gone");
        }
    }
}

/// Repeats what is in doubt with its own key; from here on everything is known.
fn settle(organization: &Organization, world: &mut World) {
    for request in std::mem::take(&mut world.pending) {
        let reply = perform(organization, &request);
        assert!([200, 409].contains(&reply.status), "{request:?}: {}", reply.text());
        world.done.push((request, reply));
    }
}

fn list(organization: &Organization, path: &str) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = organization.get(&format!("{path}limit=100{cursor}")).ok();
        found.extend(page["data"].as_array().expect("a list").iter().cloned());
        let Some(next) = page["next_cursor"].as_str() else { return found };
        cursor = format!("&starting_after={next}");
    }
}

/// The store tells the same story as the answers: nothing is missing, doubled, stale or beside its index.
pub(crate) fn check_everything(organization: &Organization, world: &World) {
    let objects = world.objects();
    for (path, text) in &objects {
        assert_eq!(&organization.get(path).text(), text, "{path}");
    }
    let mut all: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (plural, marker) in [("vehicles", "name"), ("customers", "full_name"), ("rentals", "booking_id")] {
        let found = list(organization, &format!("/v1/{plural}?"));
        let markers: BTreeSet<&str> = found.iter().map(|object| object[marker].as_str().expect("a marker")).collect();
        assert_eq!(markers.len(), found.len(), "a key has two effects in {plural}");
        let ids: BTreeSet<String> =
            found.iter().map(|object| object["id"].as_str().expect("an id").to_owned()).collect();
        assert_eq!(ids, world.ids(plural).into_iter().collect(), "{plural} that nobody was told of");
        all.insert(plural, found);
    }
    assert_eq!(double_bookings(&all["rentals"]), []);
    for email in EMAILS {
        let expected: Vec<&Value> = all["customers"].iter().filter(|customer| customer["email"] == email).collect();
        let found = list(organization, &format!("/v1/customers?email={}&", percent_encode(email)));
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "customers by {email}");
    }
    let customers: Vec<Option<&str>> =
        all["customers"].iter().take(5).map(|one| one["id"].as_str()).chain([None]).collect();
    for (status, customer) in
        STATUSES.iter().flat_map(|status| customers.iter().map(move |customer| (status, customer)))
    {
        let matches =
            |rental: &&Value| rental["status"] == *status && customer.is_none_or(|id| rental["customer_id"] == id);
        let expected: Vec<&Value> = all["rentals"].iter().filter(matches).collect();
        let of = customer.map_or_else(String::new, |id| format!("customer={id}&"));
        let found = list(organization, &format!("/v1/rentals?status={status}&{of}"));
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "rentals by {status} {customer:?}");
    }
}

pub(crate) fn check_replays(organization: &Organization, world: &World) {
    for (request, first) in world.done.iter().rev().take(100) {
        let again = perform(organization, request);
        assert_eq!((again.status, again.text()), (first.status, first.text()), "{request:?}");
        assert_eq!(again.header("idempotent-replayed"), Some("true"), "{request:?}");
    }
}

#[test]
fn what_was_acknowledged_survives_kill_9_at_any_moment() {
    let kills: u64 = std::env::var("RENTAL_KILLS").map_or(8, |kills| kills.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut worlds: Vec<World> = Vec::new();
    for kill in 0..kills {
        let mut dice = Dice(kill);
        let server = Server::start_on_file(directory.path(), &[]);
        let mut world = World::new(&server);
        write_and_kill(server, &mut world, Duration::from_millis(30 + dice.roll(300) as u64), kill);
        for _ in 0..dice.roll(3) {
            kill_while_opening(directory.path(), Duration::from_micros(dice.roll(20_000) as u64));
        }
        let server = Server::start_on_file(directory.path(), &[]);
        let organization = world.organization(&server);
        check_acknowledged(&organization, &world);
        settle(&organization, &mut world);
        check_everything(&organization, &world);
        check_replays(&organization, &world);
        check_everything(&organization, &world);
        drop(organization);
        worlds.push(world);
    }
    let server = Server::start_on_file(directory.path(), &[]);
    for world in &worlds {
        check_everything(&world.organization(&server), world);
    }
    stop(server);
    for world in &worlds {
        let mut found = BTreeMap::new();
        for event in stored_events(directory.path(), &world.id) {
            let (kind, id) = (event["type"].as_str().expect("a type"), event["data"]["id"].as_str().expect("an id"));
            *found.entry((kind.to_owned(), id.to_owned())).or_insert(0) += 1;
        }
        assert_eq!(found, world.promised_events());
    }
    let acknowledged: usize = worlds.iter().map(|world| world.done.len()).sum();
    assert!(acknowledged > 12 * worlds.len(), "only {acknowledged} writes: the run says nothing");
}
