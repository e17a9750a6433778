//! However a person writes the address of a database, right or wrong: no part of its password is in any message.

use super::{Cli, ran};
use crate::support::ADMIN_TOKEN;
use std::process::Command;

/// The parts of the passwords.
const PARTS: [&str; 3] = ["Zorro1", "Quark2", "Kiwi3"];

const SPELLINGS: [&str; 24] = [
    "postgres://rental:Zorro1@127.0.0.1:1/x",
    "postgres://rental:Zorro1@Quark2@127.0.0.1:1/x?sslmode=disable",
    "postgres://rental:Zorro1@Quark2/Kiwi3@127.0.0.1:1/x",
    "postgres://rental:Zorro1/Quark2@127.0.0.1:1/x",
    "postgres://rental:Zorro1?Quark2@127.0.0.1:1/x",
    "postgres://rental:Zorro1?Quark2=Kiwi3@127.0.0.1:1/x",
    "postgres://rental:Zorro1#Quark2&Kiwi3@127.0.0.1:1/x",
    "postgres://rental:Zorro1%40Quark2@127.0.0.1:1/x?connect_timeout=1",
    "postgres://rental:Zorro1%FFQuark2@127.0.0.1:1/x",
    "postgres://rental%3AZorro1@127.0.0.1:1/x",
    "postgres://rental@127.0.0.1:1/x?password=Zorro1&sslmode=disable",
    "postgres://rental@127.0.0.1:1/x?password=Zorro1&Quark2&Kiwi3=1",
    "postgres://rental@127.0.0.1:1/x?passwd=Zorro1",
    "postgres://rental@127.0.0.1:1/x?sslmode=Zorro1",
    "postgres://rental:Zorro1/x",
    "postgres://rental:Zorro1 Quark2@127.0.0.1:1/x",
    "postgres:rental:Zorro1@127.0.0.1:1/x",
    "POSTGRES://rental:Zorro1@127.0.0.1:1/x",
    "postgresql+asyncpg://rental:Zorro1@127.0.0.1:1/x",
    "jdbc:postgresql://127.0.0.1:1/x?user=rental&password=Zorro1",
    "'postgres://rental:Zorro1@127.0.0.1:1/x'",
    "host=127.0.0.1 port=1 user=rental password=Zorro1",
    "password='Zorro1 Quark2' host=127.0.0.1 port=1 dbname=x",
    "redb:postgres://rental:Zorro1@127.0.0.1:1/x",
];

/// Runs it with the text as one argument, and as those that a shell makes of it without quotes.
fn told(command: impl Fn() -> Command, before: &[&str], text: &str, after: &[&str]) -> Vec<(String, String)> {
    let (whole, parts) = (vec![text], text.split(' ').collect::<Vec<_>>());
    let run = |argument: &Vec<&str>| {
        let mut command = command();
        let ended = ran(command.args(before).args(argument).args(after));
        assert!(ended.code.is_some_and(|code| [1, 2].contains(&code)), "{command:?}: {ended:?}");
        (format!("{command:?}"), ended.stdout + &ended.stderr)
    };
    [whole, parts].iter().map(run).collect()
}

#[test]
fn no_spelling_of_a_store_shows_a_part_of_its_password() {
    let Some(cli) = Cli::find() else { return };
    let directory = tempfile::tempdir().unwrap();
    let server = || {
        let mut server = Command::new(env!("CARGO_BIN_EXE_rental-server"));
        server.env_clear().env("RENTAL_ADMIN_TOKEN", ADMIN_TOKEN).current_dir(directory.path());
        server.args(["--listen", "127.0.0.1:0", "--log-level", "debug"]);
        server
    };
    let client = || cli.command("http://127.0.0.1:1", "--debug store");
    std::fs::write(directory.path().join("file"), "no backup").unwrap();
    let file = directory.path().join("file").display().to_string();
    let new = format!("redb:{}", directory.path().join("new.redb").display());
    for text in SPELLINGS {
        let mut all = told(server, &["--store"], text, &[]);
        all.extend(told(
            || {
                let mut by_variable = server();
                by_variable.env("RENTAL_STORE", text);
                by_variable
            },
            &[],
            "--log-format=json",
            &[],
        ));
        all.extend(told(server, &[], &format!("--store={text}"), &[]));
        all.extend(told(server, &[], &format!("--stor={text}"), &[]));
        all.extend(told(server, &[], text, &[]));
        for (before, after) in [
            (&["check"][..], &[][..]),
            (&["check"], &["--json"]),
            (&["compact"], &[]),
            (&["upgrade"], &[]),
            (&["repair"], &["--yes"]),
            (&["copy", "--to", &new, "--from"], &[]),
            (&["copy", "--from", &new, "--to"], &["--json"]),
            (&["restore", &file, "--to"], &[]),
            (&["restore", &file, "--to", &new, "--erased"], &[]),
            (&[], &[]),
        ] {
            all.extend(told(client, before, text, after));
        }
        for (command, said) in all {
            assert!(PARTS.iter().all(|part| !said.contains(part)), "{command}\n{said}");
        }
    }
}
