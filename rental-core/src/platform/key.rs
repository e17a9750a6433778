//! Issues and recognizes API keys.

use super::{context::Context, edge::PlatformEdge, kept, stored::Stored};
use crate::{
    error::{Error, KeyProblem},
    operations::{
        self, Create, Intent, Preparing,
        api_keys::{self, Principal},
        edge::Edge,
    },
    resources::{
        Resource,
        api_key::{ApiKey, Scope},
        of,
        organization::{Organization, SYSTEM},
        parse,
    },
    rows::key,
    store::Store,
    value::{FieldValue, Id, OrganizationId, Timestamp},
};
use serde_json::json;
use std::sync::Arc;

/// A new API key.
#[derive(Clone)]
pub struct IssuedKey {
    /// The record of the key, without the key itself.
    pub record: Stored<ApiKey>,
    /// The text of the key. Only its hash is stored, so nobody can read it again.
    pub key: String,
}

impl std::fmt::Debug for IssuedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedKey").field("record", &self.record).field("key", &"[secret]").finish()
    }
}

/// The write of a new API key and of the row that finds it.
struct Issue<'a> {
    text: &'a str,
    hash: [u8; 32],
    body: &'a [u8],
}

impl Intent for Issue<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (collection, system) = (of::<ApiKey>().create().done(), Organization::system());
            let given = [("hint", FieldValue::Text(api_keys::hint(self.text)))];
            let create = Create { collection: &collection, organization: &system, body: self.body, given: &given };
            let mut prepared = create.prepare(store, edge).await?;
            let record: ApiKey =
                serde_json::from_slice(&prepared.body).map_err(|error| Error::Internal(error.to_string()))?;
            prepared.batch.insert(key::access(&self.hash), api_keys::entry(&self.hash, record.id));
            Ok(prepared)
        })
    }
}

/// Issues a key of `organization`.
pub(super) async fn issue(
    context: &Context,
    organization: OrganizationId,
    (scope, name, expires_at): (Scope, &str, Option<Timestamp>),
) -> Result<IssuedKey, Error> {
    let edge: &dyn PlatformEdge = context.edge();
    let text = api_keys::key_text(&edge.random_bytes()?);
    let hash = api_keys::key_hash(&text).ok_or_else(|| Error::Internal("a new key has no hash".into()))?;
    let body = json!({"organization_id": organization, "scope": scope, "name": name, "expires_at": expires_at});
    let body = body.to_string();
    let intent = Issue { text: &text, hash, body: body.as_bytes() };
    let end = (kept::SUCCESS, &kept::write as operations::Render<'_>);
    let written = operations::write(context.store(), edge, SYSTEM, None, &intent, end).await?;
    let record = Stored::written(&written.body, written.revision.unwrap_or(1), false)?;
    Ok(IssuedKey { record, key: text })
}

/// Finds the record of a presented key and its organization, even when the key is revoked or expired.
pub(super) async fn principal(store: &dyn Store, presented: &str) -> Result<Principal, Error> {
    let unknown = || Error::Unauthenticated(KeyProblem::Invalid);
    let hash = api_keys::key_hash(presented).ok_or_else(unknown)?;
    let entry = store.get(&[key::access(&hash)]).await?.pop().flatten().ok_or_else(unknown)?;
    let id = api_keys::open_entry(&entry.value, &hash).ok_or_else(unknown)?;
    let key: ApiKey = load(store, id).await?.ok_or_else(unknown)?;
    let organization: Organization = load(store, key.organization_id).await?.ok_or_else(unknown)?;
    Ok(Principal { key, organization: Arc::new(organization) })
}

/// Reads one of the operator's own objects.
async fn load<T: Resource>(store: &dyn Store, id: Id<T::Kind>) -> Result<Option<T>, Error> {
    let record = store.get(&[T::key(SYSTEM, id)]).await?.pop().flatten();
    record.map(|record| parse(&record.key, &record.value)).transpose()
}
