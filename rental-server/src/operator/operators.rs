//! Owners create operators, rotate their tokens and revoke them.

use crate::{
    edge,
    endpoint::{self, BodySchema, Endpoint, Example, Request, post},
    guard::Owner,
    http::reply::Handled,
    objects::{self, write::write},
    operator::{
        bodies::{self, MAX_OVERLAP_SECS},
        collections,
    },
    reference::parts,
    state::App,
};
use rental_core::{
    error::Error,
    operations::{self, Create, Edge, Intent, Prepared, Preparing, api_keys},
    resources::{
        Collection, Object,
        operator::{Operator, SPEC},
        organization::{Organization, SYSTEM},
    },
    rows::key,
    store::{Batch, Store},
    value::{FieldValue, OperatorId},
};
use serde_json::json;

static OPERATORS: &Collection = collections::offered(&SPEC);

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let (all, one) = ("/admin/v1/operators", "/admin/v1/operators/{id}");
    let overlap = "Seconds for which the old token keeps working. Default: `86400`.";
    vec![
        endpoint::list(all, &SPEC)
            .owner(|request| Box::pin(objects::list(request.app, SYSTEM, &SPEC, request.call))),
        endpoint::create(all, &SPEC)
            .says("Only this response shows the token.")
            .replies("IssuedOperator")
            .example(Example::Object)
            .defines("IssuedOperator", parts::showing_once("Operator", "token", "The token."))
            .owner(|request| Box::pin(create(request))),
        endpoint::retrieve(one, &SPEC)
            .owner(|request| Box::pin(objects::get(request.app.store(), SYSTEM, &SPEC, request.id, request.call))),
        post("/admin/v1/operators/{id}/rotate")
            .about(&SPEC, "rotateOperator", "Rotate operator's token")
            .says("Makes a new token of the same operator and shows it once. The token before it works until the overlap ends, an earlier one not any more.")
            .takes(BodySchema::Own(parts::rotation_body(MAX_OVERLAP_SECS, overlap)))
            .replies("IssuedOperator")
            .example(Example::Object)
            .owner(|request| Box::pin(rotate(request))),
        post("/admin/v1/operators/{id}/revoke")
            .about(&SPEC, "revokeOperator", "Revoke operator")
            .says("The next request with a token of the operator is refused, on every server.")
            .owner(|request| Box::pin(revoke(request))),
    ]
}

/// A new token.
struct Fresh {
    text: String,
    hash: [u8; 32],
    given: [(&'static str, FieldValue); 2],
}

impl Fresh {
    fn new() -> Self {
        loop {
            let text = api_keys::operator_token(&edge::secret_bytes());
            // Always true: `operator_token` makes texts that have a hash.
            if let Some(hash) = api_keys::operator_hash(&text) {
                let given = [("hint", FieldValue::Text(api_keys::hint(&text))), ("rotations", FieldValue::Integer(0))];
                return Self { text, hash, given };
            }
        }
    }

    /// Adds the row that finds the operator by this token.
    fn add_entry(&self, batch: &mut Batch, id: OperatorId, rotations: u32) {
        batch.insert(key::access(&self.hash), api_keys::operator_entry(&self.hash, id, rotations));
    }
}

/// POST /admin/v1/operators.
async fn create(request: Request<'_, Owner>) -> Handled {
    let (Request { app, call, .. }, body) = request.read().await?;
    let (fresh, system) = (Fresh::new(), Organization::system());
    let reply = write(app, &system, call, &body, &Issue::new(&fresh, &system, &body)).await?;
    Ok(reply.showing_once("token", &fresh.text))
}

/// Creates an operator without a request. Nobody gets its token.
pub(crate) async fn issue(app: &App, role: &str, name: &str, edge: &dyn Edge) -> Result<(), Error> {
    let (fresh, system) = (Fresh::new(), Organization::system());
    let body = json!({"name": name, "role": role}).to_string();
    let intent = Issue::new(&fresh, &system, body.as_bytes());
    let render = |_: &Error| (500, bytes::Bytes::new());
    operations::write(app.store(), edge, SYSTEM, None, &intent, (200, &render)).await.map(drop)
}

/// POST /admin/v1/operators/{id}/rotate.
async fn rotate(request: Request<'_, Owner>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let seconds = bodies::overlap_secs(&body, MAX_OVERLAP_SECS)?;
    let fresh = Fresh::new();
    let reply = write(app, &Organization::system(), call, &body, &Rotate { fresh: &fresh, id, seconds }).await?;
    Ok(reply.showing_once("token", &fresh.text))
}

/// POST /admin/v1/operators/{id}/revoke. A second call changes nothing.
async fn revoke(request: Request<'_, Owner>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    bodies::nothing(&body)?;
    write(app, &Organization::system(), call, &body, &Revoke { id }).await
}

struct Issue<'a> {
    fresh: &'a Fresh,
    create: Create<'a>,
}

impl<'a> Issue<'a> {
    fn new(fresh: &'a Fresh, system: &'a Organization, body: &'a [u8]) -> Self {
        let create = Create { collection: OPERATORS, organization: system, body: body.into(), given: &fresh.given };
        Self { fresh, create }
    }
}

impl Intent for Issue<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let mut prepared = self.create.prepare(store, edge).await?;
            let (id, rotations) = rotation(&prepared)?;
            self.fresh.add_entry(&mut prepared.batch, id, rotations);
            Ok(prepared)
        })
    }
}

/// The operator that the write is about, and how often its token was rotated.
fn rotation(prepared: &Prepared) -> Result<(OperatorId, u32), Error> {
    prepared.object::<Operator>().map(|operator| (operator.id, operator.rotations))
}

struct Rotate<'a> {
    fresh: &'a Fresh,
    id: &'a str,
    seconds: i64,
}

impl Intent for Rotate<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let system = Organization::system();
            let before = operations::get(store, system.id, &SPEC, self.id).await?;
            let now = edge.now();
            let rule = |operator: &mut Operator| {
                if operator.has_ended(now) {
                    let why =
                        "This operator was revoked or has expired, so its token cannot be rotated. Create a new one.";
                    return Err(Error::Conflict(why.into()));
                }
                operator.rotate(api_keys::hint(&self.fresh.text), now.plus_millis(self.seconds * 1000), now);
                Ok(Vec::new())
            };
            let mut prepared = operations::edit(store, edge, &system, before, rule).await?;
            let (id, rotations) = rotation(&prepared)?;
            self.fresh.add_entry(&mut prepared.batch, id, rotations);
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
            let before = operations::get(store, system.id, &SPEC, self.id).await?;
            let now = edge.now();
            let rule = |operator: &mut Operator| {
                if operator.revoked_at.is_none() {
                    operator.revoked_at = Some(now);
                    operator.touch(now);
                }
                Ok(Vec::new())
            };
            operations::edit(store, edge, &system, before, rule).await
        })
    }
}
