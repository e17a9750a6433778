//! `invoices`: read with an organization's key, written by the operator (spec, Invoices).

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, Collection, chosen_key, text},
        drafts,
        fields::Body,
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::{
        print_bytes,
        whole_file::{Partial, already_exists, cannot_write},
    },
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{
    request::body::Verb,
    resources::{
        invoice::SPEC,
        organization::{InvoiceLanguage, PaperSize},
    },
};
use std::{io::Write as _, path::PathBuf};

pub(crate) const GROUP: Group = Group { name: "invoices", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let list = ["rental-cli invoices list --status open --customer ID"];
    let get = ["rental-cli invoices get ID"];
    let create = [
        "rental-cli invoices create --organization ID --customer ID --line 'Extra cleaning=12.50'",
        "rental-cli invoices create --organization ID --customer ID --line '4 nights=358' --line Toll=6.94",
        "rental-cli invoices create --organization ID --rental ID --with-tolls --with-violations",
    ];
    let pay = ["rental-cli invoices pay ID"];
    let printed = ["rental-cli invoices print ID --to INV-000042.html"];
    let pdf = [
        "rental-cli invoices pdf ID --to INV-000042.pdf",
        "rental-cli invoices pdf ID --language fr --paper a4 --to f.pdf",
    ];
    let void = ["rental-cli invoices void ID"];
    let command = Command::new(GROUP.name)
        .about("Manage invoices (list, get: organization; all else: operator)")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(create_command(&create))
        .subcommand(drafts::command())
        .subcommand(collection::action(&SPEC, "pay", "Mark an open invoice as paid", &pay))
        .subcommand(with_examples(document("pdf", "Get an invoice as a PDF file, to send to the customer"), &pdf))
        .subcommand(with_examples(document("print", "Get the printable page of an invoice (HTML)"), &printed))
        .subcommand(collection::action(&SPEC, "void", "Void an open invoice", &void));
    with_examples(command, &[list[0], create[0], pay[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    let request = match verb {
        "create" if matches.get_flag("with_tolls") || matches.get_flag("with_violations") => {
            let path = ["organizations", session.organization(matches)?, SPEC.plural, "drafts"];
            let [tolls, violations] = ["with_tolls", "with_violations"].map(|name| matches.get_flag(name));
            let body = serde_json::json!({
                "rental_id": text(matches, "rental_id"), "with_tolls": tolls, "with_violations": violations,
            });
            Request::post(Access::Operator, &path, Some(body.to_string()))
        }
        "draft-all" => return drafts::run(matches, session),
        "create" => {
            let body = Body::read(matches, &SPEC, Verb::Create)?.into_json();
            let path = ["organizations", session.organization(matches)?, SPEC.plural];
            Request::post(Access::Operator, &path, Some(body))
        }
        "pdf" | "print" => return save(verb, matches, session),
        "pay" | "void" => Request::post(Access::Operator, &[SPEC.plural, text(matches, "id"), verb], None),
        _ => return COLLECTION.run(verb, matches, session),
    };
    session.object(&request.with_idempotency_key(chosen_key(matches))).map(drop)
}

fn create_command(examples: &[&str]) -> Command {
    let with = |name: &'static str, flag: &'static str, what: &str| {
        let help = format!("With --rental and without --customer and --line: bill its unbilled {what} too");
        let arg = Arg::new(name).long(flag).action(ArgAction::SetTrue).requires("rental_id");
        arg.conflicts_with_all(["customer_id", "lines"]).help(help)
    };
    let mut command = collection::create(&SPEC, examples).arg(collection::organization("Organization that bills"));
    for name in ["customer_id", "lines"] {
        command = command
            .mut_arg(name, |arg| arg.required(false).required_unless_present_any(["with_tolls", "with_violations"]));
    }
    command.arg(with("with_tolls", "with-tolls", "tolls")).arg(with("with_violations", "with-violations", "violations"))
}

/// Builds `print ID` and `pdf ID`.
fn document(verb: &'static str, about: &'static str) -> Command {
    let word = |name: &'static str, words, help| {
        let parser = clap::builder::PossibleValuesParser::new(words);
        Arg::new(name).long(name).value_name("WORD").value_parser(parser).help(help)
    };
    Command::new(verb)
        .about(about)
        .arg(collection::id(&SPEC))
        .arg(
            Arg::new("to")
                .long("to")
                .alias("out")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("File to write to [default: stdout]"),
        )
        .arg(Arg::new("force").long("force").action(ArgAction::SetTrue).help("Replace an existing file"))
        .arg(word(
            "language",
            InvoiceLanguage::WORDS.to_vec(),
            "Language [default: the customer's or the organization's]",
        ))
        .arg(word("paper", PaperSize::WORDS.to_vec(), "Size of the pages [default: the organization's]"))
}

/// Runs `print` and `pdf`.
fn save(verb: &str, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let to = matches.get_one::<PathBuf>("to");
    if session.out.json && to.is_none() {
        return Err(Failure::Usage("the document is not JSON; with --json, use --to FILE".into()));
    }
    if verb == "pdf" && to.is_none() && session.out.is_terminal() {
        return Err(Failure::Usage("a PDF file is not text; use --to FILE".into()));
    }
    let replace = matches.get_flag("force");
    if let Some(to) = to.filter(|to| to.exists() && !replace) {
        return Err(already_exists(to));
    }
    let id = text(matches, "id");
    let preferences = ["language", "paper"].into_iter();
    let query = preferences.filter_map(|name| Some((name.to_owned(), matches.get_one::<String>(name)?.clone())));
    let request = Request::get(Access::Operator, &[SPEC.plural, id, verb]).with_query(query.collect());
    let document = session.api.send(&request)?;
    let Some(to) = to else { return print_bytes(&document) };
    let partial = Partial::create_for(to)?;
    partial.file().write_all(&document).map_err(|error| cannot_write(&partial.at, error))?;
    partial.publish(to, replace)?;
    let object = if verb == "print" { "page" } else { verb };
    let object = serde_json::json!({"object": object, "id": id, "file": to, "bytes": document.len()});
    session.out.object(&object.to_string())
}
