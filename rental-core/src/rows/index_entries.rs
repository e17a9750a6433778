//! The keys and spans of index entries.

use super::key;
use crate::{
    schema::{IndexPrefix, IndexValue, ResourceSpec},
    store::{Key, Span},
    value::OrganizationId,
};
use uuid::Uuid;

impl IndexPrefix {
    /// The span that reads the objects of these entries, newest first.
    #[must_use]
    pub fn span(&self, organization: OrganizationId, spec: &ResourceSpec) -> Span {
        Span::newest_first(&self.prefix(organization, spec)).following(key::records(organization, spec))
    }

    /// The prefix of the keys of these entries.
    #[must_use]
    pub fn prefix(&self, organization: OrganizationId, spec: &ResourceSpec) -> Key {
        key::index(organization, spec, self.as_bytes())
    }

    /// The key of the entry of the object `id`.
    #[must_use]
    pub fn entry(&self, organization: OrganizationId, spec: &ResourceSpec, id: Uuid) -> Key {
        key::entry(&self.prefix(organization, spec), id)
    }
}

impl ResourceSpec {
    /// The keys of an object's index entries. `value` returns the value of a field.
    pub fn index_keys<'a>(
        &self,
        organization: OrganizationId,
        id: Uuid,
        value: impl Fn(&str) -> Option<IndexValue<'a>> + Copy,
    ) -> Vec<Key> {
        self.index_prefixes(value).iter().map(|prefix| prefix.entry(organization, self, id)).collect()
    }
}
