//! The beginning of an erasure: the first batch, and the search for erasures that a store must begin.

use super::{Task, Work};
use crate::{
    erasing::{CustomerErasure, Erasure, ErasureStatus, described, is_of_customer, report, rows_of, task_id},
    error::Error,
    operations::{self, Edge, Intent, Prepared, Preparing},
    resources::{
        Object, Resource,
        customer::{self, Customer},
        event::EventType,
        organization::{Organization, SYSTEM},
        parse,
        personal::{Form, redact},
        to_json,
    },
    rows::key,
    store::{Batch, Commit, DamagedRow, Pages, Record, Store, get_each, get_one},
    value::{CustomerId, Members, OrganizationId, Timestamp},
};

/// Rows in one scan.
const PAGE: usize = 256;
/// How often a batch is prepared again when concurrent writes change the customer.
const MOST_ATTEMPTS: usize = 64;

/// The request of an operator to erase a customer. A second one gets the report of the first.
pub struct Erase<'a> {
    /// The organization of the customer.
    pub organization: &'a Organization,
    /// The id in the path.
    pub id: &'a str,
}

impl Intent for Erase<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let record = operations::get(store, self.organization.id, &customer::SPEC, self.id).await?;
            let customer: Customer = parse(&record.key, &record.value)?;
            let (prepared, body) = match customer.erased_at {
                None => {
                    let (prepared, erasure) = begin(store, edge, self.organization, record, None).await?;
                    (prepared, described(store, &erasure, None).await?)
                }
                Some(_) => {
                    let body = report(store, self.organization.id, customer.id).await?;
                    let body = body.ok_or_else(|| Error::damaged_row(&record.key, "its erasure is not there"))?;
                    let prepared = Prepared {
                        batch: Batch::default(),
                        body: record.value,
                        revision: record.revision,
                        object: None,
                        asks: Vec::new(),
                    };
                    (prepared, body)
                }
            };
            Ok(Prepared { body: to_json(&body)?, ..prepared })
        })
    }
}

/// Prepares the batch that erases a customer: the redacted record, the row of the erasure, and the task. `listed` is the time
/// on a list that names the customer, for one who has no row yet.
async fn begin(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    record: Record,
    listed: Option<Timestamp>,
) -> Result<(Prepared, Erasure), Error> {
    let before: Customer = parse(&record.key, &record.value)?;
    let id = before.id;
    let now = edge.now();
    let mut erasure = Erasure::new(organization.id, id, listed.unwrap_or(now));
    let row = get_one(store, &erasure.key()).await?;
    if let Some(row) = &row {
        // The erasure of before the backup from which the store was restored.
        erasure.erased_at = Erasure::read(row)?.erased_at;
    }
    let known_as = names_of(&before);
    let mut members = Members::parse(&record.value).map_err(|why| Error::damaged_row(&record.key, why))?;
    redact(&customer::SPEC, &mut members, Form::Record).map_err(|why| Error::damaged_row(&record.key, why))?;
    let mut prepared = operations::edit(store, edge, organization, record, |customer: &mut Customer| {
        *customer = parse(&Customer::key(organization.id, id), members.json().as_bytes())?;
        customer.erased_at = Some(erasure.erased_at);
        customer.touch(now);
        Ok(vec![EventType::CustomerUpdated])
    })
    .await?;
    let state = CustomerErasure::new(organization.id, id, known_as);
    (erasure.rewritten, erasure.kept) = (state.rewritten.clone(), state.kept.clone());
    let value = to_json(&erasure)?;
    match row {
        Some(row) => prepared.batch.replace(row.key, row.revision, value),
        None => prepared.batch.insert(erasure.key(), value),
    }
    let task = Task { id: task_id(id), work: Work::CustomerErasure(state), created_at: now };
    task.begin_again(store, &mut prepared.batch).await?;
    Ok((prepared, erasure))
}

/// The email and phone of a customer, by which leads that name no customer are found.
pub(crate) fn names_of(customer: &Customer) -> Vec<String> {
    [customer.email.as_deref(), customer.phone.as_deref()].into_iter().flatten().map(str::to_owned).collect()
}

/// Prepares the batch that erases the customer of this record, whom the list of an import names with this time.
pub(crate) async fn begin_listed(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    record: Record,
    listed: Timestamp,
) -> Result<Batch, Error> {
    Ok(begin(store, edge, organization, record, Some(listed)).await?.0.batch)
}

