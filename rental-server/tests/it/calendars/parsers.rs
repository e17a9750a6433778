//! Two other programs read the feeds of vehicles, and calendars in the shapes of marketplaces and calendar programs: `icalendar`
//! with `recurring_ical_events` for Python, and `ical.js` for Node.
//!
//! `RENTAL_PYTHON` and `RENTAL_NODE` name the interpreters. What is not installed is skipped, in one line on stderr;
//! `RENTAL_REQUIRE_ALL` turns that into a failure.

use super::{day, feed_of, read};
use crate::support::Server;
use rental_core::{
    calendars::{Reading, read_calendar},
    value::{Date, Zone},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, env, fs, io::Write as _, path::Path, process::Command};

/// How the scripts say that the package is not installed.
const NOT_INSTALLED: i32 = 77;

#[test]
fn icalendar_for_python_reads_the_same_days() {
    check("RENTAL_PYTHON", "python3", "days.py");
}

#[test]
fn ical_js_for_node_reads_the_same_days() {
    check("RENTAL_NODE", "node", "days.mjs");
}

#[track_caller]
fn check(variable: &str, program: &str, script: &str) {
    let organization = Server::shared().organization();
    // Letters of one to four bytes in a name of several lines. Neither package unescapes the names of calendars.
    let name = "Zoë's 🚐 \"big\" €".repeat(14);
    let vehicle = organization.post("/v1/vehicles", &json!({"name": name})).id();
    let path = feed_of(&organization, &vehicle);
    let mut expected = Vec::new();
    for (at, (from, nights)) in
        [(-20, 3), (-17, 1), (-5, 9), (4, 1), (5, 0), (6, 30), (60, 400), (500, 2)].into_iter().enumerate()
    {
        let (start, end, after) = (day(from), day(from + nights), day(from + nights.max(1)));
        let (kind, body, uri) = if at % 2 == 0 {
            let customer = organization.customer(json!({}));
            ("rental", json!({"status": "APPROVED", "customer_id": customer}), "/v1/rentals")
        } else {
            ("block", json!({}), "/v1/blocks")
        };
        let mut body = body;
        (body["vehicle_id"], body["start_date"], body["end_date"]) = (json!(vehicle), json!(start), json!(end));
        let made = organization.post(uri, &body).ok();
        let id = made["id"].as_str().unwrap();
        let changed = format!("{}Z", made["updated_at"].as_str().unwrap().split('.').next().unwrap());
        let summary = if kind == "rental" { "Booked" } else { "Blocked" };
        let uid = format!("{kind}-{id}@rental-platform.invalid");
        expected.push(json!({"uid": uid, "start": start, "end": after, "summary": summary, "changed": changed}));
    }
    expected.push(json!({"name": name}));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{script}.ics"));
    fs::write(&file, read(&organization, &path).body).expect("the scratch directory is writable");
    if let Some(found) = run((variable, program), script, &[&file.to_string_lossy()]) {
        assert_eq!(found, expected, "{script}");
    }
}

#[test]
fn recurring_ical_events_for_python_takes_the_same_days() {
    check_taken("RENTAL_PYTHON", "python3", "taken.py");
}

#[test]
fn ical_js_for_node_takes_the_same_days() {
    check_taken("RENTAL_NODE", "node", "taken.mjs");
}

/// The script and this program find the same days in `tests/calendars/feeds`.
#[track_caller]
fn check_taken(variable: &str, program: &str, script: &str) {
    let [zone, first, last] = ["America/New_York", "2026-05-01", "2028-05-01"];
    let window = (Date::parse(first).unwrap(), Date::parse(last).unwrap());
    let reading = Reading { zone: Zone::parse(zone).unwrap(), window };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calendars/feeds");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let events = read_calendar(&fs::read(&file).unwrap(), &reading).expect("a calendar");
        let days: BTreeSet<_> = events.events.iter().map(|one| [one.start.to_string(), one.end.to_string()]).collect();
        assert!(days.len() > 1, "{}", file.display());
        let Some(found) = run((variable, program), script, &[&file.to_string_lossy(), zone, first, last]) else {
            return;
        };
        assert_eq!(found, [json!(days)], "{script} {}", file.display());
        files += 1;
    }
    assert_eq!(files, 7);
}

/// What the script prints, or `None` when the program or the package is not installed.
#[track_caller]
fn run((variable, program): (&str, &str), script: &str, arguments: &[&str]) -> Option<Vec<Value>> {
    let program = env::var(variable).unwrap_or_else(|_| program.to_owned());
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calendars").join(script);
    let Ok(output) = Command::new(&program).arg(place).args(arguments).output() else {
        return skip(script, &format!("cannot run {program}"));
    };
    if output.status.code() == Some(NOT_INSTALLED) {
        return skip(script, &format!("{program} does not find the package"));
    }
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    Some(text.lines().map(|line| serde_json::from_str(line).expect("one JSON a line")).collect())
}

/// Written past the test runner's capture, which hides the output of tests that pass.
#[track_caller]
fn skip<T>(script: &str, reason: &str) -> Option<T> {
    assert!(env::var_os("RENTAL_REQUIRE_ALL").is_none(), "{script}: {reason}");
    writeln!(std::io::stderr(), "skipped {script}: {reason}").expect("stderr is open");
    None
}
