//! What a person sees: the program on a pseudo-terminal. Captured output is a pipe, which gets plain data.

use crate::{
    draft_all::verdicts,
    fake_server::{FakeServer, Ran, Reply, ok},
};
use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};
use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::process::ExitStatusExt as _},
    process::{Command, Stdio},
};

/// The two ends of a new terminal of this many columns.
fn pair(columns: u16) -> (OwnedFd, File) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    tcsetwinsize(&controller, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
    (controller, OpenOptions::new().read(true).write(true).open(name).unwrap())
}

/// Runs a command line with all three streams on a terminal of this many columns. Gives its exit code and everything
/// that it showed, with line feeds alone.
pub(crate) fn run(command: &mut Command, columns: u16) -> (Option<i32>, String) {
    answering(command, columns, "")
}

/// The same with a person who types this at once.
pub(crate) fn answering(command: &mut Command, columns: u16, typed: &str) -> (Option<i32>, String) {
    typing_after(command, columns, "", typed)
}

/// The same with a person who types this after a prompt.
pub(crate) fn typing_after(command: &mut Command, columns: u16, prompt: &str, typed: &str) -> (Option<i32>, String) {
    let (controller, terminal) = pair(columns);
    if command.get_envs().all(|(name, _)| name != "TERM") {
        command.env("TERM", "xterm");
    }
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap()).stderr(terminal);
    let mut child = command.spawn().unwrap();
    // The program must hold the only copies, so that the terminal ends when it does.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    let mut controller = File::from(controller);
    let mut typed = Some(typed.as_bytes());
    if prompt.is_empty() {
        controller.write_all(typed.take().unwrap()).unwrap();
    }
    // On Linux the end of a terminal is an error (EIO).
    while let Ok(count @ 1..) = controller.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..count]);
        if shown.windows(prompt.len().max(1)).any(|part| part == prompt.as_bytes())
            && let Some(typed) = typed.take()
        {
            // A program hides what is typed after it has asked.
            std::thread::sleep(std::time::Duration::from_millis(100));
            controller.write_all(typed).unwrap();
        }
    }
    let status = child.wait().unwrap();
    (status.code(), String::from_utf8(shown).unwrap().replace("\r\n", "\n"))
}

/// Runs a command line on a terminal until it shows this prompt, and ends it with a signal then. Gives the signal that it died
/// of, and whether the terminal showed what is typed at the prompt and afterwards.
pub(crate) fn interrupted(command: &mut Command, prompt: &str, signal: Signal) -> (Option<i32>, [bool; 2]) {
    let (controller, terminal) = pair(80);
    let echoes = || tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ECHO);
    command.stdin(terminal.try_clone().unwrap()).stdout(Stdio::null()).stderr(terminal.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    let mut controller = File::from(controller);
    while !shown.windows(prompt.len()).any(|part| part == prompt.as_bytes()) {
        let count = controller.read(&mut buffer).unwrap();
        shown.extend_from_slice(&buffer[..count]);
    }
    // A program hides what is typed after it has asked.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let at_the_prompt = echoes();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap();
    (status.signal(), [at_the_prompt, echoes()])
}

/// The same without colours.
pub(crate) fn plain(server: &FakeServer, args: &[&str], columns: u16) -> String {
    let (code, shown) = run(server.command(args).env("NO_COLOR", "1").env("TZ", "UTC"), columns);
    assert_eq!(code, Some(0), "{shown}");
    shown
}

const WIDTHS: [u16; 2] = [80, 140];

