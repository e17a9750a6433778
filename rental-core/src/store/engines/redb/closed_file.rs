//! Reads a closed file without changing it, even when the file is damaged.
//!
//! redb writes to a file while it opens it and checks its page checksums. Here the file is opened read-only, and these
//! writes stay in memory. A file with wrong checksums is read page by page instead; see [`Pages`].

use super::{
    file,
    pages::Pages,
    read_only::ReadOnlyBackend,
    row, start_check,
    tables::{ROWS, Rows, read, unavailable},
};
use crate::store::{DamagedPage, Finding, Inspection, Key, Record, StoreError};
use redb::{
    Builder, Database, DatabaseError, ReadOnlyDatabase, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    StorageError, backends::FileBackend,
};
use std::{
    fs::File,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// A file that no program has open, read-only.
pub struct ClosedFile(Reader);

enum Reader {
    /// The checksums of all its pages are right.
    Sound { rows: Rows, _db: Database },
    /// Some are not, as the text says.
    Damaged(Pages, String),
}

impl ClosedFile {
    /// Opens the file read-only and checks the checksum of every page in use. Wrong checksums are no error here; see
    /// [`Inspection::pages`].
    ///
    /// # Errors
    /// The file does not exist, is open in another process, has another version, or is damaged so that it cannot be opened.
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        Self::of(path, cache_bytes, file::Versions::Present, None)
    }

    /// `stated` is the schema version of a damaged file that has lost it.
    pub(super) fn of(
        path: &Path,
        cache_bytes: usize,
        versions: file::Versions,
        stated: Option<u64>,
    ) -> Result<Self, StoreError> {
        let open = AssertUnwindSafe(|| {
            let db = unchanged(path, cache_bytes, versions, Checksums::Checked)?;
            let rows = db.begin_read().map_err(unavailable)?.open_table(ROWS).map_err(unavailable)?;
            // Pages whose checksums are right and that cannot be read all the same were written with the damage.
            if is_out_of_order(&rows).unwrap_or(true) {
                let problem = format!(
                    "{} is damaged (its rows cannot be read in their order); restore it from a backup",
                    path.display()
                );
                return Err(StoreError::DamagedStore(problem));
            }
            Ok(Reader::Sound { rows, _db: db })
        });
        match catch_unwind(open).unwrap_or_else(|_| Err(file::damaged(path))) {
            Ok(sound) => Ok(Self(sound)),
            Err(StoreError::DamagedStore(damage) | StoreError::Unreadable(damage)) => {
                match Pages::open(path, versions, stated) {
                    // Its rows may all be sound, and then no backup is needed.
                    Ok(pages) => {
                        // Both find the damaged pages.
                        pages.walk(&mut |_| true);
                        start_check::read_own_tables(&pages);
                        Ok(Self(Reader::Damaged(pages, file::without_advice(&damage).to_owned())))
                    }
                    Err(refused) => Err(refused.of(path, &damage)),
                }
            }
            Err(error) => Err(error),
        }
    }
}

impl Inspection for ClosedFile {
    fn pages(&self) -> Result<(), &str> {
        match &self.0 {
            Reader::Sound { .. } => Ok(()),
            Reader::Damaged(_, damage) => Err(damage),
        }
    }

    fn damaged_pages(&self) -> Vec<DamagedPage> {
        match &self.0 {
            Reader::Sound { .. } => Vec::new(),
            Reader::Damaged(pages, _) => pages.damaged(),
        }
    }

    fn count(&self) -> Option<u64> {
        match &self.0 {
            Reader::Sound { rows, .. } => rows.len().ok(),
            Reader::Damaged(pages, _) => Some(pages.count()),
        }
    }

    fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        match &self.0 {
            Reader::Sound { rows, .. } => read(rows, key),
            Reader::Damaged(pages, _) => pages.get(key),
        }
    }

    fn walk(&self, each: &mut dyn FnMut(Finding) -> bool) {
        let of_row = |key: &[u8], stored: &[u8]| {
            row::decode(Key::from_bytes(key), stored).map_or_else(Finding::Damaged, Finding::Row)
        };
        match &self.0 {
            Reader::Sound { rows, .. } => {
                let mut last = None;
                let mut walk = || -> Result<(), StorageError> {
                    for found in rows.iter()? {
                        let (key, stored) = found?;
                        last = Some(Key::from_bytes(key.value()));
                        if !each(of_row(key.value(), stored.value())) {
                            break;
                        }
                    }
                    Ok(())
                };
                if let Err(error) = walk() {
                    each(Finding::Gap(last, error.to_string()));
                }
            }
            Reader::Damaged(pages, _) => pages.walk(&mut |found| {
                each(match found {
                    Ok((key, stored)) => of_row(key, stored),
                    Err((after, why)) => Finding::Gap(after, why),
                })
            }),
        }
    }
}

/// Whether a key is not behind the one before it. A bit of a key flipped in a page, and a write into this page gave it a right checksum.
fn is_out_of_order(rows: &Rows) -> Result<bool, StorageError> {
    let mut before = Vec::new();
    for (at, found) in rows.iter()?.enumerate() {
        let (key, _) = found?;
        if at > 0 && key.value() <= before.as_slice() {
            return Ok(true);
        }
        before.clear();
        before.extend_from_slice(key.value());
    }
    Ok(false)
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
    let db = builder
        .create_with_backend(ReadOnlyBackend::new(file, len))
        .map_err(|error| file::refusal_of_read(path, error))?;
    file::recognize(&db, path, versions)?;
    Ok(db)
}
