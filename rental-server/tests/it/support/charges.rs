//! What holds for tolls and violations alike: their lists, and the customer who pays as the only change.

use super::{Server, rules};
use crate::operator::{
    all, import,
    suggestions::{attached, customer_of, stay, tolls},
};
use serde_json::{Value, json};

/// The list holds whole objects as a GET gives them, newest first.
#[track_caller]
pub(crate) fn the_list_holds_whole_objects_newest_first(plural: &str) {
    let organization = Server::shared().organization();
    let mut made: Vec<String> = (0..4).map(|_| organization.one_more(plural, json!({}))).collect();
    made.reverse();
    let page = rules::page(&organization, &format!("/v1/{plural}"));
    let data = page["data"].as_array().unwrap();
    assert_eq!(rules::ids(data), made);
    for object in data {
        rules::whole(object, plural.trim_end_matches('s'));
        assert_eq!(&organization.get(&format!("/v1/{plural}/{}", object["id"].as_str().unwrap())).ok(), object);
    }
}

/// `vehicle` and `customer` select alone and together.
#[track_caller]
pub(crate) fn vehicle_and_customer_select_alone_and_together(plural: &str) {
    let organization = Server::shared().organization();
    let vehicles = [(); 2].map(|()| json!(organization.vehicle(json!({}))));
    let customers = [(); 2].map(|()| json!(organization.customer(json!({}))));
    let mut made = Vec::new();
    for vehicle in vehicles.iter().chain([&json!(null)]) {
        for customer in customers.iter().chain([&json!(null)]) {
            let id = organization.one_more(plural, json!({"vehicle_id": vehicle, "customer_id": customer}));
            made.insert(0, (vehicle.clone(), customer.clone(), id));
        }
    }
    let expected = |vehicle: Option<&Value>, customer: Option<&Value>| -> Vec<String> {
        let fits =
            made.iter().filter(|row| vehicle.is_none_or(|v| *v == row.0) && customer.is_none_or(|c| *c == row.1));
        fits.map(|row| row.2.clone()).collect()
    };
    let found = |query: String| rules::ids(&rules::walk(&organization, plural, &query, 2));
    let text = |id: &Value| id.as_str().unwrap().to_owned();
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

/// A vehicle or customer that does not exist, or is of another organization, has none of these objects.
#[track_caller]
pub(crate) fn what_there_is_not_has_none(plural: &str) {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let vehicle = other.vehicle(json!({}));
    other.one_more(plural, json!({"vehicle_id": vehicle}));
    for filter in ["vehicle", "customer"] {
        for nothing in [rules::UNKNOWN_ID, &vehicle, "x"] {
            assert_eq!(rules::walk(&organization, plural, &format!("&{filter}={nothing}"), 10).len(), 0);
        }
    }
}

/// PATCH attaches to a customer, detaches, and attaches to another customer.
#[track_caller]
pub(crate) fn is_attached_detached_and_attached_to_another_customer(plural: &str) {
    let organization = Server::shared().organization();
    let id = organization.one_more(plural, json!({}));
    let path = format!("/v1/{plural}/{id}");
    let customers = [(); 2].map(|()| json!(organization.customer(json!({}))));
    let mut before = organization.get(&path).ok();
    assert_eq!(before["customer_id"], Value::Null);
    for customer in [&customers[0], &customers[0], &customers[1], &Value::Null, &Value::Null, &customers[0]] {
        let reply = organization.patch(&path, &json!({"customer_id": customer}));
        let after = reply.ok();
        (before["customer_id"], before["updated_at"]) = (customer.clone(), after["updated_at"].clone());
        before["attribution"] = json!("manual");
        assert_eq!(after, before, "only the customer changes, and that somebody chose it");
        assert_eq!(organization.get(&path).body, reply.body);
        for other in &customers {
            let query = format!("&customer={}", other.as_str().unwrap());
            let expected = if other == customer { vec![id.clone()] } else { vec![] };
            assert_eq!(rules::ids(&rules::walk(&organization, plural, &query, 10)), expected);
        }
    }
}

/// PATCH gives an object that never had a customer to nobody: a choice, which no suggestion changes, until it is taken back.
#[track_caller]
pub(crate) fn is_given_to_nobody_until_that_is_taken_back(plural: &str) {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "GIVEN1"}));
    let rental = stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    match plural {
        "tolls" => tolls(&organization, "GIVEN1", &["2026-06-02T14:03:00Z"]),
        _ => {
            let head = "plate,state,summons_number,issue_date,violation_time,amount_due";
            let row = "GIVEN1,NY,4000000001,06/02/2026,10:03A,50";
            import(&organization, "violations", "", &format!("{head}\n{row}\n")).ok();
        }
    }
    let path = format!("/v1/{plural}/{}", all(&organization, plural)[0]["id"].as_str().unwrap());
    let review = || organization.get(&format!("/v1/{plural}/review")).ok()["data"].as_array().unwrap().len();
    let payer = || ["customer_id", "attribution"].map(|member| organization.get(&path).ok()[member].clone());
    assert_eq!((payer(), review()), ([Value::Null, Value::Null], 1));
    organization.patch(&path, &json!({})).ok();
    assert_eq!((payer(), review()), ([Value::Null, Value::Null], 1));
    for _ in 0..2 {
        organization.patch(&path, &json!({"customer_id": null})).ok();
        assert!(attached(&organization, plural).is_empty());
        assert_eq!((payer(), review()), ([Value::Null, json!("manual")], 0));
    }
    let release = path.replace("/v1/", "/admin/v1/") + "/release";
    organization.server.admin("POST", &release, &Value::Null).ok();
    assert_eq!(payer(), [customer_of(&organization, &rental), json!("automatic")]);
}

