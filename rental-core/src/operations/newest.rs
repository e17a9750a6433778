//! When the newest object of a store was made: a server whose clock was set back continues from there.

use crate::{
    error::Error,
    operations::idempotency::KEPT_MILLIS,
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

/// Organizations, the newest ones, whose events are looked at.
const MOST_ORGANIZATIONS: usize = 256;

/// The time of the newest id that the store shows, `None` for a store without objects.
///
/// A bounded number of reads, each of one row: the newest of the operator's objects, the newest event of each of 256
/// organizations, and the newest idempotency key of all. A write without a key in an older organization is not seen.
///
/// # Errors
/// The store is not available.
pub async fn newest_id_time(store: &dyn Store) -> Result<Option<Timestamp>, Error> {
    let mut newest = None;
    for spec in [&organization::SPEC, &api_key::SPEC, &webhook_endpoint::SPEC, &audit_entry::SPEC] {
        newest = newest.max(newest_of(store, SYSTEM, spec).await?);
    }
    let organizations = Span::newest_first(&key::records(SYSTEM, &organization::SPEC));
    for row in store.scan(&organizations, MOST_ORGANIZATIONS).await?.into_iter().flatten() {
        if let Some(id) = row.key.id() {
            newest = newest.max(newest_of(store, OrganizationId::from_uuid(id), &event::SPEC).await?);
        }
    }
    let expiries = Span { order: Order::Descending, ..key::idempotency_expiries_until(u64::MAX) };
    let expiry = store.scan(&expiries, 1).await?.into_iter().flatten().next();
    let kept = u64::try_from(KEPT_MILLIS).unwrap_or_default();
    let written =
        expiry.and_then(|row| key::idempotency_expiry_millis(&row.key)).map(|millis| millis.saturating_sub(kept));
    Ok(newest.max(written).map(|millis| Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))))
}

/// Milliseconds of the newest record's id.
async fn newest_of(store: &dyn Store, organization: OrganizationId, spec: &ResourceSpec) -> Result<Option<u64>, Error> {
    let found = store.scan(&Span::newest_first(&key::records(organization, spec)), 1).await?;
    Ok(found.into_iter().flatten().next().and_then(|row| made_at(&row)))
}

fn made_at(record: &Record) -> Option<u64> {
    let id = record.key.id().filter(|id| id.get_version_num() == 7)?;
    u64::try_from(id.as_u128() >> 80).ok()
}
