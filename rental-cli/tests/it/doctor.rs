//! `doctor` on servers that are not well.

use crate::{
    fake_server::{FakeServer, Ran, Reply, cli, error, ok},
    terminal,
};

/// An answer of the API at the root, with a clock.
fn page(status: u16, headers: &'static str) -> Reply {
    Reply::Answer { status, headers, body: "{}".into() }
}

const WELL: &str = "service-version: 2026-05-05\r\n";

fn status(time: &str, free: u64) -> Reply {
    ok(&format!(
        r#"{{"object":"status","version":"{}","time":"{time}","uptime_seconds":1,"data_bytes":1,"disk_free_bytes":{free},"disk_total_bytes":100000000000}}"#,
        env!("CARGO_PKG_VERSION")
    ))
}

fn master_key(unreadable: u32) -> Reply {
    ok(&format!(
        r#"{{"object":"master_key","fingerprint":"5f1c0a9d3e7b2468","former_fingerprint":null,"unreadable":{unreadable}}}"#
    ))
}

fn no_endpoints() -> Reply {
    ok(r#"{"object":"list","has_more":false,"next_cursor":null,"data":[]}"#)
}

/// Status word, fact and advice of a check.
#[track_caller]
fn check<'a>(ran: &'a Ran, name: &str) -> (&'a str, &'a str, &'a str) {
    for line in ran.stdout.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        if let [word, found, fact, next] = columns[..]
            && found == name
        {
            return (word, fact, next);
        }
    }
    panic!("no {name} in {}", ran.stdout)
}

#[test]
fn a_server_that_is_not_there_is_7_and_the_rest_is_looked_at_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, "").unwrap();
    let mut command = cli(&["doctor", "--base-url", "http://127.0.0.1:1"]);
    let ran = Ran::of(command.env("RENTAL_ADMIN_TOKEN_FILE", &token));
    assert_eq!(ran.code, Some(7));
    let (word, fact, next) = check(&ran, "server");
    assert!(word == "failed" && fact.contains("Connection refused") && next.contains("--base-url"), "{ran:?}");
    assert!(check(&ran, "secret file").1.ends_with("is empty"));
    assert!(ran.stderr.starts_with("error[doctor]: 1 check failed\n"), "{}", ran.stderr);
}

#[test]
fn a_server_of_another_kind_is_told_apart() {
    let ran = FakeServer::new(vec![ok("<html>")]).run(&["doctor"]);
    assert_eq!((ran.code, check(&ran, "server").0), (Some(1), "failed"));
    assert!(check(&ran, "server").1.contains("not like a rental-server"));
}

#[test]
fn a_clock_that_the_server_does_not_trust_is_9_and_the_command_that_confirms_it_is_named() {
    let status = || {
        ok(&format!(
            r#"{{"object":"status","version":"{}","time":"2028-01-02T09:30:00.000Z","clock_jump":{{"seconds":34560000,"against":"boot_clock"}},"uptime_seconds":1}}"#,
            env!("CARGO_PKG_VERSION")
        ))
    };
    let script = vec![page(200, WELL), page(503, WELL), status(), status(), master_key(0), no_endpoints()];
    let mut command = FakeServer::new(script).command(&["doctor"]);
    let ran = Ran::of(command.env_remove("RENTAL_API_KEY"));
    let (word, fact, next) = check(&ran, "clock");
    assert!(
        word == "failed" && fact.contains("34560000 s ahead") && next.contains("rental-cli clock confirm"),
        "{ran:?}"
    );
    assert_eq!(ran.code, Some(9));
}

#[test]
fn clocks_that_differ_are_warned_of_from_5_seconds_and_fatal_from_300() {
    // Without an admin token the clock is that of the `Date` header.
    let run = |date: &'static str| {
        let mut command = FakeServer::new(vec![page(200, date), page(200, WELL)]).command(&["doctor"]);
        Ran::of(command.env_remove("RENTAL_ADMIN_TOKEN").env_remove("RENTAL_API_KEY"))
    };
    let ran = run("service-version: 2026-05-05\r\ndate: Tue, 05 May 2009 09:30:00 GMT\r\n");
    assert_eq!((ran.code, check(&ran, "clock").0), (Some(1), "failed"), "{}", ran.stdout);
    assert!(check(&ran, "clock").2.contains("NTP"));
    let (word, _, next) = check(&ran, "admin token");
    assert_eq!((word, next), ("skipped", "`rental-cli login --operator` stores one"));
    let ran = run(WELL);
    assert_eq!((ran.code, check(&ran, "clock").0), (Some(0), "skipped"));
}

