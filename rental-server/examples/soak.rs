//! Mixes all operations for a long time, restarts and kills the server, and checks that nothing is lost, doubled or leaked.
//!
//! ```text
//! cargo run --release --locked -p rental-server --example soak                                  10 minutes
//! cargo run --release --locked -p rental-server --example soak -- --duration 8h --rate 200      what a night allows
//! ```
//! `--every D` is the time between two ends of the server, in turn by SIGTERM and by `kill -9`. A line is printed after
//! each: memory, open files, size of the data file, objects, events. The program ends with 1 at the first violation.

use serde_json::{Value, json};
use std::{
    collections::HashMap,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{BufRead, BufReader},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

#[path = "soak/http.rs"]
mod http;

use http::{Received, Response, send};

const TOKEN: &str = "soak-admin-token-of-more-than-32-characters";
const ORGANIZATIONS: usize = 3;
/// Clients of each organization.
const CLIENTS: u64 = 2;
/// How long a request is repeated, and deliveries are waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Objects of a client that are compared at each check; at the end all are.
const SAMPLE: usize = 500;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let seconds = |name: &str, usual: &str| -> Outcome<u64> {
        let text = flag(name).unwrap_or_else(|| usual.to_owned());
        let (number, unit) = text.split_at(text.len().saturating_sub(1));
        let unit = [("s", 1), ("m", 60), ("h", 3600)].into_iter().find(|(word, _)| *word == unit);
        Ok(number.parse::<u64>()? * unit.ok_or_else(|| format!("{name} needs s, m or h"))?.1)
    };
    let duration = Duration::from_secs(seconds("--duration", "10m")?);
    let every = Duration::from_secs(seconds("--every", "30s")?);
    let rate: f64 = flag("--rate").unwrap_or_else(|| "200".into()).parse()?;
    let directory = tempfile::tempdir()?;
    let mut server = Server::start(directory.path())?;
    let (received, worlds) = (Received::default(), prepare(&server)?);
    let url = format!("http://{}/", received.start()?);
    for world in &worlds {
        server.admin("/admin/v1/webhook_endpoints", &json!({"organization_id": world.organization, "url": url}))?;
    }
    let state = State {
        address: RwLock::new(server.address.clone()),
        stop: AtomicBool::new(false),
        asked: AtomicU64::new(0),
        pause: Duration::from_secs_f64((ORGANIZATIONS as u64 * CLIENTS) as f64 / rate),
        violation: Mutex::new(None),
    };
    let begun = Instant::now();
    println!(
        "{:>8} {:>9} {:>8} {:>9} {:>6} {:>9} {:>9} {:>8}",
        "minutes", "requests", "objects", "RSS MB", "files", "data MB", "events", "doubled"
    );
    thread::scope(|scope| -> Outcome<()> {
        let _at_the_end = Stops(&state.stop);
        for (number, world) in worlds.iter().flat_map(|world| (0..CLIENTS).map(move |number| (number, world))) {
            let state = &state;
            scope.spawn(move || state.note(client(state, world, number)));
        }
        for turn in 0.. {
            let left = duration.saturating_sub(begun.elapsed());
            thread::sleep(every.min(left));
            state.violated()?;
            report(&state, &server, &worlds, &received, begun)?;
            if left <= every {
                return Ok(());
            }
            server.end(turn % 2 == 0)?;
            server = Server::start(directory.path())?;
            state.address.write().unwrap_or_else(PoisonError::into_inner).clone_from(&server.address);
            for world in &worlds {
                world.check(&server.address, SAMPLE)?;
            }
        }
        Ok(())
    })?;
    state.violated()?;
    finish(&server, &worlds, &received)?;
    server.end(true)?;
    println!("no violation in {:.1?}, {} requests", begun.elapsed(), state.asked.load(Ordering::Relaxed));
    Ok(())
}

fn flag(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.next().and_then(|_| arguments.next())
}

