//! `Idempotency-Key` on POST and PATCH: one effect and one answer for each key, whatever happens in between
//! (`docs/decisions.md`, "Keys, plans, idempotency").

use crate::support::{ADMIN_TOKEN, Connection, Organization, Reply, Server};
use serde_json::{Value, json};
use std::sync::{Barrier, Mutex};

fn shared() -> Organization<'static> {
    Server::shared().organization()
}

pub(crate) fn with_key(organization: &Organization, key: &str, method: &str, path: &str, body: &Value) -> Reply {
    organization.call_with(method, path, &[("Idempotency-Key", key)], body)
}

/// The second answer is the first one again, byte for byte, and says so.
#[track_caller]
pub(crate) fn replays(first: &Reply, second: &Reply) {
    assert_eq!(first.header("idempotent-replayed"), None, "the first answer is no replay");
    assert_eq!(second.header("idempotent-replayed"), Some("true"), "{}", second.text());
    assert_eq!((second.status, second.text()), (first.status, first.text()));
    assert_eq!(second.header("etag"), first.header("etag"));
    assert_ne!(second.header("request-id"), first.header("request-id"), "each request has an id of its own");
}

pub(crate) fn vehicles(organization: &Organization) -> Vec<Value> {
    organization.get("/v1/vehicles?limit=100").ok()["data"].as_array().expect("a list").clone()
}

#[test]
fn a_repeated_post_is_answered_by_the_first_answer_and_has_no_effect() {
    let organization = shared();
    let (vehicle, customer) = (organization.vehicle(json!({})), organization.customer(json!({})));
    for (path, body) in [
        ("/v1/vehicles", json!({"name": "Once"})),
        ("/v1/customers", json!({"full_name": "Once"})),
        ("/v1/rentals", json!({"customer_id": customer, "vehicle_id": vehicle})),
        ("/v1/leads", json!({})),
    ] {
        let key = format!("once{path}");
        let first = with_key(&organization, &key, "POST", path, &body);
        first.ok();
        for _ in 0..3 {
            replays(&first, &with_key(&organization, &key, "POST", path, &body));
        }
        if path != "/v1/leads" {
            let listed = organization.get(&format!("{path}?limit=100")).text();
            assert_eq!(listed.matches(&format!("\"id\":\"{}\"", first.id())).count(), 1);
        }
    }
    assert_eq!(vehicles(&organization).len(), 2);
}

#[test]
fn a_repeated_patch_does_not_undo_what_came_after() {
    let organization = shared();
    let path = format!("/v1/vehicles/{}", organization.vehicle(json!({})));
    let first = with_key(&organization, "patch", "PATCH", &path, &json!({"color": "red"}));
    organization.patch(&path, &json!({"color": "blue"})).ok();
    replays(&first, &with_key(&organization, "patch", "PATCH", &path, &json!({"color": "red"})));
    assert_eq!(organization.get(&path).ok()["color"], "blue");
    // One that changes nothing is an answer too.
    let nothing = with_key(&organization, "nothing", "PATCH", &path, &json!({}));
    organization.patch(&path, &json!({"color": "green"})).ok();
    replays(&nothing, &with_key(&organization, "nothing", "PATCH", &path, &json!({})));
}

#[test]
fn a_quoted_key_is_the_same_key_as_the_bare_one() {
    let organization = shared();
    let body = json!({"name": "Quoted"});
    let bare = with_key(&organization, "the-key", "POST", "/v1/vehicles", &body);
    replays(&bare, &with_key(&organization, "\"the-key\"", "POST", "/v1/vehicles", &body));
    let quoted = with_key(&organization, "\"other\"", "POST", "/v1/vehicles", &body);
    replays(&quoted, &with_key(&organization, "other", "POST", "/v1/vehicles", &body));
    assert_ne!(bare.id(), quoted.id(), "another key is another request");
}

