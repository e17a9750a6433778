//! `import` of toll statements, violation lists and exports. The server parses the file and reports the result of each row.

use crate::{
    client::{
        access::Access,
        request::Request,
        upload::{self, Source},
    },
    commands::{
        candidates, collection, fields, group::with_examples, mentions::Mentions, session::Session, suggestions,
    },
    config::private_file,
    edge,
    failure::Failure,
    output::record::{Record, amount},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{
    imports::statements::{DEFAULT_ISSUER, Kind},
    resources::organization,
};
use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// Maximum number of invalid rows shown.
const MOST_SHOWN: usize = 20;

/// How far the server's clock may be behind this one in the command that lists what was updated.
const MOST_SKEW: Duration = Duration::from_secs(5);

/// End of the help of every import.
pub(super) const EXIT: &str = "\
Invalid rows are skipped and counted as `invalid`; all other rows are imported, and the exit code is 0.
When every row is invalid or skipped, and not all are skipped, nothing is imported and the exit code is 6.
The first 20 invalid rows are shown on stderr; --json lists up to 1000.
If the server rejects the whole file, nothing is imported and the exit code is 6.";

/// With what the columns of sums begin. `amount_created` is printed as `amount created`.
const OF_AMOUNT: &str = "amount_";
/// What the summary of an import has.
pub(super) const SUMMARY: [&str; 16] = [
    "format",
    "dry_run",
    "received",
    "created",
    "updated",
    "duplicates",
    "skipped",
    "invalid",
    "matched",
    "amount_received",
    "amount_created",
    "amount_updated",
    "amount_duplicates",
    "amount_skipped",
    "amount_invalid",
    "amount_matched",
];

/// Builds `import` of a kind of statement.
pub(super) fn command(kind: &Kind, examples: &[&str]) -> Command {
    let names: Vec<&str> = kind.formats.iter().map(|(name, _)| *name).collect();
    let text = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let format = text("format", "NAME").help(format!("Format of the file: {} [default: the first]", names.join(", ")));
    let format = candidates::words(format, names);
    let zone = text("time-zone", "ZONE")
        .help("Time zone of local times in the file, such as America/Chicago [default: the format's or mapping's, else the organization's]");
    let mapping = text("mapping", "FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .conflicts_with("format")
        .help("JSON file that describes the file of an agency or city without a format");
    let issuer = text("issuer", "NAME")
        .help(format!("Issuer of the summons numbers [default: the format's or mapping's, else {DEFAULT_ISSUER}]"));
    let attach = Arg::new("attach").long("attach").action(ArgAction::SetTrue).conflicts_with("dry-run").help(format!(
        "Then attach the {} that clearly belong to one customer, as `suggest --attach` does",
        kind.resource.plural
    ));
    let command = Command::new("import")
        .about(format!("Import {} (operator)", kind.file))
        .arg(collection::organization("Organization that owns the vehicles"))
        .arg(file("File to import, or - for stdin"))
        .args([format, mapping, zone, dry_run()])
        .args(kind.has_issuer.then_some(issuer))
        .arg(attach)
        .arg(fields::columns_among(SUMMARY))
        .after_help(EXIT);
    with_examples(command, examples)
}

pub(super) fn file(help: &'static str) -> Arg {
    Arg::new("file").value_name("FILE").required(true).value_parser(clap::value_parser!(PathBuf)).help(help)
}

pub(super) fn dry_run() -> Arg {
    Arg::new("dry-run").long("dry-run").action(ArgAction::SetTrue).help("Validate and count only; import nothing")
}

pub(super) fn run(kind: &Kind, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let mut query = Vec::new();
    let own = kind.has_issuer.then_some("issuer");
    for name in ["format", "time-zone"].into_iter().chain(own) {
        query.extend(matches.get_one::<String>(name).map(|value| (name.replace('-', "_"), value.clone())));
    }
    if let Some(path) = matches.get_one::<PathBuf>("mapping") {
        query.push(("mapping".to_owned(), mapping(path)?));
    }
    let media = match matches.get_one::<PathBuf>("file").and_then(|path| path.extension()) {
        Some(extension) if extension.eq_ignore_ascii_case("json") => "application/json",
        _ => "text/csv",
    };
    send(&[kind.resource.plural, "import"], query, media, matches, session)?;
    match matches.get_flag("attach") {
        true => suggestions::attach_clear(kind.resource, session.organization(matches)?, session),
        false => Ok(()),
    }
}

/// Reads a mapping and removes its white space, because it is sent in the query.
fn mapping(path: &Path) -> Result<String, Failure> {
    let text =
        private_file::read(path).map_err(|error| Failure::Io { doing: format!("read {}", path.display()), error })?;
    let text = text.trim_start_matches('\u{feff}').to_owned();
    // Invalid JSON is sent unchanged: the server explains the error.
    Ok(serde_json::from_str::<serde_json::Value>(&text).map_or(text, |value| value.to_string()))
}

/// Uploads the file to the import at `words` below the organization, and prints the summary.
pub(super) fn send(
    words: &[&str],
    mut query: Vec<(String, String)>,
    media: &'static str,
    matches: &ArgMatches,
    session: &Session,
) -> Result<(), Failure> {
    if matches.get_flag("dry-run") {
        query.push(("dry_run".into(), "true".into()));
    }
    let id = session.organization(matches)?;
    let source = Source::of(matches.get_one::<PathBuf>("file").map_or_else(|| Path::new("-"), PathBuf::as_path))?;
    // Detects a wrong secret or organization before a large upload: during one, the connection may close before the error
    // response is read.
    let owner = session.send(&Request::get(Access::Operator, &[organization::SPEC.plural, id]))?;
    let currency = Record::read(&owner)?.text("default_currency");
    let path = [&[organization::SPEC.plural, id], words].concat();
    let request = Request::post(Access::Operator, &path, None).with_query(query);
    let began = edge::time_ago(MOST_SKEW);
    let json = upload::send(&session.api, &request, &source, media)?;
    show(&json, currency.as_deref(), session)?;
    let summary = Record::read(&json)?;
    let has = |name: &str| summary.text(name).is_some_and(|count| count != "0");
    if has("invalid") && !["created", "updated", "duplicates"].into_iter().any(has) {
        return Err(Failure::Unsuccessful {
            kind: "every_row_invalid",
            problem: "no row was imported, because every row of the file is invalid or skipped".into(),
            hint: "correct what the messages name, then import the file again",
        });
    }
    let dry_run = matches.get_flag("dry-run");
    let of_statement = words.len() == 2 && !dry_run && !session.out.json;
    if of_statement && summary.text("updated").is_some_and(|updated| updated != "0") {
        let group = words.first().copied().unwrap_or_default();
        session.out.note(&format!(
            "created and updated ones, the latest change last: rental-cli {group} list --updated-gte {began} --columns updated_at,id,created_at"
        ));
    }
    Ok(())
}

/// The sums of an export that are not 0, each with its resource: `amount_tolls_received`.
fn sums_by_resource(record: &Record) -> Result<Vec<(String, String)>, Failure> {
    let mut all = Vec::new();
    let Some(by_resource) = record.text("amounts_by_resource") else { return Ok(all) };
    for (plural, sums) in Record::read(&by_resource)?.fields() {
        let sums = Record::read(&sums.unwrap_or_default())?;
        let some = sums.fields().filter_map(|(name, sum)| Some((name, sum.filter(|sum| sum != "0")?)));
        all.extend(some.map(|(name, sum)| (format!("{OF_AMOUNT}{plural}_{name}"), sum)));
    }
    Ok(all)
}

fn show(json: &str, currency: Option<&str>, session: &Session) -> Result<(), Failure> {
    if session.out.json {
        return session.show(json);
    }
    let record = Record::read(json)?;
    let others = ["amounts", "amounts_by_resource", "errors", "errors_omitted", "review", "review_omitted"];
    let mut counts: Vec<_> = record.fields().filter(|(name, _)| !others.contains(&name.as_str())).collect();
    if let Some(amounts) = record.text("amounts") {
        let amounts = Record::read(&amounts)?;
        let shown = |text: String| if session.out.is_terminal() { amount(&text, currency) } else { text };
        counts.extend(amounts.fields().map(|(name, text)| (format!("{OF_AMOUNT}{name}"), text.map(shown))));
        counts.extend(sums_by_resource(&record)?.into_iter().map(|(name, text)| (name, Some(shown(text)))));
    }
    let shown = session.out.selected(counts).into_iter().map(|(name, text)| match name.strip_prefix(OF_AMOUNT) {
        Some(count) => (format!("amount {}", count.replace('_', " ")), text),
        None => (name, text),
    });
    session.out.fields(&shown.collect::<Vec<_>>())?;
    let (review, errors) = (record.list("review"), record.list("errors"));
    let message = |row: &Record| row.text("message").unwrap_or_default();
    let messages: Vec<String> =
        [&review, &errors].into_iter().flat_map(|rows| rows.iter().take(MOST_SHOWN)).map(message).collect();
    let mut mentions = Mentions::new(&session.api);
    // A log of a script gets the text of the response, as everywhere.
    if session.out.has_notes() && io::stderr().is_terminal() {
        mentions.learn(messages.iter().map(String::as_str));
    }
    for row in review.iter().take(MOST_SHOWN) {
        let text = |name| row.text(name).unwrap_or_default();
        session.out.note(&format!("row {} {}", text("row"), mentions.named(&text("message"))));
    }
    if review.len() > MOST_SHOWN {
        session.out.note(&format!("only the first {MOST_SHOWN} of these rows are shown, --json lists more"));
    }
    for error in errors.iter().take(MOST_SHOWN) {
        let text = |name| error.text(name).unwrap_or_default();
        session.out.note(&format!("row {}: {}", text("row"), mentions.named(&text("message"))));
    }
    let invalid = record.text("invalid").unwrap_or_default();
    if errors.len() > MOST_SHOWN {
        session.out.note(&format!(
            "{invalid} rows are invalid and were not imported; the first {MOST_SHOWN} are shown, --json lists more"
        ));
    } else if invalid != "0" {
        session.out.note(&format!(
            "invalid rows: {invalid}; correct what the messages name and import the file again: imported rows are not imported twice"
        ));
    }
    Ok(())
}
