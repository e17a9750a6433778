//! The program as an operator meets it: one clear line when it cannot start, never a panic (contract, rental-server).

mod admin_token;
mod clock;
mod configuration;
mod service_manager;
mod unread;

use crate::support::{ADMIN_TOKEN, Connection};
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The program in a directory of its own, killed when the test is over.
struct Program {
    child: Child,
    /// Empty when the command's stdout is no pipe.
    stdout: BufReader<Box<dyn Read>>,
    directory: std::path::PathBuf,
}

/// How it ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Program {
    fn start(directory: &Path, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rental-server"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.env_remove("RENTAL_ADMIN_TOKEN").envs(environment.iter().copied());
        Self::spawn(command, directory, flags)
    }

    /// Starts a command that runs the program.
    fn spawn(mut command: Command, directory: &Path, flags: &[&str]) -> Self {
        let stderr = fs::File::create(directory.join("stderr")).expect("a file");
        command.current_dir(directory).args(flags).stderr(stderr).env("TMPDIR", directory).env("RUST_BACKTRACE", "1");
        let mut child = command.spawn().expect("the program runs");
        let stdout: Box<dyn Read> = match child.stdout.take() {
            Some(stdout) => Box::new(stdout),
            None => Box::new(std::io::empty()),
        };
        Self { child, stdout: BufReader::new(stdout), directory: directory.to_owned() }
    }

    /// The next line on stdout; `None` when it has ended without one.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.stdout.read_line(&mut line).expect("text") > 0).then(|| line.trim_end().to_owned())
    }

    /// Reads lines until one holds `words`.
    fn line_with(&mut self, words: &str) -> String {
        loop {
            let line = self.line().unwrap_or_else(|| panic!("no `{words}`: {}", self.stderr()));
            if line.contains(words) {
                return line;
            }
        }
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.directory.join("stderr")).expect("text")
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for it to end by itself.
    fn end(mut self) -> Ended {
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None => assert!(Instant::now() < deadline, "it goes on: {}", self.stderr()),
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).expect("text");
        Ended { code: status.code(), stdout, stderr: self.stderr() }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn run(directory: &Path, flags: &[&str], environment: &[(&str, &str)]) -> Ended {
    Program::start(directory, flags, environment).end()
}

const ANY_PORT: [&str; 2] = ["--listen", "127.0.0.1:0"];

/// No sign of a panic.
#[track_caller]
fn calm(stderr: &str) {
    for word in ["panic", "backtrace", "unwrap", "src/", ".rs:"] {
        assert!(!stderr.contains(word), "{stderr}");
    }
}

/// It ended with 1 and exactly one line, which holds these words.
#[track_caller]
fn refused(ended: &Ended, words: &[&str]) {
    calm(&ended.stderr);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{}", ended.stderr);
    assert!(lines[0].starts_with("rental-server: "), "{}", lines[0]);
    words.iter().for_each(|word| assert!(lines[0].contains(word), "`{word}` in {}", lines[0]));
    assert!(!ended.stdout.contains("listening"), "{ended:?}");
}

