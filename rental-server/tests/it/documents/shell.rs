//! Runs the `sh` blocks of the documents as a reader would: in order, in one shell.
//!
//! The word after `sh` says where: `demo` on the demo server, `own` on a new one, `ignore` nowhere; with `cli`, and for
//! `own`, `rental-cli` must be built; `postgres` starts its servers itself, beside a PostgreSQL. Numbers are the statuses of the answers other than 200, in order. Every line of a
//! `text` block stands in what the block before it printed.

use super::read;
use crate::support::Cluster;
use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// Which server a block expects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// `--demo`.
    Demo,
    /// A new store in a directory of its own.
    Own,
}

/// A running server, killed when it goes out of scope.
pub(super) struct Program {
    child: Child,
    directory: TempDir,
    /// `RENTAL_BASE_URL` and what goes with it.
    pub(super) variables: HashMap<&'static str, String>,
}

impl Program {
    pub(super) fn start(kind: Kind) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = fs::File::create(directory.path().join("stderr")).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rental-server"));
        command.env_clear().env("TMPDIR", directory.path()).current_dir(directory.path());
        let (flags, names, last): (&[&str], &[_], _) = match kind {
            Kind::Demo => (
                &["--demo"],
                &[
                    ("RENTAL_BASE_URL", "base URL"),
                    ("RENTAL_API_KEY", "read_write key"),
                    ("RENTAL_ADMIN_TOKEN", "admin token"),
                ],
                "curl",
            ),
            Kind::Own => (
                &["--store", "redb:fleet.redb"],
                &[("RENTAL_BASE_URL", "listening on"), ("RENTAL_ADMIN_TOKEN_FILE", "admin token")],
                "admin token",
            ),
        };
        command.args(["--listen", "127.0.0.1:0"]).args(flags);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("it runs");
        let mut variables = HashMap::new();
        for line in BufReader::new(child.stdout.take().expect("stdout is piped")).lines() {
            let line = line.expect("text");
            for (variable, _) in names.iter().filter(|(_, words)| line.contains(words)) {
                variables.insert(*variable, line.rsplit_once(' ').expect("a value").1.to_owned());
            }
            if line.contains(last) {
                break;
            }
        }
        assert_eq!(variables.len(), names.len(), "the server did not start as expected");
        Self { child, directory, variables }
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        self.variables["RENTAL_BASE_URL"].strip_prefix("http://").expect("a URL")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One block of commands.
struct Block {
    /// The words that follow `sh` in the first line.
    place: String,
    /// The numbers there.
    statuses: Vec<String>,
    commands: String,
    /// Lines of the `text` blocks that follow.
    shown: Vec<String>,
}

impl Block {
    fn is_for(&self, kind: Kind, with_cli: bool) -> bool {
        match self.place.as_str() {
            "demo" => kind == Kind::Demo,
            "demo cli" => kind == Kind::Demo && with_cli,
            "own" => kind == Kind::Own && with_cli,
            "ignore" | "postgres" => false,
            other => panic!("`sh {other}`: say where these commands run\n{}", self.commands),
        }
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open: Option<&str> = None;
    for line in text.lines() {
        match (open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(language);
                if let Some(place) = language.strip_prefix("sh") {
                    let words = place.split_whitespace().map(str::to_owned);
                    let (statuses, place): (Vec<_>, Vec<_>) = words.partition(|word| word.parse::<u16>().is_ok());
                    found.push(Block { place: place.join(" "), statuses, commands: String::new(), shown: Vec::new() });
                }
            }
            (Some(_), Some(_)) => open = None,
            (Some(language), None) if language.starts_with("sh") => {
                found.last_mut().expect("it was opened").commands += &format!("{line}\n");
            }
            (Some("text"), None) => {
                if let Some(block) = found.last_mut() {
                    block.shown.push(line.to_owned());
                }
            }
            _ => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

/// Whether a program runs here; with `RENTAL_REQUIRE_ALL` it has to.
pub(super) fn runs(program: &Path) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok_and(|ended| ended.status.success());
    if !there {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "{} is not there", program.display());
        println!("skipped: {} is not there, so its commands were not run", program.display());
    }
    there
}

fn binaries() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_rental-server")).parent().expect("a folder").to_owned()
}

/// Runs the blocks of a document that are for this kind of server.
fn check(document: &str, kind: Kind) {
    if !runs(Path::new("bash")) || !runs(Path::new("curl")) {
        return;
    }
    let with_cli = runs(&binaries().join("rental-cli"));
    let all = blocks(&read(document));
    let meant: Vec<&Block> = all.iter().filter(|block| block.is_for(kind, with_cli)).collect();
    if !with_cli && kind == Kind::Own {
        return;
    }
    assert!(!meant.is_empty(), "{document} has no block for {kind:?}");
    let program = Program::start(kind);
    let log = program.directory.path().join("statuses");
    // Every answer's status goes to a file, beside what curl complains of.
    let mut script = String::from("curl() { command curl -w '%{stderr}%{http_code}\\n' \"$@\" 2>>\"$STATUSES\"; }\n");
    for block in &meant {
        script += "printf '\\n== block\\n' | tee -a \"$STATUSES\"\n";
        script += &block.commands.replace("http://127.0.0.1:8081", &program.variables["RENTAL_BASE_URL"]);
    }
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail"]).current_dir(program.directory.path()).env_clear().envs(&program.variables);
    let path = std::env::var("PATH").unwrap_or_default();
    shell.env("PATH", format!("{}:{path}", binaries().display())).env("STATUSES", &log);
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash runs");
    shell.stdin.take().expect("stdin is piped").write_all(script.as_bytes()).expect("bash reads");
    let ended = shell.wait_with_output().expect("bash ends");
    let printed = String::from_utf8(ended.stdout).expect("text").replace('\r', "");
    let statuses = fs::read_to_string(&log).expect("text");
    assert!(ended.status.success(), "{document}: {}\n{printed}\n{statuses}", ended.status);
    let parts = |text: &str| text.split("\n== block\n").skip(1).map(str::to_owned).collect::<Vec<_>>();
    let (printed, statuses) = (parts(&printed), parts(&statuses));
    assert_eq!((printed.len(), statuses.len()), (meant.len(), meant.len()), "every block was run");
    for ((block, printed), statuses) in meant.iter().zip(printed).zip(statuses) {
        let unusual: Vec<&str> = statuses.lines().filter(|line| !line.is_empty() && *line != "200").collect();
        assert_eq!(unusual, block.statuses, "{document}:\n{}\n{printed}", block.commands);
        assert!(!block.commands.contains(" # "), "{document}: zsh takes no comments\n{}", block.commands);
        for line in &block.shown {
            assert!(printed.contains(line.trim()), "{document}: no `{line}` after\n{}\n{printed}", block.commands);
        }
    }
}

#[test]
fn the_tour_of_the_readme_works_when_pasted() {
    check("README.md", Kind::Demo);
}

#[test]
fn the_walk_through_of_the_readme_works_when_pasted() {
    check("README.md", Kind::Own);
}

#[test]
fn the_examples_for_api_users_work_when_pasted() {
    check("docs/api.md", Kind::Demo);
}

#[test]
fn the_examples_for_operators_work_when_pasted() {
    check("docs/runbook.md", Kind::Own);
    check("docs/backup.md", Kind::Own);
}

/// Its commands start and stop servers, so the shell has them all.
#[test]
fn the_move_to_postgresql_works_when_pasted() {
    let mut programs = ["bash", "curl", "psql"].map(PathBuf::from).into_iter().chain([binaries().join("rental-cli")]);
    let Some(cluster) = programs.all(|program| runs(&program)).then(Cluster::shared).flatten() else { return };
    let document = "docs/postgresql.md";
    let text = read(document);
    let all = blocks(&text);
    let meant: Vec<&Block> = all.iter().filter(|block| block.place == "postgres").collect();
    let mut script = String::from("trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT\n");
    meant.iter().for_each(|block| script += &block.commands);
    script = script.replace("postgres://rental@localhost/rental", &format!("'{}'", cluster.database()));
    for port in ["8081", "8082"] {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        script = script.replace(port, &free.port().to_string());
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = format!("{}:{}", binaries().display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &script]).current_dir(directory.path()).env_clear().env("PATH", path);
    let ended = shell.stdin(Stdio::null()).output().expect("bash runs");
    let printed = String::from_utf8(ended.stdout).expect("text");
    assert!(ended.status.success(), "{}\n{printed}\n{}", ended.status, String::from_utf8_lossy(&ended.stderr));
    let shown: Vec<&String> = meant.iter().flat_map(|block| &block.shown).collect();
    assert!(meant.len() == 2 && shown.len() == 2, "the page has other blocks now");
    assert!(shown.iter().all(|line| printed.contains(line.trim())), "{shown:?}\n{printed}");
    // Both servers, and the one of before.
    assert_eq!(printed.matches("\"name\":\"White Tesla\"").count(), 3, "{printed}");
}

#[test]
fn every_block_of_commands_says_where_it_runs() {
    for document in ["CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"] {
        assert!(!blocks(&read(document)).iter().any(|block| block.is_for(Kind::Demo, true)), "{document} is not run");
    }
}
