//! `store repair`: removes damaged rows of a closed store and derives the others that follow from records again.

mod removed;

use super::{
    CACHE_BYTES,
    failures::{next_step, store_failure},
    place::{self, Place, forms, open, runtime},
    upgrade::{finish, sound_pages},
};
use crate::{
    commands::{
        confirm::{confirm, yes},
        fields::columns_among,
        session::Session,
    },
    edge,
    failure::Failure,
    output::{self, Output, item, progress::Progress},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{
    check::{
        self, Remedy,
        repair::{self, Change, Found},
    },
    resources::row_words::in_words,
    rows::key,
    store::{Access, Commit, Engine, Key, Revision, StoreError},
    upgrade::{self, State, Upgrade},
    webhooks::cluster::HEARTBEAT_MILLIS,
};
use serde_json::json;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

pub(super) const EXAMPLES: [&str; 3] = [
    "rental-cli store repair redb:/var/lib/rental/rental.redb --dry-run",
    "rental-cli store repair redb:/var/lib/rental/rental.redb",
    "rental-cli store repair postgres://rental@db/rental --yes --save /backup/removed.jsonl",
];
/// Columns of the list of rows.
const COLUMNS: [&str; 3] = ["action", "place", "what"];
/// Most rows in a list.
const MOST_LISTED: usize = 1000;
/// Most servers of a database whose heartbeats are read.
const MOST_SERVERS: usize = 1000;
/// The kind of rows that follow from records, in counts.
const DERIVED: &str = "row derived from an object";
/// Heartbeats of a running server change at least once in this many of their intervals.
const INTERVALS: u32 = 3;

pub(super) fn command() -> Command {
    Command::new("repair")
        .about("Remove damaged rows and write missing derived rows; the server must be stopped")
        .arg(place::completed(Arg::new("url").value_name("URL").required(true).value_parser(place::parse).help(
            format!(
                "Store to repair, {}. Servers with --no-webhooks of a database are not noticed: stop them first",
                forms()
            ),
        )))
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("List what would be removed and written; change nothing"),
        )
        .arg(yes())
        .arg(
            Arg::new("save")
                .long("save")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("New file for the removed and replaced rows, as JSON lines [default: rental-repair-TIME.jsonl]"),
        )
        .arg(columns_among(COLUMNS))
}

/// What was done, or would be.
#[derive(Default)]
struct Done {
    found: Found,
    /// Derived rows that were written and removed again, without those of [`Done::found`].
    written: u64,
    removed: u64,
    saved: Option<PathBuf>,
}

pub(super) fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let place = matches.get_one::<Place>("url").cloned().ok_or_else(|| Failure::Usage("no URL".into()))?;
    let trial = matches.get_flag("dry-run");
    // Rows that are missing in damaged pages would be taken for rows that never were.
    sound_pages(&place)?;
    let runtime = runtime()?;
    let (mut done, is_interrupted) =
        runtime.block_on(on(&place, Access::Unchanged, async |store| look(&place, store, trial).await))?;
    if !trial && (is_interrupted || done.count() > 0) {
        removed::refuse_existing(matches)?;
        ask(&done, &place, matches)?;
        runtime
            .block_on(on(&place, Access::Upgradable, async |store| mend(&place, store, &mut done, matches).await))?;
    }
    // Of a database, what was found on the way is told.
    if let Ok(maintenance) = place.maintenance()
        && !(trial && is_interrupted)
    {
        let closed = maintenance.inspect(CACHE_BYTES).map_err(|error| store_failure(place.as_ref(), error))?;
        let mut progress = Progress::count(closed.count(), "rows checked");
        done.found.left = check::of_file_at(closed.as_ref(), edge::now(), &mut |rows| progress.at(rows));
    }
    if trial {
        done.found.left.forget(Remedy::Repair);
    }
    show(&place, &done, trial, session)?;
    if trial && is_interrupted {
        return Err(Failure::Unsuccessful {
            kind: "damaged",
            problem: format!("an earlier repair of {place} did not come to its end; nothing was changed"),
            hint: "run the command without --dry-run, or start the server",
        });
    }
    result(&place, &done, trial)
}

/// Opens a store for `work`, and closes it.
async fn on<T>(
    place: &Place,
    access: Access,
    work: impl AsyncFnOnce(&dyn Engine) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let store = open(place, access).await?;
    let done = work(store.as_ref()).await;
    let closed = store.close().await.map_err(|error| store_failure(place.as_ref(), error));
    done.and_then(|done| closed.map(|()| done))
}

