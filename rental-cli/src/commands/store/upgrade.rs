//! `store upgrade`: upgrades a store of an older program to the current schema version.

use super::{
    failures::store_failure,
    place::{self, CACHE_BYTES, Place, forms, open, runtime},
};
use crate::{
    commands::{fields::columns_among, session::Session},
    failure::Failure,
    output::progress::Progress,
    text::printable,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{
    store::{Access, Engine, Maintenance, SCHEMA_VERSION},
    upgrade::{self, Marker, State, Step, Survey, Upgrade, UpgradeError},
};
use rustix::fs::statvfs;
use serde_json::json;
use std::{path::Path, time::Duration};

pub(super) const EXAMPLES: [&str; 3] = [
    "rental-cli store upgrade redb:/var/lib/rental/rental.redb --dry-run",
    "rental-cli store upgrade redb:/var/lib/rental/rental.redb",
    "rental-cli store upgrade postgres://rental@db/rental --keep-damaged",
];
/// The members of the result, without those that are the same for every upgrade.
const COLUMNS: [&str; 9] =
    ["store", "from", "to", "dry_run", "records", "rows_written", "rows_removed", "rows_damaged", "damaged"];
/// Pause while another process upgrades the same database.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) fn command() -> Command {
    Command::new("upgrade")
        .about("Upgrade a store to the current schema version; irreversible, so back it up first")
        .arg(place::completed(
            Arg::new("url")
                .value_name("URL")
                .required(true)
                .value_parser(place::parse)
                .help(format!("Store to upgrade, {}", forms())),
        ))
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Count rows to write and damaged rows; change nothing"),
        )
        .arg(
            Arg::new("keep-damaged")
                .long("keep-damaged")
                .action(ArgAction::SetTrue)
                .help("Upgrade despite damaged rows, which are kept unchanged"),
        )
        .arg(columns_among(COLUMNS))
}

/// Result of an upgrade.
struct Done {
    from: u64,
    counted: Option<Marker>,
}

pub(super) fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let place = matches.get_one::<Place>("url").cloned().ok_or_else(|| Failure::Usage("no URL".into()))?;
    let (trial, keep) = (matches.get_flag("dry-run"), matches.get_flag("keep-damaged"));
    // Opening a file for writing changes it, even when nothing is written to it.
    let access = if trial { Access::Unchanged } else { Access::Upgradable };
    sound_pages(&place)?;
    let done = runtime()?.block_on(async {
        let store = open(&place, access).await?;
        let state = upgrade::state(store.as_ref()).await.map_err(|error| refused(&place, error))?;
        let done = upgrade_store(&place, store.as_ref(), &state, trial, keep).await;
        let closed = store.close().await.map_err(|error| store_failure(place.as_ref(), error));
        done.and_then(|done| closed.map(|()| done))
    })?;
    let counted = done.counted.as_ref();
    if counted.is_none() {
        session.out.note(&format!("the store has schema version {SCHEMA_VERSION} already: there is nothing to do"));
    }
    let count = |of: fn(&Marker) -> u64| counted.map_or(0, of);
    session.out.value(&json!({
            "object": "store_upgrade", "store": place.to_string(), "from": done.from, "to": SCHEMA_VERSION, "dry_run": trial,
            "records": count(|counted| counted.seen), "rows_written": count(|counted| counted.written),
            "rows_removed": count(|counted| counted.removed), "rows_damaged": count(|counted| counted.damaged),
            "damaged": counted.map(|counted| counted.damaged_rows.as_slice()).unwrap_or_default(),
        }))
}

/// Rejects a file with damaged pages.
pub(super) fn sound_pages(place: &Place) -> Result<(), Failure> {
    match (place.maintenance(), place.file()) {
        // The opening reports that there is no file.
        (Ok(maintenance), Some(file)) if file.exists() => check_pages(place, maintenance),
        _ => Ok(()),
    }
}

