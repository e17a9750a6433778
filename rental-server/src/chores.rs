//! Background tasks that do something now and then: save when API keys were last used, remove expired idempotency records,
//! remove what is older than its retention, read the free space of the disk, compare the clocks, count what organizations use
//! and which deliveries wait, and find out whether requests wait for a processor.

use crate::{
    disk, edge,
    state::App,
    supervisor::Supervisor,
    usage,
    webhooks::{backlog, retention},
};
use rental_core::{
    operations::{self, Newest, idempotency},
    store::{DamagedRow, Engine, StoreError},
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{
    runtime::Handle,
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

/// How often the uses of API keys are saved and idempotency records removed.
const SHORT: Duration = Duration::from_secs(20);
/// How often objects are removed whose retention has ended.
const LONG: Duration = Duration::from_secs(3600);
/// A start so many milliseconds after the newest object was made is worth a warning: 30 days.
const LONG_OFF: i64 = 30 * 86_400_000;
/// Idempotency records that one batch removes.
const MOST_RECORDS: usize = 256;

/// New objects sort above those of the store, also when the clock was set back while no server ran. From now on the clock is
/// watched.
pub(crate) async fn begin_clock(store: &dyn Engine) -> Result<(), String> {
    let newest = operations::newest(store).await.map_err(|error| format!("cannot read the store: {error:?}"))?;
    let database = store.time().await.map_err(|error| format!("cannot read the clock of the database: {error}"))?;
    edge::watch(newest.map(|newest| newest.made_at), database);
    let Some(Newest { id_time, made_at }) = newest else { return Ok(()) };
    let now = edge::now();
    if id_time > now {
        tracing::warn!(newest = %id_time, "the store has ids that are newer than this machine's clock; new ids continue from there");
        // The first millisecond in which every id is newer.
        edge::ids_rise_from(id_time.plus_millis(1));
    }
    if now > made_at.plus_millis(LONG_OFF) {
        tracing::warn!(newest = %made_at, "the newest object of the store is more than 30 days old: check that the clock is right, because what has expired is removed");
    }
    Ok(())
}

/// Starts the tasks of this file. They do not notice a stop: they can be aborted at any time, because each change is one
/// batch.
pub(crate) fn start(supervisor: &Arc<Supervisor>, app: &Arc<App>) -> Vec<JoinHandle<()>> {
    let own = || Arc::clone(app);
    let (keys, records, old, space, used, counted) = (own(), own(), own(), own(), own(), own());
    let (watched, shared) = (own(), own());
    let hooks = Arc::clone(&app.hooks);
    vec![
        supervisor.start("webhook_backlog", move || backlog::run(Arc::clone(&hooks))),
        supervisor.start("api_key_use", move || writing(SHORT, Arc::clone(&keys), save_key_use)),
        supervisor.start("idempotency", move || writing(SHORT, Arc::clone(&records), remove_idempotency_records)),
        supervisor.start("retention", move || writing(LONG, Arc::clone(&old), remove_old_events)),
        supervisor.start("usage", move || writing(usage::PERIOD, Arc::clone(&used), save_usage)),
        supervisor.start("usage_recount", move || writing(usage::LOOK, Arc::clone(&counted), recount_usage)),
        // It measures how long requests wait for a processor, so it runs as one of them.
        supervisor.start_on(&Handle::current(), "congestion", move || {
            let app = Arc::clone(&shared);
            async move { app.congestion.watch().await }
        }),
        supervisor.start("clock", move || watch_clock(Arc::clone(&watched))),
        supervisor.start("free_space", move || every(disk::SAMPLE, Arc::clone(&space), sample_free_space)),
    ]
}

/// Does something at once and then after each period. What writes waits while the clock cannot be trusted.
async fn writing<F: Future<Output = ()>>(period: Duration, app: Arc<App>, work: impl Fn(Arc<App>) -> F) {
    every(period, app, async |app| {
        if edge::is_right() {
            work(app).await;
        }
    })
    .await;
}

/// Does something at once and then after each period.
async fn every<F: Future<Output = ()>>(period: Duration, app: Arc<App>, work: impl Fn(Arc<App>) -> F) {
    let mut tick = interval(period);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        work(Arc::clone(&app)).await;
    }
}

/// Compares the wall clock with the boot clock each second, and with the clock of a database each minute.
async fn watch_clock(app: Arc<App>) {
    for second in 1_u64.. {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if second % 60 == 0 {
            match app.store.time().await {
                Ok(time) => time.into_iter().for_each(edge::note_database),
                // Other messages tell it, and the last time stays.
                Err(error) => tracing::debug!(?error, "cannot read the clock of the database"),
            }
        }
        // It tells the log by itself.
        edge::jump();
    }
}

/// Databases have a disk of their own, which this server does not see.
async fn sample_free_space(app: Arc<App>) {
    if app.store_path.is_some() {
        let full = app.store().ready().await == Err(StoreError::NoRoom);
        // On another thread: a disk that hangs must not block the threads that serve requests.
        let _ = tokio::task::spawn_blocking(move || app.hooks.space.note(app.hooks.space.room(), full)).await;
    }
}

async fn save_key_use(app: Arc<App>) {
    if let Err(error) = app.save_uses().await {
        tracing::warn!(?error, "cannot save when API keys and tokens were last used");
    }
}

async fn save_usage(app: Arc<App>) {
    app.usage.turn(&app.hooks.damaged).await;
}

async fn recount_usage(app: Arc<App>) {
    let recounted = app.usage.recount_if_due(&app.hooks.damaged).await;
    if let Err(error) = app.hooks.damaged.skip(recounted) {
        tracing::warn!(?error, "cannot recount what organizations use; trying again");
    }
}

async fn remove_old_events(app: Arc<App>) {
    if let Err(error) = retention::sweep(&app.hooks, edge::now()).await {
        tracing::warn!(?error, "cannot remove objects whose retention has ended");
    }
}

async fn remove_idempotency_records(app: Arc<App>) {
    let mut note = |row: Box<DamagedRow>| app.hooks.damaged.note(&row);
    let removed = idempotency::remove_expired(app.store(), edge::now(), MOST_RECORDS, &mut note).await;
    if let Err(error) = app.hooks.damaged.skip(removed) {
        tracing::warn!(?error, "cannot remove expired idempotency records");
    }
}
