//! Traces for an OpenTelemetry collector. The collector of these tests decodes what it gets.

use crate::{
    support::{Connection, Server, receiver::Receiver},
    webhooks::{hook, metric, wait_for},
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::Message;
use serde_json::json;
use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

/// A collector, and a server that sends to it each 100 ms.
fn server_with(collector: &Receiver, more: &[&str]) -> Server {
    let base = format!("http://{}/otel/", collector.address);
    let flags = ["--otlp-endpoint", &base, "--otlp-interval", "100ms", "--webhook-allow-private"];
    Server::start(&[&flags[..], more].concat())
}

/// All spans that a collector has.
fn spans(collector: &Receiver) -> Vec<Span> {
    let requests = collector.seen().into_iter().filter(|seen| seen.line.starts_with("POST /otel/v1/traces "));
    let decoded = requests.map(|seen| {
        assert_eq!(seen.header("content-type"), "application/x-protobuf");
        ExportTraceServiceRequest::decode(&seen.body[..]).expect("a message of OTLP")
    });
    let resources = decoded.flat_map(|request| request.resource_spans);
    let scopes = resources.flat_map(|resource| {
        let service = attribute(&resource.resource.expect("a resource").attributes, "service.name");
        assert_eq!(service.as_deref(), Some("rental-server"));
        resource.scope_spans
    });
    scopes.flat_map(|scope| scope.spans).collect()
}

fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|one| one.key == name)?.value.clone()?;
    Some(match found.value? {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    })
}

fn wait_for_span(collector: &Receiver, what: &str, wanted: impl Fn(&Span) -> bool) -> Span {
    wait_for(what, || spans(collector).into_iter().find(&wanted), || format!("{:?}", spans(collector)))
}

