//! GET /v1/violations

use crate::support::{Server, rules};
use serde_json::json;

#[test]
fn the_list_holds_whole_violations_as_a_get_gives_them_newest_first() {
    let organization = Server::shared().organization();
    let mut made: Vec<String> = (0..4).map(|_| organization.one_more("violations", json!({}))).collect();
    made.reverse();
    let page = rules::page(&organization, "/v1/violations");
    let data = page["data"].as_array().unwrap();
    assert_eq!(rules::ids(data), made);
    for violation in data {
        rules::whole(violation, "violation");
        assert_eq!(&organization.get(&format!("/v1/violations/{}", violation["id"].as_str().unwrap())).ok(), violation);
    }
}

#[test]
fn vehicle_and_customer_select_alone_and_together() {
    let organization = Server::shared().organization();
    let vehicles = [(); 2].map(|()| json!(organization.vehicle(json!({}))));
    let customers = [(); 2].map(|()| json!(organization.customer(json!({}))));
    let mut made = Vec::new();
    for vehicle in vehicles.iter().chain([&json!(null)]) {
        for customer in customers.iter().chain([&json!(null)]) {
            let id = organization.one_more("violations", json!({"vehicle_id": vehicle, "customer_id": customer}));
            made.insert(0, (vehicle.clone(), customer.clone(), id));
        }
    }
    let expected = |vehicle: Option<&serde_json::Value>, customer: Option<&serde_json::Value>| -> Vec<String> {
        let fits =
            made.iter().filter(|row| vehicle.is_none_or(|v| *v == row.0) && customer.is_none_or(|c| *c == row.1));
        fits.map(|row| row.2.clone()).collect()
    };
    let found = |query: String| rules::ids(&rules::walk(&organization, "violations", &query, 2));
    let text = |id: &serde_json::Value| id.as_str().unwrap().to_owned();
    assert_eq!(found(String::new()), expected(None, None));
    for vehicle in &vehicles {
        assert_eq!(found(format!("&vehicle={}", text(vehicle))), expected(Some(vehicle), None));
        for customer in &customers {
            let query = format!("&vehicle={}&customer={}", text(vehicle), text(customer));
            assert_eq!(found(query), expected(Some(vehicle), Some(customer)));
        }
    }
    for customer in &customers {
        assert_eq!(found(format!("&customer={}", text(customer))), expected(None, Some(customer)));
    }
}

#[test]
fn what_there_is_not_has_no_violations() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let vehicle = other.vehicle(json!({}));
    other.one_more("violations", json!({"vehicle_id": vehicle}));
    for filter in ["vehicle", "customer"] {
        for nothing in [rules::UNKNOWN_ID, &vehicle, "x"] {
            assert_eq!(rules::walk(&organization, "violations", &format!("&{filter}={nothing}"), 10).len(), 0);
        }
    }
}
