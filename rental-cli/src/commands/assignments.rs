//! `vehicles assignments` and `vehicles assign`: the transponders and plates that a vehicle has and had, for the operator.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, chosen_key, text},
        days::{self, Whose},
        fields,
        group::with_examples,
        json_text::JsonText,
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{
    resources::{assignment::AssignmentKind, vehicle::SPEC},
    schema::Kind,
};

/// The members of an assignment, in the order of the table.
const COLUMNS: [&str; 5] = ["kind", "number", "state", "from", "to"];

pub(super) fn commands() -> [Command; 2] {
    let show = ["rental-cli vehicles assignments LZA7293"];
    let assign = [
        "rental-cli vehicles assign LZA7293 --assignment plate=LZA7293,state=NY --assignment toll_tag=00412345678,to=2026-06-15T14:00:00Z",
        "rental-cli vehicles assign ID --none",
    ];
    let about = "Show which transponders and plates a vehicle has and had, and when (operator)";
    let columns = || fields::columns_among(COLUMNS);
    let shown = Command::new("assignments").about(about).arg(collection::id(&SPEC)).arg(columns());
    let show = with_examples(shown, &show);
    let about = "Replace the transponders and plates that a vehicle has and had; tolls follow (operator)";
    let list = Arg::new("assignment")
        .long("assignment")
        .value_name("KIND=NUMBER[,state=STATE][,from=TIME][,to=TIME]")
        .action(ArgAction::Append)
        .value_parser(assignment)
        .required_unless_present("none")
        .help("A toll_tag or plate with its time, without `to` while it lasts; repeat for the whole list");
    let none = Arg::new("none")
        .long("none")
        .action(ArgAction::SetTrue)
        .conflicts_with("assignment")
        .help("The vehicle has and had none");
    [show, collection::action_that_shows(columns(), &SPEC, "assign", about, &assign).arg(list).arg(none)]
}

/// Runs `assignments` or `assign`.
pub(super) fn run(verb: &str, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let id = session.object_id(&SPEC, text(matches, "id"))?;
    let path = [SPEC.plural, &id, "assignments"];
    let request = match verb {
        "assign" => {
            let given = matches.get_many::<JsonText>("assignment").into_iter().flatten();
            let list: Result<Vec<JsonText>, Failure> = given.map(|one| with_times(one, matches, session)).collect();
            let list = JsonText::list(&list?);
            let body = format!("{{\"assignments\":{}}}", list.as_str()).into_bytes();
            Request::put(Access::Operator, &path, "application/json", body).with_idempotency_key(chosen_key(matches))
        }
        _ => Request::get(Access::Operator, &path),
    };
    show(session, &session.send(&request)?)
}

fn show(session: &Session, json: &str) -> Result<(), Failure> {
    if session.out.json {
        return session.show(json);
    }
    let list = Record::read(json)?.list("assignments");
    session.out.records(&COLUMNS, &list)
}

/// Parses `plate=ABC1234,state=NY,from=2026-06-01T00:00:00Z`. The server checks the values.
fn assignment(text: &str) -> Result<JsonText, String> {
    let mut parts = text.split(',');
    let shape = || format!("write it as {}=NUMBER, then state=, from= and to= if they are known", kinds());
    let (kind, number) = parts.next().and_then(|first| first.split_once('=')).ok_or_else(shape)?;
    if !AssignmentKind::WORDS.contains(&kind) {
        return Err(shape());
    }
    let mut members = vec![("kind", kind), ("number", number)];
    for part in parts {
        match part.split_once('=') {
            Some((name @ ("state" | "from" | "to"), value)) => members.push((name, value)),
            _ => return Err(format!("`{part}` is neither state=, from= nor to=")),
        }
    }
    Ok(JsonText::object(&members))
}

/// An assignment with the beginnings of days as the times that the API takes.
fn with_times(assignment: &JsonText, matches: &ArgMatches, session: &Session) -> Result<JsonText, Failure> {
    let whose = Whose::of(Access::Operator, matches);
    let members = ["kind", "number", "state", "from", "to"].map(|name| (name, assignment.member(name)));
    let mut found = Vec::new();
    for (name, value) in members {
        let Some(value) = value else { continue };
        let kind = if matches!(name, "from" | "to") { Kind::Time } else { Kind::Text(0) };
        found.push((name, days::resolved(kind, &value, &whose, session)?));
    }
    Ok(JsonText::object(&found.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>()))
}

fn kinds() -> String {
    AssignmentKind::WORDS.join("=NUMBER or ")
}
