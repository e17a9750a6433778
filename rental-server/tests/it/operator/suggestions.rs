//! Who had the car: suggestions for tolls and violations, and attaching what is clear.

use super::{all, counts, import};
use crate::support::{Organization, Server};
use rental_core::value::Timestamp;
use serde_json::{Value, json};
use std::fmt::Write;

const HEADER: &str = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n";

/// Tolls of a plate at these times.
pub(crate) fn tolls(organization: &Organization, plate: &str, times: &[&str]) {
    let mut file = HEADER.to_owned();
    for time in times {
        writeln!(file, "{plate} {time},{time},MTAB&T,RKB,{plate},,,1").unwrap();
    }
    assert_eq!(counts(&import(organization, "tolls", "", &file).ok())[0], times.len() as u64);
}

fn path(organization: &Organization, plural: &str) -> String {
    format!("/admin/v1/organizations/{}/{plural}/suggestions", organization.id)
}

#[track_caller]
pub(super) fn suggested(organization: &Organization, plural: &str) -> Vec<Value> {
    let page =
        organization.server.admin("GET", &format!("{}?limit=100", path(organization, plural)), &Value::Null).ok();
    assert_eq!((&page["object"], &page["has_more"]), (&json!("list"), &json!(false)));
    page["data"].as_array().unwrap().clone()
}

#[track_caller]
pub(crate) fn attached(organization: &Organization, plural: &str) -> Vec<Value> {
    organization.server.admin("POST", &path(organization, plural), &json!({})).ok()["data"].as_array().unwrap().clone()
}

pub(crate) fn stay(organization: &Organization, vehicle: &str, days: [&str; 2], status: &str) -> String {
    organization.rental(vehicle, json!({"start_date": days[0], "end_date": days[1], "status": status}))
}

#[track_caller]
pub(crate) fn customer_of(organization: &Organization, rental: &str) -> Value {
    organization.get(&format!("/v1/rentals/{rental}")).ok()["customer_id"].clone()
}

/// In New York 01:30 came twice on that day, in Phoenix, where the organization is, once.
#[test]
fn the_clocks_of_the_statement_tell_which_hour_came_twice() {
    let organization = Server::shared().organization();
    let place = format!("/admin/v1/organizations/{}", organization.id);
    organization.server.admin("PATCH", &place, &json!({"time_zone": "America/Phoenix"})).ok();
    let vehicle = organization.vehicle(json!({"plate": "TWICE1"}));
    let times = json!({"activated_at": "2026-10-30T14:00:00Z", "completed_at": "2026-11-01T06:00:00Z"});
    let rental = stay(&organization, &vehicle, ["2026-10-30", "2026-11-01"], "COMPLETED");
    organization.patch(&format!("/v1/rentals/{rental}"), &times).ok();
    let head = "transaction_id,occurred_at,agency,plaza,plate,amount";
    for (number, zone, time, verdict) in [
        ("1", "America/New_York", "2026-11-01 01:30:01", "unclear"),
        ("2", "America/New_York", "2026-11-01T01:30:02-04:00", "clear"),
        ("3", "America/New_York", "2026-11-01T01:30:03-05:00", "nobody"),
        ("4", "America/Phoenix", "2026-10-31 22:30:04", "clear"),
        // The whole day is in the rental, or it is not.
        ("5", "Asia/Tokyo", "2026-10-31", "clear"),
        ("6", "America/Phoenix", "2026-10-31", "unclear"),
    ] {
        let file = format!("{head}\n{number},{time},MTAB&T,P{number},TWICE1,6.94\n");
        let query = format!("?format=generic&time_zone={zone}");
        assert_eq!(counts(&import(&organization, "tolls", &query, &file).ok()), [1, 0, 0, 0, 0]);
        let newest = &suggested(&organization, "tolls")[0];
        assert_eq!(newest["verdict"], verdict, "{newest}");
        let toll = &all(&organization, "tolls")[0];
        let kept = if time.contains('T') { json!(null) } else { json!(zone) };
        assert_eq!(toll["time_zone"], kept);
        let shown = newest["when"].as_str().unwrap();
        assert!(number != "1" || shown == "2026-11-01 01:30 -04:00", "where the statement has it: {shown}");
    }
}

