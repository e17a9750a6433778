//! Offers the server more than it can do, and measures what comes of it.
//!
//! ```text
//! cargo run --release --locked -p rental-server --example overload                   everything, 3 rounds of 5 s each
//! cargo run --release --locked -p rental-server --example overload -- writes         writes only; also: reads, fairness, keys
//! cargo run --release --locked -p rental-server --example overload -- "reads beside reads"    one line of fairness
//! cargo run --release --locked -p rental-server --example overload -- --rounds 2     less time
//! cargo run --release --locked -p rental-server --example overload -- --apart        on processors of their own
//! ```
//! All but `writes` and `reads` need root and taskset.
//!
//! Started by itself, and not by cargo, it measures the server that is there and builds none.
//! Client and server share the machine, so the server has a part of its processors. The requests become due at a fixed rate
//! from a fixed seed: 2 and 10 times the peak.
//!
//! With `--apart` the server has one half of the processors and the clients the other one. Then no flood keeps a thread of the
//! server waiting for a processor, but on two of them its writer and its reads share one.

use rental_core::operations::api_keys::key_text;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

#[path = "overload/load.rs"]
mod load;

use load::{Load, PLATE, Tally};

const TOKEN: &str = "overload-admin-token-of-more-than-32-characters";
/// Time of one measurement.
const TIME: Duration = Duration::from_secs(5);
/// Unless `--rounds` says otherwise.
const ROUNDS: u64 = 3;
/// How long a client waits for a response.
const PATIENCE: Duration = Duration::from_secs(1);
/// Connections with which the peak is found.
const PEAK_CONNECTIONS: usize = 64;
/// Connections of the overload: the server has a limit of 4,096, and 256 for each address other than loopback.
const CONNECTIONS: usize = 512;
/// Connections of an organization that behaves.
const FEW_CONNECTIONS: usize = 16;
/// Different keys and addresses of a flood.
const KEYS: u32 = 100_000;
/// Its load, as a part of the peak.
const SMALL_PART: f64 = 0.1;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut rounds = ROUNDS;
    if let Some(at) = arguments.iter().position(|argument| argument == "--rounds") {
        rounds = arguments.get(at + 1).ok_or("--rounds needs a number")?.parse()?;
        arguments.drain(at..at + 2);
    }
    let apart = arguments.iter().position(|argument| argument == "--apart").map(|at| arguments.remove(at)).is_some();
    let asked = |name: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == name);
    if std::env::var_os("CARGO").is_some() {
        let built = Command::new("cargo").args(["build", "--release", "--locked", "-p", "rental-server"]).status()?;
        if !built.success() {
            return Err("cargo build failed".into());
        }
    }
    let server = if apart {
        let [of_server, of_clients] = halves()?;
        println!("the server has the processors {of_server}, the clients {of_clients}");
        run("taskset", &["--all-tasks", "--cpu-list", "--pid", &of_clients, &std::process::id().to_string()])?;
        Server::start(Command::new("taskset").args(["--cpu-list", &of_server]).arg(release("rental-server")))?
    } else {
        Server::start(&mut Command::new(release("rental-server")))?
    };
    let kinds = [("writes", server.tenant("Writes")?.write), ("reads", server.tenant("Reads")?.read)];
    for (name, request) in &kinds {
        if asked(name) {
            overload(&server, name, request, rounds)?;
        }
    }
    let mut lines = vec!["writes beside writes", "reads beside writes", "writes beside reads", "reads beside reads"];
    lines.retain(|line| asked("fairness") || asked(line));
    if !apart && !lines.is_empty() {
        server.spread()?;
    }
    for line in lines {
        fairness(&server, line, rounds)?;
    }
    if asked("keys") {
        unknown_keys(&server, rounds)?;
    }
    Ok(())
}

