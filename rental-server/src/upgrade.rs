//! Upgrades a store of an older version before the server serves it. Until then `http/upgrading.rs` answers all requests.

use crate::{
    config::{Config, StoreUpgrade, UPGRADES_NEVER},
    disk::Room,
    engine,
    http::{tls::Tls, upgrading},
    service_manager,
};
use futures_util::future::{join, join_all};
use rental_core::{
    store::{Engine, Place, SCHEMA_VERSION, StoreError, needs_upgrade},
    upgrade::{self, State, Step, Survey, Upgrade, UpgradeError},
};
use serde::Serialize;
use std::{
    convert::Infallible,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    task::JoinSet,
};

/// Interval of the progress lines in the log.
const REPORT: Duration = Duration::from_secs(5);
/// Pause before another attempt when a database did not answer, or another server was faster.
const PAUSE: Duration = Duration::from_secs(1);

/// The progress of an upgrade, as `/readyz` shows it.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Progress {
    status: &'static str,
    from: u64,
    to: u64,
    /// `checking` the pages of a file, then `counting`, then `upgrading` once the store says that its upgrade has begun.
    phase: &'static str,
    rows_counted: u64,
    /// Number of records read so far.
    records_done: u64,
    /// Number of all records.
    records: u64,
    rows_written: u64,
    rows_damaged: u64,
}

impl Progress {
    fn in_words(&self) -> String {
        let Self { from, to, phase, rows_counted, records_done, records, .. } = self;
        let what = match from == to {
            true => "ending an interrupted repair of the store".to_owned(),
            false => format!("upgrading the store from schema version {from} to {to}"),
        };
        format!("{what}: {phase}, {rows_counted} rows counted, {records_done} of {records} records done")
    }
}

/// The outcome of [`before_serving`].
pub(crate) enum Ended {
    /// The store has the present version.
    Ready(Arc<dyn Engine>),
    /// The server was told to stop. The next start continues the upgrade.
    Stopped,
}