/// PATCH refuses a customer that does not exist, and names the field.
#[track_caller]
pub(crate) fn a_customer_that_there_is_not_is_refused_by_name(plural: &str) {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let path = format!("/v1/{plural}/{}", organization.one_more(plural, json!({})));
    let before = organization.get(&path).body;
    let own = organization.customer(json!({}));
    for id in
        [rules::UNKNOWN_ID, &other.customer(json!({})), &organization.vehicle(json!({})), "x", "", &own.to_uppercase()]
    {
        let reply = organization.patch(&path, &json!({"customer_id": id}));
        assert_eq!(reply.bad_fields(), [("customer_id".to_owned(), "resource_missing".to_owned())], "{id}");
    }
    for bad in [json!(1), json!(true), json!([own]), json!({"id": own}), json!("a\nb"), json!("x".repeat(5000))] {
        let reply = organization.patch(&path, &json!({"customer_id": bad}));
        assert_eq!(reply.bad_fields(), [("customer_id".to_owned(), "parameter_invalid".to_owned())], "{bad}");
    }
    let twice = format!("{{\"customer_id\":\"{own}\",\"customer_id\":\"{own}\"}}");
    let reply = organization.raw("PATCH", &path, &[], twice.as_bytes());
    assert_eq!(reply.bad_fields(), [("customer_id".to_owned(), "parameter_duplicate".to_owned())]);
    assert_eq!(organization.get(&path).body, before);
}

/// PATCH refuses every field but `customer_id`.
#[track_caller]
pub(crate) fn only_the_customer_can_be_updated(plural: &str) {
    let organization = Server::shared().organization();
    let path = format!("/v1/{plural}/{}", organization.one_more(plural, json!({})));
    let before = organization.get(&path);
    let fields: Vec<String> = before.ok().as_object().unwrap().keys().cloned().collect();
    for field in fields.iter().map(String::as_str).filter(|field| *field != "customer_id").chain(["nonsense", "notes"])
    {
        for value in [before.ok()[field].clone(), json!(1), Value::Null] {
            let reply = organization.patch(&path, &json!({field: value}));
            assert_eq!(reply.bad_fields(), [(field.to_owned(), "parameter_unknown".to_owned())], "{value}");
        }
    }
    assert_eq!(organization.get(&path).body, before.body);
}

/// PATCH with a valid customer and an unknown field changes nothing.
#[track_caller]
pub(crate) fn a_good_customer_is_not_attached_beside_a_bad_field(plural: &str) {
    let organization = Server::shared().organization();
    let path = format!("/v1/{plural}/{}", organization.one_more(plural, json!({})));
    let body = json!({"customer_id": organization.customer(json!({})), "nonsense": 1});
    assert_eq!(
        organization.patch(&path, &body).bad_fields(),
        [("nonsense".to_owned(), "parameter_unknown".to_owned())]
    );
    assert_eq!(organization.get(&path).ok()["customer_id"], Value::Null);
}
