//! Named operators: their roles, their tokens, and what the audit log says about them.

use crate::support::{Connection, Reply, Server, rules};
use rental_core::value::Timestamp;
use serde_json::{Value, json};

/// A new operator: its id, its token, and the whole response.
#[track_caller]
pub(crate) fn operator(server: &Server, body: &Value) -> (String, String, Value) {
    let made = server.admin("POST", "/admin/v1/operators", body).ok();
    (made["id"].as_str().unwrap().to_owned(), made["token"].as_str().unwrap().to_owned(), made)
}

#[track_caller]
fn of_role(server: &Server, role: &str) -> (String, String) {
    let (id, token, _) = operator(server, &json!({"name": format!("A {role}"), "role": role}));
    (id, token)
}

/// One request with this token.
#[track_caller]
pub(crate) fn call(server: &Server, token: &str, method: &str, path: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {token}");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    Connection::open(&server.address).send(method, path, &headers, body.as_bytes())
}

#[track_caller]
fn list(server: &Server, token: &str) -> Reply {
    call(server, token, "GET", "/admin/v1/organizations?limit=1", &Value::Null)
}

#[track_caller]
fn refused(reply: &Reply, code: &str) {
    reply.error(401, "authentication_error", code);
    assert!(reply.header("www-authenticate").is_some_and(|challenge| challenge.starts_with("Bearer")));
}

fn in_millis(server: &Server, millis: i64) -> String {
    let made = server.admin("POST", "/admin/v1/organizations", &json!({"name": "Clock"})).ok();
    Timestamp::parse(made["created_at"].as_str().unwrap()).unwrap().plus_millis(millis).to_string()
}

/// Calls with the token until it is refused, which must happen within half a minute.
#[track_caller]
fn until_refused(server: &Server, token: &str) -> Reply {
    for _ in 0..1500 {
        let reply = list(server, token);
        if reply.status != 200 {
            return reply;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the token goes on working")
}

#[test]
fn an_operator_has_a_name_a_role_and_a_token_that_is_shown_once() {
    let server = Server::start(&["--log-level", "debug"]);
    let (id, token, made) = operator(&server, &json!({"name": "Ada", "role": "operator"}));
    assert!(token.starts_with("op_live_") && token.len() == 57, "{token}");
    let said = ["object", "name", "role", "hint"].map(|field| made[field].as_str().unwrap().to_owned());
    assert_eq!(said, ["operator", "Ada", "operator", &format!("op_live_…{}", &token[53..])]);
    let empty = ["expires_at", "revoked_at", "last_used_at", "previous_token_expires_at"];
    assert!(empty.iter().all(|field| made[field].is_null()) && made["rotations"] == 0, "{made}");
    assert_eq!(list(&server, &token).status, 200);
    let path = format!("/admin/v1/operators/{id}");
    let new = server.admin("POST", &format!("{path}/rotate"), &Value::Null).ok()["token"].as_str().unwrap().to_owned();
    let other = format!("{}{}", &token[..56], if token.ends_with('x') { 'y' } else { 'x' });
    refused(&call(&server, &other, "GET", &path, &Value::Null), "api_key_invalid");
    let (one, all) =
        (server.admin("GET", &path, &Value::Null), server.admin("GET", "/admin/v1/operators", &Value::Null));
    assert_eq!(all.ok()["data"], json!([one.ok()]));
    let entries = server.admin("GET", "/admin/v1/audit_entries", &Value::Null);
    for secret in [&token, &new] {
        // Without its prefix and its last characters, which are the hint.
        let secret = &secret[8..53];
        let places = [one.text(), all.text(), entries.text(), server.log()];
        assert!(places.iter().all(|place| !place.contains(secret)));
    }
}

#[test]
fn a_bad_operator_names_its_fields() {
    let server = Server::shared();
    let past = in_millis(server, -1);
    for (body, param, code) in [
        (json!({"name": "Ada"}), "role", "parameter_missing"),
        (json!({"role": "owner"}), "name", "parameter_missing"),
        (json!({"name": " ", "role": "owner"}), "name", "parameter_invalid"),
        (json!({"name": "Root ", "role": "owner"}), "name", "parameter_invalid"),
        (json!({"name": "Ada", "role": "admin"}), "role", "parameter_invalid"),
        (json!({"name": "Ada", "role": "owner", "expires_at": past}), "expires_at", "parameter_invalid"),
        (json!({"name": "Ada", "role": "owner", "token": "mine"}), "token", "parameter_unknown"),
        (json!({"name": "Ada", "role": "owner", "rotations": 1}), "rotations", "parameter_unknown"),
    ] {
        let reply = server.admin("POST", "/admin/v1/operators", &body);
        assert_eq!(reply.bad_fields(), [(param.to_owned(), code.to_owned())], "{body}");
    }
    for id in [rules::UNKNOWN_ID, "x"] {
        for action in ["rotate", "revoke"] {
            let reply = server.admin("POST", &format!("/admin/v1/operators/{id}/{action}"), &Value::Null);
            reply.error(404, "invalid_request_error", "resource_missing");
        }
    }
}

#[test]
fn a_role_that_is_too_small_is_told_which_one_is_needed_and_changes_nothing() {
    let server = Server::shared();
    let organization = server.organization();
    let path = format!("/admin/v1/organizations/{}", organization.id);
    let (_, reader) = of_role(server, "read_only");
    let before = call(server, &reader, "GET", &path, &Value::Null).ok();
    let error = call(server, &reader, "PATCH", &path, &json!({"plan": "free"}));
    let error = error.error(403, "permission_error", "insufficient_role");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("role `operator`") && message.contains("yours has `read_only`"), "{message}");
    assert_eq!(server.admin("GET", &path, &Value::Null).ok(), before);
    let (_, operator) = of_role(server, "operator");
    call(server, &operator, "PATCH", &path, &json!({"name": "Renamed"})).ok();
    let body = json!({"name": "Eve", "role": "owner"});
    for (token, body) in [(&operator, &body), (&reader, &body), (&operator, &json!({"nonsense": 1}))] {
        let error = call(server, token, "POST", "/admin/v1/operators", body);
        let error = error.error(403, "permission_error", "insufficient_role");
        assert!(error["message"].as_str().unwrap().contains("role `owner` or the admin token"), "{error}");
    }
    let (_, owner) = of_role(server, "owner");
    call(server, &owner, "POST", "/admin/v1/operators", &json!({"name": "Grace", "role": "owner"})).ok();
}

#[test]
fn a_role_that_is_too_small_is_in_the_log_with_operator_operation_and_address() {
    let server = Server::start(&[]);
    let (_, reader) = of_role(&server, "read_only");
    let reply = call(&server, &reader, "POST", "/admin/v1/organizations", &json!({"name": "x"}));
    reply.error(403, "permission_error", "insufficient_role");
    let (id, log) = (reply.header("request-id").expect("an id"), server.log());
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(id)).collect();
    assert!(lines.len() == 1 && lines[0].contains(" WARN "), "{log}");
    for word in [
        "role of an operator was too small",
        "actor=\"A read_only\"",
        "operation=\"createOrganization\"",
        "address=127.0.0.1",
    ] {
        assert!(lines[0].contains(word), "{word}: {log}");
    }
    assert!(!log.contains(&reader), "{log}");
}

