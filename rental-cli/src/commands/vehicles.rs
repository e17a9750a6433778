//! `vehicles`: the fleet.

use crate::{
    client::access::Access,
    commands::{
        collection::{self, Collection},
        group::{Group, with_examples},
    },
};
use clap::Command;
use rental_core::resources::vehicle::SPEC;

pub(crate) const GROUP: Group =
    Group { name: "vehicles", command, run: |matches, session| COLLECTION.run_group(matches, session) };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let list = ["rental-cli vehicles list --all --json"];
    let get = ["rental-cli vehicles get ID"];
    let create = ["rental-cli vehicles create --name 'White Tesla' --make Tesla --year 2023 --daily-rate 89.50"];
    let update = [
        "rental-cli vehicles update ID --status maintenance",
        "rental-cli vehicles update ID --daily-rate 95 --clear transponder-number",
    ];
    let command = Command::new(GROUP.name)
        .about("Manage the vehicles of the fleet")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::create(&SPEC, &create))
        .subcommand(collection::update(&SPEC, &update));
    with_examples(command, &[list[0], create[0]])
}
