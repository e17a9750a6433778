//! An endpoint is one value: method, path, guard, handler and documentation.
//!
//! The guard is the type of the handler, so no handler can exist without one: a handler gets a [`Request`] with a proof
//! of who calls, and only the guard makes such a proof. The server's table (`endpoints.rs`) is the list of these values.

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
    operations::access::bearer,
    request::page,
    resources::Collection,
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
    /// Whether it may take longer than the request time-out: it limits by itself how long it waits for its client.
    pub(crate) takes_its_time: bool,
    pub(crate) documentation: Documentation,
    /// Schemas that its documentation names, by their names.
    pub(crate) schemas: Vec<(&'static str, Value)>,
}

/// A handler, by who may call it.
pub(crate) enum Handler {
    /// Anyone.
    Open(Handle<Open>),
    /// Anyone with the admin token.
    Operator(Handle<Operator>),
    /// An API key that may read. Not boxed: this is the hot path.
    KeyRead(Read),
    /// An API key that may write.
    KeyWrite(Write),
}

/// What a key that may read can ask for.
#[derive(Clone, Copy)]
pub(crate) enum Read {
    /// A page of objects.
    List(&'static Collection),
    /// One object.
    Get(&'static Collection),
}

/// What a key that may write can ask for.
#[derive(Clone, Copy)]
pub(crate) enum Write {
    /// A new object.
    Create(&'static Collection),
    /// A changed object.
    Update(&'static Collection),
}

/// A handler of requests that the guard `G` has admitted.
pub(crate) type Handle<G> = Box<dyn for<'r> Fn(Request<'r, G>) -> Handling<'r> + Send + Sync>;
/// What a handler gives: boxed, so that the table can hold handlers of any kind.
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
        if !app.is_admin(presented(call)?) {
            return Err(Problem::NotAdmin);
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

    /// The whole body, as JSON; refuses parameters, because a request with a body takes none.
    pub(crate) async fn read(&mut self) -> Result<Bytes, Problem> {
        read(self.app, self.call, &mut self.body).await
    }
}

/// The whole body of a request that takes no parameters.
pub(crate) async fn read(app: &App, call: &Call, body: &mut Body<'_>) -> Result<Bytes, Problem> {
    let bytes = read_body(call, body, app.limits.max_body).await?;
    page::no_parameters(call.query())?;
    Ok(bytes)
}

/// What the documents say about an endpoint.
pub(crate) enum Documentation {
    /// In parts, from which the document is made.
    Operation(Box<Operation>),
    /// As an OpenAPI operation of its own.
    Whole(Value),
}

/// An operation on a resource.
pub(crate) struct Operation {
    pub(crate) spec: &'static ResourceSpec,
    /// Its name in the document and in the audit log.
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

/// What an operation takes.
pub(crate) enum BodySchema {
    /// What POST takes of the resource.
    Create,
    /// What PATCH takes of the resource.
    Update,
    /// An OpenAPI request body.
    Own(Value),
}

/// What an operation gives.
pub(crate) struct ReplySchema {
    /// The name of the schema; none for the resource itself.
    pub(crate) schema: Option<String>,
    /// Whether it has an `ETag`.
    pub(crate) revision: bool,
    /// Whether it can be a replay.
    pub(crate) replayed: bool,
    pub(crate) example: Example,
    /// Media types instead of JSON.
    pub(crate) instead: Option<Value>,
    /// A media type beside JSON.
    pub(crate) beside: Option<(&'static str, Value)>,
}

/// The example of a reply.
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

    /// Begins the documentation of an operation on a resource. Writes take an idempotency key, unless told otherwise.
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

    /// For the operator.
    pub(crate) fn operator(
        self,
        handle: impl for<'r> Fn(Request<'r, Operator>) -> Handling<'r> + Send + Sync + 'static,
    ) -> Endpoint {
        self.handled_by(Handler::Operator(Box::new(handle)))
    }

    /// For API keys that may read.
    pub(crate) fn key_read(self, read: Read) -> Endpoint {
        self.handled_by(Handler::KeyRead(read))
    }

    /// For API keys that may write.
    pub(crate) fn key_write(self, write: Write) -> Endpoint {
        self.handled_by(Handler::KeyWrite(write))
    }

    fn handled_by(self, handler: Handler) -> Endpoint {
        let Self { route: Route { method, path }, takes_its_time, documentation, schemas } = self;
        Endpoint { method, path, handler, takes_its_time, documentation, schemas }
    }

    /// What the operation does, beyond its summary.
    pub(crate) fn says(self, description: &'static str) -> Self {
        self.change(|operation| operation.description = description)
    }

    /// Its parameters beside the ids in its path, instead of the usual ones.
    pub(crate) fn parameters(self, parameters: Vec<Parameter>) -> Self {
        self.change(|operation| operation.parameters = parameters)
    }

    pub(crate) fn takes(self, body: BodySchema) -> Self {
        self.change(|operation| operation.body = Some(body))
    }

    /// Another reply than the resource itself: a schema by name, without an example.
    pub(crate) fn replies(self, schema: impl Into<String>) -> Self {
        let schema = schema.into();
        self.change(|operation| {
            operation.reply.schema = Some(schema);
            operation.reply.example = Example::None;
        })
    }

    /// The example of its reply.
    pub(crate) fn example(self, example: Example) -> Self {
        self.change(|operation| operation.reply.example = example)
    }

    /// Its reply is no object with a revision.
    pub(crate) fn without_revision(self) -> Self {
        self.change(|operation| operation.reply.revision = false)
    }

    /// It keeps no response under an idempotency key.
    pub(crate) fn without_replay(self) -> Self {
        self.change(|operation| operation.reply.replayed = false)
    }

    /// Its reply in other media types than JSON.
    pub(crate) fn replies_in(self, content: Value) -> Self {
        self.change(|operation| operation.reply.instead = Some(content))
    }

    /// Its reply in one more media type.
    pub(crate) fn replies_also_in(self, media: &'static str, content: Value) -> Self {
        self.change(|operation| operation.reply.beside = Some((media, content)))
    }

    /// It can be refused with 409, although it is no write.
    pub(crate) fn conflicts(self) -> Self {
        self.change(|operation| operation.conflicts = true)
    }

    /// It may take longer than the request time-out.
    pub(crate) fn takes_its_time(mut self) -> Self {
        self.takes_its_time = true;
        self
    }

    /// A schema that its documentation names.
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
