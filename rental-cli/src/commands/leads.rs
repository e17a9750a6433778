//! `leads`: inquiries. An organization records them; the operator reads and settles them.

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

/// An organization only creates leads; all else is for the operator.
const OF_ORGANIZATION: Collection = Collection { spec: &SPEC, access: Access::Organization };
const OF_OPERATOR: Collection = Collection { spec: &SPEC, access: Access::Operator };

fn command() -> Command {
    let list = ["rental-cli leads list --organization ID --status NEW"];
    let get = ["rental-cli leads get ID"];
    let create = [
        "rental-cli leads create --source-channel website --raw-data '{\"message\":\"Need an SUV in June\"}'",
        "rental-cli leads create --customer ada@example.com --raw-data @form.json",
    ];
    let update = ["rental-cli leads update ID --status CONVERTED --customer ada@example.com"];
    let organization = collection::organization("Organization of the leads");
    let command = Command::new(GROUP.name)
        .about("Record inquiries from intake forms (create: organization; list, get, update: operator)")
        .subcommand(collection::list(&SPEC, &list).arg(organization.display_order(0)))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::create(&SPEC, &create))
        .subcommand(collection::update(&SPEC, &update));
    with_examples(command, &[create[0], list[0], update[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "list" => OF_OPERATOR.list(matches, session, &["organizations", session.organization(matches)?, SPEC.plural]),
        "create" => OF_ORGANIZATION.run(verb, matches, session),
        _ => OF_OPERATOR.run(verb, matches, session),
    }
}
