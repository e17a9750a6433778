//! `review`: shows the tolls or violations that a person has to look at, in words.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        by_agency, collection, fields, group::with_examples, mentions::Mentions, session::Session, suggestions::reasons,
    },
    edge,
    failure::Failure,
    output::{
        counted, print,
        record::{Page, Record, amount, next_page},
    },
    text::{printable, tsv_cell, wrapped},
};
use clap::{ArgMatches, Command};
use rental_core::{resources::organization, schema::ResourceSpec, value::Date};
use serde::Deserialize;

/// Columns of a pipe: members of the response, and the candidates and the twin in words.
const COLUMNS: [&str; 18] = [
    "when",
    "plate",
    "plate_state",
    "transponder_number",
    "place",
    "amount",
    "verdict",
    "reason",
    "id",
    "respond_by",
    "agency",
    "number",
    CANDIDATES,
    TWIN,
    "status",
    "plate_type",
    VEHICLE_PLATE,
    VEHICLE_NAME,
];
/// The columns that only `--columns` shows.
const MORE: [&str; 8] =
    ["currency", "customer_name", "customer_id", "vehicle_id", "occurred_at", "occurred_on", "billed", "resource"];
const CANDIDATES: &str = "candidates";
const TWIN: &str = "twin";
const VEHICLE_PLATE: &str = "vehicle_plate";
const VEHICLE_NAME: &str = "vehicle_name";

pub(super) fn command(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("Show the {} that a person has to look at, with candidates by name (operator)", spec.plural);
    with_examples(
        Command::new("review").about(about).arg(collection::organization("Organization of the rentals")).arg(
            fields::columns_among(COLUMNS.into_iter().chain(MORE))
                .help("Fields to show, separated by commas, as a table; `candidates` and `twin` are sentences"),
        ),
        examples,
    )
}

pub(super) fn run(spec: &'static ResourceSpec, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let path = [organization::SPEC.plural, session.organization(matches)?, spec.plural, "review"];
    let (mut cursor, mut count, mut json) = (None::<String>, 0, Vec::new());
    let mut clear = 0;
    let columns = session.out.columns_or(&COLUMNS);
    if !session.out.json && !session.out.is_terminal() {
        print(&(columns.join("\t") + "\n"))?;
    }
    let mut table = Vec::new();
    let mut mentions = Mentions::new(&session.api);
    loop {
        let after = cursor.as_ref().map(|cursor| ("starting_after".to_owned(), cursor.clone()));
        let query = [("limit".to_owned(), "100".to_owned())].into_iter().chain(after).collect();
        let page = Page::read(&session.send(&Request::get(Access::Operator, &path).with_query(query))?)?;
        if session.out.is_terminal() && !session.out.json {
            mentions.learn(reasons(&page)?.iter().map(String::as_str));
        }
        let records = page.data.iter().map(|object| Record::read(object.get())).collect::<Result<Vec<_>, _>>()?;
        let names = by_agency::names_of_rows(spec, &records);
        for ((object, record), name) in page.data.iter().zip(records).zip(names) {
            count += 1;
            if session.out.json {
                json.push(object.get().to_owned());
                continue;
            }
            // What an invoice bills keeps its customer: `suggest --attach` leaves it alone.
            let is_billed = record.text("billed").as_deref() == Some("true");
            clear += u64::from(record.text("verdict").as_deref() == Some("clear") && !is_billed);
            let row = Row {
                candidates: candidates(object.get()),
                twin: twin(object.get(), record.text("currency").as_deref()),
                name,
                record,
            };
            match session.out.width() {
                Some(width) if session.out.chosen().is_empty() => {
                    print(&block(row, &mentions, (edge::now().day_number(), width)))?;
                }
                Some(_) => table.push(columns.iter().map(|name| row.shown(name, &mentions)).collect()),
                None => print(&line(&row, &columns))?,
            }
        }
        cursor = next_page(page.has_more, page.next_cursor, cursor.as_deref())?;
        if cursor.is_none() {
            break;
        }
    }
    if session.out.json {
        session.out.json_objects(&json, None)?;
    } else if !table.is_empty() {
        session.out.rows(&columns, &table)?;
    }
    session.out.note(&format!("{} to look at", counted(count, spec.plural)));
    if clear > 0 {
        let (are, them) = if clear == 1 { ("is", "it") } else { ("are", "them") };
        let what = spec.plural;
        session
            .out
            .note(&format!("{clear} of them {are} clear: attach {them} with `rental-cli {what} suggest --attach`"));
    }
    Ok(())
}

/// A toll or violation to look at.
struct Row {
    record: Record,
    candidates: Vec<Candidate>,
    /// The other posting of the same passage, as a sentence.
    twin: Option<String>,
    /// What a command takes for it: its number, with the agency if another row has that too, or its passage.
    name: Option<String>,
}

impl Row {
    /// The cell of a column in a pipe.
    fn plain(&self, name: &str) -> String {
        match name {
            CANDIDATES => self.candidates.iter().map(Candidate::sentence).collect::<Vec<_>>().join("; "),
            TWIN => self.twin.clone().unwrap_or_default(),
            "number" => self.name.clone().unwrap_or_default(),
            name => self.record.text(name).unwrap_or_default(),
        }
    }

    /// The cell of a column on a terminal.
    fn shown(&self, name: &str, mentions: &Mentions<'_>) -> String {
        match name {
            "reason" => mentions.named(&self.plain(name)),
            "amount" => self.record.money(name).unwrap_or_default(),
            // Of a toll that was read by transponder the vehicle has a plate.
            "plate" if self.plain(name).is_empty() => self.plain(VEHICLE_PLATE),
            name => self.plain(name),
        }
    }
}