#[test]
fn the_counts_of_an_import_are_numbers() {
    const SUMMARY: &str = r#"{"object":"import","received":5,"created":2,"updated":1,"duplicates":1,"skipped":0,"invalid":1,"amounts":{"received":27.7,"created":13.88,"updated":-6.9},"errors":[{"row":4,"message":"`amount` is missing."}]}"#;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tolls.csv");
    std::fs::write(&file, "transaction_id\n").unwrap();
    for columns in WIDTHS {
        let server = FakeServer::new(vec![ok(r#"{"default_currency":"USD"}"#), ok(&format!("{SUMMARY}\n"))]);
        let shown = plain(
            &server,
            &["tolls", "import", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", file.to_str().unwrap()],
            columns,
        );
        let counts = "received:        5\ncreated:         2\nupdated:         1\nduplicates:      1\nskipped:         0\ninvalid:         1\namount received: 27.70\namount created:  13.88\namount updated:  -6.90\nrow 4: `amount` is missing.\n";
        assert!(shown.contains(counts), "{columns}: {shown}");
        assert!(shown.contains("rental-cli tolls list --updated-gte 20"), "{columns}: {shown}");
    }
}

#[test]
fn the_time_of_an_event_is_a_date() {
    let event = r#"{"id":"1","object":"event","type":"vehicle.created","created":1000000000,"data":{"created":7}}"#;
    for columns in WIDTHS {
        let shown = plain(&FakeServer::new(vec![ok(event)]), &["events", "get", "1"], columns);
        assert!(shown.contains("created: 2001-09-09 01:46:40 +00:00\n"), "{columns}: {shown}");
        let list = format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{event}]}}"#);
        let server = FakeServer::new(vec![ok(&list)]);
        let shown =
            plain(&server, &["events", "list", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"], columns);
        assert!(shown.contains("  2001-09-09 01:46\n"), "{columns}: {shown}");
    }
}

#[test]
fn progress_is_a_line_that_goes_away() {
    let lines = "{\"a\":1}\n".repeat(2000);
    let organization = "{\"object\":\"organization\"}\n";
    let export = format!("{organization}{lines}{{\"object\":\"export_end\",\"objects\":2001}}\n").into_bytes();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.ndjson");
    for form in ["--color=auto", "--quiet", "--json"] {
        let server = FakeServer::new(vec![Reply::Slowly(export.clone())]);
        let args = [
            "export",
            "--organization",
            "0190d0f2-7c3a-7cc0-8000-000000000000",
            "--force",
            "--to",
            file.to_str().unwrap(),
            form,
        ];
        let shown = plain(&server, &args, 80);
        assert_eq!(shown.contains("receiving: "), form == "--color=auto", "{form}: {shown:?}");
        // What is after the last erased line stays on the screen.
        let left = shown.rsplit("\u{1b}[2K").next().unwrap();
        assert!(left.contains("2000") && !left.contains("receiving"), "{form}: {shown:?}");
        assert_eq!(std::fs::read(&file).unwrap(), export);
    }
}

#[test]
fn a_review_says_how_many_are_clear_and_how_to_attach_them() {
    let row = |(verdict, billed): &(&str, bool)| {
        format!(
            r#"{{"id":"t","verdict":"{verdict}","billed":{billed},"reason":"R.","amount":4.5,"currency":"USD","candidates":[]}}"#
        )
    };
    let run = |group: &str, rows: &[(&str, bool)]| {
        let rows: Vec<String> = rows.iter().map(row).collect();
        let page = format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{}]}}"#, rows.join(","));
        let args = [group, "review", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"];
        plain(&FakeServer::new(vec![ok(&page)]), &args, 140)
    };
    for group in ["tolls", "violations"] {
        let shown = run(group, &[("clear", false), ("unclear", false), ("clear", false), ("clear", true)]);
        let note = format!("2 of them are clear: attach them with `rental-cli {group} suggest --attach`");
        assert!(shown.contains("4 ") && shown.contains(&note), "{shown}");
        assert!(!run(group, &[("unclear", false)]).contains("clear:"));
        let shown = run(group, &[("clear", true)]);
        assert!(
            shown.contains("to look at") && !shown.contains("clear:"),
            "`suggest` leaves what is billed alone: {shown}"
        );
    }
}

/// A page of one row to look at.
fn review(members: &str) -> String {
    let row = format!(
        r#"{{"object":"review","id":"0190d0f2-7c3a-7cc0-8000-000000000001","verdict":"unclear","when":"2026-06-05 13:00 -04:00","agency":"MTAB&T","number":"61231234567","plate":"ABC1234","plate_state":"NY","transponder_number":null,"amount":6.9,"currency":"USD","customer_name":null,{members}}}"#
    );
    format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{row}]}}"#)
}

