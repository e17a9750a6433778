//! Webhook endpoints: the receivers of an organization's events. The operator manages them.

use crate::{
    error::Error,
    resources::{Create, Object, Resource, RuleContext, Update, event::EventType, fields},
    schema::{
        CREATED_AT, Fields, IndexPrefix, IndexSpec, Kind, ResourceSpec, UPDATED_AT, field, filter, id, index, object,
    },
    value::{EndpointId, OrganizationId, Text, Timestamp, words},
};
use serde::{Deserialize, Serialize};

words! {
    /// The state of an endpoint.
    pub enum EndpointStatus {
        /// The server sends deliveries to the endpoint.
        Enabled = "enabled",
        /// The server keeps the deliveries until the endpoint is enabled.
        Disabled = "disabled",
    }
}

/// The `disabled_reason` of an endpoint that failures disabled.
pub const DISABLED_BY_FAILURES: &str = "20 failures in a row";

/// The index of endpoints by organization.
const OF_ORGANIZATION: IndexSpec = index(1, &["organization_id"]);

/// The description of a webhook endpoint.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "webhook_endpoint",
    plural: "webhook_endpoints",
    tag: 11,
    doc: "Where an organization's events are delivered. Its secret is shown once, when it is created or rotated.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-00000000000b\""),
        object("\"webhook_endpoint\""),
        field(
            "organization_id",
            Kind::Reference("organization"),
            "The organization whose events it gets.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000000\"",
        )
        .required()
        .fixed(),
        field("url", Kind::Url, "Where events are sent, by POST.", "\"https://example.com/hooks\"").required(),
        field("events", Kind::EventTypes, "The event types that it gets; null for all.", "[\"rental.created\"]")
            .optional(),
        field(
            "status",
            Kind::Word(EndpointStatus::WORDS),
            "A disabled endpoint gets nothing; its deliveries wait.",
            "\"enabled\"",
        ),
        field("disabled_reason", Kind::Text(255), "Why it is disabled.", "null").or_null(),
        field("disabled_at", Kind::Time, "When it was disabled.", "null").or_null(),
        field(
            "failures_in_a_row",
            Kind::Integer(0, u32::MAX as i64),
            "Failed attempts since the last success; 20 disable it.",
            "0",
        ),
        field("api_version", Kind::Text(255), "The version of the API when it was created.", "\"2026-05-05\""),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[filter("organization", "organization_id")],
    ranges: &[],
    indexes: &[OF_ORGANIZATION],
    look_ups: &[],
    usual_changes: &["events"],
};

fields! {
    /// A webhook endpoint of an organization.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct WebhookEndpoint {
        pub id: EndpointId,
        pub object: String,
        pub organization_id: OrganizationId,
        pub url: String,
        pub events: Option<Vec<String>>,
        pub status: Option<EndpointStatus>,
        pub disabled_reason: Option<Text>,
        pub disabled_at: Option<Timestamp>,
        pub failures_in_a_row: Option<u32>,
        pub api_version: Text,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// The prefix of the index entries of an organization's endpoints, under [`SYSTEM`](super::organization::SYSTEM).
#[must_use]
pub fn of_organization(organization: OrganizationId) -> IndexPrefix {
    IndexPrefix::new(OF_ORGANIZATION.number).with(organization.as_bytes())
}

impl WebhookEndpoint {
    /// Whether the server sends deliveries to the endpoint.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.status == Some(EndpointStatus::Enabled)
    }

    /// Whether the endpoint subscribes to events of this type.
    #[must_use]
    pub fn wants(&self, kind: &str) -> bool {
        self.events.as_ref().is_none_or(|events| events.iter().any(|wanted| wanted == kind))
    }

    /// The number of failed attempts since the last success.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures_in_a_row.unwrap_or(0)
    }

    /// Enables the endpoint and resets its failures.
    pub fn enable(&mut self, now: Timestamp) {
        if !self.is_enabled() || self.failures() > 0 {
            self.status = Some(EndpointStatus::Enabled);
            (self.disabled_reason, self.disabled_at, self.failures_in_a_row) = (None, None, Some(0));
            self.touch(now);
        }
    }

    /// Disables the endpoint. The reason of an endpoint that is already disabled stays.
    pub fn disable(&mut self, reason: &str, now: Timestamp) {
        if self.is_enabled() {
            self.status = Some(EndpointStatus::Disabled);
            (self.disabled_reason, self.disabled_at) = (Some(Text::fit(reason, 255)), Some(now));
            self.touch(now);
        }
    }
}

impl Resource for WebhookEndpoint {
    const SPEC: &'static ResourceSpec = &SPEC;
}

impl Create for WebhookEndpoint {
    fn create(&mut self, _: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        self.status = Some(EndpointStatus::Enabled);
        self.failures_in_a_row = Some(0);
        Ok(Vec::new())
    }
}

impl Update for WebhookEndpoint {
    fn events(&self, _: &Self, _: bool, _: &Fields) -> Vec<EventType> {
        Vec::new()
    }
}
