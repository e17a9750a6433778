//! Writes over HTTP: each is committed once for its idempotency key, together with the stored response.

use crate::{
    access::quotas::{self, WithinQuota},
    audit::Audited,
    disk::WithinSpace,
    http::{
        HeaderName,
        call::Call,
        header,
        problem::{Problem, render},
        reply::{Reply, etag},
    },
    state::App,
};
use rental_core::{
    error::{Error, KeyProblem},
    operations::{self, Intent, Written, idempotency::IdempotencyKey},
    resources::organization::{self, Organization},
    schema::{NOTICE_HEADER, Notice},
    store::Store,
};
use std::sync::OnceLock;

/// Performs a write, once for each idempotency key.
pub(crate) async fn write(
    app: &App,
    organization: &Organization,
    call: &Call,
    body: &[u8],
    intent: &dyn Intent,
) -> Result<Reply, Problem> {
    write_to(app.store(), app, organization, call, body, intent).await
}

/// The same on a given store, which may revalidate the API key. While the disk has too little room, only operators write:
/// what they delete and revoke makes room. The quotas of an organization are for its API keys, too: operators set them.
pub(crate) async fn write_to(
    store: &dyn Store,
    app: &App,
    organization: &Organization,
    call: &Call,
    body: &[u8],
    intent: &dyn Intent,
) -> Result<Reply, Problem> {
    let idempotency_key = idempotency_key(call, body)?;
    if !call.clock.is_trusted() {
        return Err(Error::ClockJumped.into());
    }
    let running = idempotency_key
        .as_ref()
        .map(|idempotency_key| app.begin(organization.id, &idempotency_key.name))
        .transpose()?;
    let rendered = |error: &Error| {
        let (status, body) = render(&Problem::Core(error.clone()), call.request_id.as_str());
        (status.as_u16(), body)
    };
    let audited = Audited { intent, organization: organization.id, call, body };
    let within_space = WithinSpace { store, space: &app.hooks.space };
    let within_quota = WithinQuota {
        store: &within_space,
        used: app.tenants.of(organization.id).used(),
        limits: quotas::Limits::of(organization, &app.tenants.defaults),
        exceeded: OnceLock::new(),
    };
    let (intent, store): (&dyn Intent, &dyn Store) = match call.admitted.get() {
        Some(_) => (&audited, store),
        None => (intent, &within_quota),
    };
    let outcome =
        operations::write(store, &call.clock, organization.id, idempotency_key.as_ref(), intent, (200, &rendered))
            .await;
    drop(running);
    let outcome = outcome.map_err(|error| match error {
        // The organization of an API key was deleted while the request was handled: so was the key.
        Error::NotFound { object } if object == organization::SPEC.object && call.admitted.get().is_none() => {
            Error::Unauthenticated(KeyProblem::Invalid)
        }
        error => error,
    });
    if let Some(exceeded) = within_quota.exceeded.get() {
        app.tenants.refused(exceeded.quota);
        return Err(Problem::QuotaExceeded(*exceeded));
    }
    let Written { status, body, revision, replayed, announced, notices, .. } = outcome?;
    if announced {
        app.hooks.committed();
    }
    let mut reply = Reply::stored(status, body);
    if let Some(revision) = revision {
        reply = reply.with(header::ETAG, &etag(revision));
    }
    if !notices.is_empty() {
        let list = notices.iter().map(Notice::to_string).collect::<Vec<_>>().join(", ");
        reply = reply.with(HeaderName::from_static(NOTICE_HEADER), &list);
    }
    if replayed {
        app.metrics.replays.inc();
        reply = reply.with(HeaderName::from_static("idempotent-replayed"), "true");
    }
    Ok(reply)
}

fn idempotency_key(call: &Call, body: &[u8]) -> Result<Option<IdempotencyKey>, Problem> {
    let name = HeaderName::from_static("idempotency-key");
    let bad = |rule| Problem::BadHeader { name: "Idempotency-Key", rule };
    if !call.headers().contains_key(&name) {
        return Ok(None);
    }
    let value = call.single(&name).map_err(|()| bad("must be sent once, as visible ASCII characters"))?.unwrap_or("");
    IdempotencyKey::new(value.as_bytes(), call.method.as_str(), call.path(), body).map(Some).map_err(bad)
}
