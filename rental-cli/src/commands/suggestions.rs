//! `suggest`: shows who should pay for tolls and violations, and attaches clear suggestions.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, chosen_key, text},
        fields,
        group::with_examples,
        json_text::JsonText,
        mentions::Mentions,
        names::LookUp,
        session::Session,
    },
    config::values,
    failure::Failure,
    output::{
        print,
        progress::Progress,
        record::{Page, Record, next_page},
    },
    text::tsv_cell,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{
    resources::{customer, organization, rental, vehicle},
    schema::ResourceSpec,
};
use std::collections::BTreeSet;

/// A column: its heading, and the member of the response. Where they differ, it shows the name of the object with that id,
/// if that was looked up.
type Column = (&'static str, &'static str);

/// The references, by which `--columns` names them.
const NAMED: [(&str, &str, &ResourceSpec); 3] = [
    ("vehicle", "vehicle_id", &vehicle::SPEC),
    ("customer", "customer_id", &customer::SPEC),
    ("rental", "rental_id", &rental::SPEC),
];
/// The members of the response that `--columns` names.
const MEMBERS: [&str; 12] = [
    "id",
    "verdict",
    "attached",
    "vehicle_id",
    "customer_id",
    "rental_id",
    "reason",
    "when",
    "plate",
    "amount",
    "currency",
    "twin_id",
];
/// Columns of a pipe, which has ids.
const COLUMNS: [Column; 10] = [
    ("id", "id"),
    ("verdict", "verdict"),
    ("attached", "attached"),
    ("vehicle", "vehicle_id"),
    ("customer", "customer_id"),
    ("rental", "rental_id"),
    ("reason", "reason"),
    ("when", "when"),
    ("plate", "plate"),
    ("amount", "amount"),
];
/// Columns of a terminal, which has names and no room for ids. The longest one is the last.
const SHOWN: [Column; 8] = [
    ("when", "when"),
    ("vehicle", "vehicle_id"),
    ("plate", "plate"),
    ("amount", "amount"),
    ("verdict", "verdict"),
    ("attached", "attached"),
    ("customer", "customer_id"),
    ("reason", "reason"),
];

pub(super) fn command(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let command = Command::new("suggest")
        .about(format!("Suggest who pays unattached {}, and why (operator)", spec.plural))
        .arg(collection::organization("Organization of the rentals"))
        .arg(
            Arg::new("attach")
                .long("attach")
                .action(ArgAction::SetTrue)
                .help("Attach the clear suggestions; never changes a decision of a person"),
        )
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .value_parser(values::count)
                .help("How many to look at, the newest first [default: all]"),
        )
        .arg(fields::columns_among(MEMBERS.into_iter().chain(NAMED.map(|(name, ..)| name))));
    with_examples(command, examples)
}

pub(super) fn release_command(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    collection::action(
        spec,
        "release",
        "Take back the choice of a person; the server chooses who pays (operator)",
        examples,
    )
}

pub(super) fn release(spec: &'static ResourceSpec, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let id = session.object_id(spec, text(matches, "id"))?;
    let request = Request::post(Access::Operator, &[spec.plural, &id, "release"], None);
    session.object(&request.with_idempotency_key(chosen_key(matches))).map(drop)
}

/// Most suggestions of a page.
const MAX_LIMIT: u64 = 100;

/// Number of suggestions by verdict.
#[derive(Default)]
struct Tally {
    clear: u64,
    unclear: u64,
    nobody: u64,
    attached: u64,
}

/// Output so far. With `--json`, objects are kept until all pages have arrived.
#[derive(Default)]
struct Shown {
    rows: u64,
    json: Vec<String>,
}

pub(super) fn run(spec: &'static ResourceSpec, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let path = [organization::SPEC.plural, session.organization(matches)?, spec.plural, "suggestions"];
    let attach = matches.get_flag("attach");
    let (mut tally, mut shown, mut cursor) = (Tally::default(), Shown::default(), None::<String>);
    let mut names = LookUp::new(&session.api, Access::Organization);
    let mut mentions = Mentions::new(&session.api);
    let mut progress = Progress::count(None, &format!("{} looked at", spec.plural));
    let limit = matches.get_one::<u32>("limit").map(|limit| u64::from(*limit));
    loop {
        let size = limit.map_or(MAX_LIMIT, |limit| (limit - shown.rows).min(MAX_LIMIT));
        let page = Page::read(&session.send(&request(&path, attach, size, cursor.as_deref()))?)?;
        find_names(&page, &mut names, session)?;
        if session.out.is_terminal() && !session.out.json {
            mentions.learn(reasons(&page)?.iter().map(String::as_str));
        }
        progress.hidden_while(|| show(&page, &mut tally, &mut shown, (session, &names, &mentions)))?;
        progress.at(shown.rows);
        cursor = next_page(page.has_more, page.next_cursor, cursor.as_deref())?;
        if cursor.is_none() || limit.is_some_and(|limit| limit <= shown.rows) {
            break;
        }
    }
    progress.finish();
    if session.out.json {
        session.out.json_objects(&shown.json, cursor.as_deref())?;
    }
    let Tally { clear, unclear, nobody, attached } = tally;
    let done = if attach { format!("; {attached} attached") } else { String::new() };
    let rest = if cursor.is_some() { "; there are more: omit --limit" } else { "" };
    session.out.note(&format!("{clear} clear, {unclear} unclear, {nobody} with nobody{done}{rest}"));
    Ok(())
}

