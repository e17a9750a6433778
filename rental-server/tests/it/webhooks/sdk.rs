//! Receivers that know this signature scheme from a public SDK alone verify everything that is sent (spec, Signature).

use super::{act, hook, one_event, wait_for_deliveries, with_schedule};
use crate::support::{
    Server,
    receiver::{Act, Receiver},
};
use serde_json::{Value, json};
use std::{
    env, fs,
    io::{Write as _, stderr},
    path::Path,
    process::Command,
};

/// How the scripts say that the SDK is not installed.
const NOT_INSTALLED: i32 = 77;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What was sent: secrets that must verify it, and the request.
fn everything_that_is_sent(server: &Server) -> Vec<Value> {
    let organization = server.organization();
    let receiver = Receiver::with(|number, _| Act::Status(if number < 2 { 500 } else { 200 }));
    let hook = hook(&organization, &receiver);
    // Attempts that fail and their retries; then every kind of object; text of all scripts in them.
    one_event(&organization);
    receiver.wait_for(3);
    let vehicle = organization.vehicle(json!({"name": "Škoda 小型车 \u{1F697} \"quoted\\\""}));
    let customer = organization.customer(json!({"full_name": "Zoë <O'Neill> & co"}));
    let rental = json!({"vehicle_id": vehicle, "customer_id": customer});
    let rental = organization.post("/v1/rentals", &rental).ok()["id"].as_str().expect("an id").to_owned();
    organization.patch(&format!("/v1/rentals/{rental}"), &json!({"status": "COMPLETED"})).ok();
    organization.post("/v1/leads", &json!({"raw_data": {"é": [1.50, null, "\u{0}"]}})).ok();
    receiver.wait_for(9);
    act(server, &hook, "test", &Value::Null).ok();
    let before = receiver.count();
    let new = act(server, &hook, "rotate_secret", &Value::Null).ok()["secret"].as_str().expect("one").to_owned();
    wait_for_deliveries(&organization, &hook, 7, "delivered");
    one_event(&organization);
    let event = receiver.wait_for(before + 1)[before].event().to_owned();
    server.admin("POST", &format!("/admin/v1/events/{event}/resend"), &Value::Null).ok();
    let seen = receiver.wait_for(before + 2);
    let case = |(at, secret): (usize, &String)| {
        let (header, body) = (hex(seen[at].header("Service-Signature").as_bytes()), hex(&seen[at].body));
        json!({"id": at, "secret": hex(secret.as_bytes()), "header": header, "body": body, "now": seen[at].unix_seconds})
    };
    // What went out during the overlap verifies with either secret.
    let old = (0..seen.len()).map(|at| (at, &hook.secret));
    old.chain((before..seen.len()).map(|at| (at, &new))).map(case).collect()
}

#[track_caller]
fn check(variable: &str, program: &str, script: &str) {
    let program = env::var(variable).unwrap_or_else(|_| program.to_owned());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rental-webhook-verify/tests/interop");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("sent.jsonl");
    let server = with_schedule("50ms,50ms");
    let sent = everything_that_is_sent(&server);
    fs::write(&path, sent.iter().map(|case| format!("{case}\n")).collect::<String>()).expect("it is written");
    let output = Command::new(&program).arg(scripts.join(script)).arg("stripe").arg(&path).output();
    let reason = match &output {
        Err(error) => format!("cannot run {program}: {error}"),
        Ok(output) if output.status.code() == Some(NOT_INSTALLED) => format!("{program} has no package `stripe`"),
        Ok(_) => String::new(),
    };
    if !reason.is_empty() {
        assert!(env::var_os("RENTAL_REQUIRE_ALL").is_none_or(|value| value != "1"), "{reason}");
        // Past the test runner's capture, which hides the output of tests that pass.
        writeln!(stderr(), "skipped a receiver with an SDK: {reason}").expect("stderr is open");
        return;
    }
    let output = output.expect("it ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("one JSON a line")).collect();
    assert_eq!(answers.len(), sent.len());
    assert!(answers.len() >= 13, "retries, objects, a test, an overlap twice, a resent one: {}", answers.len());
    for (answer, case) in answers.iter().zip(&sent) {
        assert_eq!(answer["accepted"], true, "{case}");
    }
}

#[test]
fn the_stripe_sdk_for_python_verifies_everything() {
    check("RENTAL_PYTHON", "python3", "differential.py");
}

#[test]
fn the_stripe_sdk_for_node_verifies_everything() {
    check("RENTAL_NODE", "node", "differential.mjs");
}
