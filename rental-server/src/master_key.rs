//! The master keys of this server: which of them the store needs, and the file that is read again while the server runs.
//!
//! `rental_core::webhooks::master_key` says how the key in use changes. A server whose file lacks it does not start.

use crate::{config::Config, edge, secrets::KeyFile};
use rental_core::{
    error::Error,
    resources::row_words::damage_in_words,
    rows::key,
    store::{Batch, Commit, Engine, Span, StoreError},
    tasks::Task,
    webhooks::{
        master_key::{InUse, Stored, Survey, survey},
        secret::{Fingerprint, MasterKeys},
    },
};
use std::{
    path::Path,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// The master keys of this server, and their file.
pub(crate) struct Keys {
    file: KeyFile,
    ring: RwLock<Arc<MasterKeys>>,
    /// Whether the file could not be read the last time.
    failing: AtomicBool,
}

impl Keys {
    pub(crate) fn new(file: KeyFile, ring: MasterKeys) -> Self {
        Self { file, ring: RwLock::new(Arc::new(ring)), failing: AtomicBool::new(false) }
    }

    pub(crate) fn ring(&self) -> Arc<MasterKeys> {
        Arc::clone(&self.ring.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the file again and makes sure that it is durable: another program may have appended a key.
    pub(crate) async fn reload(&self) -> Result<Arc<MasterKeys>, String> {
        self.change(|file| file.sync().and_then(|()| present(file))).await
    }

    /// Adds a new key to the file.
    pub(crate) async fn add(&self) -> Result<Arc<MasterKeys>, String> {
        self.change(KeyFile::add).await
    }

    /// Reads the file again, for a background task: a failure is logged once.
    pub(crate) async fn look(&self) {
        let outcome = self.change(present).await;
        if self.failing.swap(outcome.is_err(), Ordering::Relaxed) == outcome.is_err() {
            return;
        }
        match outcome {
            Ok(_) => tracing::info!("the file of master keys can be read again"),
            Err(why) => tracing::warn!(why, "the file of master keys cannot be read; the keys known so far are used"),
        }
    }

    /// Takes the keys that `work` returns. A key that was removed from the file is known until this process ends, so
    /// nothing fails before the next start.
    async fn change(&self, work: fn(&KeyFile) -> Result<MasterKeys, String>) -> Result<Arc<MasterKeys>, String> {
        let file = self.file.clone();
        let outcome = tokio::task::spawn_blocking(move || work(&file)).await;
        let keys = outcome.map_err(|error| format!("cannot read the file of master keys: {error}"))??;
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        *ring = Arc::new(keys.with_older(&ring));
        Ok(Arc::clone(&ring))
    }
}

fn present(file: &KeyFile) -> Result<MasterKeys, String> {
    file.read()?.ok_or_else(|| format!("{} is missing: put it back", file.path().display()))
}

/// The keys of this server, if they are those of the store. A store without sealed secrets takes the newest key of the
/// file, except a database that names its key already: other servers have that one.
///
/// # Errors
/// A line for the operator: the store needs another key, and what to do.
pub(crate) async fn open(store: &dyn Engine, config: &Config, path: Option<&Path>) -> Result<Keys, String> {
    let file = KeyFile::of(config, path)?;
    loop {
        let stored = Stored::read(store).await.map_err(in_words)?;
        if let Some(row) = &stored.damage {
            tracing::error!(row = damage_in_words(row), "the row of the master key is damaged; it is written again");
        }
        let replace = config.replace_master_key || !is_needed(store, &stored).await.map_err(in_words)?;
        let keys = match file.read()? {
            Some(keys) => keys,
            None if replace => file.add()?,
            None => return Err(refused(&format!("{} is missing", file.path().display()), stored.in_use.as_ref())),
        };
        let missing = stored.in_use.as_ref().map(|in_use| in_use.missing_in(&keys));
        match missing {
            Some(None) => {
                if config.replace_master_key {
                    tracing::warn!(
                        "--replace-master-key changes nothing: this is the key of the store; remove the flag"
                    );
                }
                return Ok(Keys::new(file, keys));
            }
            Some(Some(name)) if !replace => {
                let what = format!("{} does not hold it", file.path().display());
                let in_use = InUse { current: name.clone(), former: None };
                return Err(refused(&what, Some(&in_use)));
            }
            _ => {}
        }
        let found = survey(store, &keys).await.map_err(in_words)?;
        if found.unreadable + found.unreadable_calendar_feeds > 0 && !replace {
            let Survey { endpoints, unreadable, calendar_feeds, unreadable_calendar_feeds, .. } = found;
            let what = format!(
                "{} does not open the secrets of {unreadable} of {endpoints} webhook endpoints and the addresses of \
                 {unreadable_calendar_feeds} of {calendar_feeds} calendar feeds",
                file.path().display()
            );
            return Err(refused(&what, None));
        }
        if begin(store, &stored, keys.newest().fingerprint(), &found).await.map_err(in_words)? {
            report(&found, keys.newest().fingerprint());
            return Ok(Keys::new(file, keys));
        }
        // Another server was faster: look at what it wrote.
    }
}

/// Whether the store needs a key that exists already: it has sealed secrets, or other servers know the key.
async fn is_needed(store: &dyn Engine, stored: &Stored) -> Result<bool, Error> {
    let named = stored.in_use.is_some() || stored.damage.is_some();
    Ok((named && store.is_shared())
        || has_rows(store, key::secrets_of_all()).await?
        || has_rows(store, key::calendar_feeds()).await?)
}

/// Whether a span has rows, or may have rows that damaged pages hide.
async fn has_rows(store: &dyn Engine, span: Span) -> Result<bool, Error> {
    match store.scan(&span, 1).await {
        Err(StoreError::Damaged(_)) => Ok(true),
        found => Ok(!found?.is_empty()),
    }
}

/// Makes this key that of the store. A task seals with it what older keys of the file open. False if the row has changed.
async fn begin(store: &dyn Engine, stored: &Stored, newest: &Fingerprint, found: &Survey) -> Result<bool, Error> {
    let mut batch = Batch::default();
    stored.change(&mut batch, &InUse { current: newest.clone(), former: None })?;
    if found.endpoints > 0 || found.calendar_feeds > 0 {
        Task::sealing_anew(edge::now()).begin_again(store, &mut batch).await?;
    }
    Ok(store.commit(batch).await? == Commit::Applied)
}

/// Why this server does not start, and what to do.
fn refused(what: &str, in_use: Option<&InUse>) -> String {
    let key = in_use.map_or_else(|| "a master key".into(), |in_use| format!("master key {}", in_use.current));
    format!(
        "the webhook secrets of this store are sealed with {key}, and {what}: put the file with that key back \
         from where you keep it (--master-key-file names it). If it is lost, start once with --replace-master-key, then give \
         each webhook endpoint a new secret with `rental-cli webhook-endpoints rotate-secret`, and make calendar feeds again"
    )
}

/// Tells about a key that has become that of the store.
fn report(found: &Survey, newest: &Fingerprint) {
    if found.unreadable_calendar_feeds > 0 {
        tracing::warn!(
            master_key = %newest, unreadable = found.unreadable_calendar_feeds, calendar_feeds = found.calendar_feeds,
            "the master key was replaced; the addresses of these calendar feeds cannot be opened any more, and they are not \
             read: their organizations make them again"
        );
    }
    if found.unreadable == 0 {
        return tracing::info!(master_key = %newest, webhook_endpoints = found.endpoints, "the store has a master key");
    }
    let ids = found.unreadable_ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let more = found.unreadable - found.unreadable_ids.len() as u64;
    tracing::warn!(
        master_key = %newest, unreadable = found.unreadable, webhook_endpoints = found.endpoints, ids, more,
        "the master key was replaced; the secrets of these webhook endpoints cannot be opened any more, and nothing is sent \
         to them: give each a new one with `rental-cli webhook-endpoints rotate-secret ID`"
    );
}

fn in_words(error: Error) -> String {
    format!("cannot read the master key of the store: {error}")
}
