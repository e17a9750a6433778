//! Checks whether a store needs an upgrade.

use super::{marker::Marker, steps};
use crate::store::{SCHEMA_VERSION, StoreError, Versioned, get_one, marks, versioned};
use std::task::Poll;

/// Whether a store needs an upgrade.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum State {
    /// The store has the present version and needs no upgrade.
    Current,
    /// The store has this older version.
    Older(u64),
    /// An upgrade of the store was interrupted. The marker contains its progress.
    Unfinished(Box<Marker>),
}

impl State {
    /// Whether the upgrade to the present version has begun. Then only its end makes the store usable. An upgrade that an
    /// older program began is not one of them: this program begins it anew.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        matches!(self, Self::Unfinished(marker) if marker.to == SCHEMA_VERSION)
    }

    /// The schema version before the upgrade.
    #[must_use]
    pub fn from(&self) -> u64 {
        match self {
            Self::Current => SCHEMA_VERSION,
            Self::Older(version) => *version,
            Self::Unfinished(marker) => marker.from,
        }
    }
}

/// Reads the version and the marker of a store.
///
/// # Errors
/// The program cannot use or upgrade the store ([`UpgradeError::Refused`]), or the store is not available.
pub async fn state(store: &dyn Versioned) -> Result<State, UpgradeError> {
    // Another server may begin an upgrade between the two reads. Then reads with the old version fail.
    let mut version = store.version().await?;
    let found = loop {
        versioned::known(version).map_err(UpgradeError::Refused)?;
        let error = match get_one(store, &marks::upgrade()).await {
            Ok(found) => break found,
            Err(StoreError::Damaged(row)) => return Err(UpgradeError::Refused(format!("{row}; restore a backup"))),
            Err(error) => error,
        };
        let asked = std::mem::replace(&mut version, store.version().await?);
        if version == asked {
            return Err(error.into());
        }
    };
    let Some(record) = found else {
        return Ok(if version == SCHEMA_VERSION { State::Current } else { State::Older(version) });
    };
    let marker = Marker::read(&record).map_err(UpgradeError::Refused)?;
    if marker.to == SCHEMA_VERSION && marker.steps != steps::name(marker.from) {
        return Err(UpgradeError::Refused(format!(
            "another program began to upgrade the store to schema version {}, and its steps differ from those of this \
             program: run that program until it is done",
            marker.to
        )));
    }
    Ok(State::Unfinished(Box::new(marker)))
}

/// Why an upgrade stopped.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UpgradeError {
    /// The engine failed. Committed batches stay, and the next attempt continues after them.
    Store(StoreError),
    /// This program cannot use or upgrade the store. The text is a sentence for the operator.
    Refused(String),
}

impl From<StoreError> for UpgradeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl std::fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => write!(f, "{error}"),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for UpgradeError {}

/// Lets other tasks of the thread run, because reads of an embedded engine never yield.
pub(super) async fn yield_to_other_tasks() {
    let mut waited = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
