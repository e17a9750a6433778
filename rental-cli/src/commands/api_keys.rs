//! `api-keys`: API keys of organizations, issued and revoked by the operator.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, Collection},
        confirm,
        days::Whose,
        fields::Body,
        group::{Group, with_examples},
        kept_secret::{self, Keeper},
        session::Session,
    },
    failure::Failure,
};
use clap::{ArgMatches, Command};
use rental_core::{request::body::Verb, resources::api_key::SPEC};

pub(crate) const GROUP: Group = Group { name: "api-keys", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Operator };

fn command() -> Command {
    let create = [
        "rental-cli api-keys create --organization ID --scope read_write",
        "rental-cli api-keys create --organization ID --scope read --name Website --expires-in 90d",
        "rental-cli api-keys create --organization ID --scope read_write --save-profile sunrise",
        "rental-cli api-keys create --organization ID --scope read --to website.key",
    ];
    let list = ["rental-cli api-keys list --organization ID"];
    let get = ["rental-cli api-keys get ID"];
    let revoke = ["rental-cli api-keys revoke ID", "rental-cli api-keys revoke ID --yes"];
    let rotate = ["rental-cli api-keys rotate ID", "rental-cli api-keys rotate ID --overlap 0s --yes"];
    let command = Command::new(GROUP.name)
        .about("Manage the API keys of organizations (operator)")
        .subcommand(kept_secret::add_flags(collection::expiring(collection::create(&SPEC, &create))))
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(
            collection::action(&SPEC, "revoke", "Revoke a key immediately", &revoke).arg(confirm::yes_on_terminal()),
        )
        .subcommand(kept_secret::add_flags(
            collection::action(&SPEC, "rotate", "Replace a key; the old key keeps working during the overlap", &rotate)
                .arg(collection::overlap("How long the old key keeps working, at most 30d"))
                .arg(confirm::yes_on_terminal()),
        ));
    with_examples(command, &[create[0], list[0], rotate[0], revoke[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "create" => create(matches, session),
        "rotate" => {
            let keeper = Keeper::read(matches, true, session)?;
            let id = &COLLECTION.id(matches, session)?;
            collection::confirm_replacing(matches, || {
                Ok(format!("API key {}", COLLECTION.called(id, matches, session)?))
            })?;
            let request =
                Request::post(Access::Operator, &[SPEC.plural, id, verb], Some(collection::overlap_body(matches)));
            keeper.shown_once(&session.send(&request.with_idempotency_key(collection::chosen_key(matches)))?, session)
        }
        "revoke" => {
            let id = COLLECTION.id(matches, session)?;
            let called = COLLECTION.called(&id, matches, session)?;
            confirm::confirm_on_terminal(matches, &format!("Revoke API key {called}, which stops working at once"))?;
            COLLECTION.act_on(&id, verb, None, matches, session).map(drop)
        }
        _ => COLLECTION.run(verb, matches, session),
    }
}

fn create(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let mut body = Body::read(matches, &SPEC, Verb::Create)?;
    body.set_organization(session)?;
    body.resolve(&SPEC, Whose::of(Access::Operator, matches), session)?;
    collection::set_expiry(matches, &mut body);
    let keeper = Keeper::read(matches, false, session)?;
    let request = Request::post(Access::Operator, &[SPEC.plural], Some(body.into_json()));
    keeper.shown_once(&session.send(&request.with_idempotency_key(collection::chosen_key(matches)))?, session)
}
