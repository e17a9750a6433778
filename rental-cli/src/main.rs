//! `rental-cli`: a thin client of the HTTP API of `rental-server`.
//!
//! In reading order: [`command_tree`] (every command and its flags), [`commands`] (one file for each group), [`client`]
//! (requests, retries, responses), [`config`] (flags, environment, profiles), [`output`] (tables, records, progress),
//! [`failure`] (what went wrong).
//!
//! Data goes to stdout, everything else to stderr. Absent on purpose: the rules of the API (the server checks them),
//! secrets in flags, and prompts. Only `commands/store.rs` and its submodules open a store.
//!
//! Imports point one way: `text`, `flags`, `edge` < [`failure`] < [`output`], [`config`] < [`client`] < [`commands`] <
//! [`command_tree`]. No two modules import each other, directly or through others.

mod client;
mod command_tree;
mod commands;
mod config;
mod edge;
mod failure;
mod flags;
mod output;
mod text;

use clap_complete::CompleteEnv;
use commands::completion::{VARIABLE, shells};
use failure::Failure;
use std::{env, process::ExitCode};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::show_failure(&failure, json_is_asked_for());
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run() -> Result<(), Failure> {
    let completing = CompleteEnv::with_factory(command_tree::command).var(VARIABLE).shells(shells());
    if completing.try_complete(env::args_os(), env::current_dir().ok().as_deref())? {
        return Ok(());
    }
    output::style::apply_color_flag();
    let matches =
        command_tree::command().try_get_matches_from(config::when::joined(env::args_os())).map_err(|error| {
            failure::hidden::without_values(failure::synonyms::with_tip(error, command_tree::command()))
        })?;
    command_tree::dispatch(&matches)
}

/// Whether `--json` is on the command line. Reads the raw arguments, because clap gives none for an invalid line.
fn json_is_asked_for() -> bool {
    env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json")
}
