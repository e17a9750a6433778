//! Counters: consecutive numbers for the objects of an organization.

use crate::{
    error::Error,
    rows::key,
    store::{Batch, Store, get_one},
    value::OrganizationId,
};
use bytes::Bytes;

/// Takes the next number of a counter. Concurrent writes cannot get the same number, and no number is skipped.
pub(crate) async fn next_number(
    store: &dyn Store,
    organization: OrganizationId,
    name: &str,
    batch: &mut Batch,
) -> Result<u64, Error> {
    let place = key::counter(organization, name);
    // The revision of a record counts its writes, so a counter needs no value.
    let last = get_one(store, &place).await?.map(|record| record.revision);
    match last {
        Some(revision) => batch.replace(place, revision, Bytes::new()),
        None => batch.insert(place, Bytes::new()),
    }
    Ok(last.unwrap_or(0) + 1)
}