#[test]
fn another_request_with_a_used_key_is_refused_and_has_no_effect() {
    let organization = shared();
    let body = json!({"name": "First"});
    let first = with_key(&organization, "used", "POST", "/v1/vehicles", &body);
    let path = format!("/v1/vehicles/{}", first.id());
    for (method, path, body) in [
        ("POST", "/v1/vehicles", json!({"name": "Second"})),
        ("POST", "/v1/vehicles", json!({"name": "First", "color": null})),
        ("POST", "/v1/vehicles", Value::Null),
        ("POST", "/v1/customers", body.clone()),
        ("POST", "/v1/leads", body.clone()),
        ("PATCH", path.as_str(), body.clone()),
    ] {
        let reply = with_key(&organization, "used", method, path, &body);
        reply.error(422, "idempotency_error", "idempotency_key_reused");
    }
    replays(&first, &with_key(&organization, "used", "POST", "/v1/vehicles", &body));
    assert_eq!(vehicles(&organization).len(), 1);
    assert_eq!(organization.get(&path).ok()["name"], "First");
}

/// Sends one request from twenty threads at once, by way of all these servers: one is first, the others replay it or are
/// told to come back.
pub(crate) fn race(organizations: &[&Organization], key: &str, method: &str, path: &str, body: &Value) -> Vec<Reply> {
    const CLIENTS: usize = 20;
    let (start, answers) = (Barrier::new(CLIENTS), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (start, answers) = (&start, &answers);
            scope.spawn(move || {
                start.wait();
                let reply = with_key(organizations[client % organizations.len()], key, method, path, body);
                answers.lock().unwrap().push(reply);
            });
        }
    });
    let (done, waiting): (Vec<_>, Vec<_>) =
        answers.into_inner().unwrap().into_iter().partition(|reply| reply.status == 200);
    for reply in waiting {
        reply.error(409, "idempotency_error", "idempotency_key_in_use");
        let seconds: u64 = reply.header("retry-after").expect("it says when").parse().expect("in seconds");
        assert!((1..=60).contains(&seconds));
    }
    let firsts = done.iter().filter(|reply| reply.header("idempotent-replayed").is_none()).count();
    assert_eq!(firsts, 1, "one request has the effect");
    assert!(done.iter().all(|reply| reply.body == done[0].body));
    done
}

#[test]
fn twenty_requests_at_once_with_one_key_have_one_effect() {
    let organization = shared();
    for round in 0..15 {
        let key = format!("race-{round}");
        let done = race(&[&organization], &key, "POST", "/v1/vehicles", &json!({"name": key}));
        let path = format!("/v1/vehicles/{}", done[0].id());
        race(&[&organization], &format!("patch-{round}"), "PATCH", &path, &json!({"year": 2000 + round}));
        assert_eq!(organization.get(&path).header("etag"), Some("\"2\""), "changed once");
    }
    assert_eq!(vehicles(&organization).len(), 15);
}

/// Answers with a 4xx that the request itself deserves are kept, also when the request would succeed by now.
#[test]
fn refusals_are_kept_like_successes() {
    let organization = shared();
    let (vehicle, customer) = (organization.vehicle(json!({})), organization.customer(json!({})));
    let booking = json!({"customer_id": customer, "vehicle_id": vehicle, "start_date": "2027-01-01", "end_date": "2027-01-05", "status": "APPROVED"});
    let holder = organization.post("/v1/rentals", &booking).id();
    let path = format!("/v1/vehicles/{vehicle}");
    let unknown = "/v1/vehicles/01900000-0000-7000-8000-000000000000";
    let stale = |key: &str| {
        let headers = [("Idempotency-Key", key), ("If-Match", "\"7\"")];
        organization.call_with("PATCH", &path, &headers, &json!({"color": "red"}))
    };
    let send = |key: &str, method: &str, path: &str, body: &Value| with_key(&organization, key, method, path, body);
    let bad = json!({"name": "", "year": 1});
    let refusals = [
        (send("400", "POST", "/v1/vehicles", &bad), 400),
        (send("404", "PATCH", unknown, &json!({})), 404),
        (send("409", "POST", "/v1/rentals", &booking), 409),
        (stale("412"), 412),
    ];
    for (reply, status) in &refusals {
        assert_eq!(reply.status, *status, "{}", reply.text());
    }
    organization.patch(&format!("/v1/rentals/{holder}"), &json!({"status": "CANCELLED"})).ok();
    for year in 2001..2007 {
        organization.patch(&path, &json!({"year": year})).ok();
    }
    assert_eq!(organization.get(&path).header("etag"), Some("\"7\""), "now `If-Match` would hold");
    replays(&refusals[0].0, &send("400", "POST", "/v1/vehicles", &bad));
    replays(&refusals[1].0, &send("404", "PATCH", unknown, &json!({})));
    replays(&refusals[2].0, &send("409", "POST", "/v1/rentals", &booking));
    replays(&refusals[3].0, &stale("412"));
    assert_eq!(organization.get(&path).ok()["color"], Value::Null);
    organization.post("/v1/rentals", &booking).ok();
}

