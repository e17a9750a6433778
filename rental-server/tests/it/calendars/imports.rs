//! `/v1/calendar_feeds`: calendars of others become blocks. The server of the calendars can lie, change and break off.

use super::day;
use crate::{
    events_in_store::stop,
    support::{Connection, Organization, Server, flip},
};
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// A server that gives the same response to every request, until it gets another one.
pub(super) struct Calendars {
    pub(super) url: String,
    response: Arc<Mutex<Vec<u8>>>,
}

impl Calendars {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/secret-path/calendar.ics?s=secret-query", listener.local_addr().unwrap());
        let response: Arc<Mutex<Vec<u8>>> = Arc::default();
        let shown = Arc::clone(&response);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let shown = shown.lock().unwrap().clone();
                std::thread::spawn(move || {
                    let _ = stream.read(&mut [0; 4096]);
                    let _ = stream.write_all(&shown);
                });
            }
        });
        Self { url, response }
    }

    pub(super) fn raw(&self, head: &str, body: &[u8]) {
        let head = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
        *self.response.lock().unwrap() = [head.as_bytes(), body].concat();
    }

    /// Events with these UIDs and days, with an ETag.
    pub(super) fn show(&self, events: &[(&str, String, String)]) {
        let mut text = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n".to_owned();
        for (uid, from, to) in events {
            let days = [from, to].map(|day| day.replace('-', ""));
            text += &format!(
                "BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTART;VALUE=DATE:{}\r\nDTEND;VALUE=DATE:{}\r\nSUMMARY:Reserved\r\nEND:VEVENT\r\n",
                days[0], days[1]
            );
        }
        self.raw("200 OK\r\nETag: \"any\"", format!("{text}END:VCALENDAR\r\n").as_bytes());
    }
}