/// Finds what a repair would do, and whether an earlier one was interrupted. Changes nothing.
async fn look(place: &Place, store: &dyn Engine, trial: bool) -> Result<(Done, bool), Failure> {
    let failed = |error| store_failure(place.as_ref(), error);
    let refused = |error| super::upgrade::refused(place, error);
    let is_interrupted = upgrade::state(store).await.map_err(refused)? != State::Current;
    let tried = Upgrade::again_trial(store).await.map_err(refused)?;
    if !trial && store.is_shared() {
        refuse_running_servers(store).await.map_err(failed)?;
    }
    let mut progress = Progress::count(None, "rows read");
    let found = repair::find(store, edge::now(), &mut |rows| progress.at(rows)).await.map_err(failed)?;
    progress.finish();
    let tried = finish(Some(tried), None, "records compared").await.map_err(refused)?;
    let (written, removed) = tried.map_or((0, 0), |tried| (tried.written, tried.removed));
    Ok((Done { found, written, removed, saved: None }, is_interrupted))
}

/// Saves and changes what was found, and derives the other rows again.
async fn mend(place: &Place, store: &dyn Engine, done: &mut Done, matches: &ArgMatches) -> Result<(), Failure> {
    let failed = |error| store_failure(place.as_ref(), error);
    let refused = |error| super::upgrade::refused(place, error);
    let now = repair::find(store, edge::now(), &mut |_| ()).await.map_err(failed)?;
    if !now.changes.iter().map(essence).eq(done.found.changes.iter().map(essence)) {
        return Err(Failure::Unsuccessful {
            kind: "in_use",
            problem: "another program changed the store since the question; this one changed nothing".into(),
            hint: "stop all servers of this store, then run the same command again",
        });
    }
    // One can have started since the question.
    if store.is_shared() {
        refuse_running_servers(store).await.map_err(failed)?;
    }
    done.found = now;
    done.saved = removed::save(&done.found, matches, store).await.map_err(|error| error.or_store(failed))?;
    // From here on no program opens the store until its derived rows are whole again.
    let walk = Upgrade::again(store).await.map_err(refused)?;
    if let Commit::Stale(key) = repair::apply(store, &done.found).await.map_err(failed)? {
        return Err(Failure::Unsuccessful {
            kind: "in_use",
            problem: format!("another program changed {} during the repair, which is not complete", in_words(&key)),
            hint: "stop all servers of this database, then run the same command again",
        });
    }
    let walked = finish(Some(walk), None, "records derived again").await.map_err(refused)?;
    (done.written, done.removed) = walked.map_or((0, 0), |walked| (walked.written, walked.removed));
    Ok(())
}

/// What of a change is the same when it is found again.
fn essence<'a>((key, change): (&'a Key, &'a Change)) -> (&'a Key, Option<Revision>, bool) {
    (key, change.revision, change.put.is_some())
}

/// Refuses a database whose servers run: their heartbeats change. A file has one process, so it needs no such check. A server
/// without webhooks has no heartbeat, and while it is idle it changes no row, so it is not noticed here. If it changes a sound
/// row that the repair changes, the repair ends.
async fn refuse_running_servers(store: &dyn Engine) -> Result<(), StoreError> {
    let before = heartbeats(store).await?;
    if before.is_empty() {
        return Ok(());
    }
    let progress = Progress::busy("waiting for heartbeats of running servers");
    for _ in 0..4 * INTERVALS {
        tokio::time::sleep(Duration::from_millis(HEARTBEAT_MILLIS / 4)).await;
        if heartbeats(store).await? != before {
            return Err(StoreError::InUse("the database is in use by a running server".into()));
        }
    }
    progress.finish();
    Ok(())
}

async fn heartbeats(store: &dyn Engine) -> Result<Vec<(Key, Revision)>, StoreError> {
    let found = store.scan(&key::heartbeats(), MOST_SERVERS).await?;
    Ok(found.into_iter().flatten().map(|row| (row.key, row.revision)).collect())
}

/// Shows the changes on stderr and asks, unless `--yes` is given.
fn ask(done: &Done, place: &Place, matches: &ArgMatches) -> Result<(), Failure> {
    if !matches.get_flag("yes") {
        for line in done.lines() {
            eprint!("{line}");
        }
    }
    let changes = &done.found.changes;
    if changes.keys().any(|key| matches!(repair::kind(key), "rental" | "block")) {
        eprintln!("A rental or block that is removed holds no nights any more.");
    }
    let question = match changes.len() {
        0 => format!("No object is lost. Derive the other rows of {place} from the objects again"),
        some => format!(
            "Change {some} rows of {place}, which are saved to a file first, and derive the others from the objects again"
        ),
    };
    confirm(matches, &question)
}

