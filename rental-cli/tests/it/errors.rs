//! Exit codes and what stderr says.

use crate::fake_server::{FakeServer, Ran, Reply, cli, error, ok};
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

#[track_caller]
fn check(reply: Reply, args: &[&str], code: i32, stderr: &str) {
    let ran = FakeServer::new(vec![reply]).run(args);
    assert_eq!((ran.code, ran.stderr.as_str(), ran.stdout.as_str()), (Some(code), stderr, ""));
}

const GET: &[&str] = &["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"];

#[test]
fn an_unknown_id_exits_with_3() {
    check(
        error(404, "", "invalid_request_error", "resource_missing"),
        &["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"],
        3,
        "error[resource_missing]: No, because.\nhint: `list` shows the existing ids; ids of other organizations are not found\nrequest id req_7\n",
    );
}

#[test]
fn an_id_of_an_odd_shape_is_pointed_at_when_it_is_not_found() {
    let missing = || error(404, "", "invalid_request_error", "resource_missing");
    for args in [&["deliveries", "get", "White Tesla"][..], &["leads", "get", "White Tesla"]] {
        let ran = FakeServer::new(vec![missing()]).run(args);
        assert_eq!(ran.code, Some(3));
        assert!(ran.stderr.contains("hint: `White Tesla` is not a valid id; ids look like 0190"), "{}", ran.stderr);
    }
}

