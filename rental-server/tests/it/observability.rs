//! What operators watch: health, metrics, logs. None of it needs a key, and none of it shows one.

use crate::{
    events_in_store::stop,
    metrics::scrape,
    support::{ADMIN_TOKEN, Connection, Reply, Server},
    webhooks::wait_for,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    fs,
};

fn ask(server: &Server, path: &str) -> Reply {
    Connection::open(&server.address).send("GET", path, &[], b"")
}

fn scraped(server: &Server) -> Reply {
    scrape(server, "application/openmetrics-text")
}

#[test]
fn health_readiness_and_metrics_need_no_key() {
    let server = Server::shared();
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(ask(server, path).status, 200, "{path}");
        let junk = [("Authorization", "Bearer junk")];
        assert_eq!(Connection::open(&server.address).send("GET", path, &junk, b"").status, 200, "{path}");
        let bare = Connection::open(&server.address).send("HEAD", path, &[], b"");
        assert_eq!((bare.status, bare.body.len()), (200, 0), "{path}");
    }
    assert_eq!(ask(server, "/healthz").json()["status"], "ok");
    assert_eq!(ask(server, "/readyz").json()["status"], "ready");
}

/// What a server says on /readyz once it was told to stop; `None` when it had closed the connection before it was asked.
fn readiness_while_draining() -> Option<Reply> {
    let server = Server::start(&[]);
    let mut connection = Connection::open(&server.address);
    assert_eq!(connection.send("GET", "/readyz", &[], b"").status, 200);
    server.signal("TERM");
    loop {
        let reply = connection.try_send("GET", "/readyz", &[], b"").ok()?;
        if reply.status != 200 {
            return Some(reply);
        }
    }
}

#[test]
fn a_server_that_drains_is_not_ready() {
    let refused = (0..5).find_map(|_| readiness_while_draining()).expect("it still answers for a moment");
    refused.error(503, "api_error", "service_unavailable");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.header("connection"), Some("close"));
}

/// The samples of an OpenMetrics page by name and labels. Fails on any line that is not of the format.
fn samples(page: &Reply) -> HashMap<String, f64> {
    let kind = page.header("content-type").expect("a type");
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let text = page.text();
    assert!(text.ends_with("# EOF\n"), "it ends with the mark of its end");
    let mut types: HashMap<&str, &str> = HashMap::new();
    let mut found = HashMap::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(comment) = line.strip_prefix("# ") {
            let (keyword, rest) = comment.split_once(' ').expect("a keyword");
            assert!(["HELP", "TYPE", "UNIT"].contains(&keyword), "{line}");
            let (name, value) = rest.split_once(' ').expect("a name");
            if keyword == "TYPE" {
                assert_eq!(types.insert(name, value), None, "{name} is described once");
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let name = series.split('{').next().expect("a name");
        assert!(
            (name.starts_with("rental_") || name.starts_with("process_"))
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
            "{line}"
        );
        let belongs =
            |family: &str| name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
        let family = types.iter().filter(|(family, _)| belongs(family)).max_by_key(|(family, _)| family.len());
        let (family, kind) = family.unwrap_or_else(|| panic!("{name} has no type"));
        let endings: &[&str] = match *kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            "info" => &["_info"],
            _ => &[""],
        };
        assert!(endings.contains(&&name[family.len()..]), "{line} is no {kind}");
        if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
            assert!(labels.starts_with('{') && labels.ends_with("\"}"), "{line}");
        }
        assert_eq!(found.insert(series.to_owned(), value.parse().expect("a number")), None, "{series} comes once");
    }
    found
}

#[test]
fn metrics_are_openmetrics_and_count_requests_by_endpoint_and_status() {
    let server = Server::start(&[]);
    let organization = server.organization();
    let vehicle = organization.vehicle(json!({}));
    let before = samples(&scraped(&server));
    for _ in 0..3 {
        organization.get("/v1/vehicles").ok();
    }
    let unknown = "/v1/vehicles/01900000-0000-7000-8000-000000000000";
    assert_eq!((organization.get(unknown).status, organization.get("/v1/vehicels").status), (404, 404));
    organization.get(&format!("/v1/vehicles/{vehicle}")).ok();
    for _ in 0..2 {
        organization.call_with("POST", "/v1/leads", &[("Idempotency-Key", "k")], &json!({})).ok();
    }
    let page = scraped(&server);
    let after = samples(&page);
    let grown = |series: &str| {
        let value = |page: &HashMap<String, f64>| *page.get(series).unwrap_or_else(|| panic!("no {series}"));
        value(&after) - value(&before)
    };
    let requests = |method: &str, path: &str, status: &str| {
        grown(&format!("rental_http_requests_total{{method=\"{method}\",path=\"{path}\",status=\"{status}\"}}"))
    };
    assert_eq!(requests("GET", "/v1/vehicles", "2xx"), 3.0);
    assert_eq!(requests("GET", "/v1/vehicles/{id}", "2xx"), 1.0);
    assert_eq!(requests("GET", "/v1/vehicles/{id}", "4xx"), 1.0);
    assert_eq!(requests("POST", "/v1/leads", "2xx"), 2.0);
    assert_eq!(requests("other", "other", "4xx"), 1.0);
    assert_eq!(grown("rental_idempotent_replays_total"), 1.0);
    // Between the two, the server itself can write the usage of the organizations.
    assert!(grown("rental_store_commit_batches_sum") >= 1.0);
    assert!(after["rental_http_connections"] >= 1.0 && grown("rental_http_connections_opened_total") >= 8.0);
    for secret in [&vehicle, &organization.id, &organization.write, &server.admin_token] {
        assert!(!page.text().contains(secret.as_str()), "no id and no key becomes a label");
    }
}

