//! `api-keys`: API keys of organizations, issued and revoked by the operator.

use crate::{
    client::access::Access,
    commands::{
        collection::{self, Collection},
        fields::Body,
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{ArgMatches, Command};
use rental_core::{request::body::Verb, resources::api_key::SPEC};

pub(crate) const GROUP: Group = Group { name: "api-keys", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Operator };

fn command() -> Command {
    let create = [
        "rental-cli api-keys create --organization ID --scope read_write",
        "rental-cli api-keys create --organization ID --scope read --name Website --expires-in 90d",
    ];
    let list = ["rental-cli api-keys list --organization ID"];
    let get = ["rental-cli api-keys get ID"];
    let revoke = ["rental-cli api-keys revoke ID"];
    let rotate = ["rental-cli api-keys rotate ID", "rental-cli api-keys rotate ID --overlap 0s"];
    let command = Command::new(GROUP.name)
        .about("Manage the API keys of organizations (operator)")
        .subcommand(collection::expiring(collection::create(&SPEC, &create)))
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::action(&SPEC, "revoke", "Revoke a key immediately", &revoke))
        .subcommand(
            collection::action(&SPEC, "rotate", "Replace a key; the old key keeps working during the overlap", &rotate)
                .arg(collection::overlap("How long the old key keeps working, at most 30d")),
        );
    with_examples(command, &[create[0], list[0], rotate[0], revoke[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "create" => create(matches, session),
        "rotate" => {
            let response = COLLECTION.act(verb, Some(collection::overlap_body(matches)), matches, session)?;
            shown_once(&response, session)
        }
        "revoke" => COLLECTION.act(verb, None, matches, session).map(drop),
        _ => COLLECTION.run(verb, matches, session),
    }
}

fn create(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let mut body = Body::read(matches, &SPEC, Verb::Create)?;
    body.set_organization(&session.settings)?;
    collection::set_expiry(matches, &mut body);
    let response = COLLECTION.create(matches, session, body)?;
    shown_once(&response, session)
}

/// Says what to do with the key. The replayed response of an earlier request has none.
fn shown_once(response: &str, session: &Session) -> Result<(), Failure> {
    let response = Record::read(response)?;
    session.out.note(match response.text("key") {
        Some(_) => "The key is shown only once: store it now. Its holder sets it as RENTAL_API_KEY.",
        None => "This request was already carried out, so its key is not shown again; `rotate` creates a new one.",
    });
    Ok(())
}
