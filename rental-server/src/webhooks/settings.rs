//! What the flags say about webhooks.

use crate::telemetry::Telemetry;
use rental_core::webhooks::attempt::Schedule;
use std::time::Duration;

/// What the flags say about webhooks.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Whether endpoints may have private addresses.
    pub(crate) allow_private: bool,
    /// Whether this server sends webhooks at all.
    pub(crate) send: bool,
    /// Whether endpoints must have `https` URLs.
    pub(crate) https_only: bool,
    pub(crate) schedule: Schedule,
    /// Time for one attempt, the body of the response included (spec, Retries 1).
    pub(crate) timeout: Duration,
    pub(crate) retention: Retention,
    /// Prefix of the headers and of the user agent.
    pub(crate) brand: String,
    /// Where spans of attempts go.
    pub(crate) telemetry: Telemetry,
}

/// How long objects are kept, in milliseconds; `None` for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    pub(crate) events: Option<i64>,
    pub(crate) deliveries: Option<i64>,
    pub(crate) leads: Option<i64>,
    pub(crate) audit_entries: Option<i64>,
}
