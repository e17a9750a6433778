//! An endpoint is one value: method, path, guard, handler and documentation.
//!
//! The guard of an open or operator's endpoint is a part of the handler's type: such a handler gets a [`Request`] with a
//! proof of who calls, and only the guard makes such proofs. Endpoints for API keys ([`Handler::Key`]) have no handler of
//! their own: `fleet_api/` authenticates the key, checks its scope and runs the generic handler of the action.
//!
//! The table (`endpoints.rs`) is the list of all endpoints.

mod documentation;
mod route;

pub(crate) use documentation::{BodySchema, Documentation, Example, Operation, Parameter, ReplySchema};
pub(crate) use route::{Documented, camel, capitalized, create, delete, get, list, post, retrieve, update};

use crate::{
    http::{
        Method,
        call::{Body, Call, read_body},
        header,
        reply::{Handled, Problem},
    },
    state::App,
};
use bytes::Bytes;
use rental_core::{
    error::{Error, KeyProblem},
    operations::api_keys::{self, bearer},
    request::page,
    resources::Collection,
};
use serde_json::Value;
use std::{future::Future, pin::Pin};

/// An endpoint of the server.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// With `{id}` or `{organization}` in the place of an id.
    pub(crate) path: String,
    pub(crate) handler: Handler,
    /// Whether it may take longer than the request time-out. It then limits by itself how long it waits for its client.
    pub(crate) takes_its_time: bool,
    pub(crate) documentation: Documentation,
    /// Schemas that only this endpoint defines, with their names.
    pub(crate) schemas: Vec<(&'static str, Value)>,
}

/// A handler, by its guard.
pub(crate) enum Handler {
    /// Anyone may call it.
    Open(Handle<Open>),
    /// For the admin token.
    Operator(Handle<Operator>),
    /// For API keys: `fleet_api/` checks the key and runs the action. Not boxed: this is the hot path.
    Key(Action, &'static Collection),
}

/// The generic handlers of a resource.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Action {
    List,
    Get,
    Create,
    Update,
}

impl Action {
    /// Whether the API key needs the scope `read_write`.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Update)
    }
}

/// A handler of requests that the guard `G` has admitted.
pub(crate) type Handle<G> = Box<dyn for<'r> Fn(Request<'r, G>) -> Handling<'r> + Send + Sync>;
/// The future of a handler. Boxed, so that the table can hold any handler.
pub(crate) type Handling<'r> = Pin<Box<dyn Future<Output = Handled> + Send + 'r>>;

/// The proof that anyone may call.
pub(crate) struct Open(());

/// The proof that the caller presented the admin token.
pub(crate) struct Operator(());

impl Open {
    pub(crate) fn admit() -> Self {
        Self(())
    }
}

impl Operator {
    /// Admits a request with the admin token. Notes the operation of a write for the audit log.
    pub(crate) fn admit(app: &App, call: &Call, endpoint: &'static Endpoint) -> Result<Self, Problem> {
        let presented = presented(call)?;
        if !app.is_admin(presented) {
            let is_api_key = api_keys::key_hash(presented).is_some();
            return Err(if is_api_key { Problem::ApiKeyAsAdminToken } else { Problem::NotAdmin });
        }
        if let Documentation::Operation(operation) = &endpoint.documentation
            && endpoint.method != Method::GET
        {
            // Set once: each request has one guard.
            let _ = call.operation.set(&operation.id);
        }
        Ok(Self(()))
    }
}

/// The token that a request presents.
pub(crate) fn presented(call: &Call) -> Result<&str, Error> {
    let header = call.single(&header::AUTHORIZATION).ok().flatten();
    header.and_then(bearer).ok_or(Error::Unauthenticated(KeyProblem::Missing))
}

/// A request that a guard has admitted.
pub(crate) struct Request<'r, G> {
    pub(crate) app: &'r App,
    pub(crate) call: &'r Call,
    /// The id in the path, or nothing.
    pub(crate) id: &'r str,
    pub(crate) body: Body<'r>,
    _by: G,
}

impl<'r, G> Request<'r, G> {
    pub(crate) fn new(app: &'r App, call: &'r Call, id: &'r str, body: Body<'r>, by: G) -> Self {
        Self { app, call, id, body, _by: by }
    }

    /// Reads the whole body. Refuses parameters, because a request with a body takes none.
    pub(crate) async fn read(mut self) -> Result<(Self, Bytes), Problem> {
        let body = read(self.app, self.call, &mut self.body).await?;
        Ok((self, body))
    }
}

/// The whole body of a request that takes no parameters.
pub(crate) async fn read(app: &App, call: &Call, body: &mut Body<'_>) -> Result<Bytes, Problem> {
    let bytes = read_body(call, body, app.limits.max_body).await?;
    page::no_parameters(call.query())?;
    Ok(bytes)
}
