//! `me`: the organization, scope and limits of the API key. A test of a new key.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{ArgMatches, Command};

pub(crate) const COMMAND: Group = Group { name: "me", command, run };

fn command() -> Command {
    let command = Command::new(COMMAND.name).about("Show the organization, scope and limits of the API key");
    with_examples(command, &["rental-cli me", "rental-cli me --jq .organization_id"])
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
    session.out.fields(&fields)
}
