//! `GET /admin/v1/status`: what an operator, or `rental-cli doctor`, wants to know of a running server.
//!
//! It tells no path and no secret: the token may be used from another machine than the server's.

use crate::{
    disk::Room,
    edge,
    endpoint::{Endpoint, get},
    http::reply::Reply,
    reference::{numbers, parts},
    state::App,
};
use rental_core::{API_VERSION, error::Error, page};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::atomic::Ordering;

/// The endpoint of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let status = get("/admin/v1/status").documented(document()).defines("Status", schema()).operator(|request| {
        Box::pin(async move {
            page::no_parameters(request.call.query())?;
            Ok(Reply::json(body(request.app).await?.into()))
        })
    });
    vec![status]
}

/// The members of the answer, and their JSON types: the schema of the document is made of them.
const MEMBERS: [(&str, &[&str], &str); 11] = [
    ("object", &["string"], "Always `status`."),
    ("version", &["string"], "Version of the program."),
    ("api_version", &["string"], "Date of the API's description."),
    ("time", &["string"], "The server's clock: ids and signatures are made by it."),
    ("uptime_seconds", &["integer"], "Seconds since the start."),
    ("ready", &["boolean"], "Whether the server is ready, as `/readyz` says."),
    ("engine", &["string"], "What keeps the data."),
    ("data_bytes", &["integer", "null"], "Size of the data file, if it is one."),
    ("disk_free_bytes", &["integer", "null"], "Room on its disk that the server can still use."),
    ("disk_total_bytes", &["integer", "null"], "Size of that disk."),
    ("webhook_brand", &["string"], "Prefix of the headers of webhooks."),
];

#[derive(Serialize)]
struct Status<'a> {
    object: &'static str,
    version: &'static str,
    api_version: &'static str,
    time: String,
    uptime_seconds: u64,
    ready: bool,
    engine: &'static str,
    data_bytes: Option<u64>,
    disk_free_bytes: Option<u64>,
    disk_total_bytes: Option<u64>,
    webhook_brand: &'a str,
}

/// The answer, as JSON.
async fn body(app: &App) -> Result<Vec<u8>, Error> {
    let path = app.store_path.clone();
    // A disk that hangs must not hold a thread that serves others.
    let room = tokio::task::spawn_blocking(move || path.as_deref().map(Room::of).unwrap_or_default())
        .await
        .unwrap_or_default();
    let ready = !app.draining.load(Ordering::Relaxed)
        && app.store().ready().await.is_ok()
        && app.supervisor.failing().is_none();
    let status = Status {
        object: "status",
        version: env!("CARGO_PKG_VERSION"),
        api_version: API_VERSION,
        time: edge::now().to_string(),
        uptime_seconds: app.started.elapsed().as_secs(),
        ready,
        engine: app.store.name(),
        data_bytes: room.data,
        disk_free_bytes: room.free,
        disk_total_bytes: room.total,
        webhook_brand: app.hooks.brand(),
    };
    serde_json::to_vec(&status).map_err(|error| Error::Internal(error.to_string()))
}

fn schema() -> Value {
    let properties: Map<String, Value> = MEMBERS
        .iter()
        .map(|(name, kinds, doc)| {
            let mut schema = if kinds.contains(&"integer") { numbers::at_least(0) } else { json!({}) };
            schema["type"] = if let [kind] = kinds { json!(kind) } else { json!(kinds) };
            schema["description"] = json!(doc);
            ((*name).to_owned(), schema)
        })
        .collect();
    let names: Vec<&str> = MEMBERS.iter().map(|member| member.0).collect();
    json!({"type": "object", "required": names, "properties": properties})
}

fn document() -> Value {
    let example = json!({
        "object": "status", "version": "0.1.0", "api_version": API_VERSION, "time": "2026-05-05T09:30:00.000Z",
        "uptime_seconds": 86_400, "ready": true, "engine": "redb", "data_bytes": 52_428_800_u64,
        "disk_free_bytes": 64_424_509_440_u64, "disk_total_bytes": 107_374_182_400_u64, "webhook_brand": "Service",
    });
    let ok = parts::success("Status", false, false, example);
    json!({
        "operationId": "getStatus",
        "tags": ["Service"],
        "summary": "Status of the server",
        "description": "Version, clock, and room on the disk. Needs the admin token.",
        "security": [{"adminToken": []}],
        "responses": parts::responses_of(&ok, &["400", "401", "500", "503"]),
    })
}
