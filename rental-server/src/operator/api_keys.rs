//! The operator issues, rotates and revokes API keys. The key itself leaves here once and is stored nowhere.

use crate::{
    edge,
    endpoint::{self, BodySchema, Endpoint, Example, Operator, Request, post},
    http::reply::Handled,
    objects::write::write,
    operator::collections,
    reference::parts,
    state::App,
};
use rental_core::{
    error::{Error, FieldCode},
    operations::{self, Create, Edge, Intent, Prepared, Preparing, access},
    resources::{
        Collection, Resource,
        api_key::{self, ApiKey},
        effects,
        organization::Organization,
        parse,
    },
    rows::key,
    store::{Batch, Prior, Store},
    value::{FieldValue, Text, Timestamp},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The longest overlap of a rotation, and the one that applies when none is given, in seconds.
const MAX_OVERLAP_SECS: i64 = 30 * 24 * 3600;
const DEFAULT_OVERLAP_SECS: i64 = 24 * 3600;

static API_KEYS: Collection = collections::offered(&api_key::SPEC);

/// The resource's endpoints.
pub(super) fn resource() -> Vec<Endpoint> {
    let create = endpoint::create("/admin/v1/api_keys", &api_key::SPEC)
        .says("The answer is the only one that shows the key.")
        .replies("NewApiKey")
        .example(Example::ObjectWithKey)
        .defines("NewApiKey", schema())
        .operator(|request| Box::pin(create(request)));
    vec![collections::list(&API_KEYS), create, collections::retrieve(&API_KEYS)]
}

/// What else can be done to a key.
pub(super) fn actions() -> Vec<Endpoint> {
    let overlap = parts::overlap(MAX_OVERLAP_SECS, "Seconds for which the old key keeps working. Default: `86400`.");
    vec![
        post("/admin/v1/api_keys/{id}/rotate")
            .about(&api_key::SPEC, "rotateApiKey", "Rotate API key")
            .says("Makes a new key with the same rights and shows it once; the old one works until the overlap ends.")
            .takes(BodySchema::Own(parts::action_body(overlap, &[], json!({"overlap_seconds": 3600}))))
            .replies("NewApiKey")
            .example(Example::ObjectWithKey)
            .operator(|request| Box::pin(rotate(request))),
        post("/admin/v1/api_keys/{id}/revoke")
            .about(&api_key::SPEC, "revokeApiKey", "Revoke API key")
            .says("The key is refused from the next request on.")
            .operator(|request| Box::pin(revoke(request))),
    ]
}

fn schema() -> Value {
    let key =
        json!({"type": "string", "description": "The key. It is shown here and never again; absent on a replay."});
    json!({"allOf": [{"$ref": "#/components/schemas/ApiKey"}, {"type": "object", "properties": {"key": key}}]})
}

/// A key that was just made.
struct Fresh {
    text: String,
    hash: [u8; 32],
}

impl Fresh {
    fn new() -> Self {
        loop {
            let text = access::key_text(&edge::secret_bytes());
            // Always: the text was made to have a hash.
            if let Some(hash) = access::key_hash(&text) {
                return Self { text, hash };
            }
        }
    }

    /// Its beginning and end, to tell keys apart.
    fn hint(&self) -> String {
        format!("{}…{}", access::KEY_PREFIX, &self.text[self.text.len() - 4..])
    }
}

/// POST /admin/v1/api_keys.
async fn create(mut request: Request<'_, Operator>) -> Handled {
    let body = &request.read().await?[..];
    let Request { app, call, .. } = request;
    let fresh = Fresh::new();
    let intent = Issue { fresh: &fresh, body };
    let reply = write(app, &Organization::system(), call, body, &intent).await?;
    Ok(reply.showing_once("key", &fresh.text))
}

/// A new key for `organization`, without a request.
pub(crate) async fn issue(app: &App, organization: &Organization, scope: &str, name: &str) -> Result<String, Error> {
    issue_at(app, organization, scope, name, &edge::Moment::new()).await
}

/// The same at a moment, and with an id, of one's own.
pub(crate) async fn issue_at(
    app: &App,
    organization: &Organization,
    scope: &str,
    name: &str,
    edge: &dyn Edge,
) -> Result<String, Error> {
    let fresh = Fresh::new();
    let body = json!({"organization_id": organization.id, "scope": scope, "name": name}).to_string();
    let intent = Issue { fresh: &fresh, body: body.as_bytes() };
    let render = |_: &Error| (500, bytes::Bytes::new());
    operations::write(app.store(), edge, Organization::system().id, None, &intent, (200, &render)).await?;
    Ok(fresh.text)
}

/// POST /admin/v1/api_keys/{id}/revoke. Revoking twice is the same as once.
async fn revoke(mut request: Request<'_, Operator>) -> Handled {
    let body = &request.read().await?[..];
    let Request { app, call, id, .. } = request;
    if !body.is_empty() {
        serde_json::from_slice::<Nothing>(body)
            .map_err(|error| Error::Malformed(format!("The body must be empty or {{}}: {error}.")))?;
    }
    let reply = write(app, &Organization::system(), call, body, &Revoke { id }).await?;
    app.gate.forget();
    Ok(reply)
}

/// POST /admin/v1/api_keys/{id}/rotate: a new key with the same rights; the old one works until the overlap ends.
async fn rotate(mut request: Request<'_, Operator>) -> Handled {
    let body = &request.read().await?[..];
    let Request { app, call, id, .. } = request;
    let asked: Rotation = if body.is_empty() { Rotation::default() } else { rotation(body)? };
    let seconds = asked.overlap_seconds.unwrap_or(DEFAULT_OVERLAP_SECS);
    if !(0..=MAX_OVERLAP_SECS).contains(&seconds) {
        return Err(
            Error::field("overlap_seconds", FieldCode::Invalid, "must be a whole number from 0 to 2592000").into()
        );
    }
    let fresh = Fresh::new();
    let reply = write(app, &Organization::system(), call, body, &Rotate { fresh: &fresh, id, seconds }).await?;
    app.gate.forget();
    Ok(reply.showing_once("key", &fresh.text))
}

fn rotation(body: &[u8]) -> Result<Rotation, Error> {
    serde_json::from_slice(body)
        .map_err(|error| Error::Malformed(format!("The body takes `overlap_seconds` alone: {error}.")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rotation {
    overlap_seconds: Option<i64>,
}

struct Issue<'a> {
    fresh: &'a Fresh,
    body: &'a [u8],
}

impl Intent for Issue<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let given = [("hint", FieldValue::Text(Text::fit(&self.fresh.hint(), 255)))];
            let (system, body) = (Organization::system(), self.body);
            let create = Create { collection: &API_KEYS, organization: &system, body, given: &given };
            let mut prepared = create.prepare(store, edge).await?;
            let made: ApiKey =
                serde_json::from_slice(&prepared.body).map_err(|error| Error::Internal(error.to_string()))?;
            let entry = access::entry(&self.fresh.hash, made.id);
            prepared.batch.insert(key::access(&self.fresh.hash), entry);
            Ok(prepared)
        })
    }
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
    fresh: &'a Fresh,
    id: &'a str,
    seconds: i64,
}

