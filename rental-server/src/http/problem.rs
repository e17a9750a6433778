//! Why a request is refused: one exhaustive match from errors to statuses, and the error body (`docs/decisions.md`,
//! "Errors").

pub(crate) mod catalogue;

use bytes::Bytes;
use rental_core::{
    error::{Error, FieldError, FieldErrors, KeyProblem},
    resources::operator::Role,
};
use serde_json::{Value, json};
use warp::http::StatusCode;

/// Why a request is refused: an error of the core, or one of HTTP alone.
#[derive(Clone, Debug)]
pub(crate) enum Problem {
    Core(Error),
    /// A token of operators is refused, or was presented in the place of an API key.
    BadToken(BadToken),
    /// The operator's role does not include the one that is needed.
    RoleRequired {
        given: Role,
        needed: Role,
    },
    RouteUnknown {
        hint: String,
    },
    MethodNotAllowed {
        allow: String,
    },
    TooLarge {
        limit: usize,
    },
    UnsupportedMediaType(&'static str),
    BadHeader {
        name: &'static str,
        rule: &'static str,
    },
    TooManyRequests {
        /// Of whom there are too many requests.
        whose: &'static str,
        retry_after: u64,
    },
    QuotaExceeded(QuotaExceeded),
    /// The organization or connection has its share of what the server can do at the same time.
    Crowded,
    /// The body has a transfer coding besides `chunked`.
    TransferCoding,
    BodyTimeout,
    BodyBroken,
    /// The server upgrades its store and serves no requests yet.
    StoreUpgrading,
    /// This background task dies again and again.
    TaskFailing(&'static str),
    /// `/readyz`: the server cannot serve. `detail` is for the log.
    NotReady {
        message: &'static str,
        detail: String,
    },
    /// An organization has changed since its last complete export, or has none. The text says when.
    ExportRequired(String),
    /// An uploaded file does not match its format.
    FileRefused(String),
}

/// Why a token of operators is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BadToken {
    /// It is neither the admin token nor that of an operator.
    Unknown,
    /// Its operator was revoked.
    Revoked,
    /// It was rotated, or its operator has expired.
    Expired,
    /// It is an API key, and `/admin/v1` takes none.
    IsApiKey,
    /// It is the admin token, and `/v1` does not take it.
    AdminAsApiKey,
    /// It is the token of an operator, and `/v1` takes none.
    OperatorAsApiKey,
}

impl BadToken {
    fn key_problem(self) -> KeyProblem {
        match self {
            Self::Revoked => KeyProblem::Revoked,
            Self::Expired => KeyProblem::Expired,
            Self::Unknown | Self::IsApiKey | Self::AdminAsApiKey | Self::OperatorAsApiKey => KeyProblem::Invalid,
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::Unknown => {
                "This is neither the admin token nor the token of an operator. The server printed the path of the admin token's file when it started; `rental-cli operators list` lists operators."
            }
            Self::Revoked => "This operator was revoked. Ask an owner to create a new one.",
            Self::Expired => {
                "This operator's token has expired: it was rotated, or its operator's time is over. Use the new token, or ask an owner for one."
            }
            Self::IsApiKey => {
                "This is an API key of an organization; /admin/v1 takes the operator's admin token or the token of a named operator. The server printed the path of the admin token's file when it started."
            }
            Self::AdminAsApiKey => {
                "This is the operator's admin token; /v1 takes an API key of an organization. Send the token to /admin/v1 only: rental-cli reads it from RENTAL_ADMIN_TOKEN or RENTAL_ADMIN_TOKEN_FILE."
            }
            Self::OperatorAsApiKey => {
                "This is the token of an operator; /v1 takes an API key of an organization. Send the token to /admin/v1 only: rental-cli reads it from RENTAL_ADMIN_TOKEN or RENTAL_ADMIN_TOKEN_FILE."
            }
        }
    }
}

/// A quota that an organization has used up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct QuotaExceeded {
    /// `objects` or `bytes`.
    pub(crate) quota: &'static str,
    pub(crate) used: u64,
    pub(crate) most: u64,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl Problem {
    /// Why the key or token of the request is refused, if it is.
    pub(crate) fn failed_authentication(&self) -> Option<KeyProblem> {
        match self {
            Self::Core(Error::Unauthenticated(why)) => Some(*why),
            Self::BadToken(token) => Some(token.key_problem()),
            _ => None,
        }
    }
}

/// Status, `type` and `code` of a problem.
type Class = (StatusCode, &'static str, &'static str);

// The values of `type`.
const AUTHENTICATION: &str = "authentication_error";
const PERMISSION: &str = "permission_error";
const REQUEST: &str = "invalid_request_error";
const IDEMPOTENCY: &str = "idempotency_error";
const RATE: &str = "rate_limit_error";
const API: &str = "api_error";

fn class(problem: &Problem) -> Class {
    match problem {
        Problem::Core(error) => core_class(error),
        Problem::BadToken(token) => (StatusCode::UNAUTHORIZED, AUTHENTICATION, key_code(token.key_problem())),
        Problem::RoleRequired { .. } => (StatusCode::FORBIDDEN, PERMISSION, "insufficient_role"),
        Problem::RouteUnknown { .. } => (StatusCode::NOT_FOUND, REQUEST, "route_unknown"),
        Problem::MethodNotAllowed { .. } => (StatusCode::METHOD_NOT_ALLOWED, REQUEST, "method_not_allowed"),
        Problem::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, REQUEST, "request_too_large"),
        Problem::UnsupportedMediaType(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, REQUEST, "unsupported_media_type"),
        Problem::BadHeader { .. } => (StatusCode::BAD_REQUEST, REQUEST, "parameter_invalid"),
        Problem::TooManyRequests { .. } => (StatusCode::TOO_MANY_REQUESTS, RATE, "rate_limited"),
        Problem::QuotaExceeded(_) => (StatusCode::FORBIDDEN, PERMISSION, "quota_exceeded"),
        Problem::TransferCoding => (StatusCode::NOT_IMPLEMENTED, REQUEST, "transfer_encoding_unsupported"),
        Problem::BodyTimeout => (StatusCode::REQUEST_TIMEOUT, REQUEST, "request_timeout"),
        Problem::BodyBroken => (StatusCode::BAD_REQUEST, REQUEST, "body_invalid_json"),
        Problem::ExportRequired(_) => (StatusCode::CONFLICT, REQUEST, "export_required"),
        Problem::FileRefused(_) => (StatusCode::BAD_REQUEST, REQUEST, "file_refused"),
        Problem::TaskFailing(_) | Problem::NotReady { .. } | Problem::Crowded => {
            (StatusCode::SERVICE_UNAVAILABLE, API, "service_unavailable")
        }
        Problem::StoreUpgrading => (StatusCode::SERVICE_UNAVAILABLE, API, "store_upgrading"),
    }
}

