//! The rental platform at the prompt: a thin client of its HTTP API.
//!
//! In reading order: [`cli`] (the command tree), [`commands`] (one file for each group), [`verbs`] (what all resources
//! have in common), [`flags`] and [`value`] (resource descriptions become flags, flags become JSON), [`api`] and
//! [`retry`] (requests), [`settings`] and [`profile`] (where and as whom), [`output`], [`table`] and [`record`] (answers),
//! [`failure`] and [`refusal`] (what went wrong).
//!
//! Data goes to stdout, everything else to stderr. Absent on purpose: the rules of the API (the server's error tells),
//! secrets in flags, and prompts. Only `commands/store.rs` and what is below it opens a store.

mod access;
mod api;
mod cli;
mod commands;
mod edge;
mod failure;
mod feed;
mod files;
mod flags;
mod forward;
mod objects;
mod output;
mod partial;
mod profile;
mod progress;
mod record;
mod refusal;
mod retry;
mod session;
mod settings;
mod style;
mod table;
mod upload;
mod value;
mod verbs;

use failure::Failure;
use std::{env, process::ExitCode};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.show(json_is_asked_for());
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run() -> Result<(), Failure> {
    style::obey_the_command_line();
    let matches = cli::command().try_get_matches()?;
    cli::dispatch(&matches)
}

/// Whether `--json` is on the command line, also where clap takes the line for wrong.
fn json_is_asked_for() -> bool {
    env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json")
}
