//! `calendar-feeds`: calendars of others that become blocks of a vehicle.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, Collection, chosen_key, text},
        confirm,
        fields::Body,
        group::{Group, with_examples},
        json_text::JsonText,
        session::Session,
    },
    failure::Failure,
};
use clap::{ArgMatches, Command};
use rental_core::{request::body::Verb, resources::calendar_feed::SPEC};
use std::io::BufRead as _;

pub(crate) const GROUP: Group = Group { name: "calendar-feeds", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };
/// Longest address that is read from standard input, in bytes. The server takes fewer.
const LONGEST_LINE: u64 = 8192;

fn command() -> Command {
    let list = ["rental-cli calendar-feeds list --vehicle LZA7293"];
    let get = ["rental-cli calendar-feeds get ID"];
    let create = [
        "rental-cli calendar-feeds create --vehicle LZA7293 --url -",
        "rental-cli calendar-feeds create --vehicle LZA7293 --url https://calendar.example.com/1234.ics --interval-minutes 60",
    ];
    let poll = ["rental-cli calendar-feeds poll ID"];
    let delete = ["rental-cli calendar-feeds delete ID"];
    let url = "Where the calendar is, or - to read it from stdin: other users of this machine see flags. Responses show its host only";
    let command = Command::new(GROUP.name)
        .about("Manage calendar feeds: calendars of others that become blocks")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::create(&SPEC, &create).mut_arg("url", |arg| arg.help(url)))
        .subcommand(collection::action(&SPEC, "poll", "Read the calendar now; `get` shows how that ended", &poll))
        .subcommand(
            collection::action(
                &SPEC,
                "delete",
                "Delete a calendar feed, and cancel its blocks that have not ended",
                &delete,
            )
            .arg(confirm::yes()),
        );
    with_examples(command, &[list[0], create[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "create" => {
            let mut body = Body::read(matches, &SPEC, Verb::Create)?;
            if matches.get_one::<JsonText>("url").and_then(JsonText::text).as_deref() == Some("-") {
                body.replace("url", &line()?);
            }
            COLLECTION.create(matches, session, body).map(drop)
        }
        "poll" => COLLECTION.act(verb, None, matches, session).map(drop),
        "delete" => {
            let question = |feed: &str| format!("Delete calendar feed {feed} and cancel its blocks");
            confirm::needs_yes(matches, &question(text(matches, "id")))?;
            let id = &COLLECTION.id(matches, session)?;
            confirm::confirm(matches, &question(&COLLECTION.called(id, matches, session)?))?;
            let request = Request::delete(Access::Organization, &[SPEC.plural, id]);
            session.object(&request.with_idempotency_key(chosen_key(matches))).map(drop)
        }
        _ => COLLECTION.run(verb, matches, session),
    }
}

/// The first line of standard input.
fn line() -> Result<String, Failure> {
    let mut line = String::new();
    let mut input = std::io::Read::take(std::io::stdin().lock(), LONGEST_LINE);
    input.read_line(&mut line).map_err(|error| Failure::Usage(format!("cannot read standard input: {error}")))?;
    Ok(line.trim().to_owned())
}
