//! Measures the server beside the bare warp filter of `floor.rs`, in turn, with wrk.
//!
//! ```text
//! cargo run --release --locked -p rental-server --example bench              requests per second and ratios
//! cargo run --release --locked -p rental-server --example bench -- memory    resident memory with a million rentals
//! cargo run --release --locked -p rental-server --example bench -- backup    reads with and without a backup running
//! cargo run --release --locked -p rental-server --example bench -- webhooks  deliveries per second, CPU, time to receipt
//! cargo run --release --locked -p rental-server --example bench -- backlog   memory with a million deliveries that wait
//! cargo run --release --locked -p rental-server --example bench -- imports   tolls from files, time and memory
//! cargo run --release --locked -p rental-server --example bench -- postgres  one and three servers beside pgbench
//! cargo run --release --locked -p rental-server --example bench -- postgres-store  batches without HTTP beside pgbench
//! ```
//! A shared machine drifts, so only the ratio within a pair is worth quoting.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

const TOKEN: &str = "bench-admin-token-of-more-than-32-characters";
const PAIRS: usize = 5;

#[path = "../../rental-core/tests/postgres/cluster.rs"]
mod cluster;
#[path = "bench/imports.rs"]
mod imports;
#[path = "bench/postgres.rs"]
mod postgres;
#[path = "bench/webhooks.rs"]
mod webhooks;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    build()?;
    let asked = |name: &str| std::env::args().any(|argument| argument == name);
    if asked("postgres") {
        return postgres::measure();
    }
    if asked("postgres-store") {
        return postgres::measure_store();
    }
    let memory = asked("memory");
    let mut server = Server::start(if memory || asked("backlog") || asked("imports") { "64MB" } else { "256MB" })?;
    let organization = server.admin("/admin/v1/organizations", &json!({"name": "Bench"}))?;
    let key =
        server.admin("/admin/v1/api_keys", &json!({"organization_id": organization["id"], "scope": "read_write"}))?;
    server.key = key["key"].as_str().unwrap_or_default().to_owned();
    match () {
        () if memory => fill(&server).map(drop),
        () if asked("backup") => measure_backup(&server),
        () if asked("backlog") => webhooks::measure_backlog(&mut server),
        () if asked("imports") => imports::measure(&server),
        () if asked("webhooks") => webhooks::measure(&mut server),
        () => measure_rates(&server),
    }
}

/// The programs that are measured: both in release mode, whatever this one was built with.
fn build() -> Outcome<()> {
    let arguments =
        ["build", "--release", "--locked", "-p", "rental-server", "--bin", "rental-server", "--example", "floor"];
    if Command::new("cargo").args(arguments).status()?.success() { Ok(()) } else { Err("cargo build failed".into()) }
}

fn release(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    target.join("release").join(name)
}

fn measure_rates(server: &Server) -> Outcome<()> {
    let mut floor = Command::new(release("examples/floor")).stdout(Stdio::piped()).spawn()?;
    let floor_address = announced(&mut floor)?;
    let vehicle = json!({"name": "White Tesla", "make": "Tesla", "model": "Model 3", "year": 2023, "plate": "ABC1234", "daily_rate": 89.5});
    let id = server.call("/v1/vehicles", &vehicle)?["id"].as_str().unwrap_or_default().to_owned();
    let one = format!("/v1/vehicles/{id}");
    println!("{:28} {:>12} {:>12} {:>28}", "", "requests/s", "p99 ms", "ratio to floor (min-max)");
    let post = posting(&vehicle)?;
    for (name, path, script, connections, goal) in [
        ("durable POST, c=32", "/v1/vehicles", Some(post.as_str()), 32, 0.15),
        ("durable POST, c=128", "/v1/vehicles", Some(post.as_str()), 128, 0.20),
        ("GET one, c=32", one.as_str(), None, 32, 0.75),
        ("list of 20, c=32", "/v1/vehicles", None, 32, 0.45),
    ] {
        let mut pairs = Vec::new();
        for round in 0..=PAIRS {
            let ours = wrk(&server.address, path, Some(&server.key), script, connections)?;
            let floor = wrk(&floor_address, "/v1/vehicles/x", None, None, connections)?;
            // The first pair warms up.
            if round > 0 {
                pairs.push((ours.0, ours.1, ours.0 / floor.0));
            }
        }
        let middle = |of: fn(&(f64, f64, f64)) -> f64| {
            let mut values: Vec<f64> = pairs.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            (values[0], values[PAIRS / 2], values[PAIRS - 1])
        };
        let ratio = middle(|pair| pair.2);
        println!(
            "{name:28} {:12.0} {:12.2} {:9.3} ({:.3}-{:.3}) goal {goal}",
            middle(|pair| pair.0).1,
            middle(|pair| pair.1).1,
            ratio.1,
            ratio.0,
            ratio.2
        );
    }
    floor.kill()?;
    Ok(())
}