#[test]
fn a_revoked_operator_is_refused_on_the_very_next_request_with_every_token() {
    let server = Server::shared();
    let (id, old) = of_role(server, "read_only");
    let path = format!("/admin/v1/operators/{id}");
    let new = server.admin("POST", &format!("{path}/rotate"), &Value::Null).ok()["token"].as_str().unwrap().to_owned();
    assert_eq!([&old, &new].map(|token| list(server, token).status), [200, 200]);
    let revoked = server.admin("POST", &format!("{path}/revoke"), &Value::Null).ok();
    for token in [&old, &new] {
        refused(&list(server, token), "api_key_revoked");
    }
    let again = server.admin("POST", &format!("{path}/revoke"), &json!({})).ok();
    assert_eq!(again["revoked_at"], revoked["revoked_at"], "revoking twice is the same as once");
    server.admin("POST", &format!("{path}/rotate"), &Value::Null).error(409, "invalid_request_error", "state_conflict");
}

#[test]
fn an_expired_operator_is_refused_and_cannot_be_rotated() {
    let server = Server::shared();
    let body = json!({"name": "Temp", "role": "read_only", "expires_at": in_millis(server, 1000)});
    let (id, token, _) = operator(server, &body);
    refused(&until_refused(server, &token), "api_key_expired");
    let reply = server.admin("POST", &format!("/admin/v1/operators/{id}/rotate"), &Value::Null);
    reply.error(409, "invalid_request_error", "state_conflict");
}

