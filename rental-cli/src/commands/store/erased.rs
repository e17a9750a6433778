//! The list of erased people of another store or backup, for `store restore --erased`.

use super::{
    failures::{store_failure, unusable_backup},
    place::{self, Place, open, runtime},
};
use crate::failure::Failure;
use rental_core::{
    erasing::{Erasure, is_of_customer, missing_in, rows_of},
    resources::to_json,
    store::{
        Access, Batch, Commit, Record,
        archive::{ArchiveError, Reader},
    },
};
use std::{fs::File, io::BufReader, path::Path};

/// Rows of one batch.
const BATCH: usize = 256;

/// Reads the rows of erased customers from a store (a URL) or a backup (a path).
pub(super) fn read(from: &str) -> Result<Vec<Record>, Failure> {
    match place::parse(from) {
        Ok(store) => of_store(&store),
        // It is not shown: it can be the address of a database, with a password.
        Err(_) if !Path::new(from).exists() => {
            Err(Failure::Usage(format!("--erased names neither a store ({}) nor a file that is there", place::forms())))
        }
        Err(_) => of_backup(Path::new(from)),
    }
}

fn of_store(place: &Place) -> Result<Vec<Record>, Failure> {
    let failed = |error| store_failure(place.as_ref(), error);
    runtime()?.block_on(async {
        let store = open(place, Access::Present).await?;
        let (mut snapshot, mut rest, mut found) = (store.snapshot().await.map_err(failed)?, rows_of(None), Vec::new());
        loop {
            let rows = snapshot.next(&mut rest).await.map_err(failed)?;
            if rows.is_empty() {
                break;
            }
            found.extend(rows.into_iter().filter(|row| is_of_customer(&row.key)));
        }
        drop(snapshot);
        store.close().await.map_err(failed)?;
        Ok(found)
    })
}

fn of_backup(path: &Path) -> Result<Vec<Record>, Failure> {
    let unusable = |error: ArchiveError| unusable_backup(path, error);
    let file = File::open(path).map_err(|error| Failure::Io { doing: format!("read {}", path.display()), error })?;
    let mut archive = Reader::open(BufReader::new(file)).map_err(unusable)?;
    let mut found = Vec::new();
    while let Some(rows) = archive.next_frame().map_err(unusable)? {
        found.extend(rows.into_iter().filter(|row| is_of_customer(&row.key)));
    }
    Ok(found)
}

/// Adds the rows that the store lacks, of organizations that it has, and returns their number. The next server erases these customers.
pub(super) fn add(to: &Place, rows: &[Record]) -> Result<u64, Failure> {
    if rows.is_empty() {
        return Ok(0);
    }
    let failed = |error| store_failure(to.as_ref(), error);
    runtime()?.block_on(async {
        let store = open(to, Access::Present).await?;
        let mut added = 0;
        for rows in rows.chunks(BATCH) {
            let mut batch = Batch::default();
            for row in missing_in(store.as_ref(), rows).await.map_err(failed)? {
                let listed = Erasure::read(row).and_then(|erasure| to_json(&erasure.on_another_list()));
                let listed =
                    listed.map_err(|error| Failure::Unreadable(format!("the list of erased people: {error:?}")))?;
                batch.insert(row.key.clone(), listed);
                added += 1;
            }
            if !batch.is_empty() && store.commit(batch).await.map_err(failed)? != Commit::Applied {
                return Err(Failure::Unreadable("another program changed the new store".into()));
            }
        }
        store.close().await.map_err(failed)?;
        Ok(added)
    })
}
