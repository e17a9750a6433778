//! Who asks cannot tell which of three servers answers: the same bytes, the same headers, the same refusals.

use super::{everywhere, three};
use crate::support::{Connection, Organization, Reply, rules, rules::UNKNOWN_ID};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A request with the key that it is sent with.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    with: With,
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum With {
    Write,
    Read,
    Admin,
    Nothing,
}

pub(super) fn ask(with: With, method: &'static str, path: impl Into<String>, body: &'static str) -> Ask {
    Ask { with, method, path: path.into(), headers: Vec::new(), body }
}

impl Ask {
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn send(&self, organization: &Organization) -> Reply {
        let key = match self.with {
            With::Write => format!("Bearer {}", organization.write),
            With::Read => format!("Bearer {}", organization.read),
            With::Admin => format!("Bearer {}", organization.server.admin_token),
            With::Nothing => String::new(),
        };
        let mut headers: Vec<(&str, &str)> = self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        if !key.is_empty() {
            headers.push(("Authorization", &key));
        }
        let mut connection = Connection::open(&organization.server.address);
        connection.send(self.method, &self.path, &headers, self.body.as_bytes())
    }
}

/// What a client sees of an answer, without what differs from one request to the next. `Connection` depends on whether a
/// refused body was already there.
fn shown(reply: &Reply) -> (u16, Vec<(String, String)>, String) {
    let changing = ["date", "request-id", "connection"];
    let headers = reply.headers.iter().filter(|(name, _)| !changing.contains(&name.to_ascii_lowercase().as_str()));
    (reply.status, headers.cloned().collect(), rules::without_request_id(reply))
}

/// Asks every server, and gives the one answer.
#[track_caller]
fn answer(all: &[Organization; 3], ask: &Ask) -> Reply {
    let [first, others @ ..] = all.each_ref().map(|organization| ask.send(organization));
    for other in others {
        assert_eq!(shown(&other), shown(&first), "{ask:?}");
    }
    first
}

/// Objects of every kind, made by way of every server, some of them changed by another one.
fn fill(all: &[Organization; 3]) -> Vec<(&'static str, String)> {
    let mut made = Vec::new();
    for (n, organization) in all.iter().enumerate() {
        made.extend(organization.one_of_each());
        for status in ["APPROVED", "ACTIVE", "CANCELLED"] {
            let vehicle = organization.vehicle(json!({"daily_rate": 10 + n, "plate": format!("P{n}")}));
            let rental = organization
                .rental(&vehicle, json!({"start_date": "2027-03-01", "end_date": "2027-03-04", "status": status}));
            all[(n + 1) % 3].patch(&format!("/v1/rentals/{rental}"), &json!({"booking_id": format!("B{n}")})).ok();
        }
        organization.post("/v1/leads", &json!({"source_channel": "website"})).ok();
    }
    made
}

