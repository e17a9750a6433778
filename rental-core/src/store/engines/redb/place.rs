//! The engine in the table of engines: `redb:PATH`.

use super::{
    closed_file::ClosedFile,
    engine::Redb,
    file::Versions,
    maintenance::{compact, restore_and_upgrade},
};
use crate::store::{
    Absent, Access, Answer, CommitObserver, Compacted, Engine, Inspection, Key, Maintenance, Opening, ParsedPlace,
    Place, Restore, Restoring, Scheme, Snapshot, StoreError, Tally,
};
use bytes::Bytes;
use std::{
    fmt,
    future::{Future, ready},
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

/// The engine in the table of engines.
pub const SCHEME: Scheme = Scheme { form: "redb:PATH", shared: false, parse };

fn parse(url: &str) -> Option<ParsedPlace> {
    let path = url.strip_prefix("redb:").filter(|path| !path.is_empty())?;
    // Messages show the path.
    if path.contains("://") || path.contains("password=") {
        return Some(Err("it has the address of a database behind `redb:`".into()));
    }
    Some(Ok(Arc::new(DataFile(path.into()))))
}

#[derive(Debug)]
struct DataFile(PathBuf);

impl fmt::Display for DataFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redb:{}", self.0.display())
    }
}

impl Place for DataFile {
    fn file(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn advice(&self) -> &'static str {
        "check the path, its permissions and the disk"
    }

    fn open<'a>(&'a self, access: Access, opening: &'a Opening<'a>) -> Answer<'a, Arc<dyn Engine>> {
        if opening.absent == Absent::Fail
            && let Err(error) = std::fs::metadata(&self.0)
        {
            let reason = format!("cannot read {}: {error}", self.0.display());
            return Box::pin(ready(Err(StoreError::Unavailable(reason))));
        }
        let (path, cache_bytes) = (&self.0, opening.cache_bytes);
        let opened = match access {
            Access::Unchanged => Redb::open_unchanged(path, cache_bytes),
            Access::Present => Redb::open(path, cache_bytes),
            Access::Upgradable => Redb::open_any_version(path, cache_bytes),
        };
        Box::pin(ready(opened.map(|store| Arc::new(store) as Arc<dyn Engine>)))
    }

    fn restore<'a>(&'a self, opening: &'a Opening<'a>, restore: Restore<'a>) -> Restoring<'a> {
        Box::pin(async move { Ok(restore_and_upgrade(&self.0, opening.cache_bytes, restore).await?.archive) })
    }

    fn maintenance(&self) -> Result<&dyn Maintenance, &'static str> {
        Ok(self)
    }
}

impl Maintenance for DataFile {
    fn inspect(&self, cache_bytes: usize) -> Result<Box<dyn Inspection>, StoreError> {
        Ok(Box::new(ClosedFile::open(&self.0, cache_bytes)?))
    }

    fn check_pages(&self, cache_bytes: usize) -> Result<(), StoreError> {
        let file = ClosedFile::of(&self.0, cache_bytes, Versions::Upgradable)?;
        file.pages().map_err(|damage| StoreError::DamagedStore(damage.to_owned()))
    }

    fn compact(&self, cache_bytes: usize) -> Result<Compacted, StoreError> {
        compact(&self.0, cache_bytes)
    }
}

impl Engine for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn observe(&self, observer: Arc<dyn CommitObserver>) {
        Self::observe(self, observer);
    }

    fn count(&self, tally: Arc<Tally>) {
        Self::count(self, tally);
    }

    fn failed(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(Self::failed(self))
    }

    fn stored<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Bytes>> {
        self.stored_bytes(key)
    }

    fn snapshot(&self) -> Answer<'_, Box<dyn Snapshot>> {
        Box::pin(ready(Ok(Box::new(Self::snapshot(self)) as Box<dyn Snapshot>)))
    }

    fn close(self: Arc<Self>) -> Answer<'static, ()> {
        Box::pin(ready(Arc::into_inner(self).map_or(Ok(()), Self::close)))
    }
}