#[test]
fn what_a_person_has_to_look_at_is_wrapped_at_the_width_of_the_terminal() {
    let list = review(
        r#""place":"RKB","reason":"PROBABLE_TWIN: toll 0190d0f2-7c3a-7cc0-8000-000000000002 is probably the same passage, read by transponder. Attach this toll to a customer if it is another passage.","candidates":[{"customer_name":"Ada Lovelace","start_date":"2026-06-01","end_date":"2026-06-05","reason":"Had the vehicle 2026-06-01 to 2026-06-05, and somebody wrote a long reason."}],"twin":{"when":"2026-06-05 13:01 -04:00","plate":null,"transponder_number":"00412345678","agency":"MTAB&T","number":"6123","amount":11.2,"customer_name":"Ada Lovelace"}"#,
    );
    for columns in [80, 40, 140] {
        let args = ["tolls", "review", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"];
        let shown = plain(&FakeServer::new(vec![ok(&list)]), &args, columns);
        assert!(shown.lines().all(|line| line.chars().count() <= usize::from(columns)), "{columns}: {shown}");
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for text in [
            "2026-06-05 13:00 -04:00 ABC1234 NY 6.90 USD RKB MTAB&T 61231234567 PROBABLE_TWIN: toll 0190d0f2-7c3a-7cc0-8000-000000000002",
            "the other toll: 2026-06-05 13:01 -04:00, 00412345678, MTAB&T 6123, 11.20, attached to Ada Lovelace",
            "- Ada Lovelace, 2026-06-01 to 2026-06-05: Had the vehicle",
        ] {
            assert!(words.contains(text), "{columns}: {shown}");
        }
    }
}

#[test]
fn a_reason_is_said_once_and_names_the_vehicle_by_its_plate() {
    const REASON: &str = "The transponder belongs to vehicle 0190d0f2-7c3a-7cc0-8000-000000000002.";
    let candidate = r#"{"customer_name":"Ada","start_date":"2026-06-01","end_date":"2026-06-05","reason":"#;
    let list = review(&format!(
        r#""place":"RKB","reason":"{REASON}","candidates":[{candidate}"{REASON}"}},{candidate}"Had it."}}]"#
    ));
    let vehicle = r#"{"object":"vehicle","id":"0190d0f2-7c3a-7cc0-8000-000000000002","plate":"LZA7293"}"#;
    let args = ["tolls", "review", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"];
    let server = FakeServer::new(vec![ok(&list), ok(vehicle)]);
    let shown = plain(&server, &args, 140);
    assert_eq!(shown.matches("The transponder belongs to vehicle LZA7293.").count(), 1, "{shown}");
    assert!(!shown.contains("000000000002") && shown.contains("- Ada, 2026-06-01 to 2026-06-05\n"), "{shown}");
    assert!(shown.contains("- Ada, 2026-06-01 to 2026-06-05: Had it.\n"), "{shown}");
    assert_eq!(server.asked()[1].line, "GET /v1/vehicles/0190d0f2-7c3a-7cc0-8000-000000000002");
    let piped = FakeServer::new(vec![ok(&list)]).run(&args).stdout;
    assert_eq!(piped.matches(REASON).count(), 2, "a pipe has the text of the response: {piped}");
}

#[test]
fn suggestions_on_a_terminal_have_names_and_no_ids() {
    let suggestion = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"id":"0190d0f2-7c3a-7cc0-8000-000000000001","verdict":"clear","vehicle_id":"0190d0f2-7c3a-7cc0-8000-000000000002","rental_id":"0190d0f2-7c3a-7cc0-8000-000000000003","attached":true,"reason":"Had it.","plate":null,"amount":4.5,"currency":"USD"}]}"#;
    let script = || vec![ok(suggestion), ok(r#"{"id":"2","name":"Grey Camry"}"#)];
    let args = ["tolls", "suggest", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"];
    let shown = plain(&FakeServer::new(script()), &args, 140);
    assert!(shown.contains("Grey Camry") && shown.contains("4.50 USD") && !shown.contains("0190d0f2"), "{shown}");
    let piped = FakeServer::new(script()).run(&args).stdout;
    assert!(piped.contains("0190d0f2-7c3a-7cc0-8000-000000000003") && piped.contains("rental"), "{piped}");
}

#[test]
fn amounts_of_lists_and_objects_have_all_decimals_of_their_currency() {
    let vehicle =
        r#"{"id":"1","object":"vehicle","name":"Van","daily_rate":89.5,"deposit_amount":0.7,"currency":"USD"}"#;
    let list = format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{vehicle}]}}"#);
    let shown = plain(&FakeServer::new(vec![ok(&list)]), &["vehicles", "list"], 140);
    assert!(shown.contains("  89.50 USD"), "{shown}");
    let shown =
        plain(&FakeServer::new(vec![ok(vehicle)]), &["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"], 80);
    assert!(shown.contains(" 89.50 USD\n") && shown.contains(" 0.70 USD\n"), "{shown}");
    let json = FakeServer::new(vec![ok(vehicle)]);
    assert_eq!(
        plain(&json, &["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001", "--json"], 80),
        format!("{vehicle}\n")
    );
}

