//! Headers that tell browsers and caches what they may do.

use crate::support::{Connection, Organization, Reply, Server};
use serde_json::{Value, json};

fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Reply {
    Connection::open(&server.address).send("GET", path, headers, b"")
}

#[test]
fn a_browser_that_opens_the_bare_address_is_sent_to_the_reference() {
    let server = Server::shared();
    let ask = |method: &str, path: &str, accept: &str| {
        Connection::open(&server.address).send(method, path, &[("Accept", accept)], b"")
    };
    let page = "application/xhtml+xml,Text/HTML;q=0.9,*/*;q=0.8";
    for method in ["GET", "HEAD"] {
        let reply = ask(method, "/?from=mail", page);
        assert_eq!((reply.status, reply.header("location")), (302, Some("docs")), "{method}");
    }
    for (method, path, accept) in [
        ("GET", "/", "*/*"),
        ("GET", "/", "application/json"),
        ("POST", "/", page),
        ("GET", "/v1", page),
        ("GET", "//", page),
    ] {
        let reply = ask(method, path, accept);
        reply.error(404, "invalid_request_error", "route_unknown");
    }
}

/// Relative, so that it holds behind a proxy that serves the pages below another path.
#[test]
fn a_page_of_the_reference_with_a_slash_at_its_end_is_the_page() {
    let server = Server::shared();
    let ask = |method: &str, path: &str| Connection::open(&server.address).send(method, path, &[], b"");
    for (path, place) in [
        ("/docs/", "../docs"),
        ("/docs/vehicles/", "../vehicles"),
        ("/docs/admin/", "../admin"),
        ("/docs/admin/organizations/?q=1", "../organizations"),
    ] {
        for method in ["GET", "HEAD"] {
            let reply = ask(method, path);
            assert_eq!((reply.status, reply.header("location")), (302, Some(place)), "{method} {path}");
        }
    }
    for (method, path) in
        [("POST", "/docs/"), ("GET", "/docs//"), ("GET", "//docs/"), ("GET", "/docs.css/"), ("GET", "/docs/a/b/c/")]
    {
        ask(method, path).error(404, "invalid_request_error", "route_unknown");
    }
}

#[test]
fn no_response_lets_a_browser_guess_its_type() {
    let server = Server::shared();
    let organization = server.organization();
    let paths = [
        "/healthz",
        "/readyz",
        "/metrics",
        "/docs",
        "/docs/vehicles",
        "/docs/search.json",
        "/docs.css",
        "/docs.js",
        "/openapi.json",
        "/v1/vehicles",
        "/nothing",
    ];
    for reply in paths.iter().map(|path| get(server, path, &[])).chain([
        organization.get("/v1/vehicles"),
        organization.post("/v1/vehicles", &json!({})),
        server.admin("GET", "/admin/v1/status", &Value::Null),
    ]) {
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{}", reply.text());
    }
}

#[test]
fn a_response_that_shows_a_secret_is_never_stored() {
    let server = Server::shared();
    let organization = server.organization();
    let key = json!({"organization_id": organization.id, "scope": "read"});
    let endpoint = json!({"organization_id": organization.id, "url": "https://example.com/"});
    let operator = json!({"name": "Ada", "role": "read_only"});
    for (path, body, action) in [
        ("/admin/v1/api_keys", key, "rotate"),
        ("/admin/v1/operators", operator, "rotate"),
        ("/admin/v1/webhook_endpoints", endpoint, "rotate_secret"),
    ] {
        let made = server.admin("POST", path, &body);
        let rotated = server.admin("POST", &format!("{path}/{}/{action}", made.id()), &Value::Null);
        for reply in [made, rotated] {
            reply.ok();
            assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
        }
    }
}

#[test]
fn what_operators_read_is_stored_only_where_it_can_be_revalidated() {
    let server = Server::shared();
    let organization = server.organization();
    for path in ["/admin/v1/organizations", "/admin/v1/status", "/admin/v1/audit_entries"] {
        assert_eq!(server.admin("GET", path, &Value::Null).header("cache-control"), Some("no-store"), "{path}");
    }
    let one = server.admin("GET", &format!("/admin/v1/organizations/{}", organization.id), &Value::Null);
    assert!(one.header("etag").is_some() && one.header("cache-control").is_none(), "{one:?}");
}

/// A 304 is what such a client asks for, so its ETag has to be storable.
#[track_caller]
fn revalidates(organization: &Organization<'_>, path: &str) {
    let tag = organization.get(path).header("etag").expect("an ETag").to_owned();
    let again = organization.call_with("GET", path, &[("If-None-Match", &tag)], &Value::Null);
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(tag.as_str())), "{path}");
    let other = organization.call_with("GET", path, &[("If-None-Match", "\"other\"")], &Value::Null);
    assert_eq!(other.status, 200, "{path}");
}

#[test]
fn documents_that_do_not_change_have_an_etag() {
    let organization = Server::shared().organization();
    let documents = ["/openapi.json", "/openapi-3.0.json", "/openapi-admin.json"];
    for path in ["/docs", "/docs/vehicles", "/docs/search.json", "/docs.css", "/docs.js"].into_iter().chain(documents) {
        revalidates(&organization, path);
    }
    revalidates(&organization, &format!("/v1/vehicles/{}", organization.vehicle(json!({}))));
}

#[test]
fn without_tls_no_browser_is_told_to_insist_on_it() {
    assert_eq!(get(Server::shared(), "/healthz", &[]).header("strict-transport-security"), None);
}

/// Nothing is sent by a browser on its own: no cookie is set, and a page of another origin gets no leave to send a key.
#[test]
fn a_page_of_another_origin_can_neither_send_a_key_nor_read_a_response() {
    let server = Server::shared();
    let organization = server.organization();
    let origin = [("Origin", "https://evil.example")];
    let preflight = [
        ("Origin", "https://evil.example"),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization"),
    ];
    let replies = ["/v1/vehicles", "/admin/v1/organizations", "/docs", "/openapi.json", "/metrics", "/healthz"]
        .into_iter()
        .flat_map(|path| {
            let asked = Connection::open(&server.address).send("OPTIONS", path, &preflight, b"");
            assert_eq!(asked.status, 405, "{path}");
            [asked, get(server, path, &origin), organization.call_with("GET", path, &origin, &Value::Null)]
        });
    for reply in replies {
        for name in ["access-control-allow-origin", "access-control-allow-headers", "set-cookie"] {
            assert_eq!(reply.header(name), None, "{}", reply.text());
        }
    }
}

#[test]
fn the_pages_of_the_reference_load_nothing_from_elsewhere_and_run_no_inline_script() {
    for path in ["/docs", "/docs/vehicles", "/docs/webhooks", "/docs/errors", "/docs/admin", "/docs/admin/tolls"] {
        let page = get(Server::shared(), path, &[]);
        let policy = page.header("content-security-policy").expect("a policy");
        let rules: Vec<&str> = policy.split("; ").collect();
        for rule in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"] {
            assert!(rules.contains(&rule), "{policy}");
        }
        for rule in ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"] {
            assert!(rules.contains(&rule), "{policy}");
        }
        assert!(rules.len() == 7 && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
        let page = page.text();
        assert_eq!(page.matches("<script").count(), 1, "{path}");
        assert!(page.contains("<script src=\"/docs.js\" defer></script>"), "{path}");
        for inline in [" style=\"", " onclick", " onload", "javascript:", "<style", "<iframe", "<img"] {
            assert!(!page.contains(inline), "{path} has {inline}");
        }
    }
}