/// What says nothing about the request itself is not kept: the same key works once the obstacle is gone.
#[test]
fn obstacles_are_not_kept() {
    let server = Server::start(&["--max-body", "2KB"]);
    let organization = server.organization();
    let good = json!({"name": "At last"});
    let bytes = good.to_string();
    let key = |key: &'static str| ("Idempotency-Key", key);
    let post = |authorization: &str, kind: &str, key: (&str, &str), body: &[u8]| {
        let headers = [("Authorization", authorization), ("Content-Type", kind), key];
        Connection::open(&server.address).send("POST", "/v1/vehicles", &headers, body)
    };
    let write = format!("Bearer {}", organization.write);
    let read = format!("Bearer {}", organization.read);
    let json_type = "application/json";
    post("", json_type, key("k401"), bytes.as_bytes()).error(401, "authentication_error", "api_key_missing");
    post(&read, json_type, key("k403"), bytes.as_bytes()).error(403, "permission_error", "insufficient_scope");
    let large = format!("{bytes}{}", " ".repeat(2048));
    post(&write, json_type, key("k413"), large.as_bytes()).error(413, "invalid_request_error", "request_too_large");
    let wrong = post(&write, "text/plain", key("k415"), bytes.as_bytes());
    wrong.error(415, "invalid_request_error", "unsupported_media_type");
    for malformed in ["{\"name\":\"At last\"", "[]", "{\"name\":\"\u{1}\"}"] {
        let reply = post(&write, json_type, key("k400"), malformed.as_bytes());
        reply.error(400, "invalid_request_error", "body_invalid_json");
    }
    let free = server.organization_with(&json!({"name": "Free", "plan": "free"}));
    with_key(&free, "plan", "POST", "/v1/vehicles", &good).error(403, "permission_error", "plan_required");
    server.admin("PATCH", &format!("/admin/v1/organizations/{}", free.id), &json!({"plan": "pro"})).ok();
    let paid = with_key(&free, "plan", "POST", "/v1/vehicles", &good);
    assert_eq!((paid.status, paid.header("idempotent-replayed")), (200, None));
    for name in ["k401", "k403", "k413", "k415", "k400"] {
        let reply = with_key(&organization, name, "POST", "/v1/vehicles", &good);
        assert_eq!((reply.status, reply.header("idempotent-replayed")), (200, None), "{name}: {}", reply.text());
    }
    assert_eq!(vehicles(&organization).len(), 5);
}

#[test]
fn a_get_takes_no_notice_of_a_key() {
    let organization = shared();
    let vehicle = organization.vehicle(json!({}));
    let path = format!("/v1/vehicles/{vehicle}");
    let get = |key: &str, path: &str| with_key(&organization, key, "GET", path, &Value::Null);
    for (key, path) in [("get", path.as_str()), ("get", "/v1/vehicles"), ("not a key \u{e9}", &path)] {
        let reply = get(key, path);
        assert_eq!((reply.status, reply.header("idempotent-replayed")), (200, None));
    }
    organization.patch(&path, &json!({"color": "red"})).ok();
    assert_eq!(get("get", &path).ok()["color"], "red", "not the answer of before");
    assert_eq!(with_key(&organization, "get", "PATCH", &path, &json!({})).status, 200);
}

