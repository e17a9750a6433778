//! Writes a store to an archive, and creates a store from one.

use super::{
    failures::{other_version, store_failure, unusable_backup},
    place::{Place, open, opening, runtime},
};
use crate::{edge, failure::Failure, output::progress::Progress};
use rental_core::{
    rows::key,
    store::{
        Absent, Access, Restore, RestoreError, SCHEMA_VERSION, Span, Versioned,
        archive::{Reader, Summary, Writer},
    },
    upgrade::{Step, Upgrade},
};
use std::{
    io::{self, Read, Write},
    path::Path,
};

/// Writes all rows to an archive, except the rows of running servers.
pub(super) fn write(from: &Place, out: impl Write) -> Result<Summary, Failure> {
    let by = concat!("rental-cli ", env!("CARGO_PKG_VERSION"));
    let broken = |error: io::Error| Failure::Io { doing: format!("read {from}"), error };
    let failed = |error| store_failure(from.as_ref(), error);
    let mut writer = Writer::new(out, SCHEMA_VERSION, by, edge::now()).map_err(broken)?;
    runtime()?.block_on(async {
        let store = open(from, Access::Present).await?;
        let (mut snapshot, mut rest) = (store.snapshot().await.map_err(failed)?, Span::everything());
        loop {
            let rows = snapshot.next(&mut rest).await.map_err(failed)?;
            if rows.is_empty() {
                break;
            }
            for row in rows.iter().filter(|row| !key::is_of_servers(&row.key)) {
                writer.push(row).map_err(broken)?;
            }
        }
        drop(snapshot);
        store.close().await.map_err(failed)
    })?;
    writer.finish().map(|(_, summary)| summary).map_err(broken)
}

/// Creates a store from an archive and verifies it by reading it back. `name` is that of the archive in messages.
pub(super) fn read(to: &Place, from: impl Read + 'static, name: &Path) -> Result<(Summary, String), Failure> {
    let unusable = |error| unusable_backup(name, error);
    let mut archive = Reader::open(Box::new(from) as Box<dyn Read>).map_err(unusable)?;
    let mut progress = Progress::count(None, "rows written and read back");
    let restore = Restore {
        archive: &mut archive,
        moves: |key| !key::is_of_servers(key),
        progress: &mut |rows| progress.at(rows),
        upgrade: &|store| Box::pin(upgrade(store)),
    };
    let made = runtime()?.block_on(to.restore(&opening(Absent::Create), restore)).map_err(|error| match error {
        RestoreError::Archive(error) => unusable(error),
        RestoreError::Version(version) => other_version(name, version),
        RestoreError::Exists(problem, hint) => Failure::AlreadyExists { problem, hint },
        RestoreError::Store(error) => store_failure(to.as_ref(), error),
    })?;
    to.file().map_or(Ok(()), give_to_owner_of_directory)?;
    Ok((made, archive.header().created_at.to_string()))
}

/// Gives a new file of root to the owner of its directory, whose server opens it: root may create files anywhere.
#[cfg(unix)]
fn give_to_owner_of_directory(file: &Path) -> Result<(), Failure> {
    use std::{
        fs,
        os::unix::fs::{MetadataExt as _, chown},
    };
    let failed = |error| Failure::Io { doing: format!("give {} to the owner of its directory", file.display()), error };
    let directory = file.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let (made, around) = (fs::metadata(file).map_err(failed)?, fs::metadata(directory).map_err(failed)?);
    if made.uid() != 0 || around.uid() == 0 {
        return Ok(());
    }
    chown(file, Some(around.uid()), Some(around.gid())).map_err(failed)
}

#[cfg(not(unix))]
fn give_to_owner_of_directory(_: &Path) -> Result<(), Failure> {
    Ok(())
}

/// Upgrades a new store whose rows have an older version.
async fn upgrade(store: &dyn Versioned) -> Result<(), String> {
    let upgrade = Upgrade::begin(store).await.map_err(|error| error.to_string())?;
    let Some(mut upgrade) = upgrade else { return Ok(()) };
    let mut progress = Progress::count(None, "records upgraded");
    while upgrade.step().await.map_err(|error| error.to_string())? != Step::Done {
        progress.at(upgrade.progress().seen);
    }
    Ok(())
}
