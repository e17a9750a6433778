//! Transponders and plates have dates: a toll belongs to the vehicle that had them at its time.

use super::{
    all, counts, import,
    suggestions::{attached, customer_of, stay, suggested, tolls},
};
use crate::{
    support::{ADMIN_TOKEN, Connection, Organization, Reply, Server},
    webhooks::wait_for,
};
use serde_json::{Value, json};

const TAG: &str = "00412345678";

fn assignments(organization: &Organization, vehicle: &str) -> Value {
    let path = format!("/admin/v1/vehicles/{vehicle}/assignments");
    organization.server.admin("GET", &path, &Value::Null).ok()["assignments"].clone()
}

fn assign(organization: &Organization, vehicle: &str, list: &Value) -> Reply {
    let path = format!("/admin/v1/vehicles/{vehicle}/assignments");
    organization.server.admin("PUT", &path, &json!({"assignments": list}))
}

fn tag(from: Option<&str>, to: Option<&str>) -> Value {
    json!({"kind": "toll_tag", "number": TAG, "state": null, "from": from, "to": to})
}

fn patch(organization: &Organization, vehicle: &str, fields: &Value) {
    organization.patch(&format!("/v1/vehicles/{vehicle}"), fields).ok();
}

/// Imports a toll of the tag for each time or day.
fn tag_tolls(organization: &Organization, times: &[&str]) {
    let head = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n";
    let rows: Vec<String> =
        times.iter().enumerate().map(|(n, at)| format!("T{n},{at},MTAB&T,RKB,,,{TAG},6.94\n")).collect();
    let reply = import(organization, "tolls", "", &format!("{head}{}", rows.concat())).ok();
    assert_eq!(counts(&reply)[0], times.len() as u64, "{reply}");
}

/// The customer or vehicle of each toll, in the order of the statement.
fn each(organization: &Organization, member: &str) -> Vec<Value> {
    let mut tolls = all(organization, "tolls");
    tolls.sort_by_key(|toll| toll["transaction_id"].as_str().map(str::to_owned));
    tolls.iter().map(|toll| toll[member].clone()).collect()
}

#[track_caller]
fn wait_for_each(organization: &Organization, member: &str, expected: &[Value]) {
    let look = || Some(each(organization, member)).filter(|found| found == expected);
    wait_for(&format!("{member} {expected:?}"), look, || format!("{:?}", each(organization, member)));
}

/// Two vehicles, each with a rental in June; the first one has the tag. Their ids and customers.
fn two_vehicles(organization: &Organization) -> [(String, Value); 2] {
    [json!({"transponder_number": TAG}), json!({})].map(|fields| {
        let vehicle = organization.vehicle(fields);
        let rental = stay(organization, &vehicle, ["2026-06-01", "2026-06-30"], "COMPLETED");
        let customer = customer_of(organization, &rental);
        (vehicle, customer)
    })
}

const MOVED: &str = "2026-06-15T14:00:00.000Z";
const BEFORE: &str = "2026-06-10T12:00:00Z";
const AFTER: &str = "2026-06-20T12:00:00Z";

#[test]
fn a_tag_that_moved_in_june_finds_the_vehicle_of_each_toll() {
    let organization = Server::shared().organization();
    let [(first, before), (second, after)] = two_vehicles(&organization);
    patch(&organization, &first, &json!({"transponder_number": null}));
    patch(&organization, &second, &json!({"transponder_number": TAG}));
    // The operator says when it moved.
    assign(&organization, &first, &json!([tag(None, Some(MOVED))])).ok();
    assign(&organization, &second, &json!([tag(Some(MOVED), None)])).ok();
    tag_tolls(&organization, &[BEFORE, "2026-06-15T13:59:59Z", "2026-06-15T14:00:00Z", AFTER]);
    let vehicles = [&first, &first, &second, &second].map(|id| json!(id));
    assert_eq!(each(&organization, "vehicle_id"), vehicles);
    attached(&organization, "tolls");
    assert_eq!(each(&organization, "customer_id"), [before.clone(), before, after.clone(), after]);
}

