//! Long operations that continue after a restart.
//!
//! An operation that is too large for one batch, such as the removal of a webhook endpoint with all its deliveries, commits
//! its first change together with a *task*: a row with the kind of the operation and its state. A server then does one
//! [`step`] after the other. Each step is one batch of bounded size, with the new state of the task in it; the last one
//! removes the task. [`progress`] says why a kill loses nothing and several servers do no step twice.
//!
//! A new kind of task is a variant of [`Work`] with a state and a function for its steps. It belongs to a new schema version:
//! programs that do not know it leave the task alone.

pub mod erasing;
pub mod organization_deletion;
pub mod organization_hold;
pub mod progress;

pub use progress::{Progress, Step};

use organization_deletion::{OrganizationDeletion, OrganizationHold};

use crate::{
    erasing as erasure,
    erasing::CustomerErasure,
    error::Error,
    operations::deletion_of,
    resources::{Resource, organization::SYSTEM, webhook_endpoint::WebhookEndpoint},
    rows::key,
    store::{Batch, Check, Commit, DamagedRow, Prior, Record, Store, Write},
    value::{EndpointId, TaskId, Timestamp},
    webhooks::{
        deletion::{self, EndpointDeletion},
        master_key::{self, SealingAnew},
        secret::MasterKeys,
    },
};
use serde::{Deserialize, Serialize};

/// A long operation.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Task {
    /// The id of the task. A task about one object has the id of the object, so that there is at most one.
    pub id: TaskId,
    /// The kind of the task and its state.
    #[serde(flatten)]
    pub work: Work,
    /// The time at which the task was created.
    pub created_at: Timestamp,
}

/// The kinds of tasks, each with its state.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "kind", content = "state", rename_all = "snake_case")]
pub enum Work {
    /// Removes what is left of a deleted webhook endpoint.
    WebhookEndpointDeletion(EndpointDeletion),
    /// Seals the secrets of all webhook endpoints with the master key in use.
    SealingAnew(SealingAnew),
    /// Removes what is left of a deleted organization.
    OrganizationDeletion(OrganizationDeletion),
    /// Removes what is stored about an erased customer.
    CustomerErasure(CustomerErasure),
    /// Holds the writes of an organization back while a request decides whether to delete it.
    OrganizationHold(OrganizationHold),
}

/// The names of the kinds, as tasks in a store have them.
pub const KINDS: &[&str] =
    &["webhook_endpoint_deletion", "sealing_anew", "organization_deletion", "customer_erasure", "organization_hold"];

/// The id of the task that seals all secrets anew: there is at most one.
pub const SEALING_ANEW: TaskId = TaskId::from_u128(1);

impl Task {
    /// The removal of what is left of a deleted webhook endpoint.
    #[must_use]
    pub fn endpoint_deletion(endpoint: EndpointId, now: Timestamp) -> Self {
        let work = Work::WebhookEndpointDeletion(EndpointDeletion { endpoint_id: endpoint, deliveries: 0 });
        Self { id: deletion::task_id(endpoint), work, created_at: now }
    }

    /// Seals all secrets with the master key in use.
    #[must_use]
    pub fn sealing_anew(now: Timestamp) -> Self {
        Self { id: SEALING_ANEW, work: Work::SealingAnew(SealingAnew::default()), created_at: now }
    }

    /// The removal of what is left of a deleted organization.
    #[must_use]
    pub fn organization_deletion(state: OrganizationDeletion, now: Timestamp) -> Self {
        let id = organization_deletion::task_id(state.organization_id);
        Self { id, work: Work::OrganizationDeletion(state), created_at: now }
    }

    /// Adds the task to the batch of the change that makes it necessary. The batch fails if the task exists.
    ///
    /// # Errors
    /// Never for tasks that this program made.
    pub fn begin(&self, batch: &mut Batch) -> Result<(), Error> {
        Progress::begin(batch, key::task(self.id), self).map_err(unwritable)
    }

