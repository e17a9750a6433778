//! Location of a store: a file or a database. Reads a store into an archive, and creates one from an archive.

use super::{
    engines::{CACHE_BYTES, connect, runtime},
    failures::{database_failure, store_failure, unusable_backup},
    restored,
};
use crate::{edge, failure::Failure, output::progress::Progress};
use rental_core::{
    rows::key,
    store::{
        OLDEST_VERSION, SCHEMA_VERSION, Span,
        archive::{Reader, Summary, Writer},
        postgres::{Address, LoadError},
        redb::{self, Redb, RestoreError},
    },
};
use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

/// Location of a store.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// `redb:PATH`.
    File(PathBuf),
    /// `postgres://...`.
    Database(Box<Address>),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "redb:{}", path.display()),
            Self::Database(address) => address.fmt(f),
        }
    }
}

impl Place {
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("redb", path)) if !path.is_empty() => Ok(Self::File(PathBuf::from(path))),
            Some(("postgres" | "postgresql", _)) => {
                let address = Address::parse(url).map_err(|why| format!("is not a valid database URL: {why}"))?;
                Ok(Self::Database(Box::new(address)))
            }
            _ => Err("is not a store; use redb:PATH or postgres://USER@HOST:PORT/DATABASE".into()),
        }
    }

    /// Whether both URLs are the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }

    /// Writes all rows to an archive, except the rows of running servers.
    pub(super) fn write(&self, out: impl Write) -> Result<Summary, Failure> {
        let by = concat!("rental-cli ", env!("CARGO_PKG_VERSION"));
        let broken = |error: io::Error| Failure::Io { doing: format!("read {self}"), error };
        let mut writer = Writer::new(out, SCHEMA_VERSION, by, edge::now()).map_err(broken)?;
        match self {
            Self::File(path) => {
                must_exist(path)?;
                let store = Redb::open(path, CACHE_BYTES).map_err(store_failure)?;
                for row in store.snapshot().rows().map_err(store_failure)? {
                    let row = row.map_err(store_failure)?;
                    if !key::is_of_servers(&row.key) {
                        writer.push(&row).map_err(broken)?;
                    }
                }
                store.close().map_err(store_failure)?;
            }
            Self::Database(address) => {
                let runtime = runtime()?;
                runtime.block_on(async {
                    let mut snapshot = connect(address).await?.snapshot().await.map_err(store_failure)?;
                    snapshot.seek(&Span::everything());
                    loop {
                        let page = snapshot.next().await.map_err(store_failure)?;
                        if page.is_empty() {
                            return Ok::<(), Failure>(());
                        }
                        for row in page.iter().filter(|row| !key::is_of_servers(&row.key)) {
                            writer.push(row).map_err(broken)?;
                        }
                    }
                })?;
            }
        }
        writer.finish().map(|(_, summary)| summary).map_err(broken)
    }

    /// Creates the store from an archive and verifies it by reading it back. `file` is the archive's name in messages.
    pub(super) fn read(&self, archive: &mut Reader<impl Read>, file: &Path) -> Result<Summary, Failure> {
        let mut progress = Progress::count(None, "rows written and read back");
        match self {
            Self::File(path) => {
                let mut upgrade = |path: &Path| restored::upgrade_file(path);
                let made =
                    redb::restore_and_upgrade(path, CACHE_BYTES, archive, &mut |rows| progress.at(rows), &mut upgrade);
                made.map(|made| made.archive).map_err(|error| match error {
                    RestoreError::Archive(error) => unusable_backup(file, error),
                    RestoreError::Version(version) => other_version(file, version),
                    RestoreError::Exists => Failure::AlreadyExists {
                        problem: format!("{} exists; nothing was written", path.display()),
                        hint: "choose another path, or move the file away",
                    },
                    RestoreError::Store(error) => store_failure(error),
                })
            }
            Self::Database(address) => {
                let runtime = runtime()?;
                runtime.block_on(async {
                    let store = connect(address).await?;
                    let made = store
                        .load(archive, |key| !key::is_of_servers(key), &mut |rows| progress.at(rows), restored::upgrade)
                        .await;
                    store.close().await;
                    made.map_err(|error| match error {
                        LoadError::Archive(error) => unusable_backup(file, error),
                        LoadError::Version(version) => other_version(file, version),
                        LoadError::NotEmpty => Failure::AlreadyExists {
                            problem: format!("{address} already contains rows; nothing was written"),
                            hint: "choose an empty database, or drop the schema `rental`",
                        },
                        LoadError::Store(error) => database_failure(error),
                    })
                })
            }
        }
    }
}

/// Fails unless there is a file at `path`, with the error of the system.
pub(super) fn must_exist(path: &Path) -> Result<(), Failure> {
    let found = std::fs::metadata(path);
    found.map(drop).map_err(|error| Failure::Io { doing: format!("read {}", path.display()), error })
}

fn other_version(file: &Path, version: u64) -> Failure {
    Failure::Unsuccessful {
        kind: "version",
        problem: format!(
            "{} has schema version {version}, but this rental-cli supports versions {OLDEST_VERSION} to {SCHEMA_VERSION}; nothing was written",
            file.display()
        ),
        hint: "use the rental-cli of the server that wrote it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_its_engine_and_place() {
        assert!(matches!(Place::parse("redb:a:b"), Ok(Place::File(path)) if path == Path::new("a:b")));
        let database = Place::parse("postgres://ada:secret@db:5433/rental").unwrap();
        assert_eq!(database.to_string(), "postgres://ada@db:5433/rental");
        assert!(database.is(&Place::parse("postgresql://ada@db:5433/rental").unwrap()));
        for bad in ["", "redb:", "rental.redb", "http://localhost", "postgres:"] {
            assert!(Place::parse(bad).is_err(), "{bad}");
        }
    }
}
