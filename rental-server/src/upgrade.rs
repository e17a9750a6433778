//! A store of an older version is upgraded before it is served. Meanwhile the address answers: see `http/upgrading.rs`.

use crate::{
    config::{Config, StoreUpgrade, UPGRADES_NEVER},
    disk::Room,
    http::{tls::Tls, upgrading},
};
use futures_util::future::join_all;
use rental_core::{
    store::{Engine, SCHEMA_VERSION, needs_upgrade},
    upgrade::{self, State, Step, Survey, Upgrade, UpgradeError},
};
use serde::Serialize;
use std::{future::Future, path::Path, pin::Pin, time::Duration};
use tokio::{net::TcpListener, sync::watch};

/// How often the log tells how far it is.
const REPORT: Duration = Duration::from_secs(5);
/// Pause before another attempt when a database did not answer, or another server was faster.
const PAUSE: Duration = Duration::from_secs(1);

/// How far an upgrade is, as `/readyz` tells it.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Progress {
    status: &'static str,
    from: u64,
    to: u64,
    /// `counting`, then `upgrading` once the store says that its upgrade has begun.
    phase: &'static str,
    rows_counted: u64,
    /// Records that were looked at, of so many.
    records_done: u64,
    records: u64,
    rows_written: u64,
    rows_damaged: u64,
}

/// How it ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ended {
    /// The store can be served.
    Ready,
    /// The server was told to stop; the next start goes on with the upgrade.
    Stopped,
}

/// Upgrades the store if it has to be, and answers on all sockets until that is done.
pub(crate) async fn before_serving(
    (listeners, tls): (&[TcpListener], Option<&Tls>),
    store: &dyn Engine,
    config: &Config,
    path: Option<&Path>,
    stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<Ended, String> {
    let (from, begun) = match upgrade::state(store).await.map_err(|error| error.to_string())? {
        State::Current => return Ok(Ended::Ready),
        State::Older(version) => (version, false),
        State::Unfinished(marker) => (marker.from, true),
    };
    if config.store_upgrade == StoreUpgrade::Never {
        let version = if begun { SCHEMA_VERSION } else { from };
        return Err(format!("{}{UPGRADES_NEVER}", needs_upgrade(version)));
    }
    let first = Progress { status: "upgrading", from, to: SCHEMA_VERSION, phase: "counting", ..Progress::default() };
    let (tell, told) = watch::channel(first);
    tracing::info!(from, to = SCHEMA_VERSION, begun, "the store is of an older schema version and is upgraded");
    tokio::select! {
        outcome = run(store, path.filter(|_| !begun), &tell) => outcome.map(|()| Ended::Ready),
        () = stop => Ok(Ended::Stopped),
        () = on_all(listeners, tls, told.clone()) => Err("nothing answers on the address any more".into()),
        () = report(told) => Err("nothing reports any more".into()),
    }
}

async fn on_all(listeners: &[TcpListener], tls: Option<&Tls>, told: watch::Receiver<Progress>) {
    join_all(listeners.iter().map(|listener| upgrading::serve(listener, tls, told.clone()))).await;
}

/// Counts, looks for room, and upgrades to the end.
async fn run(store: &dyn Engine, path: Option<&Path>, tell: &watch::Sender<Progress>) -> Result<(), String> {
    if let Some(counted) = count(store, tell).await? {
        if let Some(path) = path {
            enough_room(path, &counted)?;
        }
        tell.send_modify(|progress| progress.records = counted.records);
    }
    loop {
        match to_the_end(store, tell).await {
            Ok(()) => break,
            Err(error) => again(store, &error).await?,
        }
    }
    let done = tell.borrow();
    tracing::info!(
        records = done.records_done,
        written = done.rows_written,
        damaged = done.rows_damaged,
        "the store has schema version {SCHEMA_VERSION} now"
    );
    Ok(())
}

/// Counts what there is to do. `None` when another server has claimed the store since: there is nothing to decide any more.
async fn count(store: &dyn Engine, tell: &watch::Sender<Progress>) -> Result<Option<Survey>, String> {
    loop {
        let mut progress = |rows| {
            tell.send_modify(|progress| progress.rows_counted = rows);
        };
        let error = match upgrade::survey(store, &mut progress).await {
            Ok(counted) => return Ok(Some(counted)),
            Err(error) => error,
        };
        // Reads fail when the version has changed under them. Looking at it again lets them go on with the new one.
        match upgrade::state(store).await {
            Ok(State::Current | State::Unfinished(_)) if store.is_shared() => return Ok(None),
            _ => again(store, &error).await?,
        }
    }
}

async fn to_the_end(store: &dyn Engine, tell: &watch::Sender<Progress>) -> Result<(), UpgradeError> {
    let Some(mut upgrade) = Upgrade::begin(store).await? else { return Ok(()) };
    tell.send_modify(|progress| progress.phase = "upgrading");
    loop {
        let step = upgrade.step().await?;
        let marker = upgrade.progress();
        tell.send_modify(|progress| {
            (progress.records_done, progress.rows_written) = (marker.seen, marker.written);
            progress.rows_damaged = marker.damaged;
        });
        match step {
            Step::Continue => {}
            // Another server is at it. This one goes on only where that one no longer does.
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

/// Waits before another attempt, where one makes sense.
async fn again(store: &dyn Engine, error: &UpgradeError) -> Result<(), String> {
    match error {
        UpgradeError::Store(error) if store.is_shared() => {
            tracing::warn!(%error, "the upgrade of the store was interrupted; trying again");
            tokio::time::sleep(PAUSE).await;
            Ok(())
        }
        error => Err(format!("the store could not be upgraded: {error}; the next start goes on with it")),
    }
}

/// Refuses to begin what the disk has no room for.
fn enough_room(path: &Path, counted: &Survey) -> Result<(), String> {
    let room = Room::of(path);
    match (room.data, room.free) {
        (Some(data), Some(free)) => counted.enough_room(path, data, free),
        _ => Ok(()),
    }
}

/// One line of the log, now and then.
async fn report(told: watch::Receiver<Progress>) {
    let mut tick = tokio::time::interval(REPORT);
    tick.tick().await;
    loop {
        tick.tick().await;
        let now = told.borrow().clone();
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
