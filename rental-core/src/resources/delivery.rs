//! Deliveries: one event for one endpoint, with the log of its attempts.

use crate::{
    resources::{Object, Resource},
    schema::{
        CREATED_AT, IndexPrefix, IndexSpec, IndexValue, Kind, ResourceSpec, UPDATED_AT, field, filter, id, index,
        object, sparse_index,
    },
    value::{DeliveryId, EndpointId, EventId, Timestamp, kinds, words},
};
use serde::{Deserialize, Serialize};

words! {
    /// The state of a delivery.
    pub enum DeliveryStatus {
        /// No attempt has succeeded so far, and another one follows.
        Pending = "pending",
        /// An attempt succeeded.
        Delivered = "delivered",
        /// All attempts failed. An operator can resend the delivery.
        Failed = "failed",
    }
}

/// The index of deliveries by event.
const OF_EVENT: IndexSpec = index(2, &["event_id"]);
const OF_ENDPOINT_AND_EVENT: IndexSpec = index(3, &["endpoint_id", "event_id"]);
/// The words of the indexes by status. Most deliveries never fail, so they cost no entry.
const FAILED: (&str, &[&str]) = ("status", &["failed"]);

/// The description of a delivery.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "delivery",
    plural: "deliveries",
    tag: 12,
    doc: "One event on its way to one endpoint.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-00000000000c\""),
        object("\"delivery\""),
        field(
            "endpoint_id",
            Kind::Reference("webhook_endpoint"),
            "Where it goes.",
            "\"0190d0f2-7c3a-7cc0-8000-00000000000b\"",
        ),
        field("event_id", Kind::Reference("event"), "What is delivered.", "\"0190d0f2-7c3a-7cc0-8000-0000000000e1\""),
        field("event_type", Kind::Text(255), "Its type.", "\"rental.created\""),
        field("status", Kind::Word(DeliveryStatus::WORDS), "Whether it has arrived.", "\"delivered\""),
        field("attempts", Kind::Integer(0, u32::MAX as i64), "Attempts so far.", "1"),
        field("next_attempt_at", Kind::Time, "When it is tried next, while it is pending.", "null").or_null(),
        field("last_response_status", Kind::Integer(100, 999), "Status of the last answer, if there was one.", "200")
            .or_null(),
        field("last_error", Kind::Text(255), "Why the last attempt had no answer.", "null").or_null(),
        field(
            "log",
            Kind::AttemptLog,
            "The last ten attempts.",
            "[{\"at\":\"2026-05-05T09:30:00.000Z\",\"duration_ms\":12,\"status\":200,\"error\":null,\"response\":\"ok\"}]",
        ),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[filter("endpoint", "endpoint_id"), filter("event", "event_id"), filter("status", "status")],
    ranges: &[],
    indexes: &[
        index(1, &["endpoint_id"]),
        OF_EVENT,
        OF_ENDPOINT_AND_EVENT,
        sparse_index(4, &["status"], FAILED),
        sparse_index(5, &["endpoint_id", "status"], FAILED),
    ],
    look_ups: &[],
    usual_changes: &[],
};

/// Most bytes of a response's body that the log contains.
pub const EXCERPT: usize = 1024;

/// One attempt in the log of a delivery.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Attempt {
    /// The time at which the attempt began.
    pub at: Timestamp,
    /// The duration of the attempt, in milliseconds.
    pub duration_ms: u64,
    /// HTTP status of the response; `None` when there was no response.
    pub status: Option<u16>,
    /// Why there was no response, such as `timed_out`.
    pub error: Option<String>,
    /// The first 1,024 bytes of the response's body.
    pub response: Option<String>,
}

/// The delivery of one event to one endpoint.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[expect(missing_docs, reason = "each field is documented in SPEC, once")]
pub struct Delivery {
    pub id: DeliveryId,
    pub object: String,
    pub endpoint_id: EndpointId,
    pub event_id: EventId,
    pub event_type: String,
    pub status: DeliveryStatus,
    pub attempts: u32,
    pub next_attempt_at: Option<Timestamp>,
    pub last_response_status: Option<u16>,
    pub last_error: Option<String>,
    pub log: Vec<Attempt>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The prefix of the index entries of an event's deliveries.
#[must_use]
pub fn of_event(event: EventId) -> IndexPrefix {
    IndexPrefix::new(OF_EVENT.number).with(event.as_bytes())
}

/// The prefix of the index entries of an event's deliveries to one endpoint.
#[must_use]
pub fn of_endpoint_and_event(endpoint: EndpointId, event: EventId) -> IndexPrefix {
    IndexPrefix::new(OF_ENDPOINT_AND_EVENT.number).with(endpoint.as_bytes()).with(event.as_bytes())
}

impl Delivery {
    /// A new delivery, whose first attempt is due now.
    #[must_use]
    pub fn new(
        id: DeliveryId,
        endpoint_id: EndpointId,
        (event_id, event_type): (EventId, &str),
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            object: SPEC.object.into(),
            endpoint_id,
            event_id,
            event_type: event_type.into(),
            status: DeliveryStatus::Pending,
            attempts: 0,
            next_attempt_at: Some(now),
            last_response_status: None,
            last_error: None,
            log: Vec::new(),
            created_at: now,
            updated_at: now,
        }
    }

    /// Gives the delivery up without another attempt. `reason` becomes its `last_error`.
    pub fn give_up(&mut self, reason: &str, now: Timestamp) {
        self.status = DeliveryStatus::Failed;
        (self.next_attempt_at, self.last_error) = (None, Some(reason.into()));
        self.touch(now);
    }
}

impl Resource for Delivery {
    const SPEC: &'static ResourceSpec = &SPEC;
}

impl Object for Delivery {
    type Kind = kinds::Delivery;

    fn id(&self) -> DeliveryId {
        self.id
    }

    fn index_value(&self, field: &str) -> Option<IndexValue<'_>> {
        match field {
            "endpoint_id" => Some(IndexValue::Id(self.endpoint_id.uuid())),
            "event_id" => Some(IndexValue::Id(self.event_id.uuid())),
            "status" => Some(IndexValue::Text(self.status.as_str())),
            _ => None,
        }
    }

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = Self::update_time(self.updated_at, now);
    }
}
