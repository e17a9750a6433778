//! Runs the long tasks that the store has, step by step. `rental_core::tasks` says what a task is.
//!
//! Every server does this. Where several share a store, each step of a task is done by one of them; the others read the task
//! again. Tasks take turns: one step of each in a round.

use crate::{edge, panics::catch_panic, state::App, supervisor::Supervisor};
use rental_core::{
    error::Error,
    rows::key,
    store::{Pages, Record},
    tasks::{self, Step, erasing::begin_left_over_erasures},
};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::task::JoinHandle;

/// How often tasks are looked for that another server began.
const LOOK: Duration = Duration::from_secs(5);
/// Pause after an error, and while another server does the steps.
const PAUSE: Duration = Duration::from_secs(1);
/// Tasks that are read at a time.
const PAGE: usize = 100;

/// Starts the runner. It can be aborted at any time, because each step is one batch.
pub(crate) fn start(supervisor: &Arc<Supervisor>, app: &Arc<App>) -> JoinHandle<()> {
    let app = Arc::clone(app);
    supervisor.start("tasks", move || run(Arc::clone(&app)))
}

async fn run(app: Arc<App>) {
    let mut is_searched = false;
    loop {
        if !edge::is_right() {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let outcome = round(&app).await;
        // After a round: the hold that a killed server left on an organization keeps others from beginning there, and a round
        // removes it.
        if !is_searched {
            is_searched = begin_left_over(&app).await;
        }
        let pause = match outcome {
            Ok(Round::More) => continue,
            _ if !is_searched => PAUSE,
            Ok(Round::Later) => PAUSE,
            Ok(Round::Idle) => LOOK,
            Err(error) => {
                tracing::warn!(?error, "cannot read the long tasks; trying again");
                PAUSE
            }
        };
        let _ = tokio::time::timeout(pause, app.tasks_begun.notified()).await;
    }
}

/// Begins what other programs, restores and repairs left behind. Only programs that kept no tasks left the due rows of deleted
/// endpoints, so that one search after the start is enough. Returns whether both searches came to their end.
async fn begin_left_over(app: &App) -> bool {
    let begun = tasks::begin_left_over_deletions(app.store(), edge::now()).await;
    if let Err(error) = app.hooks.damaged.skip(begun) {
        tracing::warn!(?error, "cannot look for the due rows of deleted webhook endpoints; trying again");
        return false;
    }
    if let Err(error) = app.hooks.damaged.skip(begin_erasures(app).await) {
        tracing::warn!(?error, "cannot read the list of erased people; trying again");
        return false;
    }
    true
}

/// Begins the erasure of each customer on the list of erased people who is not erased. A restore of an older backup and an
/// import can bring such customers back.
pub(crate) async fn begin_erasures(app: &App) -> Result<(), Error> {
    let mut damaged = Vec::new();
    let begun = begin_left_over_erasures(app.store(), &edge::Clock, &mut damaged).await?;
    damaged.iter().for_each(|row| app.hooks.damaged.note(row));
    if begun > 0 {
        tracing::info!(begun, "customers on the list of erased people are erased again");
        app.hooks.committed();
        app.tasks_begun.notify_one();
    }
    Ok(())
}

/// What is to be done after a round.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Round {
    /// There is no task that this program can do.
    Idle,
    /// Another server does the steps, or they failed.
    Later,
    /// A task has more steps.
    More,
}

/// Does one step of each task.
async fn round(app: &App) -> Result<Round, Error> {
    let (mut pages, mut outcome) = (Pages::of(app.store(), key::tasks(), PAGE), Round::Idle);
    while let Some(page) = pages.next().await? {
        for record in app.hooks.damaged.all_sound(page) {
            outcome = outcome.max(one_step(app, &record).await);
            tokio::task::yield_now().await;
        }
    }
    Ok(outcome)
}

async fn one_step(app: &App, record: &Record) -> Round {
    let (task, mut damaged) = (record.key.id().unwrap_or_default(), Vec::new());
    let keys = app.hooks.keys.ring();
    let step = catch_panic(pin!(tasks::step(app.store(), record, (&keys, edge::now()), &mut damaged))).await;
    let Ok(step) = step else {
        // The other tasks go on; this one is tried again.
        tracing::error!(%task, "a step of a long task panicked; trying again");
        return Round::Later;
    };
    damaged.iter().for_each(|row| app.hooks.damaged.note(row));
    match app.hooks.damaged.skip(step) {
        Ok(Some(Step::Continue)) => Round::More,
        Ok(Some(Step::Overtaken)) => Round::Later,
        Ok(Some(Step::Done)) => {
            tracing::info!(%task, "a long task is finished");
            Round::Idle
        }
        // Damaged, or of a kind that this program does not know.
        Ok(None) => Round::Idle,
        // The other tasks go on.
        Err(error) => {
            tracing::warn!(%task, ?error, "a step of a long task failed; trying again");
            Round::Later
        }
    }
}
