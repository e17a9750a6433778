//! Operators read events and send them again.

use crate::{
    endpoint::{BodySchema, Endpoint, Request, post},
    guard::Operator,
    http::reply::Handled,
    objects::write::write,
    operator::{bodies, collections},
    reference::parts,
    webhooks::{Hooks, relay},
};
use rental_core::{
    error::{Error, FieldCode},
    operations::{self, Edge, Intent, Prepared, Preparing},
    resources::{event, organization::Organization},
    store::{Batch, Record, Store},
    value::{EndpointId, EventId},
    webhooks::fan_out,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The resource's endpoints.
pub(super) fn resource() -> Vec<Endpoint> {
    vec![collections::list_of_organization(&event::SPEC), collections::retrieve_of_any(&event::SPEC)]
}

/// Actions on an event.
pub(super) fn actions() -> Vec<Endpoint> {
    let only = json!({"type": "string", "format": "uuid", "description": "Only to this endpoint."});
    let body = parts::action_body(json!({"endpoint_id": only}), &[], json!({}));
    let resend = post("/admin/v1/events/{id}/resend")
        .about(&event::SPEC, "resendEvent", "Resend event")
        .says("Makes new deliveries of the event: to one endpoint, or to all of its organization that want it.")
        .takes(BodySchema::Own(body))
        .replies("Resending")
        .defines("Resending", schema())
        .operator(|request| Box::pin(resend(request)));
    vec![resend]
}

fn schema() -> Value {
    let ids = json!({
        "type": "array", "items": {"type": "string", "format": "uuid"},
        "description": "The endpoints of these deliveries that are disabled: their deliveries wait until they are enabled.",
    });
    let own =
        json!({"type": "object", "required": ["disabled_endpoint_ids"], "properties": {"disabled_endpoint_ids": ids}});
    json!({"allOf": [{"$ref": "#/components/schemas/DeliveryList"}, own]})
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResendBody {
    endpoint_id: Option<String>,
}

/// A new delivery of a stored event, to one endpoint or to all that want it.
async fn resend(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let asked: ResendBody = bodies::optional(&body, "`endpoint_id`")?;
    let organization = operations::owner_of(app.store(), &event::SPEC, id).await?;
    let intent = Resend { hooks: &app.hooks, organization: &organization, id, endpoint: asked.endpoint_id.as_deref() };
    let reply = write(app, &organization, call, &body, &intent).await?;
    let endpoints = relay::endpoints_of(&app.hooks, organization.id).await?;
    app.hooks.wake_anywhere(endpoints.into_iter().map(|endpoint| endpoint.id)).await?;
    Ok(reply)
}

struct Resend<'a> {
    hooks: &'a Hooks,
    organization: &'a Organization,
    id: &'a str,
    endpoint: Option<&'a str>,
}

impl Intent for Resend<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let record = operations::get(store, self.organization.id, &event::SPEC, self.id).await?;
            let (event_id, kind) = event_of(&record)?;
            let all = relay::endpoints_of(self.hooks, self.organization.id).await?;
            let targets: Vec<_> = match self.endpoint.map(EndpointId::parse) {
                None => all.iter().filter(|endpoint| endpoint.wants(&kind)).collect(),
                Some(id) => all.iter().filter(|endpoint| Some(endpoint.id) == id).collect(),
            };
            if self.endpoint.is_some() && targets.is_empty() {
                return Err(Error::field(
                    "endpoint_id",
                    FieldCode::ResourceMissing,
                    "names no webhook endpoint of the event's organization",
                ));
            }
            let mut batch = Batch::default();
            let disabled: Vec<_> = targets.iter().filter(|one| !one.is_enabled()).map(|one| one.id).collect();
            let mut made = Vec::new();
            for endpoint in targets {
                made.push(fan_out::add(&mut batch, self.organization.id, endpoint.id, (event_id, &kind), edge)?);
            }
            let body = json!({
                "object": "list", "has_more": false, "next_cursor": null, "disabled_endpoint_ids": disabled, "data": made,
            });
            Ok(Prepared {
                batch,
                body: body.to_string().into(),
                revision: record.revision,
                object: None,
                asks: Vec::new(),
            })
        })
    }
}

/// The id and the type of a stored event.
pub(super) fn event_of(record: &Record) -> Result<(EventId, String), Error> {
    #[derive(Deserialize)]
    struct Head {
        id: EventId,
        r#type: String,
    }
    let head: Head =
        rental_core::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
    Ok((head.id, head.r#type))
}
