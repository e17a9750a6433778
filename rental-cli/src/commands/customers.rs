//! `customers`: people who rent vehicles.

use crate::{
    client::access::Access,
    commands::{
        collection::{self, Collection},
        group::{Group, with_examples},
    },
};
use clap::Command;
use rental_core::resources::customer::SPEC;

pub(crate) const GROUP: Group =
    Group { name: "customers", command, run: |matches, session| COLLECTION.run_group(matches, session) };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let list = ["rental-cli customers list --email ada@example.com"];
    let get = ["rental-cli customers get ID"];
    let create =
        ["rental-cli customers create --full-name 'Ada Lovelace' --email ada@example.com --phone +14155550123"];
    let update = [
        "rental-cli customers update ID --notes 'Prefers morning pickups'",
        "rental-cli customers update ID --clear phone",
    ];
    let command = Command::new(GROUP.name)
        .about("Manage customers")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::create(&SPEC, &create))
        .subcommand(collection::update(&SPEC, &update));
    with_examples(command, &[list[0], create[0]])
}