/// Begins the task of an erased customer anew, who is also known by these names: an import has brought them, and maybe leads
/// with them. The names of a task that runs are looked for too, and the report keeps what was counted so far.
pub(crate) async fn look_for_names(
    store: &dyn Store,
    edge: &dyn Edge,
    (organization, id): (OrganizationId, CustomerId),
    names: &[String],
) -> Result<(), Error> {
    let place = Erasure::new(organization, id, edge.now()).key();
    for _ in 0..MOST_ATTEMPTS {
        let mut state = CustomerErasure::new(organization, id, names.to_vec());
        match get_one(store, &key::task(task_id(id))).await? {
            Some(record) => {
                if let Work::CustomerErasure(running) = Task::read(&record)?.work {
                    state.known_as.extend(running.known_as.into_iter().filter(|name| !names.contains(name)));
                    state.rewritten = running.rewritten;
                }
            }
            None => {
                let row = get_one(store, &place).await?;
                let ended = row.as_ref().map(Erasure::read).transpose()?;
                state.rewritten.extend(ended.map(|ended| ended.rewritten).unwrap_or_default());
            }
        }
        let mut batch = Batch::default();
        let task = Task { id: task_id(id), work: Work::CustomerErasure(state), created_at: edge.now() };
        task.begin_again(store, &mut batch).await?;
        if operations::commit_for(store, organization, batch).await? == Commit::Applied {
            return Ok(());
        }
    }
    Err(Error::Unavailable("others changed the same erasure too often".into()))
}

/// Whether the task in this record erases a customer of the organization. A damaged one says nothing.
#[must_use]
pub fn erases_in(record: &Record, organization: OrganizationId) -> bool {
    matches!(Task::read(record), Ok(Task { work: Work::CustomerErasure(state), .. }) if state.organization_id == organization)
}

/// Begins the erasure of each customer on the list of erased people who is not erased: after a restore or an import.
/// Damaged rows are added to `damaged`. Returns the number of new tasks.
///
/// # Errors
/// The store is not available.
pub async fn begin_left_over_erasures(
    store: &dyn Store,
    edge: &dyn Edge,
    damaged: &mut Vec<DamagedRow>,
) -> Result<usize, Error> {
    let (mut begun, mut pages) = (0, Pages::of(store, rows_of(None), PAGE));
    while let Some(page) = pages.next().await? {
        for row in page {
            let outcome = match row {
                Ok(row) if is_of_customer(&row.key) => again(store, edge, &row).await,
                Ok(_) => Ok(false),
                Err(row) => Err(Error::Damaged(row)),
            };
            begun += usize::from(Error::note_damage(outcome, damaged)?.unwrap_or_default());
        }
    }
    Ok(begun)
}

/// Begins the erasure of this row if its customer is not erased.
async fn again(store: &dyn Store, edge: &dyn Edge, row: &Record) -> Result<bool, Error> {
    let erasure = Erasure::read(row)?;
    let (organization, id) = (erasure.organization_id, erasure.customer_id);
    for _ in 0..MOST_ATTEMPTS {
        let found = store.get(&[Customer::key(organization, id), Organization::key(SYSTEM, organization)]).await?;
        let [Some(record), Some(owner)] = found.as_slice() else { return Ok(false) };
        let mut batch = Batch::default();
        let is_erased = parse::<Customer>(&record.key, &record.value)?.erased_at.is_some();
        if is_erased && erasure.status == ErasureStatus::Complete {
            return Ok(false);
        }
        let task = key::task(task_id(id));
        if !is_erased {
            let owner: Organization = parse(&owner.key, &owner.value)?;
            batch = begin(store, edge, &owner, record.clone(), None).await?.0.batch;
        } else if matches!(get_each(store, &[task]).await?.pop(), Some(Ok(None))) {
            // A repair of the store removed a damaged task.
            let state = CustomerErasure::new(organization, id, Vec::new());
            Task { id: task_id(id), work: Work::CustomerErasure(state), created_at: edge.now() }.begin(&mut batch)?;
        } else {
            return Ok(false);
        }
        match operations::commit_for(store, organization, batch).await {
            Ok(Commit::Applied) => return Ok(true),
            Ok(Commit::Stale(_)) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Unavailable("others changed the same customer too often".into()))
}
