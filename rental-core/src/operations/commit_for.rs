//! Commits what belongs to an organization, as long as the organization exists.

use crate::{
    error::Error,
    resources::{
        Resource,
        organization::{self, Organization, SYSTEM},
    },
    store::{Batch, Check, Commit, Store},
    value::OrganizationId,
};

/// Commits a batch that adds rows of an organization. The batch checks that the organization exists, so nothing appears
/// after its deletion, however long ago the caller was authenticated.
///
/// # Errors
/// [`Error::NotFound`] if the organization was deleted.
pub(crate) async fn commit_for(
    store: &dyn Store,
    organization: OrganizationId,
    mut batch: Batch,
) -> Result<Commit, Error> {
    if organization == SYSTEM {
        return Ok(store.commit(batch).await?);
    }
    let place = Organization::key(SYSTEM, organization);
    batch.checks.push(Check::Present(place.clone()));
    match store.commit(batch).await? {
        Commit::Stale(key) if key == place => Err(Error::NotFound { object: organization::SPEC.object }),
        outcome => Ok(outcome),
    }
}