#[test]
fn each_background_task_is_supervised_and_counts_its_restarts() {
    let server = Server::start(&[]);
    let alone = [
        "api_key_use",
        "attachments",
        "calendar_feed_counts",
        "calendar_feeds",
        "clock",
        "congestion",
        "free_space",
        "idempotency",
        "lanes",
        "relay",
        "retention",
        "tasks",
        "usage",
        "usage_recount",
        "webhook_backlog",
    ];
    // Servers of one database share the endpoints among them.
    let shared = std::env::var("RENTAL_TEST_STORE").is_ok().then_some(["bells", "cluster"]);
    let expected: BTreeMap<String, f64> =
        alone.into_iter().chain(shared.into_iter().flatten()).map(|task| (task.to_owned(), 0.0)).collect();
    let task = |series: &str| {
        Some(series.strip_prefix("rental_background_task_restarts_total{task=\"")?.trim_end_matches("\"}").to_owned())
    };
    let counted = || -> BTreeMap<String, f64> {
        samples(&scraped(&server)).iter().filter_map(|(series, count)| Some((task(series)?, *count))).collect()
    };
    // Some begin when the first requests are served already.
    wait_for("each task", || (counted().len() >= expected.len()).then_some(()), || format!("{:?}", counted()));
    assert_eq!(counted(), expected);
}