/// Peak, then twice and ten times as much, then how long the server is slow afterwards.
fn overload(server: &Server, name: &str, requests: &[Vec<u8>], rounds: u64) -> Outcome<()> {
    let load = |rate, connections, seed| Load {
        address: &server.address,
        requests,
        rate,
        connections,
        patience: PATIENCE,
        seed,
    };
    load(None, PEAK_CONNECTIONS, 0).run_for(TIME);
    for round in 1..=rounds {
        let peak = load(None, PEAK_CONNECTIONS, round).run_for(TIME);
        let most = peak.goodput();
        println!("{name}, round {round}");
        show("peak", &peak, most);
        let calm = load(Some(most / 4.0), PEAK_CONNECTIONS, round).run_for(TIME);
        show("a quarter", &calm, most);
        for times in [2.0, 10.0] {
            let over = load(Some(most * times), CONNECTIONS, round).run_for(TIME);
            show(&format!("{times} x"), &over, most);
            let after = load(Some(most / 4.0), PEAK_CONNECTIONS, round).run_for(TIME);
            println!("    recovered after {:.2?}; {}", recovery(&after, &calm), server.state()?);
        }
    }
    Ok(())
}

/// The end of the last 100 ms in which the median latency was over twice that before the overload.
fn recovery(after: &Tally, calm: &Tally) -> Duration {
    let (window, usual) = (Duration::from_millis(100), calm.latency(0.5) * 2);
    let windows = (after.took.as_millis() / window.as_millis()) as u32;
    let slow = (0..windows).rev().find(|at| {
        let within = |served: &&(Duration, Duration)| served.0 >= window * *at && served.0 < window * (*at + 1);
        let mut latencies: Vec<Duration> = after.served.iter().filter(within).map(|served| served.1).collect();
        latencies.sort_unstable();
        latencies.get(latencies.len() / 2).is_none_or(|median| *median > usual)
    });
    slow.map_or(Duration::ZERO, |at| window * (at + 1))
}

/// One organization alone, and beside another one that sends ten times the peak.
fn fairness(server: &Server, kind: &str, rounds: u64) -> Outcome<()> {
    let [small, large] = [server.tenant("Small")?, server.tenant("Large")?];
    let (victim, offender) = kind.split_once(" beside ").ok_or("no pair")?;
    let of = |tenant: &Tenant, what: &str| if what == "reads" { tenant.read.clone() } else { tenant.write.clone() };
    let (victim, offender) = (of(&small, victim), of(&large, offender));
    let peak = server.load(&offender, None, PEAK_CONNECTIONS, 0).run_for(TIME).goodput();
    let own = server.load(&victim, None, PEAK_CONNECTIONS, 0).run_for(TIME).goodput() * SMALL_PART;
    println!("{kind}: {own:.0}/s beside {:.0}/s", peak * 10.0);
    // A stall of the disk is in one round or another by chance: the ratio of all rounds together is what is stated.
    let (mut all_alone, mut all_beside, mut single) = (Tally::default(), Tally::default(), Vec::new());
    for round in 1..=rounds {
        let steady = server.load(&victim, Some(own), FEW_CONNECTIONS, round);
        let alone = in_front_for(&steady)?;
        let flood = server.load(&offender, Some(peak * 10.0), CONNECTIONS, round);
        let stop = AtomicBool::new(false);
        let (beside, theirs) = thread::scope(|scope| {
            let theirs = scope.spawn(|| in_background().map(|()| flood.run(&stop)));
            thread::sleep(Duration::from_millis(500));
            let beside = in_front_for(&steady);
            stop.store(true, Ordering::Relaxed);
            (beside, theirs.join())
        });
        let beside = beside?;
        show("alone", &alone, own);
        show("beside", &beside, own);
        show("the other", &theirs.map_err(|_| "a client panicked")??, peak);
        let ratio = beside.latency(0.99).as_secs_f64() / alone.latency(0.99).as_secs_f64();
        println!("    p99 x {ratio:.2}, goodput x {:.2}", beside.goodput() / alone.goodput());
        single.push(alone.latency(0.99).as_secs_f64());
        all_alone.add(alone);
        all_beside.add(beside);
    }
    let [of_alone, of_beside] = [&all_alone, &all_beside].map(|all| all.latency(0.99).as_secs_f64());
    let spread = single.iter().copied().fold(0.0, f64::max) / single.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "  all rounds: p99 alone {:.2} ms, beside {:.2} ms, x {:.2}, of {} and {} requests; p99 alone differs by x {spread:.2} among rounds",
        of_alone * 1e3,
        of_beside * 1e3,
        of_beside / of_alone,
        all_alone.served.len(),
        all_beside.served.len(),
    );
    Ok(())
}

