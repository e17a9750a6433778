//! `audit`: what operators have changed.

use super::Group;
use crate::{
    access::Access,
    cli::with_examples,
    failure::Failure,
    session::Session,
    verbs::{self, Collection},
};
use clap::{ArgMatches, Command};
use rental_core::resources::audit_entry::SPEC;

pub(super) const GROUP: Group = Group { name: "audit", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Operator };

fn command() -> Command {
    let list = ["rental-cli audit list --organization ID", "rental-cli audit list --action revokeApiKey --all"];
    let get = ["rental-cli audit get ID --json"];
    let command = Command::new(GROUP.name)
        .about("What operators have changed, and when (operator)")
        .subcommand(verbs::list(&SPEC, &list))
        .subcommand(verbs::get(&SPEC, &get));
    with_examples(command, &[list[0], get[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = verbs::verb(matches)?;
    COLLECTION.run(verb, matches, session)
}
