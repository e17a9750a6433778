//! Upgrades stores that were restored from a backup of an older version.

use super::engines::{CACHE_BYTES, runtime};
use crate::output::progress::Progress;
use rental_core::{
    store::{StoreError, Versioned, redb::Redb},
    upgrade::{Step, Upgrade},
};
use std::path::Path;

/// Upgrades a restored file.
pub(super) fn upgrade_file(path: &Path) -> Result<(), StoreError> {
    let runtime = runtime().map_err(|_| StoreError::Unavailable("no runtime starts".into()))?;
    let store = Redb::open_any_version(path, CACHE_BYTES)?;
    runtime.block_on(upgrade(&store)).map_err(StoreError::Unavailable)?;
    store.close()
}

/// Upgrades a restored store.
pub(super) async fn upgrade(store: &impl Versioned) -> Result<(), String> {
    let upgrade = Upgrade::begin(store).await.map_err(|error| error.to_string())?;
    let Some(mut upgrade) = upgrade else { return Ok(()) };
    let mut progress = Progress::count(None, "records upgraded");
    while upgrade.step().await.map_err(|error| error.to_string())? != Step::Done {
        progress.at(upgrade.progress().seen);
    }
    Ok(())
}
