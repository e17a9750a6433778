//! An endpoint is one value: method, path, guard, handler and documentation.
//!
//! The guard of an open or operator's endpoint is a part of the handler's type: such a handler gets a [`Request`] with a
//! proof of who calls, and only the guard (`guard.rs`) makes such proofs. Endpoints for API keys ([`Handler::Key`]) have no handler of
//! their own: `fleet_api/` authenticates the key, checks its scope and runs the generic handler of the action.
//!
//! The table (`endpoints.rs`) is the list of all endpoints.

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
    schema::ResourceSpec,
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
    /// For operators of every role.
    Reader(Handle<Reader>),
    /// For the roles `operator` and `owner`.
    Operator(Handle<Operator>),
    /// For the role `owner`.
    Owner(Handle<Owner>),
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
        matches!(self, Self::Create | Self::Update)
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

/// The documentation of an endpoint.
pub(crate) enum Documentation {
    /// Parts from which the OpenAPI operation is made.
    Operation(Box<Operation>),
    /// The OpenAPI operation itself.
    Whole(Value),
}

impl Documentation {
    /// The name of the operation, in the document and in the audit log.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Operation(operation) => &operation.id,
            Self::Whole(operation) => operation["operationId"].as_str().unwrap_or_default(),
        }
    }
}

/// An operation on a resource.
pub(crate) struct Operation {
    pub(crate) spec: &'static ResourceSpec,
    /// See [`Documentation::id`].
    pub(crate) id: String,
    pub(crate) summary: String,
    pub(crate) description: &'static str,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<BodySchema>,
    pub(crate) reply: ReplySchema,
    /// Whether it can be refused with 409.
    pub(crate) conflicts: bool,
}

/// A parameter of an operation, beside the ids in its path.
pub(crate) enum Parameter {
    /// One of `components/parameters`.
    Shared(&'static str),
    /// The filters of the resource.
    Filters,
    /// One of its own.
    Own(Value),
}

/// The body of a request.
pub(crate) enum BodySchema {
    /// The body of POST of the resource.
    Create,
    /// The body of PATCH of the resource.
    Update,
    /// An OpenAPI request body.
    Own(Value),
}

/// The response of an operation.
pub(crate) struct ReplySchema {
    /// The name of the schema; none for the resource itself.
    pub(crate) schema: Option<String>,
    /// Whether it has an `ETag`.
    pub(crate) revision: bool,
    /// Whether it can be a replay for an idempotency key.
    pub(crate) replayed: bool,
    pub(crate) example: Example,
    /// Other media types, instead of JSON.
    pub(crate) instead: Option<Value>,
    /// One more media type, beside JSON.
    pub(crate) beside: Option<(&'static str, Value)>,
}

/// The example of a response.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Example {
    None,
    Object,
    /// With a key that is shown once.
    ObjectWithKey,
    List,
}

/// A method and a path, to which documentation and a handler are added.
pub(crate) struct Route {
    method: Method,
    path: String,
}

/// A route with its documentation. The handler, and with it the guard, makes an endpoint of it.
pub(crate) struct Documented {
    route: Route,
    takes_its_time: bool,
    documentation: Documentation,
    schemas: Vec<(&'static str, Value)>,
}

pub(crate) fn get(path: impl Into<String>) -> Route {
    Route { method: Method::GET, path: path.into() }
}

pub(crate) fn post(path: impl Into<String>) -> Route {
    Route { method: Method::POST, path: path.into() }
}

pub(crate) fn patch(path: impl Into<String>) -> Route {
    Route { method: Method::PATCH, path: path.into() }
}

pub(crate) fn delete(path: impl Into<String>) -> Route {
    Route { method: Method::DELETE, path: path.into() }
}

impl Route {
    /// An OpenAPI operation as its documentation.
    pub(crate) fn documented(self, operation: Value) -> Documented {
        self.with(Documentation::Whole(operation))
    }

    /// Begins the documentation of an operation on a resource. By default, writes take an idempotency key.
    pub(crate) fn about(
        self,
        spec: &'static ResourceSpec,
        id: impl Into<String>,
        summary: impl Into<String>,
    ) -> Documented {
        let writes = self.method != Method::GET;
        let operation = Operation {
            spec,
            id: id.into(),
            summary: summary.into(),
            description: "",
            parameters: if writes { vec![Parameter::Shared("IdempotencyKey")] } else { Vec::new() },
            body: None,
            reply: ReplySchema {
                schema: None,
                revision: true,
                replayed: writes,
                example: Example::Object,
                instead: None,
                beside: None,
            },
            conflicts: writes,
        };
        self.with(Documentation::Operation(Box::new(operation)))
    }

    fn with(self, documentation: Documentation) -> Documented {
        Documented { route: self, takes_its_time: false, documentation, schemas: Vec::new() }
    }
}

impl Documented {
    /// Open to anyone.
    pub(crate) fn open(
        self,
        handle: impl for<'r> Fn(Request<'r, Open>) -> Handling<'r> + Send + Sync + 'static,
    ) -> Endpoint {
        self.handled_by(Handler::Open(Box::new(handle)))
    }

    /// For operators of every role.
    pub(crate) fn reader(
        self,
        handle: impl for<'r> Fn(Request<'r, Reader>) -> Handling<'r> + Send + Sync + 'static,
    ) -> Endpoint {
        self.handled_by(Handler::Reader(Box::new(handle)))
    }

