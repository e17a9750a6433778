//! Owners create operators, rotate their tokens and revoke them.

use crate::{
    endpoint::{self, BodySchema, Endpoint, Example, Request, post},
    guard::Owner,
    http::reply::Handled,
    objects::{self, write::write},
    operator::{
        bodies, collections,
        credential::{Fresh, MAX_OVERLAP_SECS},
    },
    reference::parts,
    state::App,
};
use rental_core::{
    error::Error,
    operations::{self, Create, Edge, Intent, Preparing, api_keys},
    resources::{
        Collection, Object,
        operator::{Operator, SPEC},
        organization::{Organization, SYSTEM},
    },
    rows::key,
    store::Store,
    value::FieldValue,
};
use serde_json::json;

static OPERATORS: Collection = collections::offered(&SPEC);

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let (all, one) = ("/admin/v1/operators", "/admin/v1/operators/{id}");
    let overlap = "Seconds for which the old token keeps working. Default: `86400`.";
    vec![
        endpoint::list(all, &SPEC)
            .owner(|request| Box::pin(objects::list(request.app.store(), SYSTEM, &SPEC, request.call))),
        endpoint::create(all, &SPEC)
            .says("Only this response shows the token.")
            .replies("NewOperator")
            .example(Example::Object)
            .defines("NewOperator", parts::showing_once("Operator", "token", "The token."))
            .owner(|request| Box::pin(create(request))),
        endpoint::retrieve(one, &SPEC)
            .owner(|request| Box::pin(objects::get(request.app.store(), SYSTEM, &SPEC, request.id, request.call))),
        post("/admin/v1/operators/{id}/rotate")
            .about(&SPEC, "rotateOperator", "Rotate operator's token")
            .says("Makes a new token of the same operator and shows it once. The token before it works until the overlap ends, an earlier one not any more.")
            .takes(BodySchema::Own(parts::rotation_body(MAX_OVERLAP_SECS, overlap)))
            .replies("NewOperator")
            .example(Example::Object)
            .owner(|request| Box::pin(rotate(request))),
        post("/admin/v1/operators/{id}/revoke")
            .about(&SPEC, "revokeOperator", "Revoke operator")
            .says("The next request with a token of the operator is refused, on every server.")
            .owner(|request| Box::pin(revoke(request))),
    ]
}

/// POST /admin/v1/operators.
async fn create(request: Request<'_, Owner>) -> Handled {
    let (Request { app, call, .. }, body) = request.read().await?;
    let fresh = Fresh::token();
    let reply = write(app, &Organization::system(), call, &body, &Issue { fresh: &fresh, body: &body }).await?;
    Ok(reply.showing_once("token", &fresh.text))
}

/// Creates an operator without a request. Nobody gets its token.
pub(crate) async fn issue(app: &App, role: &str, name: &str, edge: &dyn Edge) -> Result<(), Error> {
    let fresh = Fresh::token();
    let body = json!({"name": name, "role": role}).to_string();
    let intent = Issue { fresh: &fresh, body: body.as_bytes() };
    let render = |_: &Error| (500, bytes::Bytes::new());
    operations::write(app.store(), edge, SYSTEM, None, &intent, (200, &render)).await.map(drop)
}

/// POST /admin/v1/operators/{id}/rotate.
async fn rotate(request: Request<'_, Owner>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let seconds = bodies::overlap_secs(&body, MAX_OVERLAP_SECS)?;
    let fresh = Fresh::token();
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
    body: &'a [u8],
}

impl Intent for Issue<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let given = [("hint", FieldValue::Text(self.fresh.hint())), ("rotations", FieldValue::Integer(0))];
            let (system, body) = (Organization::system(), self.body);
            let create = Create { collection: &OPERATORS, organization: &system, body, given: &given };
            let mut prepared = create.prepare(store, edge).await?;
            let id = prepared.object::<Operator>()?.id;
            prepared.batch.insert(key::access(&self.fresh.hash), api_keys::operator_entry(&self.fresh.hash, id, 0));
            Ok(prepared)
        })
    }
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
                operator.rotate(self.fresh.hint(), now.plus_millis(self.seconds * 1000), now);
                Ok(Vec::new())
            };
            let mut prepared = operations::edit(store, edge, &system, before, rule).await?;
            let operator = prepared.object::<Operator>()?;
            let entry = api_keys::operator_entry(&self.fresh.hash, operator.id, operator.rotations);
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
