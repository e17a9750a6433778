//! `GET /admin/v1/backup`: the store as an archive, streamed while the server serves other requests. One runs at a
//! time.

use crate::{
    audit::Note,
    backups::MADE_BY,
    endpoint::{Endpoint, Request, get},
    engine::Moment,
    guard::Reader,
    http::{
        header,
        reply::Handled,
        streamed::{Download, Outlet, Running},
    },
    reference::parts,
};
use rental_core::{
    error::{Error, FieldCode},
    operations::Edge,
    request::page,
    resources::row_words::error_in_words,
    rows::key,
    store::{
        SCHEMA_VERSION, Span,
        archive::{Summary, Writer},
    },
};
use serde_json::{Value, json};
use std::{io, sync::Arc};

/// Why a second backup is not started.
const BUSY: &str = "A backup is already running; this one was not started. Try again when it has ended.";

/// The endpoint of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![get("/admin/v1/backup").documented(document()).reader(|request| Box::pin(start(request)))]
}

/// Starts a backup and returns the response that streams it.
async fn start(request: Request<'_, Reader>) -> Handled {
    let (app, call) = (request.app, request.call);
    let full = full_pace(call.query())?;
    let running = Running::take(&app.backing_up, BUSY)?;
    let spool = app.hooks.space.spools.begin().await?;
    // Before the snapshot, so that the backup contains its own entry.
    Note::of(call, None).write_before_reading(app.store()).await?;
    let (moment, now) = (Moment::of(app.store.as_ref()).await.map_err(Error::from)?, call.clock.now());
    let (actor, address) = (call.actor().to_owned(), call.client_address());
    let download = Download { what: "backup", running, spool, full, draining: Arc::clone(&app.draining) };
    let reply = download.begin(move |outlet| {
        let summary = copy(moment, Writer::new(&mut *outlet, SCHEMA_VERSION, MADE_BY, now)?)?;
        outlet.all_sent()?;
        tracing::info!(rows = summary.rows, bytes = summary.bytes, actor, %address, "a backup was sent");
        Ok(())
    })?;
    let time: String = now.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    Ok(reply
        .with(header::CONTENT_TYPE, "application/octet-stream")
        .with(header::CONTENT_DISPOSITION, &format!("attachment; filename=\"rental-{time}.backup\"")))
}

/// Whether the query is `pace=full`. The default is `pace=gentle`.
pub(crate) fn full_pace(query: &str) -> Result<bool, Error> {
    match query.strip_prefix("pace=") {
        Some("full") => Ok(true),
        Some("gentle") => Ok(false),
        Some(_) => Err(Error::field("pace", FieldCode::Invalid, "must be `gentle` or `full`")),
        None => page::no_parameters(query).map(|()| false),
    }
}

fn copy(mut moment: Moment, mut writer: Writer<&mut Outlet<'_>>) -> io::Result<Summary> {
    for row in moment.rows(Span::everything()) {
        let row = row.map_err(|error| io::Error::other(error_in_words(&error)))?;
        if !key::is_of_servers(&row.key) {
            writer.push(&row)?;
        }
    }
    writer.finish().map(|(_, summary)| summary)
}

fn document() -> Value {
    let mut headers = parts::common_headers();
    headers["Content-Disposition"] = json!({"description": "A name for the file.", "schema": {"type": "string"}});
    let archive = json!({"description": "The archive. It ends with a SHA-256 of itself.", "headers": headers, "content": {"application/octet-stream": {}}});
    json!({
        "operationId": "getBackup",
        "tags": ["Store"],
        "summary": "Back up the store",
        "description": "All data as it is at this moment, as an archive for `rental-cli store restore`. One at a time. Needs the token of an operator, of any role, or the admin token.",
        "security": [{"adminToken": []}],
        "parameters": [parts::pace()],
        "responses": parts::responses_of(&archive, &["400", "401", "409", "500", "503"]),
    })
}