/// A store that a server made, used and closed.
fn used_store(directory: &Path) {
    let mut program = Program::start(directory, &ANY_PORT, &[("RENTAL_ADMIN_TOKEN", ADMIN_TOKEN)]);
    let address = program.line_with("listening").rsplit_once("//").expect("an address").1.to_owned();
    let authorization = format!("Bearer {ADMIN_TOKEN}");
    for _ in 0..20 {
        let headers = [("Authorization", authorization.as_str())];
        let reply = Connection::open(&address).send("POST", "/admin/v1/organizations", &headers, br#"{"name":"x"}"#);
        reply.ok();
    }
    program.signal("TERM");
    assert_eq!(program.end().code, Some(0));
}

#[test]
fn an_address_in_use_is_refused_before_anything_is_made() {
    let (directory, taken) = (directory(), TcpListener::bind("127.0.0.1:0").expect("a port"));
    let address = taken.local_addr().expect("an address").to_string();
    refused(&run(directory.path(), &["--listen", &address], &[]), &[&address]);
    let made: Vec<_> =
        fs::read_dir(directory.path()).expect("a directory").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(made, ["stderr"]);
}

#[test]
fn a_store_that_another_server_has_open_is_refused() {
    let (ours, theirs) = (directory(), directory());
    let mut first = Program::start(ours.path(), &ANY_PORT, &[]);
    first.line_with("listening");
    let store = format!("redb:{}", ours.path().join("rental.redb").display());
    let second = run(theirs.path(), &["--listen", "127.0.0.1:0", "--store", &store], &[]);
    refused(&second, &["rental.redb", "in use"]);
    first.signal("TERM");
    assert_eq!(first.end().code, Some(0));
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let garbage: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for bytes in [b"# not a store\n".as_slice(), &garbage, &[0; 4096]] {
        let directory = directory();
        let path = directory.path().join("rental.redb");
        fs::write(&path, bytes).expect("a file");
        refused(&run(directory.path(), &ANY_PORT, &[]), &["rental.redb"]);
        assert_eq!(fs::read(&path).expect("a file"), bytes, "nothing was written over it");
    }
}

#[test]
fn a_truncated_store_is_refused_in_one_line() {
    let original = directory();
    used_store(original.path());
    let bytes = fs::read(original.path().join("rental.redb")).expect("a store");
    for length in [1, 100, 511, 4096, 8192, bytes.len() / 4, bytes.len() / 2] {
        let directory = directory();
        fs::write(directory.path().join("rental.redb"), &bytes[..length]).expect("a file");
        refused(&run(directory.path(), &ANY_PORT, &[]), &["rental.redb"]);
    }
}

/// Flips one byte; the program starts all the same or says one line, and never panics.
#[test]
fn a_flipped_byte_is_survived_or_refused_in_one_line() {
    let original = directory();
    used_store(original.path());
    let bytes = fs::read(original.path().join("rental.redb")).expect("a store");
    let header = (0..24).chain((24..320).step_by(13));
    // The first byte of a page says what kind of page it is.
    let used = |at: &usize| bytes[*at..at + 4096].iter().any(|byte| *byte != 0);
    let pages = (1..bytes.len() / 4096).map(|page| page * 4096).filter(used);
    for at in header.chain(pages) {
        let directory = directory();
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        fs::write(directory.path().join("rental.redb"), &damaged).expect("a file");
        let mut program = Program::start(directory.path(), &ANY_PORT, &[]);
        if program.line().is_some() {
            program.signal("TERM");
            calm(&program.end().stderr);
        } else {
            let ended = program.end();
            println!("byte {at}: {}", ended.stderr);
            refused(&ended, &["rental.redb"]);
        }
    }
}

#[test]
fn a_place_that_takes_no_file_is_refused() {
    let directory = directory();
    fs::create_dir(directory.path().join("folder")).expect("a folder");
    fs::write(directory.path().join("file"), "").expect("a file");
    for (place, next) in [
        ("folder", "name the file, such as redb:folder/rental.redb"),
        ("missing/rental.redb", "make the directory missing first"),
        ("file/rental.redb", ""),
        ("/proc/rental.redb", ""),
    ] {
        let ended = run(directory.path(), &["--listen", "127.0.0.1:0", "--store", &format!("redb:{place}")], &[]);
        refused(&ended, &[place, next]);
    }
}

#[test]
fn a_store_of_an_unknown_kind_is_refused() {
    for url in ["rental.redb", "redb:", "mysql://localhost/rental", "file:///rental.redb", "REDB:rental.redb"] {
        let directory = directory();
        let ended = run(directory.path(), &["--listen", "127.0.0.1:0", "--store", url], &[]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.lines().count() == 1 && ended.stderr.contains("redb:PATH"), "{ended:?}");
    }
}

#[test]
fn bad_flags_end_with_2_and_name_the_flag() {
    for (flag, value) in [
        ("--listen", "nonsense"),
        ("--listen", "127.0.0.1"),
        ("--rate-limit", "0"),
        ("--rate-limit", "many"),
        ("--max-connections", "0"),
        ("--connections-per-address", "0"),
        ("--trusted-proxy", "example.com"),
        ("--trusted-proxy", "10.0.0.1/8"),
        ("--max-body", "1"),
        ("--max-body", "1parsec"),
        ("--max-body", "2048"),
        ("--request-timeout", "30"),
        ("--webhook-timeout", "10"),
        ("--webhook-retry-schedule", "30s,120"),
        ("--request-timeout", "0s"),
        ("--cache-size", "0"),
        ("--log-format", "xml"),
        ("--no-such-flag", "1"),
    ] {
        let directory = directory();
        let mut cases = vec![run(directory.path(), &[flag, value], &[])];
        if flag != "--no-such-flag" {
            let variable = format!("RENTAL_{}", flag.trim_start_matches('-').replace('-', "_").to_uppercase());
            cases.push(run(directory.path(), &[], &[(&variable, value)]));
        }
        for ended in cases {
            calm(&ended.stderr);
            assert_eq!(ended.code, Some(2), "{flag} {value}: {ended:?}");
            assert!(ended.stderr.lines().count() == 1 && ended.stderr.contains(flag), "{}", ended.stderr);
        }
    }
}

#[test]
fn a_flag_of_another_server_leads_to_the_one_that_is_meant() {
    let directory = directory();
    for (flag, meant) in
        [("--port", "--listen ADDRESS:PORT"), ("--data=x", "--store URL"), ("--admin-token", "--admin-token-file FILE")]
    {
        let ended = run(directory.path(), &[flag], &[]);
        let flag = flag.split('=').next().unwrap_or_default();
        let said = format!("rental-server: unexpected argument '{flag}' found; use {meant}; see --help\n");
        assert_eq!((ended.code, ended.stderr), (Some(2), said));
    }
}

#[test]
fn a_certificate_without_its_key_is_refused_in_one_sentence_that_names_the_key() {
    let directory = directory();
    for (given, lacking) in [("--tls-cert", "--tls-key"), ("--tls-key", "--tls-cert")] {
        let variable = format!("RENTAL_{}", given.trim_start_matches('-').replace('-', "_").to_uppercase());
        for ended in
            [run(directory.path(), &[given, "file.pem"], &[]), run(directory.path(), &[], &[(&variable, "file.pem")])]
        {
            let said = format!(
                "rental-server: the following required arguments were not provided: {lacking} <FILE>; see --help\n"
            );
            assert_eq!((ended.code, ended.stderr), (Some(2), said));
        }
    }
}

#[test]
fn help_names_the_variable_of_every_flag() {
    let directory = directory();
    let ended = run(directory.path(), &["--help"], &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let flags: Vec<&str> = ended.stdout.split("\n      --").skip(1).collect();
    for block in &flags {
        let name = block.split([' ', '\n']).next().unwrap_or("");
        let block = block.split_whitespace().collect::<Vec<_>>().join(" ");
        // The value of the store's variable is not shown: it may hold a password.
        let end = if name == "store" { "]" } else { "=" };
        // Other programs read the same variable of OpenTelemetry.
        let prefix = if name == "otlp-endpoint" { "OTEL_EXPORTER_" } else { "RENTAL_" };
        let variable = format!("[env: {prefix}{}{end}", name.replace('-', "_").to_uppercase());
        // A variable that stays set would replace a key that is lost later, too, or check instead of serving.
        let without = ["demo", "generate", "healthcheck", "replace-master-key"].contains(&name);
        assert!(block.contains(&variable) != without, "{variable} in {block}");
    }
    for flag in [
        "listen",
        "store",
        "admin-token-file",
        "rate-limit",
        "max-connections",
        "request-timeout",
        "max-body",
        "cache-size",
        "log-format",
    ] {
        assert!(flags.iter().any(|block| block.starts_with(flag)), "--{flag} in {}", ended.stdout);
    }
    assert!(ended.stdout.contains("RENTAL_ADMIN_TOKEN"));
    let version = run(directory.path(), &["--version"], &[]);
    let commit = version.stdout.trim_end().strip_prefix(concat!("rental-server ", env!("CARGO_PKG_VERSION"), " ("));
    let commit = commit.and_then(|rest| rest.strip_suffix(')')).expect(&version.stdout);
    assert!(version.code == Some(0) && commit.len() >= 7, "{}", version.stdout);
    assert!(commit.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{commit}");
}

#[test]
fn the_manual_page_and_the_completions_name_every_flag() {
    let directory = directory();
    let help = run(directory.path(), &["--help"], &[]).stdout;
    let flags: Vec<&str> =
        help.lines().filter_map(|line| line.trim().strip_prefix("--")?.split([' ', '.']).next()).collect();
    assert!(flags.len() > 30, "{flags:?}");
    for (kind, sign) in [("man", r"\-\-"), ("bash", "--"), ("zsh", "--"), ("fish", "-l ")] {
        // Settings of the machine are neither needed nor printed.
        let made = run(directory.path(), &["--generate", kind], &[("RENTAL_STORE", "postgres://of@a.host/secret")]);
        assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""), "{kind}");
        assert!(!made.stdout.contains("a.host"), "{kind}");
        for flag in &flags {
            let flag = if kind == "man" { flag.replace('-', r"\-") } else { (*flag).to_owned() };
            assert!(made.stdout.contains(&format!("{sign}{flag}")), "{kind} {flag}: {}", made.stdout);
        }
    }
}

#[test]
fn the_demo_says_how_to_use_it_and_leaves_nothing_behind() {
    for signal in ["INT", "TERM"] {
        let directory = directory();
        let mut program = Program::start(directory.path(), &["--demo", "--listen", "127.0.0.1:0"], &[]);
        let mut value = |name: &str| program.line_with(name).rsplit_once(' ').expect("a value").1.to_owned();
        let base = value("base URL");
        let organization = program.line_with("organization ");
        let id = organization.split_whitespace().nth(1).expect("an id");
        let mut value = |name: &str| program.line_with(name).rsplit_once(' ').expect("a value").1.to_owned();
        let [write, read, token] = ["read_write key", "read key", "admin token"].map(&mut value);
        let curl = program.line_with("curl ").trim().to_owned();
        let export = program.line_with("export ");
        let variables = format!(
            "RENTAL_BASE_URL={base} RENTAL_API_KEY={write} RENTAL_ADMIN_TOKEN={token} RENTAL_ORGANIZATION={id}"
        );
        assert_eq!(export.trim(), format!("export {variables}"));
        let address = base.strip_prefix("http://").expect("a URL").to_owned();
        let ask = |method: &str, path: &str, key: &str, body: &[u8]| {
            let authorization = format!("Bearer {key}");
            let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
            Connection::open(&address).send(method, path, &headers, body)
        };
        for plural in ["vehicles", "customers", "rentals", "invoices", "tolls", "violations"] {
            let page = ask("GET", &format!("/v1/{plural}"), &read, b"").ok();
            assert!(!page["data"].as_array().expect("a list").is_empty(), "{plural}");
        }
        ask("POST", "/v1/leads", &read, b"{}").error(403, "permission_error", "insufficient_scope");
        ask("POST", "/v1/leads", &write, b"{}").ok();
        ask("GET", "/admin/v1/organizations", &token, b"").ok();
        let pasted = Command::new("sh").args(["-c", &curl]).output().expect("a shell");
        if pasted.status.code() == Some(127) {
            assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "curl is not installed");
            println!("skipped: curl is not installed, so the line was not pasted");
        } else {
            let page: serde_json::Value = serde_json::from_slice(&pasted.stdout).expect("JSON");
            assert!(!page["data"].as_array().expect("a list").is_empty(), "{curl}");
        }
        program.signal(signal);
        let ended = program.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let left: Vec<_> =
            fs::read_dir(directory.path()).expect("a directory").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["stderr"]);
    }
}

