//! `--operator-listen`: operators have an address of their own.

use crate::{
    documents::{pages::Pages, whole},
    support::{Connection, Server, rules},
};
use serde_json::{Value, json};

/// A server with two addresses, that for operators, and the public one.
pub(crate) fn server() -> (Server, String) {
    let free =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").to_string();
    let mut server = Server::start(&["--operator-listen", &free]);
    let public = std::mem::replace(&mut server.address, free);
    (server, public)
}

fn get(address: &str, path: &str, token: &str) -> crate::support::Reply {
    Connection::open(address).send("GET", path, &[("Authorization", &format!("Bearer {token}"))], b"")
}

#[test]
fn the_public_address_has_no_operators_paths_and_the_other_one_has_all() {
    let (server, public) = server();
    let organization = server.organization();
    let document = get(&public, "/openapi.json", "").ok();
    let described = document["paths"].as_object().expect("paths");
    assert!(described.keys().all(|path| !path.contains("admin") && path != "/metrics"), "{:?}", described.keys());
    assert!(document["components"]["securitySchemes"].get("adminToken").is_none() && described.len() > 20);
    // All that a server without such an address describes.
    for (path, item) in whole()["paths"].as_object().expect("paths") {
        let at = path.replace("{id}", rules::UNKNOWN_ID).replace("{organization}", rules::UNKNOWN_ID);
        if path.starts_with("/docs/admin") {
            assert_eq!(
                (get(&public, &at, "").status, get(&server.address, path, "").status == 404),
                (404, path.contains("{id}"))
            );
        } else if path.starts_with("/admin/") || ["/metrics", "/openapi-admin.json"].contains(&path.as_str()) {
            for method in item.as_object().expect("operations").keys() {
                let bearer = format!("Bearer {}", server.admin_token);
                let headers = [("Authorization", bearer.as_str())];
                let reply = Connection::open(&public).send(&method.to_uppercase(), &at, &headers, b"");
                reply.error(404, "invalid_request_error", "route_unknown");
            }
        } else if item.get("get").is_some() {
            let reply = get(&public, &at, &organization.read);
            let found = ["resource_missing", "parameter_missing"].iter().any(|code| reply.text().contains(code));
            assert!(reply.status == 200 || found, "{path}");
        }
    }
    assert_eq!(get(&server.address, "/metrics", "").status, 200);
    assert_eq!(get(&server.address, "/v1/vehicles", &organization.read).status, 200);
    assert_eq!(server.admin("GET", "/admin/v1/status", &Value::Null).status, 200);
}

#[test]
fn requests_of_both_addresses_end_before_the_server_does() {
    let (mut server, public) = server();
    let mut waiting = [&server.address, &public].map(|address| Connection::open(address));
    server.signal("TERM");
    for connection in &mut waiting {
        assert_eq!(connection.send("GET", "/healthz", &[], b"").status, 200);
    }
    assert_eq!(server.exit_code(), Some(0));
}

/// Links of the public pages lead nowhere else than to public pages.
#[test]
fn public_pages_do_not_lead_to_the_pages_for_operators_on_the_other_address() {
    let (server, public) = server();
    let pages = Pages::reached(&public, &["/docs"]);
    assert!(pages.0.len() > 10 && pages.0.keys().all(|path| !path.contains("admin")), "{:?}", pages.0.keys());
    assert!(Pages::of(&server.address).0.contains_key("/docs/admin/organizations"));
    assert!(Pages::reached(&Server::shared().address, &["/docs"]).0.contains_key("/docs/admin"));
}

#[test]
fn the_public_url_is_in_the_documents_and_in_new_calendar_feeds() {
    let url = "https://rental.example.com/fleet";
    let server = Server::start(&["--public-url", &format!("{url}/")]);
    for path in ["/openapi.json", "/openapi-3.0.json", "/openapi-admin.json"] {
        assert_eq!(get(&server.address, path, "").ok()["servers"][0]["url"], url, "{path}");
    }
    let organization = server.organization();
    let vehicle = organization.vehicle(json!({}));
    let feed = organization.post(&format!("/v1/vehicles/{vehicle}/calendar_feed"), &json!({})).ok();
    let path = feed["path"].as_str().expect("a path");
    assert_eq!(feed["url"], format!("{url}{path}"));
    assert_eq!(get(&Server::shared().address, "/openapi.json", "").ok()["servers"][0]["url"], "/");
}
