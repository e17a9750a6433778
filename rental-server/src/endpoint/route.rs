//! Builds endpoints: a route, then its documentation, then its handler.

use super::{
    Action, BodySchema, Documentation, Endpoint, Example, Handler, Handling, Operation, Parameter, ReplySchema, Request,
};
use crate::{
    guard::{Open, Operator, Owner, Reader},
    http::Method,
};
use rental_core::{resources::Collection, schema::ResourceSpec};
use serde_json::Value;

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

pub(crate) fn put(path: impl Into<String>) -> Route {
    Route { method: Method::PUT, path: path.into() }
}

fn patch(path: impl Into<String>) -> Route {
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

    /// Replaces the id of the operation, which is that of another endpoint too.
    pub(crate) fn with_id(self, id: String) -> Self {
        self.change(|operation| operation.id = id)
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
