//! `/v1/vehicles/{id}/calendar_feed` and `GET /calendar/TOKEN.ics`.

use super::{day, feed_of, read};
use crate::support::{Connection, Organization, Server};
use serde_json::{Value, json};

/// UID, first day, day after the last one and summary of each entry of a calendar.
#[track_caller]
fn entries(organization: &Organization<'_>, path: &str) -> Vec<[String; 4]> {
    let reply = read(organization, path);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/calendar; charset=utf-8")));
    let text = reply.text().replace("\r\n ", "");
    let field = |event: &str, name: &str| {
        let line = event.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in {event}"));
        line.split_once(':').unwrap().1.to_owned()
    };
    let names = ["UID", "DTSTART;VALUE=DATE", "DTEND;VALUE=DATE", "SUMMARY"];
    text.split("BEGIN:VEVENT").skip(1).map(|event| names.map(|name| field(event, name))).collect()
}

fn entry(uid: String, from: &str, to: &str, summary: &str) -> [String; 4] {
    [format!("{uid}@rental-platform.invalid"), from.replace('-', ""), to.replace('-', ""), summary.into()]
}

#[test]
fn a_feed_has_the_days_that_are_taken_and_nothing_about_customers() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let path = feed_of(&organization, &vehicle);
    assert_eq!(entries(&organization, &path), [[""; 4]; 0]);
    let booked =
        json!({"start_date": day(3), "end_date": day(5), "status": "APPROVED", "delivery_location": "Ada's home"});
    let rental = organization.rental(&vehicle, booked);
    organization.rental(&vehicle, json!({"start_date": day(7), "end_date": day(8), "status": "NEW"}));
    organization.rental(&vehicle, json!({"start_date": day(9), "end_date": day(9), "status": "CANCELLED"}));
    let body = json!({"vehicle_id": vehicle, "start_date": day(5), "end_date": day(5), "notes": "brakes"});
    let block = organization.post("/v1/blocks", &body).id();
    let past =
        organization.rental(&vehicle, json!({"start_date": day(-40), "end_date": day(-29), "status": "APPROVED"}));
    for (from, to) in [(-60, -50), (800, 805)] {
        organization.rental(&vehicle, json!({"start_date": day(from), "end_date": day(to), "status": "APPROVED"}));
    }
    let other = organization.vehicle(json!({}));
    organization.rental(&other, json!({"start_date": day(3), "end_date": day(5), "status": "APPROVED"}));
    let expected = [
        entry(format!("rental-{past}"), &day(-40), &day(-29), "Booked"),
        entry(format!("rental-{rental}"), &day(3), &day(5), "Booked"),
        // A day in and out is taken, and the day after it is free.
        entry(format!("block-{block}"), &day(5), &day(6), "Blocked"),
    ];
    assert_eq!(entries(&organization, &path), expected);
    let text = read(&organization, &path).text();
    for private in ["Ada", "brakes", "Test Customer"] {
        assert!(!text.contains(private), "{text}");
    }
    organization.patch(&format!("/v1/rentals/{rental}"), &json!({"end_date": day(4)})).ok();
    organization.patch(&format!("/v1/blocks/{block}"), &json!({"status": "cancelled"})).ok();
    let moved = entry(format!("rental-{rental}"), &day(3), &day(4), "Booked");
    assert_eq!(entries(&organization, &path), [expected[0].clone(), moved], "its UID stays");
}

#[test]
fn a_vehicle_that_is_out_beyond_its_planned_return_is_taken_today() {
    let organization = Server::shared().organization_with(&json!({"name": "UTC", "time_zone": "Etc/UTC"}));
    let [late, open] = [(); 2].map(|()| organization.vehicle(json!({})));
    let fields = json!({"start_date": day(-9), "end_date": day(-2), "status": "ACTIVE"});
    let rental = organization.rental(&late, fields);
    let without_end = organization.rental(&open, json!({"status": "ACTIVE", "activated_at": "2026-01-05T10:00:00Z"}));
    let path = feed_of(&organization, &late);
    let expected = [
        entry(format!("rental-{rental}"), &day(-9), &day(-2), "Booked"),
        entry(format!("out-{rental}"), &day(0), &day(1), "Booked"),
    ];
    assert_eq!(entries(&organization, &path), expected);
    let whole = entry(format!("out-{without_end}"), &day(0), &day(730), "Booked");
    assert_eq!(entries(&organization, &feed_of(&organization, &open)), [whole]);
    // The next customer got the vehicle, so it came back before, although nobody recorded that.
    let times =
        json!({"activated_at": format!("{}T10:00:00Z", day(-1)), "completed_at": format!("{}T12:00:00Z", day(-1))});
    let next = json!({"start_date": day(-1), "end_date": day(-1), "status": "COMPLETED"});
    let next = organization.rental(&late, next);
    organization.patch(&format!("/v1/rentals/{next}"), &times).ok();
    let kinds: Vec<String> = entries(&organization, &path).iter().map(|entry| format!("{entry:?}")).collect();
    assert!(!kinds.iter().any(|entry| entry.contains("out-")), "{kinds:?}");
}

#[test]
fn a_client_that_has_the_calendar_gets_304_until_it_changes() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let path = feed_of(&organization, &vehicle);
    let first = read(&organization, &path);
    let tag = first.header("etag").expect("a tag").to_owned();
    let again = || {
        let headers = [("If-None-Match", tag.as_str())];
        Connection::open(&organization.server.address).send("GET", &path, &headers, b"")
    };
    assert_eq!((again().status, again().text()), (304, String::new()));
    organization.rental(&vehicle, json!({"start_date": day(3), "end_date": day(5), "status": "APPROVED"}));
    let changed = again();
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
}