/// What all clients share.
struct State {
    /// Where the server is now.
    address: RwLock<String>,
    stop: AtomicBool,
    asked: AtomicU64,
    /// Between two requests of a client.
    pause: Duration,
    violation: Mutex<Option<String>>,
}

/// Stops the clients, however the scope ends.
struct Stops<'s>(&'s AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl State {
    fn note(&self, outcome: Outcome<()>) {
        if let Err(error) = outcome {
            self.violation.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error.to_string());
        }
    }

    fn violated(&self) -> Outcome<()> {
        let violation = self.violation.lock().unwrap_or_else(PoisonError::into_inner).clone();
        violation.map_or(Ok(()), |violation| Err(violation.into()))
    }
}

/// An organization, and what the responses say about it.
struct World {
    organization: String,
    key: String,
    vehicles: Vec<String>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The hash of each object's bytes, by path, and when it was changed last.
    objects: HashMap<String, (u64, u64)>,
    changes: u64,
    events: usize,
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn prepare(server: &Server) -> Outcome<Vec<World>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |number: usize| {
        let made = server.admin("/admin/v1/organizations", &json!({"name": format!("Soak {number}")}))?;
        let body = json!({"organization_id": made["id"], "scope": "read_write"});
        let key = text(&server.admin("/admin/v1/api_keys", &body)?["key"]);
        let mut vehicles = Vec::new();
        for number in 0..5 {
            let body = json!({"name": format!("Car {number}")}).to_string();
            let made = send(&mut None, &server.address, ("POST", "/v1/vehicles", &key), ("", &body))?;
            vehicles.push(text(&serde_json::from_str::<Value>(&made.body)?["id"]));
        }
        Ok(World { organization: text(&made["id"]), key, vehicles, known: Mutex::default() })
    };
    (0..ORGANIZATIONS).map(one).collect()
}

impl World {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an acknowledged change, and how many events it has.
    fn acknowledged(&self, path: &str, body: &str, events: usize) {
        let mut known = self.known();
        known.changes += 1;
        known.events += events;
        let change = known.changes;
        known.objects.insert(path.to_owned(), (hash(body), change));
    }

    /// Compares the objects that were changed last, at most `most`, with what was acknowledged. The
    /// clients write during the check, so it leaves out an object that has changed again.
    fn check(&self, address: &str, most: usize) -> Outcome<()> {
        let mut sample: Vec<(String, (u64, u64))> = self.known().objects.clone().into_iter().collect();
        sample.sort_by_key(|(_, (_, change))| std::cmp::Reverse(*change));
        let mut connection = None;
        for (path, before) in sample.into_iter().take(most) {
            let found = send(&mut connection, address, ("GET", &path, &self.key), ("", ""))?;
            if found.status == 200 && hash(&found.body) == before.0 {
                continue;
            }
            // Its client may be changing it: what it then acknowledges, or acknowledged before, decides.
            let settled = (0..600).any(|_| {
                thread::sleep(Duration::from_millis(100));
                let now = send(&mut connection, address, ("GET", &path, &self.key), ("", "")).ok();
                let known = self.known().objects.get(&path).copied();
                now.is_some_and(|now| now.status == 200 && known.is_some_and(|known| hash(&now.body) == known.0))
            });
            if !settled {
                return Err(format!("{path} is not what was acknowledged: {} {}", found.status, found.body).into());
            }
        }
        Ok(())
    }
}

/// A small generator, so that what a client does follows from its number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

