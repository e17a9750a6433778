//! The limit of the requests of an organization: all its API keys share it, at each server.

use crate::{
    access::{
        authentication::Pass,
        limiter::{Limit, RateLimitStatus},
    },
    http::{
        HeaderName,
        call::Call,
        reply::{Problem, Reply},
    },
    state::App,
};

/// Takes a request of the organization; the response if it has too many.
pub(super) fn refusal(app: &App, call: &Call, pass: &Pass) -> Option<Reply> {
    let limit = pass.request_limit?;
    let status = limit.take(&pass.tenant.bucket, app.nanos_since_start());
    if status.allowed {
        return None;
    }
    app.tenants.refused("requests");
    let RateLimitStatus { wait_secs: retry_after, .. } = status;
    let problem = Problem::TooManyRequests { whose: "of this organization, with all its keys", retry_after };
    Some(with_limits(Reply::problem(&problem, call.request_id.as_str()), "organization", Some((limit, status))))
}

/// The `RateLimit` fields (draft-ietf-httpapi-ratelimit-headers).
pub(super) fn with_limits(reply: Reply, policy: &str, rate_limit: Option<(Limit, RateLimitStatus)>) -> Reply {
    let Some((limit, rate_limit)) = rate_limit else { return reply };
    reply.with(HeaderName::from_static("ratelimit-policy"), &format!("\"{policy}\";q={};w=2", limit.burst())).with(
        HeaderName::from_static("ratelimit"),
        &format!("\"{policy}\";r={};t={}", rate_limit.remaining, rate_limit.wait_secs),
    )
}
