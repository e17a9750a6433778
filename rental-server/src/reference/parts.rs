//! Parts of the document that operations share: parameters, headers, responses to problems, and the introduction.

use crate::{
    http::problem::catalogue::{CATALOGUE, Refusal},
    reference::{
        schema,
        shapes::{self, described},
    },
};
use rental_core::schema::{FilterSpec, Kind, NOTICES, NoticeSpec, ResourceSpec};
use serde_json::{Map, Value, json};

pub(super) const INTRODUCTION: &str = "\
Every request carries `Authorization: Bearer <API_KEY>`. A key belongs to one organization and sees nothing of any other.

**Amounts** are exact decimal numbers in `currency`, with at most as many decimals as that currency has. **Times** are \
RFC 3339 in UTC, **dates** are `YYYY-MM-DD`, **ids** are opaque strings. Fields that are not set are `null`, so an \
object always has the same shape.

**Lists** are newest first, except that of events, which is oldest first. Pass `next_cursor` as `starting_after` for the next page; a cursor stays valid whatever \
happens to the objects. With `updated[gte]` or `updated[lt]` a list is ordered by `updated_at`, rising: walk through it \
to learn what changed.

**Retries** are safe with an `Idempotency-Key` on POST and PATCH: the first answer is kept for 24 hours and given again \
with `Idempotent-Replayed: true`.

**Lost updates** are avoided with `If-Match` and the `ETag` of the revision that you read.

**Errors** have a `type`, a `code` for programs, a `message` for people, and every bad field in `errors`. Quote the \
`request_id` when you ask for help. Only 431, for a head of the request that is too large, has no body.

**Request ids** of your own, in `X-Request-Id`, come back in the response, and a `traceparent` of W3C Trace Context says \
to which trace a request belongs: the log of the server has both.";

pub(super) fn security_schemes() -> Value {
    json!({
        "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key of the organization, `rk_live_…`."},
        "adminToken": {"type": "http", "scheme": "bearer", "description": "The admin token, or the token of a named operator, `op_live_…`. Its role decides what it allows."},
    })
}

pub(super) fn parameters() -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    let etag = json!({"type": "string"});
    let mut limit = shapes::integer(1, 100);
    limit["default"] = json!(20);
    json!({
        "Limit": query("limit", "Objects on a page.", limit),
        "StartingAfter": query("starting_after", "`next_cursor` of the page before.", json!({"type": "string"})),
        "CreatedGte": query("created[gte]", "Only objects created at this time or later.", time.clone()),
        "CreatedLt": query("created[lt]", "Only objects created before this time.", time),
        "IdempotencyKey": optional("header", "Idempotency-Key", "Makes it safe to send the request again: 1 to 255 visible ASCII characters.", json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"})),
        "IfMatch": optional("header", "If-Match", "Refuse with 412 unless the object still has this `ETag`.", etag.clone()),
        "IfNoneMatch": optional("header", "If-None-Match", "Answer 304 without a body if the object still has this `ETag`.", etag),
    })
}

/// An optional parameter in the query.
pub(crate) fn query(name: &str, description: &str, schema: Value) -> Value {
    optional("query", name, description, schema)
}

fn optional(place: &str, name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": place, "required": false, "description": description, "schema": schema})
}

/// An id in the path.
pub(super) fn path_id(name: &str, object: &str, example: &str) -> Value {
    let example: Value = serde_json::from_str(example).unwrap_or(Value::Null);
    json!({"name": name, "in": "path", "required": true, "description": format!("Id of the {}.", object.replace('_', " ")), "schema": {"type": "string", "format": "uuid"}, "example": example})
}

/// A filter of a list.
pub(super) fn filter(spec: &ResourceSpec, filter: &FilterSpec) -> Value {
    let schema = match spec.filter_words(filter.field) {
        _ if spec.field(filter.field).is_none() => json!({"type": "boolean"}),
        // Fewer words than the field has are a type without a name.
        Some(words) if spec.field(filter.field).is_some_and(|field| field.kind == Kind::Word(words)) => {
            shapes::word(&schema::word_name(spec, filter.field), words)
        }
        Some(words) => schema::of_kind(Kind::Word(words), spec),
        None => json!({"type": "string", "minLength": 1, "maxLength": 255}),
    };
    let how = if filter.look_up.is_some() { "this, however it is spelt" } else { "exactly this" };
    let description = match filter.field {
        "billed" => "`false`: only those of which something is left to bill. `true`: only the others.".to_owned(),
        "attached" => "`false`: only those without a customer. `true`: only the others.".to_owned(),
        field => format!("Only those whose `{field}` is {how}."),
    };
    query(filter.param, &description, schema)
}

