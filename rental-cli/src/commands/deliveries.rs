//! `deliveries`: events sent to webhook endpoints, and the result of each attempt.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, Collection, text},
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{ArgMatches, Command};
use rental_core::resources::delivery::SPEC;

pub(crate) const GROUP: Group = Group { name: "deliveries", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Operator };

/// Maximum number of characters shown of a response.
const EXCERPT_CHARS: usize = 200;

fn command() -> Command {
    let list = [
        "rental-cli deliveries list --organization ID",
        "rental-cli deliveries list --organization ID --status failed",
        "rental-cli deliveries list --organization ID --endpoint ID --event ID --json",
    ];
    let get = ["rental-cli deliveries get ID"];
    let organization = collection::organization("Organization of the events");
    let command = Command::new(GROUP.name)
        .about("Show deliveries of events to webhook endpoints (operator)")
        .subcommand(collection::list(&SPEC, &list).arg(organization.display_order(0)))
        .subcommand(collection::get(&SPEC, &get).about("Show one delivery and its attempts"));
    with_examples(command, &[list[0], get[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "list" => COLLECTION.list(matches, session, &["organizations", session.organization(matches)?, SPEC.plural]),
        "get" if !session.out.json => {
            let request = Request::get(Access::Operator, &[SPEC.plural, text(matches, "id")]);
            let delivery = Record::read(&session.send(&request)?)?;
            session.out.fields(&chosen(session.out.chosen(), with_attempts(&delivery)))
        }
        _ => COLLECTION.run(verb, matches, session),
    }
}

/// What `--columns` names of a delivery; `log` are its attempts. All without it.
fn chosen(names: &[String], fields: Vec<(String, Option<String>)>) -> Vec<(String, Option<String>)> {
    if names.is_empty() {
        return fields;
    }
    let is = |name: &str, field: &str| if name == "log" { field.starts_with("attempt ") } else { field == name };
    names.iter().flat_map(|name| fields.iter().filter(move |(field, _)| is(name, field)).cloned()).collect()
}

/// Members of a delivery, with one line per attempt instead of the log.
fn with_attempts(delivery: &Record) -> Vec<(String, Option<String>)> {
    let log = delivery.list("log");
    let made = delivery.text("attempts").and_then(|count| count.parse().ok()).unwrap_or(log.len());
    // The log has the last attempts only.
    let first = made.saturating_sub(log.len()) + 1;
    let attempts = log.iter().zip(first..).map(|(entry, number)| (format!("attempt {number}"), Some(attempt(entry))));
    delivery.fields().filter(|(name, _)| name != "log").chain(attempts).collect()
}

/// `2026-05-05T09:30:00.000Z 500 in 12 ms: Internal Server Error`.
fn attempt(entry: &Record) -> String {
    let said = |name: &str| entry.text(name).filter(|text| !text.is_empty());
    let ending = said("status")
        .or_else(|| said("error").map(|word| word.replace('_', " ")))
        .unwrap_or_else(|| "no response".into());
    let response = said("response").map(|text| format!(": {}", excerpt(&text))).unwrap_or_default();
    let at = said("at").unwrap_or_default();
    format!("{at} {ending} in {} ms{response}", said("duration_ms").unwrap_or_else(|| "?".into()))
}

fn excerpt(text: &str) -> String {
    let kept: String = text.chars().take(EXCERPT_CHARS).collect();
    if kept.len() < text.len() { kept + "…" } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_have_the_numbers_of_the_delivery() {
        let delivery = r#"{"object":"delivery","id":"1","attempts":3,"log":[
            {"at":"A","duration_ms":12,"status":500,"error":null,"response":"not\nnow"},
            {"at":"B","duration_ms":10000,"status":null,"error":"timed_out","response":null}]}"#;
        let fields = with_attempts(&Record::read(delivery).unwrap());
        let text = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(
            fields,
            [
                text("id", "1"),
                text("attempts", "3"),
                text("attempt 2", "A 500 in 12 ms: not\\nnow"),
                text("attempt 3", "B timed out in 10000 ms"),
            ]
        );
    }

    #[test]
    fn a_long_answer_is_cut() {
        assert_eq!(excerpt(&"é".repeat(201)).chars().count(), EXCERPT_CHARS + 1);
        assert_eq!(excerpt("short"), "short");
    }

    #[test]
    fn a_log_of_another_shape_is_no_failure() {
        for log in ["null", "[1]", "{}"] {
            let delivery = Record::read(&format!(r#"{{"id":"1","attempts":2,"log":{log}}}"#)).unwrap();
            assert_eq!(with_attempts(&delivery).len(), 2, "{log}");
        }
    }
}
