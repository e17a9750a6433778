//! Flipped bits in the pages that lead to rows, in a file that was closed in order. redb does not check its checksums; the start does.
//! redb then finds rows at a wrong place, none, or panics. Nothing of it may keep the server from serving, or go on for ever.

use crate::{
    events_in_store::stop,
    support::{ADMIN_TOKEN, Connection, Server, receiver::PATIENCE},
};
use serde_json::json;
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::channel,
    time::Duration,
};

const PAGE: usize = 4096;
/// First byte of a page that names other pages.
const BRANCH: u8 = 2;

/// Fills a store so that its rows have more than one level of branches, and closes it.
fn filled(directory: &Path) {
    let server = Server::start_on_file(directory, &[]);
    let organizations = [(); 3].map(|()| server.organization());
    let notes = "n".repeat(500);
    for organization in &organizations {
        for n in 0..120 {
            organization.post("/v1/customers", &json!({"full_name": format!("Customer {n}"), "notes": notes})).ok();
        }
    }
    drop(organizations);
    stop(server);
}

fn number(bytes: &[u8], at: usize, size: usize) -> usize {
    bytes[at..at + size].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// The places of the live branches of the rows, the root first. Each page is one of the first region, and as small as pages are.
fn branches(file: &[u8]) -> Vec<usize> {
    let region_header = number(file, 16, 4) * PAGE;
    let page = |named: usize| PAGE + region_header + (named & 0xF_FFFF) * PAGE;
    let slot = if file[9] & 1 == 0 { 64 } else { 192 };
    let tables = page(number(file, slot + 8, 8));
    // The list of tables has a definition for each: a byte, the number of rows, whether there is a root, and its page.
    let count = number(file, tables + 2, 2);
    let end = |n: usize| tables + number(file, tables + 4 + 4 * n, 4);
    let starts = (0..count).map(|n| if n == 0 { tables + 4 + 8 * count } else { end(n - 1) });
    let rows = starts.zip(0..).position(|(start, n)| file[start..end(n)] == *b"rows").expect("the table of rows");
    let definition = if rows == 0 { end(count - 1) } else { end(count + rows - 1) };
    let mut found = vec![page(number(file, definition + 10, 8))];
    let mut at = 0;
    while at < found.len() {
        let (branch, keys) = (found[at], number(file, found[at] + 2, 2));
        let children = (0..=keys).map(|n| page(number(file, branch + 8 + 16 * (keys + 1) + 8 * n, 8)));
        found.extend(children.filter(|child| file[*child] == BRANCH));
        at += 1;
    }
    found
}

/// Bytes of each kind of field of a branch, with the bits that are flipped there.
fn fields(file: &[u8], branch: usize) -> Vec<(&'static str, usize, u8)> {
    let keys = number(file, branch + 2, 2);
    let (sums, pages) = (branch + 8, branch + 8 + 16 * (keys + 1));
    let ends = pages + 8 * (keys + 1);
    let middle = keys / 2;
    let key = ends + 4 * keys;
    let end = |n: usize| branch + number(file, ends + 4 * n, 4);
    vec![
        ("key count", branch + 2, 0),
        ("key count", branch + 2, 1),
        ("key count", branch + 3, 0),
        ("child page number", pages, 1),
        ("child page number", pages + 8 * middle, 0),
        ("child page number", pages + 8 * middle + 2, 3),
        ("child page number", pages + 8 * keys + 3, 4),
        ("child checksum", sums + 16 * middle + 3, 5),
        ("key end", ends, 2),
        ("key end", ends + 4 * middle, 0),
        ("key end", ends + 4 * (keys - 1) + 1, 2),
        ("key byte", key, 2),
        ("key byte", key, 7),
        ("key byte", if middle == 0 { key } else { end(middle - 1) }, 0),
        ("key byte", end(keys - 1) - 1, 6),
    ]
}

/// A server that is killed when it goes out of scope.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Started {
    /// The exit code once it has ended by itself.
    fn code(&mut self) -> Option<i32> {
        for _ in 0..PATIENCE.as_millis() / 10 {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

/// What a server on this file does wrong; `None` when it serves, ends when it is told to, or refuses to start in words.
fn wrong(directory: &Path) -> Option<String> {
    let log = directory.join("log");
    let said = || fs::read_to_string(&log).unwrap_or_default();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rental-server"));
    command.args(["--listen", "127.0.0.1:0", "--store"]).arg(format!("redb:{}/store.redb", directory.display()));
    command
        .env("RENTAL_ADMIN_TOKEN", ADMIN_TOKEN)
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&log).expect("a file"));
    let mut server = Started(command.spawn().expect("it starts"));
    let (lines, first) = channel();
    let out = server.0.stdout.take().expect("stdout is piped");
    std::thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let address = loop {
        match first.recv_timeout(PATIENCE) {
            Ok(line) => match line.split_once("listening on http://") {
                Some((_, address)) => break address.to_owned(),
                None => continue,
            },
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => return Some("it neither serves nor ends".into()),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                let code = server.code();
                let is_clear = code == Some(1) && said().contains("damaged");
                return (!is_clear).then(|| format!("it ended with {code:?}: {}", said()));
            }
        }
    };
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let ask = |path: &str| {
        let mut connection = Connection::try_open(&address)?;
        connection.try_send("GET", path, &[("Authorization", bearer.as_str())], b"")
    };
    for path in ["/readyz", "/admin/v1/organizations", "/admin/v1/api_keys", "/admin/v1/webhook_endpoints", "/readyz"] {
        let reply = match ask(path) {
            Ok(reply) => reply,
            // A write that meets a damaged page ends the process, and the next start makes a new file of what can be read.
            Err(_) if server.code() == Some(1) && said().contains("damaged") => return None,
            Err(error) => return Some(format!("{path}: {error}")),
        };
        let is_served = reply.status == 200 || reply.status == 500 && reply.json()["error"]["code"] == "data_damaged";
        if !is_served && reply.status != 503 {
            return Some(format!("{path}: {} {}", reply.status, String::from_utf8_lossy(&reply.body)));
        }
    }
    let told = Command::new("kill").args(["-TERM", &server.0.id().to_string()]).status();
    assert!(told.expect("kill runs").success() || server.code().is_some());
    match server.code() {
        Some(_) => None,
        None => Some("it does not end at SIGTERM".into()),
    }
}

#[test]
fn a_flipped_bit_in_a_page_that_leads_to_rows_neither_stops_the_server_nor_keeps_it_busy_for_ever() {
    let directory = tempfile::tempdir().expect("a directory");
    filled(directory.path());
    let sound = fs::read(directory.path().join("store.redb")).expect("the file");
    let branches = branches(&sound);
    assert!(branches.len() > 2, "more than one level: {branches:?}");
    let mut failed = Vec::new();
    for branch in branches.iter().take(3) {
        for (kind, at, bit) in fields(&sound, *branch) {
            let own = tempfile::tempdir().expect("a directory");
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << bit;
            fs::write(own.path().join("store.redb"), bytes).expect("a file");
            for name in ["store.redb.master-key", "store.redb.admin-token"] {
                let _ = fs::copy(directory.path().join(name), own.path().join(name));
            }
            failed.extend(wrong(own.path()).map(|what| format!("{kind} at {at}, bit {bit}: {what}")));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
