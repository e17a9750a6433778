//! `store repair`: removes damaged rows of a closed store and writes derived rows that are missing.

mod removed;

use super::{
    CACHE_BYTES,
    failures::{next_step, store_failure},
    place::{self, Place, forms, open, runtime},
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
        Remedy, Report,
        repair::{self, Action, Plan, RepairError, Waiter},
    },
    resources::row_words::in_words,
    rows::key,
    store::{Access, Answer, Engine, Key, Revision, SCHEMA_VERSION, StoreError, needs_upgrade},
    upgrade::{self, State},
    webhooks::cluster::HEARTBEAT_MILLIS,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use tokio::runtime::Runtime;

pub(super) const EXAMPLES: [&str; 3] = [
    "rental-cli store repair redb:/var/lib/rental/rental.redb --dry-run",
    "rental-cli store repair redb:/var/lib/rental/rental.redb",
    "rental-cli store repair postgres://rental@db/rental --yes --save /backup/removed.jsonl",
];
/// Columns of the list of rows.
const COLUMNS: [&str; 3] = ["action", "place", "what"];
/// Most rows in a list.
const MOST_LISTED: usize = 1000;
/// Most plans of one command. A plan has up to 100,000 changes; the last one is empty.
const MOST_PLANS: usize = 100;
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

/// Waits for a store on the runtime of this command.
struct Waits(Runtime);

impl Waiter for Waits {
    fn wait<T>(&self, answer: Answer<'_, T>) -> Result<T, StoreError> {
        self.0.block_on(answer)
    }
}

/// What was done, or would be.
#[derive(Default)]
struct Done {
    removed: BTreeMap<&'static str, u64>,
    written: BTreeMap<&'static str, u64>,
    listed: Vec<(String, String, &'static str)>,
    saved: Vec<PathBuf>,
    left: Report,
}

impl Done {
    fn add(&mut self, plan: &Plan) {
        for (key, change) in &plan.changes {
            let (counts, action) = match change.action {
                Action::Remove => (&mut self.removed, "remove"),
                Action::Put(..) => (&mut self.written, "write"),
            };
            *counts.entry(repair::kind(key)).or_default() += 1;
            if self.listed.len() < MOST_LISTED {
                self.listed.push((in_words(key), change.why.clone(), action));
            }
        }
        self.left = plan.left.clone();
    }
}

pub(super) fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let place = matches.get_one::<Place>("url").cloned().ok_or_else(|| Failure::Usage("no URL".into()))?;
    let trial = matches.get_flag("dry-run");
    refuse_damaged_pages(&place)?;
    let waits = Waits(runtime()?);
    // Opening a file for writing changes it, even when nothing is written to it.
    let access = if trial { Access::Unchanged } else { Access::Present };
    let store = waits.0.block_on(open(&place, access))?;
    let done = repair_store(&place, &waits, store.as_ref(), matches);
    let closed = waits.wait(store.close()).map_err(|error| store_failure(place.as_ref(), error));
    let done = done?;
    closed?;
    show(&place, &done, trial, session)?;
    result(&place, &done, trial)
}

/// Refuses a file with damaged pages: rows that are missing there would be taken for rows that never were.
fn refuse_damaged_pages(place: &Place) -> Result<(), Failure> {
    let Ok(maintenance) = place.maintenance() else { return Ok(()) };
    let closed = maintenance.inspect(CACHE_BYTES).map_err(|error| store_failure(place.as_ref(), error))?;
    let damaged = |damage: &str| store_failure(place.as_ref(), StoreError::DamagedStore(damage.to_owned()));
    closed.pages().map_err(damaged)
}

fn repair_store(place: &Place, waits: &Waits, store: &dyn Engine, matches: &ArgMatches) -> Result<Done, Failure> {
    let failed = |error| store_failure(place.as_ref(), error);
    let trial = matches.get_flag("dry-run");
    match waits.0.block_on(upgrade::state(store)).map_err(|error| super::upgrade::refused(place, error))? {
        State::Current => {}
        State::Older(version) => return Err(failed(StoreError::NeedsUpgrade(needs_upgrade(version)))),
        State::Unfinished(_) => {
            return Err(failed(StoreError::NeedsUpgrade(needs_upgrade(SCHEMA_VERSION))));
        }
    }
    if !trial && store.is_shared() {
        refuse_running_servers(waits, store).map_err(failed)?;
    }
    let mut done = Done::default();
    for _ in 0..MOST_PLANS {
        let mut progress = Progress::count(None, "rows checked");
        let plan = repair::plan(store, waits, edge::now(), &mut |rows| progress.at(rows)).map_err(failed)?;
        progress.finish();
        done.add(&plan);
        if plan.changes.is_empty() || trial {
            return Ok(done);
        }
        ask(&plan, place, matches)?;
        let saved = removed::save(&plan, matches, done.saved.len(), |key| waits.wait(store.stored(key)))
            .map_err(|error| error.or_store(failed))?;
        done.saved.extend(saved);
        repair::apply(store, waits, &plan).map_err(|error| match error {
            RepairError::Store(error) => failed(error),
            changed @ RepairError::Changed(_) => Failure::Unsuccessful {
                kind: "in_use",
                problem: format!("{changed} during the repair, which is not complete"),
                hint: "stop all servers of this database, then run the same command again",
            },
        })?;
    }
    Ok(done)
}