#[test]
fn a_violation_to_look_at_says_how_many_days_are_left() {
    for (day, text) in
        [("\"2000-01-01\"", "  respond by 2000-01-01: "), ("\"9999-12-31\"", "  respond by 9999-12-31: "), ("null", "")]
    {
        let list = review(&format!(
            r#""place":"NO PARKING","reason":"2 rentals come into question.","respond_by":{day},"candidates":[],"twin":null"#
        ));
        let shown = plain(
            &FakeServer::new(vec![ok(&list)]),
            &["violations", "review", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"],
            80,
        );
        assert!(
            shown.starts_with("2026-06-05 13:00 -04:00  ABC1234 NY  6.90 USD  NO PARKING\n  MTAB&T 61231234567\n"),
            "{shown}"
        );
        match day {
            "null" => assert!(!shown.contains("respond by"), "{shown}"),
            _ => assert!(shown.contains(text), "{shown}"),
        }
        assert_eq!(shown.contains(" days late\n"), day.contains("2000"), "{shown}");
        assert_eq!(shown.contains(" days left\n"), day.contains("9999"), "{shown}");
    }
}

#[test]
fn a_table_is_as_wide_as_the_terminal_allows() {
    let id = "0190d0f2-7c3a-7cc0-8000-000000000001";
    let rental = format!(
        r#"{{"id":"{id}","object":"rental","customer_id":"{id}","vehicle_id":"{id}","start_date":"2026-06-01","end_date":"2026-06-05","final_price":400.00,"currency":"USD","status":"ACTIVE"}}"#
    );
    let list = format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{rental}]}}"#);
    let named = r#"{"object":"customer","full_name":"Ada Lovelace"}"#;
    let [narrow, wide] = WIDTHS.map(|columns| {
        let server = FakeServer::new(vec![ok(&list), ok(named)]);
        plain(&server, &["rentals", "list"], columns)
    });
    for (shown, columns) in [(&narrow, 80), (&wide, 140)] {
        assert!(shown.lines().all(|line| line.chars().count() <= columns), "{columns}: {shown}");
        for text in ["Ada Lovelace", "2026-06-05", "400.00 USD", "ACTIVE", id] {
            assert!(shown.contains(text), "{columns}: {shown}");
        }
    }
    assert_eq!(narrow.lines().nth(2), Some(format!("  {id}").as_str()), "{narrow}");
    assert!(wide.starts_with("ID  ") && wide.lines().count() == 2, "{wide}");
}

/// Runs a command on terminals of 80 and of 140 columns, and gives what is left on them. No line may be longer.
#[track_caller]
fn within_width(server: impl Fn() -> FakeServer, args: &[&str], home: Option<&std::path::Path>) -> [String; 2] {
    WIDTHS.map(|columns| {
        let mut command = server().command(args);
        command.envs(home.map(|home| ("HOME", home)));
        let (code, shown) = run(command.env("NO_COLOR", "1").env("TZ", "UTC"), columns);
        assert_eq!(code, Some(0), "{shown}");
        // Progress erases its line before anything else is written there.
        let lines: Vec<&str> = shown.lines().map(|line| line.rsplit("\u{1b}[2K").next().unwrap()).collect();
        let long = lines.iter().find(|line| line.chars().count() > usize::from(columns));
        assert_eq!(long, None, "{columns}: {shown}");
        assert!(lines.iter().all(|line| !line.contains("looked at")), "{columns}: {shown:?}");
        lines.join("\n")
    })
}

