//! `invoices`: read with an organization's key, written by the operator (spec, Invoices).

use super::Group;
use crate::{
    access::Access,
    api::Request,
    cli::with_examples,
    failure::Failure,
    flags::{Body, Verb},
    session::Session,
    value,
    verbs::{self, Collection, chosen_key, text},
};
use clap::{Arg, ArgMatches, Command};
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
    let organization = Arg::new("organization")
        .long("organization")
        .value_name("ID")
        .required(true)
        .value_parser(value::id)
        .help("The organization that bills");
    let command = Command::new(GROUP.name)
        .about("Invoices (reading: organization; writing: operator)")
        .subcommand(verbs::list(&SPEC, &list))
        .subcommand(verbs::get(&SPEC, &get))
        .subcommand(verbs::create(&SPEC, &create).arg(organization))
        .subcommand(on_an_invoice("pay", "Record that an open invoice was paid", &pay))
        .subcommand(on_an_invoice("void", "Void an open invoice", &void));
    with_examples(command, &[list[0], create[0], pay[0]])
}

fn on_an_invoice(verb: &'static str, about: &'static str, examples: &[&str]) -> Command {
    with_examples(verbs::writing(Command::new(verb).about(about).arg(verbs::id(&SPEC))), examples)
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = verbs::verb(matches)?;
    let request = match verb {
        "create" => {
            let body = Body::read(matches, &SPEC, Verb::Create)?.into_json();
            let path = ["organizations", text(matches, "organization"), SPEC.plural];
            Request::post(Access::Operator, &path, Some(body))
        }
        "pay" | "void" => Request::post(Access::Operator, &[SPEC.plural, text(matches, "id"), verb], None),
        _ => return COLLECTION.run(verb, matches, session),
    };
    session.object(&request.with_idempotency_key(chosen_key(matches))).map(drop)
}
