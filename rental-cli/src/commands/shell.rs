//! `completions` and `man`, generated from the command tree. They send no requests.

use crate::{
    commands::{
        completion::{VARIABLE, shells},
        group::with_examples,
    },
    failure::Failure,
    output::{self, Output},
};
use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Builds both commands.
pub(crate) fn commands() -> [Command; 2] {
    let shell = Arg::new("shell")
        .value_name("SHELL")
        .required(true)
        .value_parser(clap::value_parser!(Shell))
        .help("Shell that loads the script");
    let completions = Command::new("completions").about("Print a completion script for a shell").arg(shell);
    let examples =
        ["rental-cli completions bash > /etc/bash_completion.d/rental-cli", "rental-cli completions fish | source"];
    let directory = Arg::new("to")
        .long("to")
        .value_name("DIRECTORY")
        .value_parser(clap::value_parser!(PathBuf))
        .help("Write one page per command into this directory instead");
    let man = Command::new("man").about("Print the manual page").arg(directory);
    [
        with_examples(completions, &examples),
        with_examples(man, &["rental-cli man | man -l -", "rental-cli man --to /usr/local/share/man/man1"]),
    ]
}

/// Runs one of them; `tree` is the command tree that they describe.
pub(crate) fn run(name: &str, matches: &ArgMatches, out: &Output, tree: Command) -> Result<(), Failure> {
    match name {
        "completions" => completions(matches, out),
        "man" => man(matches, out, tree),
        _ => Err(Failure::Usage(format!("no such command: {name}"))),
    }
}

/// Prints the script that makes a shell ask this program, found on the search path, for candidates.
fn completions(matches: &ArgMatches, out: &Output) -> Result<(), Failure> {
    let Some(shell) = matches.get_one::<Shell>("shell").copied() else {
        return Err(Failure::Usage("no shell given".into()));
    };
    let (mut script, name) = (Vec::new(), "rental-cli");
    let shells = shells();
    let known = shells.completer(&shell.to_string());
    let known = known.ok_or_else(|| Failure::Usage(format!("there are no completions for {shell}")))?;
    known
        .write_registration(VARIABLE, name, name, name, &mut script)
        .map_err(|error| Failure::Io { doing: "make the completion script".into(), error })?;
    let script = String::from_utf8_lossy(&script).into_owned();
    if out.json {
        let script = json!({"object": "completions", "shell": shell.to_string(), "script": script});
        return out.json(&script.to_string());
    }
    output::print(&script)
}

fn man(matches: &ArgMatches, out: &Output, tree: Command) -> Result<(), Failure> {
    if let Some(directory) = matches.get_one::<PathBuf>("to") {
        return man_pages(directory, out, tree);
    }
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(tree).render(&mut page);
    rendered.map_err(|error| Failure::Io { doing: "render the manual page".into(), error })?;
    let page = String::from_utf8_lossy(&page);
    if out.json {
        return out.json(&json!({"object": "manual", "name": "rental-cli.1", "page": page}).to_string());
    }
    output::print(&page)
}

fn man_pages(directory: &Path, out: &Output, tree: Command) -> Result<(), Failure> {
    let written = clap_mangen::generate_to(tree, directory);
    written.map_err(|error| Failure::Io { doing: format!("write to {}", directory.display()), error })?;
    if out.json {
        return out.json(&json!({"object": "manual", "directory": directory}).to_string());
    }
    out.note(&format!("the pages were written to {}", directory.display()));
    Ok(())
}
