//! Reads a closed file without changing it, even when the file is damaged.
//!
//! redb writes to a file while it opens it and checks its page checksums. Here the file is opened read-only, and these
//! writes stay in memory. Damaged pages can make redb panic or read in a cycle. This module catches both and continues
//! after the damaged pages.

use super::{
    file,
    read_only::ReadOnlyBackend,
    row,
    tables::{ROWS, Rows, read, unavailable},
};
use crate::store::{Finding, Inspection, Key, Record, StoreError, after};
use redb::{
    Builder, Database, DatabaseError, ReadOnlyDatabase, ReadableDatabase, ReadableTableMetadata, backends::FileBackend,
};
use std::{
    fs::File,
    io,
    ops::Bound,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Most reads of the file between two rows. More of them mean that damaged pages refer to each other in a cycle.
const MOST_READS: u64 = 4096;
/// Most attempts to continue after damaged pages.
const MOST_GAPS: usize = 10_000;

/// A file that no program has open, read-only.
pub struct ClosedFile {
    path: PathBuf,
    cache_bytes: usize,
    versions: file::Versions,
    open: Mutex<Option<(Database, Arc<Rows>)>>,
    pages: Result<(), String>,
    reads_left: Arc<AtomicU64>,
}

impl ClosedFile {
    /// Opens the file read-only and checks the checksum of every page in use. Wrong checksums are no error here; see
    /// [`Inspection::pages`].
    ///
    /// # Errors
    /// The file does not exist, is open in another process, has another version, or is damaged so that it cannot be opened.
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        Self::of(path, cache_bytes, file::Versions::Present)
    }

    pub(super) fn of(path: &Path, cache_bytes: usize, versions: file::Versions) -> Result<Self, StoreError> {
        let reads_left = Arc::new(AtomicU64::new(u64::MAX));
        let mut closed =
            Self { path: path.to_owned(), cache_bytes, versions, open: Mutex::new(None), pages: Ok(()), reads_left };
        match closed.database(Pages::Checked) {
            Ok(open) => closed.open = Mutex::new(Some(open)),
            Err(StoreError::DamagedStore(detail)) => {
                closed.reads_left.store(MOST_READS, Ordering::Relaxed);
                let open = closed.database(Pages::Unchecked).map_err(|_| StoreError::DamagedStore(detail.clone()))?;
                closed.open = Mutex::new(Some(open));
                // Its rows may all be sound, and then no backup is needed.
                closed.pages = Err(detail.trim_end_matches("; restore it from a backup").to_owned());
            }
            Err(error) => return Err(error),
        }
        Ok(closed)
    }

    /// Runs `act` with the limit on reads. A panic becomes an error, and the next call opens the file again.
    fn bounded<T>(&self, act: impl FnOnce(&Rows) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if self.pages.is_err() {
            self.reads_left.store(MOST_READS, Ordering::Relaxed);
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (db, rows) = match open.take() {
            Some(open) => open,
            None => self.database(Pages::Unchecked)?,
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| act(&rows)));
        match outcome {
            // After a failed read (the limit causes one, too) redb fails all reads of this handle, so it is dropped.
            Ok(Err(error @ StoreError::Unavailable(_))) => Err(error),
            Ok(outcome) => {
                *open = Some((db, rows));
                outcome
            }
            Err(_) => Err(StoreError::DamagedStore("pages on the way to it are damaged".into())),
        }
    }

    fn database(&self, pages: Pages) -> Result<(Database, Arc<Rows>), StoreError> {
        let open = AssertUnwindSafe(|| {
            let (path, versions) = (&self.path, self.versions);
            let db = unchanged(path, self.cache_bytes, versions, pages, Arc::clone(&self.reads_left))?;
            let rows = db.begin_read().map_err(unavailable)?.open_table(ROWS).map_err(unavailable)?;
            Ok((db, Arc::new(rows)))
        });
        catch_unwind(open).unwrap_or_else(|_| Err(cannot_be_opened(&self.path)))
    }
}

impl Inspection for ClosedFile {
    fn pages(&self) -> Result<(), &str> {
        match &self.pages {
            Ok(()) => Ok(()),
            Err(detail) => Err(detail),
        }
    }

    fn count(&self) -> Option<u64> {
        self.bounded(|rows| rows.len().map_err(unavailable)).ok()
    }

    fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.bounded(|rows| read(rows, key))
    }

    fn walk(&self, each: &mut dyn FnMut(Finding) -> bool) {
        let (mut from, mut last): (Bound<Vec<u8>>, Option<Vec<u8>>) = (Bound::Unbounded, None);
        let mut cut = 0;
        for _ in 0..MOST_GAPS {
            let range = self.bounded(|rows| {
                let from = from.as_ref().map(Vec::as_slice);
                rows.range::<&[u8]>((from, Bound::Unbounded)).map_err(unavailable)
            });
            let problem = match range {
                Ok(mut range) => loop {
                    let next = self.bounded(|_| {
                        let Some(next) = range.next() else { return Ok(None) };
                        let (key, value) = next.map_err(unavailable)?;
                        let key = Key::from_bytes(key.value());
                        Ok(Some((key.clone(), row::decode(key, value.value()))))
                    });
                    let (key, record) = match next {
                        Ok(None) => return,
                        Ok(Some(next)) => next,
                        Err(error) => break error,
                    };
                    if last.as_deref().is_some_and(|last| key.as_bytes() <= last) {
                        break StoreError::DamagedStore("the keys are out of order".into());
                    }
                    (last, cut) = (Some(key.as_bytes().to_vec()), 0);
                    let found = record.map_or_else(Finding::Damaged, Finding::Row);
                    if !each(found) {
                        return;
                    }
                },
                Err(error) => error,
            };
            if cut == 0 && !each(Finding::Gap(last.as_deref().map(Key::from_bytes), problem.to_string())) {
                return;
            }
            cut += 1;
            let Some(next) = resume_after(last.as_deref(), cut) else { return };
            from = Bound::Included(next);
        }
    }
}

