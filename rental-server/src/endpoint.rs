//! An endpoint is one value: method, path, guard, handler and documentation.
//!
//! The guard of an open or operator's endpoint is a part of the handler's type: such a handler gets a [`Request`] with a
//! proof of who calls, and only the guard (`guard.rs`) makes such proofs. Endpoints for API keys ([`Handler::Key`]) have no handler of
//! their own: `fleet_api/` authenticates the key, checks its scope and runs the generic handler of the action.
//!
//! The table (`endpoints.rs`) is the list of all endpoints.

mod documentation;
mod route;

pub(crate) use documentation::{BodySchema, Documentation, Example, Operation, Parameter, ReplySchema};
pub(crate) use route::{Documented, camel, capitalized, create, delete, get, list, post, put, retrieve, update};

use crate::{
    guard::{Open, Operator, Owner, Reader},
    http::{
        Method,
        call::{Body, Call, read_body},
        reply::{Handled, Problem},
    },
    state::App,
};
use bytes::Bytes;
use rental_core::{
    request::page,
    resources::{Collection, operator::Role},
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

/// Whether a path is for operators only: their API, documents about it, and the metrics.
pub(crate) fn is_for_operators(path: &str) -> bool {
    path.contains("admin") || path == "/metrics"
}

/// A handler, by its guard.
pub(crate) enum Handler {
    /// Anyone may call it.
    Open(Handle<Open>),
    /// For operators of every role.
    Reader(Handle<Reader>),
    /// For the roles `operator` and `owner`.
    Operator(Handle<Operator>),
    /// For the role `owner`.
    Owner(Handle<Owner>),
    /// For API keys: `fleet_api/` checks the key and runs the action. Not boxed: this is the hot path.
    Key(Action, &'static Collection),
}

/// The handlers of requests with an API key: the generic ones of a resource, and those of their own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Action {
    List,
    Get,
    Create,
    Update,
    /// What the key is, and what it may do.
    Me,
    /// The vehicles that are available on some nights.
    Availability,
    /// What holds a vehicle, and who had it.
    Calendar,
    /// What a person has to look at.
    Review,
    /// The calendar feed of a vehicle.
    Feed(FeedAction),
}

/// What is done with the calendar feed of a vehicle, or with a calendar of others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FeedAction {
    Show,
    /// Makes its token, or another one in its place.
    Make,
    Revoke,
    /// Reads a calendar of others now.
    Poll,
    /// Deletes a calendar feed.
    Remove,
}

impl Handler {
    /// The role that an operator needs; `None` for other callers.
    pub(crate) fn role(&self) -> Option<Role> {
        match self {
            Self::Reader(_) => Some(Role::ReadOnly),
            Self::Operator(_) => Some(Role::Operator),
            Self::Owner(_) => Some(Role::Owner),
            Self::Open(_) | Self::Key(..) => None,
        }
    }
}

impl Action {
    /// Whether the API key needs the scope `read_write`.
    pub(crate) fn writes(self) -> bool {
        matches!(
            self,
            Self::Create
                | Self::Update
                | Self::Feed(FeedAction::Make | FeedAction::Revoke | FeedAction::Poll | FeedAction::Remove)
        )
    }
}

/// A handler of requests that the guard `G` has admitted.
pub(crate) type Handle<G> = Box<dyn for<'r> Fn(Request<'r, G>) -> Handling<'r> + Send + Sync>;
/// The future of a handler. Boxed, so that the table can hold any handler.
pub(crate) type Handling<'r> = Pin<Box<dyn Future<Output = Handled> + Send + 'r>>;

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
