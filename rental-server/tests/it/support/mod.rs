//! A server in its own process, an organization of one's own on it, and a plain HTTP client.

pub(crate) mod charges;
mod client;
#[path = "../../../../rental-core/tests/postgres/cluster.rs"]
mod cluster;
pub(crate) mod fields;
mod passes;
pub(crate) mod receiver;
pub(crate) mod rules;
mod small_disk;

pub(crate) use client::{Connection, Reply, percent_encode};
pub(crate) use cluster::Cluster;
pub(crate) use passes::assert_this_test_runs_on_each_store;
pub(crate) use small_disk::SmallDisk;

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A running server. Killed when it goes out of scope, which fails the test if the server logged an error.
pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) admin_token: String,
    pub(crate) pid: u32,
    log: PathBuf,
    shell: Child,
    /// Closed with this process, which ends the server: see `start_in`.
    stdin: Option<ChildStdin>,
    _directory: Option<TempDir>,
    /// Words of the errors that the test causes on purpose.
    expected_errors: Option<&'static str>,
}

pub(crate) const ADMIN_TOKEN: &str = "test-admin-token-of-more-than-32-characters";

impl Server {
    /// The server that all tests share which need nothing special: each makes organizations of its own on it.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        assert_this_test_runs_on_each_store();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// A server of one's own on a new store.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut server = Self::start_in(directory.path(), flags);
        server._directory = Some(directory);
        server
    }

    /// A server of one's own that a program starts, such as `unshare`.
    pub(crate) fn start_by(program: &[&str], flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = store_in(directory.path());
        let mut server = Self::start_with_program(directory.path(), program, flags, store);
        server._directory = Some(directory);
        server
    }

    /// A server on the store in `directory`, which may exist already.
    pub(crate) fn start_in(directory: &Path, flags: &[&str]) -> Self {
        Self::start_with(directory, flags, store_in(directory))
    }

    /// The same, on a file whatever the other tests use: for tests that look into it.
    pub(crate) fn start_on_file(directory: &Path, flags: &[&str]) -> Self {
        Self::start_with(directory, flags, file_in(directory))
    }

    /// A server on a database that others may share.
    pub(crate) fn start_on(database: &str, flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut server = Self::start_with(directory.path(), flags, store_on(database, directory.path()));
        server._directory = Some(directory);
        server
    }

    fn start_with(directory: &Path, flags: &[&str], store: Vec<(&'static str, String)>) -> Self {
        Self::start_with_program(directory, &[], flags, store)
    }

    fn start_with_program(
        directory: &Path,
        program: &[&str],
        flags: &[&str],
        store: Vec<(&'static str, String)>,
    ) -> Self {
        // The shell outlives neither this process (its stdin closes) nor the server, so no test leaves a server behind.
        // It gives its stdout away, so that a server that ends before it listens is noticed.
        let script =
            r#""$@" & server=$!; echo "pid $server"; exec >&2; read -r _; kill -9 $server 2>/dev/null; wait $server"#;
        let log = directory.join(format!("log-{}", rand_suffix()));
        let mut shell = Command::new("sh")
            .args(["-c", script, "sh"])
            .args(program)
            .args([env!("CARGO_BIN_EXE_rental-server")])
            .args(if flags.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] })
            .args(flags)
            .envs(store)
            .env("RENTAL_ADMIN_TOKEN", ADMIN_TOKEN)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).expect("a log file"))
            .spawn()
            .expect("the server starts");
        let stdin = shell.stdin.take();
        let mut lines = BufReader::new(shell.stdout.take().expect("stdout is piped")).lines();
        let (mut pid, mut address) = (None, None);
        while pid.is_none() || address.is_none() {
            let Some(Ok(line)) = lines.next() else {
                panic!("the server did not start: {}", fs::read_to_string(&log).unwrap_or_default())
            };
            if let Some(number) = line.strip_prefix("pid ") {
                pid = number.parse().ok();
            } else if let Some((_, found)) = line.split_once("listening on http")
                && let Some((_, found)) = found.split_once("://")
            {
                address = Some(found.to_owned());
            }
        }
        let (pid, address) = (pid.expect("the shell says it"), address.expect("the server says it"));
        let admin_token = ADMIN_TOKEN.into();
        Self { address, admin_token, pid, log, shell, stdin, _directory: None, expected_errors: None }
    }

    /// Sends a signal: `KILL`, `TERM`, `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid.to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for the server to end by itself.
    pub(crate) fn wait_until_gone(&self) {
        while Path::new(&format!("/proc/{}/stat", self.pid)).exists() && !self.is_zombie() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the server to end by itself and gives its exit code.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.wait_until_gone();
        drop(self.stdin.take());
        self.shell.wait().expect("the shell ends").code()
    }

    /// Ended, and not waited for yet. Its first thread looks so before the others, which may still hold files, have gone.
    fn is_zombie(&self) -> bool {
        let ended = fs::read_to_string(format!("/proc/{}/stat", self.pid)).is_ok_and(|stat| stat.contains(") Z "));
        ended && fs::read_dir(format!("/proc/{}/task", self.pid)).is_ok_and(|threads| threads.count() <= 1)
    }

    /// Everything that the server wrote to stderr so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Errors with these words may be logged, as the test causes them.
    pub(crate) fn expecting_errors(mut self, words: &'static str) -> Self {
        self.expected_errors = Some(words);
        self
    }

    fn assert_no_errors(&self) {
        let log = self.log();
        let expected = |line: &&str| self.expected_errors.is_some_and(|words| line.contains(words));
        let errors: Vec<&str> = log.lines().filter(|line| line.contains("ERROR") && !expected(line)).collect();
        assert!(std::thread::panicking() || errors.is_empty(), "the server logged errors: {errors:#?}");
    }

    /// One request with the admin token.
    pub(crate) fn admin(&self, method: &str, path: &str, body: &Value) -> Reply {
        let token = format!("Bearer {}", self.admin_token);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
        Connection::open(&self.address).send(method, path, &headers, body.as_bytes())
    }

    /// The same with a body that is not JSON.
    pub(crate) fn admin_bytes(&self, method: &str, path: &str, media: &str, body: &[u8]) -> Reply {
        let token = format!("Bearer {}", self.admin_token);
        let headers = [("Authorization", token.as_str()), ("Content-Type", media)];
        Connection::open(&self.address).send(method, path, &headers, body)
    }

    /// A new organization with a read and a read_write key.
    pub(crate) fn organization(&self) -> Organization<'_> {
        self.organization_with(&json!({"name": "Test"}))
    }

    /// The same, with more fields than a name.
    pub(crate) fn organization_with(&self, body: &Value) -> Organization<'_> {
        let id = self.admin("POST", "/admin/v1/organizations", body).ok()["id"].as_str().expect("an id").to_owned();
        let [read, write] = ["read", "read_write"].map(|scope| {
            let key = self.admin("POST", "/admin/v1/api_keys", &json!({"organization_id": id, "scope": scope})).ok();
            key["key"].as_str().expect("a key").to_owned()
        });
        Organization { server: self, id, read, write }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.shell.wait();
        self.assert_no_errors();
    }
}