/// A rental that could have had the vehicle.
#[derive(Deserialize)]
struct Candidate {
    customer_name: Option<String>,
    start_date: Option<String>,
    end_date: Option<String>,
    reason: String,
}

impl Candidate {
    /// Who it is: `Ada Lovelace, 2026-06-01 to 2026-06-05`.
    fn who(&self) -> String {
        let name = self.customer_name.as_deref().unwrap_or("an unknown customer");
        let days = [&self.start_date, &self.end_date].map(|day| day.as_deref().unwrap_or("?")).join(" to ");
        format!("{name}, {days}")
    }

    /// The same with the reason: `Ada Lovelace, 2026-06-01 to 2026-06-05: Had the vehicle.`
    fn sentence(&self) -> String {
        format!("{}: {}", self.who(), self.reason)
    }
}

/// The candidates of a row.
fn candidates(json: &str) -> Vec<Candidate> {
    #[derive(Deserialize)]
    struct Members {
        candidates: Vec<Candidate>,
    }
    serde_json::from_str::<Members>(json).map(|members| members.candidates).unwrap_or_default()
}

/// The other posting of the same passage, as a sentence.
fn twin(json: &str, currency: Option<&str>) -> Option<String> {
    #[derive(Deserialize)]
    struct Members {
        twin: Option<Twin>,
    }
    #[derive(Deserialize)]
    struct Twin {
        when: Option<String>,
        plate: Option<String>,
        transponder_number: Option<String>,
        agency: Option<String>,
        number: Option<String>,
        amount: serde_json::Number,
        customer_name: Option<String>,
    }
    let one = serde_json::from_str::<Members>(json).ok()?.twin?;
    let source = [one.agency, one.number].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let source = Some(source).filter(|source| !source.is_empty());
    let read = [one.when, one.transponder_number.or(one.plate), source].into_iter().flatten().collect::<Vec<_>>();
    let whose = one.customer_name.map_or_else(|| "not attached".to_owned(), |name| format!("attached to {name}"));
    Some(format!("the other toll: {}, {}, {whose}", read.join(", "), amount(&one.amount.to_string(), currency)))
}

/// A row on a terminal: a few lines, wrapped at its width. `today` is the number of the day.
fn block(row: Row, mentions: &Mentions<'_>, (today, width): (u32, usize)) -> String {
    let Row { record, candidates, twin, name } = row;
    let text = |member: &str| record.text(member).filter(|text| !text.is_empty());
    let plate =
        [text("plate"), text("plate_state"), text("plate_type")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let plate = Some(plate).filter(|plate| !plate.is_empty());
    let (known, tag) = (text(VEHICLE_PLATE).filter(|_| plate.is_none()), text("transponder_number"));
    // The head has a plate or the transponder; then the vehicle follows, with the transponder that led to it.
    let tag_of_known = tag.clone().filter(|_| known.is_some()).map(|tag| format!("transponder {tag}"));
    let vehicle: Vec<_> = text(VEHICLE_NAME).into_iter().chain(tag_of_known).collect();
    let whose = plate.or(known).or(tag);
    let head = [text("when"), whose, record.money("amount"), text("place")].into_iter().flatten().collect::<Vec<_>>();
    let mut lines = vec![("", head.join("  "))];
    // By these a person finds it at the agency.
    let has_agency = |name: &String| text("agency").is_some_and(|agency| name.starts_with(&format!("{agency}:")));
    let agency = text("agency").filter(|_| !name.as_ref().is_some_and(has_agency));
    let source = [agency, name].into_iter().flatten().collect::<Vec<_>>();
    lines.extend((!source.is_empty()).then(|| ("  ", source.join(" "))));
    lines.extend((!vehicle.is_empty()).then(|| ("  ", format!("vehicle: {}", vehicle.join(", ")))));
    lines.extend(text("status").map(|status| ("  ", format!("status: {status}"))));
    lines.extend(text("respond_by").map(|day| ("  ", time_left(&day, today))));
    lines.extend(text("customer_name").map(|name| ("  ", format!("billed to {name}"))));
    let reason = text("reason");
    // The reason of the only candidate is often that of the whole row.
    let is_said = |candidate: &Candidate| reason.as_ref() == Some(&candidate.reason);
    let of_candidate = |one: &Candidate| if is_said(one) { one.who() } else { one.sentence() };
    let of_candidates = candidates.iter().map(|candidate| ("  - ", of_candidate(candidate))).collect::<Vec<_>>();
    lines.extend(reason.map(|reason| ("  ", mentions.named(&reason))));
    lines.extend(twin.map(|twin| ("  ", twin)));
    lines.extend(of_candidates);
    lines.extend(text("id").map(|id| ("  ", id)));
    lines.iter().map(|(begin, line)| wrapped(begin, &printable(line), width)).collect::<String>() + "\n"
}

/// How many days are left to respond.
fn time_left(day: &str, today: u32) -> String {
    let last = Date::parse(day).map(|last| i64::from(last.day_number()) - i64::from(today));
    match last {
        None => format!("respond by {day}"),
        Some(0) => format!("respond by {day}: today is the last day"),
        Some(days) => {
            format!(
                "respond by {day}: {} {}",
                counted(days.unsigned_abs(), "days"),
                if days > 0 { "left" } else { "late" }
            )
        }
    }
}

fn line(row: &Row, columns: &[&str]) -> String {
    let cells = columns.iter().map(|name| tsv_cell(&row.plain(name)).to_string());
    cells.collect::<Vec<_>>().join("\t") + "\n"
}
