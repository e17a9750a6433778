//! What one delivery looks like on the wire (spec, Delivery and Signature verification).

use super::{
    PRIVATE, act, hook, hook_at, observed, one_event, quiet_while, signed, signed_at, state, usual,
    wait_for_deliveries, wait_for_state, with_schedule,
};
use crate::support::{
    Connection, Server,
    receiver::{Act, Receiver, Seen},
};
use serde_json::{Value, json};
use std::{
    io::Write,
    process::{Command, Stdio},
};

#[test]
fn a_delivery_is_a_post_with_exactly_the_documented_headers() {
    let (organization, receiver) = (usual().organization(), Receiver::start());
    hook(&organization, &receiver);
    one_event(&organization);
    let seen = receiver.wait_for(1).remove(0);
    assert_eq!(seen.line, "POST /hooks?a=b HTTP/1.1");
    assert_eq!(seen.header("Content-Type"), "application/json");
    assert_eq!(seen.header("User-Agent"), "Service-Webhooks/1.0");
    assert_eq!(seen.header("Service-Event-Type"), "customer.created");
    let trace = seen.header("traceparent");
    let event = seen.event().replace('-', "");
    assert!(trace.starts_with(&format!("00-{event}-")) && trace.ends_with("-00") && trace.len() == 55, "{trace}");
    assert_eq!(seen.header("Service-Event-Id"), seen.json()["id"]);
    assert_eq!(seen.header("Host"), receiver.address.to_string());
    assert_eq!(seen.header("Content-Length"), seen.body.len().to_string());
    let mut own: Vec<&str> =
        seen.headers.iter().map(|(name, _)| name.as_str()).filter(|name| name.starts_with("Service-")).collect();
    own.sort_unstable();
    assert_eq!(own, ["Service-Event-Id", "Service-Event-Type", "Service-Signature"], "spelt as documented");
    for name in ["Authorization", "Cookie", "Accept-Encoding", "Transfer-Encoding", "Referer"] {
        assert!(!seen.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)), "{name} in {seen:?}");
    }
}

#[test]
fn every_header_of_a_delivery_is_documented() {
    let (organization, receiver) = (usual().organization(), Receiver::start());
    hook(&organization, &receiver);
    one_event(&organization);
    let page = Connection::open(&usual().address).send("GET", "/docs/webhooks", &[], b"").text();
    let described = std::fs::read_to_string("../docs/webhooks.md").expect("a page");
    // Any request has the others.
    let known = |name: &str| ["host", "content-length", "connection"].contains(&name.to_ascii_lowercase().as_str());
    let seen = receiver.wait_for(1).remove(0);
    for (name, _) in seen.headers.iter().filter(|(name, _)| !known(name)) {
        let is_documented = |text: &str, before: &str, after: &str| {
            text.to_ascii_lowercase().contains(&format!("{before}{name}{after}").to_ascii_lowercase())
        };
        assert!(is_documented(&page, "id=\"header.", "\""), "{name} is not on /docs/webhooks");
        assert!(is_documented(&described, "| `", "` |"), "{name} is not in docs/webhooks.md");
    }
}

#[test]
fn the_body_has_id_type_created_and_the_whole_object_as_get_returns_it() {
    let (organization, receiver) = (usual().organization(), Receiver::start());
    hook(&organization, &receiver);
    let vehicle = organization.vehicle(json!({"daily_rate": 89.50, "color": "Rouge \"é\" 🚗 </script>"}));
    let stored = organization.get(&format!("/v1/vehicles/{vehicle}")).text();
    let seen = receiver.wait_for(1).remove(0);
    let body = seen.json();
    assert_eq!((&body["type"], &body["object"]), (&json!("vehicle.created"), &json!("event")));
    assert!(body["created"].as_u64().is_some_and(|created| created.abs_diff(seen.unix_seconds) <= 300), "{body}");
    let text = String::from_utf8(seen.body.clone()).expect("UTF-8");
    assert!(text.contains(&format!("\"data\":{stored}")), "{text} has not the bytes of {stored}");
}

#[test]
fn the_body_is_byte_for_byte_the_event_that_operators_read() {
    let (organization, receiver) = (usual().organization(), Receiver::start());
    hook(&organization, &receiver);
    organization.post("/v1/leads", &json!({"raw_data": {"b": 1.50, "a": [null, "ü"]}})).ok();
    let seen = receiver.wait_for(1).remove(0);
    let event =
        usual().admin("GET", &format!("/admin/v1/events/{}", seen.header("Service-Event-Id")), &json!(null)).body;
    assert_eq!(String::from_utf8_lossy(&event), String::from_utf8_lossy(&seen.body));
}

