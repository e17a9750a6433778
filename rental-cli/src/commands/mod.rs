//! The command groups: one file each, one row each in [`GROUPS`].

mod api_keys;
mod audit;
pub(crate) mod collection;
pub(crate) mod config;
mod customers;
mod deliveries;
pub(crate) mod doctor;
mod events;
pub(crate) mod fields;
mod import;
mod invoices;
mod leads;
mod listen;
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

use crate::{commands::session::Session, failure::Failure};
use clap::{ArgMatches, Command};

/// A word at the prompt, mostly with commands below it.
pub(crate) struct Group {
    /// The word.
    pub(crate) name: &'static str,
    /// Its commands and their flags.
    pub(crate) command: fn() -> Command,
    /// Carries one of them out.
    pub(crate) run: fn(&ArgMatches, &Session) -> Result<(), Failure>,
}

/// All groups, in the order of the help.
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
    audit::GROUP,
    store::GROUP,
];

/// Commands of one word.
pub(crate) const LONE: &[Group] = &[listen::COMMAND, trigger::COMMAND, transfer::EXPORT, transfer::IMPORT];
