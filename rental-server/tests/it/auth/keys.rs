//! The life of a key: made, shown once, used, rotated, expired, revoked.

use super::{refused, with_key};
use crate::support::{Organization, Reply, Server, rules};
use rental_core::value::Timestamp;
use serde_json::{Value, json};

/// A new key of `organization`: its id, its text, and the whole answer.
#[track_caller]
fn issue(organization: &Organization<'_>, mut body: Value) -> (String, String, Value) {
    body["organization_id"] = json!(organization.id);
    if body.get("scope").is_none() {
        body["scope"] = json!("read_write");
    }
    let made = organization.server.admin("POST", "/admin/v1/api_keys", &body).ok();
    (made["id"].as_str().unwrap().to_owned(), made["key"].as_str().unwrap().to_owned(), made)
}

#[track_caller]
fn call(organization: &Organization<'_>, key: &str) -> Reply {
    with_key(organization.server, "GET", "/v1/vehicles", key)
}

/// The server's time, moved by some milliseconds.
#[track_caller]
fn in_millis(server: &Server, millis: i64) -> String {
    let made = server.admin("POST", "/admin/v1/organizations", &json!({"name": "Clock"})).ok();
    Timestamp::parse(made["created_at"].as_str().unwrap()).unwrap().plus_millis(millis).to_string()
}

