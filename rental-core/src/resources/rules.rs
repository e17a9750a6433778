//! The rules of a resource as traits, with their inputs and results.

use super::{
    effects,
    event::EventType,
    organization::Organization,
    resource::{AnyObject, Resource, parse, to_json},
};
use crate::{
    error::Error,
    schema::{Ask, Effects, FieldSpec, Fields},
    store::{Key, Record},
    value::{FieldValue, FromFields, Money, OrganizationId, Timestamp},
};
use bytes::Bytes;
use std::collections::HashMap;
use uuid::Uuid;

/// A resource whose objects a POST creates.
pub trait Create: Resource + FromFields {
    /// Whether [`Create::reads`] names any record.
    const READS_MORE: bool = false;

    /// Names the records that the rule needs besides those that the body refers to. The context has the latter; it has all of
    /// them when [`Create::create`] runs.
    ///
    /// # Errors
    /// [`Error::Damaged`]: a record does not parse.
    fn reads(&self, _context: &RuleContext<'_>) -> Result<Vec<(String, Key)>, Error> {
        Ok(Vec::new())
    }

    /// Completes a new object, whose fields are valid one by one. Returns its events, in order.
    ///
    /// # Errors
    /// The object breaks a rule that concerns several fields or objects.
    fn create(&mut self, context: &RuleContext<'_>) -> Result<Vec<EventType>, Error>;

    /// The changes of other objects that go with the new object, in the same batch.
    ///
    /// # Errors
    /// Another object cannot change so.
    fn elsewhere(&self, _context: &RuleContext<'_>) -> Result<Vec<Change>, Error> {
        Ok(Vec::new())
    }
}

/// A resource whose objects a PATCH changes.
pub trait Update: Resource + FromFields + Clone + PartialEq {
    /// Completes a changed object, whose fields are valid one by one.
    ///
    /// # Errors
    /// The object breaks a rule that concerns several fields or objects.
    fn apply(&mut self, _before: &Self, _sent: &Fields, _context: &RuleContext<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// The events of the change, in order. `changed` is true when a field has another value than before.
    fn events(&self, before: &Self, changed: bool, sent: &Fields) -> Vec<EventType>;
}

/// A resource that an export of its organization contains and that an import restores unchanged.
pub trait Portable: Resource + FromFields {
    /// Replaces the organization's id in the object, if it contains one.
    fn adopt(&mut self, _organization: OrganizationId) {}

    /// Checks that the rules of the resource can have produced this object, whose fields are valid one by one.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the fields that contradict each other.
    fn arrive(&self, _context: &RuleContext<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// The inputs of a rule in addition to the object.
pub struct RuleContext<'a> {
    /// The time of the request.
    pub now: Timestamp,
    /// The organization that owns the object.
    pub organization: &'a Organization,
    /// The records that the body refers to, by field.
    pub references: &'a HashMap<String, Record>,
    /// The next number of the resource's counter; 0 when its objects are not numbered.
    pub number: u64,
    /// What is credited for good of those violations among these records, or of the one that changes, of which more is billed than
    /// they cost.
    pub credited: &'a HashMap<Uuid, Money>,
}

impl RuleContext<'_> {
    /// What is credited for good of the violation with this id, if more of it is billed than it costs.
    #[must_use]
    pub fn credited(&self, id: Uuid) -> Money {
        self.credited.get(&id).copied().unwrap_or_default()
    }

    /// The object that the body refers to in `field`, if the field was sent.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the record does not parse.
    pub fn reference<T: Resource>(&self, field: &str) -> Result<Option<T>, Error> {
        self.references.get(field).map(|record| parse(&record.key, &record.value)).transpose()
    }
}

/// Returns the value of a field that a request did not send, if the field has one.
pub type Otherwise<'a> = &'a dyn Fn(&FieldSpec) -> Option<FieldValue>;

/// The result of a rule: the object, whether it changed, its events and derived rows.
pub struct Outcome {
    /// The JSON of the object, as a GET will return it.
    pub json: Bytes,
    /// The object; `None` when its JSON is all that its writer needs.
    pub object: Option<Box<dyn AnyObject>>,
    /// Whether a field has another value than before.
    pub changed: bool,
    /// The events of the change, in order.
    pub events: Vec<EventType>,
    /// The derived rows of the object before the change; `None` for a new object.
    pub effects_before: Option<Effects>,
    /// The derived rows of the object after the change.
    pub effects: Effects,
    /// The changes of other objects in the same batch. They emit no events.
    pub elsewhere: Vec<Change>,
    /// What is looked up beside the commit, for the notices of the response.
    pub asks: Vec<Ask>,
}

/// The change of a stored object that goes with that of another one.
pub struct Change {
    /// The record that changes.
    pub before: Record,
    /// Its new state.
    pub outcome: Outcome,
}

impl Outcome {
    /// The result for the new state of an object, which is new or had these derived rows before.
    pub(crate) fn new<T: Resource>(
        object: T,
        changed: bool,
        events: Vec<EventType>,
        effects_before: Option<Effects>,
    ) -> Result<Self, Error> {
        let (json, effects) = (to_json(&object)?, effects::of(&object));
        Ok(Self {
            json,
            object: Some(Box::new(object)),
            changed,
            events,
            effects_before,
            effects,
            elsewhere: Vec::new(),
            asks: Vec::new(),
        })
    }
}
