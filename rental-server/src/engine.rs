//! The engine of the store: a file of this server alone, or a database that several servers share.

use crate::{
    config::{Config, StoreUpgrade, StoreUrl, UPGRADES_NEVER},
    edge,
};
use rental_core::{
    operations::Edge,
    resources::sql_views,
    store::{
        Answer, Batch, Commit, Key, Record, Scanned, Span, Store, StoreError, Versioned, WriterStats,
        postgres::{self, Address, Postgres},
        redb::{self, Redb},
    },
};
use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// True while a file is opened.
pub(crate) static OPENING: AtomicBool = AtomicBool::new(false);
/// A call of a database waits at most this many times. So it ends before the request time-out.
const WAITS: u32 = 8;
/// The longest single wait.
const MOST_PATIENCE: Duration = Duration::from_secs(10);

/// The store of this server.
pub(crate) enum Engine {
    /// In a file.
    File(Redb),
    /// In PostgreSQL or a database that speaks its protocol.
    Shared(Postgres),
}

/// The same call on either engine.
macro_rules! on_either {
    ($engine:expr, $store:ident => $call:expr) => {
        match $engine {
            Engine::File($store) => $call,
            Engine::Shared($store) => $call,
        }
    };
}

impl Engine {
    /// Opens the store that `url` names. Makes it if there is none.
    pub(crate) async fn open(url: &StoreUrl, config: &Config) -> Result<Self, String> {
        match url {
            StoreUrl::File(path) => open_file(path, config).map(Self::File),
            StoreUrl::Database(url) => open_database(url.expose(), config.request_timeout).await.map(Self::Shared),
        }
    }

    /// Makes the SQL views of a database. The store must be of the present schema version.
    pub(crate) async fn make_views(&self) {
        let Self::Shared(store) = self else { return };
        let views = sql_views::all("rental");
        let views: Vec<(&str, &str)> = views.iter().map(|view| (view.name, view.create.as_str())).collect();
        if let Err(why) = store.make_views(&views).await {
            // No request needs them.
            tracing::warn!(why, "the views for SQL could not be made");
        }
    }

    /// The name that the status shows.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::File(_) => "redb",
            Self::Shared(_) => "postgres",
        }
    }

    /// Whether other servers can change the store.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    pub(crate) fn stats(&self) -> WriterStats {
        on_either!(self, store => store.stats())
    }

    /// Resolves when the store has failed for good. With a database it never resolves, because connections can recover.
    pub(crate) async fn failed(&self) -> String {
        match self {
            Self::File(store) => store.failed().await,
            Self::Shared(_) => std::future::pending().await,
        }
    }

    /// A snapshot of all rows, for long reads.
    pub(crate) async fn moment(&self) -> Result<Moment, StoreError> {
        Ok(match self {
            Self::File(store) => Moment::File(store.snapshot()),
            Self::Shared(store) => Moment::Shared(Box::new(store.snapshot().await?), tokio::runtime::Handle::current()),
        })
    }

    /// Closes the store after the queued batches are committed.
    pub(crate) async fn close(self) -> Result<(), StoreError> {
        match self {
            Self::File(store) => store.close(),
            Self::Shared(store) => {
                store.close().await;
                Ok(())
            }
        }
    }
}

impl Store for Engine {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        on_either!(self, store => store.get(keys))
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        on_either!(self, store => store.scan(span, limit))
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        on_either!(self, store => store.commit(batch))
    }

    fn ready(&self) -> Answer<'_, ()> {
        on_either!(self, store => store.ready())
    }
}

impl Versioned for Engine {
    fn version(&self) -> Answer<'_, u64> {
        on_either!(self, store => store.version())
    }

    fn batches_together(&self) -> usize {
        on_either!(self, store => store.batches_together())
    }

    fn change_version(&self, from: u64, to: u64, batch: Batch) -> Answer<'_, bool> {
        on_either!(self, store => store.change_version(from, to, batch))
    }
}

/// A snapshot of all rows.
pub(crate) enum Moment {
    File(redb::Snapshot),
    Shared(Box<postgres::Snapshot>, tokio::runtime::Handle),
}

impl Moment {
    /// The rows of a span, by rising key. Index entries are not followed. It blocks, so it needs a thread of its own.
    pub(crate) fn rows<'a>(
        &'a mut self,
        span: &Span,
    ) -> Result<Box<dyn Iterator<Item = Result<Record, StoreError>> + 'a>, StoreError> {
        match self {
            Self::File(snapshot) => Ok(Box::new(snapshot.span(span)?)),
            Self::Shared(snapshot, runtime) => {
                snapshot.seek(span);
                let pages = std::iter::from_fn(move || match runtime.block_on(snapshot.next()) {
                    Ok(page) if page.is_empty() => None,
                    Ok(page) => Some(page.into_iter().map(Ok).collect()),
                    Err(error) => Some(vec![Err(error)]),
                });
                Ok(Box::new(pages.flatten()))
            }
        }
    }
}

fn open_file(path: &Path, config: &Config) -> Result<Redb, String> {
    // A store that this server must not upgrade is refused before it is opened for writing, which changes the file.
    let never = config.store_upgrade == StoreUpgrade::Never;
    OPENING.store(true, Ordering::Relaxed);
    let open = if never { Redb::open } else { Redb::open_any_version };
    let opened = open(path, config.cache_size);
    OPENING.store(false, Ordering::Relaxed);
    opened.map_err(|error| match error.to_string() {
        text if never && text.contains(UPGRADE_COMMAND) => format!("{text}{UPGRADES_NEVER}"),
        text => text,
    })
}

async fn open_database(url: &str, request_timeout: Duration) -> Result<Postgres, String> {
    let wrong = |why: String| {
        format!("--store is no URL of a database: {why}; use postgres://USER@HOST:PORT/DATABASE, or redb:PATH")
    };
    let mut address = Address::parse(url).map_err(wrong)?;
    if address.lacks_password()
        && let Some(password) = password(&address)?
    {
        address.set_password(&password);
    }
    let roots = address.root_certificate().map(|path| fs::read(path).map_err(|error| unreadable(path, &error)));
    let settings = postgres::Settings {
        writer: edge::Clock.new_id(),
        patience: (request_timeout / WAITS).min(MOST_PATIENCE).max(Duration::from_millis(100)),
    };
    let opened = Postgres::open_any_version(&address, roots.transpose()?.as_deref(), settings).await;
    let store = opened.map_err(|error| error.to_string())?;
    if store.is_half_loaded().await.map_err(|error| error.to_string())? {
        return Err(format!(
            "{address} holds half of a store: copying into it was broken off. Drop its schema `rental` and copy again"
        ));
    }
    Ok(store)
}

/// What the core's errors name when a store has an older version.
const UPGRADE_COMMAND: &str = "rental-cli store upgrade";

/// The password from where libpq takes it: a variable, or a file that only its owner can read.
fn password(address: &Address) -> Result<Option<String>, String> {
    if let Ok(password) = std::env::var("PGPASSWORD") {
        return Ok(Some(password));
    }
    let Some(path) = std::env::var_os("PGPASSFILE") else { return Ok(None) };
    let path = Path::new(&path);
    let mode = fs::metadata(path).map_err(|error| unreadable(path, &error))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(format!("{} holds passwords and others can read it: chmod 600 it", path.display()));
    }
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    Ok(address.password_in(&text))
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}
