//! The documentation of an endpoint, from which the OpenAPI document and `/docs` are made.

use rental_core::schema::ResourceSpec;
use serde_json::Value;

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
    /// With this member, as JSON text.
    ObjectWith(&'static str, &'static str),
    List,
}
