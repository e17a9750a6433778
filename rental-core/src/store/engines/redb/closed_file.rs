//! Reads a closed file without changing it.
//!
//! redb writes to a file while it opens it and checks its page checksums. Here the file is opened read-only, and these
//! writes stay in memory.

use super::{
    file,
    read_only::ReadOnlyBackend,
    snapshot::Snapshot,
    tables::{read_one, snapshot, without_panic},
};
use crate::store::{Finding, Inspection, Key, Record, StoreError};
use redb::{Builder, Database, ReadOnlyDatabase, backends::FileBackend};
use std::{
    fs::File,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

/// A file that no program has open, read-only.
pub struct ClosedFile {
    rows: Snapshot,
    _db: Database,
    /// Why its pages cannot be trusted.
    damage: Option<String>,
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
        let open = |checksums| {
            let open = AssertUnwindSafe(|| {
                let db = unchanged(path, cache_bytes, versions, checksums)?;
                Ok(Self { rows: Snapshot(Arc::new(snapshot(&db)?)), _db: db, damage: None })
            });
            catch_unwind(open).unwrap_or_else(|_| Err(file::damaged(path)))
        };
        match open(Checksums::Checked) {
            // The rows may tell which of them are damaged.
            Err(StoreError::DamagedStore(damage)) => match open(Checksums::AfterCrash) {
                Ok(opened) => Ok(Self { damage: Some(damage), ..opened }),
                Err(_) => Err(StoreError::DamagedStore(damage)),
            },
            opened => opened,
        }
    }
}

impl Inspection for ClosedFile {
    fn pages(&self) -> Result<(), &str> {
        self.damage.as_deref().map_or(Ok(()), Err)
    }

    fn count(&self) -> Option<u64> {
        self.rows.count().ok()
    }

    fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        read_one(&self.rows.0, key)
    }

    fn walk(&self, each: &mut dyn FnMut(Finding) -> bool) {
        let mut last = None;
        let mut rows = match self.rows.rows() {
            Ok(rows) => rows,
            Err(error) => {
                each(Finding::Gap(None, error.to_string()));
                return;
            }
        };
        while let Some(row) = without_panic(|| Ok(rows.next())).unwrap_or_else(|error| Some(Err(error))) {
            let found = match row {
                Ok(record) => {
                    last = Some(record.key.clone());
                    Finding::Row(record)
                }
                Err(StoreError::Damaged(row)) => {
                    last = Some(row.key.clone());
                    Finding::Damaged(row)
                }
                Err(error) => {
                    each(Finding::Gap(last, error.to_string()));
                    return;
                }
            };
            if !each(found) {
                return;
            }
        }
    }
}

/// Opens the file without ever changing it: what redb writes stays in memory.
pub(super) fn open_unchanged(
    path: &Path,
    cache_bytes: usize,
    versions: file::Versions,
) -> Result<Database, StoreError> {
    let open = AssertUnwindSafe(|| unchanged(path, cache_bytes, versions, Checksums::AfterCrash));
    catch_unwind(open).unwrap_or_else(|_| Err(file::damaged(path)))
}

/// Refuses a closed file whose version is not accepted before it is opened for writing, because redb then changes the file. A
/// file that was not closed is recovered first: its opening refuses it. Errors of redb are reported by the opening, too.
pub(super) fn refuse_other_version(path: &Path, versions: file::Versions) -> Result<(), StoreError> {
    let look = AssertUnwindSafe(|| match ReadOnlyDatabase::open(path) {
        Ok(db) => file::recognize(&db, path, versions),
        Err(_) => Ok(()),
    });
    catch_unwind(look).unwrap_or(Ok(()))
}

/// Whether the checksums of all pages are checked when a file is opened.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Checksums {
    /// Always.
    Checked,
    /// Only when the file was not closed.
    AfterCrash,
}

fn unchanged(
    path: &Path,
    cache_bytes: usize,
    versions: file::Versions,
    checksums: Checksums,
) -> Result<Database, StoreError> {
    let failed = |error: io::Error| {
        let next = match error.kind() {
            io::ErrorKind::NotFound => "; check the path, which is that of the file behind `redb:`",
            io::ErrorKind::PermissionDenied => "; run this as the user of the server, or as root",
            _ => "",
        };
        StoreError::Unavailable(format!("cannot read {}: {error}{next}", path.display()))
    };
    file::refuse_other_kinds(path)?;
    let file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    if len == 0 {
        let problem = format!("{} is empty, so it is no store; restore it from a backup", path.display());
        return Err(StoreError::DamagedStore(problem));
    }
    let file = FileBackend::new(file).map_err(|error| file::refusal(path, error))?;
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes).set_check_integrity_on_open(checksums == Checksums::Checked);
    let db =
        builder.create_with_backend(ReadOnlyBackend::new(file, len)).map_err(|error| file::refusal(path, error))?;
    file::recognize(&db, path, versions)?;
    Ok(db)
}
