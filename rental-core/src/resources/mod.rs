//! What a resource must say about itself, and the list of all of them.
//!
//! Capabilities are traits: an [`invoice::Invoice`] is created by an operator alone, so the public table cannot route a
//! POST to it by accident. Rules are pure: they get facts and leave effects.

pub mod api_key;
pub mod audit_entry;
pub mod customer;
pub mod delivery;
pub mod effects;
pub mod event;
pub mod invoice;
pub mod lead;
pub mod organization;
pub mod registry;
pub mod rental;
pub mod row_words;
pub mod sql_views;
pub mod toll;
pub mod vehicle;
pub mod violation;
pub mod webhook_endpoint;

pub use registry::{API, RESOURCES};

use crate::{
    error::{Error, FieldCode},
    resources::{event::EventType, organization::Organization},
    schema::{Attribution, Effects, FieldSpec, Fields, IndexPrefix, IndexValue, LookUpSpec, ResourceSpec, look_up},
    store::{Key, Record},
    value::{FieldValue, FromFields, Timestamp},
};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::HashMap;
use uuid::Uuid;

/// A kind of object: its struct and its description.
pub trait Resource: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The description that everything else is driven by.
    const SPEC: &'static ResourceSpec;
    /// The counter that numbers new objects, if they are numbered.
    const COUNTER: Option<&'static str> = None;

    /// Its id.
    fn id(&self) -> Uuid;

    /// The value of a field that an index of [`Resource::SPEC`] compares; `None` when it is empty.
    fn index_value(&self, _field: &str) -> Option<IndexValue<'_>> {
        None
    }

    /// Sets `updated_at`.
    fn touch(&mut self, now: Timestamp);

    /// What this object means beside itself, its index entries apart: [`effects::of`] has them too.
    fn effects(&self) -> Effects {
        Effects::default()
    }
}

/// A resource that a POST makes.
pub trait Create: Resource + FromFields {
    /// Completes a new object whose fields were checked one by one; gives the events, in order.
    ///
    /// # Errors
    /// A rule over several fields is broken.
    fn create(&mut self, facts: &Facts<'_>) -> Result<Vec<EventType>, Error>;
}

/// A resource that a PATCH changes.
pub trait Update: Resource + FromFields + Clone + PartialEq {
    /// Completes a changed object whose fields were checked one by one.
    ///
    /// # Errors
    /// A rule over several fields is broken.
    fn apply(&mut self, _before: &Self, _sent: &Fields, _facts: &Facts<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// The events, in order. `changed` says whether any field has another value than before.
    fn events(&self, before: &Self, changed: bool, sent: &Fields) -> Vec<EventType>;
}

/// A resource that moves with its organization: an export has it, and an import takes it as it was.
pub trait Portable: Resource + FromFields {
    /// Makes it that of another organization, where it says whose it is.
    fn adopt(&mut self, _organization: Uuid) {}