/// Runs a program that must end by itself. One that goes on, such as a server that should have refused to start, is killed.
#[track_caller]
pub(crate) fn ended(command: &mut Command) -> Output {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let deadline = Instant::now() + receiver::PATIENCE;
    while child.try_wait().expect("a child").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("it can be killed");
            panic!("it goes on: {}", String::from_utf8_lossy(&child.wait_with_output().expect("its end").stderr));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("its end")
}

/// What tells a server to use the store in `directory`: a file, or with `RENTAL_TEST_STORE=postgres` a database.
fn store_in(directory: &Path) -> Vec<(&'static str, String)> {
    assert_this_test_runs_on_each_store();
    if std::env::var("RENTAL_TEST_STORE").as_deref() != Ok("postgres") {
        return file_in(directory);
    }
    let url = directory.join("store.url");
    if !url.exists() {
        fs::write(&url, database().expect("PostgreSQL is installed")).expect("a file");
    }
    store_on(&fs::read_to_string(url).expect("a URL"), directory)
}

fn file_in(directory: &Path) -> Vec<(&'static str, String)> {
    vec![("RENTAL_STORE", format!("redb:{}", directory.join("store.redb").display()))]
}

/// Flips two bits wherever this text is in the file of a store, as a bad disk does.
pub(crate) fn flip(path: &Path, text: &str) {
    flip_bytes(path, text.as_bytes());
}

/// The same wherever these bytes are.
pub(crate) fn flip_bytes(path: &Path, bytes: &[u8]) {
    let mut file = fs::read(path).expect("the file");
    let found: Vec<usize> = (0..file.len()).filter(|at| file[*at..].starts_with(bytes)).collect();
    assert!(!found.is_empty(), "no {} in the file", bytes.escape_ascii());
    found.into_iter().for_each(|at| file[at] ^= 3);
    fs::write(path, file).expect("the file");
}

/// The URL of a new database; `None`, and a line that says so, without PostgreSQL.
pub(crate) fn database() -> Option<String> {
    Cluster::shared().map(Cluster::database)
}

/// A database, and the master key that all servers on it share.
fn store_on(database: &str, directory: &Path) -> Vec<(&'static str, String)> {
    let master_key = directory.join("store.master-key");
    fs::write(&master_key, "5".repeat(64)).expect("a file");
    vec![("RENTAL_STORE", database.to_owned()), ("RENTAL_MASTER_KEY_FILE", master_key.to_string_lossy().into_owned())]
}

