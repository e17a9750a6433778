//! The file of the rows that a repair removes or replaces. It is durable before the first of them changes.

use crate::{
    edge,
    failure::Failure,
    output::whole_file::{Partial, cannot_write},
};
use clap::ArgMatches;
use rental_core::{
    check::repair::Found,
    resources::row_words::in_words,
    store::{Engine, StoreError},
};
use serde_json::json;
use std::{
    io::{BufWriter, Write as _},
    path::PathBuf,
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

/// Saves the rows that are removed or replaced, each as one JSON object: key and stored bytes in hex. Returns the name of the file;
/// `None` if there are none.
pub(super) async fn save(found: &Found, matches: &ArgMatches, store: &dyn Engine) -> Result<Option<PathBuf>, NotSaved> {
    if found.changes.is_empty() {
        return Ok(None);
    }
    let path = matches.get_one("save").cloned().unwrap_or_else(file_name);
    let partial = Partial::create_for(&path)?;
    let failed = |error| NotSaved::File(cannot_write(&partial.at, error));
    let mut out = BufWriter::new(partial.file());
    for (key, change) in &found.changes {
        let Some(bytes) = store.stored(key).await.map_err(NotSaved::Store)? else { continue };
        let line = json!({
            "key": hex::encode(key.as_bytes()), "revision": change.revision, "stored": hex::encode(&bytes),
            "row": in_words(key), "problem": change.why,
        });
        writeln!(out, "{line}").map_err(failed)?;
    }
    out.flush().map_err(failed)?;
    drop(out);
    partial.publish(&path, false)?;
    Ok(Some(path))
}

/// A name with the time.
fn file_name() -> PathBuf {
    let time: String = edge::now().to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    format!("rental-repair-{time}.jsonl").into()
}

/// Refuses to replace a file or a link that `--save` names, also a link that leads nowhere.
pub(super) fn refuse_existing(matches: &ArgMatches) -> Result<(), Failure> {
    let Some(path) = matches.get_one::<PathBuf>("save").filter(|path| path.symlink_metadata().is_ok()) else {
        return Ok(());
    };
    Err(Failure::AlreadyExists {
        problem: format!("{} exists; nothing was written to it and no row was changed", path.display()),
        hint: "choose another name with --save",
    })
}
