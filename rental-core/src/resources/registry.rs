//! The registry: the list of resources. Each has one entry with everything that other modules need: its description and
//! tag, the route tables that offer it, and functions that import and read its objects.

use super::{
    api_key::ApiKey,
    audit_entry::AuditEntry,
    collection::{Collection, of, unwritable},
    customer::Customer,
    delivery::Delivery,
    effects, event,
    invoice::Invoice,
    lead::Lead,
    operator::Operator,
    organization::Organization,
    rental::Rental,
    resource::{Resource, parse},
    rules::{Facts, Outcome, Portable},
    toll::Toll,
    vehicle::Vehicle,
    violation::Violation,
    webhook_endpoint::WebhookEndpoint,
};
use crate::{
    error::Error,
    schema::{Effects, Fields, IndexValue, ResourceSpec},
    store::Key,
    value::OrganizationId,
};
use serde::Deserialize;

/// The registry's entry of one resource.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The description of the resource.
    pub spec: &'static ResourceSpec,
    /// The operations of the public API, for holders of API keys.
    pub public: Option<Collection>,
    /// The operations for operators, under `/admin/v1`.
    pub operator: Option<Collection>,
    /// The operations with which operators record objects for an organization.
    pub recorded: Option<Collection>,
    /// How objects are imported from an export; `None` for resources that an export does not contain.
    pub porter: Option<Porter>,
    /// Parses a stored object and returns the rows derived from it.
    pub effects: fn(&Key, &[u8]) -> Result<Effects, Error>,
    /// Parses an object and serializes it again.
    pub reprint: fn(&Key, &[u8]) -> Result<Vec<u8>, Error>,
}

/// How the objects of a resource are imported from an export.
#[derive(Clone, Copy)]
pub struct Porter {
    /// The description of the resource.
    pub(crate) spec: &'static ResourceSpec,
    /// The counter that numbers the objects, if they are numbered.
    pub(crate) counter: Option<&'static str>,
    /// The position of the resource in an export, from 1. An object comes after the objects that it refers to.
    place: usize,
    /// Builds the JSON of an object of this organization from all of its fields.
    pub(crate) shape: fn(&Fields, OrganizationId) -> Result<Vec<u8>, Error>,
    /// Checks that the rules of the resource can have produced the object. Gets the fields and the JSON from `shape`.
    pub(crate) accept: fn(&Fields, Vec<u8>, &Facts<'_>) -> Result<Outcome, Error>,
}

/// All resources, in the order of the documentation. The store does not depend on this order.
pub const RESOURCES: [Entry; 14] = [
    portable::<Vehicle>(1).public(of::<Vehicle>().list().get().create().update().done()),
    portable::<Customer>(2).public(of::<Customer>().list().get().create().update().done()),
    portable::<Rental>(3).public(of::<Rental>().list().get().create().update().done()),
    // Created by the operator, so there is no public POST.
    portable::<Invoice>(6).public(of::<Invoice>().list().get().done()).recorded(of::<Invoice>().create().done()),
    portable::<Toll>(4).public(of::<Toll>().list().get().update().done()).recorded(of::<Toll>().create().done()),
    portable::<Violation>(5)
        .public(of::<Violation>().list().get().update().done())
        .recorded(of::<Violation>().create().done()),
    portable::<Lead>(7).public(of::<Lead>().create().done()),
    entry::<Organization>().operator(of::<Organization>().list().get().create().update().done()),
    // Separate actions change keys, so there is no update.
    entry::<ApiKey>().operator(of::<ApiKey>().list().get().create().done()),
    entry::<WebhookEndpoint>().operator(of::<WebhookEndpoint>().list().get().create().update().done()),
    EVENT,
    entry::<Delivery>(),
    entry::<AuditEntry>().operator(of::<AuditEntry>().list().get().done()),
    // Separate actions change operators, so there is no update.
    entry::<Operator>().operator(of::<Operator>().list().get().create().done()),
];

/// Events are stored as the bytes that are sent, so they have no struct.
const EVENT: Entry = Entry {
    spec: &event::SPEC,
    public: None,
    operator: None,
    recorded: None,
    porter: None,
    effects: |key, json| {
        let event: Typed = serde_json::from_slice(json).map_err(|error| Error::damaged(key, &error))?;
        let entries = event::SPEC.index_prefixes(|_| Some(IndexValue::Text(&event.r#type)));
        Ok(Effects { entries, ..Effects::default() })
    },
    reprint: |_, json| Ok(json.to_vec()),
};

/// The type of an event.
#[derive(Deserialize)]
struct Typed {
    r#type: String,
}

/// Builds a table of the collections in one member of all entries, and its length.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident, $length:ident, $member:ident) => {
        const $length: usize = {
            let (mut at, mut count) = (0, 0);
            while at < RESOURCES.len() {
                count += RESOURCES[at].$member.is_some() as usize;
                at += 1;
            }
            count
        };

        $(#[$doc])*
        pub const $name: [Collection; $length] = {
            let mut found = [NOTHING; $length];
            let (mut at, mut count) = (0, 0);
            while at < RESOURCES.len() {
                if let Some(collection) = RESOURCES[at].$member {
                    found[count] = collection;
                    count += 1;
                }
                at += 1;
            }
            found
        };
    };
}

/// The placeholder in a table before its entries are set.
const NOTHING: Collection =
    Collection { spec: &event::SPEC, counter: None, list: false, get: false, create: None, update: None };

table! {
    /// The collections of the public API (spec, Endpoints).
    API, PUBLIC, public
}
table! {
    /// The collections of the operator's own resources.
    OPERATOR, OPERATORS, operator
}
table! {
    /// The collections that operators record for an organization.
    RECORDED, RECORDS, recorded
}

const PORTABLE: usize = {
    let (mut at, mut count) = (0, 0);
    while at < RESOURCES.len() {
        count += RESOURCES[at].porter.is_some() as usize;
        at += 1;
    }
    count
};

/// The resources of an export, in its order. Two resources with one position, or a gap, do not compile.
pub(crate) static PORTERS: [Porter; PORTABLE] = {
    let mut found: [Option<Porter>; PORTABLE] = [None; PORTABLE];
    let mut at = 0;
    while at < RESOURCES.len() {
        if let Some(porter) = RESOURCES[at].porter {
            assert!(found[porter.place - 1].is_none(), "two resources have one place in an export");
            found[porter.place - 1] = Some(porter);
        }
        at += 1;
    }
    let Some(first) = found[0] else { panic!("an export begins with no resource") };
    let mut porters = [first; PORTABLE];
    let mut at = 0;
    while at < PORTABLE {
        let Some(porter) = found[at] else { panic!("a place in an export has no resource") };
        porters[at] = porter;
        at += 1;
    }
    porters
};

static ALL: [Entry; 14] = RESOURCES;

/// The entries of all resources.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    ALL.iter()
}

/// The entry of the resource with this tag in keys.
#[must_use]
pub fn of_tag(tag: u8) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.spec.tag == tag)
}

