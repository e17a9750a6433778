//! GET /v1/violations/review

use crate::{operator::import, support::Server};
use serde_json::{Value, json};

#[test]
fn a_read_key_sees_its_own_violations_that_were_issued_first_before_others() {
    let [organization, other] = [(); 2].map(|()| Server::shared().organization());
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
    assert_eq!(page["data"][0]["place"], "NO PARKING");
}
