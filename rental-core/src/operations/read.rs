//! Reads: one object, one page of a list, and the organization that owns an object.

use crate::{
    error::Error,
    request::page::{self, ListQuery},
    resources::{
        organization::{self, Organization, SYSTEM},
        parse,
    },
    rows::key,
    schema::ResourceSpec,
    store::{DamagedRow, Key, Pages, Record, Span, Store, all_sound, key_of},
    value::{Id, OrganizationId},
};
use bytes::Bytes;

/// Reads one object.
///
/// # Errors
/// [`Error::NotFound`] for an id that is unknown, malformed or of another organization.
pub async fn get(
    store: &dyn Store,
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    id: &str,
) -> Result<Record, Error> {
    let missing = Error::NotFound { object: spec.object };
    let Some(id) = page::id(id) else { return Err(missing) };
    // Not by `get_one`: its future costs the hottest path 2 % of its instructions.
    store.get(&[key::record(organization, spec, id)]).await?.pop().flatten().ok_or(missing)
}

/// Reads one page and returns the list response.
///
/// # Errors
/// The store is not available.
pub async fn list(
    store: &dyn Store,
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    query: &ListQuery,
) -> Result<Bytes, Error> {
    let records = match query.span(organization, spec) {
        Some(span) => all_sound(store.scan(&span, query.limit + 1).await?)?,
        None => Vec::new(),
    };
    page::envelope(&records, spec, query)
}

/// Most rows that [`list_sound`] reads for one page.
const MOST_ROWS: usize = 4096;

/// The same without damaged rows, which it adds to `damaged`. For lists of operators: they must see the other objects.
///
/// # Errors
/// The store is not available, or more than about 4,000 rows of the page are damaged.
pub async fn list_sound(
    store: &dyn Store,
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    query: &ListQuery,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Bytes, Error> {
    let Some(span) = query.span(organization, spec) else { return page::envelope(&[], spec, query) };
    let mut asked = query.limit + 1;
    loop {
        let rows = store.scan(&span, asked).await?;
        let is_end = rows.len() < asked;
        let (mut records, mut bad) = (Vec::new(), Vec::new());
        for row in rows {
            match row {
                Ok(record) => records.push(record),
                Err(row) => bad.push(row),
            }
        }
        if is_end || records.len() > query.limit {
            damaged.extend(bad.into_iter().map(|row| *row));
            return page::envelope(&records, spec, query);
        }
        if let (true, Some(row)) = (asked == MOST_ROWS, bad.pop()) {
            return Err(Error::Damaged(row));
        }
        asked = (asked * 2).min(MOST_ROWS);
    }
}

/// Organizations in one scan. One read looks for the object in all of them.
const CANDIDATES: usize = 10_000;

/// Finds the organization that owns an object, for an operator's request that contains only the object's id. One read finds
/// it among 10,000 organizations.
///
/// # Errors
/// [`Error::NotFound`] when no organization has the object.
pub async fn owner_of(store: &dyn Store, spec: &'static ResourceSpec, id: &str) -> Result<Organization, Error> {
    let missing = Error::NotFound { object: spec.object };
    let Some(id) = page::id(id) else { return Err(missing) };
    let prefix = key::records(SYSTEM, &organization::SPEC);
    let mut pages = Pages::of(store, Span::newest_first(&prefix), CANDIDATES);
    while let Some(page) = pages.next().await? {
        // The key of a damaged organization still has its id, so only requests for its own objects fail.
        let keys: Vec<Key> =
            page.iter().filter_map(|row| Some(key::record(Id::from_uuid(key_of(row).id()?), spec, id))).collect();
        if let Some(at) = store.get(&keys).await?.iter().position(Option::is_some) {
            let owner = page.into_iter().nth(at).ok_or(missing)?.map_err(Error::Damaged)?;
            return parse(&owner.key, &owner.value);
        }
    }
    Err(missing)
}
