//! Issues API keys.

use super::{context::Context, edge::PlatformEdge, kept, stored::Stored};
use crate::{
    error::Error,
    operations::{self, IssueApiKey, NewApiKey},
    resources::{
        api_key::{ApiKey, Scope},
        organization::{Organization, SYSTEM},
    },
    value::{OrganizationId, Timestamp},
};
use serde_json::json;

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

/// Issues a key of `organization`.
pub(super) async fn issue(
    context: &Context,
    organization: OrganizationId,
    (scope, name, expires_at): (Scope, &str, Option<Timestamp>),
) -> Result<IssuedKey, Error> {
    let edge: &dyn PlatformEdge = context.edge();
    let (new, system) = (NewApiKey::new(&edge.random_bytes()?), Organization::system());
    let body = json!({"organization_id": organization, "scope": scope, "name": name, "expires_at": expires_at});
    let body = body.to_string();
    let intent = IssueApiKey::new(&new, &system, body.as_bytes());
    let end = (kept::SUCCESS, &kept::write as operations::Render<'_>);
    let written = operations::write(context.store(), edge, SYSTEM, None, &intent, end).await?;
    Ok(IssuedKey { record: Stored::written(written)?, key: new.text })
}
