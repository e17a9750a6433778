//! Holds the writes of an organization back while a request decides whether to delete it. Without a hold, a write that comes
//! between the comparison with the last export and the deletion would be accepted and deleted.

use super::{
    Progress, Task, Work,
    organization_deletion::{OrganizationHold, task_id},
    unwritable,
};
use crate::{
    error::Error,
    operations::deletion_of,
    resources::{
        Resource,
        organization::{self, Organization, SYSTEM},
    },
    store::{Batch, Check, Commit, Record, Store, get_one},
    value::{OrganizationId, Timestamp},
};

/// Holds the writes of an organization back: from now on each fails with [`Error::Unavailable`], and what the caller reads
/// is the last change. The hold ends with [`release`], with the deletion ([`replace_hold`]), or 30 s after [`hold`] or
/// [`extend`].
///
/// # Errors
/// [`Error::NotFound`] if the organization does not exist; [`Error::Unavailable`] if another request holds its writes back,
/// or the store is not available.
pub async fn hold(store: &dyn Store, organization: OrganizationId, now: Timestamp) -> Result<(), Error> {
    let work = Work::OrganizationHold(OrganizationHold { organization_id: organization });
    let (place, mut batch) = (Organization::key(SYSTEM, organization), Batch::default());
    batch.checks.push(Check::Present(place.clone()));
    Task { id: task_id(organization), work, created_at: now }.begin(&mut batch)?;
    match store.commit(batch).await? {
        Commit::Applied => Ok(()),
        Commit::Stale(key) if key == place => Err(Error::NotFound { object: organization::SPEC.object }),
        Commit::Stale(_) => Err(Error::Unavailable("another request is about to delete the organization".into())),
    }
}

/// Lets a hold last for another 30 s.
///
/// # Errors
/// [`Error::Unavailable`] if the hold has ended already, or the store is not available.
pub async fn extend(store: &dyn Store, organization: OrganizationId, now: Timestamp) -> Result<(), Error> {
    let Some(record) = held(store, organization).await? else { return Err(too_long()) };
    let (mut task, mut batch) = (Task::read(&record)?, Batch::default());
    task.created_at = now;
    Progress::of(&record).advance(&mut batch, &task).map_err(unwritable)?;
    match store.commit(batch).await? {
        Commit::Applied => Ok(()),
        Commit::Stale(_) => Err(too_long()),
    }
}

fn too_long() -> Error {
    Error::Unavailable("deciding about the deletion took too long; try again".into())
}

/// Ends a hold. Does nothing if it has ended.
///
/// # Errors
/// The store is not available.
pub async fn release(store: &dyn Store, organization: OrganizationId) -> Result<(), Error> {
    if let Some(record) = held(store, organization).await? {
        let mut batch = Batch::default();
        Progress::of(&record).finish(&mut batch);
        store.commit(batch).await?;
    }
    Ok(())
}

/// Adds the task of a deletion to its first batch, in the place of the hold. The batch fails if the hold has ended.
///
/// # Errors
/// [`Error::Unavailable`] if the hold has ended already, or the store is not available.
pub async fn replace_hold(store: &dyn Store, task: &Task, batch: &mut Batch) -> Result<(), Error> {
    let record = held(store, OrganizationId::from_uuid(task.id.uuid())).await?.ok_or_else(too_long)?;
    Progress::of(&record).advance(batch, task).map_err(unwritable)
}

/// The row of a hold.
async fn held(store: &dyn Store, organization: OrganizationId) -> Result<Option<Record>, Error> {
    let Some(record) = get_one(store, &deletion_of(organization)).await? else { return Ok(None) };
    let is_hold = matches!(Task::read(&record)?.work, Work::OrganizationHold(_));
    Ok(Some(record).filter(|_| is_hold))
}
