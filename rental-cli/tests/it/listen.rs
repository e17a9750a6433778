//! `listen` on answers that a real server gives only by chance.

use crate::{
    fake_server::{FakeServer, Reply, error, ok},
    terminal,
};
use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
    thread,
};

const STATUS: &str = r#"{"object":"status","time":"2024-07-20T12:00:30.000Z","webhook_brand":"Service"}"#;

/// An event whose id was made so many seconds after noon of that day.
fn event(seconds: u64) -> String {
    let millis = 1_721_476_800_000 + seconds * 1000;
    let id = format!("{:08x}-{:04x}-7000-8000-{seconds:012}", millis >> 16, millis & 0xffff);
    format!(r#"{{"id":"{id}","object":"event","type":"vehicle.created","created":1,"data":{{"id":"o{seconds}"}}}}"#)
}

fn list(seconds: &[u64]) -> Reply {
    let events: Vec<String> = seconds.iter().map(|seconds| event(*seconds)).collect();
    ok(&format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{}]}}"#, events.join(",")))
}

/// The objects of the events in the order in which they are shown, and stderr, of a run that is interrupted when the last
/// reply of the script has been shown, and was asked for again.
fn shown(script: Vec<Reply>) -> (Vec<String>, String, Option<i32>) {
    let asked = script.len() + 2;
    let server = FakeServer::new(script);
    let mut command = server.command(&["listen", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let reader = thread::spawn(move || BufReader::new(stdout).lines().map_while(Result::ok).collect::<Vec<_>>());
    server.wait_for(asked);
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    let lines = reader.join().unwrap();
    let objects = lines.iter().map(|line| line.rsplit('\t').next().unwrap().to_owned()).collect();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (objects, stderr, status.code())
}

#[test]
fn an_event_whose_commit_was_late_is_shown_though_its_id_is_older() {
    // 29 is made before 30 and is seen after it; 10 was there before the start.
    let script = vec![ok(STATUS), list(&[10]), list(&[30, 10]), list(&[30, 29, 10]), list(&[31, 30, 29, 10])];
    let (objects, stderr, code) = shown(script);
    assert_eq!(objects, ["o30", "o29", "o31"], "each once, as they are seen");
    assert_eq!((code, stderr.as_str()), (Some(0), "ready: listening; Ctrl-C stops\n3 events\n"));
}

#[test]
fn a_server_that_fails_for_a_while_is_asked_again_and_nothing_is_shown_twice() {
    let fails = || error(500, "retry-after: 0\r\n", "api_error", "internal_error");
    // Three times is what one request makes of it; the fourth is the next request's.
    let script =
        vec![ok(STATUS), list(&[]), list(&[30]), fails(), fails(), fails(), fails(), ok(STATUS), list(&[31, 30])];
    let (objects, stderr, code) = shown(script);
    assert_eq!((objects, code), (vec!["o30".to_owned(), "o31".to_owned()], Some(0)), "{stderr}");
    assert_eq!(stderr.matches("retrying until the server responds").count(), 1, "said once: {stderr}");
    assert!(stderr.contains("reconnected; no event was lost"), "{stderr}");
}

#[test]
fn on_a_terminal_events_have_local_times_and_what_they_are_about() {
    let named = event(30).replace(r#""id":"o30"}"#, r#""id":"o30","object":"vehicle","name":"White Tesla"}"#);
    let page = format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{named}]}}"#);
    let id = named.split('"').nth(3).unwrap().to_owned();
    for columns in [80, 140] {
        let refused = error(401, "", "authentication_error", "invalid_api_key");
        let server = FakeServer::new(vec![ok(STATUS), list(&[]), ok(&page), refused]);
        let mut command = server.command(&["listen", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"]);
        // Three hours behind UTC.
        let (_, shown) = terminal::run(command.env("NO_COLOR", "1").env("TZ", "XXX3"), columns);
        let about = shown.lines().find(|line| line.contains("White Tesla")).unwrap_or_else(|| panic!("{shown}"));
        assert!(about.starts_with("2024-07-20 09:00:30  vehicle.created"), "{about}");
        assert!(shown.contains(&format!("  {id}  o30\n")), "{columns}: {shown}");
        assert_eq!(about.contains(&id), columns == 140, "{columns}: {shown}");
        let events = shown.split("error[").next().unwrap();
        assert!(events.lines().all(|line| line.chars().count() <= usize::from(columns)), "{columns}: {shown}");
    }
}