/// The two bounds of a range that makes a list a sync list.
pub(super) fn range(spec: &ResourceSpec, range: &FilterSpec) -> [Value; 2] {
    let (what, format) = match spec.field(range.field).map(|field| field.kind) {
        Some(Kind::Date) => ("date", "date"),
        _ => ("time", "date-time"),
    };
    [("gte", "this", "or later"), ("lt", "before this", "")].map(|(bound, before, after)| {
        let description = format!(
            "Only those whose `{}` is {}. The list is then ordered by that {what}, rising, has cursors of its own, and \
             takes no other filter.",
            range.field,
            format!("{before} {what} {after}").trim_end()
        );
        query(&format!("{}[{bound}]", range.param), &description, json!({"type": "string", "format": format}))
    })
}

pub(super) fn headers() -> Value {
    let text = |description: &str| json!({"description": description, "schema": {"type": "string"}});
    json!({
        "RequestId": text("Names this request in our logs."),
        "ServiceVersion": text("The date of the API's description."),
        "ETag": text("The object's revision, for `If-Match` and `If-None-Match`."),
        "IdempotentReplayed": {"description": "`true` when this is the answer to an earlier request with the same key.", "schema": {"type": "string", "const": "true"}},
        "RentalNotice": text(&notices()),
        "DamagedRows": {"description": "How many objects the page leaves out because what is stored of them, or of others that they need, is damaged. Absent when there are none.", "schema": shapes::at_least(1)},
        "RetryAfter": {"description": "Seconds after which to try again.", "schema": shapes::at_least(1)},
        "RateLimit": text("Requests left and seconds until all are back, when a rate limit applies."),
        "RateLimitPolicy": text("The rate limit that applies."),
        "Allow": text("The methods that the path takes."),
        "WwwAuthenticate": text("How to authenticate."),
        "Accept": text("The media type that is taken."),
    })
}

/// The description of the header with notices.
fn notices() -> String {
    let kind = |spec: &NoticeSpec| {
        let forms = spec.names.iter().map(|object| format!("`{}; {object}=\"ID\"`", spec.name));
        format!("{}: {} {}", forms.collect::<Vec<_>>().join(" or "), spec.says, spec.next)
    };
    let kinds = NOTICES.iter().map(kind).collect::<Vec<_>>().join("\n\n");
    format!(
        "What else the organization has of what was written. The write was done. A list (RFC 8941), each member with the id of one \
         object. Best effort: a replay for an idempotency key has none. Absent when there is nothing to tell.\n\n{kinds}"
    )
}

/// Whether the response to a POST or PATCH of this resource can have notices.
pub(super) fn has_notices(spec: &ResourceSpec) -> bool {
    NOTICES.iter().any(|notice| notice.on == spec.object)
}

pub(super) fn header(name: &str) -> Value {
    json!({"$ref": format!("#/components/headers/{name}")})
}

/// The headers that every response has.
pub(crate) fn common_headers() -> Value {
    json!({"Request-Id": header("RequestId"), "Service-Version": header("ServiceVersion"), "RateLimit": header("RateLimit"), "RateLimit-Policy": header("RateLimitPolicy")})
}

/// The 200 of an operation.
pub(crate) fn success(schema: &str, example: Value) -> Value {
    let mut content = json!({"schema": {"$ref": format!("#/components/schemas/{schema}")}});
    if !example.is_null() {
        content["example"] = example;
    }
    json!({"description": "Done.", "headers": common_headers(), "content": {"application/json": content}})
}

