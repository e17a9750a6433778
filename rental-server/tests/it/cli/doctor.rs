//! `doctor` on a real server. What a healthy server cannot show is tested in `rental-cli`, against a scripted one.

use super::{Cli, Ran, ran, url};
use crate::support::Server;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The checks as name to (status, fact).
fn checks(ran: &Ran) -> HashMap<String, (String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let told = ran.json();
    let checks = told["checks"].as_array().expect("checks").iter();
    checks.map(|check| (text(&check["name"]), (text(&check["status"]), text(&check["fact"])))).collect()
}

#[test]
fn on_a_healthy_server_all_is_well() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    for (key, scope) in [(&organization.read, "scope read;"), (&organization.write, "scope read_write;")] {
        let mut command = cli.command(&url(organization.server), "doctor --json");
        let ran = ran(command.env("RENTAL_API_KEY", key));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let checks = checks(&ran);
        for name in ["server", "tls", "api version", "ready", "admin token", "clock", "version", "api key"] {
            assert_eq!(checks[name].0, "ok", "{name}: {}", checks[name].1);
        }
        assert!(checks["api key"].1.contains(scope), "{}", checks["api key"].1);
    }
    assert_eq!(organization.get("/v1/vehicles").ok()["data"], json!([]), "asking for the scope makes nothing");
}

#[test]
fn a_wrong_secret_hides_nothing_of_the_rest() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    let mut command = cli.command(&url(organization.server), "doctor --json");
    let ran = ran(command.env("RENTAL_ADMIN_TOKEN", "x".repeat(40)).env("RENTAL_API_KEY", &organization.write));
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    let checks = checks(&ran);
    assert_eq!(checks["admin token"].0, "failed");
    for name in ["server", "ready", "clock", "api key"] {
        assert_eq!(checks[name].0, "ok", "{name}: {}", checks[name].1);
    }
}

#[test]
fn a_disabled_endpoint_is_a_warning_that_names_it() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::start(&["--webhook-allow-private"]);
    let organization = server.organization();
    let body = json!({"organization_id": organization.id, "url": "http://127.0.0.1:9/"});
    let id = server.admin("POST", "/admin/v1/webhook_endpoints", &body).id();
    server.admin("POST", &format!("/admin/v1/webhook_endpoints/{id}/disable"), &Value::Null).ok();
    let ran = cli.run(&server, "doctor");
    assert_eq!(ran.code, Some(0), "warnings are no failure: {}", ran.stderr);
    let line = ran.stdout.lines().find(|line| line.contains("\twebhook endpoints\t")).expect("a line");
    assert!(line.starts_with("warning\t") && line.contains("1 of 1 are disabled") && line.contains(&id), "{line}");
}
