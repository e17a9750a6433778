//! `review`: shows the tolls or violations that a person has to look at, in words.

use crate::{
    client::{access::Access, request::Request},
    commands::{collection, group::with_examples, session::Session},
    failure::Failure,
    output::{
        print,
        record::{Page, Record, next_page},
    },
    text::{printable, tsv_cell},
};
use clap::{ArgMatches, Command};
use rental_core::{resources::organization, schema::ResourceSpec};
use serde::Deserialize;

/// Columns of a pipe: members of the response.
const COLUMNS: [&str; 9] =
    ["when", "plate", "plate_state", "transponder_number", "place", "amount", "verdict", "reason", "id"];

pub(super) fn command(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("Show the {} that a person has to look at, with candidates by name (operator)", spec.plural);
    with_examples(
        Command::new("review").about(about).arg(collection::organization("Organization of the rentals")),
        examples,
    )
}

pub(super) fn run(spec: &'static ResourceSpec, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let path = [organization::SPEC.plural, session.organization(matches)?, spec.plural, "review"];
    let (mut cursor, mut count, mut json) = (None::<String>, 0, Vec::new());
    if !session.out.json && !session.out.is_terminal() {
        print(&(COLUMNS.join("\t") + "\tcandidates\n"))?;
    }
    loop {
        let after = cursor.as_ref().map(|cursor| ("starting_after".to_owned(), cursor.clone()));
        let query = [("limit".to_owned(), "100".to_owned())].into_iter().chain(after).collect();
        let page = Page::read(&session.send(&Request::get(Access::Operator, &path).with_query(query))?)?;
        for object in &page.data {
            count += 1;
            if session.out.json {
                json.push(object.get().to_owned());
                continue;
            }
            let record = Record::read(object.get())?;
            let candidates = candidates(object.get());
            print(&if session.out.is_terminal() { block(&record, &candidates) } else { line(&record, &candidates) })?;
        }
        cursor = next_page(page.has_more, page.next_cursor, cursor.as_deref())?;
        if cursor.is_none() {
            break;
        }
    }
    if session.out.json {
        let data = json.join(",");
        print(&format!("{{\"object\":\"list\",\"has_more\":false,\"next_cursor\":null,\"data\":[{data}]}}\n"))?;
    }
    session.out.note(&format!("{count} {} to look at", spec.plural));
    Ok(())
}

/// The candidates of a row, each as a sentence: `Ada Lovelace, 2026-06-01 to 2026-06-05: Had the vehicle.`
fn candidates(json: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Row {
        candidates: Vec<Candidate>,
    }
    #[derive(Deserialize)]
    struct Candidate {
        customer_name: Option<String>,
        start_date: Option<String>,
        end_date: Option<String>,
        reason: String,
    }
    let Ok(Row { candidates }) = serde_json::from_str(json) else { return Vec::new() };
    let sentence = |one: Candidate| {
        let name = one.customer_name.as_deref().unwrap_or("an unknown customer").to_owned();
        let days = [one.start_date, one.end_date].map(|day| day.unwrap_or_else(|| "?".into())).join(" to ");
        format!("{name}, {days}: {}", one.reason)
    };
    candidates.into_iter().map(sentence).collect()
}

/// A row on a terminal: a few lines that are readable at 80 columns.
fn block(record: &Record, candidates: &[String]) -> String {
    let text = |member: &str| record.text(member).filter(|text| !text.is_empty());
    let plate = [text("plate"), text("plate_state")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let whose = Some(plate).filter(|plate| !plate.is_empty()).or_else(|| text("transponder_number"));
    let amount = [text("amount"), text("currency")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let head = [text("when"), whose, Some(amount), text("place")];
    let mut lines = vec![head.into_iter().flatten().collect::<Vec<_>>().join("  ")];
    lines.extend(text("customer_name").map(|name| format!("  billed to {name}")));
    lines.extend(text("reason").map(|reason| format!("  {reason}")));
    lines.extend(candidates.iter().map(|candidate| format!("  - {candidate}")));
    lines.extend(text("id").map(|id| format!("  {id}")));
    lines.iter().map(|line| printable(line).to_string() + "\n").collect::<String>() + "\n"
}

fn line(record: &Record, candidates: &[String]) -> String {
    let cells = COLUMNS.iter().map(|member| record.text(member).unwrap_or_default()).chain([candidates.join("; ")]);
    cells.map(|cell| tsv_cell(&cell).to_string()).collect::<Vec<_>>().join("\t") + "\n"
}