/// A million rentals; gives one of them.
fn fill(server: &Server) -> Outcome<String> {
    const RENTALS: u64 = 1_000_000;
    let vehicle = server.call("/v1/vehicles", &json!({"name": "One", "daily_rate": 50}))?;
    let customer = server.call("/v1/customers", &json!({"full_name": "One"}))?;
    let rental = json!({"vehicle_id": vehicle["id"], "customer_id": customer["id"], "start_date": "2026-06-01", "end_date": "2026-06-05"});
    let post = posting(&rental)?;
    let mut made = 0;
    while made < RENTALS {
        made += wrk(&server.address, "/v1/rentals", Some(&server.key), Some(&post), 128)?.2;
        println!("{made} rentals, resident {} MB", server.resident_mb()?);
    }
    std::thread::sleep(Duration::from_secs(5));
    println!("idle with {made} rentals: resident {} MB", server.resident_mb()?);
    Ok(server.call("/v1/rentals", &rental)?["id"].as_str().unwrap_or_default().to_owned())
}

/// Reads alone and beside a backup, in turn; each backup goes on while it is measured beside.
fn measure_backup(server: &Server) -> Outcome<()> {
    let one = format!("/v1/rentals/{}", fill(server)?);
    for pace in ["gentle", "full"] {
        let began = std::time::Instant::now();
        let bytes = backup(server, pace)?.wait_with_output()?.stdout;
        println!("{pace} backup of an idle server: {} bytes in {:.1?}", String::from_utf8(bytes)?, began.elapsed());
        let mut ratios = Vec::new();
        for _ in 0..PAIRS {
            let alone = wrk(&server.address, &one, Some(&server.key), None, 32)?;
            let mut backup = backup(server, pace)?;
            let beside = wrk(&server.address, &one, Some(&server.key), None, 32)?;
            let still = backup.try_wait()?.is_none();
            backup.kill()?;
            backup.wait()?;
            std::thread::sleep(Duration::from_secs(2));
            println!(
                "  alone {:.0}/s p99 {:.2} ms, beside {:.0}/s p99 {:.2} ms, running to the end: {still}",
                alone.0, alone.1, beside.0, beside.1
            );
            ratios.push(beside.0 / alone.0);
        }
        ratios.sort_by(f64::total_cmp);
        println!("  ratio {:.3} ({:.3}-{:.3})", ratios[PAIRS / 2], ratios[0], ratios[PAIRS - 1]);
    }
    Ok(())
}

/// curl takes it and counts the bytes.
fn backup(server: &Server, pace: &str) -> Outcome<Child> {
    let url = format!("http://{}/admin/v1/backup?pace={pace}", server.address);
    let mut curl = Command::new("curl");
    curl.args([
        "-sS",
        "-o",
        "/dev/null",
        "-w",
        "%{size_download}",
        &url,
        "-H",
        &format!("Authorization: Bearer {TOKEN}"),
    ]);
    Ok(curl.stdout(Stdio::piped()).spawn()?)
}

/// What makes wrk post this.
fn posting(body: &Value) -> Outcome<String> {
    let text = serde_json::to_string(&body.to_string())?;
    Ok(format!("wrk.method='POST'\nwrk.headers['Content-Type']='application/json'\nwrk.body={text}\n"))
}

/// What makes wrk ask for these paths in turn.
fn asking(paths: &[String]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| format!("'{path}'")).collect();
    format!(
        "local paths={{{}}}\nlocal n=0\nfunction request() n=n%#paths+1; return wrk.format('GET',paths[n]) end\n",
        paths.join(",")
    )
}

