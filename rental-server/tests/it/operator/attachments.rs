//! Automatic attachments stay true: they follow the rentals and vehicles on which they rest.

use super::{
    all, counts, import,
    suggestions::{attached, customer_of, stay, suggested, tolls},
};
use crate::{
    support::{Organization, Reply, Server, database},
    webhooks::{observed, wait_for},
};
use serde_json::{Value, json};

/// An attached toll of the first vehicle's only rental: its id, the rental and the customer.
fn attached_toll(organization: &Organization, plate: &str) -> (String, String, Value) {
    let vehicle = organization.vehicle(json!({"plate": plate}));
    let rental = stay(organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    tolls(organization, plate, &["2026-06-02T14:00:00Z"]);
    assert_eq!(attached(organization, "tolls")[0]["attached"], true);
    let toll = &all(organization, "tolls")[0];
    let customer = customer_of(organization, &rental);
    assert_eq!((&toll["customer_id"], &toll["attribution"]), (&customer, &json!("automatic")));
    (toll["id"].as_str().unwrap().to_owned(), rental, customer)
}

fn toll(organization: &Organization, id: &str) -> Value {
    organization.get(&format!("/v1/tolls/{id}")).ok()
}

/// Waits until a toll has these members.
#[track_caller]
fn wait_until(organization: &Organization, id: &str, expected: &Value) -> Value {
    let has = |toll: &Value| expected.as_object().unwrap().iter().all(|(name, value)| toll[name] == *value);
    let look = || Some(toll(organization, id)).filter(has);
    wait_for(&format!("a toll with {expected}"), look, || toll(organization, id).to_string())
}

fn change(organization: &Organization, rental: &str, fields: &Value) {
    organization.patch(&format!("/v1/rentals/{rental}"), fields).ok();
}

fn release(organization: &Organization, plural: &str, id: &str) -> Reply {
    organization.server.admin("POST", &format!("/admin/v1/{plural}/{id}/release"), &Value::Null)
}

fn bill(organization: &Organization, toll: &Value) -> String {
    let path = format!("/admin/v1/organizations/{}/invoices", organization.id);
    let body = json!({"customer_id": toll["customer_id"], "lines": [{"toll_id": toll["id"]}]});
    organization.server.admin("POST", &path, &body).id()
}

#[test]
fn an_attachment_follows_the_customer_of_its_rental_with_an_event() {
    let organization = Server::shared().organization();
    let (id, rental, first) = attached_toll(&organization, "FOLLOW1");
    assert_eq!(toll(&organization, &id)["attribution_reason"], "Had the vehicle 2026-06-01 to 2026-06-05.");
    let other = organization.customer(json!({}));
    change(&organization, &rental, &json!({"customer_id": other}));
    let now = wait_until(&organization, &id, &json!({"customer_id": other, "attribution": "automatic"}));
    let events = observed(&organization, "events", "&type=toll.attached");
    let whose: Vec<&Value> = events.iter().map(|event| &event["data"]["customer_id"]).collect();
    assert_eq!(whose, [&json!(other), &first]);
    assert_eq!(events[0]["data"], now);
}

#[test]
fn an_attachment_that_is_no_longer_clear_is_detached_and_is_attached_again_when_it_is() {
    let organization = Server::shared().organization();
    let (id, rental, customer) = attached_toll(&organization, "DETACH1");
    // What nobody ever attached stays unattached until somebody asks for it.
    tolls(&organization, "DETACH1", &["2026-06-03T14:00:00Z"]);
    change(&organization, &rental, &json!({"status": "CANCELLED"}));
    let none = json!({"customer_id": null, "attribution": null, "rental_id": null, "attribution_reason": null});
    let now = wait_until(&organization, &id, &none);
    assert!(now["review_reason"].as_str().unwrap().starts_with("DETACHED: "), "{now}");
    let events = observed(&organization, "events", "&type=toll.detached");
    assert_eq!(events.iter().map(|event| &event["data"]).collect::<Vec<_>>(), [&now]);
    assert!(suggested(&organization, "tolls").iter().all(|one| one["verdict"] == "nobody"));
    // Asking for suggestions does not make the server forget it.
    attached(&organization, "tolls");
    change(&organization, &rental, &json!({"status": "COMPLETED"}));
    let again = wait_until(&organization, &id, &json!({"customer_id": customer, "review_reason": null}));
    assert_eq!(again["attribution"], "automatic");
    assert_eq!(observed(&organization, "events", "&type=toll.attached").len(), 2);
    assert_eq!(suggested(&organization, "tolls").len(), 1, "the other one waits for a person");
}

#[test]
fn a_person_who_decides_about_what_was_detached_has_the_last_word() {
    let organization = Server::shared().organization();
    let (id, rental, _) = attached_toll(&organization, "DECIDED1");
    change(&organization, &rental, &json!({"status": "CANCELLED"}));
    wait_until(&organization, &id, &json!({"customer_id": null}));
    let settled = json!({"customer_id": null, "attribution": "manual", "review_reason": null});
    organization.patch(&format!("/v1/tolls/{id}"), &json!({"customer_id": null})).ok();
    wait_until(&organization, &id, &settled);
    let before = toll(&organization, &id);
    change(&organization, &rental, &json!({"status": "COMPLETED"}));
    // Another toll of the vehicle follows, so the work is done.
    tolls(&organization, "DECIDED1", &["2026-06-03T14:00:00Z"]);
    assert_eq!(attached(&organization, "tolls").len(), 1);
    let other = all(&organization, "tolls").into_iter().find(|toll| toll["id"] != id).unwrap();
    change(&organization, &rental, &json!({"customer_id": organization.customer(json!({}))}));
    let look = || {
        Some(toll(&organization, other["id"].as_str().unwrap()))
            .filter(|now| now["customer_id"] != other["customer_id"])
    };
    wait_for("the other toll", look, || other.to_string());
    assert_eq!(toll(&organization, &id), before);
    assert_eq!(observed(&organization, "events", "&type=toll.detached").len(), 1, "who had no customer lost none");
}

/// Two changes of a number: between them, nobody has it.
#[test]
fn a_tag_that_moves_in_two_changes_takes_what_was_detached_along() {
    let organization = Server::shared().organization();
    let (id, _, first) = attached_toll(&organization, "STEPS1");
    let vehicle = toll(&organization, &id)["vehicle_id"].as_str().unwrap().to_owned();
    let other = organization.vehicle(json!({}));
    let next = stay(&organization, &other, ["2026-06-01", "2026-06-05"], "COMPLETED");
    let assign = |vehicle: &str, since: &str| {
        let path = format!("/admin/v1/vehicles/{vehicle}/assignments");
        let list = json!([{"kind": "plate", "number": "STEPS1", since: "2026-06-02T00:00:00Z"}]);
        organization.server.admin("PUT", &path, &json!({"assignments": list})).ok();
    };
    organization.patch(&format!("/v1/vehicles/{vehicle}"), &json!({"plate": null})).ok();
    assign(&vehicle, "to");
    wait_until(&organization, &id, &json!({"customer_id": null}));
    organization.patch(&format!("/v1/vehicles/{other}"), &json!({"plate": "STEPS1"})).ok();
    assign(&other, "from");
    let expected = json!({"customer_id": customer_of(&organization, &next), "vehicle_id": other});
    wait_until(&organization, &id, &expected);
    assert_ne!(first, expected["customer_id"]);
}

#[test]
fn a_detached_toll_keeps_the_vehicle_that_was_known_last_until_its_number_is_known_to_be_of_another_one() {
    let organization = Server::shared().organization();
    let (id, rental, _) = attached_toll(&organization, "KEEPS1");
    let vehicle = toll(&organization, &id)["vehicle_id"].as_str().unwrap().to_owned();
    change(&organization, &rental, &json!({"status": "CANCELLED"}));
    wait_until(&organization, &id, &json!({"customer_id": null, "vehicle_id": vehicle}));
    let listed = organization.get(&format!("/v1/tolls?vehicle={vehicle}")).ok();
    assert_eq!(listed["data"][0]["id"], id, "it is found with its vehicle");
    // The vehicle has the plate only since a later day: nobody knows which one had it before.
    change(&organization, &rental, &json!({"status": "COMPLETED"}));
    wait_until(&organization, &id, &json!({"attribution": "automatic"}));
    let assign = |vehicle: &str, assignments: Value| {
        let path = format!("/admin/v1/vehicles/{vehicle}/assignments");
        organization.server.admin("PUT", &path, &json!({"assignments": assignments})).ok();
    };
    let changed = "2026-06-20T12:00:00Z";
    assign(&vehicle, json!([{"kind": "plate", "number": "KEEPS1", "from": changed}]));
    wait_until(&organization, &id, &json!({"customer_id": null, "vehicle_id": vehicle}));
    assert_ne!(suggested(&organization, "tolls")[0]["verdict"], "clear");
    let other = organization.vehicle(json!({}));
    assign(&other, json!([{"kind": "plate", "number": "KEEPS1", "to": changed}]));
    wait_until(&organization, &id, &json!({"customer_id": null, "vehicle_id": other}));
}

#[test]
fn an_attachment_follows_days_times_vehicles_and_plates() {
    let organization = Server::shared().organization();
    let (id, rental, customer) = attached_toll(&organization, "MOVES1");
    let next = |fields: &Value, expected: &Value| {
        change(&organization, &rental, fields);
        wait_until(&organization, &id, expected);
    };
    let (attached_to, nobody) = (json!({"customer_id": customer}), json!({"customer_id": null}));
    let again = || drop(attached(&organization, "tolls"));
    next(&json!({"start_date": "2026-06-03"}), &nobody);
    next(&json!({"start_date": "2026-06-01"}), &attached_to);
    next(&json!({"activated_at": "2026-06-02T15:00:00Z"}), &nobody);
    next(&json!({"activated_at": "2026-06-02T13:00:00Z"}), &attached_to);
    let spare = organization.vehicle(json!({"plate": "SPARE1"}));
    next(&json!({"vehicle_id": spare}), &nobody);
    // A plate corrected later counts from the beginning.
    organization.patch(&format!("/v1/vehicles/{spare}"), &json!({"plate": "WRONG1"})).ok();
    let toll_of_wrong = json!({"customer_id": customer, "vehicle_id": spare});
    tolls(&organization, "RIGHT1", &["2026-06-02T14:00:00Z"]);
    organization.patch(&format!("/v1/vehicles/{spare}"), &json!({"plate": "RIGHT1"})).ok();
    again();
    let corrected = all(&organization, "tolls")[0]["id"].as_str().unwrap().to_owned();
    wait_until(&organization, &corrected, &toll_of_wrong);
}

#[test]
fn a_violation_whose_plate_the_city_corrects_leaves_the_old_renter() {
    let organization = Server::shared().organization();
    let [right, wrong] = ["RIGHT1", "WRONG1"].map(|plate| {
        let vehicle = organization.vehicle(json!({"plate": plate, "plate_state": "NY"}));
        customer_of(&organization, &stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED"))
    });
    let file = |plate: &str| {
        let head = "plate,state,summons_number,issue_date,violation_time,violation,fine_amount,amount_due";
        let row = format!("{head}\n{plate},NY,4631234567,06/02/2026,02:03P,PHTO SCHOOL ZN SPEED VIOLATION,50,50\n");
        counts(&import(&organization, "violations", "", &row).ok())
    };
    assert_eq!(file("WRONG1"), [1, 0, 0, 0, 0]);
    attached(&organization, "violations");
    assert_eq!(all(&organization, "violations")[0]["customer_id"], wrong);
    assert_eq!(file("RIGHT1"), [0, 1, 0, 0, 0]);
    let look = || Some(all(&organization, "violations")).filter(|found| found[0]["customer_id"] == right);
    wait_for("the right renter", look, || all(&organization, "violations")[0].to_string());
    assert_eq!(observed(&organization, "events", "&type=violation.attached").len(), 2);
}

/// A rental that took place shows that the booking on its days did not, also for the days on which the booking began.
#[test]
fn a_rental_that_displaces_a_booking_decides_all_days_of_the_booking() {
    let organization = Server::shared().organization_with(&json!({"name": "Open", "booking_policy": "open"}));
    let vehicle = organization.vehicle(json!({"plate": "DISPLACE1"}));
    let eve = stay(&organization, &vehicle, ["2026-06-01", "2026-06-03"], "COMPLETED");
    stay(&organization, &vehicle, ["2026-06-03", "2026-06-25"], "APPROVED");
    let bob = stay(&organization, &vehicle, ["2026-06-15", "2026-06-17"], "COMPLETED");
    tolls(&organization, "DISPLACE1", &["2026-06-03T17:00:20Z"]);
    assert_eq!(attached(&organization, "tolls")[0]["attached"], true);
    let id = all(&organization, "tolls")[0]["id"].as_str().unwrap().to_owned();
    wait_until(&organization, &id, &json!({"customer_id": customer_of(&organization, &eve)}));
    // The mark of the attachment itself is worked off, so that only the change of the other rental leads to the toll.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    change(&organization, &bob, &json!({"status": "CANCELLED"}));
    let now = wait_until(&organization, &id, &json!({"customer_id": null}));
    assert_eq!(now["review_reason"], "DETACHED: 2 rentals come into question.");
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    stay(&organization, &vehicle, ["2026-06-15", "2026-06-17"], "COMPLETED");
    wait_until(&organization, &id, &json!({"customer_id": customer_of(&organization, &eve)}));
}

#[test]
fn an_export_has_the_attachments_that_follow_from_what_was_changed_before() {
    let organization = Server::shared().organization();
    let (_, rental, _) = attached_toll(&organization, "EXPORT1");
    let other = organization.customer(json!({}));
    change(&organization, &rental, &json!({"customer_id": other}));
    let path = format!("/admin/v1/organizations/{}/export?pace=full", organization.id);
    let export = organization.server.admin("GET", &path, &Value::Null).text();
    let toll = export.lines().find(|line| line.contains("\"object\":\"toll\"")).expect("the toll");
    assert_eq!(serde_json::from_str::<Value>(toll).unwrap()["customer_id"], json!(other));
}

#[test]
fn a_detached_violation_whose_plate_the_city_corrects_reaches_the_right_renter() {
    let organization = Server::shared().organization();
    let [right, wrong] = ["DRIGHT1", "DWRONG1"].map(|plate| {
        let vehicle = organization.vehicle(json!({"plate": plate, "plate_state": "NY"}));
        stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED")
    });
    let file = |plate: &str| {
        let head = "plate,state,summons_number,issue_date,violation_time,violation,fine_amount,amount_due";
        let row = format!("{head}\n{plate},NY,4631234568,06/02/2026,02:03P,PHTO SCHOOL ZN SPEED VIOLATION,50,50\n");
        counts(&import(&organization, "violations", "", &row).ok())
    };
    assert_eq!(file("DWRONG1"), [1, 0, 0, 0, 0]);
    attached(&organization, "violations");
    change(&organization, &wrong, &json!({"status": "CANCELLED"}));
    let customer = |wanted: &Value| {
        let look = || Some(all(&organization, "violations")).filter(|found| found[0]["customer_id"] == *wanted);
        wait_for("the customer", look, || all(&organization, "violations")[0].to_string());
    };
    customer(&Value::Null);
    assert_eq!(file("DRIGHT1"), [0, 1, 0, 0, 0]);
    customer(&customer_of(&organization, &right));
}

#[test]
fn what_is_billed_keeps_its_customer_and_is_listed_for_review_until_the_invoice_is_void() {
    let organization = Server::shared().organization();
    let (id, rental, first) = attached_toll(&organization, "BILLED1");
    let invoice = bill(&organization, &toll(&organization, &id));
    let other = organization.customer(json!({}));
    change(&organization, &rental, &json!({"customer_id": other}));
    let reason = "An invoice bills it, but by what is recorded now another customer pays: Had the vehicle 2026-06-01 to \
                  2026-06-05.";
    wait_until(&organization, &id, &json!({"customer_id": first, "review_reason": reason}));
    change(&organization, &rental, &json!({"customer_id": first}));
    wait_until(&organization, &id, &json!({"customer_id": first, "review_reason": null}));
    change(&organization, &rental, &json!({"customer_id": other}));
    wait_until(&organization, &id, &json!({"customer_id": first, "review_reason": reason}));
    organization.server.admin("POST", &format!("/admin/v1/invoices/{invoice}/void"), &Value::Null).ok();
    wait_until(&organization, &id, &json!({"customer_id": other, "review_reason": null}));
}

#[test]
fn a_person_who_confirms_the_customer_ends_the_review() {
    let organization = Server::shared().organization();
    let (id, rental, first) = attached_toll(&organization, "CONFIRM1");
    bill(&organization, &toll(&organization, &id));
    change(&organization, &rental, &json!({"status": "CANCELLED"}));
    let look = || Some(toll(&organization, &id)).filter(|toll| toll["review_reason"].is_string());
    wait_for("a reason for a review", look, || toll(&organization, &id).to_string());
    organization.patch(&format!("/v1/tolls/{id}"), &json!({"customer_id": first})).ok();
    let expected = json!({"customer_id": first, "attribution": "manual", "review_reason": null});
    wait_until(&organization, &id, &expected);
}

#[test]
fn a_choice_of_a_person_is_never_changed_until_it_is_given_back() {
    let organization = Server::shared().organization();
    let (id, rental, first) = attached_toll(&organization, "CHOICE1");
    let other = organization.customer(json!({}));
    organization.patch(&format!("/v1/tolls/{id}"), &json!({"customer_id": other})).ok();
    assert_eq!(toll(&organization, &id)["attribution_reason"], Value::Null);
    change(&organization, &rental, &json!({"end_date": "2026-06-06"}));
    let released = release(&organization, "tolls", &id).ok();
    assert_eq!((&released["customer_id"], &released["attribution"]), (&first, &json!("automatic")));
    assert_eq!(released["rental_id"], json!(rental));
    assert_eq!(observed(&organization, "events", "&type=toll.attached").len(), 3);
    // From now on it follows its rental again.
    change(&organization, &rental, &json!({"customer_id": other}));
    wait_until(&organization, &id, &json!({"customer_id": other}));
    // A choice of nobody can be given back, too.
    organization.patch(&format!("/v1/tolls/{id}"), &json!({"customer_id": null})).ok();
    assert!(suggested(&organization, "tolls").is_empty());
    assert_eq!(release(&organization, "tolls", &id).ok()["customer_id"], json!(other));
    change(&organization, &rental, &json!({"status": "CANCELLED"}));
    wait_until(&organization, &id, &json!({"customer_id": null, "attribution": null}));
}

/// Its plate leads back to a toll without a vehicle.
#[test]
fn a_released_toll_whose_vehicle_is_not_known_is_attached_when_its_plate_is_of_one_vehicle() {
    let organization = Server::shared().organization();
    let [first, second] = [(); 2].map(|()| organization.vehicle(json!({"plate": "BOTH1"})));
    let rental = stay(&organization, &first, ["2026-06-01", "2026-06-30"], "COMPLETED");
    tolls(&organization, "BOTH1", &["2026-06-02T14:00:00Z"]);
    let id = all(&organization, "tolls")[0]["id"].as_str().unwrap().to_owned();
    organization.patch(&format!("/v1/tolls/{id}"), &json!({"customer_id": organization.customer(json!({}))})).ok();
    let released = release(&organization, "tolls", &id).ok();
    let reason = format!("DETACHED: 2 vehicles had this plate number at that time: {first} and {second}.");
    let expected = json!({"customer_id": null, "attribution": null, "review_reason": reason, "vehicle_id": null});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(released[name], *value, "{name} of {released}");
    }
    assert_eq!(observed(&organization, "events", "&type=toll.detached").len(), 1);
    organization.patch(&format!("/v1/vehicles/{second}"), &json!({"plate": null})).ok();
    let toll = wait_until(&organization, &id, &json!({"customer_id": customer_of(&organization, &rental)}));
    assert_eq!((&toll["vehicle_id"], &toll["review_reason"]), (&json!(first), &Value::Null), "{toll}");
}

#[test]
fn what_is_billed_to_another_customer_cannot_be_released() {
    let organization = Server::shared().organization();
    let (id, _, first) = attached_toll(&organization, "BOUND1");
    organization.patch(&format!("/v1/tolls/{id}"), &json!({"customer_id": organization.customer(json!({}))})).ok();
    bill(&organization, &toll(&organization, &id));
    release(&organization, "tolls", &id).error(409, "invalid_request_error", "state_conflict");
    assert_ne!(toll(&organization, &id)["customer_id"], first);
    release(&organization, "tolls", "unknown").error(404, "invalid_request_error", "resource_missing");
}

/// The attachments of an organization after a change of its rental, which a kill interrupts.
#[test]
fn the_work_goes_on_after_a_kill() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let organization = server.organization();
    let vehicle = organization.vehicle(json!({"plate": "KILLED1"}));
    let rental = stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    let times: Vec<String> = (0..300).map(|n| format!("2026-06-02T14:{:02}:{:02}Z", n / 60, n % 60)).collect();
    tolls(&organization, "KILLED1", &times.iter().map(String::as_str).collect::<Vec<_>>());
    (0..3).for_each(|_| drop(attached(&organization, "tolls")));
    let other = organization.customer(json!({}));
    change(&organization, &rental, &json!({"customer_id": other}));
    let (id, read, write) = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    drop(organization);
    server.signal("KILL");
    server.wait_until_gone();
    drop(server);
    for kill in [true, false] {
        let server = Server::start_on_file(directory.path(), &[]);
        let organization = Organization { server: &server, id: id.clone(), read: read.clone(), write: write.clone() };
        let moved = || all(&organization, "tolls").iter().filter(|toll| toll["customer_id"] == json!(other)).count();
        if kill {
            wait_for("the first batch", || (moved() > 0).then_some(()), || moved().to_string());
            drop(organization);
            server.signal("KILL");
            server.wait_until_gone();
            continue;
        }
        wait_for("all tolls", || (moved() == times.len()).then_some(()), || moved().to_string());
        assert_eq!(observed(&organization, "events", "&type=toll.attached").len(), 2 * times.len(), "each once");
    }
}

