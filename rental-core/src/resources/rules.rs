//! The rules of a resource as traits: what they get, and what they decide.

use super::{
    event::EventType,
    organization::Organization,
    resource::{Resource, parse},
};
use crate::{
    error::Error,
    schema::{Effects, FieldSpec, Fields},
    store::Record,
    value::{FieldValue, FromFields, OrganizationId, Timestamp},
};
use std::collections::HashMap;

/// A resource that a POST makes.
pub trait Create: Resource + FromFields {
    /// Completes a new object whose single fields are valid; returns the events, in order.
    ///
    /// # Errors
    /// A rule over several fields is broken.
    fn create(&mut self, facts: &Facts<'_>) -> Result<Vec<EventType>, Error>;
}

/// A resource that a PATCH changes.
pub trait Update: Resource + FromFields + Clone + PartialEq {
    /// Completes a changed object whose single fields are valid.
    ///
    /// # Errors
    /// A rule over several fields is broken.
    fn apply(&mut self, _before: &Self, _sent: &Fields, _facts: &Facts<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// The events, in order. `changed` says whether any field has another value than before.
    fn events(&self, before: &Self, changed: bool, sent: &Fields) -> Vec<EventType>;
}

/// A resource that an export of its organization contains and that an import restores unchanged.
pub trait Portable: Resource + FromFields {
    /// Changes the organization that the object names, if it names one.
    fn adopt(&mut self, _organization: OrganizationId) {}

    /// Checks that the rules of the resource can have led to this object, whose single fields are valid.
    ///
    /// # Errors
    /// Names the fields that contradict each other.
    fn arrive(&self, _facts: &Facts<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// The facts that a rule gets beside the object.
pub struct Facts<'a> {
    /// The time of the request.
    pub now: Timestamp,
    /// The organization that owns the object.
    pub organization: &'a Organization,
    /// The objects that the body names, by field.
    pub references: &'a HashMap<String, Record>,
    /// The next number of the resource's counter.
    pub number: u64,
}

impl Facts<'_> {
    /// The object that the body names in `field`, if it names one.
    ///
    /// # Errors
    /// The record does not parse: the store is damaged.
    pub fn reference<T: Resource>(&self, field: &str) -> Result<Option<T>, Error> {
        self.references.get(field).map(|record| parse(&record.key, &record.value)).transpose()
    }
}

/// The value of a field that a request did not send, if it has one.
pub type Otherwise<'a> = &'a dyn Fn(&FieldSpec) -> Option<FieldValue>;

/// The decision of a rule: the object as JSON, whether it changed, its events and effects.
pub struct Outcome {
    /// The object, as a GET will return it.
    pub object: Vec<u8>,
    /// Whether any field has another value than before.
    pub changed: bool,
    /// The events, in order.
    pub events: Vec<EventType>,
    /// Its effects on other rows before; `None` for a new object.
    pub effects_before: Option<Effects>,
    /// Its effects on other rows now.
    pub effects: Effects,
}
