//! Invoices and credit notes by their numbers, so that nobody has to copy ids.

use crate::{
    client::{access::Access, request::Request},
    commands::{by_field::series, by_name::is_id, fields, session::Session},
    failure::Failure,
    output::record::{Page, Record},
    text::word,
};
use clap::{Arg, ArgMatches, Command};
use rental_core::{
    resources::{invoice, organization},
    schema::ResourceSpec,
};

/// The number that an error shows as an example.
const EXAMPLE: u64 = 42;

/// The field with the number of a resource, and the number in six digits, for a text such as `INV-42`; `None` for any other text.
fn number(spec: &ResourceSpec, text: &str) -> Option<(&'static str, String)> {
    let series = series(spec)?;
    Some((series.field, series.text(series.number(&text.to_uppercase())?).to_string()))
}

/// Says of a text that is neither a number nor an id how numbers are written: of `7` with that number.
fn unknown(spec: &ResourceSpec, text: &str) -> Failure {
    let of = if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
    let example = series(spec).map(|series| series.text(of.unwrap_or(EXAMPLE)).to_string()).unwrap_or_default();
    let name = spec.object.replace('_', " ");
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    Failure::Unsuccessful {
        kind: "not_found",
        problem: format!("{text:?} is no number of {article} {name}, such as {example}, and no id"),
        hint: match spec.object == invoice::SPEC.object {
            true => "`rental-cli invoices list` shows the numbers",
            false => "`rental-cli credit-notes list` shows the numbers",
        },
    }
}

/// The positional `ID` of a command that takes a number too.
pub(crate) fn id(spec: &ResourceSpec, command: Command) -> Command {
    command.mut_arg("id", |arg| {
        let name = spec.object.replace('_', " ");
        arg.value_name("NUMBER|ID").help(format!("Number or id of the {name}"))
    })
}

/// The same for a command of operators, which needs the organization of the number.
pub(crate) fn operator_id(spec: &ResourceSpec, command: Command) -> Command {
    id(spec, command).arg(organization())
}

/// The flag of the organization in which a number is looked up.
pub(crate) fn organization() -> Arg {
    fields::organization("Organization of the number; not needed with an id")
}

/// The flag with the organization for a command that names an object by its number; nothing where no flag was given.
pub(crate) fn organization_flag(matches: &ArgMatches) -> String {
    let given = matches.get_one::<String>("organization");
    given.map(|text| format!(" --organization {}", word(text))).unwrap_or_default()
}

/// The id of an object that is named by its number or its id.
pub(crate) fn resolve(
    spec: &'static ResourceSpec,
    text: &str,
    (access, matches): (Access, &ArgMatches),
    session: &Session,
) -> Result<String, Failure> {
    let Some((field, number)) = number(spec, text) else {
        return if is_id(text) { Ok(text.to_owned()) } else { Err(unknown(spec, text)) };
    };
    let query = vec![(field.to_owned(), number.clone())];
    let request = match access {
        Access::Organization => Request::get(access, &[spec.plural]),
        Access::Operator => {
            Request::get(access, &[organization::SPEC.plural, session.organization(matches)?, spec.plural])
        }
    };
    let page = Page::read(&session.send(&request.with_query(query))?)?;
    let found = page.data.first().map(|raw| Record::read(raw.get())).transpose()?.and_then(|found| found.text("id"));
    let name = spec.object.replace('_', " ");
    found.ok_or_else(|| Failure::Unsuccessful {
        kind: "not_found",
        problem: format!("this organization has no {name} {number}"),
        hint: "list them to see the numbers; check --organization",
    })
}
