//! Backups that the server makes by itself (`--backup-to`): when one is due, what is kept, and what is told about it.
//!
//! The folder is all the memory there is: the next backup is due a period after the newest one there. Of several servers with one
//! folder, the one that has the lock in it makes the backups. An error stops none of the later backups, and removes no file.

mod make;
mod names;

pub(crate) use make::MADE_BY;

use crate::{
    config::{BackupPlan, Config},
    disk::Spools,
    edge,
    engine::Moment,
    supervisor::Supervisor,
};
use make::{Job, Made};
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::{Registry, Unit},
};
use rental_core::{
    store::{Engine, StoreError},
    value::Timestamp,
};
use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::task::spawn_blocking;

/// How often the folder is looked at, at least.
const LOOK: Duration = Duration::from_secs(30);
/// After a failure the next backup is made after this time, if that is less than a period.
const RETRY: Duration = Duration::from_secs(3600);
/// Held by the server that makes the backups of a folder.
const LOCK: &str = "rental-backups.lock";
/// No backup was made yet.
const NEVER: i64 = -1;

/// The backups of this server.
#[derive(Debug, Default)]
pub(crate) struct Backups {
    /// `None` without `--backup-to`.
    plan: Option<BackupPlan>,
    /// Whether the data is worth none.
    pub(crate) is_demo: bool,
    lock: Mutex<Option<File>>,
    /// Milliseconds of the newest good one, or [`NEVER`].
    newest: AtomicI64,
    last_success: Gauge<f64, AtomicU64>,
    failures: Counter,
}

impl Backups {
    /// Those that the flags ask for. Looks at the folder.
    ///
    /// # Errors
    /// It is no folder in which files can be made, or another server has it that does not share the store.
    pub(crate) fn of(config: &Config, is_shared: bool) -> Result<Self, String> {
        let (plan, newest) = (config.backups.plan().filter(|_| !config.demo), AtomicI64::new(NEVER));
        let backups = Self { plan, is_demo: config.demo, newest, ..Self::default() };
        let Some(BackupPlan { folder, .. }) = &backups.plan else { return Ok(backups) };
        let shown = folder.display();
        let refused = |error| match error {
            _ if !folder.is_dir() => format!("--backup-to names no folder: make {shown}, or mount it"),
            error => format!("--backup-to: {shown} cannot be used: {error}"),
        };
        if !backups.has_lock().map_err(refused)? && !is_shared {
            return Err(format!(
                "--backup-to: another server makes its backups in {shown}: name a folder for each store"
            ));
        }
        backups.note_newest(folder).map_err(refused)?;
        Ok(backups)
    }

    /// Says at the start that there will be no backups.
    pub(crate) fn warn_if_none(&self) {
        if self.plan.is_none() && !self.is_demo {
            tracing::warn!("this server makes no backups by itself: name a folder with --backup-to DIR");
        }
    }

    /// How often backups are made; `None` without `--backup-to`.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.plan.as_ref().map(|plan| plan.every)
    }

    /// When the newest good backup was begun.
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        Some(self.newest.load(Ordering::Relaxed)).filter(|millis| *millis != NEVER).map(Timestamp::from_millis)
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "backup_last_success_timestamp",
            "When the newest good backup in the folder of --backup-to was begun; 0 when there is none",
            Unit::Seconds,
            self.last_success.clone(),
        );
        registry.register("backup_failures", "Backups of --backup-to that failed", self.failures.clone());
    }

    /// Makes backups until the server stops.
    pub(crate) async fn run(&self, store: &Arc<dyn Engine>, spools: &Spools, supervisor: &Arc<Supervisor>) {
        let Some(plan) = &self.plan else { return };
        let mut pause = Duration::ZERO;
        while !supervisor.stops_within(pause).await {
            pause = LOOK.min(plan.every);
            if !edge::is_right() {
                continue;
            }
            let made = match self.is_due(plan) {
                Ok(false) => continue,
                Ok(true) => self.one(plan, store, spools, supervisor).await,
                Err(error) => Err(format!("cannot look into the folder: {error}")),
            };
            if !supervisor.is_stopping() && !self.tell(plan, made) {
                pause = RETRY.min(plan.every);
            }
        }
    }
}

impl Backups {
    /// Whether this server has the lock of the folder. Takes it if it is free.
    fn has_lock(&self) -> io::Result<bool> {
        let Some(BackupPlan { folder, .. }) = &self.plan else { return Ok(false) };
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_none() {
            let file = File::options().create(true).append(true).mode(0o600).open(folder.join(LOCK))?;
            match file.try_lock() {
                Ok(()) => *lock = Some(file),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(lock.is_some())
    }

    /// Looks for the newest good backup and tells its time.
    fn note_newest(&self, folder: &Path) -> io::Result<Option<Timestamp>> {
        let newest = make::files(folder)?.newest(edge::now());
        let millis = newest.map_or(NEVER, |time| i64::try_from(time.millis()).unwrap_or(i64::MAX));
        self.newest.store(millis, Ordering::Relaxed);
        self.last_success.set(millis.max(0) as f64 / 1000.0);
        Ok(newest)
    }

    fn is_due(&self, plan: &BackupPlan) -> io::Result<bool> {
        let newest = self.note_newest(&plan.folder)?;
        let period = i64::try_from(plan.every.as_millis()).unwrap_or(i64::MAX);
        Ok(self.has_lock()? && newest.is_none_or(|newest| newest.plus_millis(period) <= edge::now()))
    }

    async fn one(
        &self,
        plan: &BackupPlan,
        store: &Arc<dyn Engine>,
        spools: &Spools,
        supervisor: &Arc<Supervisor>,
    ) -> Result<Made, String> {
        make::remove_partial(&plan.folder).map_err(|error| format!("cannot remove an unfinished backup: {error}"))?;
        let spool = spools.begin().await.map_err(|error| format!("{error:?}"))?;
        let (time, moment) =
            (edge::now(), Moment::of(store.as_ref()).await.map_err(|error: StoreError| error.to_string())?);
        let (folder, supervisor) = (plan.folder.clone(), Arc::clone(supervisor));
        let made =
            spawn_blocking(move || make::make(Job { moment, spool, time, folder: &folder, supervisor: &supervisor }));
        made.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    /// Tells the log and the metrics, and removes what is outdated after a good backup. Returns whether it was one.
    fn tell(&self, plan: &BackupPlan, made: Result<Made, String>) -> bool {
        let folder = plan.folder.display();
        let why = match made {
            Ok(Made { name, summary, wrong: None }) => {
                tracing::info!(file = name, rows = summary.rows, bytes = summary.bytes, "a backup was made");
                let noted = self.note_newest(&plan.folder).map(drop);
                tell_removed(plan, noted.and_then(|()| remove(plan, make::files(&plan.folder)?.outdated(plan.keep))));
                return true;
            }
            Ok(Made { name, wrong: Some(wrong), .. }) => {
                tell_removed(plan, make::files(&plan.folder).and_then(|files| remove(plan, files.surplus())));
                format!("{wrong}; what could be read is in {name}")
            }
            Err(error) => error,
        };
        self.failures.inc();
        tracing::error!(%folder, why, "a backup by itself failed; the earlier ones stay");
        false
    }
}

fn remove(plan: &BackupPlan, names: impl IntoIterator<Item = String>) -> io::Result<()> {
    names.into_iter().try_for_each(|name| fs::remove_file(plan.folder.join(name)))
}

fn tell_removed(plan: &BackupPlan, removed: io::Result<()>) {
    if let Err(error) = removed {
        tracing::warn!(folder = %plan.folder.display(), %error, "old backups cannot be removed");
    }
}