#[test]
fn a_rotation_keeps_the_operator_and_ends_the_old_token_after_the_overlap() {
    let server = Server::shared();
    let (id, first) = of_role(server, "read_only");
    let rotate = |seconds: i64| {
        let body = json!({"overlap_seconds": seconds});
        let made = server.admin("POST", &format!("/admin/v1/operators/{id}/rotate"), &body).ok();
        assert_eq!(
            (&made["id"], &made["name"], &made["role"]),
            (&json!(id), &json!("A read_only"), &json!("read_only"))
        );
        made["token"].as_str().unwrap().to_owned()
    };
    let second = rotate(3600);
    assert_eq!([&first, &second].map(|token| list(server, token).status), [200, 200]);
    let third = rotate(3600);
    refused(&list(server, &first), "api_key_expired");
    assert_eq!([&second, &third].map(|token| list(server, token).status), [200, 200]);
    let fourth = rotate(0);
    refused(&list(server, &third), "api_key_expired");
    let fifth = rotate(2);
    refused(&until_refused(server, &fourth), "api_key_expired");
    assert_eq!(list(server, &fifth).status, 200);
    for bad in [json!({"overlap_seconds": -1}), json!({"overlap_seconds": 2_592_001}), json!({"nonsense": 1})] {
        assert_eq!(server.admin("POST", &format!("/admin/v1/operators/{id}/rotate"), &bad).status, 400, "{bad}");
    }
    assert_eq!(list(server, &fifth).status, 200);
}

#[test]
fn a_token_opens_no_route_of_an_organization_and_the_caller_is_told_where_it_belongs() {
    let server = Server::shared();
    let (_, token) = of_role(server, "owner");
    let error = call(server, &token, "GET", "/v1/vehicles", &Value::Null);
    refused(&error, "api_key_invalid");
    assert!(error.text().contains("This is the token of an operator"), "{}", error.text());
}

#[test]
fn the_last_use_is_noted_to_the_minute() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(directory.path(), &[]);
    let (id, token) = of_role(&server, "read_only");
    assert_eq!(list(&server, &token).status, 200);
    // The uses that were noted are saved at the latest when the server ends.
    server.signal("TERM");
    server.exit_code();
    let server = Server::start_in(directory.path(), &[]);
    let used = server.admin("GET", &format!("/admin/v1/operators/{id}"), &Value::Null).ok()["last_used_at"].clone();
    assert!(used.as_str().is_some_and(|used| used.ends_with(":00.000Z")), "{used}");
}

#[test]
fn an_audit_entry_names_the_operator_and_the_address() {
    let server = Server::shared();
    let (id, token, _) = operator(server, &json!({"name": "Audited Ada", "role": "operator"}));
    let made = call(server, &token, "POST", "/admin/v1/organizations", &json!({"name": "Ada's"})).ok();
    call(server, &token, "PATCH", "/admin/v1/organizations/x", &json!({"plan": "free"}));
    let entries = server.admin("GET", "/admin/v1/audit_entries?actor=Audited%20Ada", &Value::Null).ok();
    let [entry] = &entries["data"].as_array().unwrap()[..] else { panic!("one entry: {entries}") };
    let found = ["action", "resource_id", "actor", "actor_id", "address"].map(|name| entry[name].clone());
    assert_eq!(json!(found), json!(["createOrganization", made["id"], "Audited Ada", id, "127.0.0.1"]));
    let path = format!("/admin/v1/audit_entries?action=createOperator&organization={}", made["id"].as_str().unwrap());
    assert_eq!(server.admin("GET", &path, &Value::Null).ok()["data"], json!([]));
    let root = server.admin("GET", "/admin/v1/audit_entries?actor=root&limit=1", &Value::Null).ok();
    assert_eq!((&root["data"][0]["actor"], &root["data"][0]["actor_id"]), (&json!("root"), &Value::Null));
}

#[test]
fn who_takes_a_backup_or_an_export_is_in_the_audit_log_and_in_the_log() {
    let server = Server::start(&[]);
    let organization = server.organization();
    let (id, token, _) = operator(&server, &json!({"name": "Backup job", "role": "read_only"}));
    let export = format!("/admin/v1/organizations/{}/export", organization.id);
    for (path, action, about) in
        [("/admin/v1/backup", "getBackup", Value::Null), (&export, "exportOrganization", json!(organization.id))]
    {
        call(&server, &token, "GET", &format!("{path}?pace=fast"), &Value::Null).bad_fields();
        assert_eq!(call(&server, &token, "GET", &format!("{path}?pace=full"), &Value::Null).status, 200);
        let entries = server.admin("GET", &format!("/admin/v1/audit_entries?action={action}"), &Value::Null).ok();
        let [entry] = &entries["data"].as_array().unwrap()[..] else { panic!("one entry: {entries}") };
        let found = ["actor", "actor_id", "address", "organization_id", "path"].map(|name| entry[name].clone());
        assert_eq!(json!(found), json!(["Backup job", id, "127.0.0.1", about, path]));
    }
    let log = server.log();
    for words in ["a backup was sent", "an export was sent"] {
        let line = log.lines().find(|line| line.contains(words)).expect("a line");
        assert!(line.contains("Backup job") && line.contains("127.0.0.1"), "{line}");
    }
}
