//! The descriptions of schema versions: the files `schema/vN.json`. One test fails when the code and the newest file
//! differ, so the layout of rows cannot change without a new version. Another one fails when a number, tag or name of an
//! older version has another meaning in a newer one.

use crate::{
    resources::{self, event::EVENT_NAMES},
    rows::{Class, Marker, Row, Tag, recheck::Marked},
    schema,
    store::SCHEMA_VERSION,
    tasks,
    value::{Holder, Id},
};
use serde_json::{Value, json};
use uuid::Uuid;

/// One row of every kind, with arbitrary values.
fn kinds() -> impl Iterator<Item = Row<'static>> {
    Tag::ALL.iter().map(|tag| example(*tag)).chain([Marker::MasterKey, Marker::Upgrade].map(Row::Marker))
}

fn example(tag: Tag) -> Row<'static> {
    let (id, name) = (Uuid::nil(), "");
    match tag {
        Tag::Marker => Row::Marker(Marker::Loading),
        Tag::Access => Row::Access { selector: [0; 16] },
        Tag::Calendar => Row::Calendar { organization: Id::nil(), vehicle: Id::nil() },
        Tag::Due => Row::Due { endpoint: Id::nil(), class: 0, millis: 0, delivery: Id::nil() },
        Tag::Erased => Row::Erased { organization: Id::nil(), resource: 0, id },
        Tag::Hold => Row::Hold {
            organization: Id::nil(),
            vehicle: Id::nil(),
            class: 0,
            start: 0,
            holder: Holder::Rental(Id::nil()),
        },
        Tag::IndexEntry => Row::IndexEntry { organization: Id::nil(), resource: 0, index: 0, values: &[], id },
        Tag::Bell => Row::Bell { server: Id::nil(), endpoint: Id::nil() },
        Tag::Recheck => Row::Recheck { organization: Id::nil(), marked: Marked::vehicle(Id::nil()) },
        Tag::Heartbeat => Row::Heartbeat { server: Id::nil() },
        Tag::IdempotencyRecord => Row::IdempotencyRecord { organization: Id::nil(), name },
        Tag::Counter => Row::Counter { organization: Id::nil(), name },
        Tag::Outbox => Row::Outbox { organization: Id::nil(), event: Id::nil() },
        Tag::VehicleFeed => Row::VehicleFeed { organization: Id::nil(), vehicle: Id::nil() },
        Tag::CalendarFeed => Row::CalendarFeed { organization: Id::nil(), feed: Id::nil() },
        Tag::Logo => Row::Logo { organization: Id::nil() },
        Tag::Subscribed => Row::Subscribed { organization: Id::nil() },
        Tag::Record => Row::Record { organization: Id::nil(), resource: 0, id },
        Tag::Secrets => Row::Secrets { endpoint: Id::nil() },
        Tag::Task => Row::Task { id: Id::nil() },
        Tag::Identity => Row::Identity { organization: Id::nil(), resource: 0, hash: [0; 16] },
        Tag::Usage => Row::Usage { server: Id::nil(), organization: Id::nil() },
        Tag::Owner => Row::Owner { endpoint: Id::nil() },
        Tag::IdempotencyExpiry => Row::IdempotencyExpiry { millis: 0, organization: Id::nil(), name },
    }
}

/// The meaning of a kind of row. A text never changes, so that a test detects a tag with another meaning.
fn meaning(row: &Row<'_>) -> &'static str {
    match row {
        Row::Marker(Marker::Loading) => "mark of a load that has not ended",
        Row::Marker(Marker::MasterKey) => "fingerprint of the master key",
        Row::Marker(Marker::Upgrade) => "marker of an upgrade that has not ended",
        Row::Access { .. } => "hash of an API key",
        Row::Calendar { .. } => "calendar of a vehicle",
        Row::Due { .. } => "due row of a delivery",
        Row::Erased { .. } => "mark of an object that was deleted or erased",
        Row::Hold { .. } => "hold of a vehicle",
        Row::IndexEntry { .. } => "index entry",
        Row::Bell { .. } => "bell of a server",
        Row::Recheck { .. } => "mark of a vehicle whose attachments must be derived again",
        Row::Heartbeat { .. } => "heartbeat of a server",
        Row::IdempotencyRecord { .. } => "stored response of an idempotency key",
        Row::Counter { .. } => "counter",
        Row::Outbox { .. } => "outbox row of an event",
        Row::VehicleFeed { .. } => "calendar feed of a vehicle",
        Row::CalendarFeed { .. } => "calendar of others",
        Row::Logo { .. } => "logo of an organization",
        Row::Subscribed { .. } => "mark of an organization with webhook endpoints",
        Row::Record { .. } => "record",
        Row::Secrets { .. } => "sealed secrets of a webhook endpoint",
        Row::Task { .. } => "long task",
        Row::Identity { .. } => "claim of an identity",
        Row::Usage { .. } => "what a server has counted of an organization",
        Row::Owner { .. } => "owner of a webhook endpoint",
        Row::IdempotencyExpiry { .. } => "expiry of a stored response",
    }
}

/// The start of the row's key, its meaning, and its class.
fn described(row: &Row<'_>) -> Value {
    let key = row.encode();
    // Of the other kinds only the first byte is the same in all rows.
    let begin = if matches!(row, Row::Marker(_)) { key.as_bytes() } else { &key.as_bytes()[..1] };
    let class = match row.class() {
        Class::Record => "record",
        Class::Derived => "derived",
        Class::State => "state",
        Class::Server => "server",
    };
    json!({"begin": String::from_utf8_lossy(begin), "is": meaning(row), "class": class})
}

/// The description of the schema version that this program writes, as in `schema/vN.json`.
#[must_use]
pub fn describe() -> Value {
    let rows = kinds().map(|row| described(&row));
    json!({
        "version": SCHEMA_VERSION,
        "resources": resources::specs().map(schema::describe).collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
        "event_types": EVENT_NAMES,
        "task_kinds": tasks::KINDS,
    })
}