#[test]
fn two_servers_on_one_database_derive_each_attachment_once() {
    let Some(database) = database() else { return };
    let servers = [(); 2].map(|()| Server::start_on(&database, &[]));
    let organization = servers[0].organization();
    let other = organization.by_way_of(&servers[1]);
    let vehicle = organization.vehicle(json!({"plate": "SHARED1"}));
    let rental = stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    let times: Vec<String> = (0..100).map(|n| format!("2026-06-02T14:{:02}:{:02}Z", n / 60, n % 60)).collect();
    tolls(&organization, "SHARED1", &times.iter().map(String::as_str).collect::<Vec<_>>());
    attached(&organization, "tolls");
    let customers: Vec<String> = (0..6).map(|_| organization.customer(json!({}))).collect();
    for (turn, customer) in customers.iter().enumerate() {
        change([&organization, &other][turn % 2], &rental, &json!({"customer_id": customer}));
    }
    let last = json!(customers.last());
    let moved = || all(&other, "tolls").iter().filter(|toll| toll["customer_id"] == last).count();
    wait_for("all tolls", || (moved() == times.len()).then_some(()), || moved().to_string());
    let events = observed(&organization, "events", "&type=toll.attached");
    let to_last = events.iter().filter(|event| event["data"]["customer_id"] == last);
    assert_eq!(to_last.count(), times.len(), "each is attached to the last customer once");
}

