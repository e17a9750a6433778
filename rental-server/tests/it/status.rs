//! `GET /admin/v1/status`: what operators learn of a running server.

use crate::support::{Connection, Server};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn the_status_has_every_member_of_its_schema_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_on_file(directory.path(), &["--brand", "Acme"]);
    let status = server.admin("GET", "/admin/v1/status", &Value::Null).ok();
    let document = Connection::open(&server.address).send("GET", "/openapi-admin.json", &[], b"").ok();
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let schema = &document["components"]["schemas"]["Status"];
    assert_eq!(names(&status), names(&schema["properties"]));
    assert_eq!(schema["required"].as_array().unwrap().len(), names(&status).len());
    assert_eq!((&status["ready"], &status["engine"]), (&Value::Bool(true), &Value::from("redb")));
    assert_eq!(status["webhook_brand"], "Acme");
    assert!(status["data_bytes"].as_u64().unwrap() > 4096, "{status}");
    let [free, total] = ["disk_free_bytes", "disk_total_bytes"].map(|name| status[name].as_u64().unwrap());
    assert!(free > 0 && free <= total, "{status}");
}

#[test]
fn the_status_tells_no_path_and_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_in(directory.path(), &[]);
    let text = server.admin("GET", "/admin/v1/status", &Value::Null).text();
    assert!(!text.contains("store.redb") && !text.contains('/') && !text.contains(&server.admin_token), "{text}");
}

#[test]
fn the_status_takes_no_parameter() {
    let reply = Server::shared().admin("GET", "/admin/v1/status?path=1", &Value::Null);
    assert_eq!(reply.bad_fields(), [("path".to_owned(), "parameter_unknown".to_owned())]);
}