#[test]
fn a_tag_that_moves_now_leaves_the_tolls_of_before_where_they_are_in_either_order() {
    for clears_first in [true, false] {
        let organization = Server::shared().organization();
        let [(first, customer), (second, _)] = two_vehicles(&organization);
        tag_tolls(&organization, &[BEFORE]);
        attached(&organization, "tolls");
        let clear = || patch(&organization, &first, &json!({"transponder_number": null}));
        if clears_first {
            clear();
        }
        patch(&organization, &second, &json!({"transponder_number": TAG}));
        if !clears_first {
            clear();
        }
        tag_tolls_again(&organization);
        assert_eq!(each(&organization, "vehicle_id"), [json!(first), json!(first)]);
        wait_for_each(&organization, "customer_id", &[customer, Value::Null]);
        assert_eq!(suggested(&organization, "tolls")[0]["verdict"], "clear");
        let [before, after] = [&first, &second].map(|vehicle| assignments(&organization, vehicle)[0].clone());
        assert_eq!((&before["from"], after["to"].clone()), (&Value::Null, Value::Null));
        assert!(before["to"].is_string() && after["from"].is_string(), "{before} {after}");
    }
}

/// Imports one more toll of the same time.
fn tag_tolls_again(organization: &Organization) {
    let file = format!(
        "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\nT9,{BEFORE},MTAB&T,QMT,,,{TAG},1\n"
    );
    import(organization, "tolls", "", &file).ok();
}

/// Nobody suggests or attaches anything here: the tolls follow what is recorded of the vehicles.
#[test]
fn a_toll_that_nobody_attached_gets_the_vehicle_that_is_created_later_and_follows_its_number() {
    let organization = Server::shared().organization();
    tag_tolls(&organization, &[BEFORE, AFTER]);
    assert_eq!(each(&organization, "vehicle_id"), [Value::Null, Value::Null]);
    let [first, second] = [json!({"transponder_number": TAG}), json!({})].map(|fields| organization.vehicle(fields));
    wait_for_each(&organization, "vehicle_id", &[json!(first), json!(first)]);
    patch(&organization, &first, &json!({"transponder_number": null}));
    patch(&organization, &second, &json!({"transponder_number": TAG}));
    assign(&organization, &first, &json!([tag(None, Some(MOVED))])).ok();
    wait_for_each(&organization, "vehicle_id", &[json!(first), Value::Null]);
    assign(&organization, &second, &json!([tag(Some(MOVED), None)])).ok();
    wait_for_each(&organization, "vehicle_id", &[json!(first), json!(second)]);
    assert_eq!(each(&organization, "customer_id"), [Value::Null, Value::Null]);
}

#[test]
fn a_sold_vehicle_keeps_the_tolls_of_its_plate() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "SOLD77", "plate_state": "NY"}));
    let rental = stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    tolls(&organization, "SOLD77", &["2026-06-02T14:00:00Z"]);
    attached(&organization, "tolls");
    let customer = customer_of(&organization, &rental);
    patch(&organization, &vehicle, &json!({"plate": null, "plate_state": null}));
    let next = organization.vehicle(json!({"plate": "SOLD77", "plate_state": "NY"}));
    // The reason follows when the attachment is derived again.
    organization.patch(&format!("/v1/rentals/{rental}"), &json!({"end_date": "2026-06-06"})).ok();
    wait_for_each(&organization, "attribution_reason", &[json!("Had the vehicle 2026-06-01 to 2026-06-06.")]);
    assert_eq!(each(&organization, "vehicle_id"), [json!(vehicle)]);
    assert_eq!(each(&organization, "customer_id"), [customer]);
    assert!(assignments(&organization, &next)[0]["from"].is_string());
}