/// Upgrades the store if it has an older version. Until that is done, all sockets answer that the server is not ready.
pub(crate) async fn before_serving(
    (listeners, tls): (&[TcpListener], Option<&Tls>),
    store: Arc<dyn Engine>,
    (place, config): (&Arc<dyn Place>, &Config),
    stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<Ended, String> {
    let state = upgrade::state(store.as_ref()).await.map_err(|error| error.to_string())?;
    if state == State::Current {
        return Ok(Ended::Ready(store));
    }
    let (from, begun) = (state.from(), state.has_begun());
    if config.store_upgrade == StoreUpgrade::Never {
        let version = if matches!(state, State::Unfinished(_)) { SCHEMA_VERSION } else { from };
        return Err(format!("{}{UPGRADES_NEVER}", needs_upgrade(version)));
    }
    let first = Progress { status: "upgrading", from, to: SCHEMA_VERSION, phase: "counting", ..Progress::default() };
    let progress = watch::Sender::new(first);
    let why = match from {
        SCHEMA_VERSION => "a repair of the store was interrupted, and its walk through the records goes on",
        _ => "the store has an older schema version and is upgraded",
    };
    tracing::info!(from, to = SCHEMA_VERSION, begun, "{why}");
    let mut tasks = JoinSet::new();
    let upgraded = async {
        let store = check_pages(store, place, config, &progress).await?;
        let path = place.file().filter(|_| !begun).map(Path::to_owned);
        // A task of its own, because reads of a file block: sockets and signals must not wait for them.
        tasks.spawn(run(Arc::clone(&store), path, progress.clone()));
        match tasks.join_next().await {
            Some(Ok(outcome)) => outcome.map(|()| Ended::Ready(store)),
            Some(Err(error)) => Err(format!("the store could not be upgraded: {error}")),
            None => Err("the upgrade of the store did not start".into()),
        }
    };
    let answers = join_all(listeners.iter().map(|listener| upgrading::serve(listener, tls, progress.subscribe())));
    let ended = tokio::select! {
        ended = upgraded => ended,
        () = stop => Ok(Ended::Stopped),
        (_, never) = join(answers, log_progress(progress.subscribe())) => match never {},
    };
    // A task that was stopped drops its handle of the store, which closes it.
    tasks.shutdown().await;
    ended
}

/// Checks the pages of a file before its upgrade begins. The check reads a closed file, so the store is opened again.
async fn check_pages(
    store: Arc<dyn Engine>,
    place: &Arc<dyn Place>,
    config: &Config,
    progress: &watch::Sender<Progress>,
) -> Result<Arc<dyn Engine>, String> {
    if place.maintenance().is_err() {
        return Ok(store);
    }
    progress.send_modify(|progress| progress.phase = "checking");
    store.close().await.map_err(|error| error.to_string())?;
    let (result, checked) = oneshot::channel();
    let (own, cache_bytes) = (Arc::clone(place), config.cache_size);
    // Not a thread of the runtime, whose end would wait for the check.
    std::thread::spawn(move || {
        let _ = result.send(engine::opening_quietly(|| match own.maintenance() {
            Ok(maintenance) => maintenance.check_pages(cache_bytes),
            Err(_) => Ok(()),
        }));
    });
    match checked.await {
        Ok(Ok(())) => {}
        Ok(Err(StoreError::DamagedStore(detail))) => {
            return Err(format!("the store could not be upgraded: {detail}; nothing was changed"));
        }
        Ok(Err(error)) => return Err(format!("the store could not be upgraded: {error}")),
        Err(_) => return Err("the store could not be upgraded: the check of its pages ended early".into()),
    }
    progress.send_modify(|progress| progress.phase = "counting");
    engine::open(place.as_ref(), config).await
}

/// Counts the rows, checks the free space if there is a `path`, and upgrades the store.
async fn run(store: Arc<dyn Engine>, path: Option<PathBuf>, progress: watch::Sender<Progress>) -> Result<(), String> {
    let store = store.as_ref();
    if let Some(counted) = count(store, &progress).await? {
        if let Some(path) = path {
            enough_room(&path, &counted)?;
        }
        progress.send_modify(|progress| progress.records = counted.records);
    }
    while let Err(error) = upgrade_to_end(store, &progress).await {
        wait_for_retry(store, &error).await?;
    }
    let done = progress.borrow();
    tracing::info!(
        records = done.records_done,
        written = done.rows_written,
        damaged = done.rows_damaged,
        "the store has schema version {SCHEMA_VERSION} now"
    );
    Ok(())
}

/// Counts the rows. `None` when another server has begun or completed the upgrade since.
async fn count(store: &dyn Engine, progress: &watch::Sender<Progress>) -> Result<Option<Survey>, String> {
    loop {
        let mut count = |rows| {
            progress.send_modify(|progress| progress.rows_counted = rows);
        };
        let error = match upgrade::survey(store, &mut count).await {
            Ok(counted) => return Ok(Some(counted)),
            Err(error) => error,
        };
        // Reads fail after another server has changed the version. `state` reads it again, and then reads succeed.
        match upgrade::state(store).await {
            Ok(State::Current | State::Unfinished(_)) if store.is_shared() => return Ok(None),
            _ => wait_for_retry(store, &error).await?,
        }
    }
}

async fn upgrade_to_end(store: &dyn Engine, progress: &watch::Sender<Progress>) -> Result<(), UpgradeError> {
    let Some(mut upgrade) = Upgrade::begin(store).await? else { return Ok(()) };
    progress.send_modify(|progress| progress.phase = "upgrading");
    loop {
        let step = upgrade.step().await?;
        let marker = upgrade.progress();
        progress.send_modify(|progress| {
            (progress.records_done, progress.rows_written) = (marker.seen, marker.written);
            progress.rows_damaged = marker.damaged;
        });
        match step {
            Step::Continue => {}
            // Another server upgrades the store. This one continues when that one has stopped.
            Step::Overtaken => tokio::time::sleep(PAUSE).await,
            Step::Done => {
                for row in &marker.damaged_rows {
                    tracing::warn!(row, "a damaged row stays as it is");
                }
                return Ok(());
            }
        }
    }
}

/// Waits before another attempt. Returns the error when an attempt cannot succeed.
async fn wait_for_retry(store: &dyn Engine, error: &UpgradeError) -> Result<(), String> {
    match error {
        UpgradeError::Store(error) if store.is_shared() => {
            tracing::warn!(%error, "the upgrade of the store was interrupted; trying again");
            tokio::time::sleep(PAUSE).await;
            Ok(())
        }
        error => Err(format!("the store could not be upgraded: {error}; the next start goes on with it")),
    }
}

/// Refuses an upgrade for which the disk has no room.
fn enough_room(path: &Path, counted: &Survey) -> Result<(), String> {
    let room = Room::of(path);
    match (room.data, room.free) {
        (Some(data), Some(free)) => counted.enough_room(path, data, free),
        _ => Ok(()),
    }
}

/// Logs the progress at intervals, until it is dropped. A service manager is told it too, and from the beginning, so that it
/// does not take the server for one that hangs.
async fn log_progress(progress: watch::Receiver<Progress>) -> Infallible {
    let mut tick = tokio::time::interval(REPORT);
    tick.tick().await;
    service_manager::not_yet_ready(&progress.borrow().in_words());
    loop {
        tick.tick().await;
        let now = progress.borrow().clone();
        service_manager::not_yet_ready(&now.in_words());
        tracing::info!(
            phase = now.phase,
            rows_counted = now.rows_counted,
            records_done = now.records_done,
            records = now.records,
            rows_written = now.rows_written,
            rows_damaged = now.rows_damaged,
            "upgrading the store"
        );
    }
}
