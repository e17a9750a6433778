//! `tolls`: tolls, attached to the customer who pays.

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
use rental_core::{imports::statements::TOLLS, resources::toll::SPEC};

pub(crate) const GROUP: Group = Group { name: "tolls", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

fn command() -> Command {
    let list = ["rental-cli tolls list --vehicle LZA7293 --all"];
    let get = ["rental-cli tolls get 61231234567"];
    let attach = [
        "rental-cli tolls attach 61231234567 --customer ada@example.com",
        "rental-cli tolls attach 61231234567 --customer ''",
    ];
    let review = ["rental-cli tolls review --organization ID"];
    let release = ["rental-cli tolls release 61231234567"];
    let imports = [
        "rental-cli tolls import --organization ID statement.csv --format ezpass-ny --dry-run",
        "rental-cli tolls import --organization ID statement.csv --mapping txtag.json",
    ];
    let suggest = ["rental-cli tolls suggest --organization ID", "rental-cli tolls suggest --organization ID --attach"];
    let command = Command::new(GROUP.name)
        .about("Manage tolls, and who pays them")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(collection::attach(&SPEC, &attach))
        .subcommand(review::command(&SPEC, &review))
        .subcommand(suggestions::release_command(&SPEC, &release))
        .subcommand(import::command(&TOLLS, &imports))
        .subcommand(suggestions::command(&SPEC, &suggest));
    with_examples(command, &[list[0], imports[0], suggest[1], attach[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "import" => import::run(&TOLLS, matches, session),
        "review" => review::run(&SPEC, matches, session),
        "release" => suggestions::release(&SPEC, matches, session),
        "suggest" => suggestions::run(&SPEC, matches, session),
        _ => COLLECTION.run(verb, matches, session),
    }
}
