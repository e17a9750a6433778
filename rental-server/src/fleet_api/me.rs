//! `GET /v1/me`: which organization and key a request has, and which limits apply to it.

use crate::{
    access::{authentication::Pass, quotas},
    endpoint::{Action, Endpoint, get},
    http::{
        call::Call,
        reply::{Handled, Reply},
    },
    reference::shapes::{at_least, described, id, object, text, word},
    state::App,
};
use rental_core::{
    request::page,
    resources::{
        Collection,
        api_key::{self, Scope},
        of,
        organization::{self, Organization, Plan},
    },
    schema::ResourceSpec,
};
use serde_json::{Value, json};

/// An action of API keys names a collection; this one offers nothing.
static COLLECTION: Collection = of::<Organization>().done();

pub(super) fn endpoint() -> Endpoint {
    get("/v1/me")
        .about(&organization::SPEC, "getMe", "Retrieve the organization and limits of the key")
        .says("Which organization and key the request has, and which limits apply to it. A test of a new key.")
        .without_revision()
        .replies("Me")
        .defines("Me", schema())
        .key(Action::Me, &COLLECTION)
}

fn schema() -> Value {
    let like = |spec: &ResourceSpec, field: &str| spec.field(field).map_or("", |field| field.doc).to_owned();
    let most = |what: &str| json!({"type": ["integer", "null"], "format": "int64", "minimum": 0, "description": format!("{what}; `null` for no limit.")});
    let limits = object(
        "The limits of this key and its organization.",
        json!({
            "requests_per_second": most("Requests per second of this key at each server, with a burst of twice that"),
            "organization_requests_per_second": most("Requests per second of all keys of the organization at each server, with a burst of twice that"),
            "max_objects": most("Objects that the organization may have"),
            "max_bytes": most("Bytes that the data of the organization may take"),
            "max_body_bytes": described(at_least(0), "Bytes that the body of a request may have."),
            "max_page_size": described(at_least(1), "Objects that a page of a list may have: the most that `limit` can be."),
        }),
    );
    object(
        "The organization and the key of a request.",
        json!({
            "object": {"type": "string", "const": "me", "description": "Always `me`."},
            "organization_id": id("The organization."),
            "organization_name": text("Display name of the organization."),
            "plan": described(word("Plan", Plan::WORDS), &like(&organization::SPEC, "plan")),
            "currency": {"type": "string", "pattern": "^[A-Z]{3}$", "description": "ISO 4217 currency of new amounts."},
            "time_zone": text(&like(&organization::SPEC, "time_zone")),
            "api_key_id": id("The API key."),
            "scope": described(word("ApiKeyScope", Scope::WORDS), &like(&api_key::SPEC, "scope")),
            "limits": limits,
        }),
    )
}

pub(super) fn reply(app: &App, call: &Call, pass: &Pass) -> Handled {
    page::no_parameters(call.query())?;
    let (organization, key) = (&pass.principal.organization, &pass.principal.key);
    let quotas::Limits { objects, bytes, requests } = quotas::Limits::of(organization, &app.tenants.defaults);
    let body = json!({
        "object": "me",
        "organization_id": organization.id,
        "organization_name": organization.name,
        "plan": organization.plan,
        "currency": organization.default_currency,
        "time_zone": organization.time_zone,
        "api_key_id": key.id,
        "scope": key.scope,
        "limits": {
            "requests_per_second": app.limits.rate.map(|limit| limit.per_second()),
            "organization_requests_per_second": requests,
            "max_objects": objects,
            "max_bytes": bytes,
            "max_body_bytes": app.limits.max_body,
            "max_page_size": page::MAX_LIMIT,
        },
    });
    Ok(Reply::json(body.to_string().into()))
}
