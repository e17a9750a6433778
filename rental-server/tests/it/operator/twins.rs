//! A passage that an agency posted by tag and again by plate: one of both is attached, and a person looks at the other one.

use super::{
    all, counts, import,
    suggestions::{attached, customer_of, stay, suggested},
};
use crate::{
    support::{Organization, Server},
    webhooks::wait_for,
};
use serde_json::{Value, json};

const HEADER: &str = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n";
const TAG: &str = "T1,2026-06-02T14:03:00Z,MTAB&T,RKB,,,00412345678,6.94\n";
const PLATE: &str = "V1,2026-06-02T14:04:10Z,MTAB&T,RKB,TWIN1,NY,,11.19\n";

/// An organization with one vehicle, which a customer had from 1 to 5 June.
fn organization() -> (Organization<'static>, Value) {
    let organization = Server::shared().organization();
    let fields = json!({"plate": "TWIN1", "plate_state": "NY", "transponder_number": "00412345678"});
    let vehicle = organization.vehicle(fields);
    let rental = stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    let customer = customer_of(&organization, &rental);
    (organization, customer)
}

#[track_caller]
fn record(organization: &Organization, rows: &[&str]) -> Value {
    let answer = import(organization, "tolls", "", &(HEADER.to_owned() + &rows.concat())).ok();
    assert_eq!(counts(&answer)[0], rows.len() as u64, "{answer}");
    answer
}

/// The toll with this number.
#[track_caller]
fn toll(organization: &Organization, number: &str) -> Value {
    let page = organization.get(&format!("/v1/tolls?transaction_id={number}")).ok();
    page["data"][0].clone()
}

fn review(organization: &Organization) -> Vec<Value> {
    organization.get("/v1/tolls/review").ok()["data"].as_array().unwrap().clone()
}

fn set_customer(organization: &Organization, toll: &Value, customer: &Value) {
    let path = format!("/v1/tolls/{}", toll["id"].as_str().unwrap());
    organization.patch(&path, &json!({"customer_id": customer})).ok();
}

/// That the first toll is attached, and the second one is listed with it.
#[track_caller]
fn second_is_listed(organization: &Organization, customer: &Value, [first, second]: [&str; 2]) {
    let [first, second] = [first, second].map(|number| toll(organization, number));
    assert_eq!((&first["customer_id"], &first["review_reason"]), (customer, &Value::Null));
    assert_eq!((&second["customer_id"], &second["attribution"]), (&Value::Null, &Value::Null));
    let reason = second["review_reason"].as_str().expect("a reason");
    let starts = format!("PROBABLE_TWIN: toll {} is probably the same passage", first["id"].as_str().unwrap());
    assert!(reason.starts_with(&starts), "{reason}");
    let listed = review(organization);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["id"], &listed[0]["reason"]), (&second["id"], &second["review_reason"]));
    let twin = &listed[0]["twin"];
    assert_eq!(
        ["id", "amount", "customer_id"].map(|member| &twin[member]),
        ["id", "amount", "customer_id"].map(|member| &first[member])
    );
    assert_eq!([&twin["agency"], &twin["number"]], [&first["agency"], &first["transaction_id"]]);
    assert_eq!(twin["customer_name"], "Test Customer");
    assert_eq!(listed[0]["candidates"][0]["customer_id"], *customer);
}

#[test]
fn the_second_posting_of_a_passage_is_not_attached_in_any_order_of_import() {
    for (files, numbers) in [
        (&[&[TAG, PLATE][..]][..], ["T1", "V1"]),
        (&[&[PLATE, TAG]], ["V1", "T1"]),
        (&[&[TAG], &[PLATE]], ["T1", "V1"]),
        (&[&[PLATE], &[TAG]], ["V1", "T1"]),
    ] {
        let (organization, customer) = organization();
        for file in files {
            record(&organization, file);
        }
        let shown = suggested(&organization, "tolls");
        let verdicts: Vec<_> = shown.iter().map(|one| (one["verdict"].clone(), one["twin_id"].is_null())).collect();
        assert_eq!(verdicts, [(json!("unclear"), false), (json!("clear"), true)]);
        for _ in 0..2 {
            attached(&organization, "tolls");
            second_is_listed(&organization, &customer, numbers);
        }
    }
}

