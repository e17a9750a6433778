//! `violations`: violations, attached to the customer who pays.

use crate::{
    client::access::Access,
    commands::{
        collection::{self, Collection},
        group::{Group, with_examples},
        import, review,
        session::Session,
        suggestions,
    },
    failure::Failure,
};
use clap::{ArgMatches, Command};
use rental_core::{imports::statements::VIOLATIONS, resources::violation::SPEC};

pub(crate) const GROUP: Group = Group { name: "violations", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let list = ["rental-cli violations list --vehicle LZA7293 --all"];
    let get = ["rental-cli violations get 9123456789"];
    let attach = [
        "rental-cli violations attach 9123456789 --customer ada@example.com",
        "rental-cli violations attach 9123456789 --customer ''",
    ];
    let review = ["rental-cli violations review --organization ID"];
    let release = ["rental-cli violations release 9123456789"];
    let imports = [
        "rental-cli violations import --organization ID violations.csv --dry-run",
        "rental-cli violations import --organization ID violations.json --issuer NYC",
    ];
    let suggest =
        ["rental-cli violations suggest --organization ID", "rental-cli violations suggest --organization ID --attach"];
    let command = Command::new(GROUP.name)
        .about("Manage parking and camera violations, and who pays them")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::attach(&SPEC, &attach))
        .subcommand(review::command(&SPEC, &review))
        .subcommand(suggestions::release_command(&SPEC, &release))
        .subcommand(import::command(&VIOLATIONS, &imports))
        .subcommand(suggestions::command(&SPEC, &suggest));
    with_examples(command, &[list[0], imports[0], suggest[1], attach[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "import" => import::run(&VIOLATIONS, matches, session),
        "review" => review::run(&SPEC, matches, session),
        "release" => suggestions::release(&SPEC, matches, session),
        "suggest" => suggestions::run(&SPEC, matches, session),
        _ => COLLECTION.run(verb, matches, session),
    }
}
