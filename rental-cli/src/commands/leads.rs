//! `leads`: inquiries, which can only be created.

use crate::{
    client::access::Access,
    commands::{
        collection::{self, Collection},
        group::{Group, with_examples},
    },
};
use clap::Command;
use rental_core::resources::lead::SPEC;

pub(crate) const GROUP: Group =
    Group { name: "leads", command, run: |matches, session| COLLECTION.run_group(matches, session) };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let create = [
        "rental-cli leads create --source-channel website --raw-data '{\"message\":\"Need an SUV in June\"}'",
        "rental-cli leads create --customer ID --raw-data @form.json",
    ];
    let command = Command::new(GROUP.name)
        .about("Record inquiries from intake forms")
        .subcommand(collection::create(&SPEC, &create));
    with_examples(command, &[create[0]])
}
