//! Commits what belongs to an organization, as long as the organization exists.

use crate::{
    error::Error,
    resources::{
        Resource,
        organization::{self, Organization, SYSTEM},
    },
    rows::key,
    store::{Batch, Check, Commit, Key, Store},
    value::{OrganizationId, TaskId},
};

/// The key of the task that deletes an organization, or that holds its writes back while a deletion is decided. The id of
/// the task is the UUID of the organization, so there is at most one.
pub(crate) fn deletion_of(organization: OrganizationId) -> Key {
    key::task(TaskId::from_uuid(organization.uuid()))
}

/// Commits a batch that adds rows of an organization. The batch checks that the organization exists, so nothing appears
/// after its deletion, however long ago the caller was authenticated. It also checks that no deletion is being decided.
///
/// # Errors
/// [`Error::NotFound`] if the organization was deleted; [`Error::Unavailable`] while its deletion is decided.
pub(crate) async fn commit_for(
    store: &dyn Store,
    organization: OrganizationId,
    mut batch: Batch,
) -> Result<Commit, Error> {
    if organization == SYSTEM {
        return Ok(store.commit(batch).await?);
    }
    let place = Organization::key(SYSTEM, organization);
    let deletion = deletion_of(organization);
    // The record first: a running deletion has removed it.
    batch.checks.extend([Check::Present(place.clone()), Check::Absent(deletion.clone())]);
    match store.commit(batch).await? {
        Commit::Stale(key) if key == place => Err(Error::NotFound { object: organization::SPEC.object }),
        Commit::Stale(key) if key == deletion => {
            Err(Error::Unavailable("an operator is about to delete the organization; try again".into()))
        }
        outcome => Ok(outcome),
    }
}