/// The first start is killed while it makes the file, before any write was acknowledged: the next one must not need a
/// human who removes a file that holds nothing.
#[test]
fn a_first_start_that_was_killed_does_not_keep_the_next_from_starting() {
    for attempt in 0..40 {
        let directory = directory();
        let program = Program::start(directory.path(), &ANY_PORT, &[]);
        let awaited = if attempt % 4 == 3 { "admin-token" } else { "redb" };
        let begun = Instant::now();
        while !has_grown(directory.path(), awaited) && begun.elapsed() < Duration::from_secs(10) {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_micros(attempt % 8 * 100));
        drop(program);
        let mut program = Program::start(directory.path(), &ANY_PORT, &[]);
        let line = program.line();
        assert!(line.is_some(), "attempt {attempt}: {}", program.stderr());
    }
}

/// Whether there is a file with this word in its name that is not empty.
fn has_grown(directory: &Path, word: &str) -> bool {
    let made = fs::read_dir(directory).expect("a directory").flatten();
    let mut named = made.filter(|entry| entry.file_name().to_string_lossy().contains(word));
    named.any(|entry| entry.metadata().is_ok_and(|metadata| metadata.len() > 0))
}

#[test]
fn a_store_that_is_a_named_pipe_is_refused_and_the_server_does_not_wait() {
    let directory = directory();
    let pipe = directory.path().join("pipe");
    if !Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
        println!("skipped: mkfifo is not installed");
        return;
    }
    let store = format!("redb:{}", pipe.display());
    let ended = run(directory.path(), &["--store", &store], &[]);
    refused(&ended, &["is a named pipe, and a store is a regular file"]);
}
