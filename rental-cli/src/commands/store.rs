//! `store`: maintenance of the data. The only module that opens a store; the server must be stopped, except for `backup`.

mod arguments;
mod backup;
mod copy;
mod erased;
mod failures;
mod place;
mod repair;
mod transfer;
mod upgrade;

use crate::{
    commands::{
        collection,
        fields::columns_among,
        group::{Group, with_examples},
        session::Session,
    },
    config::private_file,
    edge,
    failure::Failure,
    output::{self, Output, item, progress::Progress},
};
use arguments::{path, path_of};
use clap::{Arg, ArgAction, ArgMatches, Command};
use failures::{next_step, store_failure};
use place::{CACHE_BYTES, Place, file_forms, forms};
use rental_core::{
    check::{self, Remedy, Report},
    store::{Maintenance, StoreError},
    webhooks::{master_key::InUse, secret::MasterKeys},
};
use serde_json::json;
use std::{
    any::Any,
    fs::File,
    io::{BufReader, ErrorKind},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

pub(crate) const GROUP: Group = Group { name: "store", command, run };

/// What `check` can show besides the problems, which it lists always.
const CHECKED: [&str; 5] = ["store", "sound", "rows", "master_key", "problems"];

fn command() -> Command {
    let check = ["rental-cli store check redb:/var/lib/rental/rental.redb"];
    let compact = ["rental-cli store compact redb:/var/lib/rental/rental.redb"];
    let backup = [
        "rental-cli store backup --to /backup/rental-2026-05-05.backup",
        "rental-cli store backup --to latest.backup --force --pace full",
    ];
    let copy = [
        "rental-cli store copy --from redb:/var/lib/rental/rental.redb --to postgres://rental@db/rental",
        "rental-cli store copy --from postgres://rental@db/rental --to redb:rental.redb",
    ];
    let restore = [
        "rental-cli store restore /backup/rental-2026-05-05.backup --to redb:/var/lib/rental/rental.redb",
        "rental-cli store restore old.backup --to redb:rental.redb --erased redb:/var/lib/rental/damaged.redb",
    ];
    let url = |about| {
        let file = place::completed(Arg::new("url").value_name("URL").required(true).value_parser(place::parse_file));
        Command::new("").about(about).arg(file.help(format!("Store file, {}", file_forms())))
    };
    let command =
        Command::new(GROUP.name)
            .about("Back up, restore, copy, upgrade, check, repair or compact a store (operator)")
            .subcommand(with_examples(backup::command(), &backup))
            .subcommand(with_examples(
                Command::new("restore")
                    .about("Create a store from a backup")
                    .arg(path("file", "FILE", "Backup file"))
                    .arg(place::completed(
                        Arg::new("to")
                            .long("to")
                            .value_name("URL")
                            .required(true)
                            .value_parser(place::parse)
                            .help(format!("Store to create, {}; it must not exist yet", forms())),
                    ))
                    .arg(Arg::new("erased").long("erased").value_name("FROM").action(ArgAction::Append).help(
                        "Newer store (URL) or backup (path): people on its list of erased people are erased again",
                    ))
                    .arg(columns_among(["store", "created_at", "rows", "sha256", "erased_people_added"])),
                &restore,
            ))
            .subcommand(with_examples(copy::command(), &copy))
            .subcommand(with_examples(upgrade::command(), &upgrade::EXAMPLES))
            .subcommand(with_examples(
                url("Verify every page and row of a store file; the server must be stopped; read-only")
                    .name("check")
                    .arg(columns_among(CHECKED)),
                &check,
            ))
            .subcommand(with_examples(repair::command(), &repair::EXAMPLES))
            .subcommand(with_examples(
                url("Return unused space of a store file to the disk; the server must be stopped")
                    .name("compact")
                    .arg(columns_among(["store", "bytes_before", "bytes_after"])),
                &compact,
            ));
    with_examples(command, &[backup[0], restore[0], check[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    // redb can panic on damaged pages. The engine catches the panics of its reads and writes, and `caught` those of all other
    // calls. Both report an error, so the message of the panic is suppressed.
    std::panic::set_hook(Box::new(|_| {}));
    catch_unwind(AssertUnwindSafe(|| run_verb(matches, session))).unwrap_or_else(|panic| Err(caught(panic.as_ref())))
}

/// Failure of a command that panicked.
fn caught(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    Failure::Unsuccessful {
        kind: "damaged",
        problem: format!(
            "reading the store failed ({}), so its pages are probably damaged",
            text.unwrap_or("no reason given").replace('\n', " ")
        ),
        hint: "run `rental-cli store check` for details; restore a backup with `rental-cli store restore`",
    }
}

fn run_verb(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "check" => check(named(matches, "url")?, &session.out),
        "compact" => compact(named(matches, "url")?, &session.out),
        "copy" => copy::run(matches, session),
        "repair" => repair::run(matches, session),
        "upgrade" => upgrade::run(matches, session),
        "restore" => {
            let lists: Vec<&String> = matches.get_many("erased").into_iter().flatten().collect();
            restore(path_of(matches, "file"), named(matches, "to")?, &lists, &session.out)
        }
        _ => backup::run(matches, session),
    }
}

fn named<'m>(matches: &'m ArgMatches, id: &str) -> Result<&'m Place, Failure> {
    matches.get_one(id).ok_or_else(|| Failure::Usage(format!("no {id}")))
}

fn maintenance(place: &Place) -> Result<&dyn Maintenance, Failure> {
    place.maintenance().map_err(|why| Failure::Usage(format!("{place} {why}")))
}

fn check(place: &Place, out: &Output) -> Result<(), Failure> {
    let report = match maintenance(place)?.inspect(CACHE_BYTES) {
        Ok(closed) => {
            let mut progress = Progress::count(closed.count(), "rows");
            check::of_file_at(closed.as_ref(), edge::now(), &mut |rows| progress.at(rows))
        }
        Err(StoreError::DamagedStore(detail)) => {
            let mut report = Report::default();
            // The detail begins with the path.
            report.add("the file".to_owned(), detail, Remedy::Backup);
            report
        }
        Err(error) => return Err(store_failure(place.as_ref(), error)),
    };
    show_report(place, &report, out)?;
    if report.is_sound() {
        if report.problems > 0 {
            out.note(&format!("{} problems are that something is gone: {}", report.problems, next_step(&report)));
        }
        return Ok(());
    }
    Err(Failure::Unsuccessful {
        kind: "damaged",
        problem: match report.problems {
            1 => format!("{} has 1 problem", shown(place)),
            problems => format!("{} has {problems} problems", shown(place)),
        },
        hint: next_step(&report),
    })
}

/// The path of a file, or the URL of another store.
fn shown(place: &Place) -> String {
    place.file().map_or_else(|| place.to_string(), |path| path.display().to_string())
}

fn show_report(place: &Place, report: &Report, out: &Output) -> Result<(), Failure> {
    let in_use = report.master_key.in_use.as_ref();
    let (keys, beside) = (&report.master_key, place.file().map(|path| key_beside(path, in_use)));
    if out.json {
        return out.value(&json!({
            "object": "store_check", "store": place.to_string(), "sound": report.is_sound(),
            "rows": report.rows, "records": report.records, "problems": report.problems, "listed": report.listed,
            "master_key": {"in_use": keys.in_use, "unreadable": keys.unreadable, "file": beside},
        }));
    }
    let beside = beside.map(|beside| format!(", {beside}")).unwrap_or_default();
    let key = keys.in_use.as_ref().map(|in_use| format!("{}{beside}", in_use.current));
    let (rows, problems) = (Some(report.rows.to_string()), Some(report.problems.to_string()));
    if out.chosen().is_empty() {
        let mut fields = vec![("rows".to_owned(), rows)];
        fields.extend(report.records.iter().map(|(object, n)| (format!("{object} records"), Some(n.to_string()))));
        fields.push(("master key".to_owned(), key));
        fields.push(("endpoints of another key".to_owned(), Some(keys.unreadable.to_string())));
        fields.push(("problems".to_owned(), problems));
        out.fields(&fields)?;
    } else {
        let sound = report.is_sound().to_string();
        let all = CHECKED.into_iter().map(str::to_owned);
        out.only(all.zip([Some(place.to_string()), Some(sound), rows, key, problems]).collect())?;
    }
    for problem in &report.listed {
        output::print(&item(&problem.place, &problem.what))?;
    }
    if report.master_key.unreadable > 0 {
        out.note(
            "the secrets of some webhook endpoints were encrypted with another master key: nothing is sent to them until \
             `rental-cli webhook-endpoints rotate-secret`",
        );
    }
    let hidden = report.problems - report.listed.len() as u64;
    if hidden > 0 {
        out.note(&format!("{hidden} more problems are not listed"));
    }
    Ok(())
}

/// Whether the file beside the store holds the master keys of the store.
fn key_beside(path: &Path, in_use: Option<&InUse>) -> &'static str {
    let mut file = path.as_os_str().to_owned();
    file.push(".master-key");
    match private_file::read(Path::new(&file)) {
        Err(error) if error.kind() == ErrorKind::NotFound => "no key file is beside the store",
        Err(_) => "the key file beside the store cannot be read",
        Ok(text) => match (MasterKeys::parse(&text), in_use) {
            (None, _) => "the key file beside the store holds no keys",
            (Some(keys), Some(in_use)) if in_use.missing_in(&keys).is_some() => {
                "which the key file beside the store does not hold"
            }
            (Some(_), _) => "which the key file beside the store holds",
        },
    }
}

