//! Places of stores as arguments, and what the engines need to open them.

use super::failures::store_failure;
use crate::{
    config::{environment, private_file},
    edge,
    failure::Failure,
};
use clap::Arg;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _};
use rental_core::store::{self, Absent, Access, Engine, Environment, Opening, Scheme, WrongUrl, url_forms};
use std::{
    ffi::{OsStr, OsString},
    path::Path,
    sync::Arc,
    time::Duration,
};
use tokio::runtime::{Builder, Runtime};

/// Cache of an open store file.
pub(super) const CACHE_BYTES: usize = 256 << 20;
/// Time-out of each database operation.
const PATIENCE: Duration = Duration::from_secs(60);

/// Place of a store.
pub(super) type Place = Arc<dyn store::Place>;

/// Parses the URL of a store.
pub(super) fn parse(url: &str) -> Result<Place, String> {
    store::place(url).map_err(|wrong| match wrong {
        WrongUrl::Unknown => format!("is not a store; use {}", forms()),
        WrongUrl::Malformed(why) => format!("is not a valid URL of a store: {why}"),
    })
}

/// Parses the URL of a store file, for commands that work on a file only.
pub(super) fn parse_file(url: &str) -> Result<Place, String> {
    let place = parse(url)?;
    place.maintenance().map(drop).map_err(|why| format!("{why}; use {}", file_forms()))?;
    Ok(place)
}

/// Completes the path of a store file behind `redb:`.
pub(super) fn completed(arg: Arg) -> Arg {
    arg.add(ArgValueCompleter::new(|current: &OsStr| {
        const FILE: &str = "redb:";
        let Some(path) = current.to_str().and_then(|current| current.strip_prefix(FILE)) else {
            let begun = |scheme: &&str| current.to_str().is_some_and(|current| scheme.starts_with(current));
            return [FILE, "postgres://"].into_iter().filter(begun).map(CompletionCandidate::new).collect();
        };
        let found = PathCompleter::any().complete(OsStr::new(path));
        found.into_iter().map(|candidate| candidate.add_prefix(FILE)).collect()
    }))
}

/// Forms of the URLs of all stores.
pub(super) fn forms() -> String {
    url_forms(|_| true)
}

/// Forms of the URLs of store files.
pub(super) fn file_forms() -> String {
    url_forms(|scheme: &Scheme| !scheme.shared)
}

/// Creates the runtime that the stores' calls need.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let made = Builder::new_current_thread().enable_all().build();
    made.map_err(|error| Failure::Io { doing: "connect to the database".into(), error })
}

/// What the engines need from this program.
pub(super) fn opening(absent: Absent) -> Opening<'static> {
    // Fails if a provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Opening {
        cache_bytes: CACHE_BYTES,
        absent,
        writer: edge::server_id(),
        patience: PATIENCE,
        environment: &Surroundings,
    }
}

/// Opens a store that exists.
pub(super) async fn open(place: &Place, access: Access) -> Result<Arc<dyn Engine>, Failure> {
    if let Some(path) = place.file() {
        let found = std::fs::metadata(path);
        found.map_err(|error| Failure::Io { doing: format!("read {}", path.display()), error })?;
    }
    place.open(access, &opening(Absent::Fail)).await.map_err(|error| store_failure(place.as_ref(), error))
}

struct Surroundings;

impl Environment for Surroundings {
    fn variable(&self, name: &str) -> Option<OsString> {
        environment::variable(name)
    }

    fn file(&self, path: &Path) -> Result<Vec<u8>, String> {
        let text = private_file::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(text.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_its_engine_and_place() {
        assert_eq!(parse("redb:a:b").unwrap().file(), Some(Path::new("a:b")));
        let database = parse("postgres://ada:secret@db:5433/rental").unwrap();
        assert_eq!(database.to_string(), "postgres://db:5433/rental");
        assert_eq!(database.to_string(), parse("postgresql://ada@db:5433/rental").unwrap().to_string());
        for bad in ["", "redb:", "rental.redb", "http://localhost", "postgres:"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_done_to_a_file_is_not_done_to_a_database() {
        assert_eq!(parse_file("redb:a:b").unwrap().to_string(), "redb:a:b");
        let refused = parse_file("postgres://db/rental").unwrap_err();
        assert!(refused.contains("VACUUM") && refused.ends_with("use redb:PATH"), "{refused}");
    }
}
