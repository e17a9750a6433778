//! `GET /admin/v1/organizations/{organization}/export`: all objects of an organization as lines, from one snapshot, at the
//! pace of a backup.

use crate::{
    app::App,
    engine::Moment,
    http::{
        backup::{self, Outlet, full_pace},
        call::Call,
        progress::LINES,
        reply::{Problem, Reply},
    },
};
use rental_core::{error::Error, resources::organization::Organization, transfer};
use std::io::{self, BufWriter, Write};
use uuid::Uuid;
use warp::http::header;

/// Bytes that go out at a time.
const PART: usize = 64 * 1024;

/// Starts an export and gives the answer that streams it.
pub(crate) async fn start(app: &App, call: &Call, organization: &Organization) -> Result<Reply, Problem> {
    let full = full_pace(call.query())?;
    let (moment, id) = (app.store.moment().await.map_err(Error::from)?, organization.id);
    let reply = backup::streamed(app, "export", full, move |outlet| {
        let lines = copy(moment, id, BufWriter::with_capacity(PART, outlet))?;
        tracing::info!(organization = %id, lines, "an export was sent");
        Ok(())
    })?;
    Ok(reply
        .with(header::CONTENT_TYPE, LINES)
        .with(header::CONTENT_DISPOSITION, &format!("attachment; filename=\"organization-{id}.ndjson\"")))
}

fn copy(mut moment: Moment, organization: Uuid, mut out: BufWriter<Outlet>) -> io::Result<u64> {
    out.write_all(transfer::first_line().as_bytes())?;
    let mut lines = 1;
    for span in transfer::spans(organization) {
        for row in moment.rows(&span).map_err(io::Error::other)? {
            out.write_all(&transfer::line(&row.map_err(io::Error::other)?.value))?;
            lines += 1;
        }
    }
    out.write_all(transfer::end_line(lines).as_bytes())?;
    out.flush()?;
    Ok(lines)
}
