//! A whole store from an archive into an empty database.

use super::engine::Postgres;
use crate::store::{
    Batch, Commit, Key, Prior, SCHEMA_VERSION, Span, Store, StoreError, Versioned, Write,
    archive::{ArchiveError, Reader, Summary, digest_row},
    marks, versioned,
};
use sha2::{Digest, Sha256};
use std::{io::Read, time::Duration};

/// Most rows and bytes of rows in one transaction.
const ROWS: usize = 1000;
const BYTES: usize = 4 << 20;
/// Times that a transaction is written again when its outcome is not known: the same rows, so that nothing changes by it.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(500);

/// Why there was no load.
#[derive(Debug)]
pub enum LoadError {
    /// The archive is at fault.
    Archive(ArchiveError),
    /// The archive holds a store of another version.
    Version(u64),
    /// There are rows in the database already.
    NotEmpty,
    /// The database is at fault.
    Store(StoreError),
}

impl From<StoreError> for LoadError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Postgres {
    /// Whether a load was begun and did not come to its end: what is there is not whole.
    ///
    /// # Errors
    /// The database cannot serve.
    pub async fn is_half_loaded(&self) -> Result<bool, StoreError> {
        // Another server may upgrade the store between two reads: then reads of the version before fail, and asking for the
        // version again lets this one go on.
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

    /// Writes every row of an archive into this database, which must be empty, then reads all of them back. Until the
    /// end there is a mark that keeps servers from using what is half there. `moves` tells which rows mean something in
    /// another store; the others are left out. `progress` is told the rows so far, those that were read back included.
    /// `upgrade` takes rows of an older version to the present one.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub async fn load<R: Read>(
        &self,
        archive: &mut Reader<R>,
        moves: impl Fn(&Key) -> bool,
        progress: &mut dyn FnMut(u64),
        upgrade: impl AsyncFnOnce(&Self) -> Result<(), String>,
    ) -> Result<Summary, LoadError> {
        let version = archive.header().schema_version;
        versioned::known(version).map_err(|_| LoadError::Version(version))?;
        if !self.scan(&Span::everything(), 1).await?.is_empty() {
            return Err(LoadError::NotEmpty);
        }
        let mut mark = Batch::default();
        mark.mark(marks::loading(), Prior::New);
        // As the rows of an older version are written, so is their version: nothing else opens them.
        if !self.change_version(SCHEMA_VERSION, version, mark).await? {
            return Err(LoadError::NotEmpty);
        }
        let (mut waiting, mut size, mut rows, mut written) = (Batch::default(), 0, 0u64, Sha256::new());
        while let Some(frame) = archive.next_frame().map_err(LoadError::Archive)? {
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
        let summary = archive.summary().cloned().ok_or(LoadError::Archive(ArchiveError::Unread))?;
        self.put(waiting).await?;
        self.verify(rows, written, progress).await?;
        if version < SCHEMA_VERSION {
            upgrade(self).await.map_err(|why| LoadError::Store(StoreError::Unavailable(why)))?;
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
                Ok(Commit::Stale(key)) => return Err(StoreError::Corrupt(format!("{key:?} was in the way"))),
                Err(error @ (StoreError::Corrupt(_) | StoreError::Damaged(_))) => return Err(error),
                Err(error) => last = error,
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(last)
    }

    async fn verify(&self, rows: u64, written: Sha256, progress: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
        let (mut snapshot, mut digest, mut found) = (self.snapshot().await?, Sha256::new(), 0);
        loop {
            let page = snapshot.next().await?;
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
        Err(StoreError::Corrupt(why))
    }
}