#[test]
fn a_server_that_cannot_write_is_9_and_a_full_disk_a_warning() {
    let told = || status("2009-05-05T09:30:00.000Z", 1 << 29);
    let script = || vec![page(200, WELL), page(503, WELL), told(), told(), master_key(0), no_endpoints()];
    let mut command = FakeServer::new(script()).command(&["doctor"]);
    let ran = Ran::of(command.env_remove("RENTAL_API_KEY"));
    assert_eq!((ran.code, check(&ran, "ready").0), (Some(9), "failed"), "9 is graver than the clock's 1");
    assert_eq!(check(&ran, "disk").0, "warning");
    assert!(check(&ran, "disk").1.starts_with("512.0 MiB free on the server's disk, 0 %"), "{}", check(&ran, "disk").1);
    assert_eq!(check(&ran, "clock").0, "failed", "the status tells the time to the millisecond");
    let mut command = FakeServer::new(script()).command(&["doctor", "--json"]);
    let json = Ran::of(command.env_remove("RENTAL_API_KEY"));
    let told: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json.code, &told["ok"]), (Some(9), &serde_json::json!(false)));
    assert_eq!(told["checks"].as_array().unwrap().len(), ran.stdout.lines().count());
    let mut command = FakeServer::new(script()).command(&["doctor", "--columns", "name,status"]);
    let chosen = Ran::of(command.env_remove("RENTAL_API_KEY"));
    assert!(chosen.code == Some(9) && chosen.stdout.starts_with("name\tstatus\n"), "{chosen:?}");
    assert!(chosen.stdout.contains("\nready\tfailed\n"), "{chosen:?}");
}

