//! `rentals`: bookings of a vehicle by a customer.

use crate::{
    client::access::Access,
    commands::{
        collection::{self, Collection},
        group::{Group, with_examples},
    },
};
use clap::Command;
use rental_core::resources::rental::SPEC;

pub(crate) const GROUP: Group =
    Group { name: "rentals", command, run: |matches, session| COLLECTION.run_group(matches, session) };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let list = ["rental-cli rentals list --status ACTIVE --customer ID"];
    let get = ["rental-cli rentals get ID"];
    let create = ["rental-cli rentals create --customer ID --vehicle ID --start-date 2026-06-01 --end-date 2026-06-05"];
    let update = [
        "rental-cli rentals update ID --status COMPLETED --damage-at-return true",
        "rental-cli rentals update ID --end-date 2026-06-07",
    ];
    let command = Command::new(GROUP.name)
        .about("Manage rentals: bookings of a vehicle by a customer")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::create(&SPEC, &create))
        .subcommand(collection::update(&SPEC, &update));
    with_examples(command, &[list[0], create[0]])
}
