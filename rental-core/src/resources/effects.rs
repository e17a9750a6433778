//! The effects of any object, with the entries in the indexes of its filters.

use super::resource::Resource;
use crate::{schema::Effects, store::Key, value::OrganizationId};

/// All effects of an object on other rows: those of its resource, and its entries in the indexes of its filters.
pub fn of<T: Resource>(object: &T) -> Effects {
    let mut effects = object.effects();
    effects.entries.extend(T::SPEC.index_prefixes(|field| object.index_value(field)));
    effects
}

/// The keys of the index entries that serve the filters of an object's list.
pub fn index_keys<T: Resource>(organization: OrganizationId, object: &T) -> Vec<Key> {
    T::SPEC.index_keys(organization, object.id().uuid(), |field| object.index_value(field))
}
