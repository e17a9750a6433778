//! `audit`: changes made by operators.

use crate::{
    client::access::Access,
    commands::{
        collection::{self, Collection},
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
};
use clap::{ArgMatches, Command};
use rental_core::resources::audit_entry::SPEC;

pub(crate) const GROUP: Group = Group { name: "audit", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Operator };

fn command() -> Command {
    let list = ["rental-cli audit list --organization ID", "rental-cli audit list --action revokeApiKey --all"];
    let get = ["rental-cli audit get ID --json"];
    let command = Command::new(GROUP.name)
        .about("Show what operators changed, and when (operator)")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get));
    with_examples(command, &[list[0], get[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    COLLECTION.run(verb, matches, session)
}
