//! `organizations`: the tenants, managed by the operator.

mod deletion;
mod logo;

use crate::{
    client::access::Access,
    commands::{
        collection::{self, Collection},
        confirm,
        fields::Body,
        group::{Group, with_examples},
        json_text::JsonText,
        kept_secret,
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{ArgMatches, Command};
use rental_core::{request::body::Verb, resources::organization::SPEC};

pub(crate) const GROUP: Group = Group { name: "organizations", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Operator };

fn command() -> Command {
    let create = [
        "rental-cli organizations create --name 'Sunrise Rentals'",
        "rental-cli organizations create --name 'Tokyo Cars' --currency JPY --booking-policy open",
        "rental-cli organizations create --name 'Sunrise Rentals' --save-profile sunrise",
    ];
    let list = ["rental-cli organizations list"];
    let get = ["rental-cli organizations get ID"];
    let update = [
        "rental-cli organizations update ID --booking-policy open",
        "rental-cli organizations update ID --plan free --yes",
    ];
    let logo = ["rental-cli organizations logo ID logo.png", "rental-cli organizations logo ID --remove"];
    let delete = ["rental-cli organizations delete ID", "rental-cli organizations delete ID --yes --json"];
    let command = Command::new(GROUP.name)
        .about("Manage organizations, the tenants of the server (operator)")
        .subcommand(collection::create(&SPEC, &create).arg(kept_secret::save_profile("its server and id")))
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::update(&SPEC, &update).arg(confirm::yes_on_terminal()))
        .subcommand(logo::command(&logo))
        .subcommand(deletion::command(&delete));
    with_examples(command, &[create[0], list[0], update[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "delete" => return deletion::run(matches, session),
        "logo" => return logo::run(matches, session),
        _ => {}
    }
    if verb == "update" && is_suspended(matches) {
        let id = session.organization_id(collection::text(matches, "id"))?;
        let called = COLLECTION.called(id, matches, session)?;
        confirm::confirm_on_terminal(
            matches,
            &format!("Put organization {called} on the free plan, on which its API keys do not work"),
        )?;
    }
    if verb != "create" {
        return COLLECTION.run(verb, matches, session);
    }
    let saved_as = matches.get_one::<String>("save_profile");
    if let Some(name) = saved_as {
        kept_secret::check_server(name, &session.settings)?;
    }
    let response = COLLECTION.create(matches, session, Body::read(matches, &SPEC, Verb::Create)?)?;
    let Some(id) = Record::read(&response)?.text("id") else { return Ok(()) };
    if let Some(name) = saved_as {
        kept_secret::save(name, &id, None, session)?;
        session.out.note(&format!(
            "next: rental-cli api-keys create --profile {name} --scope read_write --save-profile {name}"
        ));
    } else {
        session.out.note(&format!("next: rental-cli api-keys create --organization {id} --scope read_write"));
    }
    Ok(())
}

/// Whether an update takes the API from an organization.
fn is_suspended(matches: &ArgMatches) -> bool {
    matches.get_one::<JsonText>("plan").and_then(JsonText::text).as_deref() == Some("free")
}
