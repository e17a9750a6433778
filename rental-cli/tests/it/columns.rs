//! `--columns` of the commands that print an object of another type than their group, or one without a description.

use crate::{
    fake_server::{FakeServer, Ran, cli, ok},
    terminal,
};

const ID: &str = "0190d0f2-7c3a-7cc0-8000-000000000001";
const ORGANIZATION: &str = "0190d0f2-7c3a-7cc0-8000-000000000000";

/// Runs a command line, its words separated by `|`, against one answer, and compares stdout in a pipe.
#[track_caller]
fn check(words: &str, answer: &str, stdout: &str) {
    let ran = FakeServer::new(vec![ok(answer)]).run(&words.split('|').collect::<Vec<_>>());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), stdout), "{words}: {}", ran.stderr);
}

fn page(object: &str) -> String {
    format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{object}]}}"#)
}

#[test]
fn every_command_that_prints_an_object_has_the_columns_of_that_object() {
    check(
        &format!("invoices|credit|{ID}|--line|0|--columns|credit_note_number,total"),
        r#"{"object":"credit_note","credit_note_number":"CN-000007","id":"1","total":4.5}"#,
        "credit_note_number\tCN-000007\ntotal\t4.5\n",
    );
    check(
        "me|--columns|scope,max_objects",
        r#"{"object":"me","scope":"read","limits":{"max_objects":null}}"#,
        "scope\tread\nmax_objects\tno limit\n",
    );
    check(
        &format!("vehicles|calendar|{ID}|--from|2026-07-01|--to|2026-07-02|--columns|to,kind"),
        r#"{"object":"list","data":[{"kind":"rental","from":"2026-07-01","to":"2026-07-05"}]}"#,
        "to\tkind\n2026-07-05\trental\n",
    );
    check(
        &format!("vehicles|assignments|{ID}|--columns|number"),
        r#"{"object":"vehicle_assignments","assignments":[{"kind":"plate","number":"A1"}]}"#,
        "number\nA1\n",
    );
    check(
        &format!("vehicles|assign|{ID}|--none|--columns|number"),
        r#"{"object":"vehicle_assignments","assignments":[]}"#,
        "number\n",
    );
    check(
        &format!("vehicles|calendar-feed|{ID}|--rotate|--yes|--columns|status"),
        r#"{"object":"vehicle_calendar_feed","status":"active","path":"/c/1","url":"https://h/c/1"}"#,
        "status\tactive\npath\t/c/1\nurl\thttps://h/c/1\n",
    );
    check(
        &format!("events|resend|{ID}|--columns|status,endpoint_id"),
        &page(r#"{"object":"delivery","id":"1","status":"pending","endpoint_id":"w"}"#),
        "status\tendpoint_id\npending\tw\n",
    );
    check(
        &format!("deliveries|get|{ID}|--columns|status,log"),
        r#"{"object":"delivery","id":"1","status":"failed","attempts":1,"log":[{"at":"A","duration_ms":12,"status":500}]}"#,
        "status\tfailed\nattempt 1\tA 500 in 12 ms\n",
    );
    check(
        &format!("webhook-endpoints|delete|{ID}|--columns|deleted"),
        r#"{"object":"webhook_endpoint","id":"1","deleted":true}"#,
        "deleted\ttrue\n",
    );
    check(
        &format!("webhook-endpoints|test|{ID}|--columns|status"),
        r#"{"object":"webhook_test","delivered":true,"status":204}"#,
        "status\t204\n",
    );
    check(&format!("organizations|logo|{ID}|--remove|--columns|bytes"), r#"{"object":"logo","bytes":0}"#, "bytes\t0\n");
    check(
        &format!("customers|erasure|{ID}|--columns|status"),
        r#"{"object":"erasure","status":"complete"}"#,
        "status\tcomplete\n",
    );
    check(
        "master-key|get|--columns|fingerprint",
        r#"{"object":"master_key","fingerprint":"5f","unreadable":0}"#,
        "fingerprint\t5f\n",
    );
}

#[test]
fn suggestions_and_reviews_have_the_columns_that_were_chosen() {
    let suggestion = page(&format!(
        r#"{{"id":"1","verdict":"clear","vehicle_id":"{ID}","customer_id":null,"attached":false,"reason":"Had it.","amount":4.5,"currency":"USD"}}"#
    ));
    let args = |columns: &'static str| ["tolls", "suggest", "--organization", ORGANIZATION, "--columns", columns];
    let script = || FakeServer::new(vec![ok(&suggestion), ok(r#"{"id":"2","name":"Grey Camry"}"#)]);
    assert_eq!(
        script().run(&args("reason,vehicle,vehicle_id")).stdout,
        format!("reason\tvehicle\tvehicle_id\nHad it.\tGrey Camry\t{ID}\n")
    );
    let server = script();
    server.run(&args("reason,vehicle_id"));
    assert_eq!(server.asked().len(), 1, "no name is shown, so none is looked up");

    let row = page(
        r#"{"id":"1","when":"2026-06-05 13:00 -04:00","amount":6.9,"currency":"USD","number":"612","candidates":[],"twin":{"when":"2026-06-05 13:01 -04:00","plate":"A1","agency":"MTAB&T","number":"613","amount":11.2,"customer_name":null}}"#,
    );
    let twin = "the other toll: 2026-06-05 13:01 -04:00, A1, MTAB&T 613, 11.20, not attached";
    let args = ["tolls", "review", "--organization", ORGANIZATION];
    let piped = FakeServer::new(vec![ok(&row)]).run(&args).stdout;
    let lines: Vec<&str> = piped.lines().collect();
    assert!(
        lines[0].ends_with("\tnumber\tcandidates\ttwin\tstatus\tplate_type\tvehicle_plate\tvehicle_name")
            && lines[1].ends_with(&format!("\t612\t\t{twin}\t\t\t\t")),
        "{piped}"
    );
    let chosen = [&args[..], &["--columns", "number,amount,twin"]].concat();
    assert_eq!(
        FakeServer::new(vec![ok(&row)]).run(&chosen).stdout,
        format!("number\tamount\ttwin\n612\t6.9\t{twin}\n")
    );
    let (code, shown) = terminal::run(FakeServer::new(vec![ok(&row)]).command(&chosen).env("NO_COLOR", "1"), 140);
    assert!(
        code == Some(0) && shown.starts_with("NUMBER  AMOUNT    TWIN\n612     6.90 USD  the other toll"),
        "{shown}"
    );
}

#[test]
fn a_column_of_one_object_is_that_of_the_list() {
    let rental = format!(r#"{{"object":"rental","id":"1","vehicle_id":"{ID}","customer_id":null,"status":"NEW"}}"#);
    let script = |first: &str| FakeServer::new(vec![ok(first), ok(r#"{"id":"2","name":"Grey Camry"}"#)]);
    let columns = ["--columns", "vehicle,vehicle_id,customer,status"];
    let server = script(&rental);
    assert_eq!(
        server.run(&[&["rentals", "get", ID][..], &columns].concat()).stdout,
        format!("vehicle\tGrey Camry\nvehicle_id\t{ID}\ncustomer\t\nstatus\tNEW\n")
    );
    assert_eq!(server.asked()[1].line, format!("GET /v1/vehicles/{ID}"));
    assert_eq!(
        script(&page(&rental)).run(&[&["rentals", "list"][..], &columns].concat()).stdout,
        format!("vehicle\tvehicle_id\tcustomer\tstatus\nGrey Camry\t{ID}\t\tNEW\n")
    );
    let server = script(&rental);
    server.run(&["rentals", "get", ID, "--columns", "vehicle_id"]);
    assert_eq!(server.asked().len(), 1, "no name is shown, so none is looked up");
}

/// Only what is shown once, such as a new key, is shown also when nobody asks for it.
#[test]
fn no_column_is_shown_that_was_not_chosen() {
    check(
        &format!("organizations|get|{ID}|--columns|name,plan"),
        r#"{"object":"organization","id":"1","name":"Sun","plan":"pro","usage":{"objects":7}}"#,
        "name\tSun\nplan\tpro\n",
    );
    check(
        "api-keys|create|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--scope|read|--columns|scope",
        r#"{"object":"api_key","id":"1","scope":"read","key":"rk_live_1"}"#,
        "scope\tread\nkey\trk_live_1\n",
    );
}

#[test]
fn a_run_of_invoices_has_the_columns_that_were_chosen() {
    let draft = r#"{"object":"invoice_draft","rental_id":"r","customer_name":"Ada","total":0.7,"currency":"USD","tolls":1,"violations":0,"problem":null}"#;
    let args = ["invoices", "draft-all", "--organization", ORGANIZATION, "--dry-run", "--columns"];
    let run = |columns: &[&str]| FakeServer::new(vec![ok(&page(draft))]).run(&[&args[..], columns].concat());
    assert_eq!(run(&["customer_name,total,currency"]).stdout, "customer_name\ttotal\tcurrency\nAda\t0.7\tUSD\n");
    assert_eq!(run(&["nothing"]).code, Some(2));
    let server = FakeServer::new(vec![ok(&page(draft))]);
    let (_, shown) = terminal::run(server.command(&[&args[..], &["total,tolls"]].concat()).env("NO_COLOR", "1"), 140);
    assert!(shown.contains("TOTAL     TOLLS\n0.70 USD  1\n"), "{shown}");
}

#[test]
fn profiles_have_the_columns_that_were_chosen() {
    let home = tempfile::tempdir().unwrap();
    let mut set = cli(&["config", "set", "own", "--base-url", "http://127.0.0.1:8081"]);
    assert_eq!(Ran::of(set.env("HOME", home.path())).code, Some(0));
    let mut list = cli(&["config", "list", "--columns", "base_url,name"]);
    assert_eq!(Ran::of(list.env("HOME", home.path())).stdout, "base_url\tname\nhttp://127.0.0.1:8081\town\n");
    let mut get = cli(&["config", "get", "own", "--columns", "value"]);
    let got = Ran::of(get.env("HOME", home.path())).stdout;
    assert_eq!(got.lines().take(3).collect::<Vec<_>>(), ["value", "own", "http://127.0.0.1:8081"]);
}

#[test]
fn columns_and_jq_exclude_each_other() {
    let server = FakeServer::new(vec![ok(&page(r#"{"id":"1"}"#))]);
    for line in [
        &["vehicles", "list", "--columns", "id", "--jq", ".data"][..],
        &["--jq", ".data", "vehicles", "list", "--columns", "id"],
        &["me", "--jq", ".scope", "--columns", "scope"],
    ] {
        let ran = server.run(line);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line:?}");
        assert!(ran.stderr.contains("use one of them"), "{}", ran.stderr);
    }
    let ran = server.run(&["api", "GET", "/v1/vehicles", "--columns", "id"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("`api` prints JSON: choose members with --jq"),
        "{}",
        ran.stderr
    );
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn a_list_of_no_objects_is_refused_with_what_to_do() {
    let ran = Ran::of(&mut cli(&["vehicles", "list", "--limit", "0"]));
    assert!(ran.code == Some(2) && ran.stderr.contains("from 1 on, such as 50; --all lists all"), "{}", ran.stderr);
}

/// The currency decides how amounts are written, also when its column is not chosen.
#[test]
fn chosen_amounts_of_an_object_have_the_decimals_of_its_currency() {
    let answer = r#"{"object":"vehicle","id":"1","name":"Cart","daily_rate":95,"deposit_amount":300,"currency":"EUR"}"#;
    let server = FakeServer::new(vec![ok(answer)]);
    let mut command = server.command(&["vehicles", "get", ID, "--columns", "name,daily_rate"]);
    let (_, shown) = terminal::run(&mut command, 80);
    assert!(shown.contains("95.00 EUR") && !shown.contains("currency"), "{shown}");
}

#[test]
fn the_summary_of_an_import_has_columns() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("june.csv");
    std::fs::write(&file, "a\n").unwrap();
    let owner = || ok(r#"{"object":"organization","id":"1","default_currency":"USD"}"#);
    let summary = || ok(r#"{"object":"import","received":2,"created":1,"amounts":{"received":7.5,"created":5}}"#);
    for (columns, stdout) in [
        ("created,received", "created\t1\nreceived\t2\n"),
        ("amount_created,created", "amount created\t5\ncreated\t1\n"),
    ] {
        let server = FakeServer::new(vec![owner(), summary()]);
        let organization = ["--organization", ORGANIZATION, "--columns", columns];
        let ran = server.run(&[&["tolls", "import", file.to_str().unwrap()], &organization[..]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), stdout), "{}", ran.stderr);
    }
}
