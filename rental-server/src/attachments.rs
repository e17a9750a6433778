//! Keeps automatic attachments true: derives those of marked vehicles again. `rental_core::attachments` says how.
//!
//! Every server does this. Where several share a store, each step of a mark is done by one of them. Marks take turns: one
//! step of each in a round.

use crate::{edge::Clock, panics::catch_panic, state::App, supervisor::Supervisor};
use rental_core::{
    attachments::again,
    error::Error,
    rows::key,
    store::{Pages, Record},
    tasks::Step,
};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinHandle;

/// How often marks are looked for. A change of a rental is followed by its attachments within about this time.
const LOOK: Duration = Duration::from_secs(1);
/// Marks that are read at a time.
const PAGE: usize = 100;

/// Starts the background task. It can be aborted at any time, because each step is one batch.
pub(crate) fn start(supervisor: &Arc<Supervisor>, app: &Arc<App>) -> JoinHandle<()> {
    let app = Arc::clone(app);
    supervisor.start("attachments", move || run(Arc::clone(&app)))
}

async fn run(app: Arc<App>) {
    loop {
        match round(&app).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(?error, "cannot read which attachments to derive again; trying again"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Does one step of each mark. Returns whether a mark has more steps that this server can do now.
async fn round(app: &App) -> Result<bool, Error> {
    let (mut pages, mut more, mut marks) = (Pages::of(app.store(), key::rechecks(), PAGE), false, 0);
    while let Some(page) = pages.next().await? {
        marks += page.len();
        for record in app.hooks.damaged.all_sound(page) {
            more |= one_step(app, &record).await;
            tokio::task::yield_now().await;
        }
    }
    app.metrics.rechecks.set(i64::try_from(marks).unwrap_or(i64::MAX));
    Ok(more)
}

async fn one_step(app: &App, record: &Record) -> bool {
    let (vehicle, mut damaged) = (record.key.id().unwrap_or_default(), Vec::new());
    let Ok(step) = catch_panic(again::step(app.store(), &Clock, record, &mut damaged)).await else {
        tracing::error!(%vehicle, "deriving the attachments of a vehicle again panicked; trying again");
        return false;
    };
    damaged.iter().for_each(|row| app.hooks.damaged.note(row));
    match app.hooks.damaged.skip(step) {
        Ok(step) => {
            // The step can have committed events.
            app.hooks.committed();
            step == Some(Step::Continue)
        }
        // The other marks go on.
        Err(error) => {
            tracing::warn!(%vehicle, ?error, "cannot derive the attachments of a vehicle again; trying again");
            false
        }
    }
}
