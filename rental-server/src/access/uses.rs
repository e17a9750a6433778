//! When credentials were last used: noted in memory, to the minute, and written into their records now and then.

use crate::damaged_rows::DamagedRows;
use rental_core::{
    error::Error,
    resources::{Resource, api_key::ApiKey, operator::Operator, organization::SYSTEM, parse, to_json},
    store::{Batch, Commit, Store},
    value::{Id, Timestamp},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Milliseconds of a minute.
pub(super) const MINUTE: u64 = 60_000;

/// A record that says when its key or token was last used.
pub(crate) trait Used: Resource + DeserializeOwned + Serialize {
    fn last_used_at(&mut self) -> &mut Option<Timestamp>;
}

impl Used for ApiKey {
    fn last_used_at(&mut self) -> &mut Option<Timestamp> {
        &mut self.last_used_at
    }
}

impl Used for Operator {
    fn last_used_at(&mut self) -> &mut Option<Timestamp> {
        &mut self.last_used_at
    }
}

/// The records used since the last flush, with the minute since 1970.
pub(crate) struct Uses<T: Used>(Mutex<HashMap<Id<T::Kind>, u64>>);

impl<T: Used> Default for Uses<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Used> Uses<T> {
    pub(super) fn note(&self, id: Id<T::Kind>, minute: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, minute);
    }

    /// Writes the minutes of last use into the records: one write for each record and minute.
    pub(crate) async fn flush(&self, store: &dyn Store, damaged: &DamagedRows) -> Result<(), Error> {
        let used = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (id, minute) in used {
            damaged.skip(write_use::<T>(store, id, minute).await)?;
        }
        Ok(())
    }
}

async fn write_use<T: Used>(store: &dyn Store, id: Id<T::Kind>, minute: u64) -> Result<(), Error> {
    let keys = [T::key(SYSTEM, id)];
    // Others rarely change such a record: a second try is enough.
    for _ in 0..3 {
        let Some(record) = store.get(&keys).await?.pop().flatten() else { break };
        let mut object: T = parse(&record.key, &record.value)?;
        let used_at = Some(Timestamp::from_millis(i64::try_from(minute * MINUTE).unwrap_or(i64::MAX)));
        // Another server may have noted a later use.
        if *object.last_used_at() >= used_at {
            break;
        }
        *object.last_used_at() = used_at;
        let mut batch = Batch::default();
        batch.replace(record.key, record.revision, to_json(&object)?);
        if store.commit(batch).await? == Commit::Applied {
            break;
        }
    }
    Ok(())
}