#[test]
fn every_table_fits_the_terminal() {
    let id = "0190d0f2-7c3a-7cc0-8000-000000000001";
    let reason = "Had the vehicle 2026-06-01 to 2026-06-05, picked it up at 10:00 and brought it back at 17:00, which is after the toll.";
    let suggestion = format!(
        r#"{{"id":"{id}","verdict":"clear","when":"2026-06-05 13:00 -04:00","vehicle_id":"{id}","customer_id":"{id}","attached":true,"reason":"{reason}","plate":"LZA7293","amount":4.5,"currency":"USD"}}"#
    );
    let page = |more: bool| {
        format!(
            r#"{{"object":"list","has_more":{more},"next_cursor":"1","data":[{}]}}"#,
            vec![suggestion.as_str(); 30].join(",")
        )
    };
    let named = r#"{"id":"2","name":"Grey Camry of the airport"}"#;
    // The name is looked up once for both pages.
    let script = || FakeServer::new(vec![ok(&page(true)), ok(named), ok(&page(false))]);
    let organization = "0190d0f2-7c3a-7cc0-8000-000000000000";
    let [narrow, _] = within_width(script, &["tolls", "suggest", "--organization", organization], None);
    let words = narrow.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("reason: {reason}")) && narrow.contains("Grey Camry"), "{narrow}");

    let draft = format!(
        r#"{{"rental_id":"{id}","customer_name":"Ada Lovelace","start_date":"2026-06-01","total":144.19,"currency":"USD","tolls":1,"violations":0,"problem":"{reason}"}}"#
    );
    let page = format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{draft}]}}"#);
    let none = verdicts(&[], false);
    let script = || FakeServer::new(vec![ok(&page), ok(&none), ok(&none)]);
    let args = ["invoices", "draft-all", "--organization", organization, "--dry-run"];
    let [narrow, _] = within_width(script, &args, None);
    assert!(narrow.contains("\n  problem: Had the vehicle"), "{narrow}");

    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".config/rental/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let profile = format!(
        "[profiles.own]\nbase_url = \"http://127.0.0.1:8081\"\norganization = \"{id}\"\nadmin_token_file = \"/srv/rental/fleet.redb.admin-token\"\napi_key_file = \"/home/ada/.config/rental/keys/own.api-key\"\n"
    );
    std::fs::write(file, profile).unwrap();
    let nothing = || FakeServer::new(vec![ok("{}")]);
    for shown in within_width(nothing, &["config", "list"], Some(home.path())) {
        for value in ["http://127.0.0.1:8081", id, "/srv/rental/fleet.redb.admin-token", "/keys/own.api-key"] {
            assert!(shown.contains(value), "{shown}");
        }
    }
}

