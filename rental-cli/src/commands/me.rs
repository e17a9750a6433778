//! `me`: the organization, scope and limits of the API key. A test of a new key.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        fields,
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{ArgMatches, Command};

pub(crate) const COMMAND: Group = Group { name: "me", command, run };

/// The members of the response and of its limits.
const COLUMNS: [&str; 13] = [
    "organization_id",
    "organization_name",
    "plan",
    "currency",
    "time_zone",
    "api_key_id",
    "scope",
    "requests_per_second",
    "organization_requests_per_second",
    "max_objects",
    "max_bytes",
    "max_body_bytes",
    "max_page_size",
];

fn command() -> Command {
    let command = Command::new(COMMAND.name)
        .about("Show the organization, scope and limits of the API key")
        .arg(fields::columns_among(COLUMNS));
    with_examples(command, &["rental-cli me", "rental-cli me --columns scope,organization_name"])
}

fn run(_: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let json = session.send(&Request::get(Access::Organization, &["me"]))?;
    if session.out.json {
        return session.out.json(&json);
    }
    let me = Record::read(&json)?;
    let mut fields: Vec<_> = me.fields().filter(|(name, _)| name != "limits").collect();
    if let Some(limits) = me.text("limits") {
        let limits = Record::read(&limits)?;
        fields.extend(limits.fields().map(|(name, most)| (name, most.or_else(|| Some("no limit".into())))));
    }
    session.out.only(fields)
}
