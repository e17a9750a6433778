//! Operators read and settle the leads that API keys create (spec, Leads; decisions, Second round).

use crate::support::{Server, rules};
use serde_json::{Value, json};

#[test]
fn an_operator_lists_reads_and_settles_the_leads_of_an_organization() {
    let server = Server::shared();
    let [organization, other] = [server.organization(), server.organization()];
    other.post("/v1/leads", &json!({})).ok();
    let first = organization.post("/v1/leads", &json!({"raw_data": {"a": 1.50}})).id();
    let second = organization.post("/v1/leads", &json!({})).id();
    let list = |query: &str| {
        let path = format!("/admin/v1/organizations/{}/leads{query}", organization.id);
        rules::ids(server.admin("GET", &path, &Value::Null).ok()["data"].as_array().unwrap())
    };
    assert_eq!(list(""), [second.clone(), first.clone()]);
    let path = format!("/admin/v1/leads/{first}");
    let customer = organization.customer(json!({}));
    let before = server.admin("GET", &path, &Value::Null).ok();
    let after = server.admin("PATCH", &path, &json!({"status": "CONVERTED", "customer_id": customer})).ok();
    assert_eq!((&after["status"], &after["customer_id"]), (&json!("CONVERTED"), &json!(customer)));
    assert_eq!(after["raw_data"], before["raw_data"]);
    assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    assert_eq!(server.admin("GET", &path, &Value::Null).ok(), after);
    assert_eq!((list("?status=NEW"), list("?status=CONVERTED")), (vec![second], vec![first]));
    let events = rules::walk(&organization, "events", "", 100);
    let of_leads = events.iter().filter(|event| event["data"]["object"] == "lead").count();
    assert_eq!(of_leads, 2, "settling emits no event");
}

#[test]
fn a_lead_takes_only_a_status_and_a_customer_of_its_organization() {
    let server = Server::shared();
    let [organization, other] = [server.organization(), server.organization()];
    let path = format!("/admin/v1/leads/{}", organization.post("/v1/leads", &json!({})).id());
    for (body, param, code) in [
        (json!({"status": "LOST"}), "status", "parameter_invalid"),
        (json!({"status": null}), "status", "parameter_invalid"),
        (json!({"raw_data": {}}), "raw_data", "parameter_unknown"),
        (json!({"customer_id": other.customer(json!({}))}), "customer_id", "resource_missing"),
    ] {
        let reply = server.admin("PATCH", &path, &body);
        assert_eq!(reply.bad_fields(), [(param.to_owned(), code.to_owned())], "{body}");
    }
}