/// Reads the feed now, and waits for the end of this reading.
#[track_caller]
pub(super) fn polled(organization: &Organization<'_>, id: &str) -> Value {
    let path = format!("/v1/calendar_feeds/{id}");
    let before = organization.get(&path).ok();
    organization.post(&format!("{path}/poll"), &json!({})).ok();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let now = organization.get(&path).ok();
        if now["updated_at"] != before["updated_at"] && now["status"] != "pending" {
            return now;
        }
        assert!(Instant::now() < deadline, "it is not read: {now}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Days and status of the blocks of a feed that were not cancelled.
#[track_caller]
pub(super) fn blocks(organization: &Organization<'_>, id: &str) -> Vec<[String; 3]> {
    let list = organization.get(&format!("/v1/blocks?calendar_feed={id}&limit=100")).ok();
    let all = list["data"].as_array().unwrap().iter().filter(|one| one["status"] != "cancelled");
    let mut all: Vec<_> = all
        .map(|one| ["start_date", "end_date", "status"].map(|name| one[name].as_str().unwrap().to_owned()))
        .collect();
    all.sort();
    all
}

pub(super) fn block(from: i64, to: i64, status: &str) -> [String; 3] {
    [day(from), day(to), status.to_owned()]
}

#[test]
fn a_damaged_block_keeps_no_other_event_from_becoming_a_block() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_on_file(directory.path(), &["--webhook-allow-private"]);
    let organization = server.organization_with(&json!({"name": "UTC", "time_zone": "Etc/UTC"}));
    let (vehicle, calendars) = (organization.vehicle(json!({})), Calendars::start());
    calendars.show(&[("break-me-here", day(3), day(5)), ("b", day(10), day(11))]);
    let made = organization.post("/v1/calendar_feeds", &json!({"vehicle_id": vehicle, "url": calendars.url})).ok();
    let feed = made["id"].as_str().unwrap().to_owned();
    assert_eq!(polled(&organization, &feed)["events"], 2);
    let (id, read, write) = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    drop(organization);
    stop(server);
    flip(&directory.path().join("store.redb"), "break-me-here");

    let server = Server::start_on_file(directory.path(), &["--webhook-allow-private"]).expecting_errors("damaged");
    let organization = Organization { server: &server, id, read, write };
    calendars.show(&[("break-me-here", day(3), day(5)), ("b", day(12), day(13)), ("c", day(20), day(21))]);
    let read = polled(&organization, &feed);
    assert_eq!((&read["status"], &read["events"]), (&json!("ok"), &json!(3)), "{read}");
    let found = blocks(&organization, &feed);
    for wanted in [block(12, 13, "active"), block(20, 21, "active")] {
        assert!(found.contains(&wanted), "{found:?}");
    }
}

/// Calendars drop events that have begun, and so their blocks stay.
#[test]
fn a_block_of_an_event_that_began_and_is_gone_can_be_cancelled_by_a_person() {
    let server = Server::start(&["--webhook-allow-private"]);
    let organization = server.organization_with(&json!({"name": "UTC", "time_zone": "Etc/UTC"}));
    let (vehicle, calendars) = (organization.vehicle(json!({})), Calendars::start());
    calendars.show(&[("long", day(-5), day(60)), ("later", day(70), day(72))]);
    let made = organization.post("/v1/calendar_feeds", &json!({"vehicle_id": vehicle, "url": calendars.url})).ok();
    let id = made["id"].as_str().unwrap();
    assert_eq!(polled(&organization, id)["events"], 2);
    calendars.show(&[("later", day(70), day(72))]);
    assert_eq!(polled(&organization, id)["events"], 1);
    assert_eq!(blocks(&organization, id), [block(-5, 60, "active"), block(70, 72, "active")]);
    let booked = json!({"vehicle_id": vehicle, "customer_id": organization.customer(json!({})), "start_date": day(30), "end_date": day(32), "status": "APPROVED"});
    organization.post("/v1/rentals", &booked).error(409, "invalid_request_error", "vehicle_unavailable");
    let list = organization.get(&format!("/v1/blocks?calendar_feed={id}&limit=100")).ok();
    let of = |start: String| {
        let found = list["data"].as_array().unwrap().iter().find(|one| one["start_date"] == start);
        format!("/v1/blocks/{}", found.unwrap()["id"].as_str().unwrap())
    };
    let (long, later) = (of(day(-5)), of(day(70)));
    let refused = |path: &str, body: Value| {
        organization.patch(path, &body).error(400, "invalid_request_error", "parameter_invalid");
    };
    refused(&later, json!({"status": "cancelled"}));
    refused(&long, json!({"end_date": day(10)}));
    refused(&long, json!({"status": "cancelled", "end_date": day(10)}));
    organization.patch(&long, &json!({"status": "cancelled"})).ok();
    organization.post("/v1/rentals", &booked).ok();
    assert_eq!(polled(&organization, id)["conflicts"], 0);
    assert_eq!(blocks(&organization, id), [block(70, 72, "active")], "it stays cancelled");
}

#[test]
fn events_become_blocks_that_follow_them_and_clashes_are_listed() {
    let server = Server::start(&["--webhook-allow-private", "--log-level", "debug"]);
    let organization = server.organization_with(&json!({"name": "UTC", "time_zone": "Etc/UTC"}));
    let (vehicle, calendars) = (organization.vehicle(json!({})), Calendars::start());
    let rental =
        organization.rental(&vehicle, json!({"start_date": day(20), "end_date": day(22), "status": "APPROVED"}));
    let own = json!({"vehicle_id": vehicle, "start_date": day(40), "end_date": day(41)});
    let by_hand = organization.post("/v1/blocks", &own).id();
    calendars.show(&[("a", day(3), day(5)), ("b", day(21), day(24)), ("c", day(-9), day(-7))]);
    let made = organization.post("/v1/calendar_feeds", &json!({"vehicle_id": vehicle, "url": calendars.url})).ok();
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["url"], "http://127.0.0.1/...");
    let read = polled(&organization, id);
    assert_eq!((&read["status"], &read["events"], &read["conflicts"]), (&json!("ok"), &json!(2), &json!(1)), "{read}");
    assert_eq!(blocks(&organization, id), [block(3, 5, "active"), block(21, 24, "conflict")]);
    let conflicts = organization.get(&format!("/v1/blocks?calendar_feed={id}&status=conflict")).ok();
    assert_eq!(conflicts["data"][0]["conflicts_with"], format!("rental {rental}"));
    // A rental over a block of the feed is refused, and nobody moves the block by hand.
    let held = json!({"vehicle_id": vehicle, "customer_id": organization.customer(json!({})), "start_date": day(4), "end_date": day(5), "status": "APPROVED"});
    organization.post("/v1/rentals", &held).error(409, "invalid_request_error", "vehicle_unavailable");
    let first = organization.get(&format!("/v1/blocks?calendar_feed={id}&status=active")).ok()["data"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    organization.patch(&format!("/v1/blocks/{first}"), &json!({"status": "cancelled"})).error(
        400,
        "invalid_request_error",
        "parameter_invalid",
    );
    // An event moves, one has another UID, and the clash is over.
    organization.patch(&format!("/v1/rentals/{rental}"), &json!({"status": "CANCELLED"})).ok();
    calendars.show(&[("a", day(4), day(6)), ("other", day(21), day(24))]);
    assert_eq!(polled(&organization, id)["conflicts"], 0);
    assert_eq!(blocks(&organization, id), [block(4, 6, "active"), block(21, 24, "active")]);
    assert_eq!(organization.get(&format!("/v1/blocks/{first}")).ok()["start_date"], day(4), "the same block");
    // What cannot be read changes nothing.
    let whole = blocks(&organization, id);
    let lies: [(&str, Vec<u8>, &str); 5] = [
        ("200 OK", b"<html>login</html>".to_vec(), "web page"),
        ("200 OK\r\nContent-Length: 100", b"BEGIN:VCALENDAR".to_vec(), "cut off"),
        ("200 OK", vec![b'x'; 5 << 20], "larger than"),
        ("410 Gone", Vec::new(), "not there any more"),
        ("302 Found\r\nLocation: http://127.0.0.1:1/", Vec::new(), "redirects are not followed"),
    ];
    for (head, body, words) in lies {
        calendars.raw(head, &body);
        let read = polled(&organization, id);
        assert_eq!(read["status"], "failing", "{read}");
        assert!(read["last_error"].as_str().unwrap().contains(words), "{read}");
        assert_eq!(blocks(&organization, id), whole);
        // Each further failure in a row would double the time that a poll waits.
        calendars.show(&[("a", day(4), day(6)), ("other", day(21), day(24))]);
        assert_eq!(polled(&organization, id)["last_error"], Value::Null);
    }
    // A calendar that is the same needs no body. The server must have sent the ETag, or a 304 would be a failure.
    calendars.show(&[("a", day(4), day(6)), ("other", day(21), day(24))]);
    assert_eq!(polled(&organization, id)["status"], "ok");
    calendars.raw("304 Not Modified", b"");
    assert_eq!(polled(&organization, id)["status"], "ok");
    assert_eq!(blocks(&organization, id), whole);
    // An event that is gone frees its days; a deleted feed frees all of them, and nothing else.
    calendars.show(&[("a", day(4), day(6))]);
    assert_eq!(polled(&organization, id)["status"], "ok");
    assert_eq!(blocks(&organization, id), [block(4, 6, "active")]);
    organization.call("DELETE", &format!("/v1/calendar_feeds/{id}"), &Value::Null).ok();
    nothing_has_the_address(&organization);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !blocks(&organization, id).is_empty() {
        assert!(Instant::now() < deadline, "the blocks stay");
        std::thread::sleep(Duration::from_millis(20));
    }
    organization.get(&format!("/v1/calendar_feeds/{id}")).error(404, "invalid_request_error", "resource_missing");
    assert_eq!(organization.get(&format!("/v1/blocks/{by_hand}")).ok()["status"], "active");
    nothing_has_the_address(&organization);
}

/// A calendar with years of events has a broken one.
#[test]
fn an_event_that_cannot_be_read_is_named_and_the_others_become_blocks() {
    let server = Server::start(&["--webhook-allow-private"]);
    let organization = server.organization_with(&json!({"name": "UTC", "time_zone": "Etc/UTC"}));
    let (vehicle, calendars) = (organization.vehicle(json!({})), Calendars::start());
    let was = |to: &str| ("old", "2015-06-02".to_owned(), to.to_owned());
    calendars.show(&[was("2015-06-01"), ("a", day(3), day(5)), ("b", day(10), day(12))]);
    let made = organization.post("/v1/calendar_feeds", &json!({"vehicle_id": vehicle, "url": calendars.url})).ok();
    let id = made["id"].as_str().unwrap();
    let read = polled(&organization, id);
    let told = "In the calendar, the event old in line 3 ends before it begins, so it was left out.";
    assert_eq!((&read["status"], &read["last_error"], &read["events"]), (&json!("ok"), &json!(told), &json!(2)));
    assert_eq!(blocks(&organization, id), [block(3, 5, "active"), block(10, 12, "active")]);
    // A calendar that is the same has the same problem.
    calendars.raw("304 Not Modified", b"");
    assert_eq!(polled(&organization, id)["last_error"], told);
    // The nights of an event that can no longer be read stay taken.
    calendars.show(&[("a", day(3), day(2)), ("b", day(11), day(13))]);
    assert!(polled(&organization, id)["last_error"].as_str().unwrap().contains("the event a in line 3"));
    assert_eq!(blocks(&organization, id), [block(3, 5, "active"), block(11, 13, "active")]);
    calendars.show(&[("b", day(11), day(13))]);
    assert_eq!(polled(&organization, id)["last_error"], Value::Null);
    assert_eq!(blocks(&organization, id), [block(11, 13, "active")]);
}

/// The address of a feed is a secret, and only the sealed row has it.
#[track_caller]
fn nothing_has_the_address(organization: &Organization<'_>) {
    let server = organization.server;
    let admin = |path: &str| server.admin("GET", path, &Value::Null).text();
    let places = [
        ("log", server.log()),
        ("list", organization.get("/v1/calendar_feeds").text()),
        ("blocks", organization.get("/v1/blocks?limit=100").text()),
        ("events", organization.get("/v1/events?limit=100").text()),
        ("export", admin(&format!("/admin/v1/organizations/{}/export", organization.id))),
        ("audit", admin("/admin/v1/audit_entries?limit=100")),
        ("metrics", Connection::open(&server.address).send("GET", "/metrics", &[], b"").text()),
    ];
    for (place, text) in places {
        let found = text.lines().find(|line| line.contains("secret-"));
        assert!(!text.is_empty() && found.is_none(), "{place} has the address: {found:?}");
    }
}

#[test]
fn a_private_address_is_refused() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    for url in ["http://127.0.0.1/a.ics", "http://localhost/a.ics", "http://[::1]/a.ics", "http://169.254.169.254/"] {
        let refused = organization.post("/v1/calendar_feeds", &json!({"vehicle_id": vehicle, "url": url}));
        assert_eq!(refused.bad_fields(), [("url".to_owned(), "parameter_invalid".to_owned())], "{url}");
        assert!(!refused.text().contains("a.ics"), "{url}");
    }
}