/// Requests per second, p99 in milliseconds, and requests in all.
fn wrk(
    address: &str,
    path: &str,
    key: Option<&str>,
    script: Option<&str>,
    connections: u32,
) -> Outcome<(f64, f64, u64)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut command = Command::new("wrk");
    command.args(["-t1", "-d4s", "--latency", &format!("-c{connections}")]);
    if let Some(key) = key {
        command.args(["-H", &format!("Authorization: Bearer {key}")]);
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("rental-bench-{}-{number}.lua", std::process::id()));
    if let Some(script) = script {
        std::fs::write(&file, script)?;
        command.arg("-s").arg(&file);
    }
    let output = command
        .arg(format!("http://{address}{path}"))
        .output()
        .map_err(|error| format!("wrk: {error} (Debian package wrk)"))?;
    if script.is_some() {
        std::fs::remove_file(&file)?;
    }
    let text = String::from_utf8(output.stdout)?;
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return Err(format!("{path}: {text}").into());
    }
    let after =
        |label: &str| text.lines().find_map(|line| line.trim().strip_prefix(label)).map(|rest| rest.trim().to_owned());
    let rate = after("Requests/sec:").and_then(|rate| rate.parse().ok()).ok_or("wrk printed no rate")?;
    let p99 = after("99%").and_then(|time| millis(&time)).ok_or("wrk printed no p99")?;
    let all = text
        .lines()
        .find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok())
        .ok_or("wrk printed no total")?;
    Ok((rate, p99, all))
}

fn millis(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..split].parse().ok()?;
    Some(
        number
            * match &text[split..] {
                "us" => 0.001,
                "ms" => 1.0,
                _ => 1000.0,
            },
    )
}

/// The address in the first line that a program prints.
fn announced(process: &mut Child) -> Outcome<String> {
    let mut line = String::new();
    BufReader::new(process.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    Ok(line.trim().rsplit_once("http://").ok_or("a program did not say where it listens")?.1.to_owned())
}

/// The measured server on a temporary store; killed when it goes out of scope.
struct Server {
    process: Child,
    address: String,
    key: String,
    _directory: tempfile::TempDir,
}

impl Server {
    fn start(cache: &str) -> Outcome<Self> {
        let directory = tempfile::tempdir()?;
        let store = format!("redb:{}", directory.path().join("bench.redb").display());
        let mut process = Command::new(release("rental-server"))
            .args(["--listen", "127.0.0.1:0", "--cache-size", cache, "--store", &store, "--webhook-allow-private"])
            .args(["--organization-requests", "0"])
            .env("RENTAL_ADMIN_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .spawn()?;
        let address = announced(&mut process)?;
        Ok(Self { process, address, key: String::new(), _directory: directory })
    }

    /// A server on a database that others share.
    fn on(database: &str) -> Outcome<Self> {
        let directory = tempfile::tempdir()?;
        let master_key = directory.path().join("master-key");
        std::fs::write(&master_key, "5".repeat(64))?;
        let mut process = Command::new(release("rental-server"))
            .args(["--listen", "127.0.0.1:0"])
            .env("RENTAL_STORE", database)
            .env("RENTAL_MASTER_KEY_FILE", &master_key)
            .env("RENTAL_ADMIN_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .spawn()?;
        let address = announced(&mut process)?;
        Ok(Self { process, address, key: String::new(), _directory: directory })
    }

    fn admin(&self, path: &str, body: &Value) -> Outcome<Value> {
        post(&self.address, path, TOKEN, body)
    }

    fn call(&self, path: &str, body: &Value) -> Outcome<Value> {
        post(&self.address, path, &self.key, body)
    }

    /// A number without labels from the metrics page.
    fn metric(&self, name: &str) -> Outcome<f64> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let value = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok());
        value.ok_or_else(|| format!("no metric {name}").into())
    }

    /// CPU seconds that the server has used, in user and kernel mode together.
    fn cpu_seconds(&self) -> Outcome<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let after_name = stat.rsplit_once(')').ok_or("no stat")?.1;
        let ticks: f64 =
            after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        // Linux counts in hundredths of a second on every machine that this runs on.
        Ok(ticks / 100.0)
    }

    fn resident_mb(&self) -> Outcome<u64> {
        resident_mb(self.process.id())
    }
}

/// Memory of a process that is in use now.
fn resident_mb(process: u32) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kilobytes.ok_or("no VmRSS")? / 1024)
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn post(address: &str, path: &str, token: &str, body: &Value) -> Outcome<Value> {
    let body = body.to_string();
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(serde_json::from_str(answer.split_once("\r\n\r\n").ok_or("no answer")?.1)?)
}
