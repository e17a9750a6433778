//! Loads an archive into an empty database.

use super::{address::Address, engine::Postgres};
use crate::store::{
    Batch, Commit, Prior, Restore, RestoreError, SCHEMA_VERSION, Snapshot as _, Span, Store, StoreError, Versioned,
    Write,
    archive::{ArchiveError, Summary, digest_row},
    marks, versioned,
};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// Most rows and bytes of rows in one transaction.
const ROWS: usize = 1000;
const BYTES: usize = 4 << 20;
/// How often a batch is committed again after an error. It sets the same rows, so a repetition is harmless.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(500);

impl Postgres {
    /// Whether an earlier load was interrupted, so that the store is incomplete.
    ///
    /// # Errors
    /// The database is not available.
    pub async fn is_half_loaded(&self) -> Result<bool, StoreError> {
        // Another server may upgrade the store between two reads. Then reads with the old version fail, and reading the
        // version again lets the next read succeed.
        let mut version = self.version().await?;
        loop {
            let error = match self.get(&[marks::loading()]).await {
                Ok(mut found) => return Ok(found.pop().flatten().is_some()),
                Err(error) => error,
            };
            let asked = std::mem::replace(&mut version, self.version().await?);
            if version == asked {
                return Err(error);
            }
        }
    }

    /// Writes the rows of an archive into this database, which must be empty, and reads them back to verify them. Until
    /// the end a marker row keeps programs from using the incomplete store.
    pub(super) async fn load(&self, address: &Address, restore: Restore<'_>) -> Result<Summary, RestoreError> {
        let Restore { archive, moves, progress, upgrade } = restore;
        let version = archive.header().schema_version;
        versioned::known(version).map_err(|_| RestoreError::Version(version))?;
        let not_empty = || {
            let problem = format!("{address} already contains rows; nothing was written");
            RestoreError::Exists(problem, "choose an empty database, or drop the schema `rental`")
        };
        if !self.scan(&Span::everything(), 1).await?.is_empty() {
            return Err(not_empty());
        }
        let mut mark = Batch::default();
        mark.mark(marks::loading(), Prior::New);
        // The database gets the version of the archive's rows, so that no program reads them as those of another version.
        if !self.change_version(SCHEMA_VERSION, version, mark).await? {
            return Err(not_empty());
        }
        let (mut waiting, mut size, mut rows, mut written) = (Batch::default(), 0, 0u64, Sha256::new());
        while let Some(frame) = archive.next_frame()? {
            for record in frame.into_iter().filter(|record| moves(&record.key)) {
                digest_row(&mut written, &record);
                rows += 1;
                size += record.key.as_bytes().len() + record.value.len();
                waiting.writes.push(Write::Put(record.key, record.revision, record.value, Prior::Any));
                if waiting.writes.len() >= ROWS || size >= BYTES {
                    self.put(std::mem::take(&mut waiting)).await?;
                    size = 0;
                    progress(rows);
                }
            }
        }
        let summary = archive.summary().cloned().ok_or(ArchiveError::Unread)?;
        self.put(waiting).await?;
        self.verify(rows, written, progress).await?;
        if version < SCHEMA_VERSION {
            upgrade(self).await.map_err(StoreError::Unavailable)?;
        }
        let mut done = Batch::default();
        done.delete(marks::loading());
        self.put(done).await?;
        Ok(summary)
    }

    async fn put(&self, batch: Batch) -> Result<(), StoreError> {
        let mut last = StoreError::Busy;
        for _ in 0..ATTEMPTS {
            match self.commit(batch.clone()).await {
                Ok(Commit::Applied) => return Ok(()),
                Ok(Commit::Stale(key)) => return Err(StoreError::DamagedStore(format!("{key:?} was in the way"))),
                Err(error @ (StoreError::DamagedStore(_) | StoreError::Damaged(_))) => return Err(error),
                Err(error) => last = error,
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(last)
    }

    async fn verify(&self, rows: u64, written: Sha256, progress: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
        let (mut snapshot, mut digest, mut found) = (self.snapshot().await?, Sha256::new(), 0);
        let mut rest = Span::everything();
        loop {
            let page = snapshot.next(&mut rest).await?;
            if page.is_empty() {
                break;
            }
            for record in page.iter().filter(|record| record.key != marks::loading()) {
                digest_row(&mut digest, record);
                found += 1;
            }
            progress(rows + found);
        }
        if found == rows && digest.finalize() == written.finalize() {
            return Ok(());
        }
        let why =
            format!("{found} of {rows} rows were read back as they were written; does somebody else write to it?");
        Err(StoreError::DamagedStore(why))
    }
}