#[test]
fn a_request_is_a_span_of_its_callers_trace_with_route_status_and_organization() {
    let collector = Receiver::start();
    let server = server_with(&collector, &[]);
    let organization = server.organization();
    let vehicle = organization.vehicle(json!({"name": "Secret Name"}));
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let path = format!("/v1/vehicles/{vehicle}");
    let call = |flags: &str, path: &str| {
        let header = format!("00-{trace}-{parent}-{flags}");
        organization.raw("GET", path, &[("traceparent", &header)], b"")
    };
    assert_eq!(call("00", &format!("{path}?not=recorded")).status, 400);
    assert_eq!(call("01", &path).status, 200);
    let span =
        wait_for_span(&collector, "the span of the request", |span| span.trace_id == hex::decode(trace).expect("hex"));
    assert_eq!((span.name.as_str(), span.kind()), ("GET /v1/vehicles/{id}", SpanKind::Server));
    assert_eq!((span.parent_span_id, span.span_id.len()), (hex::decode(parent).expect("hex"), 8));
    let value = |name: &str| attribute(&span.attributes, name);
    assert_eq!(value("http.route").as_deref(), Some("/v1/vehicles/{id}"));
    assert_eq!(
        value("http.response.status_code").as_deref(),
        Some("200"),
        "the caller of the other one records nothing"
    );
    assert_eq!(value("rental.organization.id"), Some(organization.id.clone()));
    assert_eq!(span.status.expect("a status").code(), StatusCode::Unset);
    assert!(span.end_time_unix_nano > span.start_time_unix_nano);
    let own = wait_for_span(&collector, "a request without a trace", |span| span.name == "POST /v1/vehicles");
    assert!(own.parent_span_id.is_empty() && own.trace_id.iter().any(|byte| *byte != 0), "{own:?}");
    Connection::open(&server.address).send("GET", "/v1/secret-path", &[], b"");
    wait_for_span(&collector, "an unknown path", |span| span.name == "_OTHER");
    let all = format!("{:?}", spans(&collector));
    for secret in ["Secret Name", "secret-path", &vehicle, &organization.write, &organization.read, &server.admin_token]
    {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
}

#[test]
fn an_attempt_is_a_span_of_the_trace_that_its_receiver_sees() {
    let (collector, receiver) = (Receiver::start(), Receiver::start());
    let server = server_with(&collector, &[]);
    let organization = server.organization();
    hook(&organization, &receiver);
    organization.customer(json!({}));
    let seen = receiver.wait_for(1).remove(0);
    let span = wait_for_span(&collector, "the span of the attempt", |span| span.kind() == SpanKind::Client);
    let sent = format!("00-{}-{}-01", hex::encode(&span.trace_id), hex::encode(&span.span_id));
    assert_eq!(seen.header("traceparent"), sent);
    assert_eq!(attribute(&span.attributes, "rental.event.type").as_deref(), Some("customer.created"));
    assert_eq!(attribute(&span.attributes, "http.response.status_code").as_deref(), Some("200"));
    assert!(!format!("{span:?}").contains(&receiver.address.to_string()), "{span:?}");
}

#[test]
fn a_setting_for_pushed_metrics_is_ignored_and_the_start_says_that_metrics_are_scraped() {
    let variable = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:4318/v1/metrics";
    let server = Server::start_by(&["env", variable], &[]);
    let log = server.log();
    assert!(log.contains("metrics are not pushed. Let the collector scrape GET /metrics"), "{log}");
}

#[test]
fn spans_of_the_last_moment_are_sent_before_the_server_ends() {
    let collector = Receiver::start();
    let base = format!("http://{}/otel", collector.address);
    let server = Server::start(&["--otlp-endpoint", &base, "--otlp-interval", "10m"]);
    assert_eq!(Connection::open(&server.address).send("GET", "/healthz", &[], b"").status, 200);
    assert_eq!(spans(&collector).len(), 0);
    crate::events_in_store::stop(server);
    assert!(spans(&collector).iter().any(|span| span.name == "GET /healthz"));
}

/// A collector that accepts connections and never answers: the queue fills, spans are dropped, and nothing waits.
#[test]
fn a_collector_that_hangs_slows_no_request() {
    const REQUESTS: usize = 6000;
    let collector = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", collector.local_addr().expect("an address"));
    let server = Server::start(&["--otlp-endpoint", &base, "--otlp-interval", "100ms"]);
    let mut connection = Connection::open(&server.address);
    let begun = Instant::now();
    for _ in 0..REQUESTS {
        assert_eq!(connection.send("GET", "/healthz", &[], b"").status, 200);
    }
    let took = begun.elapsed();
    assert!(metric(&server, "rental_otlp_spans_dropped_total") >= (REQUESTS - 4096 - 512) as f64);
    assert!(took < Duration::from_secs(30), "{took:?}");
    // It does not wait for the collector for ever.
    crate::events_in_store::stop(server);
}

#[test]
fn a_collector_that_is_not_there_is_logged_once_a_minute() {
    let nobody = format!("http://{}", Receiver::nobody());
    let server = Server::start(&["--otlp-endpoint", &nobody, "--otlp-interval", "10ms"]);
    let dropped = || metric(&server, "rental_otlp_spans_dropped_total");
    wait_for("dropped spans", || (dropped() > 20.0).then_some(()), || dropped().to_string());
    let lines = server.log().lines().filter(|line| line.contains("takes no data")).count();
    assert_eq!(lines, 1, "{}", server.log());
}

/// Whether every message has this header, and no log shows its value.
#[track_caller]
fn sends_token(server: &Server, collector: &Receiver) {
    assert_eq!(Connection::open(&server.address).send("GET", "/healthz", &[], b"").status, 200);
    wait_for_span(collector, "a span", |span| span.name == "GET /healthz");
    for seen in collector.seen() {
        assert_eq!((seen.header("authorization"), seen.header("x-scope")), ("Bearer of=the collector", "1"));
    }
    assert!(!server.log().contains("of=the collector"), "{}", server.log());
}

#[test]
fn a_collector_gets_the_headers_of_a_file_or_of_the_variable() {
    let collector = Receiver::start();
    let base = format!("http://{}/otel", collector.address);
    let flags = ["--otlp-endpoint", &base, "--otlp-interval", "100ms"];
    let of_collector = "authorization=Bearer%20of=the%20collector,x-scope=1";
    let variable = format!("OTEL_EXPORTER_OTLP_HEADERS={of_collector}");
    sends_token(&Server::start_by(&["env", &variable], &flags), &collector);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("headers");
    std::fs::write(&file, of_collector.replace(',', "\n")).expect("written");
    let collector = Receiver::start();
    let base = format!("http://{}/otel", collector.address);
    let path = file.to_str().expect("UTF-8");
    let flags = ["--otlp-endpoint", &base, "--otlp-interval", "100ms", "--otlp-headers-file", path];
    sends_token(&Server::start_by(&["env", "OTEL_EXPORTER_OTLP_HEADERS=authorization=other"], &flags), &collector);
}
