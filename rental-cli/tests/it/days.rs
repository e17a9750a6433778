//! Days and times as people type them, in the zone of the organization.

use crate::fake_server::{FakeServer, Ran, ok};

const ME: &str =
    r#"{"object":"me","organization_id":"0190d0f2-7c3a-7cc0-8000-000000000009","time_zone":"Pacific/Kiritimati"}"#;
const EMPTY: &str = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[]}"#;

/// The requests of a command, without the version of the API.
fn asked(replies: &[&str], args: &[&str]) -> Vec<String> {
    let server = FakeServer::new(replies.iter().map(|reply| ok(reply)).collect());
    let ran = server.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    server.asked().into_iter().map(|asked| format!("{} {}", asked.line, asked.body)).collect()
}

/// The day of a query parameter or member.
fn day(text: &str, before: &str) -> String {
    let (_, after) = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}"));
    after.chars().take(10).collect()
}

#[test]
fn a_day_that_is_named_is_one_of_the_organization() {
    let asked = asked(&[ME, EMPTY], &["vehicles", "available", "--from", "today", "--to", "+7d"]);
    assert_eq!((asked.len(), asked[0].as_str()), (2, "GET /v1/me "), "{asked:?}");
    let [from, to] = ["from=", "&to="].map(|name| rental_core::value::Date::parse(&day(&asked[1], name)).unwrap());
    assert_eq!(from.nights_until(to), 7);
}

#[test]
fn a_day_is_the_time_of_its_beginning() {
    for (flag, zone, expected) in [
        ("--created-gte", ME, "created%5Bgte%5D=2026-10-31T10%3A00%3A00.000Z"),
        ("--updated-lt", r#"{"object":"me"}"#, "updated%5Blt%5D=2026-11-01T00%3A00%3A00.000Z"),
    ] {
        let server = FakeServer::new(vec![ok(zone), ok(EMPTY)]);
        let ran = Ran::of(server.command(&["rentals", "list", flag, "2026-11-01"]).env("TZ", "UTC"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let asked = server.asked();
        assert!(asked[1].line.contains(expected), "{}", asked[1].line);
    }
}

#[test]
fn what_the_api_takes_is_sent_as_typed_and_asks_for_no_zone() {
    let start = ["rentals", "list", "--start-date-gte", "2026-11-01", "--created-gte", "2026-05-05T09:30:00+02:00"];
    let asked = asked(&[EMPTY], &start);
    assert_eq!(asked.len(), 1);
    assert!(asked[0].contains("start_date%5Bgte%5D=2026-11-01&"), "{asked:?}");
    assert!(asked[0].contains("2026-05-05T09%3A30%3A00%2B02%3A00"), "{asked:?}");
}

#[test]
fn fields_take_days_too_and_a_missing_value_is_no_day() {
    let id = "0190d0f2-7c3a-7cc0-8000-000000000001";
    let rental = r#"{"object":"rental","id":"1"}"#;
    let update = ["rentals", "update", id, "--start-date", "-1d", "--end-date", "+2d", "--completed-at", "today"];
    let asked = asked(&[ME, rental], &update);
    let [start, end] = [r#""start_date":""#, r#""end_date":""#]
        .map(|name| rental_core::value::Date::parse(&day(&asked[1], name)).unwrap());
    assert_eq!(start.nights_until(end), 3);
    assert!(asked[1].contains("T10:00:00.000Z\"}"), "midnight 14 hours ahead of UTC: {asked:?}");
    let refused =
        FakeServer::new(vec![ok(rental)]).run(&["rentals", "update", id, "--start-date", "--end-date", "today"]);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("a value is required for '--start-date"),
        "{}",
        refused.stderr
    );
}
