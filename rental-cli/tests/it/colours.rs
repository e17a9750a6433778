//! Colours: on terminals, and never in data.

use crate::{
    fake_server::{FakeServer, Ran, cli, ok},
    terminal,
};

const LIST: &str =
    r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"id":"1","name":"Car","status":"available"}]}"#;

#[test]
fn a_terminal_gets_colours_unless_somebody_says_no() {
    let server = FakeServer::new(vec![ok(LIST)]);
    let command = |args: &[&str]| server.command(&[&["vehicles", "list"], args].concat());
    let in_terminal = |mut command| terminal::run(&mut command, 80).1;
    let shown = in_terminal(command(&[]));
    assert!(shown.contains("\u{1b}[1mSTATUS\u{1b}[0m") && shown.contains("\u{1b}[32mavailable\u{1b}[0m"), "{shown:?}");
    for (variable, value) in [("NO_COLOR", "1"), ("TERM", "dumb"), ("CLICOLOR", "0")] {
        let mut command = command(&[]);
        command.env(variable, value);
        let shown = in_terminal(command);
        assert!(!shown.contains('\u{1b}') && shown.contains("available"), "{variable}: {shown:?}");
    }
    let shown = in_terminal(command(&["--color", "never"]));
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let mut always = command(&["--color=always"]);
    always.env("NO_COLOR", "1");
    assert!(in_terminal(always).contains("\u{1b}[32m"), "the flag wins");
}

#[test]
fn a_pipe_gets_plain_data_whatever_is_said() {
    let server = FakeServer::new(vec![ok(LIST)]);
    for args in [&["vehicles", "list", "--color", "always"][..], &["vehicles", "list", "--json", "--color=always"]] {
        let mut command = server.command(args);
        let ran = Ran::of(command.env("CLICOLOR_FORCE", "1"));
        assert!(ran.stdout.contains("available") && !ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
    }
}

#[test]
fn messages_are_coloured_by_their_own_stream() {
    let mut plain = cli(&["vehicles", "list"]);
    assert!(!Ran::of(&mut plain).stderr.contains('\u{1b}'));
    for mut forced in [cli(&["vehicles", "list", "--color", "always"]), {
        let mut command = cli(&["vehicles", "list"]);
        command.env("CLICOLOR_FORCE", "1");
        command
    }] {
        let stderr = Ran::of(&mut forced).stderr;
        assert!(stderr.starts_with("\u{1b}[1m\u{1b}[31merror[credential_missing]:\u{1b}[0m "), "{stderr:?}");
    }
    let help = Ran::of(&mut cli(&["vehicels", "--color", "always"])).stderr;
    assert!(help.contains("\u{1b}["), "clap's own messages obey too: {help:?}");
    assert_eq!(Ran::of(&mut cli(&["vehicles", "list", "--color", "sometimes"])).code, Some(2));
}
