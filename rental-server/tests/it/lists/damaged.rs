//! A damaged row harms only itself: lists give the other objects and say how many they leave out (docs/api.md, "Lists").

use crate::{
    events_in_store::stop,
    operator::suggestions::tolls,
    support::{Cluster, Organization, Reply, Server, database, flip, receiver::Receiver},
    webhooks::{
        PRIVATE,
        damage::{on_file, put},
        hook, metric,
    },
};
use rental_core::{
    rows::key,
    store::{Order, Span, Store as _},
    value::{Holder, OrganizationId, RentalId, VehicleId},
};
use serde_json::{Value, json};
use std::path::Path;

const DAMAGED: &str = "break-me-here";

/// Stops the server, damages the row with the text [`DAMAGED`], and starts it again.
fn after_damage(directory: &Path, server: Server, flags: &[&str]) -> Server {
    stop(server);
    flip(&directory.join("store.redb"), DAMAGED);
    Server::start_on_file(directory, flags).expecting_errors("damaged")
}

/// The member `name` of the objects, and how many the response says are left out.
fn shown(reply: &Reply, name: &str) -> (Vec<String>, Option<u64>) {
    let objects = reply.ok()["data"].as_array().expect("a list").clone();
    let names = objects.iter().map(|one| one[name].as_str().unwrap_or_default().to_owned()).collect();
    (names, reply.header("rental-damaged-rows").map(|count| count.parse().expect("a number")))
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_flipped_bit_leaves_one_object_out_of_every_list_and_its_reader_gets_a_precise_code() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let whose = server.organization();
    let vehicle = |name: &str| whose.post("/v1/vehicles", &json!({"name": name})).id();
    let [_, damaged, _] = ["first", DAMAGED, "last"].map(vehicle);
    for name in ["first", DAMAGED] {
        whose.post("/v1/leads", &json!({"source_channel": name})).ok();
    }
    for name in ["first", DAMAGED, "last"] {
        server.admin("POST", "/admin/v1/operators", &json!({"name": name, "role": "operator"})).ok();
    }
    let (id, read, write) = (whose.id.clone(), whose.read.clone(), whose.write.clone());
    drop(whose);
    let server = after_damage(directory.path(), server, &[]);
    let whose = Organization { server: &server, id, read, write };
    let get = |path: &str| shown(&whose.get(path), "name");
    let others = (names(&["last", "first"]), Some(1));
    assert_eq!(get("/v1/vehicles"), others);
    assert_eq!(get("/v1/vehicles?status=available"), others, "by an index");
    assert_eq!(get("/v1/availability?from=2090-03-10&to=2090-03-15"), others, "the vehicles that are free");
    let sync = get("/v1/vehicles?updated[gte]=2000-01-01T00:00:00Z");
    assert_eq!(sync, (names(&["first", "last"]), Some(1)), "a sync list");
    // Page by page: the row is counted on the page where its object would be.
    let first = whose.get("/v1/vehicles?limit=1");
    assert_eq!(shown(&first, "name"), (names(&["last"]), None));
    let cursor = first.ok()["next_cursor"].as_str().expect("there is more").to_owned();
    let rest = whose.get(&format!("/v1/vehicles?limit=1&starting_after={cursor}"));
    assert_eq!((shown(&rest, "name"), &rest.ok()["has_more"]), ((names(&["first"]), Some(1)), &json!(false)));

    let admin = |path: &str| server.admin("GET", path, &Value::Null);
    let leads = admin(&format!("/admin/v1/organizations/{}/leads", whose.id));
    assert_eq!(shown(&leads, "source_channel"), (names(&["first"]), Some(1)), "a list under one organization");
    let operators = admin("/admin/v1/operators");
    assert_eq!(shown(&operators, "name"), (names(&["last", "first"]), Some(1)));

    let error = whose.get(&format!("/v1/vehicles/{damaged}")).error(500, "api_error", "data_damaged");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("Tell the operator")), "{error}");
    assert_eq!(metric(&server, "rental_damaged_rows_total"), 3.0, "each row is counted once");
}