#[test]
fn the_signature_has_one_t_and_one_v1_over_t_dot_raw_body() {
    let (organization, receiver) = (usual().organization(), Receiver::start());
    let hook = hook(&organization, &receiver);
    one_event(&organization);
    let seen = receiver.wait_for(1).remove(0);
    let header = seen.header("Service-Signature");
    assert_eq!(header, signed(&seen, &[&hook.secret]));
    let (t, v1) = header.strip_prefix("t=").and_then(|rest| rest.split_once(",v1=")).expect("t=..,v1=..");
    assert!(t.bytes().all(|byte| byte.is_ascii_digit()), "{header}");
    assert!(v1.len() == 64 && v1.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{header}");
    assert!(signed_at(&seen).abs_diff(seen.unix_seconds) <= 60, "{header} at {}", seen.unix_seconds);
}

/// A second implementation, with nothing of this product in it.
fn hmac_of_python(secret: &str, seen: &Seen) -> String {
    let script = "import hmac,sys;s,t=sys.argv[1:];b=sys.stdin.buffer.read();\
        print('t=%s,v1=%s'%(t,hmac.new(s.encode(),t.encode()+b'.'+b,'sha256').hexdigest()),end='')";
    let mut python = Command::new("python3")
        .args(["-c", script, secret, &signed_at(seen).to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    python.stdin.take().expect("piped").write_all(&seen.body).expect("it reads");
    String::from_utf8(python.wait_with_output().expect("it ends").stdout).expect("text")
}

#[test]
fn python_verifies_the_signature() {
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_err() {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "python3 is not installed");
        eprintln!("skipped python_verifies_the_signature: python3 is not installed");
        return;
    }
    let (organization, receiver) = (usual().organization(), Receiver::start());
    let hook = hook(&organization, &receiver);
    organization.customer(json!({"notes": "größer\u{1F697} \\ \"/"}));
    let seen = receiver.wait_for(1).remove(0);
    assert_eq!(seen.header("Service-Signature"), hmac_of_python(&hook.secret, &seen));
}

#[test]
fn a_retry_has_the_same_id_and_bytes_and_a_fresh_t_and_signature() {
    let server = with_schedule("2100ms,100ms");
    let organization = server.organization();
    let receiver = Receiver::with(|number, _| Act::Status(if number == 0 { 500 } else { 200 }));
    let hook = hook(&organization, &receiver);
    one_event(&organization);
    let seen = receiver.wait_for(2);
    assert_eq!((seen[0].event(), seen[0].kind(), &seen[0].body), (seen[1].event(), seen[1].kind(), &seen[1].body));
    assert!(signed_at(&seen[1]) >= signed_at(&seen[0]) + 2, "the second is signed when it is sent");
    for one in &seen {
        assert_eq!(one.header("Service-Signature"), signed(one, &[&hook.secret]));
    }
}

#[test]
fn the_brand_is_the_prefix_of_headers_and_user_agent() {
    let server = Server::start(&[PRIVATE, "--brand", "Acme"]);
    let (organization, receiver) = (server.organization(), Receiver::start());
    hook(&organization, &receiver);
    one_event(&organization);
    let seen = receiver.wait_until("a request", |seen| !seen.is_empty()).remove(0);
    assert_eq!(seen.header("User-Agent"), "Acme-Webhooks/1.0");
    assert_eq!(seen.header("Acme-Event-Type"), "customer.created");
    assert_eq!(seen.header("Acme-Event-Id"), seen.json()["id"]);
    assert!(seen.header("Acme-Signature").starts_with("t="));
    assert!(!seen.headers.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with("service-")), "{seen:?}");
}

#[test]
fn an_endpoint_gets_only_the_types_it_asked_for() {
    let (organization, some, all) = (usual().organization(), Receiver::start(), Receiver::start());
    hook_at(&organization, &some.url(), json!({"events": ["lead.received", "vehicle.updated"]}));
    hook(&organization, &all);
    let vehicle = organization.vehicle(json!({}));
    organization.patch(&format!("/v1/vehicles/{vehicle}"), &json!({"color": "red"})).ok();
    one_event(&organization);
    organization.post("/v1/leads", &json!({})).ok();
    all.wait_for(4);
    some.wait_for(2);
    quiet_while();
    let mut kinds: Vec<String> = some.seen().iter().map(|seen| seen.kind().to_owned()).collect();
    kinds.sort();
    assert_eq!(kinds, ["lead.received", "vehicle.updated"]);
}

#[test]
fn another_organizations_events_never_arrive() {
    let (ours, theirs) = (usual().organization(), usual().organization());
    let (our_receiver, their_receiver) = (Receiver::start(), Receiver::start());
    hook(&ours, &our_receiver);
    hook(&theirs, &their_receiver);
    let (our_customer, their_customer) = (ours.customer(json!({})), theirs.customer(json!({})));
    let (our_seen, their_seen) = (our_receiver.wait_for(1), their_receiver.wait_for(1));
    quiet_while();
    assert_eq!((our_receiver.count(), their_receiver.count()), (1, 1));
    assert_eq!(our_seen[0].json()["data"]["id"], our_customer);
    assert_eq!(their_seen[0].json()["data"]["id"], their_customer);
}

#[test]
fn a_disabled_endpoint_gets_nothing_and_its_deliveries_wait() {
    let (organization, off, on) = (usual().organization(), Receiver::start(), Receiver::start());
    let disabled = hook(&organization, &off);
    act(usual(), &disabled, "disable", &json!(null)).ok();
    hook(&organization, &on);
    one_event(&organization);
    on.wait_for(1);
    quiet_while();
    assert_eq!((off.count(), off.connections()), (0, 0));
    let waiting = wait_for_deliveries(&organization, &disabled, 1, "pending");
    assert_eq!(waiting[0]["attempts"], 0);
    act(usual(), &disabled, "enable", &json!(null)).ok();
    assert_eq!(off.wait_for(1)[0].event(), on.seen()[0].event());
}

#[test]
fn every_endpoint_of_an_organization_gets_every_event_once() {
    let organization = usual().organization();
    let receivers = [(); 3].map(|()| Receiver::start());
    let hooks = receivers.each_ref().map(|receiver| hook(&organization, receiver));
    (0..30).for_each(|_| one_event(&organization));
    for (receiver, hook) in receivers.iter().zip(&hooks) {
        let seen = receiver.wait_for(30);
        wait_for_deliveries(&organization, hook, 30, "delivered");
        let mut ids: Vec<&str> = seen.iter().map(Seen::event).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), receiver.count()), (30, 30));
        assert!(seen.iter().all(|one| one.header("Service-Signature") == signed(one, &[&hook.secret])));
    }
    assert_eq!(observed(&organization, "events", "").len(), 30);
}

