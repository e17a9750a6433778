//! The objects that a request refers to. The operation reads them, and the commit checks that they are unchanged.

use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    request::{body::Verb, page},
    resources::{
        organization::{self, Organization},
        spec_of,
    },
    rows::key,
    schema::{Fields, ResourceSpec},
    store::{Batch, Check, Key, Record, Store},
    value::OrganizationId,
};
use std::collections::HashMap;

/// The decimals that no currency exceeds.
const DECIMALS_OF_ANY_CURRENCY: u32 = 4;

/// Parses a body. If fields are invalid, the error lists them and all references to missing objects.
pub(super) async fn valid_fields(
    store: &dyn Store,
    organization: &Organization,
    body: &[u8],
    spec: &'static ResourceSpec,
    verb: Verb,
) -> Result<Fields, Error> {
    // The amounts of an organization are in its own currency, which its rules check.
    let digits = if spec.tag == organization::SPEC.tag {
        DECIMALS_OF_ANY_CURRENCY
    } else {
        organization.default_currency.digits()
    };
    let (fields, mut errors) = Fields::read(body, spec, verb, digits)?;
    if !errors.is_empty() {
        errors.append(find_references(store, organization.id, &fields, &mut Batch::default()).await?.1);
    }
    errors.or(fields)
}

/// Reads the objects that the body refers to, by field. Adds a check for each to the batch. An error lists all missing ones.
pub(crate) async fn references(
    store: &dyn Store,
    organization: OrganizationId,
    sent: &Fields,
    batch: &mut Batch,
) -> Result<HashMap<String, Record>, Error> {
    let (found, missing) = find_references(store, organization, sent, batch).await?;
    missing.or(found)
}

/// Reads the objects that the body refers to, by field, and returns an error for each missing one. Adds a check for each
/// existing one to the batch.
pub(super) async fn find_references(
    store: &dyn Store,
    organization: OrganizationId,
    sent: &Fields,
    batch: &mut Batch,
) -> Result<(HashMap<String, Record>, FieldErrors), Error> {
    let mut named = Vec::new();
    let mut errors = FieldErrors::default();
    for (field, object, id) in sent.references() {
        let spec = spec_of(object).ok_or_else(|| Error::Internal(format!("no resource is called {object}")))?;
        match page::id(id) {
            Some(id) => named.push((field, object, key::record(organization, spec, id))),
            None => errors.add(|| missing(&field, object)),
        }
    }
    let keys: Vec<Key> = named.iter().map(|(.., key)| key.clone()).collect();
    let mut found = HashMap::new();
    if !keys.is_empty() {
        for ((field, object, key), record) in named.into_iter().zip(store.get(&keys).await?) {
            match record {
                Some(record) => {
                    batch.checks.push(Check::Present(key));
                    found.insert(field, record);
                }
                None => errors.add(|| missing(&field, object)),
            }
        }
    }
    Ok((found, errors))
}

fn missing(field: &str, object: &str) -> FieldError {
    FieldError::new(field, FieldCode::ResourceMissing, &format!("names no {object} that exists"))
}
