//! The limit of the requests of an organization: all its API keys share it, at each server.

use super::with_limits;
use crate::{
    access::{authentication::Pass, limiter::RateLimitStatus},
    http::{
        call::Call,
        reply::{Problem, Reply},
    },
    state::App,
};

/// Takes a request of the organization; the response if it has too many.
pub(super) fn refusal(app: &App, call: &Call, pass: &Pass) -> Option<Reply> {
    let limit = pass.request_limit?;
    let nanos = u64::try_from(call.at.saturating_duration_since(app.started).as_nanos()).unwrap_or(u64::MAX);
    let status = limit.take(&pass.tenant.bucket, nanos);
    if status.allowed {
        return None;
    }
    app.tenants.refused("requests");
    let RateLimitStatus { wait_secs: retry_after, .. } = status;
    let problem = Problem::TooManyRequests { whose: "of this organization, with all its keys", retry_after };
    Some(with_limits(Reply::problem(&problem, call.request_id.as_str()), "organization", Some((limit, status))))
}
