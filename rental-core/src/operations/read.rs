//! The reads: one object, one page of a list, and the organization that owns an object.

use crate::{
    error::Error,
    request::page::{self, ListQuery},
    resources::{
        organization::{self, Organization, SYSTEM},
        parse,
    },
    rows::key,
    schema::ResourceSpec,
    store::{Key, Record, Span, Store, all_sound, key_of},
    value::{Id, OrganizationId},
};
use bytes::Bytes;

/// Reads one object.
///
/// # Errors
/// [`Error::NotFound`] for an unknown id, a malformed id and an id of another organization alike.
pub async fn get(
    store: &dyn Store,
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    id: &str,
) -> Result<Record, Error> {
    let missing = Error::NotFound { object: spec.object };
    let Some(id) = page::id(id) else { return Err(missing) };
    let keys = [key::record(organization, spec, id)];
    store.get(&keys).await?.pop().flatten().ok_or(missing)
}

/// Reads one page, as the list envelope.
///
/// # Errors
/// The store cannot serve.
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

/// Organizations that are read at a time; their objects are looked up together.
const CANDIDATES: usize = 10_000;

/// The organization that owns an object, for an operator's request that names the object's id alone. All organizations
/// are candidates; one batched read finds the one that has the object, or one for each 10,000 organizations.
///
/// # Errors
/// [`Error::NotFound`] when no organization has it.
pub async fn owner_of(store: &dyn Store, spec: &'static ResourceSpec, id: &str) -> Result<Organization, Error> {
    let missing = Error::NotFound { object: spec.object };
    let Some(id) = page::id(id) else { return Err(missing) };
    let prefix = key::records(SYSTEM, &organization::SPEC);
    let mut span = Span::newest_first(&prefix);
    loop {
        let page = store.scan(&span, CANDIDATES).await?;
        // The key of a damaged organization still has its id, so only requests for its own objects fail.
        let keys: Vec<Key> =
            page.iter().filter_map(|row| Some(key::record(Id::from_uuid(key_of(row).id()?), spec, id))).collect();
        if let Some(at) = store.get(&keys).await?.iter().position(Option::is_some) {
            let owner = page.into_iter().nth(at).ok_or(missing)?.map_err(Error::Damaged)?;
            return parse(&owner.key, &owner.value);
        }
        match page.last() {
            Some(last) if page.len() == CANDIDATES => span.to = key_of(last).clone(),
            _ => return Err(missing),
        }
    }
}
