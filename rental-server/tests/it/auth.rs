//! Who may call: keys, plans, scopes, the admin token, and the order in which they are judged.

mod failures;
mod keys;
mod order;

use crate::support::{Connection, Organization, Reply, Server, rules};
use serde_json::{Value, json};

/// One request with these `Authorization` values and no others.
#[track_caller]
fn send(server: &Server, method: &str, path: &str, authorizations: &[&str]) -> Reply {
    let mut headers: Vec<(&str, &str)> = authorizations.iter().map(|value| ("Authorization", *value)).collect();
    headers.push(("Content-Type", "application/json"));
    let body: &[u8] = if method == "GET" { b"" } else { b"{}" };
    Connection::open(&server.address).send(method, path, &headers, body)
}

#[track_caller]
fn with_key(server: &Server, method: &str, path: &str, key: &str) -> Reply {
    send(server, method, path, &[&format!("Bearer {key}")])
}

/// Every operation with an id that leads nowhere.
fn operations() -> impl Iterator<Item = (&'static str, String)> {
    rules::OPERATIONS.into_iter().map(|(method, path)| (method, path.replace("{id}", rules::UNKNOWN_ID)))
}

/// The operator's routes, with ids that lead nowhere.
fn admin_routes() -> Vec<(&'static str, String)> {
    let all = [
        ("GET", "organizations"),
        ("POST", "organizations"),
        ("GET", "organizations/{id}"),
        ("PATCH", "organizations/{id}"),
        ("GET", "api_keys"),
        ("POST", "api_keys"),
        ("GET", "api_keys/{id}"),
        ("POST", "api_keys/{id}/revoke"),
        ("POST", "api_keys/{id}/rotate"),
        ("POST", "organizations/{id}/invoices"),
        ("POST", "organizations/{id}/tolls"),
        ("POST", "organizations/{id}/violations"),
        ("POST", "invoices/{id}/pay"),
        ("POST", "invoices/{id}/void"),
    ];
    all.map(|(method, path)| (method, format!("/admin/v1/{}", path.replace("{id}", rules::UNKNOWN_ID)))).to_vec()
}

#[track_caller]
fn refused(reply: &Reply, code: &str) {
    reply.error(401, "authentication_error", code);
    let challenge = reply.header("www-authenticate").expect("a 401 says how to authenticate");
    assert!(challenge.starts_with("Bearer"), "{challenge}");
}

#[test]
fn a_missing_or_garbled_authorization_is_401_on_every_route() {
    let organization = Server::shared().organization();
    let (server, key) = (organization.server, organization.write.as_str());
    let (bearer, basic, token) = (format!("Bearer {key}"), format!("Basic {key}"), format!("Token {key}"));
    let (two, comma, tight) =
        (format!("Bearer {key} {key}"), format!("Bearer {key}, Bearer {key}"), format!("Bearer{key}"));
    for (method, path) in operations() {
        refused(&send(server, method, &path, &[]), "api_key_missing");
        refused(&send(server, method, &path, &[&bearer, &bearer]), "api_key_missing");
    }
    for garbled in
        ["", "Bearer", "Bearer ", "bearer", key, &basic, &token, &two, &comma, &tight, "Bearer\t", "Digest a=\"b\""]
    {
        let reply = send(server, "GET", "/v1/vehicles", &[garbled]);
        refused(&reply, "api_key_missing");
        let text = reply.text();
        assert!(text.contains("is garbled: send it once, as `Authorization: Bearer <API_KEY>`"), "{garbled}: {text}");
        assert!(text.contains("the variable that should have the key may not be set"), "{garbled}: {text}");
    }
    let text = send(server, "GET", "/v1/vehicles", &[]).text();
    assert!(text.contains("No API key. Send it as"), "{text}");
    for header in ["X-Api-Key", "Api-Key", "Proxy-Authorization", "Cookie"] {
        let reply = Connection::open(&server.address).send("GET", "/v1/vehicles", &[(header, &bearer)], b"");
        refused(&reply, "api_key_missing");
    }
    refused(&send(server, "GET", &format!("/v1/vehicles?api_key={key}"), &[]), "api_key_missing");
}

#[test]
fn the_scheme_is_not_case_sensitive() {
    let organization = Server::shared().organization();
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let value = format!("{scheme} {}", organization.read);
        assert_eq!(send(organization.server, "GET", "/v1/vehicles", &[&value]).status, 200, "{scheme}");
    }
}

#[test]
fn a_key_that_does_not_exist_is_401_on_every_route() {
    let organization = Server::shared().organization();
    let (server, key) = (organization.server, organization.write.clone());
    let other_digit = |at: usize| {
        let digit = if key.as_bytes()[at] == b'a' { "b" } else { "a" };
        format!("{}{digit}{}", &key[..at], &key[at + 1..])
    };
    let flipped: Vec<String> = (0..key.len()).map(other_digit).collect();
    let truncated = (1..key.len()).step_by(5).map(|length| key[..length].to_owned());
    let odd = ["x", "rk_live_", "sk_live_abc", "null", "undefined", "<API_KEY>"].map(str::to_owned);
    let more =
        [format!("{key}0"), key.to_lowercase(), key.to_uppercase(), key.replace("live", "test"), "a".repeat(8000)];
    for wrong in flipped.into_iter().chain(truncated).chain(odd).chain(more) {
        refused(&with_key(server, "GET", "/v1/vehicles", &wrong), "api_key_invalid");
    }
    for (method, path) in operations() {
        refused(&with_key(server, method, &path, &other_digit(30)), "api_key_invalid");
    }
    assert_eq!(with_key(server, "GET", "/v1/vehicles", &key).status, 200);
}

