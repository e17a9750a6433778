//! Invoices and credit notes by their numbers, so that nobody has to copy ids.

use crate::{
    client::{access::Access, request::Request},
    commands::{fields, session::Session},
    failure::Failure,
    output::record::{Page, Record},
    text::word,
};
use clap::{Arg, ArgMatches, Command};
use rental_core::{
    resources::{Resource, credit_note::CreditNote, invoice::Invoice, organization},
    schema::ResourceSpec,
};

/// The field with the number of a resource, and the number in six digits, for a text such as `INV-42`; `None` for an id.
fn number(spec: &ResourceSpec, text: &str) -> Option<(&'static str, String)> {
    let series = [Invoice::SERIES, CreditNote::SERIES].into_iter().flatten();
    let mut series = series.filter(|series| spec.field(series.field).is_some());
    series.find_map(|series| Some((series.field, series.text(series.number(&text.to_uppercase())?).to_string())))
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
    let Some((field, number)) = number(spec, text) else { return Ok(text.to_owned()) };
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
