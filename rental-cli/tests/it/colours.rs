//! Colours: on terminals, and never in data.

use crate::fake_server::{FakeServer, Ran, cli, ok};
use std::process::Command;

const LIST: &str =
    r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"id":"1","name":"Car","status":"available"}]}"#;

/// Runs a command line in a terminal and gives everything that it shows; `None` where no program makes a terminal.
fn in_terminal(command: &Command) -> Option<String> {
    let words: Vec<_> = [command.get_program()].into_iter().chain(command.get_args()).collect();
    let line: Vec<String> = words.iter().map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut script = Command::new("script");
    script.args(["-qec", &line.join(" "), "/dev/null"]).env_clear();
    script.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TERM", "xterm");
    for (name, value) in command.get_envs() {
        script.env(name, value.unwrap_or_default());
    }
    let output = script.stdin(std::process::Stdio::null()).output();
    let Ok(output) = output else {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "script is not there");
        println!("skipped: script is not there, so there is no terminal");
        return None;
    };
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_terminal_gets_colours_unless_somebody_says_no() {
    let server = FakeServer::new(vec![ok(LIST)]);
    let command = |args: &[&str]| server.command(&[&["vehicles", "list"], args].concat());
    let Some(shown) = in_terminal(&command(&[])) else { return };
    assert!(shown.contains("\u{1b}[1mSTATUS\u{1b}[0m") && shown.contains("\u{1b}[32mavailable\u{1b}[0m"), "{shown:?}");
    for (variable, value) in [("NO_COLOR", "1"), ("TERM", "dumb"), ("CLICOLOR", "0")] {
        let mut command = command(&[]);
        command.env(variable, value);
        let shown = in_terminal(&command).unwrap();
        assert!(!shown.contains('\u{1b}') && shown.contains("available"), "{variable}: {shown:?}");
    }
    let shown = in_terminal(&command(&["--color", "never"])).unwrap();
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let mut always = command(&["--color=always"]);
    always.env("NO_COLOR", "1");
    assert!(in_terminal(&always).unwrap().contains("\u{1b}[32m"), "the flag wins");
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
        assert!(stderr.starts_with("\u{1b}[1m\u{1b}[31merror[authentication_error]:\u{1b}[0m "), "{stderr:?}");
    }
    let help = Ran::of(&mut cli(&["vehicels", "--color", "always"])).stderr;
    assert!(help.contains("\u{1b}["), "clap's own messages obey too: {help:?}");
    assert_eq!(Ran::of(&mut cli(&["vehicles", "list", "--color", "sometimes"])).code, Some(2));
}
