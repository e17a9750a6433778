//! `master-key`: the key that encrypts webhook secrets, managed by the operator. Keys themselves are only in files of the
//! servers: no command reads, sends or prints one.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection, fields,
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{ArgMatches, Command};

pub(crate) const GROUP: Group = Group { name: "master-key", command, run };

/// The members of the description of the key.
const COLUMNS: [&str; 8] = [
    "fingerprint",
    "former_fingerprint",
    "newest_fingerprint",
    "webhook_endpoints",
    "unreadable",
    "unreadable_ids",
    "calendar_feeds",
    "unreadable_calendar_feeds",
];

fn command() -> Command {
    let get = ["rental-cli master-key get"];
    let rotate = ["rental-cli master-key rotate"];
    let command = Command::new(GROUP.name)
        .about("Show and rotate the key that encrypts webhook secrets (operator)")
        .subcommand(with_examples(
            Command::new("get")
                .about("Show which key is in use, and whose secrets it does not open")
                .arg(fields::columns_among(COLUMNS)),
            &get,
        ))
        .subcommand(with_examples(
            collection::writing(
                Command::new("rotate")
                    .about("Encrypt all webhook secrets with a new key while the server runs")
                    .arg(fields::columns_among(COLUMNS)),
            ),
            &rotate,
        ));
    with_examples(command, &[get[0], rotate[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    if verb == "get" {
        return session.object(&Request::get(Access::Operator, &["master_key"])).map(drop);
    }
    let request = Request::post(Access::Operator, &["master_key", "rotate"], None);
    let response = session.object(&request.with_idempotency_key(collection::chosen_key(matches)))?;
    let begun = Record::read(&response)?;
    session.out.note(&format!(
        "{} webhook endpoints get their secrets encrypted with key {}; it is done when `rental-cli master-key get` shows no \
         former_fingerprint. Back up the key file now, and keep its old lines as long as backups of before.",
        begun.text("webhook_endpoints").unwrap_or_default(),
        begun.text("fingerprint").unwrap_or_default(),
    ));
    Ok(())
}
