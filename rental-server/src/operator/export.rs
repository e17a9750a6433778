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
        reply::{Handled, Problem},
        streamed::{Download, Outlet, Running},
    },
    operator::{backup::full_pace, collections},
    reference::parts,
};
use rental_core::{
    error::Error,
    imports::organization::{Contents, Counting, end_line, first_line, line, spans},
    resources::{organization, row_words::error_in_words},
    rows::key,
    store::{Pages, Store, StoreError},
    tasks::erasing::erases_in,
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
/// Tasks in one scan.
const TASKS: usize = 64;
/// Why there is no export while a task erases a customer.
const ERASING: &str = "A customer of this organization is being erased, and an export of now could still show the person. Nothing was exported. Export again when the `status` of the erasure is `complete`: `rental-cli customers erasure ID` shows it.";
/// Why a second export is not started.
const BUSY: &str = "An export is already running; this one was not started. Try again when it has ended.";
/// Bytes of one part of the response.
const PART: usize = 64 * 1024;

/// The endpoint of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let export = get("/admin/v1/organizations/{organization}/export")
        .about(&organization::SPEC, "exportOrganization", "Export an organization")
        .says("All its objects as they are at one moment, one a line, each as a GET gives it: the organization, then one resource after the other, oldest first. It begins when attachments have followed the changes of before, after 10 s at the latest. It is a 409 while a customer of the organization is being erased for longer than that. The last line says how many came before it. No key or secret is in it. One export at a time.")
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
    let running = Running::take(&app.exporting, BUSY)?;
    let spool = app.hooks.space.spools.begin().await?;
    let begun = Note::of(request.call, Some(id));
    // Its time is before that of the snapshot.
    let completed = Note::of(request.call, Some(id)).with_action(COMPLETED);
    let (store, runtime) = (Arc::clone(&app.store), Handle::current());
    let marks = key::rechecks_of(id);
    // An import takes the attachments as they are, so they should have followed what was changed just before.
    for _ in 0..MOST_CHECKS {
        let follows = !app.store().scan(&marks, 1).await.map_err(Error::from)?.is_empty();
        if !follows && !is_erasing(app.store(), id).await? {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    let moment = Moment::of(app.store.as_ref()).await.map_err(Error::from)?;
    let moment = without_erasures(moment, id).await?;
    begun.write_before_reading(app.store()).await?;
    let (actor, address) = (request.call.actor().to_owned(), request.call.client_address());
    let download = Download { what: "export", running, spool, full, draining: Arc::clone(&app.draining) };
    let reply = download.begin(move |outlet| {
        let (lines, contents) = copy(moment, id, outlet)?;
        // A client that has the last line finds the export completed.
        outlet.all_sent()?;
        let details = json!({"lines": lines, CONTENTS: contents});
        let saved = runtime.block_on(completed.write(store.as_ref(), &details));
        if let Err(error) = saved {
            tracing::warn!(organization = %id, ?error, "the audit log has no entry of a complete export, so it does not allow the organization to be deleted");
        }
        outlet.write_all(end_line(lines).as_bytes())?;
        outlet.all_sent()?;
        tracing::info!(organization = %id, lines, actor, %address, "an export was sent");
        Ok(())
    })?;
    Ok(reply
        .with(header::CONTENT_TYPE, LINES)
        .with(header::CONTENT_DISPOSITION, &format!("attachment; filename=\"organization-{id}.ndjson\"")))
}

/// Whether a task erases a customer of the organization now.
async fn is_erasing(store: &dyn Store, organization: OrganizationId) -> Result<bool, Error> {
    let mut pages = Pages::of(store, key::tasks(), TASKS);
    while let Some(page) = pages.next().await? {
        if page.iter().flatten().any(|task| erases_in(task, organization)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The same moment, unless a customer of the organization is being erased in it. A lead that names no customer still shows the
/// person then, and the server that imports it does not know the email or phone by which such leads are found.
async fn without_erasures(mut moment: Moment, organization: OrganizationId) -> Result<Moment, Problem> {
    let look = move || {
        for row in moment.rows(key::tasks()) {
            if erases_in(&row?, organization) {
                return Ok(None);
            }
        }
        Ok::<_, StoreError>(Some(moment))
    };
    let looked = tokio::task::spawn_blocking(look).await;
    let looked = looked.map_err(|error| Error::Internal(format!("a look at the tasks ended early: {error}")))?;
    Ok(looked.map_err(Error::from)?.ok_or_else(|| Error::Conflict(ERASING.into()))?)
}

/// Writes all lines but the last one.
fn copy(mut moment: Moment, organization: OrganizationId, outlet: &mut Outlet<'_>) -> io::Result<(u64, Contents)> {
    let mut out = BufWriter::with_capacity(PART, outlet);
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
    Ok((lines, contents.finish()))
}
