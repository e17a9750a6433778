//! Sends an example event to an endpoint, once and immediately.

use crate::{
    edge,
    endpoint::{Endpoint, Request, post},
    guard::Operator,
    http::reply::{Handled, Reply},
    operator::webhook_endpoints::intents::load,
    reference::schema::{example_object, outcome},
    webhooks::{
        Hooks,
        send::{Message, span_of},
    },
};
use rental_core::{
    error::Error,
    operations::Edge,
    resources::{
        event::{self, EVENT_TYPES},
        spec_of, webhook_endpoint,
    },
    rows::key,
    value::{EndpointId, EventId, Timestamp, url},
    webhooks::{secret::Sealed, signature},
};
use serde_json::{Value, json};

/// The endpoint of this file.
pub(super) fn endpoint() -> Endpoint {
    post("/admin/v1/webhook_endpoints/{id}/test")
        .about(&webhook_endpoint::SPEC, "testWebhookEndpoint", "Test webhook endpoint")
        .says("Makes one signed attempt with an example event and returns its result. It is not recorded.")
        .parameters(Vec::new())
        .replies("WebhookTest")
        .defines("WebhookTest", schema())
        .operator(|request| Box::pin(test(request)))
}

fn schema() -> Value {
    outcome(&[
        ("object", "string"),
        ("endpoint_id", "uuid"),
        ("event_type", "string"),
        ("delivered", "boolean"),
        ("duration_ms", "integer"),
    ])
}

/// Makes one signed attempt with an example event. It is not recorded.
async fn test(request: Request<'_, Operator>) -> Handled {
    let (Request { app, id, .. }, _) = request.read().await?;
    if !app.hooks.settings.send {
        return Err(Error::Conflict("This server sends no webhooks: it runs with --no-webhooks.".into()).into());
    }
    let (_, endpoint) = load(app.store(), id).await?;
    let url = url::parse(&endpoint.url).map_err(Error::Internal)?;
    let clock = edge::FixedClock::new();
    let wanted = EVENT_TYPES.iter().find(|event| endpoint.wants(event.name)).unwrap_or(&EVENT_TYPES[0]);
    let example = spec_of(wanted.object()).map(example_object).unwrap_or_default();
    let event_id = EventId::from_uuid(clock.new_id());
    let body = event::body(event_id, wanted.event_type, clock.now(), example.to_string().as_bytes());
    let secrets = secrets(&app.hooks, endpoint.id, clock.now()).await?;
    let signature = signature::header(secrets.iter().map(String::as_bytes), clock.now().seconds(), &body);
    let message = Message {
        url: &url,
        event_id: event_id.to_string(),
        event_type: wanted.name,
        signature,
        trace: span_of(event_id, &app.hooks.settings),
        body,
    };
    let (ending, attempt) = app.hooks.sender.send(message).await;
    let result = json!({
        "object": "webhook_test", "endpoint_id": endpoint.id, "event_type": wanted.name, "delivered": ending.is_success(),
        "duration_ms": attempt.duration_ms, "status": attempt.status, "error": attempt.error, "response": attempt.response,
    });
    Ok(Reply::json(result.to_string().into()))
}

async fn secrets(hooks: &Hooks, id: EndpointId, now: Timestamp) -> Result<Vec<String>, Error> {
    let place = [key::secrets(id)];
    let Some(record) = hooks.store().get(&place).await?.pop().flatten() else { return Ok(Vec::new()) };
    let sealed: Sealed =
        rental_core::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
    let open = hooks.keys.ring().open_all(id, &sealed).map_err(|_| {
        Error::Conflict(
            "The secret of this endpoint was sealed with another master key. Start the server with that key, or \
             rotate the secret."
                .into(),
        )
    })?;
    Ok(open.into_iter().filter(|(_, end)| end.is_none_or(|end| end > now)).map(|(text, _)| text).collect())
}
