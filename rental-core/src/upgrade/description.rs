//! What a schema version is, as data: the files `schema/vN.json`. A test fails when the code and the newest file differ, so
//! nothing that stored rows depend on changes without a new version; another one fails when a number, tag or name of an
//! older version has another meaning in a newer one.

use crate::{event::EVENT_NAMES, resources, spec, store::SCHEMA_VERSION};
use serde_json::{Value, json};

/// The file of the present version.
pub(super) const PRESENT: &str = include_str!("../../schema/v3.json");

/// Every kind of row: how its key begins, what it is, and its class. A *record* is the source of what is *derived*; a *state*
/// row cannot be computed from records; rows of *servers* mean nothing in a copy of the store.
const ROWS: &[(&str, &str, &str)] = &[
    ("r", "record", "record"),
    ("i", "index entry", "derived"),
    ("h", "hold of a vehicle", "derived"),
    ("a", "hash of an API key", "state"),
    ("b", "claim of what an invoice bills", "state"),
    ("c", "calendar of a vehicle", "state"),
    ("d", "due row of a delivery", "state"),
    ("m", "stored response of an idempotency key", "state"),
    ("n", "counter", "state"),
    ("o", "outbox row of an event", "state"),
    ("q", "mark of an organization with webhook endpoints", "state"),
    ("s", "sealed secrets of a webhook endpoint", "state"),
    ("u", "claim of an identity", "state"),
    ("x", "expiry of a stored response", "state"),
    ("!", "mark of a load that has not ended", "server"),
    ("!upgrade", "marker of an upgrade that has not ended", "server"),
    ("j", "bell of a server", "server"),
    ("l", "heartbeat of a server", "server"),
    ("w", "owner of a webhook endpoint", "server"),
];

/// The present version.
#[must_use]
pub fn describe() -> Value {
    let rows = ROWS.iter().map(|(begin, is, class)| json!({"begin": begin, "is": is, "class": class}));
    json!({
        "version": SCHEMA_VERSION,
        "resources": resources::specs().map(spec::describe).collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
        "event_types": EVENT_NAMES,
    })
}
