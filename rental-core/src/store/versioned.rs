//! The schema version of a store and its change.

use super::{Answer, Batch, Store};

/// The schema version that this program writes: the layout of keys, values and indexes. `schema/vN.json` describes version
/// N. [`crate::upgrade`] upgrades an older store; a newer one is refused.
pub const SCHEMA_VERSION: u64 = 13;

/// The oldest schema version that this program can upgrade.
pub const OLDEST_VERSION: u64 = 12;

/// Checks that this program can use or upgrade a schema version.
///
/// # Errors
/// A sentence for the operator that says why it cannot.
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

/// The message for the operator when a store needs an upgrade first.
#[must_use]
pub fn needs_upgrade(version: u64) -> String {
    if version == SCHEMA_VERSION {
        return "an upgrade or a repair of the store was begun and did not come to its end: run `rental-cli store upgrade` (after \
                a repair `rental-cli store repair`), or start the server, to finish it"
            .into();
    }
    format!(
        "the store has schema version {version}, this program knows {SCHEMA_VERSION}: run `rental-cli store upgrade`, or \
         start the server, which upgrades it"
    )
}

/// The message for the operator when the store's version is newer than the program's.
#[must_use]
pub(crate) fn newer_than_this(version: u64) -> String {
    // PostgreSQL stores the version as a signed number. A negative one is damage.
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
/// While the store has another version than the program, [`Store::commit`] fails. In an engine that several servers share,
/// reads fail too.
pub trait Versioned: Store {
    /// Reads the schema version of the store.
    fn version(&self) -> Answer<'_, u64>;

    /// How many batches an upgrade queues before it waits for the first one. An engine that commits many batches together
    /// returns a larger number. A batch has up to 4,000 rows.
    fn batches_together(&self) -> usize {
        8
    }

    /// Changes the version and applies `batch`, in one durable transaction. Returns false and writes nothing when the
    /// version is not `from` or a check of `batch` does not hold.
    fn change_version(&self, from: u64, to: u64, batch: Batch) -> Answer<'_, bool>;
}