/// Rejects a file with damaged pages: their rows could disappear from a list, or be taken for rows without a record, and pages that
/// are written again get checksums that are right.
pub(super) fn check_pages(place: &Place, maintenance: &dyn Maintenance) -> Result<(), Failure> {
    let progress = Progress::busy("checking pages");
    let checked = maintenance.check_pages(CACHE_BYTES);
    progress.finish();
    checked.map_err(|error| store_failure(place.as_ref(), error))
}

/// Checks for damaged rows, then upgrades.
async fn upgrade_store(
    place: &Place,
    store: &dyn Engine,
    state: &State,
    trial: bool,
    keep: bool,
) -> Result<Done, Failure> {
    let refused = |error| refused(place, error);
    let from = state.from();
    if *state == State::Current {
        return Ok(Done { from, counted: None });
    }
    let mut progress = Progress::count(None, "rows counted");
    let counted = upgrade::survey(store, &mut |rows| progress.at(rows)).await.map_err(refused)?;
    progress.finish();
    if trial || !keep {
        let tried = Upgrade::trial(store).await.map_err(refused)?;
        let tried = finish(tried, Some(counted.records), "records tried").await.map_err(refused)?;
        if !keep && let Some(tried) = tried.as_ref().filter(|tried| tried.damaged > 0) {
            return Err(damaged(state, tried.damaged, &tried.damaged_rows));
        }
        if !keep && counted.damaged > 0 {
            return Err(damaged(state, counted.damaged, &counted.damaged_rows));
        }
        if trial {
            return Ok(Done { from, counted: tried });
        }
    }
    // An upgrade that has begun is always continued: until its end no program can use the store.
    if let Some(path) = place.file().filter(|_| !state.has_begun()) {
        enough_room(path, &counted)?;
    }
    let upgrade = Upgrade::begin(store).await.map_err(refused)?;
    Ok(Done { from, counted: finish(upgrade, Some(counted.records), "records upgraded").await.map_err(refused)? })
}

/// Rejects an upgrade for which the disk has no room, before it begins.
fn enough_room(path: &Path, counted: &Survey) -> Result<(), Failure> {
    let (Ok(file), Ok(disk)) = (std::fs::metadata(path), statvfs(path)) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    counted.enough_room(path, file.len(), free).map_err(|problem| Failure::Unsuccessful {
        kind: "disk_full",
        problem,
        hint: "`rental-cli store upgrade URL --dry-run` needs no room and shows how many rows would be written",
    })
}

/// Takes all steps. `records` is the number of records, if it is known.
pub(super) async fn finish(
    upgrade: Option<Upgrade<'_>>,
    records: Option<u64>,
    label: &str,
) -> Result<Option<Marker>, UpgradeError> {
    let Some(mut upgrade) = upgrade else { return Ok(None) };
    let mut progress = Progress::count(records, label);
    loop {
        let step = upgrade.step().await?;
        progress.at(upgrade.progress().seen);
        match step {
            Step::Continue => {}
            Step::Overtaken => tokio::time::sleep(PAUSE).await,
            Step::Done => return Ok(Some(upgrade.progress().clone())),
        }
    }
}

fn damaged(state: &State, count: u64, listed: &[String]) -> Failure {
    let changed = match state {
        State::Unfinished(marker) if marker.from == marker.to => {
            "a repair was interrupted, and this run changed nothing"
        }
        State::Unfinished(_) => "an earlier run of the upgrade changed rows, and this one changed nothing",
        State::Current | State::Older(_) => "nothing was changed",
    };
    let shown: Vec<String> = listed.iter().take(20).map(|row| printable(row)).collect();
    Failure::Unsuccessful {
        kind: "damaged",
        problem: format!("{count} rows are damaged, and {changed}: {}", shown.join("; ")),
        hint: "restore a backup, or use --keep-damaged to upgrade all other rows and keep these unchanged; `rental-cli store repair URL` ends an interrupted repair",
    }
}

pub(super) fn refused(place: &Place, error: UpgradeError) -> Failure {
    match error {
        UpgradeError::Store(error) => store_failure(place.as_ref(), error),
        UpgradeError::Refused(problem) => {
            Failure::Unsuccessful { kind: "version", problem, hint: "nothing was changed" }
        }
    }
}
