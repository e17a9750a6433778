//! GET /v1/tolls/review

use crate::{
    operator::{
        import,
        suggestions::{stay, tolls},
    },
    support::Server,
};
use serde_json::{Value, json};

#[test]
fn a_read_key_sees_what_operators_see_of_its_own_organization() {
    let [organization, other] = [(); 2].map(|()| Server::shared().organization());
    let vehicle = organization.vehicle(json!({"plate": "OWN1"}));
    for days in [["2026-06-01", "2026-06-05"], ["2026-06-05", "2026-06-09"]] {
        stay(&organization, &vehicle, days, "COMPLETED");
    }
    tolls(&organization, "OWN1", &["2026-06-05T17:00:00Z"]);
    tolls(&other, "OWN1", &["2026-06-05T17:00:00Z"]);
    let page = organization.get("/v1/tolls/review").ok();
    let path = format!("/admin/v1/organizations/{}/tolls/review", organization.id);
    assert_eq!(page, organization.server.admin("GET", &path, &Value::Null).ok());
    let [row] = page["data"].as_array().unwrap().as_slice() else { panic!("one row: {page}") };
    let shown =
        ["when", "agency", "number", "plate", "place", "amount", "verdict", "reason"].map(|member| row[member].clone());
    let number = "OWN1 2026-06-05T17:00:00Z";
    let why = "2 rentals come into question.";
    let expected = json!(["2026-06-05 13:00 -04:00", "MTAB&T", number, "OWN1", "RKB", 1, "unclear", why]);
    assert_eq!(json!(shown), expected);
    let names: Vec<_> = row["candidates"].as_array().unwrap().iter().map(|one| &one["customer_name"]).collect();
    assert_eq!(names, [&json!("Test Customer"); 2]);
}

/// A toll that was read by transponder has no plate of its own.
#[test]
fn a_row_names_the_vehicle_also_of_a_toll_that_was_read_by_transponder() {
    let organization = Server::shared().organization();
    organization.vehicle(json!({"plate": "TAG1", "transponder_number": "00412345671"}));
    let second = organization.vehicle(json!({"transponder_number": "00412345672"}));
    let file = "transaction_id,agency,amount,transponder_number,plate,occurred_at\n\
                1,MTAB&T,1,00412345671,,2026-06-05T17:00:00Z\n\
                2,MTAB&T,1,00412345672,,2026-06-04T17:00:00Z\n\
                3,MTAB&T,1,,UNKNOWN1,2026-06-03T17:00:00Z\n";
    import(&organization, "tolls", "", file).ok();
    let page = organization.get("/v1/tolls/review").ok();
    let shown = |row: &Value| ["plate", "vehicle_name", "vehicle_plate"].map(|member| row[member].clone());
    let shown: Vec<_> = page["data"].as_array().unwrap().iter().map(shown).collect();
    let expected =
        [[Value::Null, json!("Test vehicle"), Value::Null], [Value::Null, json!("Test vehicle"), json!("TAG1")]];
    assert_eq!(shown, [&[[json!("UNKNOWN1"), Value::Null, Value::Null]], &expected[..]].concat());
    assert_eq!(page["data"][1]["vehicle_id"], json!(second));
}

#[test]
fn a_walk_over_pages_shows_each_toll_once_newest_first() {
    let organization = Server::shared().organization();
    let times: Vec<String> = (0..25).map(|hour| format!("2026-06-{:02}T14:00:00Z", hour + 1)).collect();
    tolls(&organization, "NOBODY1", &times.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = organization.get(&format!("/v1/tolls/review?limit=10{cursor}")).ok();
        found.extend(page["data"].as_array().unwrap().iter().map(|row| row["occurred_on"].clone()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&starting_after={next}");
    }
    let expected: Vec<_> = times.iter().rev().map(|time| json!(time[..10])).collect();
    assert_eq!(found, expected);
    for (query, name) in [("limit=0", "limit"), ("starting_after=zz", "starting_after"), ("customer=1", "customer")] {
        assert_eq!(organization.get(&format!("/v1/tolls/review?{query}")).bad_fields()[0].0, name);
    }
}
