//! `tolls`: tolls, attached to the customer who pays.

use super::Group;
use crate::{
    access::Access,
    cli::with_examples,
    failure::Failure,
    session::Session,
    verbs::{self, Collection},
};
use clap::{ArgMatches, Command};
use rental_core::resources::toll::SPEC;

pub(super) const GROUP: Group = Group { name: "tolls", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let list = ["rental-cli tolls list --vehicle ID --all"];
    let get = ["rental-cli tolls get ID"];
    let attach = ["rental-cli tolls attach ID --customer ID"];
    let command = Command::new(GROUP.name)
        .about("Tolls, and who pays them")
        .subcommand(verbs::list(&SPEC, &list))
        .subcommand(verbs::get(&SPEC, &get))
        .subcommand(verbs::attach(&SPEC, &attach));
    with_examples(command, &[list[0], attach[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = verbs::verb(matches)?;
    COLLECTION.run(verb, matches, session)
}