#[test]
fn a_key_is_one_to_255_visible_characters() {
    let organization = shared();
    let longest = "k".repeat(255);
    for good in
        [longest.as_str(), "k", "~!@#$%^&*()", "8e03978e-40d5-43dd-bc93-6894a57f9324", &format!("\"{longest}\"")]
    {
        assert_eq!(with_key(&organization, good, "POST", "/v1/leads", &json!({})).status, 200, "{good}");
    }
    let longer = "k".repeat(256);
    for bad in ["", "\"\"", "two words", "t\tab", "caf\u{e9}", &longer] {
        let error = with_key(&organization, bad, "POST", "/v1/vehicles", &json!({"name": "Never"}));
        let error = error.error(400, "invalid_request_error", "parameter_invalid");
        assert_eq!(error["param"], "Idempotency-Key", "{bad:?}");
    }
    let twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "a")];
    let reply = organization.call_with("POST", "/v1/vehicles", &twice, &json!({"name": "Never"}));
    reply.error(400, "invalid_request_error", "parameter_invalid");
    assert_eq!(vehicles(&organization).len(), 0);
}

#[test]
fn keys_of_the_operator_work_the_same_way() {
    let server = Server::shared();
    let authorization = format!("Bearer {ADMIN_TOKEN}");
    let make = |name: &str| {
        let headers = [("Authorization", authorization.as_str()), ("Idempotency-Key", "operator-makes-one")];
        let body = json!({"name": name}).to_string();
        Connection::open(&server.address).send("POST", "/admin/v1/organizations", &headers, body.as_bytes())
    };
    let first = make("Once");
    replays(&first, &make("Once"));
    make("Twice").error(422, "idempotency_error", "idempotency_key_reused");
}

#[test]
fn a_client_that_hangs_up_gets_its_answer_with_the_same_key() {
    let organization = shared();
    let headers = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\nHost: x", organization.write);
    for round in 0..40 {
        let body = format!("{{\"name\":\"Hung up {round}\"}}");
        let key = format!("hang-{round}");
        let mut connection = Connection::open(&organization.server.address);
        let head = format!(
            "POST /v1/vehicles HTTP/1.1\r\n{headers}\r\nIdempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write(head.as_bytes()).expect("the server reads");
        if round % 2 == 0 {
            std::thread::sleep(std::time::Duration::from_micros(round * 50));
        }
        drop(connection);
        let answer = loop {
            let reply = organization.raw("POST", "/v1/vehicles", &[("Idempotency-Key", &key)], body.as_bytes());
            if reply.status != 409 {
                break reply;
            }
        };
        answer.ok();
    }
    assert_eq!(vehicles(&organization).len(), 40);
}

#[test]
fn a_replay_survives_kill_9() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start_in(directory.path(), &[]);
    let organization = server.organization();
    let (id, read, write) = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    let send = |organization: &Organization, n: usize| {
        with_key(organization, &format!("kill-{n}"), "POST", "/v1/vehicles", &json!({"name": format!("{n}")}))
    };
    let refuse =
        |organization: &Organization| with_key(organization, "bad", "POST", "/v1/vehicles", &json!({"year": 1}));
    let firsts: Vec<Reply> = (0..20).map(|n| send(&organization, n)).chain([refuse(&organization)]).collect();
    server.signal("KILL");
    server.wait_until_gone();
    let server = Server::start_in(directory.path(), &[]);
    let organization = Organization { server: &server, id, read, write };
    for (n, first) in firsts.iter().enumerate() {
        let again = if n < 20 { send(&organization, n) } else { refuse(&organization) };
        replays(first, &again);
    }
    assert_eq!(vehicles(&organization).len(), 20);
}
