//! The resources: the struct, description and rules of each, and the list of all.
//!
//! POST and PATCH of a resource are traits ([`Create`], [`Update`]), so no route table can offer them for a resource that
//! does not have them. Rules are pure functions: they get a context and return events and effects.

pub mod api_key;
pub mod assignment;
mod attribution;
pub mod audit_entry;
mod billing;
pub mod block;
pub mod calendar_feed;
mod collection;
pub mod credit_note;
pub mod customer;
pub mod delivery;
pub mod effects;
mod entry;
pub mod event;
pub mod invoice;
pub mod lead;
pub mod operator;
pub mod organization;
pub mod personal;
pub mod rental;
mod resource;
pub mod row_words;
mod rules;
mod share;
pub(crate) mod source;
pub mod sql_views;
mod tax;
pub mod toll;
pub mod vehicle;
pub mod violation;
pub mod webhook_endpoint;

pub(crate) use attribution::derived_events;
pub use attribution::{
    Attributable, Charged, Occasion, Payer, Posting, automatic_look_up, posting_look_up, review_look_up,
    unattached_look_up,
};
pub use billing::{Billable, TOLL_FEE, VIOLATION_FEE};
pub use collection::{Collection, Row, of};
pub use entry::Entry;
pub(crate) use entry::Porter;
pub(crate) use resource::fields;
pub use resource::{AnyObject, Object, Resource, Series, parse, to_json};
pub use rules::{Change, Create, Otherwise, Outcome, Portable, RuleContext, Update};
pub use share::share_of;
pub use source::Source;

use crate::schema::ResourceSpec;
use api_key::ApiKey;
use assignment::VehicleAssignments;
use audit_entry::AuditEntry;
use block::Block;
use calendar_feed::CalendarFeed;
use credit_note::CreditNote;
use customer::Customer;
use delivery::Delivery;
use invoice::Invoice;
use lead::Lead;
use operator::Operator;
use organization::Organization;
use rental::Rental;
use toll::Toll;
use vehicle::Vehicle;
use violation::Violation;
use webhook_endpoint::WebhookEndpoint;

/// All resources, in the order of the documentation. The store does not depend on this order. No constant: each crate that uses it
/// would compile the functions in it again.
pub static RESOURCES: [Entry; 18] = [
    entry::portable::<Vehicle>(1).public(of::<Vehicle>().list().get().create().update().done()),
    entry::portable::<Customer>(3).public(of::<Customer>().list().get().create().update().done()),
    entry::portable::<Rental>(4).public(of::<Rental>().list().get().create().update().done()),
    entry::portable::<Block>(9).public(of::<Block>().list().get().create().update().done()),
    // The address of a feed is a secret, so an export has none.
    entry::entry::<CalendarFeed>().public(of::<CalendarFeed>().list().get().create().done()),
    // Operators change them by an action of their own. They come early in an export: attachments rest on them.
    entry::portable::<VehicleAssignments>(2),
    // Created by the operator, so there is no public POST.
    entry::portable::<Invoice>(7).public(of::<Invoice>().list().get().done()).recorded(of::<Invoice>().create().done()),
    // Like invoices.
    entry::portable::<CreditNote>(10)
        .public(of::<CreditNote>().list().get().done())
        .recorded(of::<CreditNote>().create().done()),
    entry::portable::<Toll>(5).public(of::<Toll>().list().get().update().done()).recorded(of::<Toll>().create().done()),
    entry::portable::<Violation>(6)
        .public(of::<Violation>().list().get().update().done())
        .recorded(of::<Violation>().create().done()),
    // Only operators read and settle leads (spec, Leads).
    entry::portable::<Lead>(8).public(of::<Lead>().create().done()).operator(of::<Lead>().list().get().update().done()),
    entry::entry::<Organization>().operator(of::<Organization>().list().get().create().update().done()),
    // Separate actions change keys, so there is no update.
    entry::entry::<ApiKey>().operator(of::<ApiKey>().list().get().create().done()),
    entry::entry::<WebhookEndpoint>().operator(of::<WebhookEndpoint>().list().get().create().update().done()),
    entry::EVENT,
    entry::entry::<Delivery>(),
    entry::entry::<AuditEntry>().operator(of::<AuditEntry>().list().get().done()),
    // Separate actions change operators, so there is no update.
    entry::entry::<Operator>().operator(of::<Operator>().list().get().create().done()),
];

/// The collections of the public API (spec, Endpoints).
pub fn api() -> impl Iterator<Item = &'static Collection> {
    RESOURCES.iter().filter_map(|entry| entry.public.as_ref())
}

/// The collections that operators record for an organization.
pub fn recorded() -> impl Iterator<Item = &'static Collection> {
    RESOURCES.iter().filter_map(|entry| entry.recorded.as_ref())
}

/// How the resources of an export are imported, in the order of the export.
pub(crate) fn porters() -> impl Iterator<Item = &'static Porter> {
    let mut porters: Vec<&Porter> = RESOURCES.iter().filter_map(|entry| entry.porter.as_ref()).collect();
    porters.sort_by_key(|porter| porter.place);
    porters.into_iter()
}

/// The entry of the resource with this tag in keys.
#[must_use]
pub(crate) fn entry_of_tag(tag: u8) -> Option<&'static Entry> {
    RESOURCES.iter().find(|entry| entry.spec.tag == tag)
}

/// How the objects of a resource are numbered, if they are.
pub(crate) fn series_of(spec: &ResourceSpec) -> Option<Series> {
    entry_of_tag(spec.tag)?.porter?.series
}

/// The description of the resource with this tag in keys.
#[must_use]
pub(crate) fn spec_of_tag(tag: u8) -> Option<&'static ResourceSpec> {
    entry_of_tag(tag).map(|entry| entry.spec)
}

/// The description of the resource with this `object`, such as `vehicle`.
#[must_use]
pub fn spec_of(object: &str) -> Option<&'static ResourceSpec> {
    specs().find(|spec| spec.object == object)
}

/// The descriptions of all resources, the public ones first.
pub fn specs() -> impl Iterator<Item = &'static ResourceSpec> {
    RESOURCES.iter().map(|entry| entry.spec)
}

#[cfg(test)]
mod tests;
