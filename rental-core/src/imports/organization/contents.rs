//! What an export contains, in short: whether it has everything of an organization shows in one comparison.
//!
//! Times cannot tell. A write gets its times when it is prepared, and an export can take its snapshot between that and the
//! commit: the write is older than the export and not in it.

use super::spans;
use crate::{
    error::Error,
    store::{Pages, Record, Store},
    value::OrganizationId,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Rows in one scan.
const PAGE: usize = 500;

/// The records of an export: their number, and a hash of their keys and revisions. A record whose bytes change has another
/// revision.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Contents {
    /// The number of records.
    pub records: u64,
    /// The hash in hex.
    pub sha256: String,
}

/// Counts the records of [`spans`], in their order.
#[derive(Default)]
pub struct Counting {
    records: u64,
    hash: Sha256,
}

impl Counting {
    /// Adds the next record.
    pub fn add(&mut self, record: &Record) {
        let key = record.key.as_bytes();
        self.records += 1;
        self.hash.update((key.len() as u64).to_be_bytes());
        self.hash.update(key);
        self.hash.update(record.revision.to_be_bytes());
    }

    /// The contents, after the last record.
    #[must_use]
    pub fn finish(self) -> Contents {
        Contents { records: self.records, sha256: hex::encode(self.hash.finalize()) }
    }
}

/// What an export of this moment contains. It reads every record of the organization.
///
/// # Errors
/// A record is damaged, or the store is not available.
pub async fn contents(store: &dyn Store, organization: OrganizationId) -> Result<Contents, Error> {
    let mut counting = Counting::default();
    for span in spans(organization) {
        let mut pages = Pages::of(store, span, PAGE);
        while let Some(page) = pages.next().await? {
            for row in page {
                counting.add(&row.map_err(Error::Damaged)?);
            }
        }
    }
    Ok(counting.finish())
}
