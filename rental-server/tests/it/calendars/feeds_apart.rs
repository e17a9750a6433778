//! One calendar feed beside others: of another server, of another scheme, damaged, and left out of the vehicle's own calendar.

use super::{
    day, feed_of,
    imports::{Calendars, block, blocks, polled},
    read,
};
use crate::{
    events_in_store::stop,
    support::{Organization, Server, database, flip},
    webhooks::metric,
};
use serde_json::json;
use std::{
    collections::HashMap,
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const PRIVATE: &str = "--webhook-allow-private";

#[track_caller]
fn made(organization: &Organization<'_>, vehicle: &str, url: &str) -> String {
    organization.post("/v1/calendar_feeds", &json!({"vehicle_id": vehicle, "url": url})).id()
}

#[test]
fn the_scheme_of_calendars_means_https() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    for scheme in ["webcal", "webcals", "WebCal", "https"] {
        let url = format!("{scheme}://calendars.example.com/a.ics");
        let made = organization.post("/v1/calendar_feeds", &json!({"vehicle_id": vehicle, "url": url})).ok();
        assert_eq!(made["url"], "https://calendars.example.com/...", "{scheme}");
    }
    for url in ["webcal://127.0.0.1/a.ics", "webcal:calendars.example.com", "ftp://calendars.example.com/a.ics"] {
        let refused = organization.post("/v1/calendar_feeds", &json!({"vehicle_id": vehicle, "url": url}));
        assert_eq!(refused.bad_fields(), [("url".to_owned(), "parameter_invalid".to_owned())], "{url}");
    }
    // A duplicate key is refused whatever its values are.
    for [first, second] in [["https", "https"], ["https", "webcal"], ["webcal", "https"], ["webcal", "webcal"]] {
        let url = |scheme: &str| format!("\"url\":\"{scheme}://calendars.example.com/a.ics\"");
        let body = format!("{{\"vehicle_id\":\"{vehicle}\",{},{}}}", url(first), url(second));
        let refused = organization.raw("POST", "/v1/calendar_feeds", &[], body.as_bytes());
        let duplicate = ("url".to_owned(), "parameter_duplicate".to_owned());
        assert!(refused.bad_fields().contains(&duplicate), "{first} {second}: {}", refused.text());
    }
    // Webhooks are not sent to calendars.
    let hook = json!({"organization_id": organization.id, "url": "webcal://hooks.example.com/", "event_types": ["*"]});
    let refused = organization.server.admin("POST", "/admin/v1/webhook_endpoints", &hook);
    assert!(refused.bad_fields().contains(&("url".to_owned(), "parameter_invalid".to_owned())), "{}", refused.text());
}

#[test]
fn the_calendar_of_a_vehicle_without_a_feed_has_everything_but_its_blocks() {
    let server = Server::start(&[PRIVATE]);
    let organization = server.organization_with(&json!({"name": "UTC", "time_zone": "Etc/UTC"}));
    let vehicle = organization.vehicle(json!({}));
    let path = feed_of(&organization, &vehicle);
    let feeds = [("a", 3), ("b", 6)].map(|(uid, from)| {
        let calendars = Calendars::start();
        calendars.show(&[(uid, day(from), day(from + 1))]);
        let id = made(&organization, &vehicle, &calendars.url);
        assert_eq!(polled(&organization, &id)["events"], 1);
        id
    });
    let days = |query: &str| {
        let text = read(&organization, &format!("{path}{query}")).text();
        let days = |line: &str| Some(line.strip_prefix("DTSTART;VALUE=DATE:")?.to_owned());
        text.lines().filter_map(days).collect::<Vec<_>>()
    };
    let [first, second] = [3, 6].map(|from| day(from).replace('-', ""));
    assert_eq!(days(""), [first.clone(), second.clone()]);
    assert_eq!(days(&format!("?without={}", feeds[0])), [second]);
    assert_eq!(days(&format!("?without={}", feeds[1])), [first]);
    let refused = read(&organization, &format!("{path}?without=nonsense"));
    assert_eq!(refused.bad_fields(), [("without".to_owned(), "parameter_invalid".to_owned())]);
}

#[test]
fn a_damaged_feed_keeps_no_other_from_being_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let organization = server.organization_with(&json!({"name": "UTC", "time_zone": "Etc/UTC"}));
    let vehicle = organization.vehicle(json!({}));
    let [damaged, sound] = [Calendars::start(), Calendars::start()];
    let body = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR";
    damaged.raw("200 OK\r\nETag: \"break-me-here\"", body.as_bytes());
    sound.show(&[("a", day(3), day(5))]);
    let [broken, other] = [&damaged, &sound].map(|calendars| {
        let id = made(&organization, &vehicle, &calendars.url);
        assert_eq!(polled(&organization, &id)["status"], "ok");
        id
    });
    let (id, read, write) = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    drop(organization);
    stop(server);
    flip(&directory.path().join("store.redb"), "break-me-here");

    let server = Server::start_on_file(directory.path(), &[PRIVATE]).expecting_errors("damaged");
    let organization = Organization { server: &server, id, read, write };
    sound.show(&[("a", day(4), day(6))]);
    assert_eq!(polled(&organization, &other)["status"], "ok");
    assert_eq!(blocks(&organization, &other), [block(4, 6, "active")]);
    assert_eq!(organization.get(&format!("/v1/calendar_feeds/{broken}")).ok()["status"], "ok", "as it was");
    assert_eq!(organization.post(&format!("/v1/calendar_feeds/{broken}/poll"), &json!({})).status, 500);
    assert_eq!(metric(&server, "rental_damaged_rows_total"), 1.0);
    let lines = server.log().lines().filter(|line| line.contains("it is skipped")).count();
    assert_eq!(lines, 1, "it is logged once");
}