fn compact(place: &Place, out: &Output) -> Result<(), Failure> {
    let store = maintenance(place)?;
    upgrade::check_pages(place, store)?;
    let progress = Progress::busy("compacting");
    let made = store.compact(CACHE_BYTES).map_err(|error| store_failure(place.as_ref(), error))?;
    progress.finish();
    out.value(&json!({
        "object": "store_compaction", "store": place.to_string(),
        "bytes_before": made.before, "bytes_after": made.after,
    }))
}

fn restore(file: &Path, to: &Place, lists: &[&String], out: &Output) -> Result<(), Failure> {
    let mut erased = Vec::new();
    for list in lists {
        erased.extend(erased::read(list)?);
    }
    erased.sort_by(|one, other| one.key.cmp(&other.key));
    erased.dedup_by(|one, other| one.key == other.key);
    let opened = File::open(file).map_err(|error| Failure::Io { doing: format!("read {}", file.display()), error })?;
    let (made, created_at) = transfer::read(to, BufReader::new(opened), file)?;
    let erased = erased::add(to, &erased)?;
    out.value(&json!({
        "object": "store_restore", "store": to.to_string(), "created_at": created_at, "rows": made.rows,
        "sha256": made.sha256, "erased_people_added": erased,
    }))?;
    if lists.is_empty() {
        out.note("people who were erased after this backup are back; `--erased FROM` erases them again (docs/gdpr.md)");
    }
    out.note("a backup does not contain the admin token and the master key: copy their files from the old store");
    Ok(())
}
