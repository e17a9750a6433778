//! GET /v1/blocks

use crate::support::{Server, rules};
use serde_json::json;

#[test]
fn blocks_are_listed_newest_first_by_vehicle_and_status() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let [van, car] = [organization.vehicle(json!({})), organization.vehicle(json!({}))];
    let block = |vehicle: &str, day: &str| {
        organization.post("/v1/blocks", &json!({"vehicle_id": vehicle, "start_date": day, "end_date": day})).id()
    };
    let (first, second, third) = (block(&van, "2027-01-01"), block(&car, "2027-01-01"), block(&van, "2027-01-02"));
    let foreign = other.vehicle(json!({}));
    let foreign = json!({"vehicle_id": foreign, "start_date": "2027-01-01", "end_date": "2027-01-01"});
    other.post("/v1/blocks", &foreign).ok();
    organization.patch(&format!("/v1/blocks/{first}"), &json!({"status": "cancelled"})).ok();
    let found = |query: String| rules::ids(&rules::walk(&organization, "blocks", &query, 2));
    assert_eq!(found(String::new()), [third.clone(), second.clone(), first.clone()]);
    assert_eq!(found(format!("&vehicle={van}")), [third.clone(), first.clone()]);
    assert_eq!(found("&status=active".into()), [third.clone(), second]);
    assert_eq!(found(format!("&vehicle={van}&status=cancelled")), [first]);
    assert_eq!(found("&status=conflict".into()), [""; 0]);
    let page = rules::page(&organization, "/v1/blocks?updated[gte]=2020-01-01T00:00:00Z");
    assert_eq!(page["data"].as_array().unwrap().len(), 3);
    assert_eq!(found(format!("&vehicle={van}&status=active")), [third]);
}
