//! `invoices`: read with an organization's key, written by the operator (spec, Invoices).

use super::Group;
use crate::{
    access::Access,
    api::Request,
    cli::with_examples,
    failure::Failure,
    flags::{Body, Verb},
    session::Session,
    verbs::{self, Collection, chosen_key, text},
};
use clap::{ArgMatches, Command};
use rental_core::resources::invoice::SPEC;

pub(super) const GROUP: Group = Group { name: "invoices", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let list = ["rental-cli invoices list --status open --customer ID"];
    let get = ["rental-cli invoices get ID"];
    let create = [
        "rental-cli invoices create --organization ID --customer ID --line 'Extra cleaning=12.50'",
        "rental-cli invoices create --organization ID --customer ID --line '4 nights=358' --line Toll=6.94",
    ];
    let pay = ["rental-cli invoices pay ID"];
    let void = ["rental-cli invoices void ID"];
    let command = Command::new(GROUP.name)
        .about("Invoices (reading: organization; writing: operator)")
        .subcommand(verbs::list(&SPEC, &list))
        .subcommand(verbs::get(&SPEC, &get))
        .subcommand(verbs::create(&SPEC, &create).arg(verbs::organization("The organization that bills")))
        .subcommand(verbs::action(&SPEC, "pay", "Record that an open invoice was paid", &pay))
        .subcommand(verbs::action(&SPEC, "void", "Void an open invoice", &void));
    with_examples(command, &[list[0], create[0], pay[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = verbs::verb(matches)?;
    let request = match verb {
        "create" => {
            let body = Body::read(matches, &SPEC, Verb::Create)?.into_json();
            let path = ["organizations", session.organization(matches)?, SPEC.plural];
            Request::post(Access::Operator, &path, Some(body))
        }
        "pay" | "void" => Request::post(Access::Operator, &[SPEC.plural, text(matches, "id"), verb], None),
        _ => return COLLECTION.run(verb, matches, session),
    };
    session.object(&request.with_idempotency_key(chosen_key(matches))).map(drop)
}