/// Calls with the key until it is refused, which must happen within half a minute.
#[track_caller]
fn until_refused(organization: &Organization<'_>, key: &str) -> Reply {
    for _ in 0..1500 {
        let reply = call(organization, key);
        if reply.status != 200 {
            return reply;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the key goes on working")
}

#[test]
fn a_key_says_what_it_is_and_what_it_may_do() {
    let organization = Server::shared().organization();
    let (_, key, made) = issue(&organization, json!({"name": "Website", "scope": "read"}));
    assert!(
        key.starts_with("rk_live_") && key.len() == 57 && key[8..].bytes().all(|c| c.is_ascii_alphanumeric()),
        "{key}"
    );
    let said = ["object", "name", "scope", "organization_id"].map(|field| made[field].as_str().unwrap().to_owned());
    assert_eq!(said, ["api_key", "Website", "read", &organization.id]);
    for empty in ["expires_at", "revoked_at", "last_used_at"] {
        assert_eq!(made[empty], Value::Null, "{empty}");
    }
    assert_ne!(issue(&organization, json!({})).1, key);
}

#[test]
fn a_bad_key_request_names_its_fields() {
    let organization = Server::shared().organization();
    let past = in_millis(organization.server, -1);
    for (body, param, code) in [
        (json!({"organization_id": organization.id}), "scope", "parameter_missing"),
        (json!({"scope": "read"}), "organization_id", "parameter_missing"),
        (json!({"organization_id": "x", "scope": "read"}), "organization_id", "resource_missing"),
        (json!({"organization_id": rules::UNKNOWN_ID, "scope": "read"}), "organization_id", "resource_missing"),
        (json!({"organization_id": organization.id, "scope": "write"}), "scope", "parameter_invalid"),
        (
            json!({"organization_id": organization.id, "scope": "read", "expires_at": past}),
            "expires_at",
            "parameter_invalid",
        ),
        (
            json!({"organization_id": organization.id, "scope": "read", "expires_at": "soon"}),
            "expires_at",
            "parameter_invalid",
        ),
        (json!({"organization_id": organization.id, "scope": "read", "key": "mine"}), "key", "parameter_unknown"),
        (
            json!({"organization_id": organization.id, "scope": "read", "revoked_at": past}),
            "revoked_at",
            "parameter_unknown",
        ),
    ] {
        let reply = organization.server.admin("POST", "/admin/v1/api_keys", &body);
        assert_eq!(reply.bad_fields(), [(param.to_owned(), code.to_owned())], "{body}");
    }
}

#[test]
fn a_revoked_key_is_refused_on_the_very_next_request() {
    let organization = Server::shared().organization();
    for _ in 0..10 {
        let (id, key, _) = issue(&organization, json!({}));
        assert_eq!(call(&organization, &key).status, 200);
        let path = format!("/admin/v1/api_keys/{id}/revoke");
        let revoked = organization.server.admin("POST", &path, &Value::Null).ok();
        assert!(revoked["revoked_at"].is_string(), "{revoked}");
        refused(&call(&organization, &key), "api_key_revoked");
        let again = organization.server.admin("POST", &path, &json!({})).ok();
        assert_eq!(again["revoked_at"], revoked["revoked_at"], "revoking twice is the same as once");
    }
    assert_eq!(organization.get("/v1/vehicles").status, 200, "other keys go on working");
}

#[test]
fn an_expired_key_is_refused() {
    let organization = Server::shared().organization();
    let (_, key, made) = issue(&organization, json!({"expires_at": in_millis(organization.server, 1000)}));
    assert!(made["expires_at"].is_string());
    refused(&until_refused(&organization, &key), "api_key_expired");
    refused(&with_key(organization.server, "POST", "/v1/leads", &key), "api_key_expired");
}

#[test]
fn a_key_that_expires_later_works_until_then() {
    let organization = Server::shared().organization();
    let (_, key, _) = issue(&organization, json!({"expires_at": "2999-01-01T00:00:00+01:00"}));
    assert_eq!(call(&organization, &key).status, 200);
}

#[test]
fn a_rotation_without_overlap_ends_the_old_key_at_once() {
    let organization = Server::shared().organization();
    let (id, old, _) = issue(&organization, json!({"scope": "read", "name": "Website"}));
    assert_eq!(call(&organization, &old).status, 200);
    let path = format!("/admin/v1/api_keys/{id}/rotate");
    let rotated = organization.server.admin("POST", &path, &json!({"overlap_seconds": 0})).ok();
    let new = rotated["key"].as_str().unwrap();
    assert!(new != old && rotated["id"] != id.as_str());
    assert_eq!((&rotated["scope"], &rotated["name"]), (&json!("read"), &json!("Website")), "the same rights");
    refused(&call(&organization, &old), "api_key_expired");
    assert_eq!(call(&organization, new).status, 200);
    with_key(organization.server, "POST", "/v1/leads", new).error(403, "permission_error", "insufficient_scope");
    let again = organization.server.admin("POST", &path, &json!({"overlap_seconds": 0}));
    again.error(409, "invalid_request_error", "state_conflict");
}

#[test]
fn a_rotation_with_overlap_keeps_the_old_key_until_the_overlap_ends() {
    let organization = Server::shared().organization();
    let (id, old, _) = issue(&organization, json!({}));
    let path = format!("/admin/v1/api_keys/{id}/rotate");
    let new = organization.server.admin("POST", &path, &json!({"overlap_seconds": 3})).ok()["key"].clone();
    assert_eq!([call(&organization, &old).status, call(&organization, new.as_str().unwrap()).status], [200, 200]);
    refused(&until_refused(&organization, &old), "api_key_expired");
    assert_eq!(call(&organization, new.as_str().unwrap()).status, 200);
}

#[test]
fn a_rotation_never_lengthens_the_life_of_the_old_key() {
    let organization = Server::shared().organization();
    let (id, old, _) = issue(&organization, json!({"expires_at": in_millis(organization.server, 1500)}));
    let rotated = organization.server.admin(
        "POST",
        &format!("/admin/v1/api_keys/{id}/rotate"),
        &json!({"overlap_seconds": 3600}),
    );
    rotated.ok();
    refused(&until_refused(&organization, &old), "api_key_expired");
}

#[test]
fn a_bad_overlap_is_refused_and_the_key_goes_on_working() {
    let organization = Server::shared().organization();
    let (id, key, _) = issue(&organization, json!({}));
    for bad in [
        json!({"overlap_seconds": -1}),
        json!({"overlap_seconds": 2_592_001}),
        json!({"overlap_seconds": "1"}),
        json!({"overlap_seconds": 3600.5}),
        json!({"overlap_seconds": true}),
    ] {
        let reply = organization.server.admin("POST", &format!("/admin/v1/api_keys/{id}/rotate"), &bad);
        assert_eq!(reply.bad_fields()[0].0, "overlap_seconds", "{bad}: {}", reply.text());
    }
    let reply = organization.server.admin("POST", &format!("/admin/v1/api_keys/{id}/rotate"), &json!({"nonsense": 1}));
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert_eq!(call(&organization, &key).status, 200);
}

#[test]
fn a_key_that_there_is_not_cannot_be_read_revoked_or_rotated() {
    let server = Server::shared();
    for id in [rules::UNKNOWN_ID, "x"] {
        for (method, action) in [("GET", ""), ("POST", "/revoke"), ("POST", "/rotate")] {
            let reply = server.admin(method, &format!("/admin/v1/api_keys/{id}{action}"), &Value::Null);
            reply.error(404, "invalid_request_error", "resource_missing");
        }
    }
}

#[test]
fn a_key_is_shown_once_and_is_in_no_list_and_no_log() {
    let server = Server::start(&["--log-level", "debug"]);
    let organization = server.organization();
    let (id, key, _) = issue(&organization, json!({"name": "Secret"}));
    let path = format!("/admin/v1/api_keys/{id}/rotate");
    let rotated = server.admin("POST", &path, &json!({"overlap_seconds": 60})).ok()["key"].as_str().unwrap().to_owned();
    let mistyped = format!("{}{}", &key[..56], if key.ends_with('x') { 'y' } else { 'x' });
    for used in [&key, &rotated, &mistyped] {
        call(&organization, used);
        with_key(&server, "POST", "/v1/vehicles", used);
    }
    let list = server.admin("GET", &format!("/admin/v1/api_keys?organization={}", organization.id), &Value::Null);
    assert_eq!(list.ok()["data"].as_array().map(Vec::len), Some(4));
    let one = server.admin("GET", &format!("/admin/v1/api_keys/{id}"), &Value::Null);
    let revoked = server.admin("POST", &format!("/admin/v1/api_keys/{id}/revoke"), &Value::Null);
    let log = server.log();
    assert!(log.contains("/v1/vehicles"), "the log has a line for each request");
    for (place, text) in [("list", list.text()), ("get", one.text()), ("revoke", revoked.text()), ("log", log)] {
        for secret in [&key, &rotated, &organization.read, &organization.write, &mistyped, &server.admin_token] {
            assert!(!text.contains(&secret[8..40]), "{place} shows a secret");
        }
    }
}

#[test]
fn the_list_of_keys_is_of_one_organization_when_asked_so() {
    let [one, two] = [Server::shared().organization(), Server::shared().organization()];
    for organization in [&one, &two] {
        let list =
            one.server.admin("GET", &format!("/admin/v1/api_keys?organization={}", organization.id), &Value::Null).ok();
        let keys = list["data"].as_array().unwrap();
        assert_eq!(keys.len(), 2);
        assert!(keys.iter().all(|key| key["organization_id"] == organization.id.as_str()));
    }
}