/// A receiver closes a connection between two requests, and the second one is on its way: it was received by nobody.
#[test]
fn a_request_on_a_kept_connection_that_the_receiver_closes_is_sent_again_at_once_and_fails_nothing() {
    let server = with_schedule("1h");
    let organization = server.organization();
    let receiver = Receiver::with(|number, _| match number {
        1 => Act::Raw(Vec::new()),
        _ => Act::Status(200),
    });
    let hook = hook(&organization, &receiver);
    one_event(&organization);
    wait_for_deliveries(&organization, &hook, 1, "delivered");
    one_event(&organization);
    let second = wait_for_deliveries(&organization, &hook, 2, "delivered").swap_remove(0);
    assert_eq!((&second["attempts"], &second["last_error"]), (&json!(1), &Value::Null), "{second}");
    assert_eq!(state(&server, &hook)["failures_in_a_row"], 0);
    let seen = receiver.seen();
    assert_eq!((seen.len(), receiver.connections()), (3, 2));
    assert_eq!((seen[1].event(), &seen[1].body), (seen[2].event(), &seen[2].body));
    assert_eq!(seen[1].header("Service-Signature"), seen[2].header("Service-Signature"));
}

#[test]
fn a_request_is_sent_again_once_only_and_never_after_a_new_connection() {
    let server = with_schedule("1h");
    let organization = server.organization();
    let receiver = Receiver::with(|number, _| match number {
        0 => Act::Status(200),
        _ => Act::Raw(Vec::new()),
    });
    let hook = hook(&organization, &receiver);
    one_event(&organization);
    wait_for_deliveries(&organization, &hook, 1, "delivered");
    one_event(&organization);
    let failed = |count: u64| wait_for_state(&server, &hook, "failures", |state| state["failures_in_a_row"] == count);
    failed(1);
    assert_eq!(receiver.count(), 3, "once more, on a new connection");
    one_event(&organization);
    failed(2);
    quiet_while();
    assert_eq!(receiver.count(), 4, "the first request of its connection");
}