#[test]
fn a_list_of_events_says_what_each_is_about() {
    let (event, object) = ("0190d0f2-7c3a-7cc0-8000-0000000000e1", "0190d0f2-7c3a-7cc0-8000-000000000001");
    let page = |data: &str| {
        format!(
            r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{{"id":"{event}","object":"event","type":"violation.attached","created":1000000000,"data":{data}}}]}}"#
        )
    };
    let args = ["events", "list", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"];
    for (data, about) in [
        (r#""object":"vehicle","name":"White Tesla""#, "White Tesla"),
        (r#""object":"customer","full_name":"Ada Okafor""#, "Ada Okafor"),
        (r#""object":"rental","booking_id":"B-1001""#, "B-1001"),
        (r#""object":"credit_note","invoice_number":"INV-1","credit_note_number":"CN-1""#, "CN-1"),
        (r#""object":"toll","transaction_id":"6123","plate":"LZA7293""#, "6123"),
        (r#""object":"toll","transaction_id":null,"plate":"LZA7293""#, "LZA7293"),
        (r#""object":"lead","source_channel":"partner_site""#, "partner_site"),
    ] {
        let page = page(&format!(r#"{{"id":"{object}",{data}}}"#));
        let [narrow, wide] = within_width(|| FakeServer::new(vec![ok(&page)]), &args, None);
        for shown in [&narrow, &wide] {
            for text in ["ABOUT", about, event, object, "violation.attached", "2001-09-09 01:46"] {
                assert!(shown.contains(text), "{text}: {shown}");
            }
        }
        assert!(narrow.ends_with(&format!("\n  {event}  {object}")), "{narrow}");
    }
    for data in ["null", "{}"] {
        let page = page(data);
        within_width(|| FakeServer::new(vec![ok(&page)]), &args, None);
    }
}

/// An object whose text and whose nested JSON hold what terminals obey: CSI (U+009B), OSC (U+009D), DEL, and overrides of
/// the writing direction.
const HOSTILE: &str = "{\"object\":\"lead\",\"id\":\"1\",\"note\":\"n\u{9b}2J\u{202e}\",\"raw_data\":{\"k\u{202e}\":\"v\u{9d}0;x\u{7f}\u{2066}\",\"e\":\"\\u001b]0;x\\u0007\"}}";

fn obeyed(char: char) -> bool {
    matches!(char, '\u{7}' | '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn a_terminal_never_gets_what_it_would_obey_out_of_a_value() {
    let list = format!("{{\"object\":\"list\",\"has_more\":false,\"next_cursor\":null,\"data\":[{HOSTILE}]}}");
    let failure = || Reply::Answer {
        status: 400,
        headers: "",
        body: "{\"error\":{\"type\":\"t\",\"code\":\"c\",\"message\":\"m\u{9b}2J\",\"param\":\"p\u{202e}\"}}".into(),
    };
    let cases: [(Reply, &[&str]); 11] = [
        (ok(HOSTILE), &["customers", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"]),
        (ok(HOSTILE), &["customers", "get", "0190d0f2-7c3a-7cc0-8000-000000000001", "--json"]),
        (ok(&list), &["customers", "list"]),
        (ok(&list), &["customers", "list", "--json"]),
        (ok(&list), &["customers", "list", "--all", "--json"]),
        (failure(), &["customers", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"]),
        (failure(), &["customers", "get", "0190d0f2-7c3a-7cc0-8000-000000000001", "--json"]),
        (ok(HOSTILE), &["export", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"]),
        (ok(HOSTILE), &["customers", "get", "0190d0f2-7c3a-7cc0-8000-000000000001", "--jq", ".raw_data.e"]),
        (ok(HOSTILE), &["api", "GET", "/v1/customers/1", "--jq", ".raw_data[]"]),
        (ok("a login page\u{1b}]0;x\u{7}"), &["api", "GET", "/v1/customers/1"]),
    ];
    for (reply, args) in cases {
        let server = FakeServer::new(vec![reply]);
        let (_, shown) = run(server.command(args).env("NO_COLOR", "1"), 140);
        // Progress moves the cursor by sequences of its own.
        assert!(!shown.is_empty() && !shown.contains(obeyed) && !shown.contains("\u{1b}]"), "{args:?}: {shown:?}");
    }
}

#[test]
fn json_on_a_terminal_keeps_its_value() {
    let shown = plain(
        &FakeServer::new(vec![ok(HOSTILE)]),
        &["customers", "get", "0190d0f2-7c3a-7cc0-8000-000000000001", "--json"],
        140,
    );
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(&shown), value(HOSTILE));
}

/// Lists `rows` vehicles on a terminal of 50 lines. Gives the exit code and what was shown.
fn listed(rows: usize, more: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let vehicle = r#"{"object":"vehicle","id":"0190d0f2-7c3a-7cc0-8000-000000000001","name":"White Tesla"}"#;
    let list = format!(
        r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{}]}}"#,
        vec![vehicle; rows].join(",")
    );
    let server = FakeServer::new(vec![ok(&list)]);
    let mut command = server.command(&[&["vehicles", "list"], more].concat());
    command.env_remove("RENTAL_PAGER").env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("NO_COLOR", "1").envs(variables.iter().copied());
    run(&mut command, 200)
}

#[test]
fn a_list_that_is_longer_than_the_terminal_goes_to_the_pager() {
    const MARK: (&str, &str) = ("RENTAL_PAGER", "sed 's/^/paged /'");
    for (rows, more, variables, paged) in [
        (60, &[][..], &[MARK][..], true),
        (60, &["--jq", ".data[].name"], &[MARK], true),
        (60, &[], &[("PAGER", MARK.1)], true),
        (60, &[], &[("PAGER", MARK.1), ("RENTAL_PAGER", "cat")], false),
        (60, &[], &[("PAGER", MARK.1), ("RENTAL_PAGER", "")], false),
        (60, &["--no-pager"], &[MARK], false),
        (20, &[], &[MARK], false),
    ] {
        let (code, shown) = listed(rows, more, variables);
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(shown.contains("paged "), paged, "{rows} rows, {more:?}, {variables:?}: {shown}");
        assert_eq!(shown.matches("White Tesla").count(), rows, "{more:?}, {variables:?}: {shown}");
    }
}

#[test]
fn a_pager_that_ends_early_or_is_not_there_is_no_error() {
    let (code, shown) = listed(2000, &[], &[("RENTAL_PAGER", "head -n 3; exit 1")]);
    assert_eq!((code, shown.matches("White Tesla").count()), (Some(0), 2), "{shown}");
    for missing in ["no-such-pager", "/dev/null"] {
        let (code, shown) = listed(60, &[], &[("RENTAL_PAGER", missing)]);
        assert_eq!((code, shown.matches("White Tesla").count()), (Some(0), 60), "{missing}: {shown}");
    }
    let (code, shown) = listed(60, &[], &[("PATH", "/no/such/folder")]);
    assert_eq!((code, shown.matches("White Tesla").count()), (Some(0), 60), "{shown}");
}

#[test]
fn a_pipe_has_no_pager() {
    let list = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[]}"#;
    let server = FakeServer::new(vec![ok(list)]);
    let ran = Ran::of(server.command(&["vehicles", "list", "--json"]).env("RENTAL_PAGER", "echo paged"));
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), list));
}
