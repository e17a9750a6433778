//! Commands that destroy or lock out ask first: on a terminal a person answers. Elsewhere those that are older than the
//! question act, and all others need `--yes` (contract, Second round).

use crate::{
    fake_server::{FakeServer, error, ok},
    terminal,
};

const OLDER: [&[&str]; 9] = [
    &["api", "DELETE", "/admin/v1/webhook_endpoints/0190d0f2-7c3a-7cc0-8000-000000000002"],
    &["api-keys", "revoke", ID],
    &["api-keys", "rotate", ID, "--overlap", "0s"],
    &["operators", "rotate", ID, "--overlap", "0s"],
    &["webhook-endpoints", "rotate-secret", ID, "--overlap", "0s"],
    &["invoices", "void", INVOICE],
    &["invoices", "credit", INVOICE, "--reason", "Kindness"],
    &["webhook-endpoints", "delete", ID],
    &["organizations", "update", "0190d0f2-7c3a-7cc0-8000-000000000000", "--plan", "free"],
];
const NEWER: [&[&str]; 2] = [&["operators", "revoke", ID], &["calendar-feeds", "delete", ID]];
const ID: &str = "0190d0f2-7c3a-7cc0-8000-000000000002";
const INVOICE: &str = "0190d0f2-7c3a-7cc0-8000-000000000001";

#[test]
fn a_pipe_needs_yes_and_nothing_is_sent_without_it() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1"}"#)]);
    for command in NEWER {
        let ran = server.run(command);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command:?}");
        assert!(ran.stderr.contains("add --yes"), "{}", ran.stderr);
    }
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn in_a_pipe_older_commands_and_yes_act_at_once() {
    let older = OLDER.iter().map(|command| command.to_vec());
    let newer = OLDER.iter().chain(&NEWER).map(|command| [command, &["--yes"][..]].concat());
    for command in older.chain(newer) {
        let server = FakeServer::new(vec![ok(r#"{"id":"1"}"#)]);
        let ran = server.run(&command);
        assert_eq!((ran.code, server.asked().len()), (Some(0), 1), "{command:?} {}", ran.stderr);
    }
}

#[test]
fn a_person_is_asked() {
    let writes = |server: &FakeServer| server.asked().iter().filter(|asked| !asked.line.starts_with("GET ")).count();
    for command in OLDER.iter().chain(&NEWER) {
        let server = FakeServer::new(vec![ok(r#"{"id":"1"}"#)]);
        let (code, shown) = terminal::answering(&mut server.command(command), 80, "n\n");
        assert!(code == Some(1) && shown.contains("? [y/N]"), "{command:?}: {shown}");
        assert_eq!(writes(&server), 0);
        let (code, shown) = terminal::answering(&mut server.command(command), 80, "y\n");
        assert_eq!((code, writes(&server)), (Some(0), 1), "{command:?}: {shown}");
    }
}

#[test]
fn nobody_is_asked_about_what_does_not_exist_and_the_question_has_its_name() {
    // Invoices have no read with the admin token, and `api` sends what it is told.
    let of_objects = OLDER.iter().chain(&NEWER).filter(|command| !["invoices", "api"].contains(&command[0]));
    for command in of_objects {
        let server = FakeServer::new(vec![error(404, "", "not_found_error", "not_found")]);
        let (code, shown) = terminal::answering(&mut server.command(command), 80, "y\n");
        assert!(code == Some(3) && !shown.contains("[y/N]"), "{command:?}: {shown}");
        assert!(server.asked().iter().all(|asked| asked.line.starts_with("GET ")), "{command:?}");
        let server = FakeServer::new(vec![ok(r#"{"id":"1","name":"Website"}"#)]);
        let (_, shown) = terminal::answering(&mut server.command(command), 80, "n\n");
        assert!(shown.contains("\"Website\" (0190d0f2"), "{command:?}: {shown}");
    }
    let none = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[]}"#;
    let void = ["invoices", "void", "INV-7", "--organization", INVOICE];
    let (code, shown) = terminal::answering(&mut FakeServer::new(vec![ok(none)]).command(&void), 80, "y\n");
    assert!(code == Some(3) && !shown.contains("[y/N]"), "{shown}");
}

#[test]
fn what_harms_nobody_is_done_at_once() {
    for command in [
        &["api-keys", "rotate", ID][..],
        &["organizations", "update", "0190d0f2-7c3a-7cc0-8000-000000000000", "--plan", "pro"],
    ] {
        assert_eq!(FakeServer::new(vec![ok(r#"{"id":"1"}"#)]).run(command).code, Some(0), "{command:?}");
    }
}