/// `\n` in a text of a calendar is a line feed, which no stored text has.
#[test]
fn uids_with_control_characters_name_one_block_each_and_all_of_them_go() {
    let server = Server::start(&["--webhook-allow-private"]);
    let organization = server.organization_with(&json!({"name": "UTC", "time_zone": "Etc/UTC"}));
    let (vehicle, calendars) = (organization.vehicle(json!({})), Calendars::start());
    let uids = [r"a\nb", "ab", r"a\n\nb"];
    let events: Vec<_> = uids.iter().zip(1_i64..).map(|(uid, at)| (*uid, day(10 * at), day(10 * at + 2))).collect();
    calendars.show(&events);
    let made = organization.post("/v1/calendar_feeds", &json!({"vehicle_id": vehicle, "url": calendars.url})).ok();
    let id = made["id"].as_str().unwrap();
    let all = [block(10, 12, "active"), block(20, 22, "active"), block(30, 32, "active")];
    for _ in 0..3 {
        assert_eq!(polled(&organization, id)["conflicts"], 0);
        assert_eq!(blocks(&organization, id), all);
    }
    calendars.show(&events[..1]);
    polled(&organization, id);
    assert_eq!(blocks(&organization, id), all[..1]);
    calendars.show(&[]);
    polled(&organization, id);
    assert!(blocks(&organization, id).is_empty());
}

