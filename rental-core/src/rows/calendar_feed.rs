//! The row of a calendar of others: its sealed address, and when it is read next. `operations/calendar_sync.rs` makes and reads
//! it.

use crate::{
    error::Error,
    store::Record,
    value::{SealedSecret, Timestamp},
};
use serde::{Deserialize, Serialize};

/// The value of the row of a calendar feed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedFeed {
    /// Where the calendar is: a secret, sealed with a master key. `None` when it was lost, and once the feed is deleted.
    pub sealed: Option<SealedSecret>,
    /// When it is read next. A server that reads it sets this ahead first, so that no other one reads it.
    pub poll_at: Timestamp,
    /// When the last reading began.
    pub taken_at: Option<Timestamp>,
    /// The `ETag` of the last response whose events all became blocks.
    pub etag: Option<String>,
    /// How many readings in a row have failed.
    pub failures: u32,
    /// Whether the feed was deleted. Its blocks that have not ended are cancelled then, and the row is removed.
    pub removed: bool,
}

impl ImportedFeed {
    /// The row of a feed that is read as soon as possible.
    #[must_use]
    pub fn new(sealed: Option<SealedSecret>, now: Timestamp) -> Self {
        Self { sealed, poll_at: now, taken_at: None, etag: None, failures: 0, removed: false }
    }

    /// Parses a row.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the value is not one of a calendar feed.
    pub fn read(row: &Record) -> Result<Self, Error> {
        crate::value::read_json(&row.value).map_err(|error| Error::damaged(&row.key, &error))
    }
}
