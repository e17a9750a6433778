//! The command groups, one file each, and what they have in common: [`group`], [`collection`], [`fields`], [`session`].

pub(crate) mod api_keys;
pub(crate) mod audit;
mod collection;
pub(crate) mod config;
pub(crate) mod customers;
pub(crate) mod deliveries;
pub(crate) mod doctor;
pub(crate) mod events;
mod fields;
pub(crate) mod group;
mod import;
pub(crate) mod invoices;
mod json_text;
pub(crate) mod leads;
pub(crate) mod listen;
pub(crate) mod organizations;
pub(crate) mod rentals;
pub(crate) mod session;
pub(crate) mod shell;
pub(crate) mod store;
mod suggestions;
pub(crate) mod tolls;
pub(crate) mod transfer;
pub(crate) mod trigger;
pub(crate) mod vehicles;
pub(crate) mod violations;
pub(crate) mod webhook_endpoints;