#[test]
fn a_vehicle_has_ten_feeds_however_many_are_made_at_once() {
    let server = Server::start(&["--webhook-allow-private"]);
    let organization = server.organization();
    let (vehicle, calendars) = (organization.vehicle(json!({})), Calendars::start());
    calendars.show(&[]);
    let feed = json!({"vehicle_id": vehicle, "url": calendars.url});
    let make = || loop {
        let reply = organization.post("/v1/calendar_feeds", &feed);
        // Too many at once.
        if reply.status != 503 {
            return reply.status;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..40).map(|_| scope.spawn(make)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let count = |status| statuses.iter().filter(|one| **one == status).count();
    assert_eq!((count(200), count(409)), (10, 30), "{statuses:?}");
    let list = organization.get(&format!("/v1/calendar_feeds?vehicle={vehicle}&limit=100")).ok();
    assert_eq!(list["data"].as_array().unwrap().len(), 10);
}

/// Two calendars in one file with one UID, and UIDs that are what other events are named.
#[test]
fn events_whose_names_collide_have_one_block_each_and_all_of_them_go() {
    let server = Server::start(&["--webhook-allow-private"]);
    let organization = server.organization_with(&json!({"name": "UTC", "time_zone": "Etc/UTC"}));
    let (vehicle, calendars) = (organization.vehicle(json!({})), Calendars::start());
    let event = |uid: &str, from: i64, more: &str| {
        let days = [from, from + 2].map(|at| day(at).replace('-', ""));
        format!(
            "BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:{}\r\nDTEND;VALUE=DATE:{}\r\n{more}END:VEVENT\r\n",
            days[0], days[1]
        )
    };
    let show = |parts: &[String]| {
        let text: String =
            parts.iter().map(|part| format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{part}END:VCALENDAR\r\n")).collect();
        calendars.raw("200 OK", text.as_bytes());
    };
    let named = format!("x#{}/{}", day(20), day(22));
    let first = event("x", 10, "") + &event(&named, 30, "") + &event("y", 40, "RRULE:FREQ=WEEKLY;COUNT=2\r\n");
    let all = [first, event("x", 20, "")];
    show(&all);
    let made = organization.post("/v1/calendar_feeds", &json!({"vehicle_id": vehicle, "url": calendars.url})).ok();
    let id = made["id"].as_str().unwrap();
    let expected = [10, 20, 30, 40, 47].map(|at| block(at, at + 2, "active"));
    for reversed in [false, false, true, true, false] {
        let mut parts = all.clone();
        if reversed {
            parts.reverse();
        }
        show(&parts);
        assert_eq!(polled(&organization, id)["conflicts"], 0);
        assert_eq!(blocks(&organization, id), expected, "reversed: {reversed}");
    }
    show(&[event("x", 20, "")]);
    polled(&organization, id);
    assert_eq!(blocks(&organization, id), [block(20, 22, "active")]);
    show(&[String::new()]);
    polled(&organization, id);
    assert!(blocks(&organization, id).is_empty());
}
