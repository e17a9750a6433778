//! Transponders and plates of a vehicle at the prompt.

use super::Cli;
use crate::support::Server;
use serde_json::{Value, json};

const TO: &str = "2026-06-15T14:00:00.000Z";

#[test]
fn the_command_line_replaces_and_shows_the_assignments() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let organization = server.organization();
    let vehicle = organization.vehicle(json!({"plate": "CLI7777", "plate_state": "NY"}));
    let words = format!(
        "vehicles assign {vehicle} --assignment plate=CLI7777,state=NY --assignment toll_tag=00477777777,to={TO} --json"
    );
    let assigned = cli.run(server, &words);
    assert_eq!(assigned.code, Some(0), "{assigned:?}");
    let stored = server.admin("GET", &format!("/admin/v1/vehicles/{vehicle}/assignments"), &Value::Null).ok();
    assert_eq!(assigned.json(), stored);
    let shown = cli.run(server, &format!("vehicles assignments {vehicle}"));
    let expected = format!("kind\tnumber\tstate\tfrom\tto\nplate\tCLI7777\tNY\t\t\ntoll_tag\t00477777777\t\t\t{TO}\n");
    assert_eq!(shown.stdout, expected, "{shown:?}");
    let refused = cli.run(server, &format!("vehicles assign {vehicle} --none"));
    assert_eq!(refused.code, Some(6), "{refused:?}");
    let usage = cli.run(server, &format!("vehicles assign {vehicle} --assignment badge=1"));
    assert_eq!(usage.code, Some(2), "{usage:?}");
}
