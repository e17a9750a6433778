//! `GET /admin/v1/organizations/{organization}/export`: all objects of an organization as lines, from one snapshot,
//! streamed like a backup.

use crate::{
    audit::Note,
    endpoint::{Endpoint, Parameter, Request, get},
    engine::Moment,
    guard::Reader,
    http::{
        header,
        progress::LINES,
        reply::Handled,
        streamed::{self, Outlet, Running},
    },
    operator::{backup::full_pace, collections},
    reference::parts,
};
use rental_core::{
    error::Error,
    imports::organization::{Contents, Counting, end_line, first_line, line, spans},
    resources::{organization, row_words::error_in_words},
    rows::key,
    value::OrganizationId,
};
use serde_json::json;
use std::{
    io::{self, BufWriter, Write},
    sync::Arc,
    time::Duration,
};
use tokio::runtime::Handle;

/// The action of the audit entry of an export that was sent as a whole.
pub(super) const COMPLETED: &str = "exportOrganizationCompleted";
/// The member of the details of such an entry that tells what the export has.
pub(super) const CONTENTS: &str = "contents";
/// How often it is checked whether attachments have followed what was changed, before an export begins without that.
const MOST_CHECKS: u32 = 100;
/// The time between two of these checks.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes of one part of the response.
const PART: usize = 64 * 1024;

/// The endpoint of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let export = get("/admin/v1/organizations/{organization}/export")
        .about(&organization::SPEC, "exportOrganization", "Export an organization")
        .says("All its objects as they are at one moment, one a line, each as a GET gives it: the organization, then one resource after the other, oldest first. It begins when attachments have followed the changes of before, after 10 s at the latest. The last line says how many came before it. No key or secret is in it. One export or backup at a time.")
        .parameters(vec![Parameter::Own(parts::pace())])
        .conflicts()
        .without_revision()
        .replies_in(json!({LINES: {"schema": {"type": "string"}}}))
        .reader(|request| Box::pin(start(request)));
    vec![export]
}

/// Starts an export and returns the response that streams it.
async fn start(request: Request<'_, Reader>) -> Handled {
    let app = request.app;
    let id = collections::organization_named(app.store(), request.id).await?.id;
    let full = full_pace(request.call.query())?;
    let running = Running::take(&app.backing_up)?;
    Note::of(request.call, Some(id)).write_before_reading(app.store()).await?;
    // Its time is before that of the snapshot.
    let completed = Note::of(request.call, Some(id)).with_action(COMPLETED);
    let (store, runtime) = (Arc::clone(&app.store), Handle::current());
    let marks = key::rechecks_of(id);
    // An import takes the attachments as they are, so they should have followed what was changed just before.
    for _ in 0..MOST_CHECKS {
        if app.store().scan(&marks, 1).await.map_err(Error::from)?.is_empty() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    let moment = Moment::of(app.store.as_ref()).await.map_err(Error::from)?;
    let (actor, address) = (request.call.actor().to_owned(), request.call.client_address());
    let reply = streamed::streamed("export", (running, &app.draining), full, move |outlet| {
        let completed = |lines, contents| {
            let details = json!({"lines": lines, CONTENTS: contents});
            let saved = runtime.block_on(completed.write(store.as_ref(), &details));
            if let Err(error) = saved {
                tracing::warn!(organization = %id, ?error, "the audit log has no entry of a complete export, so it does not allow the organization to be deleted");
            }
        };
        let lines = copy(moment, id, BufWriter::with_capacity(PART, outlet), completed)?;
        tracing::info!(organization = %id, lines, actor, %address, "an export was sent");
        Ok(())
    })?;
    Ok(reply
        .with(header::CONTENT_TYPE, LINES)
        .with(header::CONTENT_DISPOSITION, &format!("attachment; filename=\"organization-{id}.ndjson\"")))
}

/// Sends all lines. Calls `completed` before the last one: a client that has it finds the export completed.
fn copy(
    mut moment: Moment,
    organization: OrganizationId,
    mut out: BufWriter<Outlet>,
    completed: impl FnOnce(u64, Contents),
) -> io::Result<u64> {
    out.write_all(first_line().as_bytes())?;
    let (mut lines, mut contents) = (1, Counting::default());
    for span in spans(organization) {
        for row in moment.rows(span) {
            let row = row.map_err(|error| io::Error::other(error_in_words(&error)))?;
            out.write_all(&line(&row.value))?;
            contents.add(&row);
            lines += 1;
        }
    }
    out.flush()?;
    completed(lines, contents.finish());
    out.write_all(end_line(lines).as_bytes())?;
    out.flush()?;
    Ok(lines)
}
