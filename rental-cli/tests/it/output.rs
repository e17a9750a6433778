//! stdout: one JSON value, or tab-separated values in a pipe.

use crate::fake_server::{FakeServer, Reply, ok};
use std::process::Stdio;

const VEHICLE: &str = r#"{"object":"vehicle","id":"1", "name":"A\tB","daily_rate":89.50,"color":null,"new_field":1e2}"#;

fn list(ids: &[&str], next_cursor: Option<&str>) -> String {
    let data: Vec<String> = ids.iter().map(|id| format!(r#"{{"id":"{id}","daily_rate":1.50}}"#)).collect();
    let next = next_cursor.map_or_else(|| "null".to_owned(), |cursor| format!("\"{cursor}\""));
    format!(
        r#"{{"object":"list","has_more":{},"next_cursor":{next},"data":[{}]}}"#,
        next_cursor.is_some(),
        data.join(",")
    )
}

#[test]
fn json_is_the_answer_byte_for_byte() {
    let server = FakeServer::new(vec![ok(VEHICLE)]);
    let lines: &[&[&str]] = &[
        &["--json", "vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"],
        &["vehicles", "create", "--name", "x", "--json"],
        &["organizations", "create", "--name", "x", "--json"],
        &["api-keys", "revoke", "0190d0f2-7c3a-7cc0-8000-000000000001", "--yes", "--json"],
        &["leads", "create", "--json"],
    ];
    for line in lines {
        let ran = server.run(line);
        assert_eq!((ran.stdout, ran.stderr), (format!("{VEHICLE}\n"), String::new()), "{line:?}");
    }
}

#[test]
fn a_page_with_json_is_the_envelope_byte_for_byte() {
    let page = list(&["1", "2"], Some("2"));
    let ran = FakeServer::new(vec![ok(&page)]).run(&["vehicles", "list", "--json"]);
    assert_eq!((ran.stdout, ran.stderr), (format!("{page}\n"), String::new()));
}

#[test]
fn a_list_that_leaves_damaged_objects_out_says_how_many() {
    let page = |next: Option<&str>| Reply::Answer {
        status: 200,
        headers: "rental-damaged-rows: 1\r\n",
        body: list(&["1"], next),
    };
    let server = FakeServer::new(vec![page(Some("1")), page(None)]);
    let ran = server.run(&["vehicles", "list", "--all", "--json"]);
    assert_eq!((ran.code, ran.stdout), (Some(0), list(&["1", "1"], None) + "\n"));
    assert!(ran.stderr.contains("2 objects were left out because of damaged rows"), "{}", ran.stderr);
    let ran = FakeServer::new(vec![page(None)]).run(&["operators", "list"]);
    assert!(ran.stderr.contains("1 object was left out") && ran.stderr.contains("store check"), "{}", ran.stderr);
}

#[test]
fn every_command_says_how_many_objects_a_response_left_out() {
    let reply =
        |body: &str| Reply::Answer { status: 200, headers: "rental-damaged-rows: 1\r\n", body: body.to_owned() };
    let (empty, recovery) = (list(&[], None), r#"{"object":"recovery","examined":2,"resent":1,"has_more":false}"#);
    let organization = ["--organization", "0190d0f2-7c3a-7cc0-8000-000000000009"];
    for (line, body) in [
        (&["tolls", "review"][..], empty.as_str()),
        (&["violations", "suggest", "--attach"], &empty),
        (&["invoices", "draft-all"], &empty),
        (&["events", "recover", "--endpoint", "0190d0f2-7c3a-7cc0-8000-000000000001", "--since", "24h"], recovery),
    ] {
        let line = if line[0] == "events" { line.to_vec() } else { [line, &organization].concat() };
        let ran = FakeServer::new(vec![reply(body), ok(body)]).run(&[&line[..], &["--json"]].concat());
        assert_eq!(ran.code, Some(0), "{line:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("1 object was left out because of damaged rows"), "{line:?}: {}", ran.stderr);
    }
}

#[test]
fn all_with_json_is_one_envelope_of_all_pages() {
    let server = FakeServer::new(vec![ok(&list(&["3", "2"], Some("2"))), ok(&list(&["1"], None))]);
    let ran = server.run(&["rentals", "list", "--all", "--json", "--status", "NEW"]);
    assert_eq!(ran.stdout, list(&["3", "2", "1"], None) + "\n");
    let lines: Vec<_> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(
        lines,
        ["GET /v1/rentals?status=NEW&limit=100", "GET /v1/rentals?status=NEW&limit=100&starting_after=2"]
    );
}

#[test]
fn all_in_a_pipe_has_one_line_of_names() {
    let server = FakeServer::new(vec![ok(&list(&["3", "2"], Some("2"))), ok(&list(&["1"], None))]);
    let ran = server.run(&["vehicles", "list", "--all", "--limit", "2"]);
    let first: Vec<_> = ran.stdout.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(first, ["id", "3", "2", "1"]);
    assert!(ran.stdout.lines().nth(1).is_some_and(|line| line.contains("\t1.50\t")), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_list_that_breaks_off_prints_no_json() {
    let server = FakeServer::new(vec![ok(&list(&["1"], Some("1")))]);
    let ran = server.run(&["vehicles", "list", "--all", "--json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "the same cursor for ever is no list");
}

#[test]
fn a_page_that_is_not_the_last_says_how_to_go_on() {
    let ran = FakeServer::new(vec![ok(&list(&["2"], Some("2")))]).run(&["vehicles", "list"]);
    assert_eq!(ran.stderr, "there are more: use --limit N or --all, or --starting-after 2\n");
}

#[test]
fn an_empty_list_in_a_pipe_is_its_names_alone() {
    let ran = FakeServer::new(vec![ok(&list(&[], None))]).run(&["tolls", "list"]);
    assert_eq!((ran.code, ran.stdout.lines().count(), ran.stderr.as_str()), (Some(0), 1, ""));
}

#[test]
fn an_object_in_a_pipe_is_a_line_for_each_member_of_the_answer() {
    let ran = FakeServer::new(vec![ok(VEHICLE)]).run(&["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"]);
    assert_eq!(ran.stdout, "id\t1\nname\tA\\tB\ndaily_rate\t89.50\ncolor\t\nnew_field\t1e2\n");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let many: Vec<String> = (0..20_000).map(|n| format!("an-id-long-enough-to-fill-the-pipe-{n}")).collect();
    let ids: Vec<&str> = many.iter().map(String::as_str).collect();
    let server = FakeServer::new(vec![ok(&list(&ids, None))]);
    for form in ["--json", "--all"] {
        let mut command = server.command(&["vehicles", "list", form]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &[][..]));
    }
}

#[test]
fn completions_and_manual_need_no_server_and_obey_json() {
    let server = FakeServer::new(vec![ok("{}")]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(server.run(&["completions", shell]).stdout.contains("rental-cli"), "{shell}");
    }
    assert!(server.run(&["man"]).stdout.contains(".TH rental-cli 1"));
    for args in [&["completions", "bash", "--json"][..], &["man", "--json"][..]] {
        let value: serde_json::Value = serde_json::from_str(&server.run(args).stdout).unwrap();
        assert!(value["object"].is_string());
    }
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(server.run(&["man", "--to", directory.path().to_str().unwrap()]).code, Some(0));
    assert!(directory.path().join("rental-cli-vehicles-create.1").exists());
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn nested_json_in_a_pipe_holds_nothing_that_a_terminal_obeys() {
    let object = "{\"object\":\"lead\",\"raw_data\":{\"k\":\"v\u{9b}2J\u{202e}\"}}";
    let ran = FakeServer::new(vec![ok(object)]).run(&["customers", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"]);
    assert_eq!(ran.stdout, "raw_data\t{\"k\":\"v\\u009b2J\\u202e\"}\n");
    let ran =
        FakeServer::new(vec![ok(object)]).run(&["customers", "get", "0190d0f2-7c3a-7cc0-8000-000000000001", "--json"]);
    assert_eq!(ran.stdout, format!("{object}\n"), "the bytes of the server");
}

#[test]
fn no_cell_in_a_pipe_is_a_formula_of_a_spreadsheet() {
    let vehicle = r#"{"id":"1","name":"=cmd|' /C calc'!A0","plate":"@x","daily_rate":-1.50}"#;
    let page = format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{vehicle}]}}"#);
    let list = FakeServer::new(vec![ok(&page)]).run(&["vehicles", "list"]).stdout;
    let get =
        FakeServer::new(vec![ok(vehicle)]).run(&["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"]).stdout;
    for shown in [&list, &get] {
        assert!(shown.contains("\t'=cmd|' /C calc'!A0") && shown.contains("\t-1.50"), "{shown}");
    }
    assert!(get.contains("plate\t'@x\n"), "{get}");
}

#[test]
fn an_unfinished_file_is_never_written_through_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let [victim, to] = ["victim", "org.ndjson"].map(|name| directory.path().join(name));
    std::fs::write(&victim, "mine").unwrap();
    std::os::unix::fs::symlink(&victim, directory.path().join("org.ndjson.partial")).unwrap();
    let export = "{\"object\":\"organization\"}\n{\"object\":\"export_end\",\"objects\":1}\n";
    let server = FakeServer::new(vec![ok(export)]);
    let ran =
        server.run(&["export", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "--to", to.to_str().unwrap()]);
    assert_eq!((ran.code, std::fs::read_to_string(&to).unwrap().as_str()), (Some(0), export), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
}