#[test]
fn a_dry_run_shows_probable_twins() {
    let (organization, _) = organization();
    record(&organization, &[TAG]);
    let more =
        "T2,2026-06-03T14:05:00Z,MTAB&T,RKB,,,00412345678,6.94\nV2,2026-06-03T14:05:00Z,MTAB&T,,TWIN1,NY,,6.94\n";
    let file = HEADER.to_owned() + PLATE + more;
    let dry_run = import(&organization, "tolls", "?dry_run=true", &file).ok();
    let run = import(&organization, "tolls", "", &file).ok();
    assert_eq!(dry_run["review"], run["review"]);
    let rows: Vec<_> = run["review"].as_array().unwrap().iter().map(|row| row["row"].clone()).collect();
    assert_eq!(rows, [2, 4]);
    let [known, own] = [0, 1].map(|row| run["review"][row]["message"].as_str().unwrap());
    let first = format!("is probably the same passage as toll {};", toll(&organization, "T1")["id"].as_str().unwrap());
    assert!(known.starts_with(&first), "{known}");
    assert!(own.starts_with("is probably the same passage as an earlier row;"), "{own}");
}

#[test]
fn passages_that_only_look_alike_are_attached() {
    let (first, customer) = organization();
    let rows = [
        TAG,
        "T2,2026-06-02T14:02:30Z,MTAB&T,RKB,,,00412345678,6.94\n", // back again: the agency read the tag twice
        "V2,2026-06-02T14:03:20Z,MTAB&T,BWB,TWIN1,NY,,6.94\n",     // another plaza
        "V3,2026-06-02T14:05:01Z,MTAB&T,RKB,TWIN1,NY,,6.94\n",     // more than 2 minutes later
        "V4,2026-06-02T14:05:02Z,MTAB&T,RKB,TWIN1,NY,,6.94\n",     // read by plate twice
        "T5,2026-06-02T14:01:00Z,NYSTA,,,,00412345678,6.94\n",     // another agency that names no plaza
    ];
    record(&first, &rows);
    attached(&first, "tolls");
    for toll in all(&first, "tolls") {
        assert_eq!(toll["customer_id"], customer, "{toll}");
    }
    // Two agencies read the tag at one plaza.
    let (organization, customer) = organization();
    record(&organization, &[TAG, "N1,2026-06-02T14:03:10Z,NYSTA,rkb,,,00412345678,6.94\n"]);
    attached(&organization, "tolls");
    second_is_listed(&organization, &customer, ["T1", "N1"]);
}

#[test]
fn a_person_decides_about_a_twin_and_the_decision_stays() {
    let (organization, customer) = organization();
    record(&organization, &[TAG, PLATE]);
    attached(&organization, "tolls");
    // Another passage: both are charged.
    set_customer(&organization, &toll(&organization, "V1"), &customer);
    let real = toll(&organization, "V1");
    assert_eq!((&real["attribution"], &real["review_reason"]), (&json!("manual"), &Value::Null));
    assert!(review(&organization).is_empty());
    // The same passage: nobody pays the second posting.
    set_customer(&organization, &real, &Value::Null);
    assert!(review(&organization).is_empty());
    attached(&organization, "tolls");
    assert_eq!(toll(&organization, "V1")["customer_id"], Value::Null);
    assert_eq!(toll(&organization, "T1")["customer_id"], customer);
    // Given back, it waits for a decision again.
    let path = format!("/admin/v1/tolls/{}/release", real["id"].as_str().unwrap());
    organization.server.admin("POST", &path, &Value::Null).ok();
    second_is_listed(&organization, &customer, ["T1", "V1"]);
    // A twin that waits can be given to nobody at once.
    set_customer(&organization, &toll(&organization, "V1"), &Value::Null);
    assert!(review(&organization).is_empty());
}

#[test]
fn the_second_posting_is_free_when_nobody_pays_the_first_one() {
    let (organization, customer) = organization();
    record(&organization, &[TAG, PLATE]);
    set_customer(&organization, &toll(&organization, "T1"), &customer);
    set_customer(&organization, &toll(&organization, "T1"), &Value::Null);
    let look = || toll(&organization, "V1")["review_reason"].is_null().then_some(());
    wait_for("no reason", look, || toll(&organization, "V1").to_string());
    attached(&organization, "tolls");
    assert_eq!(toll(&organization, "V1")["customer_id"], customer);
}

