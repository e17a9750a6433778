//! GET /v1/violations/review

use crate::{operator::import, support::Server};
use serde_json::{Value, json};

#[test]
fn a_read_key_sees_its_own_violations_that_were_issued_first_before_others() {
    let [organization, other] = [(); 2].map(|()| Server::shared().organization());
    organization.vehicle(json!({"plate": "OWN2"}));
    let head = "plate,state,summons_number,issue_date,violation_time,violation,fine_amount,amount_due";
    let rows = ["4000000001,06/09/2026", "4000000002,06/02/2026", "4000000003,06/05/2026"]
        .map(|row| format!("OWN2,NY,{row},02:03P,NO PARKING,50,50\n"));
    let file = format!("{head}\n{}", rows.concat());
    for one in [&organization, &other] {
        import(one, "violations", "", &file).ok();
    }
    let page = organization.get("/v1/violations/review").ok();
    let path = format!("/admin/v1/organizations/{}/violations/review", organization.id);
    assert_eq!(page, organization.server.admin("GET", &path, &Value::Null).ok());
    let days: Vec<_> = page["data"].as_array().unwrap().iter().map(|row| &row["occurred_on"]).collect();
    assert_eq!(json!(days), json!(["2026-06-02", "2026-06-05", "2026-06-09"]));
    let shown = ["when", "agency", "number", "place"].map(|member| page["data"][0][member].clone());
    assert_eq!(json!(shown), json!(["2026-06-02 14:03 -04:00", "NYC", "4000000002", "NO PARKING"]));
    let row = &page["data"][0];
    assert_eq!([&row["vehicle_name"], &row["vehicle_plate"]], [&json!("Test vehicle"), &json!("OWN2")]);
    let foreign = other.get("/v1/violations/review").ok();
    assert_eq!(foreign["data"][0]["vehicle_name"], Value::Null, "a vehicle of another organization");
}

#[test]
fn violations_are_listed_by_the_day_to_respond_and_those_without_one_come_last() {
    let organization = Server::shared().organization();
    let head = "plate,state,license_type,summons_number,issue_date,violation_time,violation,violation_status,respond_by,amount_due";
    let file = format!(
        "{head}\n\
         R1,NY,PAS,4000000001,06/01/2026,02:03P,NO PARKING,HEARING PENDING,,50\n\
         R1,NY,PAS,4000000002,06/02/2026,02:03P,NO PARKING,,07/26/2026,50\n\
         R1,NY,COM,4000000003,06/03/2026,02:03P,NO PARKING,,07/01/2026,50\n\
         R1,NY,COM,4000000004,06/03/2026,02:03P,NO PARKING,,soon,50\n"
    );
    let answer = import(&organization, "violations", "", &file).ok();
    assert_eq!((&answer["created"], &answer["invalid"]), (&json!(3), &json!(1)));
    let message = answer["errors"][0]["message"].as_str().unwrap();
    assert_eq!(message, "`respond_by` is `soon`, which is not a date with the month first, such as 12/29/2025");
    let page = organization.get("/v1/violations/review").ok();
    let days: Vec<_> = page["data"].as_array().unwrap().iter().map(|row| &row["respond_by"]).collect();
    assert_eq!(json!(days), json!(["2026-07-01", "2026-07-26", null]));
    let reported = |row: &Value| ["status", "plate_type"].map(|member| row[member].clone());
    let reported: Vec<_> = page["data"].as_array().unwrap().iter().map(reported).collect();
    assert_eq!(json!(reported), json!([[null, "COM"], [null, "PAS"], ["HEARING PENDING", "PAS"]]));
    let list = |query: &str| {
        let page = organization.get(&format!("/v1/violations?{query}")).ok();
        page["data"].as_array().unwrap().iter().map(|one| one["summons_number"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(list("respond_by[gte]=2026-01-01"), ["4000000003", "4000000002"]);
    assert_eq!(list("respond_by[lt]=2026-07-26"), ["4000000003"]);
    let first = &organization.get("/v1/violations?summons_number=4000000001").ok()["data"][0];
    let members = ["status", "plate_type", "respond_by"].map(|member| first[member].clone());
    assert_eq!(json!(members), json!(["HEARING PENDING", "PAS", null]));
}

/// What the fleet has paid can be billed, although nothing is due any more.
#[test]
fn the_amount_of_a_violation_that_was_paid_is_what_can_be_billed() {
    let organization = Server::shared().organization();
    let file = "plate,state,summons_number,issue_date,violation_time,violation,fine_amount,payment_amount,amount_due\n\
                PAID1,NY,4000000001,06/09/2026,02:03P,NO PARKING,65,65,0\n\
                PAID1,NY,4000000002,06/10/2026,02:03P,NO PARKING,65,15,50\n";
    import(&organization, "violations", "", file).ok();
    let amounts = |path: &str, page: Value| -> Vec<(Value, Value)> {
        let rows = page["data"].as_array().unwrap_or_else(|| panic!("{path}: {page}")).iter();
        let mut found: Vec<_> = rows.map(|row| (row["when"].clone(), row["amount"].clone())).collect();
        found.sort_by_key(|(when, _)| when.to_string());
        found
    };
    let expected = [(json!("2026-06-09 14:03 -04:00"), json!(65)), (json!("2026-06-10 14:03 -04:00"), json!(50))];
    assert_eq!(amounts("review", organization.get("/v1/violations/review").ok()), expected);
    let path = format!("/admin/v1/organizations/{}/violations/suggestions", organization.id);
    assert_eq!(amounts(&path, organization.server.admin("GET", &path, &Value::Null).ok()), expected);
}

/// Of a time that has lost its A or P nobody knows in which half of the day it was.
#[test]
fn a_time_without_a_or_p_is_none() {
    let organization = Server::shared().organization();
    let file = "plate,state,summons_number,issue_date,violation_time,violation,fine_amount\n\
                HALF1,NY,4000000001,06/09/2026,0843,NO PARKING,65\n\
                HALF1,NY,4000000002,06/09/2026,0843A,NO PARKING,65\n\
                HALF1,NY,4000000003,06/09/2026,1743,NO PARKING,65\n";
    import(&organization, "violations", "", file).ok();
    let page = organization.get("/v1/violations/review").ok();
    let mut found: Vec<_> = page["data"].as_array().unwrap().iter().map(|row| row["when"].as_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, ["2026-06-09", "2026-06-09 08:43 -04:00", "2026-06-09 17:43 -04:00"]);
}
