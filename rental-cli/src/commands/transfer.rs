//! `export` and `import` of all objects of an organization as JSON Lines.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, text},
        fields,
        group::{Group, with_examples},
        import,
        session::Session,
    },
    failure::Failure,
    output::{
        progress::Progress,
        whole_file::{Partial, already_exists, cannot_write},
    },
    text::JsonLines,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{
    imports::organization::{BEGIN, END},
    resources::organization,
};
use serde::Deserialize;
use std::{
    io::{self, BufWriter, IsTerminal as _, Read, Write},
    path::PathBuf,
};

pub(crate) const EXPORT: Group = Group { name: "export", command: export_command, run: run_export };
pub(crate) const IMPORT: Group = Group { name: "import", command: import_command, run: run_import };

/// Maximum length of the last line, which ends the export.
const MAX_LAST_LINE_BYTES: usize = 256;

fn export_command() -> Command {
    let examples = [
        "rental-cli export --organization ID --to sunrise.ndjson",
        "rental-cli export --organization ID | gzip > sunrise.ndjson.gz",
    ];
    let command = Command::new(EXPORT.name)
        .about("Export all objects of an organization as JSON Lines (operator)")
        .arg(collection::organization("Organization to export"))
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("File to write; it gets this name once the export is complete [default: stdout]"),
        )
        .arg(
            Arg::new("pace")
                .long("pace")
                .value_name("PACE")
                .value_parser(["gentle", "full"])
                .default_value("gentle")
                .help("`full` is faster, but slows down requests during the export"),
        )
        .arg(Arg::new("force").long("force").action(ArgAction::SetTrue).help("Replace an existing file"))
        .arg(fields::columns_among(["organization_id", "file", "objects", "bytes"]).requires("to"));
    with_examples(command, &examples)
}

fn import_command() -> Command {
    let examples = [
        "rental-cli import --organization ID sunrise.ndjson --dry-run",
        "gunzip -c sunrise.ndjson.gz | rental-cli import --organization ID -",
    ];
    let command = Command::new(IMPORT.name)
        .about("Import an export into an organization of another server (operator)")
        .arg(collection::organization("Organization to import into; it must have the same currency"))
        .arg(import::file("File that `export` wrote, or - for stdin"))
        .arg(import::dry_run())
        .arg(fields::columns_among(import::SUMMARY))
        .after_help(import::EXIT);
    with_examples(command, &examples)
}

fn run_import(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    import::send(&["import"], Vec::new(), "application/x-ndjson", matches, session)
}

fn run_export(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (to, replace) = (matches.get_one::<PathBuf>("to"), matches.get_flag("force"));
    if session.out.json && to.is_none() {
        return Err(Failure::Usage("an export is many lines of JSON; with --json, use --to FILE".into()));
    }
    if let Some(to) = to.filter(|to| to.exists() && !replace) {
        return Err(already_exists(to));
    }
    let id = session.organization(matches)?;
    let query = vec![("pace".to_owned(), text(matches, "pace").to_owned())];
    let request = Request::get(Access::Operator, &[organization::SPEC.plural, id, "export"]).with_query(query);
    let response = session.api.stream(&request)?;
    let Some(to) = to else {
        let mut stdout = io::stdout().lock();
        return match stdout.is_terminal() {
            true => receive(response, &mut JsonLines::new(stdout), Failure::stdout).map(drop),
            false => receive(response, &mut stdout, Failure::stdout).map(drop),
        };
    };
    let partial = Partial::create_for(to)?;
    let mut out = BufWriter::new(partial.file());
    let received = receive(response, &mut out, |error| cannot_write(&partial.at, error))?;
    drop(out);
    partial.publish(to, replace)?;
    let Received { objects, bytes } = received;
    let object =
        serde_json::json!({"object": "export", "organization_id": id, "file": to, "objects": objects, "bytes": bytes});
    session.show(&object.to_string())
}

#[derive(Debug, Default)]
struct Received {
    /// Number of objects without the organization itself, as `received` of an import counts them.
    objects: u64,
    bytes: u64,
}

/// Copies the lines. Fails unless the last line confirms their number.
fn receive(
    mut from: impl Read,
    to: &mut impl Write,
    unwritten: impl Fn(io::Error) -> Failure,
) -> Result<Received, Failure> {
    let mut progress = Progress::bytes(None, "receiving");
    let (mut received, mut lines) = (Received::default(), LastLine::default());
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(incomplete(&error.to_string())),
        };
        to.write_all(&buffer[..count]).map_err(&unwritten)?;
        lines.see(&buffer[..count]);
        received.bytes += count as u64;
        progress.add(count as u64);
    }
    to.flush().map_err(&unwritten)?;
    let objects = lines.end().ok_or_else(|| incomplete("its last line is missing"))?;
    received.objects = objects.saturating_sub(1);
    Ok(received)
}

fn incomplete(why: &str) -> Failure {
    Failure::Unreachable {
        problem: format!("the export is incomplete ({why})"),
        hint: "see the server's log: a damaged row ends an export (docs/backup.md); else try again",
    }
}

/// Counts lines and keeps the start of the first and of the last one.
#[derive(Default)]
struct LastLine {
    lines: u64,
    first: Vec<u8>,
    last: Vec<u8>,
    open: bool,
}

impl LastLine {
    fn see(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !self.open {
                self.last.clear();
            }
            let room = MAX_LAST_LINE_BYTES.saturating_sub(self.last.len());
            let kept = &part[..part.len().min(room)];
            self.last.extend_from_slice(kept);
            if self.lines == 0 {
                self.first.extend_from_slice(kept);
            }
            self.open = part.last() != Some(&b'\n');
            self.lines += u64::from(!self.open);
        }
    }

    /// Number of objects, if the last line states the number of lines before it. The line with the schema version, which
    /// older servers do not write, is no object.
    fn end(&self) -> Option<u64> {
        #[derive(Deserialize)]
        struct End {
            object: String,
            objects: u64,
        }
        #[derive(Deserialize)]
        struct Begin {
            object: String,
        }
        let end: End = serde_json::from_slice(&self.last).ok()?;
        let begin: Option<Begin> = serde_json::from_slice(&self.first).ok();
        let head = u64::from(begin.is_some_and(|begin| begin.object == BEGIN));
        (!self.open && end.object == END && end.objects == self.lines - 1).then(|| end.objects.saturating_sub(head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_export_is_taken() {
        let end = "{\"object\":\"export_end\",\"objects\":2}\n";
        let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1000));
        let check = |file: &str, expected: Option<u64>| {
            for size in [1, 7, 4096] {
                let mut lines = LastLine::default();
                file.as_bytes().chunks(size).for_each(|part| lines.see(part));
                assert_eq!(lines.end(), expected, "{file}");
            }
        };
        check(&format!("{{}}\n{long}{end}"), Some(2));
        check(&format!("{{\"object\":\"export\",\"schema_version\":3}}\n{{}}\n{end}"), Some(1));
        check(&format!("{{}}\n{long}{}", end.trim_end()), None);
        check(&format!("{{}}\n{end}"), None);
        check(&format!("{{}}\n{long}"), None);
        check("", None);
    }
}