/// Opens the file without ever changing it: what redb writes stays in memory.
pub(super) fn open_unchanged(
    path: &Path,
    cache_bytes: usize,
    versions: file::Versions,
) -> Result<Database, StoreError> {
    let unbounded = Arc::new(AtomicU64::new(u64::MAX));
    let open = AssertUnwindSafe(|| unchanged(path, cache_bytes, versions, Pages::Unchecked, unbounded));
    catch_unwind(open).unwrap_or_else(|_| Err(cannot_be_opened(path)))
}

/// Refuses a file whose version is not accepted before it is opened for writing, because redb then changes the file. Of a
/// file that was not closed, drops what the system has cached; it is repaired in memory first, unless older versions are accepted: a repair takes time. Errors of redb
/// are not reported here: the opening that follows reports them.
pub(super) fn refuse_other_version(
    path: &Path,
    cache_bytes: usize,
    versions: file::Versions,
) -> Result<(), StoreError> {
    let look = AssertUnwindSafe(|| match ReadOnlyDatabase::open(path) {
        Ok(db) => file::recognize(&db, path, versions),
        Err(DatabaseError::RepairAborted) => {
            file::drop_cached_pages(path);
            match versions {
                file::Versions::Upgradable => Ok(()),
                file::Versions::Present => match open_unchanged(path, cache_bytes, versions) {
                    Ok(_) | Err(StoreError::DamagedStore(_)) => Ok(()),
                    Err(error) => Err(error),
                },
            }
        }
        Err(_) => Ok(()),
    });
    catch_unwind(look).unwrap_or(Ok(()))
}

fn cannot_be_opened(path: &Path) -> StoreError {
    StoreError::DamagedStore(format!(
        "{} is damaged so that it cannot be opened; restore it from a backup",
        path.display()
    ))
}

fn unchanged(
    path: &Path,
    cache_bytes: usize,
    versions: file::Versions,
    pages: Pages,
    reads_left: Arc<AtomicU64>,
) -> Result<Database, StoreError> {
    let failed = |error: io::Error| {
        let next = match error.kind() {
            io::ErrorKind::NotFound => "; check the path, which is that of the file behind `redb:`",
            io::ErrorKind::PermissionDenied => "; run this as the user of the server, or as root",
            _ => "",
        };
        StoreError::Unavailable(format!("cannot read {}: {error}{next}", path.display()))
    };
    let file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    if len == 0 {
        let problem = format!("{} is empty, so it is no store; restore it from a backup", path.display());
        return Err(StoreError::DamagedStore(problem));
    }
    let file = FileBackend::new(file).map_err(|error| file::refusal(path, error))?;
    let backend = ReadOnlyBackend::new(file, len, reads_left);
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes).set_check_integrity_on_open(pages == Pages::Checked);
    let db = builder.create_with_backend(backend).map_err(|error| file::refusal(path, error))?;
    file::recognize(&db, path, versions)?;
    Ok(db)
}

/// Whether the checksums of all pages are checked when a file is opened.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Pages {
    Checked,
    Unchecked,
}

/// The key at which reading continues after damaged pages: the first one after all keys that share a prefix with the last
/// key read. Each attempt removes one more byte from the prefix. After that it tries each later first byte, because every
/// kind of row has its own.
fn resume_after(last: Option<&[u8]>, cut: usize) -> Option<Vec<u8>> {
    let last = last.unwrap_or(&[]);
    match last.len().checked_sub(cut) {
        Some(kept) if kept > 0 => Some(after(&Key::from_bytes(&last[..kept])).as_bytes().to_vec()),
        _ => {
            let tried = cut.saturating_sub(last.len());
            let first = last.first().map_or(0, |first| usize::from(*first) + 1);
            u8::try_from(first + tried).ok().map(|first| vec![first])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_gap_every_later_kind_of_row_is_tried() {
        let tried = |last: Option<&[u8]>| -> Vec<Vec<u8>> { (1..).map_while(|cut| resume_after(last, cut)).collect() };
        let all: Vec<Vec<u8>> = (0..=u8::MAX).map(|first| vec![first]).collect();
        assert_eq!(tried(None), all[1..]);
        // First after the keys that share a prefix with the last row, then each later first byte.
        assert_eq!(tried(Some(b"ab")), [vec![vec![b'b']], all[usize::from(b'b')..].to_vec()].concat());
        assert!(tried(Some(b"r")).contains(&vec![b'w']), "rows of servers lie behind the records");
    }
}
