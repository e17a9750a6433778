//! The entry of a resource in the list of all resources, with everything that other modules need: its description and
//! tag, the route tables that offer it, and functions that import and read its objects.

use super::{
    collection::Collection,
    effects, event,
    resource::{Resource, Series, parse, to_json},
    rules::{Outcome, Portable, RuleContext},
};
use crate::{
    error::Error,
    schema::{Effects, Fields, IndexValue, ResourceSpec},
    store::Key,
    value::OrganizationId,
};
use bytes::Bytes;
use serde::Deserialize;

/// A resource in the list of all resources.
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
    /// How the objects are numbered, if they are.
    pub(crate) series: Option<Series>,
    /// The position of the resource in an export, from 1. An object comes after the objects that it refers to.
    pub(super) place: usize,
    /// Builds the JSON of an object of this organization from all of its fields.
    pub(crate) shape: fn(&Fields, OrganizationId) -> Result<Bytes, Error>,
    /// Checks that the rules of the resource can have produced the object. Gets the fields and the JSON from `shape`.
    pub(crate) accept: fn(&Fields, Bytes, &RuleContext<'_>) -> Result<Outcome, Error>,
}

/// Events are stored as the bytes that are sent, so they have no struct.
pub(super) const EVENT: Entry = Entry {
    spec: &event::SPEC,
    public: Some(Collection { list: true, rising: true, get: true, ..Collection::none(&event::SPEC) }),
    operator: None,
    recorded: None,
    porter: None,
    effects: |key, json| {
        let event: Typed = crate::value::read_json(json).map_err(|error| Error::damaged(key, &error))?;
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

/// The entry of a resource that no table offers yet, and that no export contains.
pub(super) const fn entry<T: Resource>() -> Entry {
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

/// The same for a resource that an export contains, at this place.
pub(super) const fn portable<T: Portable>(place: usize) -> Entry {
    let mut entry = entry::<T>();
    let (shape, accept) = (shape::<T>, accept::<T>);
    entry.porter = Some(Porter { spec: T::SPEC, series: T::SERIES, place, shape, accept });
    entry
}

impl Entry {
    pub(super) const fn public(mut self, collection: Collection) -> Self {
        self.public = Some(collection);
        self
    }

    pub(super) const fn operator(mut self, collection: Collection) -> Self {
        self.operator = Some(collection);
        self
    }

    pub(super) const fn recorded(mut self, collection: Collection) -> Self {
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

fn shape<T: Portable>(fields: &Fields, organization: OrganizationId) -> Result<Bytes, Error> {
    to_json(&ported::<T>(fields, organization)?)
}

fn accept<T: Portable>(fields: &Fields, json: Bytes, context: &RuleContext<'_>) -> Result<Outcome, Error> {
    let object: T = ported(fields, context.organization.id)?;
    object.arrive(context)?;
    let effects = effects::of(&object);
    Ok(Outcome {
        json,
        object: None,
        changed: true,
        events: Vec::new(),
        effects_before: None,
        effects,
        elsewhere: Vec::new(),
        asks: Vec::new(),
    })
}
