//! `audit`: what operators changed or took in bulk.

use crate::{
    client::access::Access,
    commands::{
        collection::{self, Collection},
        group::{Group, with_examples},
    },
};
use clap::Command;
use rental_core::resources::audit_entry::SPEC;

pub(crate) const GROUP: Group =
    Group { name: "audit", command, run: |matches, session| COLLECTION.run_group(matches, session) };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Operator };

fn command() -> Command {
    let list = [
        "rental-cli audit list --organization ID",
        "rental-cli audit list --action revokeApiKey --all",
        "rental-cli audit list --actor 'Ada Lovelace'",
    ];
    let get = ["rental-cli audit get ID --json"];
    let command = Command::new(GROUP.name)
        .about("Show what operators changed or took in bulk, who, when and from where (operator)")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get));
    with_examples(command, &[list[0], get[0]])
}
