//! The resources: the struct, description and rules of each, and the list of all.
//!
//! POST and PATCH of a resource are traits ([`Create`], [`Update`]), so no route table can offer them for a resource that
//! does not have them. Rules are pure functions: they get facts and return events and effects.

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
pub mod operator;
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
pub(crate) use registry::spec_of_tag;
pub use registry::{API, RESOURCES, spec_of, specs};
pub use resource::{Resource, parse, to_json};
pub use rules::{Create, Facts, Otherwise, Outcome, Portable, Update};

#[cfg(test)]
mod tests;
