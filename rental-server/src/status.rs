//! `GET /admin/v1/status`: what an operator, or `rental-cli doctor`, wants to know of a running server.
//!
//! It tells no path and no secret: the token may be used from another machine than the server's.

use crate::{API_VERSION, app::App, edge};
use rental_core::error::Error;
use rustix::fs::statvfs;
use serde::Serialize;
use std::{fs, path::Path, sync::atomic::Ordering};

/// The members of the answer, and their JSON types: the schema of the document is made of them.
pub(crate) const MEMBERS: [(&str, &[&str], &str); 11] = [
    ("object", &["string"], "Always `status`."),
    ("version", &["string"], "Version of the program."),
    ("api_version", &["string"], "Date of the API's description."),
    ("time", &["string"], "The server's clock: ids and signatures are made by it."),
    ("uptime_seconds", &["integer"], "Seconds since the start."),
    ("ready", &["boolean"], "Whether writes can be served."),
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

/// Sizes of the data file and its disk, as far as they can be told.
#[derive(Default)]
pub(crate) struct Room {
    pub(crate) data: Option<u64>,
    pub(crate) free: Option<u64>,
    total: Option<u64>,
}

impl Room {
    pub(crate) fn of(path: &Path) -> Self {
        let disk = statvfs(path).ok();
        let bytes = |blocks: u64, size: u64| blocks.saturating_mul(size);
        Self {
            data: fs::metadata(path).ok().map(|file| file.len()),
            free: disk.as_ref().map(|disk| bytes(disk.f_bavail, disk.f_frsize)),
            total: disk.as_ref().map(|disk| bytes(disk.f_blocks, disk.f_frsize)),
        }
    }
}

/// The answer, as JSON.
pub(crate) async fn body(app: &App) -> Result<Vec<u8>, Error> {
    let path = app.store_path.clone();
    // A disk that hangs must not hold a thread that serves others.
    let room = tokio::task::spawn_blocking(move || path.as_deref().map(Room::of).unwrap_or_default())
        .await
        .unwrap_or_default();
    let ready = !app.draining.load(Ordering::Relaxed) && app.store().ready().await.is_ok();
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