/// An organization beside floods of requests with unknown API keys: text that is no key, and keys that could be one, from one
/// address and from many behind the same proxy.
fn unknown_keys(server: &Server, rounds: u64) -> Outcome<()> {
    let tenant = server.tenant("Known")?;
    let forwarded = |client: u32, key: &str| {
        let address = format!("{}\r\nX-Forwarded-For: {}", server.address, Ipv4Addr::from_bits(client));
        request("GET", &address, "/v1/vehicles", key, None)
    };
    let keys = |number: u32| {
        let mut random = [7; 32];
        random[..4].copy_from_slice(&number.to_be_bytes());
        key_text(&random)
    };
    let floods: [(&str, Vec<Vec<u8>>); 3] = [
        ("text that is no key", vec![forwarded(7, "rk_unknown")]),
        ("unknown keys of one address", (0..KEYS).map(|key| forwarded(8, &keys(key))).collect()),
        ("unknown keys of many addresses", (0..KEYS).map(|key| forwarded(1 << 24 | key << 3, &keys(key))).collect()),
    ];
    let own = server.load(&tenant.read, None, PEAK_CONNECTIONS, 0).run_for(TIME).goodput() * SMALL_PART;
    for (name, flood) in &floods {
        println!("reads beside {name}: {own:.0}/s");
        for round in 1..=rounds {
            let steady = server.load(&tenant.read, Some(own), FEW_CONNECTIONS, round);
            let alone = in_front_for(&steady)?;
            let (stop, flood) = (AtomicBool::new(false), server.load(flood, None, CONNECTIONS, round));
            let (beside, theirs) = thread::scope(|scope| {
                let theirs = scope.spawn(|| in_background().map(|()| flood.run(&stop)));
                let beside = in_front_for(&steady);
                stop.store(true, Ordering::Relaxed);
                (beside, theirs.join())
            });
            let beside = beside?;
            let theirs = theirs.map_err(|_| "a client panicked")??;
            show("alone", &alone, own);
            show("beside", &beside, own);
            let ratio = beside.latency(0.99).as_secs_f64() / alone.latency(0.99).as_secs_f64();
            let (unauthorized, refused) = (theirs.failed, theirs.refused.len());
            println!(
                "    p99 x {ratio:.2}, goodput x {:.2}; the flood: {:.0}/s, {unauthorized} unauthorized, {refused} refused; {}",
                beside.goodput() / alone.goodput(),
                theirs.offered() / theirs.took.as_secs_f64(),
                server.state()?
            );
        }
    }
    Ok(())
}

fn show(what: &str, tally: &Tally, of: f64) {
    let millis = |latency: Duration| latency.as_secs_f64() * 1e3;
    println!(
        "  {what:10} offered {:9.0}/s  goodput {:8.0}/s ({:.2})  p50 {:7.2} p99 {:7.2} ms  refused {:7} (p50 {:.2}, p99 {:.2} ms)  late {} unsent {} failed {}",
        tally.offered() / tally.took.as_secs_f64(),
        tally.goodput(),
        tally.goodput() / of,
        millis(tally.latency(0.5)),
        millis(tally.latency(0.99)),
        tally.refused.len(),
        millis(tally.refusal(0.5)),
        millis(tally.refusal(0.99)),
        tally.late,
        tally.unsent,
        tally.failed,
    );
}

/// Lets this thread run only when a processor has nothing else to do: a flood comes from other machines, so it must not take
/// the processors of the server and of the client that is measured.
fn in_background() -> Outcome<()> {
    schedule_as("--idle", "0")
}

/// Lets this thread run before all others, as on a machine of its own. It sleeps most of the time.
fn in_front() -> Outcome<()> {
    schedule_as("--rr", "1")
}

fn in_front_for(load: &Load<'_>) -> Outcome<Tally> {
    thread::scope(|scope| scope.spawn(|| in_front().map(|()| load.run_for(TIME))).join())
        .map_err(|_| "a client panicked")?
}

fn schedule_as(policy: &str, priority: &str) -> Outcome<()> {
    let thread = std::fs::read_link("/proc/thread-self")?;
    let thread = thread.file_name().and_then(|name| name.to_str()).ok_or("no thread")?.to_owned();
    run("chrt", &[policy, "--pid", priority, &thread])
        .map_err(|error| format!("{error}: fairness and keys need root").into())
}

