//! `GET /admin/v1/status`: the state of a running server, for operators and `rental-cli doctor`. It shows no path and
//! no secret.

use crate::{
    backups::Backups,
    edge::{self, watch::Against},
    endpoint::{Endpoint, get},
    http::reply::Reply,
    reference::{
        parts,
        shapes::{self, described, object, text},
    },
    state::App,
    webhooks::Retention,
};
use rental_core::{API_VERSION, request::page, store::StoreError};
use serde_json::{Map, Value, json};
use std::sync::{Arc, atomic::Ordering};

const NO_ROOM: &str = "the disk of the store has too little room";

/// The endpoint of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let status = get("/admin/v1/status").documented(document()).defines("Status", schema()).reader(|request| {
        Box::pin(async move {
            page::no_parameters(request.call.query())?;
            Ok(Reply::json(body(request.app).await.to_string().into()))
        })
    });
    vec![status]
}

/// The response: the members that the schema describes.
pub(super) async fn body(app: &App) -> Value {
    let hooks = Arc::clone(&app.hooks);
    // On another thread: a disk that hangs must not block the threads that serve requests.
    let room = tokio::task::spawn_blocking(move || hooks.space.room()).await.unwrap_or_default();
    let jump = edge::jump();
    let not_ready = not_ready(app).await;
    json!({
        "object": "status",
        "version": env!("CARGO_PKG_VERSION"),
        "api_version": API_VERSION,
        "time": edge::now().to_string(),
        "clock_jump": jump.map(|jump| json!({"seconds": jump.seconds(), "against": jump.against.word()})),
        "uptime_seconds": app.started.elapsed().as_secs(),
        "ready": not_ready.is_none(),
        "not_ready_reason": not_ready,
        "engine": app.store.name(),
        "data_bytes": room.data,
        "disk_free_bytes": room.free,
        "disk_total_bytes": room.total,
        "webhook_brand": app.hooks.brand(),
        "webhooks_sending": app.hooks.settings.send,
        "backups": backups(&app.backups),
        "retention": retention(app.hooks.settings.retention),
    })
}

/// The backups that the server makes by itself.
fn backups(backups: &Backups) -> Value {
    match backups.is_demo {
        true => Value::Null,
        false => json!({
            "every_seconds": backups.every().map(|every| every.as_secs_f64().ceil() as u64),
            "last_success_at": backups.newest().map(|time| time.to_string()),
        }),
    }
}

/// Why writes cannot be served; `None` if they can be.
async fn not_ready(app: &App) -> Option<String> {
    if app.draining.load(Ordering::Relaxed) {
        return Some("the server is shutting down".into());
    }
    match app.store().ready().await {
        Err(StoreError::NoRoom) => return Some(NO_ROOM.into()),
        Err(StoreError::Unavailable(detail)) => return Some(detail),
        Err(error) => return Some(error.to_string()),
        Ok(()) if app.hooks.space.refuses_clients() => return Some(NO_ROOM.into()),
        Ok(()) => {}
    }
    if edge::jump().is_some() {
        return Some("the clock of the machine is wrong: see clock_jump".into());
    }
    app.supervisor.failing().map(|task| format!("the background task `{task}` fails again and again"))
}

/// The seconds for which objects are kept.
fn retention(kept: Retention) -> Value {
    let seconds = |millis: Option<i64>| millis.map(|millis| millis / 1000);
    json!({
        "events_seconds": seconds(kept.events),
        "deliveries_seconds": seconds(kept.deliveries),
        "leads_seconds": seconds(kept.leads),
        "audit_entries_seconds": seconds(kept.audit_entries),
    })
}

fn schema() -> Value {
    let flag = || json!({"type": "boolean"});
    let mut reason =
        text("Why writes cannot be served, such as the database that does not answer; null if they can be.");
    reason["type"] = json!(["string", "null"]);
    let mut bytes = shapes::at_least(0);
    bytes["type"] = json!(["integer", "null"]);
    let mut properties = json!({
        "object": text("Always `status`."),
        "version": text("Version of the program."),
        "api_version": text("Date of the API's description."),
        "time": text("The server's clock: ids and signatures are made by it."),
        "clock_jump": jump_schema(),
        "uptime_seconds": described(shapes::at_least(0), "Seconds since the start."),
        "ready": described(flag(), "Whether writes can be served."),
        "not_ready_reason": reason,
        "engine": text("What keeps the data."),
        "data_bytes": described(bytes.clone(), "Size of the data file, if it is one."),
        "disk_free_bytes": described(bytes.clone(), "Room on its disk that the server can still use."),
        "disk_total_bytes": described(bytes, "Size of that disk."),
        "webhook_brand": text("Prefix of the headers of webhooks."),
        "webhooks_sending": described(flag(), "Whether the server sends webhooks; false with `--no-webhooks`."),
    });
    let mut seconds = shapes::at_least(3600);
    seconds["type"] = json!(["integer", "null"]);
    properties["backups"] = backups_schema();
    let names = ["events_seconds", "deliveries_seconds", "leads_seconds", "audit_entries_seconds"];
    let kept: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), seconds.clone())).collect();
    properties["retention"] = object("Seconds for which objects are kept; null for ever.", Value::Object(kept));
    object("", properties)
}

/// The schema of `clock_jump` in the status.
fn jump_schema() -> Value {
    let seconds = json!({"type": "integer", "format": "int64", "description": "By how much it is ahead; negative when it is behind."});
    let against = described(shapes::word("ClockReference", &Against::WORDS), "What it was compared with.");
    json!({
        "type": ["object", "null"], "required": ["seconds", "against"],
        "description": "Why the clock cannot be trusted; null when it can. Until it is right or confirmed, nothing is written and nothing expires.",
        "properties": {"seconds": seconds, "against": against},
    })
}

/// The schema of `backups` in the status.
fn backups_schema() -> Value {
    let mut every = described(shapes::at_least(1), "Seconds between two of them; null without `--backup-to`.");
    every["type"] = json!(["integer", "null"]);
    let mut last = text("When the newest good backup in their folder was begun; null if there is none.");
    last["type"] = json!(["string", "null"]);
    json!({
        "type": ["object", "null"], "required": ["every_seconds", "last_success_at"],
        "description": "Backups that the server makes by itself; null for a server with sample data.",
        "properties": {"every_seconds": every, "last_success_at": last},
    })
}

fn document() -> Value {
    let example = json!({
        "object": "status", "version": "0.1.0", "api_version": API_VERSION, "time": "2026-05-05T09:30:00.000Z",
        "clock_jump": null, "uptime_seconds": 86_400, "ready": true, "not_ready_reason": null, "engine": "redb", "data_bytes": 52_428_800_u64,
        "disk_free_bytes": 64_424_509_440_u64, "disk_total_bytes": 107_374_182_400_u64, "webhook_brand": "Service",
        "webhooks_sending": true, "backups": {"every_seconds": 3600, "last_success_at": "2026-05-05T09:00:00.000Z"},
        "retention": {"events_seconds": 2_592_000, "deliveries_seconds": 2_592_000, "leads_seconds": null, "audit_entries_seconds": null},
    });
    let ok = parts::success("Status", example);
    json!({
        "operationId": "getStatus",
        "tags": ["Service"],
        "summary": "Status of the server",
        "description": "Version, clock, and room on the disk. Needs the token of an operator, of any role, or the admin token.",
        "security": [{"adminToken": []}],
        "responses": parts::responses_of(&ok, &["400", "401", "500", "503"]),
    })
}
