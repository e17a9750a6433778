//! `/metrics` in both formats, and the files that use it: the table in the documents, alerts, the dashboard.

use crate::{
    documents::{read, top},
    support::{
        Connection, Reply, Server,
        receiver::{Act, Receiver, unix_seconds},
    },
    webhooks::{hook, metric, wait_for},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    process::{Command, Stdio},
    sync::LazyLock,
};

const OPEN_METRICS: &str = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

pub(crate) fn scrape(server: &Server, accept: &str) -> Reply {
    Connection::open(&server.address).send("GET", "/metrics", &[("Accept", accept)], b"")
}

/// Makes traffic of every kind that has metrics.
fn make_busy(server: &Server) {
    let organization = server.organization();
    let receiver = Receiver::that(Act::Status(500));
    hook(&organization, &receiver);
    organization.vehicle(json!({}));
    organization.customer(json!({}));
    receiver.wait_for(1);
    assert_eq!(Connection::open(&server.address).send("GET", "/v1/vehicles", &[], b"").status, 401);
    while organization.get("/v1/vehicles").status != 429 {}
    wait_for(
        "the age of the event that the endpoint refuses",
        || (metric(server, "rental_webhook_oldest_undelivered_age_seconds") > 0.0).then_some(()),
        String::new,
    );
}

/// The pages of one busy server: in the text format and as OpenMetrics. Each test reads them.
static PAGES: LazyLock<[Reply; 2]> = LazyLock::new(|| {
    let server = Server::start(&["--webhook-allow-private", "--rate-limit", "5"]);
    make_busy(&server);
    ["text/plain;version=0.0.4", OPEN_METRICS].map(|accept| scrape(&server, accept))
});

/// The type of each family, by its name in the page.
fn types(page: &str) -> BTreeMap<&str, &str> {
    page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect()
}

/// The names of all samples, without their labels.
fn names(page: &str) -> BTreeSet<&str> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.split(['{', ' ']).next()).collect()
}

/// A program that checks metrics; `None`, and a line that says so, where it is not installed.
fn checker(program: &str, package: &str) -> Option<Command> {
    let mut command = Command::new(program);
    if command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "{program} is not installed");
        eprintln!("skipped: {program} is not installed (Debian: apt-get install {package})");
        return None;
    }
    Some(Command::new(program))
}