/// A typing error of a new vehicle: its number is that of another vehicle, which is in use.
#[test]
fn tolls_come_back_when_a_new_vehicle_loses_the_number_that_it_never_had() {
    const OTHER_TAG: &str = "00499999999";
    for (number, other) in [
        (json!({"transponder_number": "12345678"}), json!({"transponder_number": OTHER_TAG})),
        (json!({"transponder_number": TAG}), json!({"transponder_number": null})),
        (json!({"plate": "TYPO 12", "plate_state": "NY"}), json!({"plate": "TYPO21"})),
        (json!({"plate": "TYPO12"}), json!({"plate": null})),
    ] {
        let organization = Server::shared().organization();
        let own = json!({"transponder_number": TAG, "plate": "TYPO12", "plate_state": "NY"});
        let vehicle = organization.vehicle(own);
        let rental = stay(&organization, &vehicle, ["2026-06-01", "2026-06-30"], "COMPLETED");
        match number.get("plate") {
            Some(_) => tolls(&organization, "TYPO12", &[BEFORE, AFTER]),
            None => tag_tolls(&organization, &[BEFORE, AFTER]),
        }
        attached(&organization, "tolls");
        let customer = customer_of(&organization, &rental);
        assert_eq!(each(&organization, "customer_id"), [customer.clone(), customer.clone()]);
        let mistaken = organization.vehicle(number.clone());
        wait_for_each(&organization, "customer_id", &[Value::Null, Value::Null]);
        let reason = &suggested(&organization, "tolls")[0]["reason"];
        assert!(reason.as_str().unwrap().ends_with(&format!("{vehicle} and {mistaken}.")), "{reason}");
        patch(&organization, &mistaken, &other);
        wait_for_each(&organization, "customer_id", &[customer.clone(), customer]);
        assert_eq!(each(&organization, "vehicle_id"), [json!(vehicle), json!(vehicle)]);
        assert_eq!(each(&organization, "review_reason"), [Value::Null, Value::Null]);
        let (left, wrong) = (assignments(&organization, &mistaken), number.as_object().unwrap().values().next());
        let never = |one: &Value| one["to"].is_null() && Some(&one["number"]) != wrong;
        assert!(left.as_array().unwrap().iter().all(never), "{left}");
    }
}

/// A typing error of a vehicle that is corrected before the vehicle that really has the number is entered, or gets it.
#[test]
fn a_number_that_was_corrected_is_nobodys_before_once_another_vehicle_has_it() {
    let plate = |number: &str| json!({"plate": number, "plate_state": "NY"});
    for (wrong, steps, right, exists) in [
        (plate("SWAP12"), vec![plate("SWAP21")], plate("SWAP12"), false),
        (plate("SWAP12"), vec![json!({"plate": null}), plate("SWAP21")], json!({"plate": "SWAP 12"}), false),
        (plate("SWAP12"), vec![plate("SWAP22"), plate("SWAP21")], plate("SWAP12"), true),
        (
            json!({"transponder_number": TAG}),
            vec![json!({"transponder_number": "00499999999"})],
            json!({"transponder_number": TAG}),
            false,
        ),
    ] {
        let organization = Server::shared().organization();
        let mistyped = organization.vehicle(wrong.clone());
        let other = exists.then(|| organization.vehicle(json!({})));
        let rental = stay(&organization, &mistyped, ["2026-06-01", "2026-06-30"], "COMPLETED");
        match wrong.get("plate") {
            Some(_) => tolls(&organization, "SWAP12", &[BEFORE]),
            None => tag_tolls(&organization, &[BEFORE]),
        }
        attached(&organization, "tolls");
        assert_eq!(each(&organization, "customer_id"), [customer_of(&organization, &rental)]);
        for step in &steps {
            patch(&organization, &mistyped, step);
        }
        let owner = match other {
            Some(other) => {
                patch(&organization, &other, &right);
                other
            }
            None => organization.vehicle(right),
        };
        stay(&organization, &owner, ["2026-06-01", "2026-06-30"], "COMPLETED");
        wait_for_each(&organization, "customer_id", &[Value::Null]);
        let suggestion = &suggested(&organization, "tolls")[0];
        let reason = suggestion["reason"].as_str().unwrap();
        assert!(
            reason.ends_with(&format!("{mistyped} and {owner}."))
                || reason.ends_with(&format!("{owner} and {mistyped}.")),
            "{reason}"
        );
        assert_eq!(suggestion["candidates"].as_array().map(Vec::len), Some(2), "{suggestion}");
        assert_eq!(assignments(&organization, &owner)[0]["from"], Value::Null);
        // An operator who knows it says that the first vehicle never had it.
        let left: Vec<Value> = assignments(&organization, &mistyped)
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["to"].is_null())
            .cloned()
            .collect();
        assign(&organization, &mistyped, &json!(left)).ok();
        wait_for_each(&organization, "vehicle_id", &[json!(owner)]);
    }
}

