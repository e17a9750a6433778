//! The row of an erased customer.

use crate::{
    error::Error,
    operations::erased::erased_key,
    resources::{
        Resource, customer,
        organization::{Organization, SYSTEM},
    },
    rows::{Row, Tag},
    store::{Key, Record, Span, Store, StoreError, get_each},
    value::{CustomerId, OrganizationId, Timestamp, words},
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

words! {
    /// The state of an erasure.
    pub enum ErasureStatus {
        /// Nothing new shows the customer's data, and the task rewrites what is stored.
        Running = "running",
        /// Everything is rewritten.
        Complete = "complete",
    }
}

/// The value of the `e` row of a customer: when the customer was erased, and what was rewritten.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Erasure {
    /// Always `erasure`.
    pub object: String,
    /// The organization of the customer.
    pub organization_id: OrganizationId,
    /// The customer.
    pub customer_id: CustomerId,
    /// Whether the task has ended.
    pub status: ErasureStatus,
    /// The number of rewritten rows by kind, such as `rentals` or `events`.
    pub rewritten: BTreeMap<String, u64>,
    /// The number of kept records by resource: issued invoices.
    pub kept: BTreeMap<String, u64>,
    /// Damaged rows, which could not be rewritten.
    pub damaged: u64,
    /// When the customer was erased.
    pub erased_at: Timestamp,
    /// When the task ended.
    pub completed_at: Option<Timestamp>,
}

impl Erasure {
    /// An erasure that begins.
    #[must_use]
    pub fn new(organization: OrganizationId, customer: CustomerId, now: Timestamp) -> Self {
        Self {
            object: "erasure".into(),
            organization_id: organization,
            customer_id: customer,
            status: ErasureStatus::Running,
            rewritten: BTreeMap::new(),
            kept: BTreeMap::new(),
            damaged: 0,
            erased_at: now,
            completed_at: None,
        }
    }

    /// The same on the list of another store, where nothing is rewritten yet.
    #[must_use]
    pub fn on_another_list(self) -> Self {
        Self::new(self.organization_id, self.customer_id, self.erased_at)
    }

    /// The key of the row.
    #[must_use]
    pub fn key(&self) -> Key {
        erased_key(self.organization_id, self.customer_id)
    }

    /// Reads the row of an erased customer.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the value is not that of the key.
    pub fn read(row: &Record) -> Result<Self, Error> {
        let erasure: Self = crate::value::read_json(&row.value).map_err(|error| Error::damaged(&row.key, &error))?;
        if erasure.key() != row.key {
            return Err(Error::damaged_row(&row.key, "it says that it is of another customer"));
        }
        Ok(erasure)
    }
}

/// Those of these rows of erased customers that the store lacks although it has their organizations.
///
/// # Errors
/// The store is not available.
pub async fn missing_in<'r>(store: &dyn Store, rows: &'r [Record]) -> Result<Vec<&'r Record>, StoreError> {
    let owner = |row: &Record| match Row::decode(&row.key) {
        Some(Row::Erased { organization, .. }) => Organization::key(SYSTEM, organization),
        _ => row.key.clone(),
    };
    let owners: BTreeSet<Key> = rows.iter().map(owner).collect();
    let owners: Vec<Key> = owners.into_iter().collect();
    let found = get_each(store, &owners).await?;
    let absent: BTreeSet<&Key> =
        owners.iter().zip(&found).filter(|(_, found)| matches!(found, Ok(None))).map(|(key, _)| key).collect();
    let rows: Vec<&Record> = rows.iter().filter(|row| !absent.contains(&owner(row))).collect();
    let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
    let present = get_each(store, &keys).await?;
    Ok(rows.into_iter().zip(present).filter(|(_, present)| matches!(present, Ok(None))).map(|(row, _)| row).collect())
}

/// The rows of the erased customers, of one organization or of all. Rows of other resources are not among those of an
/// organization; see [`is_of_customer`].
#[must_use]
pub fn rows_of(organization: Option<OrganizationId>) -> Span {
    let prefix = match organization {
        None => vec![Tag::Erased as u8],
        Some(id) => [&[Tag::Erased as u8], id.as_bytes().as_slice(), &[customer::SPEC.tag]].concat(),
    };
    Span::under(Key::from(prefix))
}

/// Whether the row is that of an erased customer.
#[must_use]
pub fn is_of_customer(key: &Key) -> bool {
    matches!(Row::decode(key), Some(Row::Erased { resource, .. }) if resource == customer::SPEC.tag)
}
