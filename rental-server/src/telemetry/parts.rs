//! What messages of spans and of metrics have in common.

use crate::edge;
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
};

/// Who sends the messages: this process.
pub(super) struct Source {
    pub(super) resource: Resource,
    /// When it started, in nanoseconds since 1970.
    pub(super) started: u64,
}

impl Source {
    pub(super) fn new() -> Self {
        let attributes = vec![
            text("service.name", "rental-server"),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", &edge::new_trace().to_string()),
        ];
        let resource = Resource { attributes, ..Resource::default() };
        Self { resource, started: nanos(edge::now().millis()) }
    }
}

/// The part of the program that records: all of it.
pub(super) fn scope() -> Option<InstrumentationScope> {
    Some(InstrumentationScope { name: "rental-server".into(), ..InstrumentationScope::default() })
}

/// Milliseconds since 1970 in nanoseconds.
pub(super) fn nanos(millis: u64) -> u64 {
    millis.saturating_mul(1_000_000)
}

/// An attribute whose value is a text.
pub(super) fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