#[test]
fn the_buckets_of_a_duration_add_up() {
    let server = Server::shared();
    ask(server, "/healthz");
    let page = samples(&scraped(server));
    let of = |series: &str, name: &str| {
        series.starts_with(&format!("rental_http_request_duration_seconds_{name}{{")) && series.contains("\"/healthz\"")
    };
    let value = |name: &str| *page.iter().find(|(series, _)| of(series, name)).expect("there is one").1;
    let mut buckets: Vec<(f64, f64)> = page
        .iter()
        .filter(|(series, _)| of(series, "bucket"))
        .map(|(series, count)| {
            let bound = series.split("le=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a bound");
            (if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a number") }, *count)
        })
        .collect();
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(buckets.len() > 5 && buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{buckets:?}");
    assert_eq!(buckets.last().map(|(bound, count)| (*bound, *count)), Some((f64::INFINITY, value("count"))));
    assert!(value("count") >= 1.0 && value("sum") > 0.0);
}

#[test]
fn json_logs_are_one_object_for_each_line_and_show_no_secret() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start_on_file(directory.path(), &["--log-format", "json", "--log-level", "debug"]);
    let organization = server.organization();
    let operator = format!("Bearer {ADMIN_TOKEN}");
    let body = json!({"organization_id": organization.id, "scope": "read"}).to_string();
    let headers = [("Authorization", operator.as_str()), ("Idempotency-Key", "makes-a-key")];
    let issue = || Connection::open(&server.address).send("POST", "/admin/v1/api_keys", &headers, body.as_bytes());
    let issued = issue().ok()["key"].as_str().expect("a key").to_owned();
    assert!(!issue().text().contains(&issued), "a key is shown once");
    let (bogus, basic) = ("rk_live_0000000000000000000000000000000000000000000BOGUSx", "dXNlcjpzZWNyZXQtcGFzc3dvcmQ=");
    let mut ids = Vec::new();
    for value in [
        format!("Bearer {bogus}"),
        format!("Basic {basic}"),
        operator.clone(),
        format!("Bearer {issued}"),
        format!("bearer  {}", organization.write),
    ] {
        for (method, path) in [
            ("GET", "/v1/vehicles"),
            ("POST", "/v1/vehicles"),
            ("PATCH", "/v1/vehicles/x"),
            ("GET", "/v1/x"),
            ("POST", "/admin/v1/organizations"),
        ] {
            let headers = [("Authorization", value.as_str()), ("Content-Type", "application/json")];
            let reply = Connection::open(&server.address).send(method, path, &headers, b"{\"name\":1,");
            ids.push((reply.header("request-id").expect("an id").to_owned(), reply.status));
        }
    }
    organization.post("/v1/vehicles", &json!({"name": "x", "secret_field": 1}));
    let secrets = [
        &organization.read,
        &organization.write,
        &issued,
        &ADMIN_TOKEN.to_owned(),
        &bogus.to_owned(),
        &basic.to_owned(),
    ]
    .map(Clone::clone);
    let log_before_end = server.log();
    drop(organization);
    let told: Vec<Value> = log_before_end
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")))
        .collect();
    assert!(told.iter().all(|line| line.is_object() && line["level"].is_string() && line["timestamp"].is_string()));
    for (id, status) in ids {
        let served =
            |line: &&Value| line["fields"]["request_id"] == json!(id) && line["fields"]["status"] == json!(status);
        assert_eq!(told.iter().filter(served).count(), 1, "one line tells of {id} and its {status}");
    }
    stop(server);
    let file = fs::read(directory.path().join("store.redb")).expect("the store");
    for secret in secrets {
        assert!(!log_before_end.contains(&secret), "{secret} is in the log");
        let random = secret.trim_start_matches("rk_live_").as_bytes();
        assert!(!file.windows(random.len()).any(|window| window == random), "{secret} is in the store");
    }
}

#[test]
fn at_the_usual_level_a_log_has_no_line_for_each_request() {
    let server = Server::start(&[]);
    let organization = server.organization();
    // What background tasks say once comes at any time.
    let lines = || server.log().lines().filter(|line| !line.contains("usage::recount")).count();
    let before = lines();
    for _ in 0..20 {
        organization.get("/v1/vehicles").ok();
        organization.post("/v1/vehicles", &json!({})).error(400, "invalid_request_error", "parameter_missing");
    }
    assert_eq!(lines(), before, "{}", server.log());
}

/// A value of a request cannot begin a new line of the log, and cannot send control codes to the reader's terminal.
#[test]
fn no_request_writes_a_line_of_its_own_into_the_log() {
    let forged = "1999-12-31T23:59:59.999999Z WARN rental_server: forged";
    for format in ["text", "json"] {
        let server = Server::start(&["--log-level", "debug", "--log-format", format]);
        let organization = server.organization();
        let names = [format!("x\n{forged}"), format!("x\r\n{forged}"), format!("\u{1b}[2J\u{9b}31m{forged}")];
        for name in &names {
            assert_eq!(organization.post("/v1/vehicles", &json!({ name: name, "status": name })).status, 400);
            let query = crate::support::percent_encode(name);
            assert_eq!(organization.get(&format!("/v1/vehicles?{query}={query}")).status, 400);
            assert_eq!(organization.get(&format!("/v1/{query}")).status, 404);
            let headers = [("Idempotency-Key", query.as_str()), ("X-Forwarded-For", &query), ("User-Agent", &query)];
            organization.call_with("POST", "/v1/leads", &headers, &json!({}));
        }
        let log = server.log();
        assert!(log.contains("a request was refused"), "the reasons are logged: {log}");
        assert!(!log.lines().any(|line| line.trim_start().starts_with(forged)), "{log}");
        assert!(!log.chars().any(|c| c.is_control() && c != '\n'), "{log:?}");
    }
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[test]
fn the_trace_and_the_id_of_a_client_are_in_the_log_and_its_id_is_returned() {
    let server = Server::start(&["--log-level", "debug", "--log-format", "json"]);
    let trace = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let ask = |headers: &[(&str, &str)], path: &str| Connection::open(&server.address).send("GET", path, headers, b"");
    let lines_of = |reply: &Reply| -> Vec<Value> {
        let id = reply.header("request-id").expect("each response has one").to_owned();
        let lines: Vec<Value> = server.log().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        lines.into_iter().map(|mut line| line["fields"].take()).filter(|line| line["request_id"] == json!(id)).collect()
    };
    for path in ["/healthz", "/v1/vehicles"] {
        let reply = ask(&[("traceparent", &trace), ("X-Request-Id", "order-17/3")], path);
        assert_eq!(reply.header("x-request-id"), Some("order-17/3"), "{path}");
        let lines = lines_of(&reply);
        assert!(!lines.is_empty(), "{path}");
        for line in lines {
            assert_eq!(
                (&line["trace_id"], &line["client_request_id"]),
                (&json!(TRACE), &json!("order-17/3")),
                "{line}"
            );
        }
    }
    let long = "x".repeat(129);
    for headers in [
        &[("traceparent", "00-zz-00-01"), ("X-Request-Id", "a b\"c")][..],
        &[("X-Request-Id", long.as_str())],
        &[("X-Request-Id", "one"), ("X-Request-Id", "two"), ("traceparent", trace.as_str()), ("traceparent", &trace)],
        &[],
    ] {
        let reply = ask(headers, "/healthz");
        assert_eq!((reply.status, reply.header("x-request-id")), (200, None), "{headers:?}");
        for line in lines_of(&reply) {
            assert!(line["trace_id"].is_null() && line["client_request_id"].is_null(), "{line}");
        }
    }
}