/// The second of the two hours, with an offset in one file, and by the clocks in another one.
#[test]
fn one_passage_in_the_hour_that_comes_twice_is_known_by_its_number_in_both_ways() {
    let organization = Server::shared().organization();
    let file = |time: &str| {
        let file = format!("transaction_id,occurred_at,agency,plate,amount\n77,{time},MTAB&T,HOUR1,6.94\n");
        counts(&import(&organization, "tolls", "?format=generic&time_zone=America/New_York", &file).ok())
    };
    assert_eq!(file("2026-11-01T01:30:01-05:00"), [1, 0, 0, 0, 0]);
    assert_eq!(file("2026-11-01 01:30:01"), [0, 0, 1, 0, 0]);
    assert_eq!(file("2026-11-01T01:30:01-06:00"), [0, 0, 0, 0, 1], "an hour later is another time");
}

/// The zone belongs to the time: it changes with the time, and not without it.
#[test]
fn a_corrected_time_of_a_violation_brings_its_own_zone() {
    let organization = Server::shared().organization();
    let file = |zone: &str, time: &str| {
        let row = format!(
            "plate,state,summons_number,issue_date,violation_time,fine_amount,amount_due\nZONE1,NY,4631234569,06/02/2026,{time},50,50\n"
        );
        import(&organization, "violations", &format!("?format=nyc-open-data&time_zone={zone}"), &row).ok();
        let found = &all(&organization, "violations")[0];
        (found["time_zone"].clone(), found["issued_at"].clone())
    };
    let new_york = (json!("America/New_York"), json!("2026-06-02T18:03:00.000Z"));
    assert_eq!(file("America/New_York", "02:03P"), new_york);
    assert_eq!(file("America/Chicago", "unknown"), new_york);
    assert_eq!(file("America/Chicago", "02:03P"), (json!("America/Chicago"), json!("2026-06-02T19:03:00.000Z")));
}

/// In New York the rental was over by then; in Los Angeles, where the organization is by now, it would not have been.
#[test]
fn a_rental_is_judged_by_the_zone_in_which_it_was_made() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "MOVED"}));
    stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    let zone = json!({"time_zone": "America/Los_Angeles"});
    let place = format!("/admin/v1/organizations/{}", organization.id);
    organization.server.admin("PATCH", &place, &zone).ok();
    tolls(&organization, "MOVED", &["2026-06-06T05:00:00Z", "2026-06-06T03:00:00Z"]);
    let shown = suggested(&organization, "tolls");
    let verdicts: Vec<&str> = shown.iter().map(|one| one["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["clear", "nobody"], "newest row first: the last row of the file is the earlier passage");
}

#[test]
fn what_one_rental_answers_for_is_attached_with_an_event_and_the_rest_is_listed() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "CAR1"}));
    let rental = stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    let customer = customer_of(&organization, &rental);
    tolls(&organization, "CAR1", &["2026-06-02T14:00:00Z", "2026-07-02T14:00:00Z"]);
    tolls(&organization, "STRANGER", &["2026-06-02T14:00:00Z"]);
    let shown = suggested(&organization, "tolls");
    let verdicts: Vec<&str> = shown.iter().map(|one| one["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["nobody", "nobody", "clear"]);
    assert_eq!(
        (&shown[2]["customer_id"], &shown[2]["rental_id"], &shown[2]["attached"]),
        (&customer, &json!(rental), &json!(false))
    );
    assert!(all(&organization, "tolls").iter().all(|toll| toll["customer_id"].is_null()), "looking changes nothing");
    assert_eq!(attached(&organization, "tolls").iter().filter(|one| one["attached"] == true).count(), 1);
    let mine = organization.get(&format!("/v1/tolls?customer={}", customer.as_str().unwrap())).ok()["data"].clone();
    assert_eq!(mine.as_array().unwrap().len(), 1);
    assert_eq!((&mine[0]["attribution"], &mine[0]["rental_id"]), (&json!("automatic"), &json!(rental)));
    let events = format!("/admin/v1/organizations/{}/events?type=toll.attached", organization.id);
    let events = organization.server.admin("GET", &events, &Value::Null).ok()["data"].clone();
    assert_eq!((events.as_array().unwrap().len(), &events[0]["data"]), (1, &mine[0]));
    assert_eq!(suggested(&organization, "tolls").len(), 2, "what is attached is not asked about again");
    assert!(attached(&organization, "tolls").iter().all(|one| one["attached"] == false));
}

#[test]
fn a_return_and_a_pickup_on_one_day_are_told_apart_by_what_was_recorded() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "CAR2"}));
    let first = stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    let second = stay(&organization, &vehicle, ["2026-06-05", "2026-06-09"], "COMPLETED");
    tolls(&organization, "CAR2", &["2026-06-05T13:00:00Z", "2026-06-05T20:00:00Z", "2026-06-05T17:00:00Z"]);
    let verdicts = |shown: &[Value]| shown.iter().map(|one| one["verdict"].clone()).collect::<Vec<_>>();
    assert_eq!(verdicts(&suggested(&organization, "tolls")), ["unclear"; 3]);
    assert!(attached(&organization, "tolls").iter().all(|one| one["attached"] == false), "never guessed");
    let times = json!({"activated_at": "2026-06-01T14:00:00Z", "completed_at": "2026-06-05T15:00:00Z"});
    organization.patch(&format!("/v1/rentals/{first}"), &times).ok();
    organization.patch(&format!("/v1/rentals/{second}"), &json!({"activated_at": "2026-06-05T19:00:00Z"})).ok();
    let shown = attached(&organization, "tolls");
    let whose: Vec<(Value, Value)> =
        shown.iter().map(|one| (one["verdict"].clone(), one["rental_id"].clone())).collect();
    assert_eq!(whose[0], (json!("nobody"), Value::Null), "between return and pickup");
    assert_eq!(whose[1], (json!("clear"), json!(second)));
    assert_eq!(whose[2], (json!("clear"), json!(first)));
    assert_eq!(shown[0]["candidates"].as_array().unwrap().len(), 2, "with what rules them out: {}", shown[0]);
}