#[test]
fn a_new_path_replaces_the_old_one_and_a_revoked_one_ends() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let own = format!("/v1/vehicles/{vehicle}/calendar_feed");
    organization.get(&own).error(404, "invalid_request_error", "resource_missing");
    organization.call("DELETE", &own, &Value::Null).error(404, "invalid_request_error", "resource_missing");
    let first = feed_of(&organization, &vehicle);
    let shown = organization.get(&own).ok();
    assert_eq!((&shown["status"], &shown["vehicle_id"]), (&json!("active"), &json!(vehicle)));
    assert_eq!(shown.get("path"), None);
    let second = feed_of(&organization, &vehicle);
    assert_ne!(first, second);
    read(&organization, &first).error(404, "invalid_request_error", "resource_missing");
    assert_eq!(read(&organization, &second).status, 200);
    assert_eq!(organization.call("DELETE", &own, &Value::Null).ok()["status"], "revoked");
    read(&organization, &second).error(404, "invalid_request_error", "resource_missing");
}

#[test]
fn a_replayed_request_shows_no_path_and_makes_no_other() {
    let organization = Server::shared().organization();
    let own = format!("/v1/vehicles/{}/calendar_feed", organization.vehicle(json!({})));
    let make = || organization.call_with("POST", &own, &[("Idempotency-Key", "feed-1")], &json!({}));
    let path = make().ok()["path"].as_str().unwrap().to_owned();
    assert_eq!(make().ok().get("path"), None);
    assert_eq!(read(&organization, &path).status, 200);
}

#[test]
fn a_changed_or_foreign_token_is_the_same_404_as_nonsense() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let vehicle = organization.vehicle(json!({}));
    let path = feed_of(&organization, &vehicle);
    let foreign = feed_of(&other, &other.vehicle(json!({})));
    let token = path.trim_start_matches("/calendar/").trim_end_matches(".ics").to_owned();
    let foreign = foreign.trim_start_matches("/calendar/").to_owned();
    let last = if token.ends_with('0') { '1' } else { '0' };
    let guesses = [
        format!("{}{last}.ics", &token[..111]),
        format!("{}.ics", token.to_uppercase()),
        // The ids of one's own vehicle with the random part of another feed.
        format!("{}{}", &token[..64], &foreign[64..]),
        token.clone(),
        format!("{token}0.ics"),
        "x.ics".to_owned(),
    ];
    for guess in guesses {
        read(&organization, &format!("/calendar/{guess}")).error(404, "invalid_request_error", "resource_missing");
    }
    read(&organization, &format!("{path}?x=1")).error(400, "invalid_request_error", "parameter_unknown");
}

#[test]
fn an_organization_on_the_free_plan_has_no_calendars() {
    let organization = Server::shared().organization();
    let path = feed_of(&organization, &organization.vehicle(json!({})));
    let own = format!("/admin/v1/organizations/{}", organization.id);
    organization.server.admin("PATCH", &own, &json!({"plan": "free"})).ok();
    read(&organization, &path).error(403, "permission_error", "plan_required");
}

#[test]
fn a_token_is_in_no_log_no_event_no_export_and_no_metric() {
    let server = Server::start(&["--log-level", "debug"]);
    let organization = server.organization();
    let vehicle = organization.vehicle(json!({}));
    let first = feed_of(&organization, &vehicle);
    let path = feed_of(&organization, &vehicle);
    for path in [&first, &path] {
        read(&organization, path);
        // People paste the address into other places too.
        for wrong in [format!("/v1{path}"), format!("{path}/"), format!("/v1/vehicles/{path}"), path.to_uppercase()] {
            assert!([404, 405].contains(&read(&organization, &wrong).status), "{wrong}");
        }
        Connection::open(&server.address).send("POST", path, &[], b"{}");
    }
    let export = server.admin("GET", &format!("/admin/v1/organizations/{}/export", organization.id), &Value::Null);
    let places = [
        ("log", server.log()),
        ("events", organization.get("/v1/events?limit=100").text()),
        ("export", export.text()),
        ("metrics", Connection::open(&server.address).send("GET", "/metrics", &[], b"").text()),
        ("audit", server.admin("GET", "/admin/v1/audit_entries", &Value::Null).text()),
    ];
    assert!(places[0].1.contains("/calendar/…"), "the log has a line for each request");
    for (place, text) in places {
        for secret in [&first, &path] {
            let random = &secret["/calendar/".len() + 64..secret.len() - 4];
            assert!(!text.to_lowercase().contains(&random[..16]), "{place} shows a token");
        }
    }
}

#[test]
fn a_wrong_token_counts_as_a_failed_authentication() {
    let server = Server::start(&[]);
    let organization = server.organization();
    read(&organization, "/calendar/guess.ics").error(404, "invalid_request_error", "resource_missing");
    let page = Connection::open(&server.address).send("GET", "/metrics", &[], b"").text();
    let line = "rental_authentication_failures_total{surface=\"calendar\",reason=\"invalid\"} 1";
    assert!(page.lines().any(|found| found == line), "{page}");
}

#[test]
fn readers_of_calendars_have_a_limit_and_take_nothing_from_the_keys() {
    let server = Server::start(&[]);
    let organization = server.organization();
    let path = feed_of(&organization, &organization.vehicle(json!({})));
    let own = format!("/admin/v1/organizations/{}", organization.id);
    server.admin("PATCH", &own, &json!({"max_requests_per_second": 1})).ok();
    let refused = (0..8).map(|_| read(&organization, &path)).find(|reply| reply.status == 429).expect("a limit");
    refused.error(429, "rate_limit_error", "rate_limited");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(organization.get("/v1/vehicles").status, 200);
}
