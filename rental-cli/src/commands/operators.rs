//! `operators`: the people and programs that run the service, managed by owners.

use crate::{
    client::access::Access,
    commands::{
        collection::{self, Collection},
        confirm,
        fields::Body,
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{ArgMatches, Command};
use rental_core::{request::body::Verb, resources::operator::SPEC};

pub(crate) const GROUP: Group = Group { name: "operators", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Operator };

fn command() -> Command {
    let create = [
        "rental-cli operators create --name 'Ada Lovelace' --role operator",
        "rental-cli operators create --name 'Backup job' --role read_only --expires-in 365d",
    ];
    let list = ["rental-cli operators list"];
    let get = ["rental-cli operators get ID"];
    let rotate = ["rental-cli operators rotate ID", "rental-cli operators rotate ID --overlap 0s"];
    let revoke = ["rental-cli operators revoke ID"];
    let command = Command::new(GROUP.name)
        .about("Manage operators, their roles and tokens (operator; role owner)")
        .subcommand(collection::expiring(collection::create(&SPEC, &create)))
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(
            collection::action(
                &SPEC,
                "rotate",
                "Replace the token; the old token keeps working during the overlap",
                &rotate,
            )
            .arg(collection::overlap("How long the old token keeps working, at most 30d"))
            .arg(confirm::yes_on_terminal()),
        )
        .subcommand(
            collection::action(&SPEC, "revoke", "Revoke an operator and its tokens immediately", &revoke)
                .arg(confirm::yes()),
        );
    with_examples(command, &[create[0], list[0], rotate[0], revoke[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "create" => {
            let mut body = Body::read(matches, &SPEC, Verb::Create)?;
            collection::set_expiry(matches, &mut body);
            shown_once(&COLLECTION.create(matches, session, body)?, session)
        }
        "rotate" => {
            let id = COLLECTION.id(matches, session)?;
            collection::confirm_replacing(matches, || {
                Ok(format!("the token of operator {}", COLLECTION.called(&id, matches, session)?))
            })?;
            let body = Some(collection::overlap_body(matches));
            shown_once(&COLLECTION.act_on(&id, verb, body, matches, session)?, session)
        }
        "revoke" => {
            confirm::needs_yes(matches, &format!("Revoke operator {}", collection::text(matches, "id")))?;
            let id = COLLECTION.id(matches, session)?;
            let called = COLLECTION.called(&id, matches, session)?;
            confirm::confirm(matches, &format!("Revoke operator {called}"))?;
            COLLECTION.act_on(&id, verb, None, matches, session).map(drop)
        }
        _ => COLLECTION.run(verb, matches, session),
    }
}

/// Says what to do with the token. The replayed response of an earlier request has none.
fn shown_once(response: &str, session: &Session) -> Result<(), Failure> {
    session.out.note(match Record::read(response)?.text("token") {
        Some(_) => "The token is shown only once: store it now. Its holder sets it as RENTAL_ADMIN_TOKEN.",
        None => "This request was already carried out, so its token is not shown again; `rotate` creates a new one.",
    });
    Ok(())
}