/// Attaches the clear suggestions of an organization, and says how many.
pub(super) fn attach_clear(spec: &ResourceSpec, organization: &str, session: &Session) -> Result<(), Failure> {
    let path = [organization::SPEC.plural, organization, spec.plural, "suggestions"];
    let (mut looked_at, mut attached, mut cursor) = (0, 0, None::<String>);
    let mut progress = Progress::count(None, &format!("{} looked at", spec.plural));
    loop {
        let page = Page::read(&session.send(&request(&path, true, MAX_LIMIT, cursor.as_deref()))?)?;
        for object in &page.data {
            looked_at += 1;
            attached += u64::from(Record::read(object.get())?.text("attached").as_deref() == Some("true"));
        }
        progress.at(looked_at);
        cursor = next_page(page.has_more, page.next_cursor, cursor.as_deref())?;
        if cursor.is_none() {
            break;
        }
    }
    progress.finish();
    let rest = match looked_at - attached {
        0 => String::new(),
        rest => format!("; {rest} without a clear customer: rental-cli {} review", spec.plural),
    };
    session.out.note(&format!("{attached} attached{rest}"));
    Ok(())
}

fn request(path: &[&str], attach: bool, size: u64, cursor: Option<&str>) -> Request {
    if attach {
        let after = cursor.map(|cursor| format!(",\"starting_after\":{}", JsonText::string(cursor).as_str()));
        return Request::post(
            Access::Operator,
            path,
            Some(format!("{{\"limit\":{size}{}}}", after.unwrap_or_default())),
        );
    }
    let after = cursor.map(|cursor| ("starting_after".to_owned(), cursor.to_owned()));
    Request::get(Access::Operator, path)
        .with_query([("limit".to_owned(), size.to_string())].into_iter().chain(after).collect())
}

/// The columns that are shown.
fn columns(session: &Session) -> Vec<Column> {
    let chosen = |name: &String| {
        let reference = NAMED.iter().find(|(known, ..)| known == name).map(|(name, member, _)| (*name, *member));
        reference.or_else(|| MEMBERS.iter().find(|member| *member == name).map(|member| (*member, *member)))
    };
    match session.out.chosen() {
        [] if session.out.is_terminal() => SHOWN.to_vec(),
        [] => COLUMNS.to_vec(),
        names => names.iter().filter_map(chosen).collect(),
    }
}

/// Looks up the objects of a page whose names are shown. A pipe has ids, unless somebody asks for names.
fn find_names(page: &Page, names: &mut LookUp<'_>, session: &Session) -> Result<(), Failure> {
    if session.out.json || (!session.out.is_terminal() && session.out.chosen().is_empty()) {
        return Ok(());
    }
    let shown = columns(session);
    let named = NAMED.iter().filter(|(name, member, _)| shown.contains(&(*name, *member)));
    let named: Vec<_> = named.map(|(_, member, spec)| (*member, spec.plural)).collect();
    let mut wanted = BTreeSet::new();
    for object in &page.data {
        let record = Record::read(object.get())?;
        for (member, plural) in &named {
            wanted.extend(record.text(member).map(|id| (id, (*plural).to_owned())));
        }
    }
    names.find(wanted);
    Ok(())
}

/// The reasons of a page.
pub(super) fn reasons(page: &Page) -> Result<Vec<String>, Failure> {
    let reasons = page.data.iter().map(|object| Ok(Record::read(object.get())?.text("reason")));
    Ok(reasons.collect::<Result<Vec<_>, Failure>>()?.into_iter().flatten().collect())
}

/// Prints a page at once. With `--json` it is kept, so that a failure does not print half of a list.
fn show(
    page: &Page,
    tally: &mut Tally,
    shown: &mut Shown,
    (session, names, mentions): (&Session, &LookUp<'_>, &Mentions<'_>),
) -> Result<(), Failure> {
    let columns = columns(session);
    let mut rows = Vec::with_capacity(page.data.len());
    for object in &page.data {
        let record = Record::read(object.get())?;
        match record.text("verdict").as_deref() {
            Some("clear") => tally.clear += 1,
            Some("unclear") => tally.unclear += 1,
            _ => tally.nobody += 1,
        }
        tally.attached += u64::from(record.text("attached").as_deref() == Some("true"));
        let cell = |(heading, member): &Column| match *member {
            "amount" if session.out.is_terminal() => record.money(member),
            "reason" => record.text(member).map(|reason| mentions.named(&reason)),
            member if heading == &member => record.text(member),
            member => {
                record.text(member).map(|text| names.names.get(&text).map_or_else(|| text.clone(), str::to_owned))
            }
        };
        rows.push(columns.iter().map(|column| cell(column).unwrap_or_default()).collect::<Vec<_>>());
    }
    let first = shown.rows == 0;
    shown.rows += rows.len() as u64;
    if session.out.json {
        shown.json.extend(page.data.iter().map(|object| object.get().to_owned()));
        return Ok(());
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    if session.out.is_terminal() {
        return if rows.is_empty() { Ok(()) } else { session.out.rows(&names, &rows) };
    }
    let line = |row: &Vec<String>| row.iter().map(|cell| tsv_cell(cell)).collect::<Vec<_>>().join("\t") + "\n";
    let text: String = rows.iter().map(line).collect();
    let names = if first { names.join("\t") + "\n" } else { String::new() };
    print(&(names + &text))
}