/// Everything that can be asked of the objects without changing any.
fn reads(all: &[Organization; 3], made: &[(&'static str, String)]) -> Vec<Ask> {
    let (organization, mut asks) = (&all[0], Vec::new());
    for (plural, id) in made {
        let path = format!("/v1/{plural}/{id}");
        let tag = organization.get(&path).header("etag").expect("a tag").to_owned();
        for with in [With::Write, With::Read, With::Nothing, With::Admin] {
            asks.push(ask(with, "GET", &path, ""));
            asks.push(ask(with, "GET", &path, "").header("If-None-Match", &tag));
        }
        asks.push(ask(With::Write, "GET", &path, "").header("If-None-Match", "\"777\""));
        asks.push(ask(With::Write, "HEAD", &path, ""));
        asks.push(ask(With::Write, "GET", format!("{path}?limit=1"), ""));
        // Only feeds of calendars can be deleted.
        if *plural != "calendar_feeds" {
            asks.push(ask(With::Write, "DELETE", &path, ""));
        }
    }
    let find = |plural: &str| &made.iter().find(|(known, _)| *known == plural).expect("one of each").1;
    let (vehicle, customer) = (find("vehicles"), find("customers"));
    for plural in ["vehicles", "customers", "rentals", "invoices", "tolls", "violations"] {
        for query in ["", "?limit=2", "?limit=100", "?limit=0", "?limit=x", "?nonsense=1", "?limit=1&limit=2"] {
            asks.push(ask(With::Write, "GET", format!("/v1/{plural}{query}"), ""));
        }
        for id in [UNKNOWN_ID, "x", "%00"] {
            asks.push(ask(With::Write, "GET", format!("/v1/{plural}/{id}"), ""));
            asks.push(ask(With::Write, "GET", format!("/v1/{plural}?limit=1&starting_after={id}"), ""));
        }
    }
    let lists = [
        format!("rentals?status=ACTIVE&customer={customer}"),
        "rentals?status=APPROVED&limit=1".to_owned(),
        "rentals?status=LOST".to_owned(),
        "customers?email=one%40example.com".to_owned(),
        format!("invoices?customer={customer}&status=open"),
        format!("tolls?vehicle={vehicle}"),
        format!("violations?vehicle={vehicle}"),
        format!("tolls?vehicle={UNKNOWN_ID}"),
    ];
    asks.extend(lists.map(|path| ask(With::Read, "GET", format!("/v1/{path}"), "")));
    for path in ["organizations", "webhook_endpoints", "audit_entries?limit=5", "nothing"] {
        asks.push(ask(With::Admin, "GET", format!("/admin/v1/{path}"), ""));
    }
    for path in ["events?limit=100", "deliveries"] {
        asks.push(ask(With::Admin, "GET", format!("/admin/v1/organizations/{}/{path}", organization.id), ""));
    }
    for path in ["/healthz", "/readyz", "/openapi.json", "/openapi-admin.json", "/docs", "/v1/nothing", "/"] {
        asks.push(ask(With::Nothing, "GET", path, ""));
    }
    asks
}

/// Writes that are refused, so that they can be sent again.
fn refused_writes(made: &[(&'static str, String)]) -> Vec<Ask> {
    let vehicle = &made.iter().find(|(plural, _)| *plural == "vehicles").expect("one of each").1;
    let (vehicle, json_type) = (format!("/v1/vehicles/{vehicle}"), "application/json");
    vec![
        ask(With::Write, "POST", "/v1/vehicles", "{\"nmae\":\"x\",\"year\":1,\"daily_rate\":1.234}"),
        ask(With::Write, "POST", "/v1/vehicles", "{"),
        ask(With::Write, "POST", "/v1/vehicles", ""),
        ask(With::Write, "POST", "/v1/vehicles", "a,b").header("Content-Type", "text/csv"),
        ask(With::Write, "POST", "/v1/vehicles", "{}").header("Idempotency-Key", "two words"),
        ask(With::Write, "POST", "/v1/rentals", "{\"customer_id\":\"x\",\"vehicle_id\":\"y\"}"),
        ask(With::Write, "POST", "/v1/invoices", "{}"),
        ask(With::Read, "POST", "/v1/vehicles", "{\"name\":\"x\"}"),
        ask(With::Nothing, "POST", "/v1/vehicles", "{\"name\":\"x\"}"),
        ask(With::Write, "PATCH", &vehicle, "{\"year\":1}").header("Content-Type", json_type),
        ask(With::Write, "PATCH", &vehicle, "{\"year\":2000}").header("If-Match", "\"777\""),
        ask(With::Write, "PATCH", &vehicle, "{}"),
        ask(With::Write, "PATCH", format!("/v1/vehicles/{UNKNOWN_ID}"), "{}"),
        ask(With::Admin, "POST", "/admin/v1/organizations", "{\"plan\":\"gold\"}"),
        ask(With::Write, "POST", "/admin/v1/organizations", "{\"name\":\"x\"}"),
    ]
}

#[test]
fn every_read_and_every_refusal_is_the_same_from_each_server() {
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    let made = fill(&all);
    let mut statuses = BTreeMap::new();
    for ask in reads(&all, &made).iter().chain(&refused_writes(&made)) {
        *statuses.entry(answer(&all, ask).status).or_insert(0) += 1;
    }
    for status in [200, 304, 400, 401, 403, 404, 405, 412, 415] {
        assert!(statuses.contains_key(&status), "{status} is not among {statuses:?}");
    }
}

/// All pages of a list, each from the server whose turn it is.
fn pages(all: &[Organization; 3], turn: impl Fn(usize) -> usize, path: &str) -> Vec<Vec<u8>> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = all[turn(pages.len()) % 3].get(&format!("{path}{cursor}"));
        let next = page.ok()["next_cursor"].as_str().map(str::to_owned);
        pages.push(page.body);
        let Some(next) = next else { return pages };
        cursor = format!("&starting_after={next}");
    }
}

#[test]
fn a_cursor_of_one_server_goes_on_at_another() {
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    fill(&all);
    for (list, least) in [
        ("vehicles?limit=1", 12),
        ("vehicles?limit=5", 3),
        ("customers?limit=2", 6),
        ("rentals?limit=2&status=APPROVED", 2),
        ("tolls?limit=1", 3),
        ("invoices?limit=1&status=open", 3),
    ] {
        let path = format!("/v1/{list}");
        let expected = pages(&all, |_| 0, &path);
        assert!(expected.len() >= least, "{list} has {} pages", expected.len());
        for server in 1..3 {
            assert_eq!(pages(&all, |_| server, &path), expected, "{list} from server {server}");
            assert_eq!(pages(&all, |page| page + server, &path), expected, "{list} in turns");
            assert_eq!(pages(&all, |page| page * 2 + server, &path), expected, "{list} in turns the other way");
        }
    }
}

#[test]
fn an_etag_of_one_server_counts_on_another() {
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    let made = all[0].post("/v1/vehicles", &json!({"name": "One"}));
    let (path, mut tag) = (format!("/v1/vehicles/{}", made.id()), made.header("etag").expect("an ETag").to_owned());
    for n in 0..12 {
        let [one, other, third] = [0, 1, 2].map(|turn: usize| &all[(n + turn) % 3]);
        let changed = one.call_with("PATCH", &path, &[("If-Match", &tag)], &json!({"year": 2000 + n}));
        assert_eq!(changed.status, 200);
        let stale = [("If-None-Match", tag.as_str())];
        assert_eq!(other.call_with("GET", &path, &stale, &Value::Null).body, changed.body);
        let late = third.call_with("PATCH", &path, &[("If-Match", &tag)], &json!({"year": 1999}));
        late.error(412, "invalid_request_error", "precondition_failed");
        changed.header("etag").expect("an ETag").clone_into(&mut tag);
        assert_eq!(other.call_with("GET", &path, &[("If-None-Match", &tag)], &Value::Null).status, 304);
    }
}

#[test]
fn an_object_made_on_one_server_is_answered_alike_when_it_is_asked_for_again() {
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    for (n, path) in ["/v1/vehicles", "/v1/customers", "/v1/leads"].into_iter().enumerate() {
        let body = ["{\"name\":\"One\"}", "{\"full_name\":\"One\"}", "{\"raw_data\":{\"a\":[1.50,\"é\"]}}"][n];
        let ask = ask(With::Write, "POST", path, body).header("Idempotency-Key", format!("made-{n}"));
        let first = ask.send(&all[n]);
        first.ok();
        let (status, mut headers, text) = shown(&answer(&all, &ask));
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("idempotent-replayed"));
        assert_eq!((status, headers, text), shown(&first));
    }
}
