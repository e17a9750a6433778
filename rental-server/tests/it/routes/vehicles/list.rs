//! GET /v1/vehicles

use crate::support::{Server, rules};
use serde_json::json;

#[test]
fn the_list_holds_whole_vehicles_as_a_get_gives_them_newest_first() {
    let organization = Server::shared().organization();
    let mut made: Vec<String> = (0..5).map(|n| organization.vehicle(json!({"year": 2000 + n}))).collect();
    made.reverse();
    let page = rules::page(&organization, "/v1/vehicles");
    let data = page["data"].as_array().unwrap();
    assert_eq!(rules::ids(data), made);
    for vehicle in data {
        rules::whole(vehicle, "vehicle");
        assert_eq!(&organization.get(&format!("/v1/vehicles/{}", vehicle["id"].as_str().unwrap())).ok(), vehicle);
    }
}

#[test]
fn a_changed_vehicle_keeps_its_place_and_shows_its_new_state() {
    let organization = Server::shared().organization();
    let made: Vec<String> = (0..3).map(|_| organization.vehicle(json!({}))).collect();
    organization.patch(&format!("/v1/vehicles/{}", made[1]), &json!({"status": "rented"})).ok();
    let data = rules::walk(&organization, "vehicles", "", 2);
    assert_eq!(rules::ids(&data), [&made[2], &made[1], &made[0]].map(Clone::clone));
    assert_eq!(data[1]["status"], "rented");
}

#[test]
fn an_organization_sees_its_own_vehicles_alone() {
    let [mine, other] = [Server::shared().organization(), Server::shared().organization()];
    other.vehicle(json!({}));
    let own = mine.vehicle(json!({}));
    assert_eq!(rules::ids(&rules::walk(&mine, "vehicles", "", 100)), [own]);
}