    /// Whether this is what the rules of this resource can have led to; every field was checked for itself.
    ///
    /// # Errors
    /// The sentence says which fields do not go together.
    fn arrive(&self, _facts: &Facts<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// What a rule may know beside the object itself.
pub struct Facts<'a> {
    /// The time of the request.
    pub now: Timestamp,
    /// Whose object it is.
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

/// Reads a stored object.
///
/// # Errors
/// The record does not parse: the store is damaged.
pub fn parse<T: Resource>(key: &Key, value: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(value).map_err(|error| Error::damaged(key, &error))
}

/// Gives the value of a field that a request did not send, if it has one.
pub type Otherwise<'a> = &'a dyn Fn(&FieldSpec) -> Option<FieldValue>;

type Rule = fn(&Fields, Otherwise<'_>, &Facts<'_>) -> Result<Outcome, Error>;
type Change = fn(&Record, &Fields, &Facts<'_>) -> Result<Outcome, Error>;

/// What a rule decided: the object as JSON, whether it changed, its events and holds.
pub struct Outcome {
    /// The object, as a GET will return it.
    pub object: Vec<u8>,
    /// Whether any field has another value than before.
    pub changed: bool,
    /// The events, in order.
    pub events: Vec<EventType>,
    /// What it meant beside itself before; `None` when it is new.
    pub effects_before: Option<Effects>,
    /// What it means beside itself now.
    pub effects: Effects,
}

/// A resource with the operations that one table offers; see [`of`].
#[derive(Clone, Copy)]
pub struct Collection {
    /// The description.
    pub spec: &'static ResourceSpec,
    /// The counter that numbers new objects.
    pub counter: Option<&'static str>,
    /// GET on the collection.
    pub list: bool,
    /// GET on an object.
    pub get: bool,
    /// POST on the collection.
    pub create: Option<Rule>,
    /// PATCH on an object.
    pub update: Option<Change>,
}

/// A row of a route table, for one resource.
pub struct Row<T>(Collection, std::marker::PhantomData<T>);

/// Begins a row for `T`, without any operation.
#[must_use]
pub const fn of<T: Resource>() -> Row<T> {
    let none = Collection { spec: T::SPEC, counter: T::COUNTER, list: false, get: false, create: None, update: None };
    Row(none, std::marker::PhantomData)
}

impl<T: Resource> Row<T> {
    /// Offers GET on the collection.
    #[must_use]
    pub const fn list(mut self) -> Self {
        self.0.list = true;
        self
    }

    /// Offers GET on an object.
    #[must_use]
    pub const fn get(mut self) -> Self {
        self.0.get = true;
        self
    }

    /// Offers POST on the collection.
    #[must_use]
    pub const fn create(mut self) -> Self
    where
        T: Create,
    {
        self.0.create = Some(create::<T>);
        self
    }

    /// Offers PATCH on an object.
    #[must_use]
    pub const fn update(mut self) -> Self
    where
        T: Update,
    {
        self.0.update = Some(update::<T>);
        self
    }

    /// The finished row.
    #[must_use]
    pub const fn done(self) -> Collection {
        self.0
    }
}

/// The description of the resource whose `object` this is, public or the operator's.
#[must_use]
pub fn spec_of(object: &str) -> Option<&'static ResourceSpec> {
    specs().find(|spec| spec.object == object)
}

/// The description of the resource with this tag in keys.
#[must_use]
pub fn spec_of_tag(tag: u8) -> Option<&'static ResourceSpec> {
    registry::of_tag(tag).map(|entry| entry.spec)
}

/// The descriptions of all resources, the public ones first.
pub fn specs() -> impl Iterator<Item = &'static ResourceSpec> {
    registry::all().map(|entry| entry.spec)
}

fn create<T: Create>(sent: &Fields, otherwise: Otherwise<'_>, facts: &Facts<'_>) -> Result<Outcome, Error> {
    let mut object: T = sent.object(otherwise).map_err(unfit)?;
    let events = object.create(facts)?;
    Ok(Outcome {
        object: serde_json::to_vec(&object).map_err(unwritable)?,
        changed: true,
        events,
        effects_before: None,
        effects: effects::of(&object),
    })
}

fn update<T: Update>(before: &Record, sent: &Fields, facts: &Facts<'_>) -> Result<Outcome, Error> {
    let before: T = parse(&before.key, &before.value)?;
    let mut object = before.clone();
    sent.apply(&mut object).map_err(unfit)?;
    object.apply(&before, sent, facts)?;
    let changed = object != before;
    let events = object.events(&before, changed, sent);
    if changed {
        object.touch(facts.now);
    }
    Ok(Outcome {
        object: serde_json::to_vec(&object).map_err(unwritable)?,
        changed,
        events,
        effects_before: Some(effects::of(&before)),
        effects: effects::of(&object),
    })
}

/// Checked fields that do not make an object: struct and description differ, which a test prevents.
fn unfit(field: &'static str) -> Error {
    Error::Internal(format!("checked fields do not make an object: `{field}` does not fit its struct"))
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::Internal(format!("an object cannot be written as JSON: {error}"))
}

/// The `updated_at` of an object that changes at `now`: later than before in any case, also within one millisecond or
/// when the clock was set back, so that a list by `updated_at` shows the object again.
fn later(before: Timestamp, now: Timestamp) -> Timestamp {
    if now > before { now } else { before.plus_millis(1) }
}

/// The one event of an object whose customer changed to another one.
fn attached(event: EventType, before: Option<Uuid>, after: Option<Uuid>) -> Vec<EventType> {
    if after.is_some() && after != before { vec![event] } else { Vec::new() }
}

/// Tolls and violations without a customer that nobody has decided about.
const UNATTACHED: LookUpSpec = look_up(128, "unattached");

/// Where tolls and violations without a customer are found that nobody has decided about.
#[must_use]
pub fn unattached_look_up() -> IndexPrefix {
    UNATTACHED.of(&[])
}

fn unattached(customer: Option<Uuid>, attribution: Option<Attribution>) -> Vec<IndexPrefix> {
    if customer.is_none() && attribution.is_none() { vec![unattached_look_up()] } else { Vec::new() }
}

/// The attribution of a toll or violation after a request that may have set its customer.
fn chosen(attribution: Option<Attribution>, before: Option<Uuid>, after: Option<Uuid>) -> Option<Attribution> {
    if before == after { attribution } else { Some(Attribution::Manual) }
}

/// Whether a toll or violation can have come to its customer in this way.
fn check_attribution(
    customer: Option<Uuid>,
    attribution: Option<Attribution>,
    rental: Option<Uuid>,
) -> Result<(), Error> {
    match (customer, attribution, rental) {
        (None, None | Some(Attribution::Manual), None)
        | (Some(_), Some(Attribution::Manual), None)
        | (Some(_), Some(Attribution::Automatic), Some(_)) => Ok(()),
        _ => Err(Error::field(
            "attribution",
            FieldCode::Invalid,
            "must be `automatic` with a customer and a rental, `manual` without a rental, or null without both",
        )),
    }
}

/// For a sum or product that no amount holds.
fn too_large(param: &str) -> Error {
    Error::field(param, FieldCode::Invalid, "would be larger than any amount")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        request::body::Verb,
        schema::{IndexSpec, Kind, Presence},
    };
    use std::collections::BTreeSet;

