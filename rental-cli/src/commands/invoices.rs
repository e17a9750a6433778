//! `invoices`: read with an organization's key, written by the operator (spec, Invoices).

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, Collection, chosen_key, text},
        fields::Body,
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::{
        print,
        whole_file::{Partial, already_exists, cannot_write},
    },
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{request::body::Verb, resources::invoice::SPEC};
use std::{io::Write as _, path::PathBuf};

pub(crate) const GROUP: Group = Group { name: "invoices", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let list = ["rental-cli invoices list --status open --customer ID"];
    let get = ["rental-cli invoices get ID"];
    let create = [
        "rental-cli invoices create --organization ID --customer ID --line 'Extra cleaning=12.50'",
        "rental-cli invoices create --organization ID --customer ID --line '4 nights=358' --line Toll=6.94",
    ];
    let pay = ["rental-cli invoices pay ID"];
    let printed = ["rental-cli invoices print ID --to INV-000042.html"];
    let void = ["rental-cli invoices void ID"];
    let command = Command::new(GROUP.name)
        .about("Manage invoices (list, get: organization; all else: operator)")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::create(&SPEC, &create).arg(collection::organization("Organization that bills")))
        .subcommand(collection::action(&SPEC, "pay", "Mark an open invoice as paid", &pay))
        .subcommand(with_examples(print_command(), &printed))
        .subcommand(collection::action(&SPEC, "void", "Void an open invoice", &void));
    with_examples(command, &[list[0], create[0], pay[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    let request = match verb {
        "create" => {
            let body = Body::read(matches, &SPEC, Verb::Create)?.into_json();
            let path = ["organizations", session.organization(matches)?, SPEC.plural];
            Request::post(Access::Operator, &path, Some(body))
        }
        "print" => return print_page(matches, session),
        "pay" | "void" => Request::post(Access::Operator, &[SPEC.plural, text(matches, "id"), verb], None),
        _ => return COLLECTION.run(verb, matches, session),
    };
    session.object(&request.with_idempotency_key(chosen_key(matches))).map(drop)
}

fn print_command() -> Command {
    Command::new("print")
        .about("Get the printable page of an invoice (HTML)")
        .arg(collection::id(&SPEC))
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("File to write the page to [default: stdout]"),
        )
        .arg(Arg::new("force").long("force").action(ArgAction::SetTrue).help("Replace an existing file"))
}

fn print_page(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let to = matches.get_one::<PathBuf>("to");
    if session.out.json && to.is_none() {
        return Err(Failure::Usage("the page is not JSON; with --json, use --to FILE".into()));
    }
    let replace = matches.get_flag("force");
    if let Some(to) = to.filter(|to| to.exists() && !replace) {
        return Err(already_exists(to));
    }
    let id = text(matches, "id");
    let page = session.api.send(&Request::get(Access::Operator, &[SPEC.plural, id, "print"]))?;
    let Some(to) = to else {
        let page = String::from_utf8(page).map_err(|_| Failure::Unreadable("the page is not UTF-8".into()))?;
        return print(&page);
    };
    let partial = Partial::create_for(to)?;
    partial.file().write_all(&page).map_err(|error| cannot_write(&partial.at, error))?;
    partial.publish(to, replace)?;
    let object = serde_json::json!({"object": "page", "id": id, "file": to, "bytes": page.len()});
    session.out.object(&object.to_string())
}