/// The number moved, and one of the vehicles was recorded late: nobody knows when, so nothing is taken away from either.
#[test]
fn a_number_that_the_earlier_vehicle_loses_after_a_new_one_got_it_stays_with_both_until_then() {
    let organization = Server::shared().organization();
    let sold = organization.vehicle(json!({"plate": "SOLD88", "plate_state": "NY"}));
    stay(&organization, &sold, ["2026-06-01", "2026-06-30"], "COMPLETED");
    tolls(&organization, "SOLD88", &[BEFORE]);
    attached(&organization, "tolls");
    let next = organization.vehicle(json!({"plate": "SOLD88", "plate_state": "NY"}));
    wait_for_each(&organization, "customer_id", &[Value::Null]);
    patch(&organization, &sold, &json!({"plate": null, "plate_state": null}));
    let ended = assignments(&organization, &sold);
    assert!(ended[0]["to"].is_string(), "{ended}");
    // The next vehicle had it after that, so what it loses ended too.
    patch(&organization, &next, &json!({"plate": "NEXT88"}));
    assert_eq!(assignments(&organization, &sold), ended);
    let left = assignments(&organization, &next);
    assert!(left[0]["number"] == "SOLD88" && left[0]["to"].is_string(), "{left}");
    let reason = &suggested(&organization, "tolls")[0]["reason"];
    assert_eq!(*reason, json!(format!("2 vehicles had this plate number at that time: {sold} and {next}.")));
}

#[test]
fn tolls_follow_when_the_operator_corrects_a_date() {
    let organization = Server::shared().organization();
    let [(first, one), (second, other)] = two_vehicles(&organization);
    tag_tolls(&organization, &[BEFORE, AFTER]);
    attached(&organization, "tolls");
    assert_eq!(each(&organization, "customer_id"), [one.clone(), one.clone()]);
    patch(&organization, &first, &json!({"transponder_number": null}));
    assign(&organization, &first, &json!([tag(None, Some(MOVED))])).ok();
    // Nobody had it then, so nobody pays.
    wait_for_each(&organization, "customer_id", &[one.clone(), Value::Null]);
    let suggestion = &suggested(&organization, "tolls")[0];
    let reason = format!("No vehicle had this transponder at that time; vehicle {first} has it until {MOVED}.");
    assert_eq!((&suggestion["verdict"], &suggestion["reason"]), (&json!("unclear"), &json!(reason)));
    assign(&organization, &second, &json!([tag(Some(MOVED), Some("2026-07-01T00:00:00Z"))])).ok();
    attached(&organization, "tolls");
    wait_for_each(&organization, "customer_id", &[one, other.clone()]);
    // The attached toll moves to the other vehicle, and its renter.
    assign(&organization, &first, &json!([])).ok();
    assign(&organization, &second, &json!([tag(None, Some("2026-07-01T00:00:00Z"))])).ok();
    attached(&organization, "tolls");
    wait_for_each(&organization, "customer_id", &[other.clone(), other]);
    wait_for_each(&organization, "vehicle_id", &[json!(second), json!(second)]);
}