/// Two vehicles, and of each a rental that is billed to its customer and pays a toll. The record of the rental of `LOST` is damaged.
#[test]
fn a_damaged_rental_leaves_out_only_what_needs_it_where_people_decide_who_pays_and_what_is_billed() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let whose = server.organization();
    let rental = |plate: &str, delivered: &str| {
        let vehicle = whose.vehicle(json!({"plate": plate, "daily_rate": 50}));
        let days = json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "delivery_location": delivered});
        let id = whose.rental(&vehicle, days);
        whose.patch(&format!("/v1/rentals/{id}"), &json!({"status": "COMPLETED"})).ok();
        tolls(&whose, plate, &["2026-06-03T12:00:00Z"]);
        id
    };
    let [first, _, last] = [("FIRST", "x"), ("LOST", DAMAGED), ("LAST", "x")].map(|(plate, to)| rental(plate, to));
    let (id, read, write) = (whose.id.clone(), whose.read.clone(), whose.write.clone());
    drop(whose);
    let server = after_damage(directory.path(), server, &[]);
    let whose = Organization { server: &server, id, read, write };
    let path = |what: &str| format!("/admin/v1/organizations/{}/{what}", whose.id);
    let get = |what: &str, name: &str| shown(&server.admin("GET", &path(what), &Value::Null), name);
    let others = |all: &[&str]| (names(all), Some(1));
    assert_eq!(get("invoices/drafts", "rental_id"), others(&[&last, &first]));
    assert_eq!(get("tolls/review", "plate"), others(&["LAST", "FIRST"]));
    assert_eq!(get("tolls/suggestions", "rental_id"), others(&[&last, &first]));
    let attached = server.admin("POST", &path("tolls/suggestions"), &json!({}));
    assert_eq!(shown(&attached, "rental_id"), others(&[&last, &first]));
    assert!(attached.ok()["data"].as_array().is_some_and(|all| all.iter().all(|one| one["attached"] == true)));
    assert_eq!(get("tolls/suggestions", "rental_id"), others(&[]), "the others are attached");
}

/// Of one vehicle the calendar is damaged, of another one the hold: both are taken, but nobody can tell. Of a third one the rental
/// is damaged whose customer may still have it.
#[test]
fn availability_leaves_out_vehicles_of_which_nobody_knows_and_offers_the_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let whose = server.organization();
    let days = json!({"start_date": "2090-03-10", "end_date": "2090-03-15", "status": "APPROVED"});
    let [first, no_calendar, no_hold, taken, last] = [false, true, true, true, false].map(|is_held| {
        let vehicle = whose.vehicle(json!({}));
        if is_held {
            whose.rental(&vehicle, days.clone());
        }
        vehicle
    });
    let out = whose.vehicle(json!({}));
    let rental = |days: [&str; 2], times: Value| {
        let id = whose.rental(&out, json!({"start_date": days[0], "end_date": days[1]}));
        whose.patch(&format!("/v1/rentals/{id}"), &times).ok();
        id
    };
    let unreturned = json!({"status": "ACTIVE", "activated_at": "2020-03-10T12:00:00Z"});
    let unreturned = rental(["2020-03-10", "2020-03-15"], unreturned);
    let times =
        json!({"status": "COMPLETED", "activated_at": "2020-04-10T12:00:00Z", "completed_at": "2020-04-15T12:00:00Z"});
    rental(["2020-04-10", "2020-04-15"], times);
    let nights = "/v1/availability?from=2090-03-12&to=2090-03-13";
    assert_eq!(
        shown(&whose.get(nights), "id").0,
        names(&[&out, &last, &first]),
        "a later pickup shows that it came back"
    );
    let (id, read, write) = (whose.id.clone(), whose.read.clone(), whose.write.clone());
    drop(whose);
    stop(server);
    let organization = OrganizationId::parse(&id).expect("an id");
    let vehicle = |id: &str| VehicleId::parse(id).expect("an id");
    let place = |class, day| key::holds_from(organization, vehicle(&no_hold), class, day);
    let holds = Span { from: place(0, 0), to: place(u8::MAX, u32::MAX), order: Order::Ascending, follow: None };
    let found = on_file(directory.path(), async |store| store.scan(&holds, 10).await).expect("the holds");
    let [Ok(hold)] = &found[..] else { panic!("{found:?}") };
    put(
        directory.path(),
        vec![
            (key::calendar(organization, vehicle(&no_calendar)), &b"x"[..]),
            (hold.key.clone(), b"x"),
            (key::holder(organization, Holder::Rental(RentalId::parse(&unreturned).expect("an id"))), b"x"),
        ],
    );

    let server = Server::start_on_file(directory.path(), &[]).expecting_errors("damaged");
    let whose = Organization { server: &server, id, read, write };
    let get = |path: &str| shown(&whose.get(path), "id");
    assert_eq!(get(nights), (names(&[&last, &first]), Some(3)));
    for (vehicle, left_out) in [(&no_calendar, Some(1)), (&no_hold, Some(1)), (&out, Some(1)), (&taken, None)] {
        assert_eq!(get(&format!("{nights}&vehicle={vehicle}")), (Vec::new(), left_out));
    }
    // Page by page, each is counted once.
    let mut pages = vec![whose.get(&format!("{nights}&limit=1"))];
    while let Some(cursor) = pages.last().and_then(|page| page.ok()["next_cursor"].as_str().map(str::to_owned)) {
        pages.push(whose.get(&format!("{nights}&limit=1&starting_after={cursor}")));
    }
    let pages: Vec<_> = pages.iter().map(|page| shown(page, "id")).collect();
    assert_eq!(pages, [(names(&[&last]), Some(1)), (names(&[&first]), Some(2))]);
    assert_eq!(get("/v1/availability?from=2090-04-12&to=2090-04-13").0.len(), 4, "no hold of these nights is damaged");
}

