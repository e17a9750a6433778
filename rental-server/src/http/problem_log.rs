//! The line that the log gets for a request that was not served.

use crate::{
    damaged_rows::DamagedRows,
    http::{call::Call, problem::Problem},
};
use rental_core::{error::Error, resources::row_words::damage_in_words};

/// Logs why a request failed or was refused; the request id leads from the response to this line. Counts a damaged row, which is
/// an error only the first time that it is found.
pub(super) fn log_problem(problem: &Problem, call: &Call, damaged: &DamagedRows) {
    let (request_id, method, path) = (call.request_id.as_str(), &call.method, &*call.shown_path());
    let (client, client_request_id, trace_id) = (call.client_address(), call.client_request_id(), call.trace_id());
    match problem {
        Problem::Core(Error::Internal(detail)) => {
            tracing::error!(request_id, client_request_id, trace_id, %client, %method, path, detail, "a request failed")
        }
        Problem::Core(Error::Damaged(row)) => {
            let (is_new, row) = (damaged.count(row), damage_in_words(row));
            if is_new {
                tracing::error!(request_id, client_request_id, trace_id, %client, %method, path, row, "a request failed: a row of the store is damaged")
            } else {
                tracing::debug!(request_id, client_request_id, trace_id, %client, %method, path, row, "a request failed again: a row of the store is damaged")
            }
        }
        Problem::Core(Error::Unavailable(detail)) | Problem::NotReady { detail, .. } => {
            tracing::warn!(request_id, client_request_id, trace_id, %client, %method, path, detail, "a request was turned away")
        }
        Problem::TaskFailing(task) => {
            tracing::warn!(request_id, client_request_id, trace_id, %client, %method, path, task, "a request was turned away")
        }
        other => {
            tracing::debug!(request_id, client_request_id, trace_id, %client, %method, path, problem = ?other, "a request was refused")
        }
    }
}
