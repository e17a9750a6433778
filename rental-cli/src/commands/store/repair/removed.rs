//! The file of the rows that a repair removes or replaces. It is durable before the first of them changes.

use crate::{
    edge,
    failure::Failure,
    output::whole_file::{Partial, cannot_write},
};
use bytes::Bytes;
use clap::ArgMatches;
use rental_core::{
    check::repair::{Found, Plan},
    resources::row_words::in_words,
    store::{Key, StoreError},
};
use serde_json::json;
use std::{
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
};

/// Why the rows were not saved.
pub(super) enum NotSaved {
    File(Failure),
    Store(StoreError),
}

impl NotSaved {
    pub(super) fn or_store(self, store: impl FnOnce(StoreError) -> Failure) -> Failure {
        match self {
            Self::File(failure) => failure,
            Self::Store(error) => store(error),
        }
    }
}

impl From<Failure> for NotSaved {
    fn from(failure: Failure) -> Self {
        Self::File(failure)
    }
}

/// Saves the rows that the plan removes or replaces, each as one JSON object: key and stored bytes in hex. Returns the name of
/// the file; `None` if the plan only adds rows. `before` is the number of files that this command made before.
pub(super) fn save(
    plan: &Plan,
    matches: &ArgMatches,
    before: usize,
    stored: impl Fn(&Key) -> Result<Option<Bytes>, StoreError>,
) -> Result<Option<PathBuf>, NotSaved> {
    if !plan.changes.values().any(|change| change.loses()) {
        return Ok(None);
    }
    let path = file_name(matches.get_one("save"), before);
    refuse_existing(&path)?;
    let partial = Partial::create_for(&path)?;
    let failed = |error| NotSaved::File(cannot_write(&partial.at, error));
    let mut out = BufWriter::new(partial.file());
    for (key, change) in plan.changes.iter().filter(|(_, change)| change.loses()) {
        let bytes = stored(key).map_err(NotSaved::Store)?.unwrap_or_default();
        let revision = match change.found {
            Found::Row(revision) => Some(revision),
            Found::Damaged | Found::Nothing => None,
        };
        let line = json!({
            "key": hex::encode(key.as_bytes()), "revision": revision, "stored": hex::encode(&bytes),
            "row": in_words(key), "problem": change.why,
        });
        writeln!(out, "{line}").map_err(failed)?;
    }
    out.flush().map_err(failed)?;
    drop(out);
    partial.publish(&path, false)?;
    Ok(Some(path))
}

/// `--save`, or a name with the time. A store with very many problems needs several files, which get a number.
fn file_name(given: Option<&PathBuf>, before: usize) -> PathBuf {
    let time: String = edge::now().to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    let mut name =
        given.map_or_else(|| format!("rental-repair-{time}.jsonl").into(), |path| path.clone().into_os_string());
    if before > 0 {
        name.push(format!(".{}", before + 1));
    }
    name.into()
}

/// Refuses to replace a file or a link, also one that leads nowhere.
fn refuse_existing(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Failure::AlreadyExists {
        problem: format!("{} exists; nothing was written to it and no row was changed", path.display()),
        hint: "choose another name with --save",
    })
}