/// Refuses a database whose servers run: their heartbeats change. A file has one process, so it needs no such check. A server
/// without webhooks has no heartbeat, and while it is idle it changes no row, so it is not noticed here. If it changes a sound
/// row that a plan changes, applying the plan fails.
fn refuse_running_servers(waits: &Waits, store: &dyn Engine) -> Result<(), StoreError> {
    let heartbeats = || -> Result<Vec<(Key, Revision)>, StoreError> {
        let span = key::heartbeats();
        let found = waits.wait(store.scan(&span, MOST_LISTED))?;
        Ok(found.into_iter().flatten().map(|row| (row.key, row.revision)).collect())
    };
    let before = heartbeats()?;
    if before.is_empty() {
        return Ok(());
    }
    let progress = Progress::busy("waiting for heartbeats of running servers");
    for _ in 0..4 * INTERVALS {
        waits.0.block_on(tokio::time::sleep(Duration::from_millis(HEARTBEAT_MILLIS / 4)));
        if heartbeats()? != before {
            return Err(StoreError::InUse("the database is in use by a running server".into()));
        }
    }
    progress.finish();
    Ok(())
}

/// Shows the changes of a plan on stderr and asks, unless `--yes` is given.
fn ask(plan: &Plan, place: &Place, matches: &ArgMatches) -> Result<(), Failure> {
    let mut listed = Done::default();
    listed.add(plan);
    if !matches.get_flag("yes") {
        for line in listed.lines() {
            eprint!("{line}");
        }
    }
    let lost = plan.changes.values().filter(|change| change.loses()).count();
    confirm(
        matches,
        &format!(
            "Change {} rows of {place}; {lost} of them are removed or replaced, and saved to a file first",
            plan.changes.len()
        ),
    )
}

impl Done {
    /// Prints counts by kind, then the first rows; with `--columns`, these columns of the rows.
    fn print(&self, out: &Output) -> Result<(), Failure> {
        if out.chosen().is_empty() {
            return self.lines().iter().try_for_each(|line| output::print(line));
        }
        let columns = out.columns_or(&COLUMNS);
        let cell = |(place, what, action): &(String, String, &'static str), name: &&str| match *name {
            "action" => (*action).to_owned(),
            "place" => place.clone(),
            _ => what.clone(),
        };
        let rows = self.listed.iter().map(|row| columns.iter().map(|name| cell(row, name)).collect());
        out.rows(&columns, &rows.collect::<Vec<Vec<String>>>())
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (verb, counts) in [("removes", &self.removed), ("writes", &self.written)] {
            lines.extend(counts.iter().map(|(kind, count)| format!("{verb} {count}: {kind}\n")));
        }
        lines.extend(self.listed.iter().map(|(place, why, action)| item(&format!("{action} {place}"), why)));
        let hidden = self.count() - self.listed.len() as u64;
        if hidden > 0 {
            lines.push(format!("{hidden} more rows are not listed\n"));
        }
        lines
    }

    fn count(&self) -> u64 {
        self.removed.values().chain(self.written.values()).sum()
    }
}

fn show(place: &Place, done: &Done, trial: bool, session: &Session) -> Result<(), Failure> {
    if session.out.json {
        let listed: Vec<Value> = done
            .listed
            .iter()
            .map(|(place, what, action)| json!({"place": place, "what": what, "action": action}))
            .collect();
        return session.out.value(&json!({
            "object": "store_repair", "store": place.to_string(), "dry_run": trial,
            "sound": done.left.problems == 0 && !(trial && done.count() > 0),
            "removed": done.removed, "written": done.written, "listed": listed, "saved": done.saved,
            "left": done.left.problems, "left_listed": done.left.listed,
        }));
    }
    done.print(&session.out)?;
    for problem in &done.left.listed {
        let what = match problem.remedy {
            Remedy::Start => "the next server mends",
            Remedy::Decision => "a person must decide:",
            _ => "not repairable:",
        };
        output::print(&item(&format!("{what} {}", problem.place), &problem.what))?;
    }
    for file in &done.saved {
        session.out.note(&format!("the removed and replaced rows were saved to {}", file.display()));
    }
    if done.count() == 0 && done.left.problems == 0 {
        session.out.note("the store has no problems: there is nothing to do");
    }
    Ok(())
}

/// Exit codes are those of `store check`.
fn result(place: &Place, done: &Done, trial: bool) -> Result<(), Failure> {
    if done.left.problems > 0 {
        return Err(Failure::Unsuccessful {
            kind: "damaged",
            problem: format!("problems of {place} that a repair does not mend: {}", done.left.problems),
            hint: next_step(&done.left),
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