#[test]
fn a_toll_without_a_time_is_clear_only_if_the_vehicle_had_the_tag_all_day() {
    let organization = Server::shared().organization();
    let [(first, one), (second, other)] = two_vehicles(&organization);
    patch(&organization, &first, &json!({"transponder_number": null}));
    assign(&organization, &first, &json!([tag(None, Some(MOVED))])).ok();
    let rows: String = ["06/14/2026", "06/15/2026", "06/16/2026"]
        .iter()
        .map(|day| format!("{day},{day},{TAG},MTAB&T,-,-,-,-,RKB,1,-,1,($6.94),NO,STANDARD,N,1\n"))
        .collect();
    let head = "POSTING DATE,TRANSACTION DATE,TAG/PLATE NUMBER,AGENCY,ACTIVITY,ENTRY TIME,ENTRY PLAZA,ENTRY LANE,EXIT \
                TIME,EXIT PLAZA,EXIT LANE,VEHICLE TYPE CODE,AMOUNT,PREPAID,PLAN/RATE,FARE TYPE,BALANCE\n";
    let rows = rows.replace("MTAB&T,-,-,-,-,RKB,1,-,1,", "MTAB&T,TOLL,-,-,-,-,RKB,1,1,");
    let reply = import(&organization, "tolls", "?format=ezpass-nj", &format!("{head}{rows}")).ok();
    assert_eq!(counts(&reply)[0], 3, "{reply}");
    let by_day = |member: &str| {
        let mut tolls = all(&organization, "tolls");
        tolls.sort_by_key(|toll| toll["occurred_on"].as_str().map(str::to_owned));
        tolls.iter().map(|toll| toll[member].clone()).collect::<Vec<_>>()
    };
    assert_eq!(by_day("vehicle_id"), [json!(first), Value::Null, Value::Null]);
    let why = |day: &str| {
        let found = suggested(&organization, "tolls");
        found.iter().find(|row| row["when"] == day).unwrap_or_else(|| panic!("{found:?}"))["reason"].clone()
    };
    assert_eq!(
        why("2026-06-15"),
        format!("Vehicle {first} had the transponder until {MOVED}, and only the day is known.")
    );
    assign(&organization, &second, &json!([tag(Some(MOVED), Some("2026-07-01T00:00:00Z"))])).ok();
    let [low, high] = if first < second { [&first, &second] } else { [&second, &first] };
    assert_eq!(why("2026-06-15"), format!("2 vehicles had this transponder on that day: {low} and {high}."));
    // Whoever decides sees the customers of both.
    let found = suggested(&organization, "tolls");
    let unclear = found.iter().find(|row| row["when"] == "2026-06-15").expect("it is listed");
    let candidates = unclear["candidates"].as_array().expect("a list");
    let customers: Vec<&Value> = candidates.iter().map(|candidate| &candidate["customer_id"]).collect();
    assert!(customers.len() == 2 && [&one, &other].iter().all(|customer| customers.contains(customer)), "{unclear}");
    attached(&organization, "tolls");
    assert_eq!(by_day("vehicle_id"), [json!(first), Value::Null, json!(second)]);
}

#[test]
fn what_another_vehicle_has_at_that_time_is_refused_and_nothing_changes() {
    let organization = Server::shared().organization();
    let [(first, _), (second, _)] = two_vehicles(&organization);
    let before = assignments(&organization, &second);
    let refused = assign(&organization, &second, &json!([tag(Some(MOVED), Some("2026-07-01T00:00:00Z"))]));
    let error = refused.error(400, "invalid_request_error", "parameter_invalid");
    assert_eq!(
        error["message"],
        format!(
            "`assignments[0]` overlaps with the transponder {TAG} at all times of vehicle {first}: change the assignments \
             of that vehicle first, or give times that do not overlap."
        )
    );
    assert_eq!(assignments(&organization, &second), before);
    for (list, bad) in [
        (json!([tag(Some(MOVED), Some(MOVED))]), "assignments[0].to"),
        (json!([{"kind": "toll_tag", "number": "none"}]), "assignments[0].number"),
        (json!([{"kind": "badge", "number": TAG}]), "assignments[0].kind"),
        (json!([{"kind": "plate"}]), "assignments[0].number"),
        (json!([{"kind": "plate", "number": "AB1", "until": null}]), "assignments[0]"),
        (
            json!([{"kind": "plate", "number": "AB1"}, {"kind": "plate", "number": "ab-1", "state": "NY"}]),
            "assignments[1]",
        ),
        (json!("none"), "assignments"),
        (json!(vec![tag(None, None); 101]), "assignments"),
    ] {
        let refused = assign(&organization, &second, &list);
        assert_eq!(refused.bad_fields()[0].0, bad, "{}", refused.text());
        assert_eq!(refused.status, 400);
    }
    let refused = assign(&organization, &first, &json!([tag(None, Some(MOVED))]));
    let text = "must have the vehicle's present `transponder_number` without a `to`: transponder 00412345678.";
    assert!(refused.text().contains(text), "{}", refused.text());
}

