//! What a resource must say about itself, and the list of all of them.
//!
//! Capabilities are traits: an [`invoice::Invoice`] is created by an operator alone, so the public table cannot route a
//! POST to it by accident. Rules are pure: they get facts and leave effects.

mod amount_limit;
pub mod api_key;
mod attribution;
pub mod audit_entry;
mod collection;
pub mod customer;
pub mod delivery;
pub mod effects;
pub mod event;
pub mod invoice;
pub mod lead;
pub mod organization;
pub mod registry;
pub mod rental;
mod resource;
pub mod row_words;
mod rules;
pub mod sql_views;
pub mod toll;
mod update_time;
pub mod vehicle;
pub mod violation;
pub mod webhook_endpoint;

pub use attribution::unattached_look_up;
pub use collection::{Collection, Row, of};
pub use registry::{API, RESOURCES, spec_of, spec_of_tag, specs};
pub use resource::{Resource, parse};
pub use rules::{Create, Facts, Otherwise, Outcome, Portable, Update};

#[cfg(test)]
mod tests;