/// The next customer waited for the vehicle, and got it late too.
#[test]
fn the_tolls_until_a_late_return_are_those_of_who_had_the_vehicle() {
    const DAY: i64 = 24 * 3_600_000;
    let organization = Server::shared().organization();
    let status = organization.server.admin("GET", "/admin/v1/status", &Value::Null).ok();
    let now = Timestamp::parse(status["time"].as_str().unwrap()).unwrap();
    let at = |days: i64| now.plus_millis(days * DAY).to_string();
    let days = |first, last| [at(first)[..10].to_owned(), at(last)[..10].to_owned()];
    let vehicle = organization.vehicle(json!({"plate": "LATE1"}));
    let made = |[first, last]: [String; 2], status| stay(&organization, &vehicle, [&first, &last], status);
    let late = made(days(-9, -4), "ACTIVE");
    let next = made(days(-4, 3), "APPROVED");
    let [over, forgotten] = [made(days(-90, -80), "COMPLETED"), made(days(-70, -60), "ACTIVE")];
    let change =
        |rental: &str, status| organization.patch(&format!("/v1/rentals/{rental}"), &json!({"status": status})).ok();
    assert_eq!(change(&forgotten, "COMPLETED")["completed_at"], Value::Null, "nobody brings a vehicle back so late");
    assert_eq!(change(&over, "COMPLETED")["completed_at"], Value::Null, "it was typed in when it was over");
    assert!(change(&late, "COMPLETED")["completed_at"].as_str() >= Some(&now.to_string()));
    assert!(change(&next, "ACTIVE")["activated_at"].as_str() >= Some(&now.to_string()));
    tolls(&organization, "LATE1", &[&at(-8), &at(-2), &now.plus_millis(DAY / 2).to_string()]);
    let shown = suggested(&organization, "tolls");
    let whose: Vec<_> = shown.iter().map(|one| (&one["verdict"], &one["rental_id"])).collect();
    let [late, next] = [late, next].map(Value::from);
    let clear = &json!("clear");
    assert_eq!(whose, [(clear, &next), (clear, &late), (clear, &late)], "the newest first");
}

