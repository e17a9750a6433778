//! `store`: maintenance of the data. The only module that opens a store; the server must be stopped, except for `backup`.

mod arguments;
mod backup;
mod copy;
mod engines;
mod failures;
mod place;
mod restored;
mod upgrade;

use crate::{
    commands::{
        collection,
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::{self, Output, progress::Progress},
    text::printable,
};
use arguments::{path, path_of};
use clap::{Arg, ArgMatches, Command};
use engines::CACHE_BYTES;
use failures::{store_failure, unusable_backup};
use place::Place;
use rental_core::{
    check::{self, Report},
    store::{
        StoreError,
        archive::Reader,
        redb::{self, ClosedFile},
    },
};
use serde_json::json;
use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};

pub(crate) const GROUP: Group = Group { name: "store", command, run };

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
    let restore = ["rental-cli store restore /backup/rental-2026-05-05.backup --to redb:/var/lib/rental/rental.redb"];
    let url = |about| {
        Command::new("").about(about).arg(
            Arg::new("url").value_name("URL").required(true).value_parser(store_path).help("Store file, redb:PATH"),
        )
    };
    let command = Command::new(GROUP.name)
        .about("Back up, restore, copy, upgrade, check or compact a store (operator)")
        .subcommand(with_examples(backup::command(), &backup))
        .subcommand(with_examples(
            Command::new("restore").about("Create a store from a backup").arg(path("file", "FILE", "Backup file")).arg(
                Arg::new("to")
                    .long("to")
                    .value_name("URL")
                    .required(true)
                    .value_parser(Place::parse)
                    .help("Store to create, redb:PATH or postgres://...; it must not exist yet"),
            ),
            &restore,
        ))
        .subcommand(with_examples(copy::command(), &copy))
        .subcommand(with_examples(upgrade::command(), &upgrade::EXAMPLES))
        .subcommand(with_examples(
            url("Verify every page and row of a store file; the server must be stopped; read-only").name("check"),
            &check,
        ))
        .subcommand(with_examples(
            url("Return unused space of a store file to the disk; the server must be stopped").name("compact"),
            &compact,
        ));
    with_examples(command, &[backup[0], restore[0], check[0]])
}

/// Parses `redb:PATH`, for commands that work on a file only.
fn store_path(url: &str) -> Result<PathBuf, String> {
    match Place::parse(url)? {
        Place::File(path) => Ok(path),
        Place::Database(_) => {
            Err("is a database, which does this itself (data_checksums, VACUUM); use redb:PATH".into())
        }
    }
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    // Reading damaged pages can panic. The panic is caught and reported, so its message is suppressed.
    std::panic::set_hook(Box::new(|_| {}));
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "check" => check(path_of(matches, "url"), &session.out),
        "compact" => compact(path_of(matches, "url"), &session.out),
        "copy" => copy::run(matches, session),
        "upgrade" => upgrade::run(matches, session),
        "restore" => match matches.get_one::<Place>("to") {
            Some(to) => restore(path_of(matches, "file"), to, &session.out),
            None => Err(Failure::Usage("no --to".into())),
        },
        _ => backup::run(matches, session),
    }
}

fn check(path: &Path, out: &Output) -> Result<(), Failure> {
    let report = match ClosedFile::open(path, CACHE_BYTES) {
        Ok(closed) => {
            let mut progress = Progress::count(closed.count(), "rows");
            check::of_file(&closed, &mut |rows| progress.at(rows))
        }
        Err(StoreError::DamagedStore(detail)) => {
            let mut report = Report::default();
            // The detail begins with the path.
            report.add("the file".to_owned(), detail);
            report
        }
        Err(error) => return Err(store_failure(error)),
    };
    show_report(path, &report, out)?;
    if report.problems == 0 {
        return Ok(());
    }
    Err(Failure::Unsuccessful {
        kind: "damaged",
        problem: match report.problems {
            1 => format!("{} has 1 problem", path.display()),
            problems => format!("{} has {problems} problems", path.display()),
        },
        hint: "keep a copy of the file, then restore the last good backup with `rental-cli store restore`",
    })
}

fn show_report(path: &Path, report: &Report, out: &Output) -> Result<(), Failure> {
    if out.json {
        return out.value(&json!({
            "object": "store_check", "store": format!("redb:{}", path.display()), "sound": report.problems == 0,
            "rows": report.rows, "records": report.records, "problems": report.problems, "listed": report.listed,
        }));
    }
    let mut fields = vec![("rows".to_owned(), Some(report.rows.to_string()))];
    fields.extend(report.records.iter().map(|(object, count)| (format!("{object} records"), Some(count.to_string()))));
    fields.push(("problems".to_owned(), Some(report.problems.to_string())));
    out.fields(&fields)?;
    for problem in &report.listed {
        output::print(&format!("{}: {}\n", printable(&problem.place), printable(&problem.what)))?;
    }
    let hidden = report.problems - report.listed.len() as u64;
    if hidden > 0 {
        out.note(&format!("{hidden} more problems are not listed"));
    }
    Ok(())
}

fn compact(path: &Path, out: &Output) -> Result<(), Failure> {
    let progress = Progress::busy("compacting");
    let made = redb::compact(path, CACHE_BYTES).map_err(store_failure)?;
    progress.finish();
    out.value(&json!({
        "object": "store_compaction", "store": format!("redb:{}", path.display()),
        "bytes_before": made.before, "bytes_after": made.after,
    }))
}

fn restore(file: &Path, to: &Place, out: &Output) -> Result<(), Failure> {
    let opened = File::open(file).map_err(|error| Failure::Io { doing: format!("read {}", file.display()), error })?;
    let mut archive = Reader::open(BufReader::new(opened)).map_err(|error| unusable_backup(file, error))?;
    let made = to.read(&mut archive, file)?;
    let created_at = archive.header().created_at;
    out.value(&json!({
        "object": "store_restore", "store": to.to_string(), "created_at": created_at, "rows": made.rows,
        "sha256": made.sha256,
    }))?;
    out.note("a backup does not contain the admin token and the master key: copy their files from the old store");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_to_a_file_is_not_done_to_a_database() {
        assert_eq!(store_path("redb:a:b"), Ok(PathBuf::from("a:b")));
        assert!(store_path("postgres://db/rental").is_err_and(|told| told.contains("VACUUM")));
    }
}