#[test]
fn a_first_posting_that_the_agency_gives_back_frees_the_second_one() {
    let (organization, customer) = organization();
    record(&organization, &[PLATE, TAG]);
    attached(&organization, "tolls");
    second_is_listed(&organization, &customer, ["V1", "T1"]);
    let credit = "V1,2026-06-02T14:04:10Z,MTAB&T,RKB,TWIN1,NY,,-11.19\n";
    assert_eq!(counts(&import(&organization, "tolls", "", &(HEADER.to_owned() + credit)).ok()), [0, 1, 0, 0, 0]);
    let look = || toll(&organization, "T1")["review_reason"].is_null().then_some(());
    wait_for("no reason", look, || toll(&organization, "T1").to_string());
    attached(&organization, "tolls");
    assert_eq!(toll(&organization, "T1")["customer_id"], customer);
}

#[test]
fn a_billed_first_posting_stays_billed_and_its_twin_is_listed() {
    let (organization, customer) = organization();
    record(&organization, &[PLATE]);
    attached(&organization, "tolls");
    let path = format!("/admin/v1/organizations/{}/invoices", organization.id);
    let lines = json!({"customer_id": customer, "lines": [{"toll_id": toll(&organization, "V1")["id"]}]});
    organization.server.admin("POST", &path, &lines).ok();
    record(&organization, &[TAG]);
    attached(&organization, "tolls");
    second_is_listed(&organization, &customer, ["V1", "T1"]);
    assert_eq!(review(&organization)[0]["twin"]["billed"], true);
    assert_eq!(toll(&organization, "V1")["amount_billed"], 11.19);
}

/// The vehicle was entered after the tolls, so no look-up has them.
#[test]
fn twins_of_a_vehicle_that_is_entered_later_are_not_both_attached() {
    let organization = Server::shared().organization();
    record(&organization, &[TAG, PLATE]);
    let fields = json!({"plate": "TWIN1", "plate_state": "NY", "transponder_number": "00412345678"});
    let vehicle = organization.vehicle(fields);
    let rental = stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    attached(&organization, "tolls");
    second_is_listed(&organization, &customer_of(&organization, &rental), ["T1", "V1"]);
}

/// Each was attached while the other one belonged to another vehicle.
#[test]
fn of_two_attached_postings_that_become_twins_the_later_one_is_detached() {
    let organization = Server::shared().organization();
    let [car, other] = [json!({"plate": "TWIN1", "plate_state": "NY"}), json!({"transponder_number": "00412345678"})]
        .map(|fields| organization.vehicle(fields));
    let rental = stay(&organization, &car, ["2026-06-01", "2026-06-05"], "COMPLETED");
    stay(&organization, &other, ["2026-06-01", "2026-06-05"], "COMPLETED");
    record(&organization, &[PLATE, TAG]);
    assert!(attached(&organization, "tolls").iter().all(|one| one["attached"] == true));
    organization.patch(&format!("/v1/vehicles/{other}"), &json!({"transponder_number": null})).ok();
    organization.patch(&format!("/v1/vehicles/{car}"), &json!({"transponder_number": "00412345678"})).ok();
    // The car had the transponder from the beginning.
    let own = |kind: &str, number: &str, state: Option<&str>| json!({"kind": kind, "number": number, "state": state, "from": null, "to": null});
    let all = json!([own("plate", "TWIN1", Some("NY")), own("toll_tag", "00412345678", None)]);
    for (vehicle, list) in [(&other, json!([])), (&car, all)] {
        let path = format!("/admin/v1/vehicles/{vehicle}/assignments");
        organization.server.admin("PUT", &path, &json!({"assignments": list})).ok();
    }
    let look = || toll(&organization, "T1")["review_reason"].is_string().then_some(());
    let now = || {
        attached(&organization, "tolls");
        look()
    };
    wait_for("a twin", now, || toll(&organization, "T1").to_string());
    second_is_listed(&organization, &customer_of(&organization, &rental), ["V1", "T1"]);
}
