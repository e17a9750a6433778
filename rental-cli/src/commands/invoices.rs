//! `invoices`: read with an organization's key, written by the operator (spec, Invoices).

use crate::{
    client::{access::Access, request::Request},
    commands::{
        by_number,
        collection::{self, Collection, chosen_key, text},
        confirm, credit_notes,
        days::{self, Whose},
        documents, drafts,
        fields::Body,
        group::{Group, with_examples},
        json_text::JsonText,
        session::Session,
    },
    config::when,
    failure::Failure,
    output::record::Record,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{
    request::body::Verb,
    resources::{customer, invoice::SPEC, rental},
};
use serde::{Deserialize, de::IgnoredAny};

pub(crate) const GROUP: Group = Group { name: "invoices", command, run };

/// The member of the body of `pay`, and the id of its flag.
const PAID_AT: &str = "paid_at";

/// The lines of an invoice of a rental that has no room for another toll.
const FULL: usize = 198;

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let list = ["rental-cli invoices list --status open --customer ada@example.com"];
    let get = ["rental-cli invoices get INV-000042"];
    let create = [
        "rental-cli invoices create --customer ada@example.com --line 'Extra cleaning=12.50'",
        "rental-cli invoices create --customer ada@example.com --line '4 nights=358' --line toll:61231234567",
        "rental-cli invoices create --customer ada@example.com --line Ride=100 --line Discount=-10",
        "rental-cli invoices create --rental B1001 --with-tolls --with-violations",
        "rental-cli invoices create --customer ada@example.com --with-tolls",
    ];
    let pay = [
        "rental-cli invoices pay INV-000042",
        "rental-cli invoices pay INV-000042 --paid-at 2026-06-05T10:00:00-04:00",
    ];
    let printed = ["rental-cli invoices print INV-000042 --to INV-000042.html"];
    let pdf = [
        "rental-cli invoices pdf INV-000042 --to INV-000042.pdf",
        "rental-cli invoices pdf INV-000042 --language fr --paper a4 --to f.pdf",
    ];
    let void = ["rental-cli invoices void INV-000042", "rental-cli invoices void INV-000042 --yes"];
    let action = |verb, about, examples: &[&str]| {
        by_number::operator_id(&SPEC, collection::action(&SPEC, verb, about, examples))
    };
    let command = Command::new(GROUP.name)
        .about("Manage invoices (list, get: organization; all else: operator)")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(by_number::id(&SPEC, collection::get(&SPEC, &get)))
        .subcommand(create_command(&create))
        .subcommand(drafts::command())
        .subcommand(credit_notes::of_invoice())
        .subcommand(action("pay", "Mark an open invoice as paid", &pay).arg(paid_at()))
        .subcommand(with_examples(
            documents::command(&SPEC, "pdf", "Get an invoice as a PDF file, to send to the customer"),
            &pdf,
        ))
        .subcommand(with_examples(
            documents::command(&SPEC, "print", "Get the printable page of an invoice (HTML)"),
            &printed,
        ))
        .subcommand(action("void", "Void an open invoice", &void).arg(confirm::yes_on_terminal()));
    with_examples(command, &[list[0], create[0], pay[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    let request = match verb {
        "create" if matches.get_flag("with_tolls") || matches.get_flag("with_violations") => {
            let path = ["organizations", session.organization(matches)?, SPEC.plural, "drafts"];
            let [tolls, violations] = ["with_tolls", "with_violations"].map(|name| matches.get_flag(name));
            let is_given = |name: &str| matches.contains_id(name);
            if is_given("rental_id") == is_given("customer_id") {
                let what = "--with-tolls and --with-violations need --rental or --customer, and not both";
                return Err(Failure::Usage(what.into()));
            }
            let mut body = serde_json::json!({"with_tolls": tolls, "with_violations": violations});
            for (name, spec) in [("rental_id", &rental::SPEC), ("customer_id", &customer::SPEC)] {
                if let Some(given) = matches.get_one::<JsonText>(name).and_then(JsonText::text) {
                    body[name] = session.object_id(spec, &given)?.into();
                }
            }
            let request = Request::post(Access::Operator, &path, Some(body.to_string()));
            let invoice = session.object(&request.with_idempotency_key(chosen_key(matches)))?;
            return note_rest(&invoice, session);
        }
        "credit" => return credit_notes::credit(matches, session),
        "draft-all" => return drafts::run(matches, session),
        "create" => {
            let path = ["organizations", session.organization(matches)?, SPEC.plural];
            let mut body = Body::read(matches, &SPEC, Verb::Create)?;
            body.resolve(&SPEC, Whose::of(Access::Operator, matches), session)?;
            Request::post(Access::Operator, &path, Some(body.into_json()))
        }
        "pdf" | "print" => return documents::save(&SPEC, verb, matches, session),
        "pay" | "void" => {
            let id = by_number::resolve(&SPEC, text(matches, "id"), (Access::Operator, matches), session)?;
            if verb == "void" {
                confirm::confirm_on_terminal(matches, &format!("Void invoice {} for good", text(matches, "id")))?;
            }
            let time = if verb == "pay" { days::since(matches, PAID_AT, session)? } else { None };
            let body = time.map(|time| serde_json::json!({PAID_AT: time}).to_string());
            let request = Request::post(Access::Operator, &[SPEC.plural, &id, verb], body);
            let settled = session.object(&request.with_idempotency_key(chosen_key(matches)))?;
            return note_next(verb, &settled, matches, session);
        }
        "get" => {
            let id = by_number::resolve(&SPEC, text(matches, "id"), (Access::Organization, matches), session)?;
            return session.object(&Request::get(Access::Organization, &[SPEC.plural, &id])).map(drop);
        }
        _ => return COLLECTION.run(verb, matches, session),
    };
    session.object(&request.with_idempotency_key(chosen_key(matches))).map(drop)
}

/// Says what follows a payment: the customer gets a receipt, and only a credit note takes a paid invoice back.
fn note_next(verb: &str, settled: &str, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    if let ("pay", Some(number)) = (verb, Record::read(settled)?.text("invoice_number")) {
        let of = by_number::organization_flag(matches);
        session.out.note(&format!(
            "the receipt: rental-cli invoices pdf {number}{of} --to {number}-paid.pdf; to give money back: rental-cli invoices credit {number}{of}"
        ));
    }
    Ok(())
}

/// Says that an invoice has as many lines as it can have, so that there may be more to bill.
fn note_rest(invoice: &str, session: &Session) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Billed {
        #[serde(default)]
        lines: Vec<IgnoredAny>,
    }
    let billed: Billed =
        serde_json::from_str(invoice).map_err(|error| Failure::Unreadable(format!("an invoice: {error}")))?;
    if billed.lines.len() >= FULL {
        session.out.note(&format!(
            "the invoice has {} lines, and one can have 200: run the command again until it says that nothing is left to bill",
            billed.lines.len()
        ));
    }
    Ok(())
}

/// Builds the flag with the time of a payment that is booked late.
fn paid_at() -> Arg {
    let help = "When the customer paid: a time (RFC 3339), a day, such as 2026-11-01 or today, or how long ago, such as 2h; also corrects a paid invoice to an earlier time [default: now]";
    Arg::new(PAID_AT).long("paid-at").value_name("TIME").value_parser(when::since).help(help)
}

fn create_command(examples: &[&str]) -> Command {
    let with = |name: &'static str, flag: &'static str, what: &str| {
        let help = format!(
            "With --rental: bill its unbilled {what} too. With --customer instead: bill those {what} of the customer that belong to no rental"
        );
        Arg::new(name).long(flag).action(ArgAction::SetTrue).conflicts_with("lines").help(help)
    };
    let mut command = collection::create(&SPEC, examples).arg(collection::organization("Organization that bills"));
    for name in ["customer_id", "lines"] {
        command = command
            .mut_arg(name, |arg| arg.required(false).required_unless_present_any(["with_tolls", "with_violations"]));
    }
    command = command.mut_arg("lines", |arg| {
        arg.help("What is billed; repeatable. toll:, violation: and rental: bill an object, all that is left of it or the amount; any other text is a line of its own, with a negative amount a discount")
    });
    command.arg(with("with_tolls", "with-tolls", "tolls")).arg(with("with_violations", "with-violations", "violations"))
}
