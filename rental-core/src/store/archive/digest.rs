//! A digest of rows. A restore compares the digest of the written rows with that of the rows it reads back.

use crate::store::Record;
use sha2::{Digest, Sha256};

/// Adds a row to a digest.
pub(in crate::store) fn digest_row(digest: &mut Sha256, record: &Record) {
    for part in [record.key.as_bytes(), &record.revision.to_be_bytes(), &record.value] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
}