    /// For the role `owner`.
    pub(crate) fn owner(
        self,
        handle: impl for<'r> Fn(Request<'r, Owner>) -> Handling<'r> + Send + Sync + 'static,
    ) -> Endpoint {
        self.handled_by(Handler::Owner(Box::new(handle)))
    }

    /// For the roles `operator` and `owner`.
    pub(crate) fn operator(
        self,
        handle: impl for<'r> Fn(Request<'r, Operator>) -> Handling<'r> + Send + Sync + 'static,
    ) -> Endpoint {
        self.handled_by(Handler::Operator(Box::new(handle)))
    }

    /// For API keys.
    pub(crate) fn key(self, action: Action, collection: &'static Collection) -> Endpoint {
        self.handled_by(Handler::Key(action, collection))
    }

    fn handled_by(self, handler: Handler) -> Endpoint {
        let Self { route: Route { method, path }, takes_its_time, documentation, schemas } = self;
        Endpoint { method, path, handler, takes_its_time, documentation, schemas }
    }

    /// A description, beyond the summary.
    pub(crate) fn says(self, description: &'static str) -> Self {
        self.change(|operation| operation.description = description)
    }

    /// Parameters beside the ids in the path, instead of the default ones.
    pub(crate) fn parameters(self, parameters: Vec<Parameter>) -> Self {
        self.change(|operation| operation.parameters = parameters)
    }

    pub(crate) fn takes(self, body: BodySchema) -> Self {
        self.change(|operation| operation.body = Some(body))
    }

    /// A response that is not the resource itself: the name of its schema, without an example.
    pub(crate) fn replies(self, schema: impl Into<String>) -> Self {
        let schema = schema.into();
        self.change(|operation| {
            operation.reply.schema = Some(schema);
            operation.reply.example = Example::None;
        })
    }

    /// The example of the response.
    pub(crate) fn example(self, example: Example) -> Self {
        self.change(|operation| operation.reply.example = example)
    }

    /// The response is no object with a revision.
    pub(crate) fn without_revision(self) -> Self {
        self.change(|operation| operation.reply.revision = false)
    }

    /// The response is not stored for an idempotency key.
    pub(crate) fn without_replay(self) -> Self {
        self.change(|operation| operation.reply.replayed = false)
    }

    /// A response in other media types than JSON.
    pub(crate) fn replies_in(self, content: Value) -> Self {
        self.change(|operation| operation.reply.instead = Some(content))
    }

    /// A response in one more media type.
    pub(crate) fn replies_also_in(self, media: &'static str, content: Value) -> Self {
        self.change(|operation| operation.reply.beside = Some((media, content)))
    }

    /// It can be refused with 409 although it is no write.
    pub(crate) fn conflicts(self) -> Self {
        self.change(|operation| operation.conflicts = true)
    }

    /// It may take longer than the request time-out.
    pub(crate) fn takes_its_time(mut self) -> Self {
        self.takes_its_time = true;
        self
    }

    /// Defines a schema that the documentation names.
    pub(crate) fn defines(mut self, name: &'static str, schema: Value) -> Self {
        self.schemas.push((name, schema));
        self
    }

    fn change(mut self, change: impl FnOnce(&mut Operation)) -> Self {
        if let Documentation::Operation(operation) = &mut self.documentation {
            change(operation);
        }
        self
    }
}

/// GET on a collection.
pub(crate) fn list(path: impl Into<String>, spec: &'static ResourceSpec) -> Documented {
    let many = spec.plural.replace('_', " ");
    let shared = ["Limit", "StartingAfter", "CreatedGte", "CreatedLt"].map(Parameter::Shared);
    get(path)
        .about(spec, format!("list{}", camel(spec.plural)), format!("List {many}"))
        .says("Newest first. Pass `next_cursor` as `starting_after` to get the next page.")
        .parameters(shared.into_iter().chain([Parameter::Filters]).collect())
        .replies(format!("{}List", camel(spec.object)))
        .example(Example::List)
        .without_revision()
}

/// GET on an object.
pub(crate) fn retrieve(path: impl Into<String>, spec: &'static ResourceSpec) -> Documented {
    let one = spec.object.replace('_', " ");
    get(path)
        .about(spec, format!("get{}", camel(spec.object)), format!("Retrieve {one}"))
        .parameters(vec![Parameter::Shared("IfNoneMatch")])
}

/// POST on a collection.
pub(crate) fn create(path: impl Into<String>, spec: &'static ResourceSpec) -> Documented {
    let one = spec.object.replace('_', " ");
    post(path).about(spec, format!("create{}", camel(spec.object)), format!("Create {one}")).takes(BodySchema::Create)
}

/// PATCH on an object.
pub(crate) fn update(path: impl Into<String>, spec: &'static ResourceSpec) -> Documented {
    let one = spec.object.replace('_', " ");
    patch(path)
        .about(spec, format!("update{}", camel(spec.object)), format!("Update {one}"))
        .says("Absent fields stay as they are; `null` clears a field that can be empty.")
        .parameters(["IdempotencyKey", "IfMatch"].map(Parameter::Shared).into())
        .takes(BodySchema::Update)
}

/// `api_key` as `ApiKey`.
pub(crate) fn camel(object: &str) -> String {
    object.split('_').map(capitalized).collect()
}

/// A text with a capital first letter.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
