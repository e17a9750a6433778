//! Keeps automatic attachments true: derives those of marked vehicles again. `rental_core::attachments` says how.
//!
//! Every server does this. Where several share a store, each step of a mark is done by one of them. Organizations take turns, and so
//! do the marks of each: one that changes all of its vehicles at once lets another one wait for a part of a second.

mod turns;

use crate::{
    edge::{self, Clock},
    panics::catch_panic,
    state::App,
    supervisor::Supervisor,
};
use futures_util::future::BoxFuture;
use rental_core::{
    attachments::again,
    error::Error,
    rows::key,
    store::{Pages, Record, Scanned, StoreError},
    tasks::Step,
};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::task::JoinHandle;
use turns::{Ended, Turns, Work};

/// How often marks are looked for. A change of a rental is followed by its attachments within about this time.
const LOOK: Duration = Duration::from_secs(1);
/// Time for the marks of one organization, before another one has its turn.
const TURN: Duration = Duration::from_millis(50);
/// Marks that are counted at a time.
const PAGE: usize = 1000;

/// Starts the background task. It can be aborted at any time, because each step is one batch.
pub(crate) fn start(supervisor: &Arc<Supervisor>, app: &Arc<App>) -> JoinHandle<()> {
    let app = Arc::clone(app);
    supervisor.start("attachments", move || run(Arc::clone(&app)))
}

async fn run(app: Arc<App>) {
    let mut turns = Turns::default();
    let (mut work, mut counted) = (Steps { app: &app, until: 0 }, None);
    loop {
        let now = app.nanos_since_start();
        if counted.is_none_or(|at: u64| Duration::from_nanos(now.saturating_sub(at)) >= LOOK) {
            counted = Some(now);
            if let Err(error) = count(&app).await {
                tracing::debug!(?error, "cannot count the vehicles whose attachments are to be derived again");
            }
        }
        if !edge::is_right() {
            tokio::time::sleep(LOOK).await;
            continue;
        }
        match turns.round(app.store(), &mut work).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(?error, "cannot read which attachments to derive again; trying again"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Counts the marks, for the metrics.
async fn count(app: &App) -> Result<(), Error> {
    let (mut pages, mut marks) = (Pages::of(app.store(), key::rechecks(), PAGE), 0);
    while let Some(page) = pages.next().await? {
        marks += page.len();
    }
    app.metrics.rechecks.set(i64::try_from(marks).unwrap_or(i64::MAX));
    Ok(())
}

/// Does the steps of marks.
struct Steps<'a> {
    app: &'a App,
    /// The end of the present turn.
    until: u64,
}

impl Work for Steps<'_> {
    fn begin_turn(&mut self) {
        let turn = u64::try_from(TURN.as_nanos()).unwrap_or(u64::MAX);
        self.until = self.app.nanos_since_start().saturating_add(turn);
    }

    fn has_time(&self) -> bool {
        self.app.nanos_since_start() < self.until
    }

    fn sound(&self, page: Vec<Scanned>) -> Vec<Record> {
        self.app.hooks.damaged.all_sound(page)
    }

    fn rows(&self, scanned: Result<Vec<Scanned>, StoreError>) -> Result<Vec<Scanned>, StoreError> {
        self.app.hooks.damaged.rows(scanned)
    }

    fn step<'a>(&'a self, mark: &'a Record) -> BoxFuture<'a, Ended> {
        Box::pin(async {
            let ended = one_step(self.app, mark).await;
            tokio::task::yield_now().await;
            ended
        })
    }
}

async fn one_step(app: &App, record: &Record) -> Ended {
    let (vehicle, mut damaged) = (record.key.id().unwrap_or_default(), Vec::new());
    let Ok(step) = catch_panic(pin!(again::step(app.store(), &Clock, record, &mut damaged))).await else {
        tracing::error!(%vehicle, "deriving the attachments of a vehicle again panicked; trying again");
        return Ended::Later;
    };
    damaged.iter().for_each(|row| app.hooks.damaged.note(row));
    match app.hooks.damaged.skip(step) {
        Ok(step) => {
            // The step can have committed events.
            app.hooks.committed();
            match step {
                Some(Step::Continue) => Ended::More,
                Some(Step::Done) => Ended::Done,
                Some(Step::Overtaken) | None => Ended::Later,
            }
        }
        // The other marks go on.
        Err(error) => {
            tracing::warn!(%vehicle, ?error, "cannot derive the attachments of a vehicle again; trying again");
            Ended::Later
        }
    }
}
