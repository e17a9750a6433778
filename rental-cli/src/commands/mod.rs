//! The command groups, one file each, their list, and what they have in common: [`group`], [`collection`],
//! [`fields`], [`session`], [`confirm`].

mod api_keys;
mod audit;
mod collection;
pub(crate) mod config;
mod confirm;
mod customers;
mod deliveries;
pub(crate) mod doctor;
mod events;
mod fields;
pub(crate) mod group;
mod import;
mod invoices;
mod json_text;
mod leads;
mod listen;
mod operators;
mod organizations;
mod rentals;
pub(crate) mod session;
pub(crate) mod shell;
mod store;
mod suggestions;
mod tolls;
mod transfer;
mod trigger;
mod vehicles;
mod violations;
mod webhook_endpoints;

use group::Group;

/// Groups of commands, in the order of the help.
pub(crate) const GROUPS: &[Group] = &[
    organizations::GROUP,
    api_keys::GROUP,
    webhook_endpoints::GROUP,
    events::GROUP,
    deliveries::GROUP,
    vehicles::GROUP,
    customers::GROUP,
    rentals::GROUP,
    invoices::GROUP,
    tolls::GROUP,
    violations::GROUP,
    leads::GROUP,
    operators::GROUP,
    audit::GROUP,
    store::GROUP,
];

/// Commands without subcommands that talk to the server.
pub(crate) const SINGLE_COMMANDS: &[Group] = &[listen::COMMAND, trigger::COMMAND, transfer::EXPORT, transfer::IMPORT];
