//! The list of the command groups, and the groups that have only the commands of every resource: list, get, create and
//! update.

use super::{
    api, api_keys, audit, calendar_feeds, clock,
    collection::{self, Collection},
    credit_notes, customers, deliveries, events,
    group::{Group, with_examples},
    invoices, leads, listen, master_key, me, operators, organizations, store, tolls, transfer, trigger, vehicles,
    violations, webhook_endpoints,
};
use crate::client::access::Access;
use clap::Command;
use rental_core::{
    resources::{Resource, block::Block, rental::Rental},
    schema::ResourceSpec,
};

/// Groups of commands, in the order of the help.
pub(crate) const GROUPS: &[Group] = &[
    organizations::GROUP,
    api_keys::GROUP,
    webhook_endpoints::GROUP,
    events::GROUP,
    deliveries::GROUP,
    vehicles::GROUP,
    customers::GROUP,
    plain::<Rental>(),
    plain::<Block>(),
    calendar_feeds::GROUP,
    invoices::GROUP,
    credit_notes::GROUP,
    tolls::GROUP,
    violations::GROUP,
    leads::GROUP,
    operators::GROUP,
    audit::GROUP,
    master_key::GROUP,
    clock::GROUP,
    store::GROUP,
];

/// Commands without subcommands that talk to the server.
pub(crate) const SINGLE_COMMANDS: &[Group] =
    &[listen::COMMAND, trigger::COMMAND, transfer::EXPORT, transfer::IMPORT, me::COMMAND, api::COMMAND];

/// A resource of the public API with its help. A command without examples does not exist.
trait Plain: Resource {
    /// What the group is for.
    const ABOUT: &'static str;
    /// Examples of `list`. The first one is also an example of the group.
    const LIST: &'static [&'static str] = &[];
    /// Examples of `get`.
    const GET: &'static [&'static str] = &[];
    /// Examples of `create`. The first one is also an example of the group.
    const CREATE: &'static [&'static str] = &[];
    /// Examples of `update`.
    const UPDATE: &'static [&'static str] = &[];
}

impl Plain for Block {
    const ABOUT: &'static str = "Manage blocks: nights on which a vehicle is not for rent";
    const LIST: &'static [&'static str] = &["rental-cli blocks list --vehicle LZA7293 --status active"];
    const GET: &'static [&'static str] = &["rental-cli blocks get ID"];
    const CREATE: &'static [&'static str] = &[
        "rental-cli blocks create --vehicle LZA7293 --start-date 2026-07-01 --end-date 2026-07-03 --reason maintenance",
    ];
    const UPDATE: &'static [&'static str] =
        &["rental-cli blocks update ID --status cancelled", "rental-cli blocks update ID --end-date 2026-07-04"];
}

impl Plain for Rental {
    const ABOUT: &'static str = "Manage rentals: bookings of a vehicle by a customer";
    const LIST: &'static [&'static str] = &["rental-cli rentals list --status ACTIVE --customer ada@example.com"];
    const GET: &'static [&'static str] = &["rental-cli rentals get B1001"];
    const CREATE: &'static [&'static str] = &[
        "rental-cli rentals create --customer ada@example.com --vehicle LZA7293 --start-date 2026-06-01 --end-date 2026-06-05",
    ];
    const UPDATE: &'static [&'static str] = &[
        "rental-cli rentals update B1001 --status COMPLETED --damage-at-return true",
        "rental-cli rentals update B1001 --end-date 2026-06-07",
    ];
}

/// The group of a resource that needs no command of its own.
const fn plain<T: Plain>() -> Group {
    Group {
        name: T::SPEC.plural,
        command: command::<T>,
        run: |matches, session| Collection { spec: T::SPEC, access: Access::Organization }.run_group(matches, session),
    }
}

/// Builds a command of a resource with its examples.
type Build = fn(&'static ResourceSpec, &[&str]) -> Command;

fn command<T: Plain>() -> Command {
    let all: [(&[&str], Build); 4] = [
        (T::LIST, collection::list),
        (T::GET, collection::get),
        (T::CREATE, collection::create),
        (T::UPDATE, collection::update),
    ];
    let offered = all.into_iter().filter(|(examples, _)| !examples.is_empty());
    let command = Command::new(T::SPEC.plural).about(T::ABOUT);
    let command = command.subcommands(offered.map(|(examples, build)| build(T::SPEC, examples)));
    let first: Vec<&str> = [T::LIST, T::CREATE].iter().filter_map(|examples| examples.first().copied()).collect();
    with_examples(command, &first)
}
