//! PATCH /v1/tolls/{id}

use crate::support::{Server, rules};
use serde_json::{Value, json};

#[test]
fn a_toll_is_attached_detached_and_attached_to_another_customer() {
    let organization = Server::shared().organization();
    let id = organization.one_more("tolls", json!({}));
    let path = format!("/v1/tolls/{id}");
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
            assert_eq!(rules::ids(&rules::walk(&organization, "tolls", &query, 10)), expected);
        }
    }
}

#[test]
fn a_customer_that_there_is_not_is_refused_by_name() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let path = format!("/v1/tolls/{}", organization.one_more("tolls", json!({})));
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

#[test]
fn only_the_customer_can_be_updated() {
    let organization = Server::shared().organization();
    let path = format!("/v1/tolls/{}", organization.one_more("tolls", json!({})));
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

#[test]
fn a_good_customer_is_not_attached_beside_a_bad_field() {
    let organization = Server::shared().organization();
    let path = format!("/v1/tolls/{}", organization.one_more("tolls", json!({})));
    let body = json!({"customer_id": organization.customer(json!({})), "nonsense": 1});
    assert_eq!(
        organization.patch(&path, &body).bad_fields(),
        [("nonsense".to_owned(), "parameter_unknown".to_owned())]
    );
    assert_eq!(organization.get(&path).ok()["customer_id"], Value::Null);
}

#[test]
fn an_empty_patch_changes_nothing() {
    rules::an_empty_patch_changes_nothing("tolls");
}

#[test]
fn an_unknown_a_malformed_and_a_foreign_id_get_the_same_404() {
    rules::ids_that_lead_nowhere_look_alike("PATCH", "tolls");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("PATCH", "tolls");
}