#[test]
fn what_keeps_a_server_from_writes_is_named() {
    let run = |ready: Reply, status: &str| {
        let status = || ok(&format!(r#"{{"object":"status",{status}"time":"2009-05-05T09:30:00.000Z"}}"#));
        let script = vec![page(200, WELL), ready, status(), status(), master_key(0), no_endpoints()];
        Ran::of(FakeServer::new(script).command(&["doctor"]).env_remove("RENTAL_API_KEY"))
    };
    let full = run(ok(r#"{"status":"read_only"}"#), "");
    let (word, fact, next) = check(&full, "ready");
    assert!(word == "failed" && fact.contains("too little room") && next.contains("free space"), "{full:?}");
    assert_eq!(full.code, Some(9));
    let away = || error(503, WELL, "api_error", "service_unavailable");
    let named = run(away(), r#""not_ready_reason":"postgres://rental@db/rental: it refused the connection","#);
    let expected = "/readyz responds with 503: postgres://rental@db/rental: it refused the connection";
    assert_eq!((named.code, check(&named, "ready").1), (Some(9), expected));
    let earlier = run(away(), "");
    assert!(check(&earlier, "ready").1.starts_with("/readyz responds with 503: "), "{earlier:?}");
}

#[test]
fn secrets_that_the_master_key_does_not_open_are_1_and_what_cannot_be_seen_is_skipped() {
    let unknown =
        r#"{"error":{"type":"invalid_request_error","code":"route_unknown","message":"There is no such path."}}"#;
    let earlier = Reply::Answer { status: 404, headers: WELL, body: unknown.into() };
    let of_owners = error(403, WELL, "permission_error", "insufficient_role");
    for (reply, word, fact) in [
        (master_key(3), "failed", "of 3 webhook endpoints"),
        (earlier, "skipped", "does not report its master key"),
        (of_owners, "skipped", "only owners see the master key"),
    ] {
        let told = status("2009-05-05T09:30:00.000Z", 1 << 36);
        let mut command =
            FakeServer::new(vec![page(200, WELL), page(200, WELL), told, reply, no_endpoints()]).command(&["doctor"]);
        let ran = Ran::of(command.env_remove("RENTAL_API_KEY"));
        let found = check(&ran, "master key");
        assert!(found.0 == word && found.1.contains(fact), "{found:?}");
        assert_eq!(check(&ran, "webhook endpoints").0, "ok", "the other checks go on");
    }
}

#[test]
fn a_server_of_another_version_is_a_warning() {
    let script = vec![page(200, "service-version: 2031-01-01\r\n"), page(200, WELL)];
    let mut command = FakeServer::new(script).command(&["doctor"]);
    let ran = Ran::of(command.env_remove("RENTAL_ADMIN_TOKEN").env_remove("RENTAL_API_KEY"));
    assert_eq!((ran.code, check(&ran, "api version").0), (Some(0), "warning"));
}

#[test]
fn a_broken_configuration_is_one_check_of_many() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    std::fs::write(&file, "nonsense").unwrap();
    let mut command = FakeServer::new(vec![page(200, WELL)]).command(&["doctor"]);
    command.env_remove("RENTAL_ADMIN_TOKEN").env_remove("RENTAL_API_KEY");
    let ran = Ran::of(command.env("RENTAL_CONFIG_FILE", &file));
    assert_eq!(ran.code, Some(2));
    assert!(check(&ran, "configuration").1.contains("config.toml, line 1: "), "{}", ran.stdout);
    assert_eq!((check(&ran, "server").0, check(&ran, "ready").0), ("ok", "ok"));
}

#[test]
fn the_scope_of_the_key_is_read_and_no_write_is_tried() {
    let me = ok(r#"{"object":"me","organization_id":"0190d0f2-7c3a-7cc0-8000-000000000009","scope":"read"}"#);
    let list = || ok(r#"{"object":"list","has_more":false,"next_cursor":null,"data":[]}"#);
    let server = FakeServer::new(vec![page(200, WELL), page(200, WELL), me, list(), list(), list()]);
    let mut command = server.command(&["doctor"]);
    let ran = Ran::of(command.env_remove("RENTAL_ADMIN_TOKEN"));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    let (word, fact, _) = check(&ran, "api key");
    assert!(word == "ok" && fact.starts_with("accepted, scope read; it comes from "), "{fact}");
    let asked: Vec<String> = server.asked().into_iter().map(|asked| asked.line).collect();
    let lists = ["vehicles", "customers", "rentals"].map(|plural| format!("GET /v1/{plural}?limit=100"));
    assert_eq!(asked[..3], ["GET /healthz", "GET /readyz", "GET /v1/me"]);
    assert_eq!(asked[3..], lists);
}

#[test]
fn a_report_is_as_wide_as_the_terminal() {
    for columns in [80, 140] {
        let mut command = cli(&["doctor", "--base-url", "http://127.0.0.1:1"]);
        command.env("RENTAL_CONFIG_FILE", "/nowhere/".to_owned() + &"long/".repeat(20)).env("NO_COLOR", "1");
        let (code, shown) = terminal::run(command.env("RENTAL_API_KEY", "rk_live_test"), columns);
        assert_eq!(code, Some(7));
        let wide = shown.lines().find(|line| line.chars().count() > usize::from(columns));
        assert!(wide.is_none() && shown.contains("\u{2717} server             "), "{columns}: {shown}");
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("Connection refused"), "{shown}");
    }
}

#[test]
fn without_an_api_key_the_next_step_is_a_login() {
    let server = FakeServer::new(vec![page(200, WELL), page(200, WELL)]);
    let mut command = server.command(&["doctor"]);
    let ran = Ran::of(command.env_remove("RENTAL_ADMIN_TOKEN").env_remove("RENTAL_API_KEY"));
    let (word, _, next) = check(&ran, "api key");
    assert_eq!((word, next), ("skipped", "`rental-cli login` stores one"));
}

#[test]
fn backups_that_are_old_or_never_made_are_a_warning() {
    let run = |backups: &str| {
        let status = ok(&format!(r#"{{"object":"status","backups":{backups},"time":"2026-05-05T09:30:00.000Z"}}"#));
        let script = vec![page(200, WELL), page(200, WELL), status, master_key(0), no_endpoints()];
        Ran::of(FakeServer::new(script).command(&["doctor"]).env_remove("RENTAL_API_KEY"))
    };
    for (backups, word, fact) in [
        (r#"{"every_seconds":null,"last_success_at":null}"#, "warning", "makes no backups by itself"),
        (r#"{"every_seconds":3600,"last_success_at":null}"#, "warning", "has made no backup yet"),
        (r#"{"every_seconds":3600,"last_success_at":"2026-05-05T06:29:00.000Z"}"#, "warning", "181 minutes old"),
        (r#"{"every_seconds":3600,"last_success_at":"2026-05-05T06:31:00.000Z"}"#, "ok", "179 minutes old"),
    ] {
        let ran = run(backups);
        let (found, told, _) = check(&ran, "backups");
        assert!(found == word && told.contains(fact), "{ran:?}");
    }
    let demo = run("null");
    assert!(!demo.stdout.contains("backups"), "{demo:?}");
}