#[test]
fn what_somebody_decided_is_never_overwritten() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "CAR3"}));
    stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    tolls(&organization, "CAR3", &["2026-06-02T14:00:00Z", "2026-06-03T14:00:00Z"]);
    let ids: Vec<String> =
        all(&organization, "tolls").iter().map(|toll| toll["id"].as_str().unwrap().to_owned()).collect();
    let other = organization.customer(json!({}));
    for id in &ids {
        organization.patch(&format!("/v1/tolls/{id}"), &json!({"customer_id": other})).ok();
    }
    organization.patch(&format!("/v1/tolls/{}", ids[1]), &json!({"customer_id": null})).ok();
    assert!(suggested(&organization, "tolls").is_empty());
    assert!(attached(&organization, "tolls").is_empty());
    let now: Vec<Value> = all(&organization, "tolls").iter().map(|toll| toll["customer_id"].clone()).collect();
    assert_eq!(now, [json!(other), Value::Null]);
}

#[test]
fn a_vehicle_that_came_to_the_fleet_later_is_found_then() {
    let organization = Server::shared().organization();
    tolls(&organization, "LATER1", &["2026-06-02T14:00:00Z"]);
    assert_eq!(suggested(&organization, "tolls")[0]["verdict"], "nobody");
    let vehicle = organization.vehicle(json!({"plate": "later-1"}));
    let rental = stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "ACTIVE");
    assert_eq!(attached(&organization, "tolls")[0]["attached"], true);
    let toll = &all(&organization, "tolls")[0];
    assert_eq!((&toll["vehicle_id"], &toll["rental_id"]), (&json!(vehicle), &json!(rental)));
    assert_eq!(organization.get(&format!("/v1/tolls?vehicle={vehicle}")).ok()["data"][0], *toll);
}

/// New York's clocks went back on 2026-11-01 at 02:00: 01:30 came twice.
#[test]
fn days_begin_and_end_at_the_organizations_midnight_and_a_time_with_an_offset_is_exact() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "CAR4"}));
    let rental = stay(&organization, &vehicle, ["2026-10-30", "2026-11-01"], "COMPLETED");
    let back = json!({"activated_at": "2026-10-30T14:00:00Z", "completed_at": "2026-11-01T06:00:00Z"});
    organization.patch(&format!("/v1/rentals/{rental}"), &back).ok();
    let times = [
        "2026-10-30T03:59:59Z",
        "2026-10-30T14:00:00Z",
        "2026-11-01T04:59:59Z",
        "2026-11-01T05:30:00Z",
        "2026-11-01T06:30:00Z",
    ];
    tolls(&organization, "CAR4", &times);
    let mut verdicts: Vec<Value> = suggested(&organization, "tolls").iter().map(|one| one["verdict"].clone()).collect();
    verdicts.reverse();
    assert_eq!(verdicts, ["nobody", "clear", "clear", "clear", "nobody"]);
}

#[test]
fn plates_of_two_states_are_two_vehicles() {
    let organization = Server::shared().organization();
    let [ri, ma] = ["RI", "MA"].map(|state| organization.vehicle(json!({"plate": "AB 12", "plate_state": state})));
    let rentals = [&ri, &ma].map(|vehicle| stay(&organization, vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED"));
    let file = format!("{HEADER}1,2026-06-02T14:00:00Z,A,,AB12,MA,,1\n2,2026-06-02T14:00:00Z,A,,AB12,,,1\n");
    import(&organization, "tolls", "", &file).ok();
    let shown = attached(&organization, "tolls");
    assert_eq!((&shown[0]["verdict"], &shown[1]["rental_id"]), (&json!("unclear"), &json!(rentals[1])));
}

#[test]
fn a_violation_is_attached_by_its_local_time_and_one_a_day_after_the_return_is_only_shown() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "GBJ3345", "plate_state": "NY"}));
    let rental = stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    let header = "plate,state,summons_number,issue_date,violation_time,amount_due\n";
    let rows = "GBJ3345,NY,1,06/05/2026,11:59P,50\nGBJ3345,NY,2,06/06/2026,10:00A,50\nGBJ3345,NY,3,51/71/2004,,50\nGBJ3345,NY,4,06/03/2026,,50\n";
    assert_eq!(counts(&import(&organization, "violations", "", &format!("{header}{rows}")).ok())[0], 4);
    let shown = attached(&organization, "violations");
    let verdicts: Vec<&str> = shown.iter().map(|one| one["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["clear", "nobody", "unclear", "clear"]);
    assert_eq!(shown[3]["rental_id"], json!(rental));
    assert!(shown[1]["reason"].as_str().unwrap().contains("not known when"), "{}", shown[1]);
}

#[test]
fn a_walk_over_all_pages_sees_each_once_while_it_attaches() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "CAR5"}));
    stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    let mut file = HEADER.to_owned();
    for n in 0..250 {
        let day = if n % 3 == 0 { "2026-07-02" } else { "2026-06-02" };
        writeln!(file, "N{n},{day}T14:00:00Z,A,,CAR5,,,1").unwrap();
    }
    import(&organization, "tolls", "", &file).ok();
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let body = json!({"limit": 40, "starting_after": cursor});
        let page = organization.server.admin("POST", &path(&organization, "tolls"), &body).ok();
        seen.extend(
            page["data"].as_array().unwrap().iter().map(|one| (one["id"].to_string(), one["attached"] == true)),
        );
        cursor = page["next_cursor"].clone();
        assert_eq!(page["has_more"].as_bool().unwrap(), !cursor.is_null());
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((seen.len(), seen.iter().filter(|row| row.1).count()), (250, 166));
    seen.sort();
    seen.dedup_by(|a, b| a.0 == b.0);
    assert_eq!(seen.len(), 250);
    assert_eq!(suggested(&organization, "tolls").len(), 84);
}