/// One response for each status, with an example for each code of the catalogue.
pub(super) fn responses() -> Value {
    let mut responses = Map::new();
    let unchanged =
        json!({"Request-Id": header("RequestId"), "Service-Version": header("ServiceVersion"), "ETag": header("ETag")});
    responses.insert(
        "NotModified".into(),
        json!({"description": "The object still has this `ETag`.", "headers": unchanged}),
    );
    let mut statuses: Vec<u16> = CATALOGUE.iter().map(|row| row.status).collect();
    statuses.dedup();
    for status in statuses {
        let rows: Vec<_> = CATALOGUE.iter().filter(|row| row.status == status).collect();
        let description = rows
            .iter()
            .map(|row| format!("`{}`: {} {}", row.code, row.cause, row.next))
            .collect::<Vec<_>>()
            .join("\n\n");
        let examples: Map<String, Value> = rows.iter().map(|row| (row.code.to_owned(), example(row))).collect();
        let mut headers = common_headers();
        match status {
            401 => headers["WWW-Authenticate"] = header("WwwAuthenticate"),
            405 => headers["Allow"] = header("Allow"),
            409 | 429 | 503 => headers["Retry-After"] = header("RetryAfter"),
            415 => headers["Accept"] = header("Accept"),
            _ => {}
        }
        let content = json!({"schema": {"$ref": "#/components/schemas/Error"}, "examples": examples});
        responses.insert(
            format!("Problem{status}"),
            json!({"description": description, "headers": headers, "content": {"application/json": content}}),
        );
    }
    Value::Object(responses)
}

fn example(Refusal { kind, code, cause, next, .. }: &Refusal) -> Value {
    let error =
        json!({"type": kind, "code": code, "message": cause, "request_id": "req_0190d0f27c3a7cc08000000000000000"});
    json!({"summary": cause, "description": next, "value": {"error": error}})
}

/// The parameter `pace`: whether a long response leaves the processor to other requests.
pub(crate) fn pace() -> Value {
    let mut schema = shapes::word("Pace", &["gentle", "full"]);
    schema["default"] = json!("gentle");
    query("pace", "`full` ends sooner, but slows down the requests that the server answers at the same time.", schema)
}

/// An operation that needs no key: its name, its summary, and the media type and schema of its reply.
pub(crate) fn open_operation(id: &str, summary: &str, media: &str, schema: Value) -> Value {
    let ok = json!({"description": "Done.", "headers": {"Request-Id": header("RequestId"), "Service-Version": header("ServiceVersion")}, "content": {media: {"schema": schema}}});
    let responses = responses_of(&ok, &["405", "500"]);
    json!({"operationId": id, "tags": ["Service"], "summary": summary, "description": format!("{summary}. No key is needed."), "security": [], "responses": responses})
}

/// A 200 and these problems.
pub(crate) fn responses_of(ok: &Value, problems: &[&str]) -> Value {
    let mut responses = json!({"200": ok});
    for status in problems {
        responses[*status] = problem(status);
    }
    responses
}

/// The response with this status.
pub(crate) fn problem(status: &str) -> Value {
    json!({"$ref": format!("#/components/responses/Problem{status}")})
}

/// A JSON body with an example.
pub(crate) fn json_body(required: bool, schema: Value, example: Value) -> Value {
    json!({"required": required, "content": {"application/json": {"schema": schema, "example": example}}})
}

/// The body of an action: these members, and which of them it must have.
pub(crate) fn action_body(properties: Value, required: &[&str], example: Value) -> Value {
    let mut schema = json!({"type": "object", "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["properties"] = properties;
    json_body(!required.is_empty(), schema, example)
}

/// The body of a rotation.
pub(crate) fn rotation_body(max: i64, description: &str) -> Value {
    let seconds = described(shapes::integer(0, max), description);
    action_body(json!({"overlap_seconds": seconds}), &[], json!({"overlap_seconds": 3600}))
}

/// A resource with a member that only the response to its creation has.
pub(crate) fn showing_once(schema: &str, member: &str, description: &str) -> Value {
    let secret = shapes::text(&format!("{description} It is shown here and never again; absent on a replay."));
    let resource = json!({"$ref": format!("#/components/schemas/{schema}")});
    json!({"allOf": [resource, {"type": "object", "properties": {member: secret}}]})
}
