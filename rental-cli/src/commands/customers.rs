//! `customers`: the people who rent, and their erasing by the operator.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, Collection, chosen_key, text},
        confirm, fields,
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::{progress::Progress, record::Record},
};
use clap::{ArgMatches, Command};
use rental_core::resources::customer::SPEC;
use std::{thread, time::Duration};

pub(crate) const GROUP: Group = Group { name: "customers", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };
/// The members of the report of an erasure.
const REPORT: [&str; 11] = [
    "organization_id",
    "customer_id",
    "status",
    "rewritten",
    "kept",
    "damaged",
    "erased_at",
    "completed_at",
    "invoices",
    "more_invoices",
    "not_searched",
];
/// Pause between two reads of the report.
const PAUSE: Duration = Duration::from_millis(500);

fn command() -> Command {
    let list = ["rental-cli customers list --email ada@example.com"];
    let get = ["rental-cli customers get ID"];
    let create =
        ["rental-cli customers create --full-name 'Ada Lovelace' --email ada@example.com --phone +14155550123"];
    let update = [
        "rental-cli customers update ada@example.com --notes 'Prefers morning pickups'",
        "rental-cli customers update ada@example.com --clear phone",
    ];
    let erase =
        ["rental-cli customers erase ID --organization ID", "rental-cli customers erase ada@example.com --yes --json"];
    let erasure = ["rental-cli customers erasure ID"];
    let command = Command::new(GROUP.name)
        .about("Manage customers (erase, erasure: operator; all else: organization)")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::create(&SPEC, &create))
        .subcommand(collection::update(&SPEC, &update))
        .subcommand(
            collection::action_that_shows(
                fields::columns_among(REPORT),
                &SPEC,
                "erase",
                "Erase a customer's personal data everywhere, for good, and print the report (operator; role owner)",
                &erase,
            )
            .arg(collection::organization("Organization of the customer"))
            .arg(confirm::yes()),
        )
        .subcommand(with_examples(
            Command::new("erasure")
                .about("Show the report of an erasure (operator)")
                .arg(collection::id(&SPEC))
                .arg(fields::columns_among(REPORT)),
            &erasure,
        ));
    with_examples(command, &[list[0], create[0], erase[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "erase" => erase(matches, session),
        "erasure" => session.object(&report(&session.object_id(&SPEC, text(matches, "id"))?)).map(drop),
        _ => COLLECTION.run(verb, matches, session),
    }
}

fn report(id: &str) -> Request {
    Request::get(Access::Operator, &[SPEC.plural, id, "erasure"])
}

/// Erases a customer, and waits until everything that is stored is rewritten.
fn erase(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (name, organization) = (text(matches, "id"), session.organization(matches)?);
    let id = &session.object_id(&SPEC, name)?;
    let also = if id == name { String::new() } else { format!(" ({id})") };
    confirm::confirm(matches, &format!("Erase the personal data of customer {name}{also} for good"))?;
    let body = serde_json::json!({"organization_id": organization}).to_string();
    let request = Request::post(Access::Operator, &[SPEC.plural, id, "erase"], Some(body));
    let mut json = session.send(&request.with_idempotency_key(chosen_key(matches)))?;
    let progress = Progress::busy("The customer is erased; rewriting what is stored. Ctrl-C does not stop the server");
    while Record::read(&json)?.text("status").as_deref() != Some("complete") {
        thread::sleep(PAUSE);
        json = session.send(&report(id))?;
    }
    progress.finish();
    session.show(&json)?;
    let done = Record::read(&json)?;
    if !done.list("invoices").is_empty() {
        session.out.note("The listed invoices are kept as issued, until the organization is deleted.");
    }
    if done.text("damaged").is_some_and(|damaged| damaged != "0") {
        session.out.note("Damaged rows were not rewritten: `rental-cli store check` lists them.");
    }
    session
        .out
        .note("Backups and exports of before still have the data: see docs/gdpr.md, \"Erased people and backups\".");
    Ok(())
}
