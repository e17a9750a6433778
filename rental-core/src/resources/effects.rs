//! The rows derived from an object of any resource.

use super::resource::Resource;
use crate::{
    schema::{Effects, IndexValue},
    store::Key,
    value::{CustomerId, OrganizationId},
};

/// The rows derived from an object: those of its resource's rules, and its entries in the indexes of the filters.
pub fn of<T: Resource>(object: &T) -> Effects {
    let mut effects = object.effects();
    effects.entries.extend(T::SPEC.index_prefixes(|field| object.indexed(field)));
    if let Some(IndexValue::Id(id)) = T::SPEC.person().and_then(|field| object.index_value(field)) {
        effects.person = Some(CustomerId::from_uuid(id));
    }
    effects
}

/// The keys of an object's entries in the indexes of the filters.
pub fn index_keys<T: Resource>(organization: OrganizationId, object: &T) -> Vec<Key> {
    T::SPEC.index_keys(organization, object.id().uuid(), |field| object.indexed(field))
}