#[test]
fn what_a_person_has_to_look_at_is_listed_with_names_and_local_times() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "LOOK1"}));
    let rentals = [["2026-06-01", "2026-06-05"], ["2026-06-05", "2026-06-09"]]
        .map(|days| stay(&organization, &vehicle, days, "COMPLETED"));
    tolls(&organization, "LOOK1", &["2026-06-05T17:00:00Z", "2026-06-02T14:03:00Z"]);
    tolls(&organization, "OTHER1", &["2026-06-02T14:03:00Z"]);
    assert_eq!(attached(&organization, "tolls").iter().filter(|one| one["attached"] == true).count(), 1);
    let page = |query: &str| {
        let path = format!("/admin/v1/organizations/{}/tolls/review{query}", organization.id);
        organization.server.admin("GET", &path, &Value::Null)
    };
    let all_of_it = page("").ok();
    let shown = all_of_it["data"].as_array().unwrap();
    assert_eq!(shown.len(), 2, "{all_of_it}");
    let unclear = &shown[1];
    assert_eq!(
        (&unclear["when"], &unclear["plate"], &unclear["place"]),
        (&json!("2026-06-05 13:00 -04:00"), &json!("LOOK1"), &json!("RKB"))
    );
    assert_eq!((&unclear["verdict"], &unclear["reason"]), (&json!("unclear"), &json!("2 rentals come into question.")));
    let candidate = &unclear["candidates"][0];
    assert_eq!(
        (&candidate["customer_name"], &candidate["start_date"]),
        (&json!("Test Customer"), &json!("2026-06-01"))
    );
    let first = page("?limit=1").ok();
    let next = page(&format!("?limit=1&starting_after={}", first["next_cursor"].as_str().unwrap())).ok();
    assert_eq!([&first["data"][0], &next["data"][0]], [&shown[0], &shown[1]]);
    assert_eq!(next["has_more"], false);
    for (query, name) in [("?limit=0", "limit"), ("?starting_after=zz", "starting_after"), ("?what=1", "what")] {
        assert_eq!(page(query).bad_fields()[0].0, name);
    }
    // What is billed and derived otherwise now is listed, too.
    let attached = all(&organization, "tolls").into_iter().find(|toll| toll["customer_id"].is_string()).unwrap();
    bill(&organization, &attached);
    change(&organization, &rentals[0], &json!({"status": "CANCELLED"}));
    let look = || page("").ok()["data"].as_array().unwrap().iter().find(|one| one["billed"] == true).cloned();
    let billed = wait_for("the billed toll", look, || page("").text());
    assert_eq!((&billed["id"], &billed["customer_name"]), (&attached["id"], &json!("Test Customer")));
}