fn core_class(error: &Error) -> Class {
    match error {
        Error::Unauthenticated(problem) => (StatusCode::UNAUTHORIZED, AUTHENTICATION, key_code(*problem)), // spec, Errors
        Error::PlanRequired => (StatusCode::FORBIDDEN, PERMISSION, "plan_required"), // spec, Errors
        Error::ScopeRequired => (StatusCode::FORBIDDEN, PERMISSION, "insufficient_scope"), // spec, Errors
        Error::NotFound { .. } => (StatusCode::NOT_FOUND, REQUEST, "resource_missing"),
        Error::Malformed(_) => (StatusCode::BAD_REQUEST, REQUEST, "body_invalid_json"),
        Error::Invalid(errors) => (
            StatusCode::BAD_REQUEST,
            REQUEST,
            errors.listed().first().map_or("parameter_invalid", |first| first.code.as_str()),
        ),
        Error::VehicleUnavailable { .. } => (StatusCode::CONFLICT, REQUEST, "vehicle_unavailable"),
        Error::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, REQUEST, "precondition_failed"),
        Error::Conflict(_) => (StatusCode::CONFLICT, REQUEST, "state_conflict"),
        Error::IdempotencyReused => (StatusCode::UNPROCESSABLE_ENTITY, IDEMPOTENCY, "idempotency_key_reused"),
        Error::IdempotencyInUse => (StatusCode::CONFLICT, IDEMPOTENCY, "idempotency_key_in_use"),
        Error::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, API, "service_unavailable"),
        Error::StorageFull => (StatusCode::SERVICE_UNAVAILABLE, API, "storage_full"),
        Error::ClockJumped => (StatusCode::SERVICE_UNAVAILABLE, API, "clock_jumped"),
        Error::Damaged(_) => (StatusCode::INTERNAL_SERVER_ERROR, API, "data_damaged"),
        Error::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, API, "internal_error"),
    }
}