#[test]
fn a_near_flag_is_suggested() {
    let ran = Ran::of(&mut cli(&["rentals", "list", "--stauts", "ACTIVE"]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("'--status'"), "{}", ran.stderr);
}

#[test]
fn a_refused_key_exits_with_4() {
    check(
        error(401, "", "authentication_error", "api_key_revoked"),
        GET,
        4,
        "error[api_key_revoked]: No, because.\nhint: the refused API key is from RENTAL_API_KEY; set RENTAL_API_KEY to a valid key of the organization; the operator creates keys with `rental-cli api-keys create`\nrequest id req_7\n",
    );
}

#[test]
fn a_read_key_that_writes_exits_with_5() {
    check(
        error(403, "", "permission_error", "insufficient_scope"),
        &["vehicles", "create", "--name", "x"],
        5,
        "error[insufficient_scope]: No, because.\nhint: ask the operator for a key that can write: `rental-cli api-keys create --organization ID --scope read_write`\nrequest id req_7\n",
    );
}

#[test]
fn what_the_server_calls_invalid_or_a_conflict_exits_with_6() {
    for status in [400, 409, 412, 413, 415] {
        check(
            error(status, "", "invalid_request_error", "parameter_invalid"),
            &["vehicles", "update", "0190d0f2-7c3a-7cc0-8000-000000000001", "--status", "parked"],
            6,
            "error[parameter_invalid]: No, because.\nrequest id req_7\n",
        );
    }
}

#[test]
fn a_server_that_is_not_there_exits_with_7() {
    let mut command = cli(&["vehicles", "list", "--base-url", "http://127.0.0.1:1"]);
    let ran = Ran::of(command.env("RENTAL_API_KEY", "rk_live_test"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(7), ""));
    assert!(
        ran.stderr.starts_with("error[unreachable]: cannot reach http://127.0.0.1:1 (from --base-url): nothing listens there: Connection refused"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_server_that_says_nothing_in_time_exits_with_7() {
    let server = FakeServer::new(vec![Reply::Silence]);
    let ran = server.run(&["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001", "--timeout", "3s"]);
    assert_eq!(ran.code, Some(7));
    assert!(ran.stderr.contains("within 3 s"), "{}", ran.stderr);
    assert_eq!(server.wait_for(1).len(), 1, "waiting is not repeated");
}

#[test]
fn too_many_requests_exit_with_8_and_say_when_to_try_again() {
    check(
        error(429, "retry-after: 17\r\n", "rate_limit_error", "rate_limited"),
        GET,
        8,
        "error[rate_limited]: No, because.\nhint: try again in 17 s\nrequest id req_7\n",
    );
}

#[test]
fn a_fault_of_the_server_exits_with_9() {
    check(
        error(500, "", "api_error", "internal_error"),
        GET,
        9,
        "error[internal_error]: No, because.\nhint: try again; if it fails again, send the request id to the operator of the server\nrequest id req_7\n",
    );
}

#[test]
fn the_request_id_of_the_header_serves_too() {
    let reply = Reply::Answer { status: 502, headers: "Request-Id: req_8\r\n", body: "<h1>Bad Gateway</h1>".into() };
    let ran = FakeServer::new(vec![reply]).run(GET);
    assert!(
        ran.stderr.starts_with("error[http_502]: the server responded with 502: <h1>Bad Gateway</h1>\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.ends_with("request id req_8\n"), "{}", ran.stderr);
}

#[test]
fn redirects_are_not_followed() {
    let server =
        FakeServer::new(vec![Reply::Answer { status: 301, headers: "location: /elsewhere\r\n", body: String::new() }]);
    let ran = server.run(GET);
    assert_eq!((ran.code, server.asked().len()), (Some(1), 1));
    assert!(ran.stderr.contains("redirects are not followed"), "{}", ran.stderr);
}

#[test]
fn an_answer_that_is_not_the_api_is_a_failure() {
    for body in ["<html>", "[]", "\"text\""] {
        let ran = FakeServer::new(vec![ok(body)]).run(GET);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{body}");
        assert!(ran.stderr.starts_with("error[unreadable]: "), "{}", ran.stderr);
    }
}

#[test]
fn an_answer_without_end_is_not_read_to_its_end() {
    let ran = FakeServer::new(vec![Reply::Flood(80 << 20)]).run(GET);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("longer than 64 MiB"), "{}", ran.stderr);
}

#[test]
fn wrong_usage_exits_with_2_and_asks_no_server() {
    let server = FakeServer::new(vec![ok("{}")]);
    let lines: &[&[&str]] = &[
        &[],
        &["vehicles"],
        &["vehicls", "list"],
        &["vehicles", "create"],
        &["vehicles", "create", "--name", "x", "--daily-rate", "89,50"],
        &["vehicles", "create", "--name", "x", "--year", "last"],
        &["vehicles", "update", "0190d0f2-7c3a-7cc0-8000-000000000001"],
        &["vehicles", "update", "0190d0f2-7c3a-7cc0-8000-000000000001", "--color", "red", "--clear", "color"],
        &["vehicles", "get", ""],
        &["vehicles", "get", ".."],
        &["vehicles", "list", "--limit", "many"],
        &["rentals", "update", "0190d0f2-7c3a-7cc0-8000-000000000001", "--damage-at-return", "maybe"],
        &["leads", "create", "--raw-data", "{"],
        &["leads", "create", "--raw-data", "@/no/such/file"],
        &["invoices", "create", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "--customer", "c"],
        &[
            "invoices",
            "create",
            "--organization",
            "0190d0f2-7c3a-7cc0-8000-000000000000",
            "--customer",
            "c",
            "--line",
            "Text",
        ],
        &[
            "api-keys",
            "create",
            "--organization",
            "0190d0f2-7c3a-7cc0-8000-000000000000",
            "--scope",
            "read",
            "--expires-in",
            "90",
        ],
        &["api-keys", "rotate", "1", "--overlap", "soon"],
        &["tolls", "attach", "0190d0f2-7c3a-7cc0-8000-000000000001"],
        &["vehicles", "list", "--base-url", "localhost:8080"],
        &["vehicles", "list", "--timeout", "0s"],
        &["vehicles", "create", "--name", "x", "--idempotency-key", "a b"],
        &["completions", "tcsh"],
    ];
    for line in lines {
        let ran = server.run(line);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line:?}");
        assert!(!ran.stderr.is_empty(), "{line:?}");
    }
    assert_eq!(server.asked().len(), 0);
}

/// Runs a command that fails with `--json`, and gives its code and its error.
#[track_caller]
fn failed(command: &mut std::process::Command) -> (Option<i32>, serde_json::Value) {
    let ran = Ran::of(command);
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    let mut value: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    let error = value["error"].take();
    for name in ["type", "code", "message"] {
        assert!(error[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {error}");
    }
    (ran.code, error)
}

#[test]
fn with_json_the_error_of_the_api_is_printed_as_it_came() {
    let body = "{\"error\": {\"type\":\"invalid_request_error\",\n\"code\":\"vehicle_unavailable\",\"message\":\"é\",\"conflicting_rental_id\":\"7\",\"x\":1.50}}\n";
    let server = FakeServer::new(vec![Reply::Answer { status: 409, headers: "", body: body.into() }]);
    let ran = server.run(&["vehicles", "update", "0190d0f2-7c3a-7cc0-8000-000000000001", "--name", "x", "--json"]);
    assert_eq!((ran.code, ran.stdout, ran.stderr), (Some(6), String::new(), body.trim_end().replace('\n', " ") + "\n"));
}

#[test]
fn a_base_url_that_ends_with_v1_is_told_to_lose_it() {
    let body = r#"{"error":{"type":"t","code":"route_unknown","message":"There is no GET /v1/v1/vehicles."}}"#;
    let server = FakeServer::new(vec![Reply::Answer { status: 404, headers: "", body: body.into() }]);
    for (path, told) in [("/v1", true), ("/v1/", true), ("/admin/v1", true), ("", false)] {
        let mut command = server.command(&["vehicles", "list"]);
        let ran = Ran::of(command.args(["--base-url", &format!("{}{path}", server.base_url)]));
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        assert_eq!(
            ran.stderr.contains("hint: remove /v1 from the end of the base URL"),
            told,
            "{path}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_server_without_tls_is_told_from_one_that_does_not_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        // What a server of plain HTTP makes of the first message of TLS.
        for stream in listener.incoming() {
            let _ = stream.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let mut command = cli(&["vehicles", "list", "--base-url", &url]);
    let ran = Ran::of(command.env("RENTAL_API_KEY", "k"));
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: the server does not use TLS at this address"), "{}", ran.stderr);
}

#[test]
fn a_port_with_tls_is_told_from_a_server_that_does_not_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        // The alert of a TLS server that got plain HTTP: it is no record of TLS (RFC 8446, 6).
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 10]);
        }
    });
    let ran = Ran::of(cli(&["vehicles", "list", "--base-url", &url]).env("RENTAL_API_KEY", "k"));
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    assert!(ran.stderr.contains("does not speak plain HTTP at this address\nhint: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("begin the base URL with https://"), "{}", ran.stderr);
}

#[test]
fn a_number_of_objects_is_a_whole_number() {
    let ran = Ran::of(&mut cli(&["vehicles", "list", "--limit", "abc"]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("must be a whole number from 1 on, such as 50"), "{}", ran.stderr);
}

/// The token of the server, of which its user alone may read the file. Root may read every file, so root tries it as `nobody`.
#[test]
fn a_secret_file_that_another_user_owns_names_that_user() {
    use std::os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        process::CommandExt as _,
    };
    let directory = tempfile::tempdir().unwrap();
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let (token, program) = (directory.path().join("token"), directory.path().join("rental-cli"));
    std::fs::write(&token, "t").unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_rental-cli"), &program).unwrap();
    set(directory.path(), 0o755);
    let is_root = std::fs::metadata(&token).unwrap().uid() == 0;
    set(&token, if is_root { 0o600 } else { 0 });
    for (args, variable, next) in [
        (["organizations", "list"], "RENTAL_ADMIN_TOKEN_FILE", "`rental-cli operators create`"),
        (["vehicles", "list"], "RENTAL_API_KEY_FILE", "`rental-cli api-keys create`"),
    ] {
        let mut command = std::process::Command::new(&program);
        command.env_clear().env(variable, &token).args(args);
        if is_root {
            command.uid(65534).gid(65534);
        }
        let ran = Ran::of(&mut command);
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        let problem = format!("cannot read {} (from {variable}): Permission denied", token.display());
        assert!(ran.stderr.contains(&problem) && ran.stderr.contains(": only the user "), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: run the command with sudo") && ran.stderr.contains(next), "{}", ran.stderr);
        assert!(!is_root || ran.stderr.contains("only the user root may read it"), "{}", ran.stderr);
    }
}

#[test]
fn a_whole_number_is_shown_without_decimals() {
    let ran = Ran::of(&mut cli(&["vehicles", "create", "--name", "x", "--year", "last"]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("digits only, such as 2024") && !ran.stderr.contains("89.50"), "{}", ran.stderr);
}

#[test]
fn a_quota_that_is_used_up_names_the_flags_that_raise_it_and_take_it_back() {
    for (quota, flag) in [("bytes", "max-bytes"), ("objects", "max-objects")] {
        let body = format!(
            r#"{{"error":{{"type":"permission_error","code":"quota_exceeded","message":"It uses 2 of 1 {quota}: `max_{quota}`."}}}}"#
        );
        let ran = FakeServer::new(vec![Reply::Answer { status: 403, headers: "", body }]).run(&["leads", "create"]);
        let hint = [format!("update ID --{flag} NUMBER`"), format!("`--clear {flag}`")];
        assert!(hint.iter().all(|part| ran.stderr.contains(part)), "{}", ran.stderr);
    }
}

#[test]
fn with_json_the_error_of_the_api_gets_the_hint() {
    for (status, body, expected) in [
        (
            404,
            r#"{"error":{"type":"t","code":"resource_missing","message":"é","x":1.50}, "y":1}"#,
            r#"{"error":{"type":"t","code":"resource_missing","message":"é","x":1.50,"hint":"`123` is not a valid id; ids look like 0190d0f2-7c3a-7cc0-8000-000000000000, and `list` shows them"}, "y":1}"#,
        ),
        (
            403,
            r#"{"error":{"type":"t","code":"plan_required","message":"m"}}"#,
            r#"{"error":{"type":"t","code":"plan_required","message":"m","hint":"ask the operator to run `rental-cli organizations update ID --plan pro`"}}"#,
        ),
        (
            403,
            r#"{"error":{"type":"t","code":"plan_required","message":"m","hint":"the server's"}}"#,
            r#"{"error":{"type":"t","code":"plan_required","message":"m","hint":"the server's"}}"#,
        ),
    ] {
        let server = FakeServer::new(vec![Reply::Answer { status, headers: "", body: body.into() }]);
        let ran = server.run(&["leads", "get", "123", "--json"]);
        assert_eq!((ran.stdout.as_str(), ran.stderr.trim_end()), ("", expected));
    }
}

#[test]
fn with_json_every_other_failure_has_the_same_shape() {
    fn json<'a>(args: &[&'a str]) -> Vec<&'a str> {
        [args, &["--json"]].concat()
    }
    for (args, message, hint) in [
        (
            &["leads"][..],
            "'rental-cli leads' requires a subcommand but one was not provided [subcommands: list, get, create, update]",
            "`--help` shows how",
        ),
        (&["vehicls", "list"], "unrecognized subcommand 'vehicls'", "a similar subcommand exists: 'vehicles'"),
        (
            &["rentals", "create"],
            "the following required arguments were not provided: --customer <ID|EMAIL|NAME> --vehicle <ID|PLATE|NAME>",
            "`--help` shows how",
        ),
        (
            &["vehicles", "update", "0190d0f2-7c3a-7cc0-8000-000000000001"],
            "nothing was changed: give at least one field",
            "`--help` shows how",
        ),
    ] {
        let (code, error) = failed(&mut cli(&json(args)));
        assert_eq!((code, error["code"].as_str()), (Some(2), Some("usage")), "{args:?}");
        assert_eq!((error["message"].as_str(), error["hint"].as_str()), (Some(message), Some(hint)), "{args:?}");
    }
    let mut command = cli(&json(&["vehicles", "list", "--base-url", "http://127.0.0.1:1"]));
    let (code, error) = failed(&mut command);
    assert_eq!(
        (code, &error["type"], &error["code"]),
        (Some(4), &"authentication_error".into(), &"credential_missing".into())
    );
    let (code, error) = failed(command.env("RENTAL_API_KEY", "k"));
    assert_eq!((code, error["code"].as_str()), (Some(7), Some("unreachable")));
    assert!(
        error["message"].as_str().is_some_and(|text| text.starts_with("cannot reach http://127.0.0.1:1 (")),
        "{error}"
    );
    let page = Reply::Answer { status: 418, headers: "request-id: req_8\r\n", body: "<h1>Tea</h1>".into() };
    let (code, error) = failed(&mut FakeServer::new(vec![page]).command(&json(GET)));
    assert_eq!((code, &error["code"], &error["request_id"]), (Some(1), &"http_418".into(), &"req_8".into()));
    let (code, error) = failed(&mut FakeServer::new(vec![ok("<html>")]).command(&json(GET)));
    assert_eq!((code, error["code"].as_str()), (Some(1), Some("unreadable")));
    let (code, error) = failed(&mut cli(&json(&["store", "check", "redb:/no/such/store"])));
    assert!(
        code == Some(1) && error["message"].as_str().is_some_and(|text| text.contains("/no/such/store")),
        "{error}"
    );
}

#[test]
fn with_json_a_list_that_breaks_off_leaves_stdout_empty() {
    let page = r#"{"object":"list","has_more":true,"next_cursor":"a","data":[{"id":"1","verdict":"clear"}]}"#;
    for args in [
        &["tolls", "suggest", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "--json"][..],
        &["tolls", "list", "--all", "--json"],
    ] {
        let server = FakeServer::new(vec![ok(page), error(404, "", "invalid_request_error", "resource_missing")]);
        let (code, error) = failed(&mut server.command(args));
        assert_eq!((code, error["code"].as_str()), (Some(3), Some("resource_missing")), "{args:?}");
    }
}

#[test]
fn help_is_no_failure_with_json() {
    let ran = Ran::of(&mut cli(&["vehicles", "--help", "--json"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.contains("Usage:"), "{}", ran.stdout);
}

#[test]
fn a_near_command_is_suggested() {
    assert!(Ran::of(&mut cli(&["vehicls", "list"])).stderr.contains("'vehicles'"));
}

#[test]
fn a_bad_base_url_in_the_environment_exits_with_2_and_names_it() {
    let ran = Ran::of(cli(&["vehicles", "list"]).env("RENTAL_BASE_URL", "localhost:8080").env("RENTAL_API_KEY", "k"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("error[usage]: RENTAL_BASE_URL is not a base URL: "), "{}", ran.stderr);
    assert_eq!(Ran::of(cli(&["man"]).env("RENTAL_BASE_URL", "localhost:8080")).code, Some(0), "no server is asked");
}

#[test]
fn the_flag_wins_over_the_environment() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1"}"#)]);
    let mut command =
        server.command(&["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001", "--base-url", &server.base_url]);
    assert_eq!(Ran::of(command.env("RENTAL_BASE_URL", "http://127.0.0.1:1")).code, Some(0));
}

#[test]
fn an_error_names_objects_as_commands_take_them() {
    const TOLL: &str = "0190d0f2-7c3a-7cc0-8000-000000000001";
    let error = format!(
        r#"{{"error":{{"type":"conflict_error","code":"conflict","message":"The toll {TOLL} is already billed."}}}}"#
    );
    let refused = || Reply::Answer { status: 409, headers: "", body: error.clone() };
    let found =
        || ok(&format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{{"id":"{TOLL}"}}]}}"#));
    let toll = || ok(r#"{"object":"toll","transaction_id":"61231234567"}"#);
    let args = ["invoices", "create", "--organization", TOLL, "--customer", TOLL, "--line", "toll:61231234567"];
    let shown = |server: &FakeServer| crate::terminal::run(server.command(&args).env("NO_COLOR", "1"), 140);
    let server = FakeServer::new(vec![found(), refused(), toll()]);
    let (code, text) = shown(&server);
    assert_eq!(code, Some(6));
    assert!(text.contains("error[conflict]: The toll 61231234567 is already billed."), "{text}");
    assert_eq!(server.asked()[2].line, format!("GET /v1/tolls/{TOLL}"));
    // Without a name, and for programs, it stays the id.
    let (_, unnamed) = shown(&FakeServer::new(vec![found(), refused(), ok("{}")]));
    assert!(unnamed.contains(TOLL), "{unnamed}");
    let server = FakeServer::new(vec![found(), refused()]);
    assert!(server.run(&args).stderr.contains(TOLL));
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn a_json_file_that_is_too_long_is_refused_and_not_cut() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("long.json");
    // What is before the limit is JSON by itself.
    std::fs::write(&file, format!("1{}", " ".repeat(8 << 20))).unwrap();
    let server = FakeServer::new(Vec::new());
    let ran = server.run(&["leads", "create", "--raw-data", &format!("@{}", file.display())]);
    assert_eq!((ran.code, server.asked().len()), (Some(2), 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("longer than 8 MiB"), "{}", ran.stderr);
}
