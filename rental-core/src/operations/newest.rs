//! When the newest object of a store was made: a server whose clock was set back continues from there.

use super::{
    edge::{created_at, id_time},
    idempotency::KEPT_MILLIS,
};
use crate::{
    error::Error,
    resources::{
        api_key, audit_entry, event,
        organization::{self, SYSTEM},
        webhook_endpoint,
    },
    rows::key,
    schema::ResourceSpec,
    store::{Order, Record, Span, Store},
    value::{OrganizationId, Timestamp},
};
use serde::Deserialize;

/// Organizations, the newest ones, whose events are looked at.
const MOST_ORGANIZATIONS: usize = 256;

/// The newest object that a store shows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Newest {
    /// The time in the newest id.
    pub id_time: Timestamp,
    /// When the object was made, by the clock of the server that made it: earlier than `id_time` after the clock was set back.
    pub made_at: Timestamp,
}

/// The newest object that the store shows, `None` for a store without objects.
///
/// A bounded number of reads, each of one row: the newest of the operator's objects, the newest event of each of 256
/// organizations, and the newest idempotency key of all. A write without a key in an older organization is not seen.
///
/// # Errors
/// The store is not available.
pub async fn newest(store: &dyn Store) -> Result<Option<Newest>, Error> {
    let mut newest = None;
    for spec in [&organization::SPEC, &api_key::SPEC, &webhook_endpoint::SPEC, &audit_entry::SPEC] {
        newest = later(newest, newest_of(store, SYSTEM, spec).await?);
    }
    let organizations = Span::newest_first(&key::records(SYSTEM, &organization::SPEC));
    for row in store.scan(&organizations, MOST_ORGANIZATIONS).await?.into_iter().flatten() {
        if let Some(id) = row.key.id() {
            newest = later(newest, newest_of(store, OrganizationId::from_uuid(id), &event::SPEC).await?);
        }
    }
    let expiries = Span { order: Order::Descending, ..key::idempotency_expiries_until(u64::MAX) };
    let expiry = store.scan(&expiries, 1).await?.into_iter().flatten().next();
    let written = expiry
        .and_then(|row| i64::try_from(key::idempotency_expiry_millis(&row.key)?).ok())
        .map(|millis| Timestamp::from_millis(millis.saturating_sub(KEPT_MILLIS)));
    Ok(newest.map(|newest| Newest { id_time: written.map_or(newest.id_time, |at| at.max(newest.id_time)), ..newest }))
}

/// The one with the newer id. Of two ids of one millisecond, the second was seen later.
fn later(one: Option<Newest>, other: Option<Newest>) -> Option<Newest> {
    one.into_iter().chain(other).max_by_key(|newest| newest.id_time)
}

async fn newest_of(
    store: &dyn Store,
    organization: OrganizationId,
    spec: &ResourceSpec,
) -> Result<Option<Newest>, Error> {
    let found = store.scan(&Span::newest_first(&key::records(organization, spec)), 1).await?;
    let Some(record) = found.into_iter().flatten().next() else { return Ok(None) };
    let id = record.key.id().filter(|id| id.get_version_num() == 7);
    Ok(id.map(|id| Newest { id_time: id_time(id), made_at: made_at(&record).unwrap_or_default() }))
}

/// When the object of a record was made. It is the time in its id, unless ids were ahead of the clock.
pub(crate) fn made_at(record: &Record) -> Option<Timestamp> {
    /// An event has whole seconds.
    #[derive(Deserialize)]
    struct Dated {
        created_at: Option<Timestamp>,
        created: Option<i64>,
    }
    let dated: Dated = crate::value::read_json(&record.value).ok()?;
    let date = dated.created_at.or_else(|| Some(Timestamp::from_millis(dated.created?.saturating_mul(1000))))?;
    Some(created_at(record.key.id()?, date))
}
