//! `webhook-endpoints`, `events` and `deliveries`: requests, answers, exit codes.

use crate::fake_server::{FakeServer, Ran, Reply, error, ok};

const DELIVERY: &str = r#"{"id":"d","object":"delivery","endpoint_id":"w","event_id":"e","event_type":"rental.created","status":"pending","attempts":2,"next_attempt_at":"2026-05-05T09:32:00.000Z","last_response_status":500,"last_error":null,"log":[{"at":"2026-05-05T09:29:30.000Z","duration_ms":10000,"status":null,"error":"timed_out","response":null},{"at":"2026-05-05T09:30:00.000Z","duration_ms":12,"status":500,"error":null,"response":"not\nnow"}],"created_at":"2026-05-05T09:29:30.000Z","updated_at":"2026-05-05T09:30:00.000Z"}"#;

/// Runs a command line, its words separated by `|`, and compares the request line and body.
#[track_caller]
fn check(words: &str, line: &str, body: &str) {
    let server =
        FakeServer::new(vec![ok(r#"{"object":"list","id":"1","has_more":false,"next_cursor":null,"data":[]}"#)]);
    let ran = run(&server, words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = server.asked();
    assert_eq!((asked.len(), asked[0].line.as_str(), asked[0].body.as_str()), (1, line, body));
    assert_eq!(asked[0].header("authorization"), Some("Bearer admin-token-of-the-test"));
    assert_eq!(asked[0].header("idempotency-key").is_some(), !line.starts_with("GET "), "{line}");
}

fn run(server: &FakeServer, words: &str) -> Ran {
    server.run(&words.split('|').collect::<Vec<_>>())
}

fn list_of(objects: &[&str]) -> String {
    format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{}]}}"#, objects.join(","))
}

fn recovery(examined: u32, resent: u32, next_cursor: Option<&str>) -> Reply {
    let next = next_cursor.map_or_else(|| "null".to_owned(), |cursor| format!("\"{cursor}\""));
    ok(&format!(
        r#"{{"object":"recovery","examined":{examined},"resent":{resent},"has_more":{},"next_cursor":{next}}}"#,
        next_cursor.is_some()
    ))
}

#[test]
fn endpoints_are_the_operators() {
    const ALL: &str = "/admin/v1/webhook_endpoints";
    check(
        "webhook-endpoints|create|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--url|https://h/x|--event|rental.created|--event|toll.attached",
        &format!("POST {ALL}"),
        r#"{"organization_id":"0190d0f2-7c3a-7cc0-8000-000000000000","url":"https://h/x","events":["rental.created","toll.attached"]}"#,
    );
    check(
        "webhook-endpoints|create|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--url|https://h/x",
        &format!("POST {ALL}"),
        r#"{"organization_id":"0190d0f2-7c3a-7cc0-8000-000000000000","url":"https://h/x"}"#,
    );
    check(
        "webhook-endpoints|list|--organization|0190d0f2-7c3a-7cc0-8000-000000000000",
        &format!("GET {ALL}?organization=0190d0f2-7c3a-7cc0-8000-000000000000"),
        "",
    );
    check("webhook-endpoints|get|1", &format!("GET {ALL}/1"), "");
    check("webhook-endpoints|enable|1", &format!("POST {ALL}/1/enable"), "");
    check("webhook-endpoints|disable|1", &format!("POST {ALL}/1/disable"), "");
    check("webhook-endpoints|delete|1|--yes", &format!("DELETE {ALL}/1"), "");
    let rotate = format!("POST {ALL}/1/rotate_secret");
    check("webhook-endpoints|rotate-secret|1", &rotate, r#"{"overlap_seconds":86400}"#);
    check("webhook-endpoints|rotate-secret|1|--overlap|0s", &rotate, r#"{"overlap_seconds":0}"#);
}

#[test]
fn update_replaces_the_list_of_events_or_lifts_it() {
    let line = "PATCH /admin/v1/webhook_endpoints/1";
    check("webhook-endpoints|update|1|--url|http://h/", line, r#"{"url":"http://h/"}"#);
    check(
        "webhook-endpoints|update|1|--event|lead.received|--event|rental.created",
        line,
        r#"{"events":["lead.received","rental.created"]}"#,
    );
    for flag in ["--all-events", "--clear|events", "--clear|event", "--event|"] {
        check(&format!("webhook-endpoints|update|1|{flag}"), line, r#"{"events":null}"#);
    }
}

#[test]
fn events_are_listed_below_their_organization() {
    check(
        "events|list|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--type|invoice.paid|--limit|2",
        "GET /admin/v1/organizations/0190d0f2-7c3a-7cc0-8000-000000000000/events?type=invoice.paid&limit=2",
        "",
    );
    check("events|get|1", "GET /admin/v1/events/1", "");
    check("events|resend|1", "POST /admin/v1/events/1/resend", "");
    check("events|resend|1|--endpoint|w", "POST /admin/v1/events/1/resend", r#"{"endpoint_id":"w"}"#);
}

#[test]
fn deliveries_are_listed_below_their_organization() {
    check(
        "deliveries|list|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--endpoint|w|--event|e",
        "GET /admin/v1/organizations/0190d0f2-7c3a-7cc0-8000-000000000000/deliveries?endpoint=w&event=e",
        "",
    );
    check(
        "deliveries|list|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--endpoint|w|--status|failed",
        "GET /admin/v1/organizations/0190d0f2-7c3a-7cc0-8000-000000000000/deliveries?endpoint=w&status=failed",
        "",
    );
    check("deliveries|get|1", "GET /admin/v1/deliveries/1", "");
}

#[test]
fn json_is_the_answer_byte_for_byte() {
    let list = list_of(&[DELIVERY]);
    for (answer, words) in [
        (DELIVERY, "deliveries|get|d"),
        (DELIVERY, "webhook-endpoints|create|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--url|https://h"),
        (DELIVERY, "webhook-endpoints|enable|1"),
        (DELIVERY, "webhook-endpoints|delete|1|--yes"),
        (list.as_str(), "deliveries|list|--organization|0190d0f2-7c3a-7cc0-8000-000000000000"),
        (list.as_str(), "events|list|--organization|0190d0f2-7c3a-7cc0-8000-000000000000"),
        (list.as_str(), "events|resend|1"),
    ] {
        let ran = run(&FakeServer::new(vec![ok(answer)]), &format!("{words}|--json"));
        assert_eq!((ran.code, ran.stdout, ran.stderr), (Some(0), format!("{answer}\n"), String::new()), "{words}");
    }
}

#[test]
fn a_new_secret_is_on_stdout_alone_and_the_note_on_stderr() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1","secret":"whsec_new"}"#)]);
    for words in [
        "webhook-endpoints|create|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--url|https://h",
        "webhook-endpoints|rotate-secret|1",
    ] {
        let ran = run(&server, words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "id\t1\nsecret\twhsec_new\n"));
        assert!(ran.stderr.contains("shown only once") && !ran.stderr.contains("whsec_"), "{}", ran.stderr);
    }
}

#[test]
fn a_replayed_answer_without_a_secret_says_so() {
    let server = FakeServer::new(vec![Reply::HangUp, ok(r#"{"id":"1"}"#)]);
    let ran = run(&server, "webhook-endpoints|rotate-secret|1");
    assert!(ran.stderr.contains("not shown again"), "{}", ran.stderr);
    let keys: Vec<_> = server.asked().iter().map(|asked| asked.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
}

#[test]
fn a_rotation_says_how_many_secrets_sign_and_enabling_says_when_deliveries_are_sent() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1","secret":"whsec_1"}"#)]);
    let ran = run(&server, "webhook-endpoints|rotate-secret|1|--overlap|1h");
    assert!(ran.stderr.contains("At most 5 secrets sign at once"), "{}", ran.stderr);
    let ran = run(&server, "webhook-endpoints|enable|1");
    assert!(ran.stderr.contains("are sent when their next attempt is due"), "{}", ran.stderr);
}

#[test]
fn a_delete_is_tried_again_with_the_same_key() {
    let server = FakeServer::new(vec![Reply::HangUp, ok(r#"{"id":"1","deleted":true}"#)]);
    let ran = run(&server, "webhook-endpoints|delete|1|--yes|--idempotency-key|k");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "id\t1\ndeleted\ttrue\n"));
    assert!(server.asked().iter().all(|asked| asked.header("idempotency-key") == Some("k")));
}

#[test]
fn a_typo_in_an_event_type_is_the_servers_to_explain() {
    let body = r#"{"error":{"type":"invalid_request_error","code":"parameter_invalid","message":"`events` must be a list of event types.","param":"events","request_id":"req_7"}}"#;
    let server = FakeServer::new(vec![Reply::Answer { status: 400, headers: "", body: body.into() }]);
    let ran = run(
        &server,
        "webhook-endpoints|create|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--url|https://h|--event|rental.creatd",
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(6), ""));
    assert_eq!(
        ran.stderr,
        "error[parameter_invalid]: `events` must be a list of event types.\n  param events (--event)\nrequest id req_7\n"
    );
    assert!(server.asked()[0].body.contains(r#""events":["rental.creatd"]"#));
    let server = FakeServer::new(vec![error(400, "", "invalid_request_error", "parameter_invalid")]);
    assert_eq!(
        run(&server, "events|list|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--type|rental.creatd").code,
        Some(6)
    );
    assert_eq!(
        server.asked()[0].line,
        "GET /admin/v1/organizations/0190d0f2-7c3a-7cc0-8000-000000000000/events?type=rental.creatd"
    );
}

#[test]
fn a_test_that_arrives_exits_with_0() {
    let answer = r#"{"object":"webhook_test","endpoint_id":"1","event_type":"rental.created","delivered":true,"duration_ms":3,"status":204,"error":null,"response":""}"#;
    let server = FakeServer::new(vec![ok(answer)]);
    let ran = run(&server, "webhook-endpoints|test|1");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.contains("delivered\ttrue\nduration_ms\t3\nstatus\t204\n"), "{}", ran.stdout);
    assert_eq!(server.asked()[0].line, "POST /admin/v1/webhook_endpoints/1/test");
}

#[test]
fn a_test_that_does_not_arrive_exits_with_1_and_says_why() {
    for (ending, problem) in [
        (r#""status":500,"error":null"#, "the endpoint responded with 500"),
        (r#""status":null,"error":"cannot_connect""#, "the endpoint did not respond: cannot connect"),
    ] {
        let answer = format!(r#"{{"object":"webhook_test","delivered":false,{ending}}}"#);
        for form in ["--quiet", "--json"] {
            let ran = run(&FakeServer::new(vec![ok(&answer)]), &format!("webhook-endpoints|test|1|{form}"));
            assert_eq!(ran.code, Some(1));
            let told = match form {
                "--json" => format!(
                    r#"{{"error":{{"type":"client_error","code":"not_delivered","message":"{problem}","hint":"an endpoint "#
                ),
                _ => format!("error[not_delivered]: {problem}\nhint: "),
            };
            assert!(ran.stderr.starts_with(&told), "{}", ran.stderr);
            assert_eq!(ran.stdout == format!("{answer}\n"), form == "--json", "{}", ran.stdout);
        }
    }
    let gone = FakeServer::new(vec![error(404, "", "invalid_request_error", "resource_missing")]);
    assert_eq!(run(&gone, "webhook-endpoints|test|1").code, Some(3));
}

#[test]
fn a_delivery_is_shown_with_a_line_for_each_attempt() {
    let ran = run(&FakeServer::new(vec![ok(DELIVERY)]), "deliveries|get|d");
    let end = "attempt 1\t2026-05-05T09:29:30.000Z timed out in 10000 ms\n\
               attempt 2\t2026-05-05T09:30:00.000Z 500 in 12 ms: not\\nnow\n";
    assert!(ran.stdout.ends_with(end) && !ran.stdout.contains("log\t"), "{}", ran.stdout);
}

#[test]
fn deliveries_in_a_pipe_have_a_column_for_every_field_but_the_log() {
    let ran = run(
        &FakeServer::new(vec![ok(&list_of(&[DELIVERY]))]),
        "deliveries|list|--organization|0190d0f2-7c3a-7cc0-8000-000000000000",
    );
    assert_eq!(
        ran.stdout,
        "id\tendpoint_id\tevent_id\tevent_type\tstatus\tattempts\tnext_attempt_at\tlast_response_status\tlast_error\tcreated_at\tupdated_at\n\
         d\tw\te\trental.created\tpending\t2\t2026-05-05T09:32:00.000Z\t500\t\t2026-05-05T09:29:30.000Z\t2026-05-05T09:30:00.000Z\n"
    );
}

#[test]
fn resend_prints_the_new_deliveries_or_that_nobody_wants_them() {
    let ran = run(&FakeServer::new(vec![ok(&list_of(&[DELIVERY]))]), "events|resend|e");
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 2), "{}", ran.stdout);
    let waiting = list_of(&[DELIVERY]).replace("\"data\"", "\"disabled_endpoint_ids\":[\"w\"],\"data\"");
    let ran = run(&FakeServer::new(vec![ok(&waiting)]), "events|resend|e");
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 2), "{}", ran.stdout);
    assert!(ran.stderr.contains("webhook endpoint w is disabled") && ran.stderr.contains("enable w"), "{}", ran.stderr);
    let ran = run(&FakeServer::new(vec![ok(&list_of(&[]))]), "events|resend|e");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(ran.stderr.starts_with("nothing was sent: "), "{}", ran.stderr);
}

#[test]
fn recover_goes_through_all_pages_and_prints_the_totals() {
    for (form, expected) in [
        ("--quiet", "examined\t401\nresent\t7\nhas_more\tfalse\nnext_cursor\t\n"),
        ("--json", "{\"object\":\"recovery\",\"examined\":401,\"resent\":7,\"has_more\":false,\"next_cursor\":null}\n"),
    ] {
        let pages = vec![recovery(200, 5, Some("a")), recovery(200, 0, Some("b")), recovery(1, 2, None)];
        let server = FakeServer::new(pages);
        let ran = run(&server, &format!("events|recover|--endpoint|w|--since|2026-05-05T09:30:00+02:00|{form}"));
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), expected, ""));
        let asked = server.asked();
        let bodies: Vec<_> = asked.iter().map(|asked| asked.body.as_str()).collect();
        assert_eq!(
            bodies,
            [
                r#"{"since":"2026-05-05T09:30:00+02:00"}"#,
                r#"{"since":"2026-05-05T09:30:00+02:00","starting_after":"a"}"#,
                r#"{"since":"2026-05-05T09:30:00+02:00","starting_after":"b"}"#,
            ]
        );
        assert!(asked.iter().all(|asked| asked.line == "POST /admin/v1/webhook_endpoints/w/recover"));
        let keys: Vec<_> = asked.iter().map(|asked| asked.header("idempotency-key")).collect();
        assert!(keys[0].is_some() && keys[0] != keys[1] && keys[1] != keys[2], "each page is a request of its own");
    }
}

#[test]
fn recover_says_how_to_list_what_fails_again() {
    let ran = run(&FakeServer::new(vec![recovery(1, 1, None)]), "events|recover|--endpoint|w|--since|2h");
    assert!(ran.stderr.contains("deliveries list --organization ID --endpoint w --status failed"), "{ran:?}");
}

#[test]
fn recover_counts_back_from_one_moment() {
    let server = FakeServer::new(vec![recovery(200, 0, Some("a")), recovery(0, 0, None)]);
    assert_eq!(run(&server, "events|recover|--endpoint|w|--since|2h").code, Some(0));
    let times: Vec<String> = server.asked().iter().map(|asked| asked.body[..35].to_owned()).collect();
    assert_eq!(times[0], times[1]);
    assert!(times[0].starts_with("{\"since\":\"2") && times[0].ends_with("Z\""), "{times:?}");
}

#[test]
fn a_recovery_that_breaks_off_says_how_far_it_came() {
    let server = FakeServer::new(vec![recovery(200, 5, Some("a")), error(500, "", "api_error", "internal_error")]);
    let ran = run(&server, "events|recover|--endpoint|w|--since|2h");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(9), ""));
    assert!(ran.stderr.starts_with("stopped after 200 events, 5 of them resent; repeat"), "{}", ran.stderr);
    let stuck = FakeServer::new(vec![recovery(200, 0, Some("a"))]);
    let ran = run(&stuck, "events|recover|--endpoint|w|--since|2h|--json");
    assert_eq!((ran.code, ran.stdout.as_str(), stuck.asked().len()), (Some(1), "", 2), "the same cursor for ever");
}

/// The result of one page of `enable --all-disabled-since`.
fn enabling(examined: u32, ids: &[&str], next_cursor: Option<&str>) -> Reply {
    let rows: Vec<String> = ids.iter().map(|id| format!(r#"{{"id":"{id}"}}"#)).collect();
    let next = next_cursor.map_or_else(|| "null".to_owned(), |cursor| format!("\"{cursor}\""));
    ok(&format!(
        r#"{{"object":"webhook_endpoint_enabling","examined":{examined},"enabled":[{}],"has_more":{},"next_cursor":{next}}}"#,
        rows.join(","),
        next_cursor.is_some()
    ))
}

#[test]
fn enabling_all_goes_through_all_pages_and_prints_the_ids() {
    let server = FakeServer::new(vec![enabling(200, &["x", "y"], Some("a")), enabling(3, &["z"], None)]);
    let ran = run(&server, "webhook-endpoints|enable|--all-disabled-since|2026-05-05T09:30:00Z|--dry-run|--json");
    let expected = r#"{"object":"webhook_endpoint_enabling","dry_run":true,"examined":203,"enabled":[{"id":"x"},{"id":"y"},{"id":"z"}],"has_more":false,"next_cursor":null}"#;
    assert_eq!((ran.code, ran.stdout.trim_end(), ran.stderr.as_str()), (Some(0), expected, ""));
    let asked = server.asked();
    let bodies: Vec<_> = asked.iter().map(|asked| asked.body.as_str()).collect();
    assert_eq!(
        bodies,
        [
            r#"{"disabled_since":"2026-05-05T09:30:00Z","dry_run":true}"#,
            r#"{"disabled_since":"2026-05-05T09:30:00Z","dry_run":true,"starting_after":"a"}"#,
        ]
    );
    assert!(asked.iter().all(|asked| asked.line == "POST /admin/v1/webhook_endpoints/enable"));
}

#[test]
fn enabling_all_that_finds_none_says_so_and_proposes_nothing() {
    for flags in ["", "|--dry-run"] {
        let server = FakeServer::new(vec![enabling(7, &[], None)]);
        let ran = run(&server, &format!("webhook-endpoints|enable|--all-disabled-since|2h{flags}"));
        assert_eq!(ran.code, Some(0));
        assert!(ran.stderr.starts_with("Nothing was changed: ") && !ran.stderr.contains("Repeat"), "{}", ran.stderr);
    }
}

#[test]
fn enabling_all_that_breaks_off_says_how_far_it_came() {
    let pages = vec![enabling(200, &["x"], Some("a")), error(500, "", "api_error", "internal_error")];
    let ran = run(&FakeServer::new(pages), "webhook-endpoints|enable|--all-disabled-since|2h");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(9), ""));
    assert!(ran.stderr.starts_with("stopped after 1 endpoints were enabled; repeat"), "{}", ran.stderr);
}

#[test]
fn wrong_usage_exits_with_2_and_asks_no_server() {
    let server = FakeServer::new(vec![ok("{}")]);
    for words in [
        "webhook-endpoints|create|--organization|0190d0f2-7c3a-7cc0-8000-000000000000",
        "webhook-endpoints|create|--url|https://h",
        "webhook-endpoints|update|1",
        "webhook-endpoints|update|1|--event|rental.created|--all-events",
        "webhook-endpoints|update|1|--event|rental.created|--clear|events",
        "webhook-endpoints|rotate-secret|1|--overlap|soon",
        "webhook-endpoints|delete",
        "webhook-endpoints|enable",
        "webhook-endpoints|enable|1|--dry-run",
        "webhook-endpoints|enable|1|--all-disabled-since|2h",
        "webhook-endpoints|enable|--all-disabled-since|someday",
        "events|list",
        "events|recover|--endpoint|w",
        "events|recover|--since|2h",
        "events|recover|--endpoint|w|--since|someday",
        "deliveries|list",
    ] {
        let ran = run(&server, words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words}");
    }
    assert_eq!(server.asked().len(), 0);
}
