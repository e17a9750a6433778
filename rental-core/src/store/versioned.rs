//! The schema version of a store, and how it changes.

use super::{Answer, Batch, Store};

/// Version of what lies in a store: keys, values, indexes. `schema/vN.json` says what version N is. An older store is
/// upgraded ([`crate::upgrade`]); a newer one is refused.
pub const SCHEMA_VERSION: u64 = 3;

/// The first version that can be upgraded.
pub const OLDEST_VERSION: u64 = 2;

/// Refuses versions that this program can neither use nor upgrade.
///
/// # Errors
/// The sentence is for the operator.
pub(crate) fn known(version: u64) -> Result<(), String> {
    match version {
        OLDEST_VERSION..=SCHEMA_VERSION => Ok(()),
        newer if newer > SCHEMA_VERSION => Err(newer_than_this(newer)),
        older => Err(format!(
            "the store has schema version {older}, this program upgrades from version {OLDEST_VERSION} on: run the program \
             that wrote it"
        )),
    }
}

/// Why a store that can be upgraded is refused where nothing upgrades it.
#[must_use]
pub fn needs_upgrade(version: u64) -> String {
    if version == SCHEMA_VERSION {
        return "an upgrade of the store was begun and did not come to its end: run `rental-cli store upgrade`, or start the \
                server, to finish it"
            .into();
    }
    format!(
        "the store has schema version {version}, this program knows {SCHEMA_VERSION}: run `rental-cli store upgrade`, or \
         start the server, which upgrades it"
    )
}

/// Why a store of a newer version is refused.
#[must_use]
pub(crate) fn newer_than_this(version: u64) -> String {
    // PostgreSQL has signed numbers, and no program writes a version that large.
    let signed = version.cast_signed();
    if signed < 0 {
        return format!(
            "the store has schema version {signed}, which no program writes: it was changed by hand or is damaged; restore \
             it from a backup"
        );
    }
    format!(
        "the store has schema version {version}, this program knows {OLDEST_VERSION} to {SCHEMA_VERSION}: run the program \
         that wrote it or a newer one; there is no way back to an older version, except to restore a backup made before"
    )
}

/// A store whose schema version can change.
///
/// While the version is another one than the program knows, [`Store::commit`] fails and so do reads of engines that other
/// programs share.
pub trait Versioned: Store {
    /// The version that the store has now.
    fn version(&self) -> Answer<'_, u64>;

    /// Batches that an upgrade hands over before it waits for the first one. Engines that commit many of them together say
    /// a larger number; each has up to 4,000 rows.
    fn batches_together(&self) -> usize {
        8
    }

    /// Changes the version and applies the writes of `batch`, in one durable transaction. False, and nothing is written,
    /// when the version is not `from` or a check of `batch` does not hold.
    fn change_version(&self, from: u64, to: u64, batch: Batch) -> Answer<'_, bool>;
}
