//! Opens the store of this server, and reads its snapshots from threads.

use crate::{
    config::{Config, StoreUpgrade, UPGRADES_NEVER},
    edge,
    service_manager::Patience,
};
use rental_core::{
    operations::Edge,
    resources::sql_views,
    store::{Absent, Access, DamagedRow, Engine, Environment, Opening, Place, Record, Snapshot, Span, StoreError},
};
use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::runtime::Handle;

/// True while a file is opened.
pub(crate) static OPENING: AtomicBool = AtomicBool::new(false);
/// A call of a database waits at most this many times. So it ends before the request time-out.
const WAITS: u32 = 8;
/// The longest single wait.
const MOST_PATIENCE: Duration = Duration::from_secs(10);

/// Runs `act`, which opens a file, without a log line for a panic. It means that the file is damaged, and `act` reports that.
pub(crate) fn opening_quietly<T>(act: impl FnOnce() -> T) -> T {
    OPENING.store(true, Ordering::Relaxed);
    let outcome = act();
    OPENING.store(false, Ordering::Relaxed);
    outcome
}

/// Opens the store at `place`. Makes it if there is none.
pub(crate) async fn open(place: &dyn Place, config: &Config) -> Result<Arc<dyn Engine>, String> {
    let opening = Opening {
        cache_bytes: config.cache_size,
        absent: Absent::Create,
        writer: edge::Clock.new_id(),
        patience: (config.request_timeout / WAITS).min(MOST_PATIENCE).max(Duration::from_millis(100)),
        environment: &Surroundings,
    };
    // A store that this server must not upgrade is refused before it is opened for writing, which changes a file.
    let never = config.store_upgrade == StoreUpgrade::Never;
    let access = if never { Access::Present } else { Access::Upgradable };
    OPENING.store(place.file().is_some(), Ordering::Relaxed);
    let _patience = Patience::start("opening the store");
    let opened = place.open(access, &opening).await;
    OPENING.store(false, Ordering::Relaxed);
    let store = opened.map_err(|error| match error {
        StoreError::NeedsUpgrade(_) => format!("{error}{UPGRADES_NEVER}"),
        StoreError::InUse(why) => format!("{why}; stop that process, or name another store with --store"),
        error => error.to_string(),
    })?;
    Ok(store)
}

/// Makes the SQL views. The store must be of the present schema version.
pub(crate) async fn make_views(store: &dyn Engine) {
    let views = sql_views::all("rental");
    let views: Vec<(&str, &str)> = views.iter().map(|view| (view.name, view.create.as_str())).collect();
    if let Err(why) = store.make_views(&views).await {
        // No request needs them.
        tracing::warn!(why, "the views for SQL could not be made");
    }
}

/// A snapshot of all rows, for a thread of its own.
pub(crate) struct Moment {
    snapshot: Box<dyn Snapshot>,
    runtime: Handle,
}

impl Moment {
    /// Takes a snapshot of the present state.
    pub(crate) async fn of(store: &dyn Engine) -> Result<Self, StoreError> {
        Ok(Self { snapshot: store.snapshot().await?, runtime: Handle::current() })
    }

    /// The rows of a span, by rising key. Index entries are not followed. It blocks. Do not go on after an error.
    pub(crate) fn rows(&mut self, mut rest: Span) -> impl Iterator<Item = Result<Record, StoreError>> {
        let parts = std::iter::from_fn(move || match self.runtime.block_on(self.snapshot.next(&mut rest)) {
            Ok(rows) if rows.is_empty() => None,
            Ok(rows) => Some(rows.into_iter().map(Ok).collect()),
            Err(error) => Some(vec![Err(error)]),
        });
        parts.flatten()
    }

    /// The same without damaged rows, of which `damaged` is told.
    pub(crate) fn sound_rows(
        &mut self,
        span: Span,
        mut damaged: impl FnMut(&DamagedRow),
    ) -> impl Iterator<Item = Result<Record, StoreError>> {
        // The rows before a damaged one are read first, then those behind it.
        let (end, mut rest, mut behind) = (span.to.clone(), span, None);
        let parts = std::iter::from_fn(move || {
            loop {
                // A part that meets a damaged row gives none of the rows before it.
                let from = rest.from.clone();
                match self.runtime.block_on(self.snapshot.next(&mut rest)) {
                    Ok(rows) if rows.is_empty() => (rest.from, rest.to) = (behind.take()?, end.clone()),
                    Ok(rows) => return Some(rows.into_iter().map(Ok).collect()),
                    Err(StoreError::Damaged(row)) if row.key >= from && row.key < rest.to => {
                        damaged(&row);
                        behind = Some(row.key.next());
                        (rest.from, rest.to) = (from, row.key);
                    }
                    Err(error) => return Some(vec![Err(error)]),
                }
            }
        });
        parts.flatten()
    }
}

struct Surroundings;

impl Environment for Surroundings {
    fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn file(&self, path: &Path) -> Result<Vec<u8>, String> {
        fs::read(path).map_err(|error| unreadable(path, &error))
    }

    fn secret_file(&self, path: &Path) -> Result<Vec<u8>, String> {
        let mode = fs::metadata(path).map_err(|error| unreadable(path, &error))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(format!("{} holds passwords and others can read it: chmod 600 it", path.display()));
        }
        self.file(path)
    }
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}