/// Sends requests until it is time to stop. It changes only what it has made itself.
fn client(state: &State, world: &World, number: u64) -> Outcome<()> {
    let (mut dice, mut connection) = (Dice(number + 1), None);
    let (mut own, mut rentals) = (Vec::<String>::new(), Vec::<String>::new());
    for count in 0_u64.. {
        if state.stop.load(Ordering::SeqCst) {
            break;
        }
        thread::sleep(state.pause);
        let key = format!("{number}-{count}");
        let (method, path, body, events) = match dice.roll(10) {
            0 => ("POST", "/v1/vehicles".to_owned(), json!({"name": key}), 1),
            1 => (
                "POST",
                "/v1/customers".to_owned(),
                json!({"full_name": key, "email": format!("c{}@example.com", dice.roll(20))}),
                1,
            ),
            2 => ("POST", "/v1/leads".to_owned(), json!({"source_channel": key}), 1),
            3 | 4 if !own.is_empty() => ("POST", "/v1/rentals".to_owned(), booking(&mut dice, world, &own), 1),
            5 if !rentals.is_empty() => {
                let rental = rentals.swap_remove(dice.roll(rentals.len()));
                ("PATCH", rental, json!({"status": "CANCELLED"}), 2)
            }
            6 | 7 if !own.is_empty() => ("PATCH", own[dice.roll(own.len())].clone(), json!({"notes": key}), 1),
            8 if !own.is_empty() => ("GET", own[dice.roll(own.len())].clone(), Value::Null, 0),
            _ => (
                "GET",
                ["/v1/rentals?status=APPROVED", "/v1/customers?limit=100", "/v1/vehicles"][dice.roll(3)].to_owned(),
                Value::Null,
                0,
            ),
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let key = if method == "GET" { "" } else { &key };
        let reply = insist(state, &mut connection, (method, &path, &world.key), (key, &body))?;
        // Sent again, it has the same response and no other effect.
        if method != "GET" && dice.roll(10) == 0 {
            let again = insist(state, &mut connection, (method, &path, &world.key), (key, &body))?;
            if (again.status, &again.body) != (reply.status, &reply.body) {
                return Err(format!("{path} with a repeated key: {} then {}", reply.body, again.body).into());
            }
        }
        match (method, reply.status) {
            ("GET", 200) | ("POST", 409) => {}
            ("POST" | "PATCH", 200) => {
                let made: Value = serde_json::from_str(&reply.body)?;
                let place = if method == "POST" {
                    format!("{path}/{}", made["id"].as_str().unwrap_or_default())
                } else {
                    path.clone()
                };
                match path.as_str() {
                    "/v1/leads" => world.known().events += events,
                    _ => world.acknowledged(&place, &reply.body, events),
                }
                match path.as_str() {
                    "/v1/rentals" => rentals.push(place),
                    "/v1/customers" => own.push(place),
                    _ => {}
                }
            }
            (_, status) => return Err(format!("{method} {path} {body}: {status} {}", reply.body).into()),
        }
    }
    Ok(())
}

fn booking(dice: &mut Dice, world: &World, customers: &[String]) -> Value {
    let (month, day) = (1 + dice.roll(12), 1 + dice.roll(24));
    let customer = customers[dice.roll(customers.len())].rsplit('/').next().unwrap_or_default().to_owned();
    json!({
        "vehicle_id": world.vehicles[dice.roll(world.vehicles.len())], "customer_id": customer, "status": "APPROVED",
        "start_date": format!("2027-{month:02}-{day:02}"), "end_date": format!("2027-{month:02}-{:02}", day + dice.roll(4)),
    })
}

/// Sends a request until it is answered: while the server is down, and while it says to come back.
fn insist(
    state: &State,
    connection: &mut Option<BufReader<TcpStream>>,
    request: (&str, &str, &str),
    content: (&str, &str),
) -> Outcome<Response> {
    let begun = Instant::now();
    loop {
        let address = state.address.read().unwrap_or_else(PoisonError::into_inner).clone();
        match send(connection, &address, request, content) {
            Ok(reply) if reply.status != 503 && !reply.body.contains("idempotency_key_in_use") => {
                state.asked.fetch_add(1, Ordering::Relaxed);
                return Ok(reply);
            }
            _ if begun.elapsed() > PATIENCE => return Err(format!("no response to {request:?}").into()),
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn report(state: &State, server: &Server, worlds: &[World], received: &Received, begun: Instant) -> Outcome<()> {
    let (events, doubled) = received.counts();
    println!(
        "{:8.1} {:9} {:8} {:9} {:6} {:9.1} {events:9} {doubled:8}",
        begun.elapsed().as_secs_f64() / 60.0,
        state.asked.load(Ordering::Relaxed),
        worlds.iter().map(|world| world.known().objects.len()).sum::<usize>(),
        server.resident_mb()?,
        fs::read_dir(format!("/proc/{}/fd", server.process.id()))?.count(),
        fs::metadata(&server.store)?.len() as f64 / 1048576.0,
    );
    Ok(())
}

/// Everything that was acknowledged is there, no two rentals overlap, and every event has come.
fn finish(server: &Server, worlds: &[World], received: &Received) -> Outcome<()> {
    for world in worlds {
        world.check(&server.address, usize::MAX)?;
        let (mut rentals, mut cursor) = (Vec::<Value>::new(), String::new());
        loop {
            let path = format!("/v1/rentals?status=APPROVED&limit=100{cursor}");
            let page = send(&mut None, &server.address, ("GET", &path, &world.key), ("", ""))?;
            let page: Value = serde_json::from_str(&page.body)?;
            rentals.extend(page["data"].as_array().into_iter().flatten().cloned());
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&starting_after={next}");
        }
        let mut nights: Vec<[&str; 3]> = rentals
            .iter()
            .map(|rental| {
                ["vehicle_id", "start_date", "end_date"].map(|name| rental[name].as_str().unwrap_or_default())
            })
            .collect();
        nights.sort_unstable();
        // A vehicle can come back and leave on one day. A rental of one day has its night too.
        if let Some(pair) = nights
            .windows(2)
            .find(|pair| pair[0][0] == pair[1][0] && (pair[0][2] > pair[1][1] || pair[0][1] == pair[1][1]))
        {
            return Err(format!("two rentals overlap: {pair:?}").into());
        }
    }
    let expected: usize = worlds.iter().map(|world| world.known().events).sum();
    let begun = Instant::now();
    while received.counts().0 < expected && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(100));
    }
    let (events, doubled) = received.counts();
    println!("{events} events came of {expected}, {doubled} deliveries came again");
    if events == expected { Ok(()) } else { Err(format!("{events} events came, {expected} were promised").into()) }
}

/// The server; killed when it goes out of scope.
struct Server {
    process: Child,
    address: String,
    store: PathBuf,
}

impl Server {
    fn start(directory: &Path) -> Outcome<Self> {
        let store = directory.join("soak.redb");
        let program = flag("--server").map_or_else(|| release("rental-server"), PathBuf::from);
        let mut process = Command::new(program)
            .args(["--listen", "127.0.0.1:0", "--cache-size", "64MB", "--webhook-allow-private", "--store"])
            .arg(format!("redb:{}", store.display()))
            .env("RENTAL_ADMIN_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        let address = line.trim().rsplit_once("http://").ok_or("the server did not start")?.1.to_owned();
        Ok(Self { process, address, store })
    }

    /// Ends by SIGTERM, which must exit with 0, or by `kill -9`.
    fn end(&mut self, gently: bool) -> Outcome<()> {
        let signal = if gently { "-TERM" } else { "-KILL" };
        Command::new("kill").args([signal, &self.process.id().to_string()]).status()?;
        let status = self.process.wait()?;
        if gently && !status.success() { Err(format!("the server ended with {status}").into()) } else { Ok(()) }
    }

    fn admin(&self, path: &str, body: &Value) -> Outcome<Value> {
        let reply = send(&mut None, &self.address, ("POST", path, TOKEN), ("", &body.to_string()))?;
        if reply.status == 200 { Ok(serde_json::from_str(&reply.body)?) } else { Err(reply.body.into()) }
    }

    fn resident_mb(&self) -> Outcome<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let rss = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Ok(rss.ok_or("no VmRSS")? / 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn release(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    target.join("release").join(name)
}
