//! `leads`: inquiries, which can only be created.

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
use rental_core::resources::lead::SPEC;

pub(crate) const GROUP: Group = Group { name: "leads", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let create = [
        "rental-cli leads create --source-channel website --raw-data '{\"message\":\"Need an SUV in June\"}'",
        "rental-cli leads create --customer ID --raw-data @form.json",
    ];
    let command = Command::new(GROUP.name)
        .about("Record inquiries from intake forms")
        .subcommand(collection::create(&SPEC, &create));
    with_examples(command, &[create[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    COLLECTION.run(verb, matches, session)
}