impl Rotate<'_> {
    /// The new key, and the old one with its end.
    fn decide(&self, mut old: ApiKey, edge: &dyn Edge) -> Result<(ApiKey, ApiKey), Error> {
        let now = edge.now();
        if old.revoked_at.is_some() || old.expires_at.is_some_and(|expiry| expiry <= now) {
            return Err(Error::Conflict("This key no longer works, so it cannot be rotated. Create a new one.".into()));
        }
        let id = edge.new_id();
        let new = ApiKey {
            id,
            hint: Some(Text::fit(&self.fresh.hint(), 255)),
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
            let (new, old) = self.decide(parse(&before.key, &before.value)?, edge)?;
            let bytes = |key: &ApiKey| serde_json::to_vec(key).map_err(|error| Error::Internal(error.to_string()));
            let body: bytes::Bytes = bytes(&new)?.into();
            let mut batch = Batch::default();
            batch.replace(before.key, before.revision, bytes(&old)?.into());
            batch.insert(key::record(system.id, &api_key::SPEC, new.id), body.clone());
            for entry in effects::index_keys(system.id, &new) {
                batch.mark(entry, Prior::New);
            }
            let place = key::access(&self.fresh.hash);
            batch.insert(place, access::entry(&self.fresh.hash, new.id));
            Ok(Prepared { batch, body, revision: 1 })
        })
    }
}