/// The processors of the server, and those of the clients, as lists.
fn halves() -> Outcome<[String; 2]> {
    let count = thread::available_parallelism()?.get();
    let half = count / 2;
    if half == 0 {
        return Err("--apart needs two processors".into());
    }
    Ok([format!("0-{}", half - 1), format!("{half}-{}", count - 1)])
}

fn run(program: &str, arguments: &[&str]) -> Outcome<()> {
    let done = Command::new(program).args(arguments).stdout(Stdio::null()).status()?;
    if done.success() { Ok(()) } else { Err(format!("{program} failed").into()) }
}

/// The requests of an organization.
struct Tenant {
    read: [Vec<u8>; 1],
    write: [Vec<u8>; 1],
}

/// The measured server on a temporary store; killed when it goes out of scope.
struct Server {
    process: Child,
    address: String,
    _directory: tempfile::TempDir,
}

impl Server {
    /// Requests to this server: `rate` of them per second, or as many as it answers.
    fn load<'a>(&'a self, requests: &'a [Vec<u8>], rate: Option<f64>, connections: usize, seed: u64) -> Load<'a> {
        Load { address: &self.address, requests, rate, connections, patience: PATIENCE, seed }
    }

    fn start(server: &mut Command) -> Outcome<Self> {
        let directory = tempfile::tempdir()?;
        let store = format!("redb:{}", directory.path().join("overload.redb").display());
        let mut process = server
            .args(["--listen", "127.0.0.1:0", "--trusted-proxy", "127.0.0.0/8", "--store", &store])
            .env("RENTAL_ADMIN_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        let address = line.trim().rsplit_once("http://").ok_or("the server did not say where it listens")?.1.to_owned();
        Ok(Self { process, address, _directory: directory })
    }

    /// Keeps each thread that reads requests on a processor of its own, as they are where no client runs. Otherwise both can be on one
    /// for milliseconds while the flood has the other one, because a processor that runs a flood in the background is not idle.
    fn spread(&self) -> Outcome<()> {
        let mut processor = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let thread = thread?;
            if std::fs::read_to_string(thread.path().join("comm"))?.trim() == "tokio-rt-worker" {
                let id = thread.file_name().into_string().map_err(|_| "a thread without a number")?;
                let of = (processor % thread::available_parallelism()?.get()).to_string();
                run("taskset", &["--cpu-list", "--pid", &of, &id])?;
                processor += 1;
            }
        }
        Ok(())
    }

    /// A new organization with a vehicle.
    fn tenant(&self, name: &str) -> Outcome<Tenant> {
        let organization = self.call("/admin/v1/organizations", TOKEN, &json!({"name": name}))?;
        let key = json!({"organization_id": organization["id"], "scope": "read_write"});
        let key = self.call("/admin/v1/api_keys", TOKEN, &key)?["key"].as_str().ok_or("no key")?.to_owned();
        let vehicle = json!({"name": "White Tesla", "make": "Tesla", "model": "Model 3", "year": 2023, "plate": PLATE, "daily_rate": 89.5});
        let id = self.call("/v1/vehicles", &key, &vehicle)?["id"].as_str().ok_or("no id")?.to_owned();
        Ok(Tenant {
            read: [request("GET", &self.address, &format!("/v1/vehicles/{id}"), &key, None)],
            write: [request("POST", &self.address, "/v1/vehicles", &key, Some(&vehicle))],
        })
    }

    fn call(&self, path: &str, token: &str, body: &Value) -> Outcome<Value> {
        let mut stream = TcpStream::connect(&self.address)?;
        let request = request("POST", &self.address, path, token, Some(body));
        stream.write_all(&request)?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(serde_json::from_str(answer.split_once("\r\n\r\n").ok_or("no answer")?.1)?)
    }

    /// Memory, and how fast a health check is answered.
    fn state(&self) -> Outcome<String> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let memory = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?.trim().to_owned();
        let begun = Instant::now();
        let mut stream = TcpStream::connect(&self.address)?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(format!("peak memory {memory}, health check {:.1?}", begun.elapsed()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn request(method: &str, host: &str, path: &str, token: &str, body: Option<&Value>) -> Vec<u8> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = if body.is_empty() {
        String::new()
    } else {
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
    };
    format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{length}\r\n{body}")
        .into_bytes()
}

fn release(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    target.join("release").join(name)
}
