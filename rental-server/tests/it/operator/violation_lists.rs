//! Imports of lists of violations: what is due, and whose vehicle it was, comes from the list.

use super::{all, counts, import};
use crate::support::Server;
use serde_json::{Value, json};

const VIOLATIONS: &str = "plate,state,summons_number,issue_date,violation_time,violation,fine_amount,penalty_amount,interest_amount,reduction_amount,payment_amount,amount_due,issuing_agency\n";

#[test]
fn a_violation_follows_the_list_and_keeps_its_customer() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "GBJ3345", "plate_state": "NY"}));
    let row = |rest: &str| format!("{VIOLATIONS}GBJ3345,NY,7000233801,01/11/2016,02:47P,NO STANDING,{rest},TRAFFIC\n");
    let first = import(&organization, "violations", "", &row("115,60,59.49,0,0,234.49")).ok();
    assert_eq!((counts(&first), &first["matched"]), ([1, 0, 0, 0, 0], &json!(1)));
    let made = all(&organization, "violations").remove(0);
    for (field, value) in [
        ("summons_number", json!("7000233801")),
        ("issuer", json!("NYC")),
        ("amount_due", json!(234.49)),
        ("vehicle_id", json!(vehicle)),
        ("issue_date", json!("01/11/2016")),
        ("issued_on", json!("2016-01-11")),
        ("issued_at", json!("2016-01-11T19:47:00.000Z")),
        ("interest_amount", json!(59.49)),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    let customer = organization.customer(json!({}));
    let path = format!("/v1/violations/{}", made["id"].as_str().unwrap());
    organization.patch(&path, &json!({"customer_id": customer})).ok();
    let paid = row("115,60,59.49,0,234.49,0");
    assert_eq!(counts(&import(&organization, "violations", "", &paid).ok()), [0, 1, 0, 0, 0]);
    assert_eq!(counts(&import(&organization, "violations", "", &paid).ok()), [0, 0, 1, 0, 0]);
    let now = organization.get(&path).ok();
    assert_eq!(
        (&now["amount_due"], &now["payment_amount"], &now["customer_id"]),
        (&json!(0), &json!(234.49), &json!(customer))
    );
    let elsewhere = import(&organization, "violations", "?issuer=Chicago", &paid).ok();
    assert_eq!(counts(&elsewhere), [1, 0, 0, 0, 0], "another issuer has numbers of its own");
    for bad in ["%20", "New%0AYork"] {
        let refused = import(&organization, "violations", &format!("?issuer={bad}"), &paid);
        assert_eq!(refused.bad_fields(), [("issuer".to_owned(), "parameter_invalid".to_owned())], "{bad}");
    }
}

#[test]
fn a_plate_of_a_violation_that_a_spreadsheet_lost_is_refused_and_an_unknown_state_is_none() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "412E10", "plate_state": "NY"}));
    let header = "summons_number,plate,state,issue_date,violation_time,fine_amount,amount_due\n";
    let row =
        |number: u32, plate: &str, state: &str| format!("{header}{number},{plate},{state},06/02/2026,01:43A,50,50\n");
    for plate in ["4.12E+10", "\"4,12E+10\"", "0000", "TBD", "No plate", "UNKNOWN", "?", "#N/A"] {
        let answer = import(&organization, "violations", "", &row(1, plate, "NY")).ok();
        assert_eq!(counts(&answer), [0, 0, 0, 0, 1], "{plate}");
    }
    let plain = "\"=\"\"412E10\"\"\"";
    assert_eq!(counts(&import(&organization, "violations", "", &row(1, plain, "99")).ok()), [1, 0, 0, 0, 0]);
    let recorded = &all(&organization, "violations")[0];
    assert_eq!((&recorded["plate"], &recorded["state"]), (&json!("412E10"), &Value::Null));
    assert_eq!(recorded["vehicle_id"], json!(vehicle));
}

#[test]
fn violations_come_as_json_too_and_impossible_dates_stay_as_they_are() {
    let organization = Server::shared().organization();
    let list = json!([
        {"plate": "DN9F942", "state": "TX", "summons_number": "7000233503", "issue_date": "51/71/2004", "amount_due": "161.64",
         "summons_image": {"url": "http://example.com", "description": "View Summons"}, "unknown": [1]},
        {"plate": "DN9F942", "state": "TX", "summons_number": "7000233504", "issue_date": "2016-01-11T00:00:00.000", "amount_due": 10},
        {"plate": "DN9F942"},
    ]);
    let answer = import(&organization, "violations", "", &list.to_string()).ok();
    assert_eq!(counts(&answer), [2, 0, 0, 0, 1]);
    let found = all(&organization, "violations");
    assert_eq!((&found[1]["issue_date"], &found[1]["issued_on"]), (&json!("51/71/2004"), &Value::Null));
    assert_eq!(found[0]["issued_on"], "2016-01-11");
}