/// What a program says about its input. It has to succeed.
#[track_caller]
fn says(mut command: Command, input: &str) -> String {
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    process.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = process.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn a_scraper_gets_the_format_that_it_asks_for_and_both_have_the_same_families() {
    let [text, open] = &*PAGES;
    assert_eq!(text.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(open.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert_eq!([text, open].map(|page| page.header("vary")), [Some("Accept"); 2]);
    let (text, open) = (text.text(), open.text());
    assert!(open.ends_with("\n# EOF\n") && !text.contains("# EOF") && !text.contains("# UNIT"));
    assert_eq!(names(&text), names(&open));
    let (of_text, of_open) = (types(&text), types(&open));
    assert_eq!(of_text.len(), of_open.len());
    for (family, kind) in of_open {
        let (ending, expected) = match kind {
            "counter" => ("_total", "counter"),
            "info" => ("_info", "gauge"),
            other => ("", other),
        };
        assert_eq!(of_text.get(format!("{family}{ending}").as_str()), Some(&expected), "{family}");
        let unit = open.lines().find_map(|line| line.strip_prefix(&format!("# UNIT {family} ")));
        for known in ["seconds", "bytes"] {
            assert_eq!(unit == Some(known), family.ends_with(known), "{family} has the unit that its name says");
        }
    }
}

#[test]
fn promtool_accepts_the_metrics() {
    let Some(mut promtool) = checker("promtool", "prometheus") else { return };
    promtool.args(["check", "metrics"]);
    assert_eq!(says(promtool, &PAGES[0].text()), "");
}

/// The parser of the Python client refuses what OpenMetrics 1.0 forbids.
#[test]
fn a_strict_parser_accepts_the_openmetrics() {
    let python = std::env::var("RENTAL_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = "import sys\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n\
                  print(len(list(parse(sys.stdin.read()))))";
    let has = Command::new(&python).args(["-c", "import prometheus_client"]).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "the package prometheus_client is not installed");
        eprintln!("skipped: the package prometheus_client is not installed (pip install prometheus_client)");
        return;
    }
    let mut command = Command::new(python);
    command.args(["-c", script]);
    let open = PAGES[1].text();
    assert_eq!(says(command, &open).trim(), types(&open).len().to_string());
}

#[test]
fn the_process_its_build_and_its_work_are_measured() {
    let page = PAGES[0].text();
    let value = |series: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {series} in {page}"))
    };
    let now = unix_seconds() as f64;
    assert!((now - value("process_start_time_seconds")).abs() < 3600.0);
    assert!(value("process_open_fds") > 5.0 && value("process_open_fds") < value("process_max_fds"));
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_cpu_seconds_total") >= 0.0);
    let build = format!("rental_build_info{{version=\"{}\",commit=\"", env!("CARGO_PKG_VERSION"));
    assert!(page.lines().any(|line| line.starts_with(&build) && line.ends_with("\"} 1")), "{page}");
    assert_eq!(value("rental_http_error_responses_total{status=\"401\"}"), 1.0);
    assert_eq!(value("rental_http_error_responses_total{status=\"429\"}"), 1.0);
    assert_eq!(value("rental_http_requests_in_flight"), 1.0, "the scrape itself");
    let (commits, batches) = ("rental_store_commit_duration_seconds", "rental_store_commit_batches");
    assert!(value(&format!("{commits}_sum")) > 0.0);
    assert_eq!(value(&format!("{commits}_count")), value(&format!("{batches}_count")));
    assert!(value(&format!("{batches}_sum")) >= value(&format!("{batches}_count")));
    assert!(value("rental_webhook_attempt_duration_seconds_count{outcome=\"refused\"}") >= 1.0);
    assert!(value("rental_webhook_oldest_undelivered_age_seconds") > 0.0);
    assert_eq!(value("rental_calendar_feeds{state=\"working\"}"), 0.0);
}

/// Whether a metric is about the data file, and the servers of this run have a database.
fn is_missing(name: &str) -> bool {
    let of_file = name.starts_with("rental_store_") && name.ends_with("_bytes");
    of_file && std::env::var("RENTAL_TEST_STORE").as_deref() == Ok("postgres")
}

/// The table has each metric with its type; on PostgreSQL there is no data file.
#[test]
fn the_documents_have_each_metric_with_its_type() {
    let (document, page) = (read("docs/observability.md"), PAGES[0].text());
    let table: BTreeMap<&str, &str> = document
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let name = cells.next()?.trim_end_matches('`');
            ["counter", "gauge", "histogram"]
                .into_iter()
                .find(|kind| cells.clone().next() == Some(kind))
                .map(|kind| (name, kind))
        })
        .collect();
    let known = types(&page);
    let shown: BTreeMap<&str, &str> = table.into_iter().filter(|(name, _)| !is_missing(name)).collect();
    assert_eq!(shown, known);
}

/// The metrics that a text names.
fn mentioned(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| word.starts_with("rental_") || word.starts_with("process_")).collect()
}

/// All strings of a JSON document with this name.
fn strings<'v>(value: &'v Value, name: &str, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get(name).and_then(Value::as_str));
            members.values().for_each(|member| strings(member, name, found));
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, name, found)),
        _ => {}
    }
}

#[test]
fn alerts_and_dashboard_use_only_metrics_that_exist() {
    let page = PAGES[0].text();
    let known = names(&page);
    let rules = read("deploy/prometheus/alerts.yaml");
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/dashboard.json")).expect("JSON");
    let mut queries = Vec::new();
    strings(&dashboard, "expr", &mut queries);
    let rules: Vec<&str> = rules.lines().filter(|line| line.trim_start().starts_with("expr:")).collect();
    assert!(queries.len() > 10 && rules.len() > 5, "{} {}", queries.len(), rules.len());
    for query in queries.into_iter().chain(rules) {
        let metrics = mentioned(query);
        assert!(!metrics.is_empty() || query.contains("up{"), "{query}");
        for name in metrics.into_iter().filter(|name| !is_missing(name)) {
            assert!(known.contains(name), "no server has {name}: {query}");
        }
    }
}

#[test]
fn promtool_accepts_the_alerts_and_each_has_a_test() {
    let (rules, tests) = (read("deploy/prometheus/alerts.yaml"), read("deploy/prometheus/alerts.test.yaml"));
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 5, "{alerts:?}");
    for alert in alerts {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert} has no test");
    }
    let folder = top().join("deploy/prometheus");
    for arguments in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]] {
        let Some(mut promtool) = checker("promtool", "prometheus") else { return };
        promtool.args(arguments).current_dir(&folder);
        assert!(says(promtool, "").contains("SUCCESS"));
    }
}
