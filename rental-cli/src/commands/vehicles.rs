//! `vehicles`: the vehicles of a fleet, which are free, their calendar feeds, and their transponders and plates.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        assignments, availability,
        collection::{self, Collection, chosen_key, text},
        confirm, duplicates, fields,
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::resources::vehicle::SPEC;
use serde_json::{Value, json};

pub(crate) const GROUP: Group = Group { name: "vehicles", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let list = ["rental-cli vehicles list --all --json"];
    let get = ["rental-cli vehicles get LZA7293"];
    let create = ["rental-cli vehicles create --name 'White Tesla' --make Tesla --year 2023 --daily-rate 89.50"];
    let update = [
        "rental-cli vehicles update LZA7293 --status maintenance",
        "rental-cli vehicles update LZA7293 --daily-rate 95 --clear transponder-number",
    ];
    let feed = ["rental-cli vehicles calendar-feed LZA7293", "rental-cli vehicles calendar-feed LZA7293 --rotate"];
    let command = Command::new(GROUP.name)
        .about("Manage the vehicles of the fleet (assignments, assign: operator; all else: organization)")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::create(&SPEC, &create))
        .subcommand(collection::update(&SPEC, &update))
        .subcommand(
            collection::action_that_shows(
                fields::columns_among(["vehicle_id", "status", "created_at", "path", "url"]),
                &SPEC,
                "calendar-feed",
                "Make the secret URL under which calendars read the days on which a vehicle is taken",
                &feed,
            )
            .arg(flag("rotate", "Make another URL; the present one stops working at once"))
            .arg(flag("revoke", "Revoke the URL").conflicts_with("rotate"))
            .arg(confirm::yes()),
        )
        .subcommand(duplicates::command())
        .subcommands(availability::commands())
        .subcommands(assignments::commands());
    let free = "rental-cli vehicles available --from 2026-07-01 --to 2026-07-05";
    with_examples(command, &[list[0], create[0], free])
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "calendar-feed" => calendar_feed(matches, session),
        "duplicates" => duplicates::run(session),
        "available" | "calendar" => availability::run(verb, matches, session),
        "assignments" | "assign" => assignments::run(verb, matches, session),
        _ => COLLECTION.run(verb, matches, session),
    }
}

/// Makes, replaces or revokes the URL. Without a flag it never replaces the one that there is.
fn calendar_feed(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let name = text(matches, "id");
    let id = session.object_id(&SPEC, name)?;
    let path = [SPEC.plural, &id, "calendar_feed"];
    if matches.get_flag("revoke") {
        confirm::confirm(matches, &format!("Revoke the calendar feed of vehicle {name}"))?;
        let request = Request::delete(Access::Organization, &path).with_idempotency_key(chosen_key(matches));
        return session.object(&request).map(drop);
    }
    if matches.get_flag("rotate") {
        confirm::confirm(
            matches,
            &format!("Replace the calendar feed of vehicle {name}: its URL stops working at once"),
        )?;
    } else {
        match session.send(&Request::get(Access::Organization, &path)) {
            Ok(present) => {
                session.show(&present)?;
                session
                    .out
                    .note("The vehicle has a calendar feed. Its URL is not shown again; `--rotate` makes another one.");
                return Ok(());
            }
            // An unknown vehicle is refused by the request that follows.
            Err(Failure::ErrorResponse(error)) if error.status == 404 => {}
            Err(other) => return Err(other),
        }
    }
    let request = Request::post(Access::Organization, &path, Some("{}".into()));
    let made = session.send(&request.with_idempotency_key(chosen_key(matches)))?;
    show(&made, session)
}

/// Prints a new feed with its whole URL.
fn show(made: &str, session: &Session) -> Result<(), Failure> {
    let Some(path) = Record::read(made)?.text("path") else {
        session.show(made)?;
        session
            .out
            .note("This request was already carried out, so its URL is not shown again; `--rotate` makes another one.");
        return Ok(());
    };
    let base = session.settings.base_url.value.to_string();
    let url = format!("{}{path}", base.trim_end_matches('/'));
    let mut object: Value = serde_json::from_str(made).unwrap_or_default();
    // A server that knows its public address says it.
    if object["url"].is_null() {
        object["url"] = json!(url);
    }
    session.show(&object.to_string())?;
    session.out.note("The URL is shown only once. Everyone who has it reads on which days the vehicle is taken.");
    Ok(())
}