#[test]
fn a_key_of_another_server_is_401() {
    let other = Server::start(&[]);
    let foreign = other.organization().write.clone();
    refused(&with_key(Server::shared(), "GET", "/v1/vehicles", &foreign), "api_key_invalid");
}

#[test]
fn the_free_plan_is_403_on_every_route() {
    let organization = Server::shared().organization_with(&json!({"name": "Free", "plan": "free"}));
    for (method, path) in operations() {
        for key in [&organization.read, &organization.write] {
            let reply = with_key(organization.server, method, &path, key);
            reply.error(403, "permission_error", "plan_required");
        }
    }
}

#[test]
fn an_organization_starts_on_pro_and_a_plan_change_counts_from_the_next_request() {
    let organization = Server::shared().organization();
    let path = format!("/admin/v1/organizations/{}", organization.id);
    assert_eq!(organization.server.admin("GET", &path, &Value::Null).ok()["plan"], "pro");
    for _ in 0..5 {
        assert_eq!(organization.get("/v1/vehicles").status, 200);
        organization.server.admin("PATCH", &path, &json!({"plan": "free"})).ok();
        organization.get("/v1/vehicles").error(403, "permission_error", "plan_required");
        organization.post("/v1/leads", &json!({})).error(403, "permission_error", "plan_required");
        organization.server.admin("PATCH", &path, &json!({"plan": "pro"})).ok();
    }
}

#[test]
fn a_read_key_opens_every_get_and_no_post_or_patch() {
    let organization = Server::shared().organization();
    let objects = organization.one_of_each();
    for (method, path) in rules::OPERATIONS {
        let id = objects.iter().find(|(plural, _)| path.contains(&format!("/{plural}/"))).map_or("", |(_, id)| id);
        let path = rules::with_required_query(path).replace("{id}", id);
        let reply = with_key(organization.server, method, &path, &organization.read);
        if method == "GET" {
            // What the key is differs, and so do the ids of requests.
            let differs = path == "/v1/me" || path.ends_with("/calendar_feed");
            assert!(differs || reply.body == organization.get(&path).body, "{path}");
            // A vehicle has no feed before somebody makes one.
            assert_eq!(reply.status, if path.ends_with("/calendar_feed") { 404 } else { 200 }, "{path}");
        } else {
            reply.error(403, "permission_error", "insufficient_scope");
        }
    }
}

#[test]
fn a_refused_write_changes_nothing() {
    let organization = Server::shared().organization();
    let path = format!("/v1/vehicles/{}", organization.vehicle(json!({})));
    let before = organization.get(&path);
    let key = format!("Bearer {}", organization.read);
    for (method, path) in [("PATCH", path.as_str()), ("POST", "/v1/vehicles")] {
        let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
        let reply =
            Connection::open(&organization.server.address).send(method, path, &headers, br#"{"name":"Stolen"}"#);
        reply.error(403, "permission_error", "insufficient_scope");
    }
    assert_eq!(organization.get(&path).body, before.body);
    assert_eq!(rules::walk(&organization, "vehicles", "", 10).len(), 1);
}

#[test]
fn a_key_opens_its_own_organization_alone() {
    let [one, two] = [Server::shared().organization(), Server::shared().organization()];
    let id = one.vehicle(json!({}));
    let list = |organization: &Organization<'_>| rules::walk(organization, "vehicles", "", 10).len();
    assert_eq!((list(&one), list(&two)), (1, 0));
    two.get(&format!("/v1/vehicles/{id}")).error(404, "invalid_request_error", "resource_missing");
    for header in ["Organization-Id", "X-Organization-Id", "Service-Organization"] {
        let reply = two.call_with("GET", &format!("/v1/vehicles/{id}"), &[(header, &one.id)], &Value::Null);
        assert_eq!(reply.status, 404, "{header}");
    }
}

#[test]
fn admin_routes_open_with_the_admin_token_alone() {
    let organization = Server::shared().organization();
    let server = organization.server;
    let token = server.admin_token.clone();
    for (method, path) in admin_routes() {
        refused(&send(server, method, &path, &[]), "api_key_missing");
        let (short, long, upper) = (&token[..token.len() - 1], format!("{token}x"), token.to_uppercase());
        for wrong in [short, &long, &upper, "x", &organization.read, &organization.write] {
            refused(&with_key(server, method, &path, wrong), "api_key_invalid");
        }
        let twice = format!("Bearer {token}");
        refused(&send(server, method, &path, &[&twice, &twice]), "api_key_missing");
        let status = with_key(server, method, &path, &token).status;
        assert!([200, 400, 404].contains(&status), "{method} {path}: {status}");
    }
}

#[test]
fn the_admin_token_opens_no_route_of_an_organization() {
    let server = Server::shared();
    for (method, path) in operations() {
        refused(&with_key(server, method, &path, &server.admin_token), "api_key_invalid");
    }
}

#[test]
fn a_token_at_the_wrong_place_is_told_where_it_belongs() {
    let organization = Server::shared().organization();
    let (server, key) = (organization.server, &organization.read);
    for (path, token, words) in [
        ("/v1/vehicles", &server.admin_token, ["This is the operator's admin token", "RENTAL_ADMIN_TOKEN"]),
        ("/admin/v1/organizations", key, ["This is an API key", "takes the operator's admin token"]),
    ] {
        let error = with_key(server, "GET", path, token).error(401, "authentication_error", "api_key_invalid");
        words.iter().for_each(|words| assert!(error["message"].to_string().contains(words), "{error}"));
    }
}

#[test]
fn open_pages_need_no_key_and_ignore_a_wrong_one() {
    let server = Server::shared();
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"] {
        assert_eq!(send(server, "GET", path, &[]).status, 200, "{path}");
        assert_eq!(with_key(server, "GET", path, "nonsense").status, 200, "{path}");
    }
}