#[test]
fn feeds_that_nobody_read_before_the_start_are_read_after_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE, "--no-webhooks"]);
    let organization = server.organization_with(&json!({"name": "UTC", "time_zone": "Etc/UTC"}));
    let calendars = Calendars::start();
    calendars.show(&[("a", day(3), day(5))]);
    let feeds = [(); 3].map(|()| made(&organization, &organization.vehicle(json!({})), &calendars.url));
    let (id, read, write) = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    drop(organization);
    stop(server);

    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let organization = Organization { server: &server, id, read, write };
    let deadline = Instant::now() + Duration::from_secs(30);
    for feed in feeds {
        while organization.get(&format!("/v1/calendar_feeds/{feed}")).ok()["status"] != "ok" {
            assert!(Instant::now() < deadline, "it is not read");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(blocks(&organization, &feed), [block(3, 5, "active")]);
    }
}

#[test]
#[ignore = "waits five minutes"]
fn a_feed_that_another_server_was_told_to_read_and_could_not_is_read_within_five_minutes() {
    let Some(database) = database() else { return };
    let reader = Server::start_on(&database, &[PRIVATE]);
    let told = Server::start_on(&database, &[PRIVATE, "--no-webhooks"]);
    let calendars = Calendars::start();
    calendars.show(&[("a", day(3), day(5))]);
    let here = reader.organization();
    let organization = here.by_way_of(&told);
    let feed = made(&organization, &organization.vehicle(json!({})), &calendars.url);
    let deadline = Instant::now() + Duration::from_secs(330);
    while organization.get(&format!("/v1/calendar_feeds/{feed}")).ok()["status"] != "ok" {
        assert!(Instant::now() < deadline, "it is not read");
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(blocks(&organization, &feed), [block(3, 5, "active")]);
}

/// How often each path was read, now and at most at a time.
type Seen = Arc<Mutex<HashMap<String, (usize, usize, usize)>>>;

/// A server of calendars that are empty and take a while.
fn slow_calendars(pause: Duration) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let known = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let known = Arc::clone(&known);
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                let length = stream.read(&mut head).unwrap_or(0);
                let line = String::from_utf8_lossy(&head[..length]);
                let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                let count = |by: &dyn Fn(&mut (usize, usize, usize))| {
                    by(known.lock().unwrap().entry(path.clone()).or_default())
                };
                count(&|(times, present, most)| {
                    (*times, *present) = (*times + 1, *present + 1);
                    *most = (*most).max(*present);
                });
                std::thread::sleep(pause);
                count(&|(_, present, _)| *present -= 1);
                let _ = stream.write_all(
                    b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nBEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n",
                );
            });
        }
    });
    (url, seen)
}

#[test]
fn two_servers_on_one_database_never_read_a_feed_twice_at_once() {
    let Some(database) = database() else { return };
    let servers = [(); 2].map(|()| Server::start_on(&database, &[PRIVATE]));
    let here = servers[0].organization();
    let both = [here.by_way_of(&servers[0]), here.by_way_of(&servers[1])];
    let (url, seen) = slow_calendars(Duration::from_millis(300));
    let feeds = [1, 2, 3, 4].map(|n| made(&here, &here.vehicle(json!({})), &format!("{url}/{n}.ics")));
    let times = || seen.lock().unwrap().values().map(|(times, ..)| *times).sum::<usize>();
    for round in 1..=4 {
        let deadline = Instant::now() + Duration::from_secs(60);
        while times() < round * feeds.len() {
            assert!(Instant::now() < deadline, "{:?}", seen.lock().unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
        // After this reading. It was less than two seconds ago, so both servers wait for the same moment.
        std::thread::sleep(Duration::from_millis(600));
        for organization in &both {
            for feed in &feeds {
                let polled = || organization.post(&format!("/v1/calendar_feeds/{feed}/poll"), &json!({}));
                let mut reply = polled();
                while reply.status == 503 || reply.status == 409 {
                    reply = polled();
                }
                reply.ok();
            }
        }
    }
    let seen = seen.lock().unwrap().clone();
    assert!(seen.len() == feeds.len() && seen.values().all(|(.., most)| *most == 1), "{seen:?}");
}

#[test]
fn a_poll_at_another_server_during_a_reading_begins_no_second_one_beside_it() {
    let Some(database) = database() else { return };
    let servers = [(); 2].map(|()| Server::start_on(&database, &[PRIVATE]));
    let here = servers[0].organization();
    let both = [here.by_way_of(&servers[0]), here.by_way_of(&servers[1])];
    // Longer than the two seconds after which a feed may be read again.
    let (url, seen) = slow_calendars(Duration::from_secs(5));
    let feed = made(&here, &here.vehicle(json!({})), &format!("{url}/slow.ics"));
    let seen = || seen.lock().unwrap().values().next().copied().unwrap_or_default();
    let until = |what: &dyn Fn() -> bool| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !what() {
            assert!(Instant::now() < deadline, "{:?}", seen());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until(&|| seen().0 == 1);
    for organization in both.iter().chain(&both) {
        let polled = || organization.post(&format!("/v1/calendar_feeds/{feed}/poll"), &json!({}));
        let mut reply = polled();
        while reply.status == 503 {
            reply = polled();
        }
        reply.ok();
        std::thread::sleep(Duration::from_millis(200));
    }
    // What was polled is read after the reading in progress, by the same server, and takes effect.
    until(&|| here.get(&format!("/v1/calendar_feeds/{feed}")).ok()["status"] == "ok");
    assert_eq!(seen(), (2, 0, 1), "times, now, most at a time");
}
