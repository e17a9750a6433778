//! The list of resources. It has one entry for each, with all that the rest of the program needs: its description
//! and tag, the tables that offer it, how it moves with its organization, and how a stored object is read again.

use super::{
    api_key::ApiKey,
    audit_entry::AuditEntry,
    collection::{Collection, of, unwritable},
    customer::Customer,
    delivery::Delivery,
    effects, event,
    invoice::Invoice,
    lead::Lead,
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

/// One resource.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The description.
    pub spec: &'static ResourceSpec,
    /// What holders of API keys can do with it.
    pub public: Option<Collection>,
    /// What operators can do with it, under `/admin/v1`.
    pub operator: Option<Collection>,
    /// How operators record it for an organization.
    pub recorded: Option<Collection>,
    /// How it moves with its organization.
    pub porter: Option<Porter>,
    /// Reads a stored object and says which rows go with it.
    pub effects: fn(&Key, &[u8]) -> Result<Effects, Error>,
    /// Reads an object and prints it as this version does.
    pub reprint: fn(&Key, &[u8]) -> Result<Vec<u8>, Error>,
}

/// How the objects of a resource are taken out of an export.
#[derive(Clone, Copy)]
pub struct Porter {
    /// The description.
    pub(crate) spec: &'static ResourceSpec,
    /// The counter that numbers the objects.
    pub(crate) counter: Option<&'static str>,
    /// Its place in an export, from 1: what an object names comes before it.
    place: usize,
    /// The JSON of an object whose fields are all given, as one of this organization.
    pub(crate) shape: fn(&Fields, OrganizationId) -> Result<Vec<u8>, Error>,
    /// Decides whether the object can be what the rules of its resource have led to. With the fields comes the JSON that
    /// `shape` made of them.
    pub(crate) accept: fn(&Fields, Vec<u8>, &Facts<'_>) -> Result<Outcome, Error>,
}

/// Every resource, in the order of the documentation. The order carries no meaning in the store: tags do.
pub const RESOURCES: [Entry; 13] = [
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
    // Keys are changed by actions, so there is no update.
    entry::<ApiKey>().operator(of::<ApiKey>().list().get().create().done()),
    entry::<WebhookEndpoint>().operator(of::<WebhookEndpoint>().list().get().create().update().done()),
    EVENT,
    entry::<Delivery>(),
    entry::<AuditEntry>().operator(of::<AuditEntry>().list().get().done()),
];

/// Events are written with the change that they tell of, byte for byte as they are sent: there is no struct to parse.
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

/// Makes a table of the entries that have this member: its length, and the members.
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

/// Fills a table before its entries are known.
const NOTHING: Collection =
    Collection { spec: &event::SPEC, counter: None, list: false, get: false, create: None, update: None };

table! {
    /// The public API at a glance (spec, Endpoints).
    API, PUBLIC, public
}
table! {
    /// The operator's own resources.
    OPERATOR, OPERATORS, operator
}
table! {
    /// What operators record for an organization.
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

/// How objects move, in the order of an export. Two resources at one place, or a place without one, do not compile.
pub static PORTERS: [Porter; PORTABLE] = {
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

static ALL: [Entry; 13] = RESOURCES;

/// Every resource.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    ALL.iter()
}

/// The resource with this tag in keys.
#[must_use]
pub fn of_tag(tag: u8) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.spec.tag == tag)
}

/// The description of the resource whose `object` this is, public or the operator's.
#[must_use]
pub fn spec_of(object: &str) -> Option<&'static ResourceSpec> {
    specs().find(|spec| spec.object == object)
}

/// The description of the resource with this tag in keys.
#[must_use]
pub fn spec_of_tag(tag: u8) -> Option<&'static ResourceSpec> {
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

/// An object of an export, as one of this organization.
fn ported<T: Portable>(fields: &Fields, organization: OrganizationId) -> Result<T, Error> {
    // Every other value was checked: only the text of an id can be none.
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