#[test]
fn a_damaged_event_keeps_no_other_one_from_being_recovered() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let whose = server.organization();
    for name in ["first", DAMAGED, "last"] {
        whose.post("/v1/leads", &json!({"source_channel": name})).ok();
    }
    let (id, read, write) = (whose.id.clone(), whose.read.clone(), whose.write.clone());
    drop(whose);
    let server = after_damage(directory.path(), server, &[PRIVATE]);
    let whose = Organization { server: &server, id, read, write };
    let receiver = Receiver::start();
    let endpoint = hook(&whose, &receiver);
    let path = format!("/admin/v1/webhook_endpoints/{}/recover", endpoint.id);
    let recovered = server.admin("POST", &path, &json!({"since": "2020-01-01T00:00:00Z"}));
    let page = recovered.ok();
    assert_eq!((&page["examined"], &page["resent"], &page["has_more"]), (&json!(3), &json!(2), &json!(false)));
    assert_eq!(recovered.header("rental-damaged-rows"), Some("1"));
    receiver.wait_for(2);
}

/// PostgreSQL guards the bytes of a row by checksums of its own. A key of which one bit is flipped is another row.
#[test]
fn on_postgresql_an_index_entry_whose_record_has_another_key_leaves_one_object_out() {
    let Some(url) = database() else { return };
    let server = Server::start_on(&url, &[]).expecting_errors("damaged");
    let whose = server.organization();
    let vehicle = |name: &str| whose.post("/v1/vehicles", &json!({"name": name, "status": "maintenance"})).id();
    let [_, damaged, _] = ["first", "second", "last"].map(vehicle);
    let database = url.split(['/', '?']).find(|part| part.starts_with("test")).expect("a database");
    let flipped = "set_byte(key, length(key) - 9, get_byte(key, length(key) - 9) # 1)";
    let hex = damaged.replace('-', "");
    let is_it = format!("get_byte(key, 0) = ascii('r') AND encode(key, 'hex') LIKE '%{hex}'");
    let cluster = Cluster::shared().expect("it made the database");
    let changed = cluster.sql(database, &format!("UPDATE rental.rows SET key = {flipped} WHERE {is_it} RETURNING 1"));
    assert_eq!(changed.trim(), "1");

    let list = whose.get("/v1/vehicles?status=maintenance");
    assert_eq!(shown(&list, "name"), (names(&["last", "first"]), Some(1)));
    assert_eq!(metric(&server, "rental_damaged_rows_total"), 1.0);
}

/// A list and background work count the rows that they leave out; a request has no others to show, and counts its row too.
#[test]
fn a_damaged_row_that_requests_meet_is_counted_once_and_logged_in_full_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let whose = server.organization();
    let vehicle = whose.post("/v1/vehicles", &json!({"name": DAMAGED})).id();
    let (id, read, write) = (whose.id.clone(), whose.read.clone(), whose.write.clone());
    drop(whose);
    let server = after_damage(directory.path(), server, &[]);
    let whose = Organization { server: &server, id, read, write };
    for _ in 0..3 {
        whose.get(&format!("/v1/vehicles/{vehicle}")).error(500, "api_error", "data_damaged");
        whose.patch(&format!("/v1/vehicles/{vehicle}"), &json!({"name": "new"})).error(
            500,
            "api_error",
            "data_damaged",
        );
    }
    assert_eq!(metric(&server, "rental_damaged_rows_total"), 1.0);
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("ERROR") && line.contains(&vehicle));
    assert_eq!(lines.count(), 1, "{log}");
}
