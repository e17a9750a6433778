//! Every way in which a request can be refused, with cause and next step. `/docs`, the OpenAPI document and
//! `docs/troubleshooting.md` show it.

use super::{API, AUTHENTICATION, IDEMPOTENCY, PERMISSION, RATE, REQUEST};

/// One way in which a request can be refused.
pub(crate) struct Refusal {
    /// HTTP status.
    pub(crate) status: u16,
    /// Value of `type`.
    pub(crate) kind: &'static str,
    /// Value of `code`.
    pub(crate) code: &'static str,
    /// What happened, for people.
    pub(crate) cause: &'static str,
    /// What the caller does next.
    pub(crate) next: &'static str,
}

const fn refusal(
    status: u16,
    kind: &'static str,
    code: &'static str,
    cause: &'static str,
    next: &'static str,
) -> Refusal {
    Refusal { status, kind, code, cause, next }
}

/// All refusals, by status.
pub(crate) const CATALOGUE: &[Refusal] = &[
    refusal(
        400,
        REQUEST,
        "body_invalid_json",
        "The body is not one JSON object, or its framing is broken.",
        "Send one JSON object. The message says the line and column.",
    ),
    refusal(
        400,
        REQUEST,
        "file_refused",
        "The file is not what its format says. Nothing of it was recorded.",
        "Operator: send the file that the format names. The message says what is wrong.",
    ),
    refusal(
        400,
        REQUEST,
        "parameter_invalid",
        "A field, parameter or header has a value that it does not take.",
        "Correct what `errors` or `param` names.",
    ),
    refusal(400, REQUEST, "parameter_missing", "A required field is missing.", "Send the fields that `errors` names."),
    refusal(
        400,
        REQUEST,
        "parameter_unknown",
        "There is no such field or parameter, or only the server sets it.",
        "Check the spelling (the message suggests a name), or remove it.",
    ),
    refusal(400, REQUEST, "parameter_duplicate", "A field or parameter is sent more than once.", "Send it once."),
    refusal(
        400,
        REQUEST,
        "resource_missing",
        "The body names an object that does not exist.",
        "Check the id that `errors` names. Ids of other organizations do not exist for your key.",
    ),
    refusal(
        401,
        AUTHENTICATION,
        "api_key_missing",
        "There is no `Authorization: Bearer` header, or it is garbled.",
        "Send the header `Authorization: Bearer <API_KEY>`. In a shell, check that the variable is set.",
    ),
    refusal(
        401,
        AUTHENTICATION,
        "api_key_invalid",
        "There is no such API key or token.",
        "Check that the key was copied whole and belongs to this server. `/v1` takes API keys; `/admin/v1` takes tokens of operators.",
    ),
    refusal(
        401,
        AUTHENTICATION,
        "api_key_revoked",
        "The API key or operator was revoked.",
        "Ask the operator for another one.",
    ),
    refusal(
        401,
        AUTHENTICATION,
        "api_key_expired",
        "The API key or token has expired, or was rotated and its overlap is over.",
        "Use the new one, or ask the operator for another one.",
    ),
    refusal(
        403,
        PERMISSION,
        "plan_required",
        "API access requires the Pro plan.",
        "Ask the operator to change the plan: `rental-cli organizations update ID --plan pro`.",
    ),
    refusal(
        403,
        PERMISSION,
        "insufficient_scope",
        "The API key may read, but not write.",
        "Use a key with the scope `read_write`.",
    ),
    refusal(
        403,
        PERMISSION,
        "insufficient_role",
        "The role of the operator does not allow the request. The message says which one does.",
        "Operator: ask an owner, or for an operator with that role.",
    ),
    refusal(
        403,
        PERMISSION,
        "quota_exceeded",
        "The organization has used up its quota of objects or bytes. Reads go on. The message says which one.",
        "Ask the operator for more: `rental-cli organizations update ID --max-objects N` or `--max-bytes SIZE`.",
    ),
    refusal(
        404,
        REQUEST,
        "resource_missing",
        "There is no such object.",
        "Check the id, and that the key belongs to the organization of the object.",
    ),
    refusal(
        404,
        REQUEST,
        "route_unknown",
        "There is no such path.",
        "Check the path; the message suggests one. With `--operator-listen`, `/admin/v1` and `/metrics` are at that address only.",
    ),
    refusal(
        405,
        REQUEST,
        "method_not_allowed",
        "The path exists, but not with this method.",
        "Use a method that `Allow` lists.",
    ),
    refusal(408, REQUEST, "request_timeout", "The body did not arrive in time.", "Send the request again."),
    refusal(
        409,
        REQUEST,
        "vehicle_unavailable",
        "Another rental or a block holds the vehicle on one of these nights; `conflicting_rental_id` or `conflicting_block_id` names it.",
        "Choose other dates or another vehicle (`GET /v1/availability`).",
    ),
    refusal(
        409,
        REQUEST,
        "export_required",
        "The organization has changed since its last complete export.",
        "Operator: export it, then delete it again.",
    ),
    refusal(
        409,
        REQUEST,
        "state_conflict",
        "What the object is now does not allow this change.",
        "GET the object. The message says what is in the way.",
    ),
    refusal(
        409,
        IDEMPOTENCY,
        "idempotency_key_in_use",
        "The first request with this idempotency key still runs.",
        "Wait `Retry-After` seconds, then send the same request with the same key.",
    ),
    refusal(
        412,
        REQUEST,
        "precondition_failed",
        "`If-Match` names another revision than the present one.",
        "GET the object again, then repeat the change with its `ETag` if you still want it.",
    ),
    refusal(
        413,
        REQUEST,
        "request_too_large",
        "The body is larger than the server takes.",
        "Send less; the message says the limit.",
    ),
    refusal(
        415,
        REQUEST,
        "unsupported_media_type",
        "The body is not `application/json`, or it has a `Content-Encoding`.",
        "Send `Content-Type: application/json`, uncompressed.",
    ),
    refusal(
        422,
        IDEMPOTENCY,
        "idempotency_key_reused",
        "The idempotency key was used for another request.",
        "Use a new key for a new request.",
    ),
    refusal(
        429,
        RATE,
        "rate_limited",
        "There are too many requests with this key, or of its organization.",
        "Wait `Retry-After` seconds.",
    ),
    refusal(
        500,
        API,
        "data_damaged",
        "What the server has stored of this object, or of one that the request needs, is damaged.",
        "Give the operator the request id; a retry does not help. Operator: run `rental-cli store check`.",
    ),
    refusal(
        500,
        API,
        "internal_error",
        "This is a fault of the server.",
        "Retry with the same idempotency key. If it fails again, give the operator the request id, which is in the log.",
    ),
    refusal(
        501,
        REQUEST,
        "transfer_encoding_unsupported",
        "The body has a transfer coding besides `chunked`.",
        "Send it with `Content-Length`, or with `Transfer-Encoding: chunked` alone.",
    ),
    refusal(
        503,
        API,
        "service_unavailable",
        "The server cannot serve now: it is overloaded, shuts down, or its store does not answer.",
        "Wait `Retry-After` seconds, then retry with the same idempotency key. Operator: `/readyz` and the log say why.",
    ),
    refusal(
        503,
        API,
        "clock_jumped",
        "The clock of the server cannot be trusted, so nothing is written. Reads go on.",
        "Wait `Retry-After` seconds, then retry with the same idempotency key. Operator: `rental-cli doctor` says by how much; set the clock, or if it is right, `rental-cli clock confirm`.",
    ),
    refusal(
        503,
        API,
        "storage_full",
        "The disk of the server has too little room for changes. Reads go on.",
        "Wait `Retry-After` seconds, then retry with the same idempotency key. Operator: free space on the disk of the data file.",
    ),
    refusal(
        503,
        API,
        "store_upgrading",
        "The server upgrades its store.",
        "Wait `Retry-After` seconds, then retry with the same idempotency key. `/readyz` tells how far the upgrade is.",
    ),
];