fn action(change: &Change) -> &'static str {
    if change.put.is_some() { "write" } else { "remove" }
}

impl Done {
    /// Prints counts by kind, then the first rows; with `--columns`, these columns of the rows.
    fn print(&self, out: &Output) -> Result<(), Failure> {
        if out.chosen().is_empty() {
            return self.lines().iter().try_for_each(|line| output::print(line));
        }
        let columns = out.columns_or(&COLUMNS);
        let cell = |(key, change): (&Key, &Change), name: &&str| match *name {
            "action" => action(change).to_owned(),
            "place" => in_words(key),
            _ => change.why.clone(),
        };
        let rows = self.listed().map(|row| columns.iter().map(|name| cell(row, name)).collect());
        out.rows(&columns, &rows.collect::<Vec<Vec<String>>>())
    }

    fn listed(&self) -> impl Iterator<Item = (&Key, &Change)> {
        self.found.changes.iter().take(MOST_LISTED)
    }

    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for (verb, counts) in self.counts() {
            lines.extend(counts.into_iter().map(|(kind, count)| format!("{verb} {count}: {kind}\n")));
        }
        lines.extend(
            self.listed().map(|(key, change)| item(&format!("{} {}", action(change), in_words(key)), &change.why)),
        );
        let hidden = self.found.changes.len().saturating_sub(MOST_LISTED);
        if hidden > 0 {
            lines.push(format!("{hidden} more rows are not listed\n"));
        }
        lines
    }

    /// What is removed and written, by kind of row.
    fn counts(&self) -> [(&'static str, BTreeMap<&'static str, u64>); 2] {
        let (mut removed, mut written) = (BTreeMap::new(), BTreeMap::new());
        for (key, change) in &self.found.changes {
            let counts = if change.put.is_some() { &mut written } else { &mut removed };
            *counts.entry(repair::kind(key)).or_default() += 1;
        }
        for (counts, count) in [(&mut removed, self.removed), (&mut written, self.written)] {
            if count > 0 {
                counts.insert(DERIVED, count);
            }
        }
        [("removes", removed), ("writes", written)]
    }

    fn count(&self) -> u64 {
        self.found.changes.len() as u64 + self.removed + self.written
    }
}

fn show(place: &Place, done: &Done, trial: bool, session: &Session) -> Result<(), Failure> {
    let left = &done.found.left;
    if session.out.json {
        let listed = done
            .listed()
            .map(|(key, change)| json!({"place": in_words(key), "what": change.why, "action": action(change)}));
        let [(_, removed), (_, written)] = done.counts();
        return session.out.value(&json!({
            "object": "store_repair", "store": place.to_string(), "dry_run": trial,
            "sound": left.is_sound() && !(trial && done.count() > 0),
            "removed": removed, "written": written, "listed": listed.collect::<Vec<_>>(), "saved": done.saved,
            "left": left.problems, "left_listed": left.listed,
        }));
    }
    done.print(&session.out)?;
    for problem in &left.listed {
        let what = match problem.remedy {
            Remedy::Start => "the next server mends",
            Remedy::Decision => "a person must decide:",
            Remedy::Gone => "names what is gone:",
            Remedy::Repair | Remedy::Backup => "not repairable:",
        };
        output::print(&item(&format!("{what} {}", problem.place), &problem.what))?;
    }
    if let Some(file) = &done.saved {
        session.out.note(&format!("the removed and replaced rows were saved to {}", file.display()));
    }
    if done.count() == 0 && left.problems == 0 {
        session.out.note("the store has no problems: there is nothing to do");
    }
    if !trial && done.count() > 0 {
        session.out.note(&format!("{} rows were changed; the server can be started", done.count()));
    }
    if done.found.more {
        session.out.note("there are more rows to remove: run the same command again");
    }
    Ok(())
}

/// Exit codes are those of `store check`.
fn result(place: &Place, done: &Done, trial: bool) -> Result<(), Failure> {
    let left = &done.found.left;
    if !left.is_sound() {
        return Err(Failure::Unsuccessful {
            kind: "damaged",
            problem: format!("problems of {place} that a repair does not mend: {}", left.problems),
            hint: next_step(left),
        });
    }
    if trial && done.count() > 0 {
        return Err(Failure::Unsuccessful {
            kind: "damaged",
            problem: format!("{} rows of {place} need a change; nothing was changed", done.count()),
            hint: "keep a copy of the store, then run the command without --dry-run",
        });
    }
    Ok(())
}
