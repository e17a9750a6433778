//! The whole command line reference is a snapshot, so that no flag changes unseen.

use crate::fake_server::{Ran, cli};
use std::{env, fmt::Write as _, fs, path::Path};

#[test]
fn the_reference_is_what_help_says() {
    let mut reference = String::new();
    describe(&[], &mut reference);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli-reference.txt");
    if env::var_os("UPDATE").is_some() {
        fs::write(&file, &reference).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    let mut lines = reference.lines().zip(committed.lines());
    let first = lines.find(|(now, then)| now != then);
    assert!(
        reference == committed,
        "the help differs from tests/cli-reference.txt, first at {first:?}; if it should, run the tests with UPDATE=1"
    );
}

/// Commands that print no fields of objects: files, settings, what goes on for ever, and JSON as the server sends it.
const WITHOUT_COLUMNS: &[&str] = &[
    "invoices pdf",
    "invoices print",
    "credit-notes pdf",
    "credit-notes print",
    "listen",
    "api",
    "login",
    "config set",
    "config use",
    "config remove",
    "config path",
    "completions",
    "man",
];

#[test]
fn every_command_that_shows_fields_takes_columns() {
    let mut reference = String::new();
    describe(&[], &mut reference);
    let rule = format!("{}\n", "=".repeat(100));
    let parts: Vec<&str> = reference.split(&rule).skip(1).collect();
    let without = parts.chunks(2).filter_map(|part| {
        let [name, help] = part else { panic!("{part:?}") };
        let shows = !help.contains("\nCommands:\n") && !help.contains("--columns ");
        shows.then(|| name.trim().trim_start_matches("rental-cli").trim())
    });
    assert_eq!(without.collect::<Vec<_>>(), WITHOUT_COLUMNS);
}

#[test]
fn the_version_has_the_commit_of_the_build() {
    let ran = Ran::of(&mut cli(&["--version"]));
    let commit = ran.stdout.trim_end().strip_prefix(concat!("rental-cli ", env!("CARGO_PKG_VERSION"), " ("));
    let commit = commit.and_then(|rest| rest.strip_suffix(')')).expect(&ran.stdout);
    assert!(commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{commit}");
}

/// Appends the help of a command and of all below it.
fn describe(path: &[&str], reference: &mut String) {
    let ran = Ran::of(&mut cli(&[path, &["--help"]].concat()));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let rule = "=".repeat(100);
    write!(reference, "{rule}\nrental-cli {}\n{rule}\n{}\n", path.join(" "), ran.stdout).unwrap();
    let commands =
        ran.stdout.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A longer description goes on in a line that is indented further.
    let names = commands.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|name| *name != "help") {
        describe(&[path, &[name]].concat(), reference);
    }
}