    /// A whole object from the examples of a description.
    fn sample(spec: &ResourceSpec) -> String {
        let members = spec.fields.iter().map(|field| format!("\"{}\":{}", field.name, field.example));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }

    #[test]
    fn every_struct_has_the_fields_of_its_description_in_order() {
        for entry in registry::all() {
            let (object, text) = (entry.spec.object, sample(entry.spec));
            let again = (entry.reprint)(&Key::from_bytes(b"sample"), text.as_bytes());
            let again = again.unwrap_or_else(|error| panic!("{object}: {error:?}\n{text}"));
            assert_eq!(String::from_utf8(again).unwrap(), text, "struct and SPEC of {object} differ");
        }
    }

    #[test]
    fn tags_and_names_are_used_once() {
        let tags: BTreeSet<u8> = specs().map(|spec| spec.tag).collect();
        let names: BTreeSet<&str> = specs().flat_map(|spec| [spec.object, spec.plural]).collect();
        assert_eq!((tags.len(), names.len()), (RESOURCES.len(), 2 * RESOURCES.len()));
    }

    /// Numbers of indexes and look-ups are part of stored keys. A line of this table may be added; none may change, and
    /// the number of a line that goes may never come back.
    #[test]
    fn index_numbers_are_those_that_are_written_down() {
        let found: Vec<String> = specs()
            .flat_map(|spec| {
                let name = |index: &IndexSpec| match index.ordered_by {
                    Some(field) => format!("{}by {field}", index.fields.join("+")),
                    None => index.fields.join("+"),
                };
                let indexes = spec.indexes.iter().map(move |index| (index.number, name(index)));
                let look_ups = spec.look_ups.iter().map(|look_up| (look_up.number, look_up.name.to_owned()));
                indexes.chain(look_ups).map(|(number, what)| format!("{} {number} {what}", spec.object))
            })
            .collect();
        let written = [
            "vehicle 16 by updated_at",
            "vehicle 128 transponder",
            "vehicle 129 plate",
            "customer 1 email",
            "customer 16 by updated_at",
            "rental 1 status",
            "rental 2 customer_id",
            "rental 3 status+customer_id",
            "rental 4 vehicle_id",
            "rental 5 status+vehicle_id",
            "rental 6 customer_id+vehicle_id",
            "rental 7 status+customer_id+vehicle_id",
            "rental 16 by updated_at",
            "rental 128 stay",
            "invoice 1 status",
            "invoice 2 customer_id",
            "invoice 3 status+customer_id",
            "invoice 16 by updated_at",
            "toll 1 vehicle_id",
            "toll 2 customer_id",
            "toll 3 vehicle_id+customer_id",
            "toll 16 by updated_at",
            "toll 128 unattached",
            "toll 129 passage",
            "violation 1 vehicle_id",
            "violation 2 customer_id",
            "violation 3 vehicle_id+customer_id",
            "violation 16 by updated_at",
            "violation 128 unattached",
            "api_key 1 organization_id",
            "webhook_endpoint 1 organization_id",
            "event 1 type",
            "delivery 1 endpoint_id",
            "delivery 2 event_id",
            "delivery 3 endpoint_id+event_id",
            "audit_entry 1 organization_id",
            "audit_entry 2 action",
            "audit_entry 3 organization_id+action",
        ];
        assert_eq!(found, written);
    }