#[test]
fn the_assignments_of_a_vehicle_are_its_fields_until_they_change() {
    let organization = Server::shared().organization();
    let vehicle =
        organization.vehicle(json!({"plate": "ABC 123", "plate_state": "New York", "transponder_number": TAG}));
    let plate = json!({"kind": "plate", "number": "ABC 123", "state": "New York", "from": null, "to": null});
    assert_eq!(assignments(&organization, &vehicle), json!([tag(None, None), plate]));
    patch(&organization, &vehicle, &json!({"plate": "XYZ 9"}));
    let found = assignments(&organization, &vehicle);
    assert!(found[1]["to"].is_string() && found[1]["number"] == "ABC 123", "{found}");
    let new = json!({"kind": "plate", "number": "XYZ 9", "state": "New York", "from": null, "to": null});
    assert_eq!((&found[0], &found[2]), (&tag(None, None), &new));
    assert_eq!(organization.get("/v1/vehicles?plate=ABC123").ok()["data"], json!([]));
}

#[test]
fn a_stale_if_match_replaces_no_assignments_and_each_change_has_a_tag_of_its_own() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "TAG1111", "plate_state": "NY"}));
    let call = |method: &str, (name, value): (&str, &str), body: &Value| {
        let (path, token) = (format!("/admin/v1/vehicles/{vehicle}/assignments"), format!("Bearer {ADMIN_TOKEN}"));
        let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json"), (name, value)];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Connection::open(&organization.server.address).send(method, &path, &headers, body.as_bytes())
    };
    let tag_of = |reply: &Reply| reply.header("etag").expect("an ETag").to_owned();
    let present = || tag_of(&call("GET", ("X-None", "1"), &Value::Null));
    let first = present();
    assert_eq!(call("GET", ("If-None-Match", &first), &Value::Null).status, 304);
    patch(&organization, &vehicle, &json!({"plate": "TAG2222"}));
    let (second, before) = (present(), assignments(&organization, &vehicle));
    assert_ne!(first, second);
    let list =
        json!({"assignments": [{"kind": "plate", "number": "TAG2222", "state": "NY", "from": null, "to": null}]});
    call("PUT", ("If-Match", &first), &list).error(412, "invalid_request_error", "precondition_failed");
    assert_eq!(assignments(&organization, &vehicle), before);
    let replaced = call("PUT", ("If-Match", &second), &list);
    assert_eq!(replaced.ok()["assignments"], list["assignments"]);
    let third = tag_of(&replaced);
    assert_eq!(third, present());
    assert_ne!(second, third);
    let again = call("PUT", ("If-Match", &third), &list);
    assert_eq!((again.status, tag_of(&again)), (200, third), "a list that changes nothing has no new tag");
}

#[test]
fn an_import_of_the_organization_keeps_the_assignments() {
    let organization = Server::shared().organization();
    let [(first, _), (second, customer)] = two_vehicles(&organization);
    patch(&organization, &first, &json!({"transponder_number": null}));
    assign(&organization, &first, &json!([tag(None, Some(MOVED))])).ok();
    assign(&organization, &second, &json!([tag(Some(MOVED), Some("2026-07-01T00:00:00Z"))])).ok();
    let path = format!("/admin/v1/organizations/{}/export", organization.id);
    let export = organization.server.admin("GET", &path, &Value::Null).text();
    let other = Server::start(&[]);
    let target = other.organization();
    let path = format!("/admin/v1/organizations/{}/import", target.id);
    let token = format!("Bearer {}", other.admin_token);
    let headers = [("Authorization", token.as_str()), ("Content-Type", "application/x-ndjson")];
    let reply = Connection::open(&other.address).send("POST", &path, &headers, export.as_bytes()).ok();
    assert_eq!(reply["invalid"], 0, "{reply}");
    for vehicle in [&first, &second] {
        assert_eq!(assignments(&target, vehicle), assignments(&organization, vehicle));
    }
    tag_tolls(&target, &[AFTER]);
    attached(&target, "tolls");
    assert_eq!(each(&target, "customer_id"), [customer]);
}
