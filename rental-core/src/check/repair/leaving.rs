//! Decides about deletions of organizations and marks of erased customers.

use super::{decide::Decider, waiter::Waiter};
use crate::{
    erasing::Erasure,
    resources::{
        Resource, customer,
        organization::{Organization, SYSTEM},
        spec_of_tag, to_json,
    },
    rows::{Tag, key},
    store::{Key, Record},
    tasks::{
        Task,
        organization_deletion::{self, OrganizationDeletion},
    },
    value::{CustomerId, OrganizationId},
};
use bytes::Bytes;
use uuid::Uuid;

impl<W: Waiter> Decider<'_, '_, W> {
    /// Plans the damaged task that deletes this organization anew. The organization has rows, and no record any more.
    pub(super) fn deletes_again(&self, organization: OrganizationId) -> bool {
        let place = key::task(organization_deletion::task_id(organization));
        let revision = match self.view.get(&place) {
            Ok(Some(row)) if Task::read(&row).is_err() => row.revision + 1,
            Err(_) => 1,
            Ok(_) => return false,
        };
        if !matches!(self.view.get(&Organization::key(SYSTEM, organization)), Ok(None)) {
            return false;
        }
        let task = Task::organization_deletion(OrganizationDeletion::again(organization, self.now), self.now);
        let Ok(value) = serde_json::to_vec(&task) else { return false };
        self.view.put(&place, revision, value.into(), "it was damaged, and rows of its organization are left");
        true
    }

    /// A mark of an erased object is removed only if nothing of its organization is there: without it a restored backup would
    /// bring the person back. A customer's mark that cannot be read begins anew, and the next server erases what is left.
    pub(super) fn erased(
        &self,
        (organization, resource, id): (OrganizationId, u8, Uuid),
        key: &Key,
        sound: Option<&Record>,
        why: &str,
    ) -> bool {
        let is_alone = matches!(self.view.get(&Organization::key(SYSTEM, organization)), Ok(None))
            && !self.view.has_any(key::of_organization(Tag::Record, organization));
        if is_alone || spec_of_tag(resource).is_none() {
            self.view.remove(key, why);
            return true;
        }
        let is_customer = resource == customer::SPEC.tag;
        if sound.is_some_and(|row| !is_customer || Erasure::read(row).is_ok()) {
            return false;
        }
        let erasure = Erasure::new(organization, CustomerId::from_uuid(id), self.now);
        let value = if is_customer { to_json(&erasure).unwrap_or_default() } else { Bytes::new() };
        self.view.put(key, sound.map_or(1, |row| row.revision + 1), value, why);
        true
    }
}