/// The description of the resource with this `object`, such as `vehicle`.
#[must_use]
pub fn spec_of(object: &str) -> Option<&'static ResourceSpec> {
    specs().find(|spec| spec.object == object)
}

/// The description of the resource with this tag in keys.
#[must_use]
pub(crate) fn spec_of_tag(tag: u8) -> Option<&'static ResourceSpec> {
    of_tag(tag).map(|entry| entry.spec)
}

/// The descriptions of all resources, the public ones first.
pub fn specs() -> impl Iterator<Item = &'static ResourceSpec> {
    all().map(|entry| entry.spec)
}

const fn entry<T: Resource>() -> Entry {
    Entry {
        spec: T::SPEC,
        public: None,
        operator: None,
        recorded: None,
        porter: None,
        effects: effects_of::<T>,
        reprint: reprint::<T>,
    }
}

const fn portable<T: Portable>(place: usize) -> Entry {
    let mut entry = entry::<T>();
    let (shape, accept) = (shape::<T>, accept::<T>);
    entry.porter = Some(Porter { spec: T::SPEC, counter: T::COUNTER, place, shape, accept });
    entry
}

impl Entry {
    const fn public(mut self, collection: Collection) -> Self {
        self.public = Some(collection);
        self
    }

    const fn operator(mut self, collection: Collection) -> Self {
        self.operator = Some(collection);
        self
    }

    const fn recorded(mut self, collection: Collection) -> Self {
        self.recorded = Some(collection);
        self
    }
}

fn effects_of<T: Resource>(key: &Key, json: &[u8]) -> Result<Effects, Error> {
    parse::<T>(key, json).map(|object| effects::of(&object))
}

fn reprint<T: Resource>(key: &Key, json: &[u8]) -> Result<Vec<u8>, Error> {
    let object: T = parse(key, json)?;
    serde_json::to_vec(&object).map_err(|error| Error::Internal(error.to_string()))
}

/// Builds an object of this organization from the fields of an export.
fn ported<T: Portable>(fields: &Fields, organization: OrganizationId) -> Result<T, Error> {
    // All values were checked, except that the text of an id may be malformed.
    let unlike = |field| Error::Malformed(format!("It is no {}: `{field}` is not an id.", T::SPEC.object));
    let mut object: T = fields.object(&|_| None).map_err(unlike)?;
    object.adopt(organization);
    Ok(object)
}

fn shape<T: Portable>(fields: &Fields, organization: OrganizationId) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(&ported::<T>(fields, organization)?).map_err(unwritable)
}

fn accept<T: Portable>(fields: &Fields, bytes: Vec<u8>, facts: &Facts<'_>) -> Result<Outcome, Error> {
    let object: T = ported(fields, facts.organization.id)?;
    object.arrive(facts)?;
    let effects = effects::of(&object);
    Ok(Outcome { object: bytes, changed: true, events: Vec::new(), effects_before: None, effects })
}