fn key_code(problem: KeyProblem) -> &'static str {
    match problem {
        KeyProblem::Missing | KeyProblem::Malformed => "api_key_missing",
        KeyProblem::Invalid => "api_key_invalid",
        KeyProblem::Revoked => "api_key_revoked",
        KeyProblem::Expired => "api_key_expired",
    }
}

fn message(problem: &Problem) -> String {
    match problem {
        Problem::Core(error) => core_message(error),
        Problem::BadToken(token) => token.message().into(),
        Problem::RoleRequired { given, needed } => format!(
            "This needs an operator with the role `{needed}`{more}; yours has `{given}`. Ask an owner.",
            more = if *needed == Role::Owner { " or the admin token" } else { " or a greater one" },
        ),
        Problem::RouteUnknown { hint } => hint.clone(),
        Problem::MethodNotAllowed { allow } => format!("This path does not take that method; it takes {allow}."),
        Problem::TooLarge { limit } => format!("The body is larger than {limit} bytes."),
        Problem::UnsupportedMediaType(rule) => (*rule).to_owned(),
        Problem::BadHeader { name, rule } => format!("The header `{name}` {rule}."),
        Problem::TooManyRequests { whose, retry_after } => {
            format!("Too many requests {whose}. Try again in {retry_after} s.")
        }
        Problem::QuotaExceeded(QuotaExceeded { quota, used, most }) => format!(
            "The organization uses about {used} of {most} {quota}, so nothing was changed; reads go on. Ask the operator of \
             this service for more: `max_{quota}` of the organization."
        ),
        Problem::Crowded => {
            "The server is busy, and this client has its share of the requests in progress. Nothing was changed. Send fewer \
             requests at once, and this one again after `Retry-After` seconds, with the same idempotency key."
                .into()
        }
        Problem::TransferCoding => {
            "The header `Transfer-Encoding` must be `chunked`, or be left out. Send the body without another coding.".into()
        }
        Problem::BodyTimeout => "The body did not arrive in time. Send it again.".into(),
        Problem::NotReady { message, .. } => (*message).to_owned(),
        Problem::TaskFailing(task) => format!(
            "The background task `{task}` fails again and again, so this server is not ready. The log says why; restart the \
             server if that does not end it."
        ),
        Problem::StoreUpgrading => {
            "The server is upgrading its store to a new schema version. Try again, with the same idempotency key; /readyz \
             tells how far the upgrade is."
                .into()
        }
        Problem::ExportRequired(why) => format!("This organization {why}, so it was not deleted. Export it and delete it again; `without_export=true` deletes it as it is."),
        Problem::FileRefused(why) => format!("This file was refused, and nothing of it recorded: {why}."),
        Problem::BodyBroken => "The body could not be read to its end: its framing is broken.".into(),
    }
}