#[test]
fn an_organization_sees_only_its_own_and_bad_requests_are_named() {
    let [one, other] = [(); 2].map(|()| Server::shared().organization());
    tolls(&other, "CAR6", &["2026-06-02T14:00:00Z"]);
    assert!(suggested(&one, "tolls").is_empty());
    let server = one.server;
    for query in ["?limit=0", "?starting_after=x", "?created[gte]=2026-01-01T00:00:00Z"] {
        assert_eq!(server.admin("GET", &format!("{}{query}", path(&one, "tolls")), &Value::Null).bad_fields().len(), 1);
    }
    for body in [json!({"limit": 0}), json!({"limit": 101}), json!({"starting_after": "x"})] {
        assert_eq!(server.admin("POST", &path(&one, "tolls"), &body).bad_fields().len(), 1, "{body}");
    }
    server.admin("POST", &path(&one, "tolls"), &json!({"all": true})).error(
        400,
        "invalid_request_error",
        "body_invalid_json",
    );
}

#[test]
fn an_organization_says_where_its_days_begin() {
    let server = Server::shared();
    let tokyo = server.organization_with(&json!({"name": "Tokyo", "time_zone": "Asia/Tokyo"}));
    let vehicle = tokyo.vehicle(json!({"plate": "CAR7"}));
    stay(&tokyo, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    tolls(&tokyo, "CAR7", &["2026-06-05T14:59:59Z", "2026-06-05T15:00:00Z"]);
    let verdicts: Vec<Value> = suggested(&tokyo, "tolls").iter().map(|one| one["verdict"].clone()).collect();
    assert_eq!(verdicts, ["nobody", "clear"]);
    for bad in [json!("Mars/Base"), json!("EST5"), json!(""), json!(9), json!("asia/tokyo")] {
        let reply = server.admin("PATCH", &format!("/admin/v1/organizations/{}", tokyo.id), &json!({"time_zone": bad}));
        assert_eq!(reply.bad_fields(), [("time_zone".to_owned(), "parameter_invalid".to_owned())], "{bad}");
    }
    let usual =
        server.admin("GET", &format!("/admin/v1/organizations/{}", server.organization().id), &Value::Null).ok();
    assert_eq!(usual["time_zone"], "America/New_York");
}

#[test]
fn a_state_is_the_same_in_every_spelling_and_an_unknown_one_contradicts() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "ABC1234", "plate_state": "New York"}));
    stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    let mut file = HEADER.to_owned();
    for (number, state) in [(1, "NY"), (2, "US-NY"), (3, ""), (4, "New Jersey"), (5, "ONT"), (6, "New Yrok")] {
        writeln!(file, "{number},2026-06-02T14:0{number}:00Z,MTAB&T,RKB,ABC1234,{state},,1").unwrap();
    }
    assert_eq!(counts(&import(&organization, "tolls", "", &file).ok())[0], 6);
    let verdicts: Vec<Value> =
        suggested(&organization, "tolls").iter().rev().map(|one| one["verdict"].clone()).collect();
    assert_eq!(verdicts, ["clear", "clear", "clear", "nobody", "nobody", "nobody"]);
}
