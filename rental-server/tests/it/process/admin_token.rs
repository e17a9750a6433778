//! The admin token: where it comes from, who can read it, and that it is never shown.

use super::{ANY_PORT, Program, directory, refused, run};
use crate::support::{ADMIN_TOKEN, Connection};
use std::{fs, os::unix::fs::PermissionsExt as _};

#[test]
fn a_bad_admin_token_is_refused_without_being_shown() {
    let directory = directory();
    let (short, spaced) = ("only-31-characters-of-a-token-x", "forty characters of which some are spaces");
    fs::write(directory.path().join("short"), short).expect("a file");
    fs::write(directory.path().join("empty"), "\n").expect("a file");
    for (name, value) in [
        ("RENTAL_ADMIN_TOKEN", short),
        ("RENTAL_ADMIN_TOKEN", spaced),
        ("RENTAL_ADMIN_TOKEN", ""),
        ("RENTAL_ADMIN_TOKEN_FILE", "short"),
        ("RENTAL_ADMIN_TOKEN_FILE", "empty"),
        ("RENTAL_ADMIN_TOKEN_FILE", "missing"),
    ] {
        let ended = run(directory.path(), &ANY_PORT, &[(name, value)]);
        refused(&ended, &[if name == "RENTAL_ADMIN_TOKEN" { name } else { value }]);
        assert!(!ended.stderr.contains(short) && !ended.stderr.contains(spaced), "{}", ended.stderr);
    }
}

#[test]
fn the_admin_token_is_made_once_for_its_owner_alone() {
    let directory = directory();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let mut program = Program::start(directory.path(), &ANY_PORT, &[]);
        let address = program.line_with("listening").rsplit_once("//").expect("an address").1.to_owned();
        let path = program.line_with("rental.redb.admin-token").rsplit_once(' ').expect("a path").1.to_owned();
        let path = directory.path().join(path);
        assert_eq!(fs::metadata(&path).expect("the file is there").permissions().mode() & 0o777, 0o600);
        let token = fs::read_to_string(&path).expect("text").trim_end().to_owned();
        assert!(token.len() >= 32 && token.bytes().all(|byte| byte.is_ascii_graphic()));
        let ask = |token: &str| {
            let authorization = format!("Bearer {token}");
            let headers = [("Authorization", authorization.as_str())];
            Connection::open(&address).send("GET", "/admin/v1/organizations", &headers, b"").status
        };
        assert_eq!((ask(&token), ask(ADMIN_TOKEN)), (200, 401));
        program.signal("TERM");
        let ended = program.end();
        assert!(!ended.stdout.contains(&token) && !ended.stderr.contains(&token), "only its path is printed");
        tokens.push(token);
    }
    assert_eq!(tokens[0], tokens[1]);
    // One from the environment is used instead, and the server says so.
    let mut program = Program::start(directory.path(), &ANY_PORT, &[("RENTAL_ADMIN_TOKEN", ADMIN_TOKEN)]);
    assert_eq!(program.line_with("admin token"), "admin token  from RENTAL_ADMIN_TOKEN");
}
