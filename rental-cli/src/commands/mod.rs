//! The command groups, their list ([`groups`]), and what they have in common: [`group`], [`collection`],
//! [`fields`], [`session`], [`confirm`].

mod api;
mod api_keys;
mod assignments;
mod audit;
mod by_name;
mod by_number;
mod calendar_feeds;
pub(crate) mod candidates;
mod collection;
pub(crate) mod config;
mod confirm;
mod credit_notes;
mod customers;
mod deliveries;
pub(crate) mod doctor;
mod documents;
mod drafts;
mod events;
mod fields;
pub(crate) mod group;
mod groups;
mod import;
mod invoices;
mod json_text;
mod kept_secret;
mod leads;
mod listen;
pub(crate) mod login;
mod master_key;
mod me;
mod names;
mod operators;
mod organizations;
mod review;
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

pub(crate) use groups::{GROUPS, SINGLE_COMMANDS};
