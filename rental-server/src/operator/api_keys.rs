//! Operators issue, rotate and revoke API keys. Only the response to the request that makes a key has the key; the
//! store has its hash.

use crate::{
    edge,
    endpoint::{self, BodySchema, Endpoint, Example, Request, post},
    guard::Operator,
    http::reply::Handled,
    objects::write::write,
    operator::{
        bodies::{self, MAX_OVERLAP_SECS},
        collections,
    },
    reference::parts,
    state::App,
};
use rental_core::{
    error::Error,
    operations::{self, Edge, Intent, IssueApiKey, NewApiKey, Preparing},
    resources::{
        Object, Resource,
        api_key::{self, ApiKey},
        organization::{Organization, SYSTEM},
        parse, to_json,
    },
    store::{Batch, Check, Store},
    value::{ApiKeyId, Timestamp},
};
use serde_json::json;

/// The resource's endpoints.
pub(super) fn resource() -> Vec<Endpoint> {
    let create = endpoint::create("/admin/v1/api_keys", &api_key::SPEC)
        .says("Only this response shows the key.")
        .replies("IssuedApiKey")
        .example(Example::ObjectWith("key", "\"rk_live_…\""))
        .defines("IssuedApiKey", parts::showing_once("ApiKey", "key", "The key."))
        .operator(|request| Box::pin(create(request)));
    vec![collections::list(&api_key::SPEC), create, collections::retrieve(&api_key::SPEC)]
}

/// Actions on a key.
pub(super) fn actions() -> Vec<Endpoint> {
    let overlap = "Seconds for which the old key keeps working. Default: `86400`.";
    vec![
        post("/admin/v1/api_keys/{id}/rotate")
            .about(&api_key::SPEC, "rotateApiKey", "Rotate API key")
            .says("Makes a new key with the same scope and shows it once. The old key works until the overlap ends.")
            .takes(BodySchema::Own(parts::rotation_body(MAX_OVERLAP_SECS, overlap)))
            .replies("IssuedApiKey")
            .example(Example::ObjectWith("key", "\"rk_live_…\""))
            .operator(|request| Box::pin(rotate(request))),
        post("/admin/v1/api_keys/{id}/revoke")
            .about(&api_key::SPEC, "revokeApiKey", "Revoke API key")
            .says("The next request with the key is refused.")
            .operator(|request| Box::pin(revoke(request))),
    ]
}

fn new_key() -> NewApiKey {
    NewApiKey::new(&edge::secret_bytes())
}

/// POST /admin/v1/api_keys.
async fn create(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, .. }, body) = request.read().await?;
    let (new, system) = (new_key(), Organization::system());
    let reply = write(app, &system, call, &body, &IssueApiKey::new(&new, &system, &body)).await?;
    Ok(reply.showing_once("key", &new.text))
}

/// Issues a key for `organization` without a request.
pub(crate) async fn issue(
    app: &App,
    organization: &Organization,
    scope: &str,
    name: &str,
    edge: &dyn Edge,
) -> Result<String, Error> {
    let (new, system) = (new_key(), Organization::system());
    let body = json!({"organization_id": organization.id, "scope": scope, "name": name}).to_string();
    let intent = IssueApiKey::new(&new, &system, body.as_bytes());
    let render = |_: &Error| (500, bytes::Bytes::new());
    operations::write(app.store(), edge, system.id, None, &intent, (200, &render)).await?;
    Ok(new.text)
}

/// POST /admin/v1/api_keys/{id}/revoke. A second call changes nothing.
async fn revoke(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    bodies::nothing(&body)?;
    let reply = write(app, &Organization::system(), call, &body, &Revoke { id }).await?;
    app.authenticator.forget_all();
    Ok(reply)
}

/// POST /admin/v1/api_keys/{id}/rotate: a new key with the same rights; the old one works until the overlap ends.
async fn rotate(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let seconds = bodies::overlap_secs(&body, MAX_OVERLAP_SECS)?;
    let new = new_key();
    let reply = write(app, &Organization::system(), call, &body, &Rotate { new: &new, id, seconds }).await?;
    app.authenticator.forget_all();
    Ok(reply.showing_once("key", &new.text))
}

struct Revoke<'a> {
    id: &'a str,
}

impl Intent for Revoke<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let system = Organization::system();
            let before = operations::get(store, system.id, &api_key::SPEC, self.id).await?;
            let now = edge.now();
            let rule = |key: &mut ApiKey| {
                if key.revoked_at.is_none() {
                    key.revoked_at = Some(now);
                    key.touch(now);
                }
                Ok(Vec::new())
            };
            operations::edit(store, edge, &system, before, rule).await
        })
    }
}

struct Rotate<'a> {
    new: &'a NewApiKey,
    id: &'a str,
    seconds: i64,
}

impl Rotate<'_> {
    /// The new key, and the old one with its new expiry.
    fn decide(&self, mut old: ApiKey, edge: &dyn Edge) -> Result<(ApiKey, ApiKey), Error> {
        let now = edge.now();
        if old.revoked_at.is_some() || old.expires_at.is_some_and(|expiry| expiry <= now) {
            return Err(Error::Conflict("This key no longer works, so it cannot be rotated. Create a new one.".into()));
        }
        let id = ApiKeyId::from_uuid(edge.new_id());
        let new = ApiKey {
            id,
            hint: Some(self.new.hint.clone()),
            last_used_at: None,
            created_at: now,
            updated_at: now,
            ..old.clone()
        };
        let end: Timestamp = now.plus_millis(self.seconds * 1000);
        old.expires_at = Some(old.expires_at.map_or(end, |expiry| expiry.min(end)));
        old.touch(now);
        Ok((new, old))
    }
}

impl Intent for Rotate<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let system = Organization::system();
            let before = operations::get(store, system.id, &api_key::SPEC, self.id).await?;
            let old: ApiKey = parse(&before.key, &before.value)?;
            // After the deletion of its organization a key has no successor.
            collections::organization_named(store, &old.organization_id.to_string()).await?;
            let (new, old) = self.decide(old, edge)?;
            let id = new.id;
            let mut prepared = operations::insert(store, edge, &system, new, Batch::default()).await?;
            prepared.batch.checks.push(Check::Present(Organization::key(SYSTEM, old.organization_id)));
            prepared.batch.replace(before.key, before.revision, to_json(&old)?);
            self.new.add_entry(&mut prepared.batch, id);
            Ok(prepared)
        })
    }
}
