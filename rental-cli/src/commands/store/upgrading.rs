//! What was restored from a backup of an older version becomes a store of the present one.

use crate::output::progress::Progress;
use rental_core::{
    store::{StoreError, Versioned, postgres::Postgres, redb::Redb},
    upgrade::{Step, Upgrade},
};
use std::path::Path;
use tokio::runtime::Builder;

/// Upgrades a file that was restored from a backup of an older version.
pub(super) fn file(path: &Path, cache_bytes: usize) -> Result<(), StoreError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|_| StoreError::Unavailable("no runtime starts".into()))?;
    let store = Redb::open_any_version(path, cache_bytes)?;
    runtime.block_on(quietly(&store)).map_err(StoreError::Unavailable)?;
    store.close()
}

/// Upgrades a database into which a backup of an older version was read.
pub(super) async fn database(store: &Postgres) -> Result<(), String> {
    quietly(store).await
}

async fn quietly(store: &dyn Versioned) -> Result<(), String> {
    let upgrade = Upgrade::begin(store).await.map_err(|error| error.to_string())?;
    let Some(mut upgrade) = upgrade else { return Ok(()) };
    let mut progress = Progress::count(None, "records upgraded");
    while upgrade.step().await.map_err(|error| error.to_string())? != Step::Done {
        progress.at(upgrade.progress().seen);
    }
    Ok(())
}
