//! Enables the endpoints of all organizations that failures disabled since a time.

use crate::{
    endpoint::{BodySchema, Endpoint, Request, post},
    guard::Operator,
    http::reply::Handled,
    objects::write::write,
    operator::bodies,
    reference::{
        parts,
        schema::outcome,
        shapes::{cursor, named},
    },
};
use rental_core::{
    operations::{Edge, Intent, Prepared, Preparing},
    resources::{
        Resource,
        organization::{Organization, SYSTEM},
        parse, to_json,
        webhook_endpoint::{self, DISABLED_BY_FAILURES, WebhookEndpoint},
    },
    rows::key,
    store::{Batch, Order, Record, Span, Store, after, key_of},
    value::{EndpointId, Timestamp},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Most endpoints that one request reads.
const PAGE: usize = 200;

/// The endpoint of this file.
pub(super) fn endpoint() -> Endpoint {
    post("/admin/v1/webhook_endpoints/enable")
        .about(&webhook_endpoint::SPEC, "enableWebhookEndpoints", "Enable webhook endpoints that failures disabled")
        .says("Enables the endpoints of all organizations that 20 failures in a row disabled since a time, and lists their ids. Endpoints that an operator disabled stay disabled. One request reads one page of endpoints.")
        .takes(BodySchema::Own(body()))
        .replies("Enabling")
        .defines("Enabling", schema())
        .operator(|request| Box::pin(enable(request)))
}

fn body() -> Value {
    let since =
        json!({"type": "string", "format": "date-time", "description": "Endpoints disabled at this time or later."});
    let dry_run = json!({"type": "boolean", "description": "Only list the endpoints. Default: `false`."});
    let properties = json!({"disabled_since": since, "dry_run": dry_run, "starting_after": cursor()});
    parts::action_body(
        properties,
        &["disabled_since"],
        json!({"disabled_since": "2026-05-05T00:00:00Z", "dry_run": true}),
    )
}

fn schema() -> Value {
    let mut schema = outcome(&[
        ("object", "string"),
        ("dry_run", "boolean"),
        ("examined", "integer"),
        ("enabled", "array"),
        ("has_more", "boolean"),
    ]);
    let members = [("id", "uuid"), ("organization_id", "uuid"), ("disabled_at", "date-time")];
    schema["properties"]["enabled"]["items"] = named("EnabledEndpoint", outcome(&members));
    schema["properties"]["enabled"]["description"] = "The endpoints that were enabled, or would be.".into();
    schema
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnableBody {
    disabled_since: Option<String>,
    #[serde(default)]
    dry_run: bool,
    starting_after: Option<String>,
}

/// Enables the endpoints of one page.
async fn enable(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, .. }, body) = request.read().await?;
    let asked: EnableBody = bodies::optional(&body, "`disabled_since`, `dry_run` and `starting_after`")?;
    let since = bodies::bound("disabled_since", asked.disabled_since.as_deref())?;
    let after = bodies::cursor(asked.starting_after.as_deref())?.map(EndpointId::from_uuid);
    let intent = Enable { since, after, dry_run: asked.dry_run };
    let reply = write(app, &Organization::system(), call, &body, &intent).await?;
    for id in if asked.dry_run { Vec::new() } else { ids_in(&reply.body) } {
        app.hooks.endpoint_changed(id);
    }
    Ok(reply)
}

/// The ids of the endpoints that a reply lists.
fn ids_in(body: &[u8]) -> Vec<EndpointId> {
    let object: Value = rental_core::value::read_json(body).unwrap_or_default();
    let rows = object["enabled"].as_array().map_or(&[][..], Vec::as_slice);
    rows.iter().filter_map(|row| EndpointId::parse(row["id"].as_str()?)).collect()
}

struct Enable {
    since: Timestamp,
    after: Option<EndpointId>,
    dry_run: bool,
}

impl Enable {
    /// The endpoint in a row, if it is to be enabled. A damaged row is none.
    fn selected(&self, row: &Record) -> Option<WebhookEndpoint> {
        let endpoint: WebhookEndpoint = parse(&row.key, &row.value).ok()?;
        let by_failures =
            endpoint.disabled_reason.as_ref().is_some_and(|reason| reason.as_str() == DISABLED_BY_FAILURES);
        let selected = !endpoint.is_enabled() && by_failures && endpoint.disabled_at >= Some(self.since);
        selected.then_some(endpoint)
    }
}

impl Intent for Enable {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let prefix = key::records(SYSTEM, &webhook_endpoint::SPEC);
            let mut span = Span::newest_first(&prefix);
            span.order = Order::Ascending;
            if let Some(last) = self.after {
                span.from = after(&WebhookEndpoint::key(SYSTEM, last));
            }
            let page = store.scan(&span, PAGE).await?;
            let more = page.len() == PAGE;
            let cursor = page.last().and_then(|row| key_of(row).id()).filter(|_| more);
            let examined = page.len();
            let (mut batch, mut enabled) = (Batch::default(), Vec::new());
            for row in page.into_iter().flatten() {
                let Some(mut endpoint) = self.selected(&row) else { continue };
                enabled.push(json!({
                    "id": endpoint.id, "organization_id": endpoint.organization_id, "disabled_at": endpoint.disabled_at,
                }));
                if !self.dry_run {
                    endpoint.enable(edge.now());
                    batch.replace(row.key, row.revision, to_json(&endpoint)?);
                }
            }
            let body = json!({
                "object": "webhook_endpoint_enabling", "dry_run": self.dry_run, "examined": examined, "enabled": enabled,
                "has_more": more, "next_cursor": cursor,
            });
            Ok(Prepared { batch, body: body.to_string().into(), revision: 1, object: None, asks: Vec::new() })
        })
    }
}