    /// The same for a task that cannot exist yet, because its object does: replaces a row that somebody damaged.
    ///
    /// # Errors
    /// Never for tasks that this program made.
    pub fn begin_over(&self, batch: &mut Batch) -> Result<(), Error> {
        let value = serde_json::to_vec(self).map_err(unwritable)?;
        batch.writes.push(Write::Put(key::task(self.id), 1, value.into(), Prior::Any));
        Ok(())
    }

    /// The same for a task that may be at work: it begins again from the start.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn begin_again(&self, store: &dyn Store, batch: &mut Batch) -> Result<(), Error> {
        match store.get(&[key::task(self.id)]).await?.pop().flatten() {
            Some(record) => Progress::of(&record).advance(batch, self).map_err(unwritable),
            None => self.begin(batch),
        }
    }

    /// Reads a task.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the row is not a task, or of a kind that this program does not know.
    pub fn read(record: &Record) -> Result<Self, Error> {
        let task: Self = crate::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
        if key::task(task.id) != record.key {
            return Err(Error::damaged_row(&record.key, "it says that it is another task"));
        }
        Ok(task)
    }
}

/// Does the next step of the task that `record` was read from, and commits it. `keys` are the master keys of this server.
/// Damaged rows that the step skips are added to `damaged`.
///
/// # Errors
/// The store is not available, or `record` is no task. The task is unchanged, or one step further when the outcome of the
/// commit is unknown.
pub async fn step(
    store: &dyn Store,
    record: &Record,
    (keys, now): (&MasterKeys, Timestamp),
    damaged: &mut Vec<DamagedRow>,
) -> Result<Step, Error> {
    let (mut progress, mut task) = (Progress::of(record), Task::read(record)?);
    let mut batch = Batch::default();
    // While the deletion of its organization is decided, a step changes nothing that the organization's export has.
    let mut waits_for = None;
    let done = match &mut task.work {
        // The request that holds the writes back is at work.
        Work::OrganizationHold(_) if !organization_deletion::is_forgotten(task.created_at, now) => {
            return Ok(Step::Overtaken);
        }
        Work::OrganizationHold(_) => true,
        Work::WebhookEndpointDeletion(state) => deletion::step(store, state, &mut batch, now, damaged).await?,
        Work::SealingAnew(state) => master_key::step(store, keys, state, (&mut batch, now), damaged).await?,
        Work::OrganizationDeletion(state) => {
            organization_deletion::step(store, state, (&mut batch, now), damaged).await?
        }
        Work::CustomerErasure(state) => {
            waits_for = Some(deletion_of(state.organization_id));
            let done = erasure::step(store, state, (&mut batch, now), damaged).await?;
            if done {
                erasure::finish(store, state, &mut batch, now).await?;
            }
            done
        }
    };
    if done {
        progress.finish(&mut batch);
    } else {
        progress.advance(&mut batch, &task).map_err(unwritable)?;
    }
    batch.checks.extend(waits_for.clone().map(Check::Absent));
    Ok(match store.commit(batch).await? {
        Commit::Applied if done => Step::Done,
        Commit::Applied => Step::Continue,
        Commit::Stale(key) if key == record.key || waits_for == Some(key.clone()) => Step::Overtaken,
        // Another change of what the step read: the next step reads it again.
        Commit::Stale(_) => Step::Continue,
    })
}

/// Begins a task for each deleted webhook endpoint that still has due rows. Programs without tasks could leave such rows
/// after a crash. Returns the number of new tasks.
///
/// # Errors
/// The store is not available.
pub async fn begin_left_over_deletions(store: &dyn Store, now: Timestamp) -> Result<usize, Error> {
    let mut begun = 0;
    for endpoint in deletion::deleted_with_due_rows(store).await? {
        let mut batch = Batch::default();
        batch.checks.push(Check::Absent(WebhookEndpoint::key(SYSTEM, endpoint)));
        Task::endpoint_deletion(endpoint, now).begin(&mut batch)?;
        // Stale: another server, or the deletion itself, has begun the task.
        begun += usize::from(store.commit(batch).await? == Commit::Applied);
    }
    Ok(begun)
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::Internal(format!("a task cannot be written: {error}"))
}
