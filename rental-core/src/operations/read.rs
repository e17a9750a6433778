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
    store::{DamagedRow, Key, Pages, Record, Span, Store, StoreError, all_sound, key_of},
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

/// One page of a list.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Listed {
    /// The list response.
    pub body: Bytes,
    /// The damaged rows among the objects of the page. The response leaves them out.
    pub damaged: Vec<DamagedRow>,
}

/// Reads one page of a list. A damaged row harms only itself: the page has the other objects, and its cursor leads on.
///
/// # Errors
/// The store is not available, or more than about 4,000 rows of the page are damaged.
pub async fn list(
    store: &dyn Store,
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    query: &ListQuery,
) -> Result<Listed, Error> {
    let (records, damaged) = match query.span(organization, spec) {
        Some(span) => sound_page(store, &span, query.limit).await?,
        None => Default::default(),
    };
    Ok(Listed { body: page::envelope(&records, spec, query)?, damaged })
}

/// Most rows that a page reads when some of them are damaged.
const MOST_ROWS: usize = 4096;

/// At most `limit + 1` sound records of a span, and the damaged rows among the first `limit` of them.
///
/// # Errors
/// As [`list`].
pub async fn sound_page(store: &dyn Store, span: &Span, limit: usize) -> Result<(Vec<Record>, Vec<DamagedRow>), Error> {
    match all_sound(store.scan(span, limit + 1).await?) {
        // Boxed, so that the future of a page without damage stays small.
        Err(StoreError::Damaged(_)) => Box::pin(page_without_damaged_rows(store, span, limit)).await,
        records => Ok((records?, Vec::new())),
    }
}

async fn page_without_damaged_rows(
    store: &dyn Store,
    span: &Span,
    limit: usize,
) -> Result<(Vec<Record>, Vec<DamagedRow>), Error> {
    let mut asked = limit + 1;
    loop {
        asked = (asked * 2).min(MOST_ROWS);
        let rows = store.scan(span, asked).await?;
        let is_end = rows.len() < asked;
        // Those behind the last object of the page are rows of the next page.
        let (mut records, mut damaged, mut behind) = (Vec::new(), Vec::new(), None);
        for row in rows {
            match row {
                Ok(record) => records.push(record),
                Err(row) if records.len() >= limit => behind = Some(row),
                Err(row) => damaged.push(*row),
            }
            if records.len() > limit {
                break;
            }
        }
        if is_end || records.len() > limit {
            return Ok((records, damaged));
        }
        if asked == MOST_ROWS
            && let Some(row) = behind.or_else(|| damaged.pop().map(Box::new))
        {
            return Err(Error::Damaged(row));
        }
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
