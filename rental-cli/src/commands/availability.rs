//! `vehicles available` and `vehicles calendar`: what is free, and what holds a vehicle.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, text},
        days::{self, Whose},
        fields,
        group::with_examples,
        session::{Session, Wanted},
    },
    failure::Failure,
    output::record::Record,
};
use clap::{Arg, ArgMatches, Command};
use rental_core::{resources::vehicle::SPEC, schema::Kind};

/// The members of an interval, in the order of the table.
const COLUMNS: [&str; 7] = ["kind", "status", "from", "to", "starts_at", "ends_at", "id"];

pub(super) fn commands() -> [Command; 2] {
    let available = ["rental-cli vehicles available --from 2026-07-01 --to 2026-07-05"];
    let calendar = ["rental-cli vehicles calendar LZA7293 --from 2026-07-01 --to 2026-08-01"];
    let about = "List the vehicles that are free on all nights of a time";
    let shown = fields::list_args(&SPEC).into_iter().filter_map(|arg| match arg.get_id().as_str() {
        "columns" | "starting_after" => Some(arg),
        "limit" => Some(arg.help("How many vehicles to list; with --all, how many on each page, at most 100")),
        "all" => Some(arg.help("Fetch all pages, as without --limit")),
        _ => None,
    });
    let available = with_examples(Command::new("available").about(about).args(nights()).args(shown), &available);
    let about = "Show the rentals and blocks that hold a vehicle between two days, and whose rental had it";
    let shown = Command::new("calendar").about(about).arg(collection::id(&SPEC)).args(nights());
    [available, with_examples(shown.arg(fields::columns_among(COLUMNS)), &calendar)]
}

/// `--from` and `--to`. The server checks the days.
fn nights() -> [Arg; 2] {
    let day = |name: &'static str, help| Arg::new(name).long(name).value_name("DAY").required(true).help(help);
    [
        day("from", "First day, such as 2026-07-01, today or +7d"),
        day("to", "Day after the last night; the same day asks for that day"),
    ]
}

/// Runs `available` or `calendar`.
pub(super) fn run(verb: &str, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let whose = Whose::of(Access::Organization, matches);
    let day = |name: &str| days::resolved(Kind::Date, text(matches, name), &whose, session);
    let query = [("from".to_owned(), day("from")?), ("to".to_owned(), day("to")?)];
    if verb == "available" {
        let wanted = fields::wanted(matches);
        let wanted = Wanted { all: wanted.all || wanted.limit.is_none(), ..wanted };
        let first = matches.get_one::<String>("starting_after").map(String::as_str);
        return session.list(&SPEC, &wanted, |cursor, size| {
            let mut query = query.to_vec();
            query.extend(size.map(|size| ("limit".to_owned(), size.to_string())));
            query.extend(cursor.or(first).map(|cursor| ("starting_after".to_owned(), cursor.to_owned())));
            Request::get(Access::Organization, &["availability"]).with_query(query)
        });
    }
    let id = session.object_id(&SPEC, text(matches, "id"))?;
    let path = [SPEC.plural, &id, "calendar"];
    let json = session.send(&Request::get(Access::Organization, &path).with_query(query.to_vec()))?;
    if session.out.json {
        return session.out.json_list(&json);
    }
    let list = Record::read(&json)?.list("data");
    session.out.records(&COLUMNS, &list)
}