fn rand_suffix() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// An organization made for one test. When it goes out of scope, no error may have been logged.
pub(crate) struct Organization<'s> {
    pub(crate) server: &'s Server,
    pub(crate) id: String,
    pub(crate) read: String,
    pub(crate) write: String,
}

impl Organization<'_> {
    /// The same organization, asked by way of another server on its database.
    pub(crate) fn by_way_of<'s>(&self, server: &'s Server) -> Organization<'s> {
        Organization { server, id: self.id.clone(), read: self.read.clone(), write: self.write.clone() }
    }

    /// One request with the read_write key and a JSON body (`Value::Null` for none).
    pub(crate) fn call(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.call_with(method, path, &[], body)
    }

    /// The same with more headers.
    pub(crate) fn call_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.raw(method, path, headers, body.as_bytes())
    }

    /// The same with a body of any bytes, sent as `application/json`.
    pub(crate) fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let key = format!("Bearer {}", self.write);
        let mut all = vec![("Authorization", key.as_str())];
        if !body.is_empty() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            all.push(("Content-Type", "application/json"));
        }
        all.extend_from_slice(headers);
        Connection::open(&self.server.address).send(method, path, &all, body)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.call("GET", path, &Value::Null)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.call("POST", path, body)
    }

    pub(crate) fn patch(&self, path: &str, body: &Value) -> Reply {
        self.call("PATCH", path, body)
    }

    /// A vehicle with these fields; a name is added. Gives its id.
    pub(crate) fn vehicle(&self, mut fields: Value) -> String {
        fields["name"] = json!("Test vehicle");
        self.post("/v1/vehicles", &fields).id()
    }

    /// A customer with these fields; a name is added. Gives its id.
    pub(crate) fn customer(&self, mut fields: Value) -> String {
        fields["full_name"] = json!("Test Customer");
        self.post("/v1/customers", &fields).id()
    }

    /// A rental of a new customer on `vehicle`, with these fields. Gives its id.
    pub(crate) fn rental(&self, vehicle: &str, mut fields: Value) -> String {
        fields["vehicle_id"] = json!(vehicle);
        fields["customer_id"] = json!(self.customer(json!({})));
        self.post("/v1/rentals", &fields).id()
    }

    /// An object that only operators record: `invoices`, `tolls` or `violations`. Gives its id.
    pub(crate) fn recorded(&self, plural: &str, fields: &Value) -> String {
        self.server.admin("POST", &format!("/admin/v1/organizations/{}/{plural}", self.id), fields).id()
    }

    /// An object of each resource that can be read, by plural; leads can only be made.
    pub(crate) fn one_of_each(&self) -> Vec<(&'static str, String)> {
        let vehicle = self.vehicle(json!({"daily_rate": 50}));
        let customer = self.customer(json!({"email": "one@example.com"}));
        let rental = self.post("/v1/rentals", &json!({"customer_id": customer, "vehicle_id": vehicle})).id();
        let line = json!([{"description": "Days", "amount": 10}]);
        let invoice = self.recorded("invoices", &json!({"customer_id": customer, "rental_id": rental, "lines": line}));
        let credit_note = self.recorded("credit_notes", &json!({"invoice_id": invoice}));
        let toll = self.recorded("tolls", &json!({"amount": 6.94, "agency": "MTAB&T", "vehicle_id": vehicle}));
        let violation =
            self.recorded("violations", &json!({"summons_number": "1", "amount_due": 50, "vehicle_id": vehicle}));
        let nights = json!({"vehicle_id": vehicle, "start_date": "2031-06-01", "end_date": "2031-06-05"});
        let block = self.post("/v1/blocks", &nights).id();
        let feed = json!({"vehicle_id": vehicle, "url": "https://calendar.invalid/a.ics"});
        let feed = self.post("/v1/calendar_feeds", &feed).id();
        // The server reads it at once, and changes nothing of it for the next minutes.
        let path = format!("/v1/calendar_feeds/{feed}");
        let pending = || self.get(&path).ok()["status"] == "pending";
        (0..500).take_while(|_| pending()).for_each(|_| std::thread::sleep(Duration::from_millis(10)));
        let events = self.get("/v1/events?limit=1").ok();
        let event = events["data"][0]["id"].as_str().expect("an event").to_owned();
        vec![
            ("events", event),
            ("blocks", block),
            ("calendar_feeds", feed),
            ("vehicles", vehicle),
            ("customers", customer),
            ("rentals", rental),
            ("invoices", invoice),
            ("credit_notes", credit_note),
            ("tolls", toll),
            ("violations", violation),
        ]
    }
}

impl Drop for Organization<'_> {
    fn drop(&mut self) {
        self.server.assert_no_errors();
    }
}
