//! `rental-cli` against the real server: what only both programs together can show.
//!
//! Skipped, in one line, where `rental-cli` is not built; `cargo test --workspace` builds it.

mod assignments;
mod calendars;
mod charges;
mod copying;
mod doctor;
mod duplicates;
mod erasing;
mod files;
mod listen;
mod master_key;
mod operators;
mod organizations;
mod repairing;
mod spellings;
mod tls;
mod trigger;

use crate::support::{ADMIN_TOKEN, Server};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// The program and a home of its own.
pub(crate) struct Cli {
    program: PathBuf,
    home: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The one JSON value on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Cli {
    /// `None` where the program is not built; with `RENTAL_REQUIRE_ALL` it has to be.
    pub(crate) fn find() -> Option<Self> {
        let folder = Path::new(env!("CARGO_BIN_EXE_rental-server")).parent().expect("a folder");
        let program = folder.join("rental-cli");
        if !program.is_file() {
            assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "{} is not there", program.display());
            println!("skipped: {} is not built", program.display());
            return None;
        }
        Some(Self { program, home: tempfile::tempdir().expect("a directory") })
    }

    /// A command line, its words separated by spaces, with the operator's token.
    pub(crate) fn command(&self, base_url: &str, words: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().args(words.split_whitespace()).current_dir(self.home.path());
        command.env("HOME", self.home.path()).env("RENTAL_ADMIN_TOKEN", ADMIN_TOKEN);
        command.env("RENTAL_BASE_URL", base_url);
        command
    }

    fn run(&self, server: &Server, words: &str) -> Ran {
        ran(&mut self.command(&url(server), words))
    }
}

pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

pub(crate) fn url(server: &Server) -> String {
    format!("http://{}", server.address)
}