fn core_message(error: &Error) -> String {
    match error {
        Error::Unauthenticated(KeyProblem::Missing) => {
            "No API key. Send it as `Authorization: Bearer <API_KEY>`.".into()
        }
        Error::Unauthenticated(KeyProblem::Malformed) => {
            "The header `Authorization` is garbled: send it once, as `Authorization: Bearer <API_KEY>`, which is the word `Bearer`, a space and the key. No other scheme is taken. When nothing follows `Bearer`, the variable that should have the key may not be set.".into()
        }
        Error::Unauthenticated(KeyProblem::Invalid) => {
            "This API key does not exist. Check that it was copied whole.".into()
        }
        Error::Invalid(errors) => invalid_message(errors),
        Error::PreconditionFailed => {
            "`If-Match` does not list the object's present revision: the object has changed, or the header lacks the quotes of an `ETag`, such as `\"1\"`. GET the object again, then repeat the change with its `ETag` if you still want it.".into()
        }
        Error::Unavailable(_) => {
            "The service cannot take this request now. Try again, with the same idempotency key.".into()
        }
        Error::StorageFull => {
            "The disk of the server has too little room, so nothing was changed; reads go on. Try again later, with the same idempotency key.".into()
        }
        Error::ClockJumped => {
            "The clock of the server is wrong, or was set, so nothing was changed; reads go on. Try again later, with the same idempotency key.".into()
        }
        Error::Damaged(_) => {
            "What is stored of this object, or of one that the request needs, is damaged, so nothing was changed. All other objects can be read. Tell the operator the request id: the log names the row, and docs/runbook.md, \"A file with damaged pages\", says how to get a sound store.".into()
        }
        Error::Internal(_) => {
            "Something went wrong on our side. The request id helps us to find it.".into()
        }
        // The core's sentence has no word about HTTP to add and no detail to hide. No wildcard: a new error is judged here.
        Error::Unauthenticated(KeyProblem::Revoked | KeyProblem::Expired)
        | Error::PlanRequired
        | Error::ScopeRequired
        | Error::NotFound { .. }
        | Error::Malformed(_)
        | Error::Conflict(_)
        | Error::VehicleUnavailable { .. }
        | Error::IdempotencyReused
        | Error::IdempotencyInUse => error.to_string(),
    }
}

fn invalid_message(errors: &FieldErrors) -> String {
    let first = errors.listed().first().map_or("", |error| &error.message);
    match (errors.listed().len(), errors.unlisted()) {
        (0 | 1, _) => first.to_owned(),
        (listed, 0) => format!("{first} ({} more in `errors`.)", listed - 1),
        (listed, unlisted) => format!("{first} ({} more in `errors`, {unlisted} more not listed.)", listed - 1),
    }
}

/// Status and body of the response to a problem.
pub(crate) fn render(problem: &Problem, request_id: &str) -> (StatusCode, Bytes) {
    let (status, kind, code) = class(problem);
    let mut error = json!({"type": kind, "code": code, "message": message(problem)});
    match problem {
        Problem::Core(Error::Invalid(errors)) => {
            let item = |FieldError { param, code, message }: &FieldError| json!({"param": param, "code": code.as_str(), "message": message});
            let items: Vec<Value> = errors.listed().iter().map(item).collect();
            error["param"] = items.first().map(|first| first["param"].clone()).unwrap_or_default();
            error["errors"] = items.into();
        }
        Problem::Core(Error::VehicleUnavailable { holder, .. }) => {
            error["param"] = json!("vehicle_id");
            error[format!("conflicting_{}_id", holder.object())] = json!(holder.uuid());
        }
        Problem::BadHeader { name, .. } => error["param"] = json!(name),
        Problem::TransferCoding => error["param"] = json!("Transfer-Encoding"),
        _ => {}
    }
    error["request_id"] = json!(request_id);
    (status, json!({"error": error}).to_string().into())
}

#[cfg(test)]
mod tests {
    use super::{catalogue::CATALOGUE, *};
    use rental_core::error::FieldCode;

    #[test]
    fn the_catalogue_has_every_class_of_field_and_key_error() {
        let known = |code: &str| CATALOGUE.iter().any(|refusal| refusal.code == code);
        for problem in
            [KeyProblem::Missing, KeyProblem::Malformed, KeyProblem::Invalid, KeyProblem::Revoked, KeyProblem::Expired]
        {
            assert!(known(key_code(problem)));
        }
        for code in [
            FieldCode::Invalid,
            FieldCode::Missing,
            FieldCode::Unknown,
            FieldCode::Duplicate,
            FieldCode::ResourceMissing,
        ] {
            assert!(known(code.as_str()));
        }
    }
}
