//! Opens the store of this server, and reads its snapshots from threads.

use crate::{
    config::{Config, StoreUpgrade, UPGRADES_NEVER},
    edge,
    service_manager::Patience,
};
use rental_core::{
    check::repair::{self, Plan, Waiter},
    operations::Edge,
    resources::sql_views,
    store::{
        Absent, Access, Answer, Damaged, DamagedRow, Engine, Environment, Opening, Place, Record, Snapshot, Span,
        StoreError,
    },
};
use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::runtime::Handle;

/// What to do after a start on a damaged file.
const REPAIR_SOON: &str =
    "look at the disk; then stop the server and run `rental-cli store repair`, or restore a backup";
/// From this number of bytes on the log says that a file is read: that can take seconds.
const LARGE: u64 = 1 << 30;
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
        damaged: Damaged::Salvage,
        writer: edge::Clock.new_id(),
        patience: (config.request_timeout / WAITS).min(MOST_PATIENCE).max(Duration::from_millis(100)),
        environment: &Surroundings,
    };
    // A store that this server must not upgrade is refused before it is opened for writing, which changes a file.
    let never = config.store_upgrade == StoreUpgrade::Never;
    let access = if never { Access::Present } else { Access::Upgradable };
    OPENING.store(place.file().is_some(), Ordering::Relaxed);
    // The pages of a file are checked, and a damaged one is copied: both take minutes for a large one.
    if let Some(bytes) = place.file().and_then(|file| fs::metadata(file).ok()).map(|file| file.len())
        && bytes >= LARGE
    {
        tracing::info!("{place} has {} MB, which are read to check its pages", bytes / 1_000_000);
    }
    let _patience = Patience::start("opening the store");
    let opened = place.open(access, &opening).await;
    OPENING.store(false, Ordering::Relaxed);
    let store = opened.map_err(|error| match error {
        StoreError::NeedsUpgrade(_) => format!("{error}{UPGRADES_NEVER}"),
        StoreError::InUse(why) => format!("{why}; stop that process, or name another store with --store"),
        error => error.to_string(),
    })?;
    match (store.salvaged(), place.file().and_then(kept_file)) {
        (Some(salvaged), _) => {
            tracing::error!("{place} was damaged so that it could not be opened: {salvaged}; {REPAIR_SOON}");
        }
        (None, Some(kept)) => {
            let kept = kept.display();
            tracing::warn!(
                "{kept} is there: an earlier start replaced the damaged store by what could be read; {REPAIR_SOON}"
            );
        }
        (None, None) => {}
    }
    Ok(store)
}

/// Writes again what follows from others of the rows that a damaged file has lost, when one was replaced by what could be read of it.
/// The store has the present schema version.
pub(crate) async fn rebuild_what_was_lost(place: &dyn Place, store: &Arc<dyn Engine>) -> Result<(), String> {
    // While a damaged file is kept: the process that replaced it can have ended before this was done.
    if store.salvaged().is_none() && place.file().and_then(kept_file).is_none() {
        return Ok(());
    }
    rebuild(store).await.map_err(|error| format!("{place}: what the damaged rows guarded cannot be rebuilt: {error}"))
}

/// The damaged file that is kept beside this one, if there is one.
fn kept_file(file: &Path) -> Option<PathBuf> {
    let mut name = fs::canonicalize(file).ok()?.into_os_string();
    name.push(".damaged");
    Some(PathBuf::from(name)).filter(|kept| kept.exists())
}

/// Writes the rows that were lost and that follow from others, such as the nights that a rental holds, and the counter of invoice
/// numbers: without them the server would accept what they prevent. Nothing is removed or replaced; that is for `store repair`.
async fn rebuild(store: &Arc<dyn Engine>) -> Result<(), String> {
    let (store, waits) = (Arc::clone(store), Waits(Handle::current()));
    let rebuilt = tokio::task::spawn_blocking(move || {
        let mut rebuilt = 0;
        loop {
            let Plan { mut changes, left, more } = repair::plan(store.as_ref(), &waits, edge::Clock.now(), &mut |_| {})
                .map_err(|error| error.to_string())?;
            changes.retain(|_, change| !change.loses());
            let written = changes.len();
            let plan = Plan { changes, left, more };
            repair::apply(store.as_ref(), &waits, &plan).map_err(|error| error.to_string())?;
            rebuilt += written;
            if !more || written == 0 {
                return Ok::<_, String>((rebuilt, plan.left));
            }
        }
    });
    let (rebuilt, left) = rebuilt.await.map_err(|error| error.to_string())??;
    if rebuilt > 0 {
        tracing::warn!("lost rows that follow from others were written again: {rebuilt}");
    }
    for (organization, objects) in &left.lost_organizations {
        tracing::error!(%organization, objects, "the record of an organization is lost: nobody can use its objects, which are still there; restore a backup, or import its export into a new organization");
    }
    Ok(())
}

/// Waits for the store on a thread of its own.
struct Waits(Handle);

impl Waiter for Waits {
    fn wait<T>(&self, answer: Answer<'_, T>) -> Result<T, StoreError> {
        self.0.block_on(answer)
    }
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