    #[test]
    fn a_resource_uses_a_number_once_and_those_of_look_ups_begin_at_128() {
        for spec in specs() {
            let indexes = spec.indexes.iter().map(|index| index.number);
            let look_ups = spec.look_ups.iter().map(|look_up| look_up.number);
            assert!(indexes.clone().all(|number| (1..128).contains(&number)), "{}", spec.object);
            assert!(look_ups.clone().all(|number| number >= 128), "{}", spec.object);
            let mut numbers: Vec<u8> = indexes.chain(look_ups).collect();
            let count = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), count, "{}", spec.object);
        }
    }

    #[test]
    fn an_entry_has_the_bytes_of_schema_version_2() {
        let organization = Uuid::from_u128(7);
        let mut rental: rental::Rental = serde_json::from_str(&sample(&rental::SPEC)).unwrap();
        rental.id = Uuid::from_u128(9);
        let prefix = |number: u8| [&[b'i'][..], organization.as_bytes(), &[rental::SPEC.tag, number]].concat();
        let (status, customer) = (&b"\0\x08APPROVED"[..], [&[0, 16], &rental.customer_id.as_bytes()[..]].concat());
        rental.status = rental::RentalStatus::Approved;
        let found: Vec<Vec<u8>> = effects::of(&rental)
            .entries
            .iter()
            .map(|entry| entry.entry(organization, &rental::SPEC, rental.id).as_bytes().to_vec())
            .collect();
        for (number, values) in [(1, status.to_vec()), (2, customer.clone()), (3, [status, &customer].concat())] {
            let expected = [&prefix(number)[..], &values, rental.id.as_bytes()].concat();
            assert!(found.contains(&expected), "index {number}");
        }
        let start = rental.start_date.unwrap().day_number().to_be_bytes();
        let stay = [&[0, 16], &rental.vehicle_id.as_bytes()[..], &[0, 1, 2, 0, 4], &start].concat();
        assert!(found.contains(&[&prefix(128)[..], &stay, rental.id.as_bytes()].concat()), "look-up 128");
    }

    #[test]
    fn filters_name_fields_and_references_name_resources() {
        for spec in specs() {
            assert!(spec.filters.iter().all(|filter| spec.field(filter.field).is_some()), "{}", spec.object);
            for filter in spec.filters {
                assert!(
                    spec.index_over(&[filter.field], None).is_some(),
                    "{} has no index for {}",
                    spec.object,
                    filter.param
                );
            }
            for range in spec.ranges {
                assert!(spec.index_over(&[], Some(range.field)).is_some(), "{} has no {}", spec.object, range.param);
                assert_eq!(spec.field(range.field).map(|field| field.kind), Some(Kind::Time));
            }
            for field in spec.indexes.iter().flat_map(|index| index.fields) {
                assert!(spec.filters.iter().any(|filter| filter.field == *field), "{}.{field}", spec.object);
            }
            for field in spec.fields {
                if let Kind::Reference(object) = field.kind {
                    assert!(spec_of(object).is_some(), "{}.{}", spec.object, field.name);
                }
            }
        }
    }

    #[test]
    fn examples_pass_their_own_checks() {
        for spec in specs() {
            for verb in [Verb::Create, Verb::Update] {
                let taken = |presence: Presence| presence != Presence::Never;
                let members = spec
                    .fields
                    .iter()
                    .filter(|field| taken(if verb == Verb::Create { field.create } else { field.update }));
                let body: Vec<String> = members.map(|field| format!("\"{}\":{}", field.name, field.example)).collect();
                let parsed = Fields::parse(format!("{{{}}}", body.join(",")).as_bytes(), spec, verb, 2);
                assert!(parsed.is_ok(), "{} {verb:?}: {parsed:?}", spec.object);
            }
        }
    }
}
