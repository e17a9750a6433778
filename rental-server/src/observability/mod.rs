//! Health, readiness and metrics: pages that need no key.

use crate::{
    edge,
    endpoint::{Endpoint, Request, get},
    guard::Open,
    http::{
        header,
        reply::{Handled, Problem, Reply},
    },
    metrics::exposition::Exposition,
    reference::parts::open_operation,
};
use bytes::Bytes;
use rental_core::{error::Error, store::StoreError};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// The address of a database is for operators only.
const STORE_AWAY: &str =
    "The store of this server does not answer. Its log and `rental-cli doctor` with the admin token say why.";

/// The endpoints of this folder.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let json = "application/json";
    let mut readiness = open_operation("getReadiness", "Whether the server can serve", json, readiness_schema());
    readiness["responses"]["503"] = json!({"$ref": "#/components/responses/Problem503"});
    let health = open_operation("getHealth", "Whether the process is alive", json, status("ok"));
    let text = json!({"type": "string"});
    let summary = "Metrics as text, or as OpenMetrics for clients whose `Accept` names it";
    let mut metrics = open_operation("getMetrics", summary, "text/plain", text.clone());
    metrics["responses"]["200"]["content"]["application/openmetrics-text"] = json!({"schema": text});
    vec![
        get("/healthz").documented(health).open(|_| Box::pin(async { Ok(word("ok")) })),
        get("/readyz").documented(readiness).open(|request| Box::pin(ready(request))),
        get("/metrics").documented(metrics).open(|request| Box::pin(page(request))),
    ]
}

fn word(status: &str) -> Reply {
    Reply::json(Bytes::from(format!("{{\"status\":\"{status}\"}}")))
}

fn status(word: &str) -> Value {
    json!({"type": "object", "required": ["status"], "properties": {"status": {"type": "string", "const": word}}})
}

fn readiness_schema() -> Value {
    let words = json!({
        "type": "string",
        "enum": ["ready", "read_only"],
        "description": "`read_only` while writes are refused with `storage_full`.",
    });
    json!({"type": "object", "required": ["status"], "properties": {"status": words}})
}

/// A server whose disk is full is ready: its reads should still reach it behind a load balancer.
async fn ready(request: Request<'_, Open>) -> Handled {
    if request.app.draining.load(Ordering::Relaxed) {
        return Err(Problem::NotReady { message: "This server is shutting down.", detail: "draining".into() });
    }
    if edge::jump().is_some() {
        return Err(Error::ClockJumped.into());
    }
    let (store, app) = (request.app.store().ready().await, request.app);
    Ok(word(readiness(store, app.hooks.space.refuses_clients(), app.supervisor.failing())?))
}

/// The readiness of a server with this state of its store, on a full disk or not, and with a task that keeps dying or none.
fn readiness(
    store: Result<(), StoreError>,
    full: bool,
    failing: Option<&'static str>,
) -> Result<&'static str, Problem> {
    let read_only = match store {
        Err(StoreError::NoRoom) => true,
        state => state.map(|()| full).map_err(|error| match Error::from(error) {
            Error::Unavailable(detail) => Problem::NotReady { message: STORE_AWAY, detail },
            other => other.into(),
        })?,
    };
    match failing {
        Some(task) => Err(Problem::TaskFailing(task)),
        None if read_only => Ok("read_only"),
        None => Ok("ready"),
    }
}

/// Reads no row of the store: what is counted there is counted by background tasks.
async fn page(request: Request<'_, Open>) -> Handled {
    let exposition = Exposition::accepted(request.call.single(&header::ACCEPT).unwrap_or_default());
    let page = request.app.metrics.page(exposition);
    Ok(Reply::json(page.into()).with(header::CONTENT_TYPE, exposition.content_type()).with(header::VARY, "Accept"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::problem::render;

    #[test]
    fn a_server_is_ready_unless_its_store_or_a_task_fails() {
        let failed = || Err(StoreError::Unavailable("gone".into()));
        assert_eq!(readiness(Ok(()), false, None).ok(), Some("ready"));
        assert_eq!(readiness(Ok(()), true, None).ok(), Some("read_only"));
        assert_eq!(readiness(Err(StoreError::NoRoom), false, None).ok(), Some("read_only"));
        for (store, full) in [(Ok(()), false), (Ok(()), true), (Err(StoreError::NoRoom), false)] {
            assert!(matches!(readiness(store, full, Some("relay")), Err(Problem::TaskFailing("relay"))));
        }
        assert!(readiness(failed(), false, None).is_err() && readiness(failed(), true, Some("relay")).is_err());
    }

    #[test]
    fn a_task_that_keeps_dying_is_named_in_the_503() {
        let (status, body) = render(&Problem::TaskFailing("relay"), "req_1");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((status.as_u16(), body["error"]["code"].as_str()), (503, Some("service_unavailable")));
        assert!(body["error"]["message"].as_str().is_some_and(|text| text.contains("`relay`")), "{body}");
    }
}
