//! The audit log: every action of an operator that changed something, once, in the order in which it happened.

use super::import;
use crate::support::{Connection, Organization, Server};
use serde_json::{Value, json};

/// The entries about an organization, oldest first.
#[track_caller]
fn entries(organization: &Organization, query: &str) -> Vec<Value> {
    let path = format!("/admin/v1/audit_entries?limit=100&organization={}{query}", organization.id);
    let mut found = organization.server.admin("GET", &path, &Value::Null).ok()["data"].as_array().unwrap().clone();
    found.reverse();
    found
}

fn actions(organization: &Organization) -> Vec<String> {
    entries(organization, "").iter().map(|entry| entry["action"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn whatever_an_operator_changes_is_logged_and_what_keys_do_is_not() {
    let organization = Server::shared().organization();
    let server = organization.server;
    let id = &organization.id;
    let begin = ["createOrganization", "createApiKey", "createApiKey"].map(str::to_owned);
    assert_eq!(actions(&organization), begin);
    let customer = organization.customer(json!({}));
    server.admin("PATCH", &format!("/admin/v1/organizations/{id}"), &json!({"plan": "free"})).ok();
    server.admin("PATCH", &format!("/admin/v1/organizations/{id}"), &json!({"plan": "pro"})).ok();
    let key = server.admin("POST", "/admin/v1/api_keys", &json!({"organization_id": id, "scope": "read"})).ok();
    let key = format!("/admin/v1/api_keys/{}", key["id"].as_str().unwrap());
    server.admin("POST", &format!("{key}/rotate"), &json!({"overlap_seconds": 60})).ok();
    server.admin("POST", &format!("{key}/revoke"), &Value::Null).ok();
    let fields = json!({"organization_id": id, "url": "https://example.com/hook"});
    let hook = server.admin("POST", "/admin/v1/webhook_endpoints", &fields).ok();
    let hook = format!("/admin/v1/webhook_endpoints/{}", hook["id"].as_str().unwrap());
    server.admin("PATCH", &hook, &json!({"events": ["lead.received"]})).ok();
    for word in ["disable", "enable", "rotate_secret"] {
        server.admin("POST", &format!("{hook}/{word}"), &Value::Null).ok();
    }
    server.admin("DELETE", &hook, &Value::Null).ok();
    let lines = json!([{"description": "Fee", "amount": 5}]);
    let invoice = organization.recorded("invoices", &json!({"customer_id": customer, "lines": lines}));
    server.admin("POST", &format!("/admin/v1/invoices/{invoice}/pay"), &Value::Null).ok();
    let file = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\nT1,2026-06-02T14:00:00Z,A,,X1,,,5\n";
    import(&organization, "tolls", "?dry_run=true", file).ok();
    import(&organization, "tolls", "", file).ok();
    import(&organization, "tolls", "", file).ok();
    let expected = [
        "updateOrganization",
        "updateOrganization",
        "createApiKey",
        "rotateApiKey",
        "revokeApiKey",
        "createWebhookEndpoint",
        "updateWebhookEndpoint",
        "disableWebhookEndpoint",
        "enableWebhookEndpoint",
        "rotateWebhookSecret",
        "deleteWebhookEndpoint",
        "recordInvoice",
        "payInvoice",
        "importTolls",
    ];
    assert_eq!(actions(&organization)[3..], expected);
}

#[test]
fn an_entry_says_what_by_which_request_and_no_secret() {
    let organization = Server::shared().organization();
    let body = json!({"organization_id": organization.id, "scope": "read", "name": "Site"});
    let reply = organization.server.admin("POST", "/admin/v1/api_keys", &body);
    let made = reply.ok();
    let entry = entries(&organization, "&action=createApiKey").pop().unwrap();
    let expected = json!({
        "id": entry["id"], "object": "audit_entry", "action": "createApiKey", "actor": "root", "actor_id": null,
        "address": "127.0.0.1", "organization_id": organization.id,
        "resource_id": made["id"], "path": "/admin/v1/api_keys", "details": body,
        "request_id": reply.header("request-id"), "created_at": entry["created_at"],
    });
    assert_eq!(entry, expected);
    assert!(!entry.to_string().contains(made["key"].as_str().unwrap()));
    let path = format!("/admin/v1/audit_entries/{}", entry["id"].as_str().unwrap());
    assert_eq!(organization.server.admin("GET", &path, &Value::Null).ok(), entry);
}

#[test]
fn what_is_refused_repeated_or_changes_nothing_leaves_no_entry() {
    let organization = Server::shared().organization();
    let server = organization.server;
    let before = entries(&organization, "").len();
    let path = format!("/admin/v1/organizations/{}", organization.id);
    server.admin("PATCH", &path, &json!({"plan": "gold"})).bad_fields();
    server.admin("PATCH", &path, &json!({})).ok();
    server.admin("GET", &path, &Value::Null).ok();
    assert_eq!(entries(&organization, "").len(), before);
    let token = format!("Bearer {}", server.admin_token);
    let headers =
        [("Authorization", token.as_str()), ("Content-Type", "application/json"), ("Idempotency-Key", "audit-1")];
    let body = json!({"name": "Renamed"}).to_string();
    for _ in 0..3 {
        Connection::open(&server.address).send("PATCH", &path, &headers, body.as_bytes()).ok();
    }
    assert_eq!(entries(&organization, "").len(), before + 1);
}

#[test]
fn no_request_changes_or_removes_an_entry() {
    let organization = Server::shared().organization();
    let entry = entries(&organization, "").remove(0);
    let path = format!("/admin/v1/audit_entries/{}", entry["id"].as_str().unwrap());
    for method in ["PATCH", "DELETE", "PUT", "POST"] {
        assert_eq!(organization.server.admin(method, &path, &json!({})).status, 405, "{method}");
    }
    assert_eq!(organization.server.admin("POST", "/admin/v1/audit_entries", &json!({})).status, 405);
    assert_eq!(organization.get("/admin/v1/audit_entries").status, 401, "an API key is no admin token");
}
