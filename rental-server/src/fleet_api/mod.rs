//! Requests with an API key: who asks, whether they may, how often, and only then what for.

use crate::http::HeaderName;
use crate::{
    access::Confirming,
    access::gate::Pass,
    access::limiter::{Limit, Verdict},
    http::{
        call::{BodyStream, Call},
        reply::{Problem, Reply},
    },
    objects::{Handled, collection, create, get, list, presented, read, update},
    routes::{Action, Found},
    state::App,
};
use bytes::Bytes;
use rental_core::{
    error::Error,
    operation::Edge,
    resources::{Collection, organization::Organization},
    store::Store,
};

/// Serves a request that needs an API key.
pub(crate) async fn with_key<B: BodyStream>(app: &App, found: &Found<'_, '_>, call: &Call, body: B) -> Handled {
    let mut request =
        Keyed { found, call, collection: collection(found)?, body: Some(body), read: Ok(Bytes::new()), verdict: None };
    let presented = presented(call)?;
    loop {
        let (pass, confirm) = app.gate.open(app.store(), presented, call.moment.now()).await?;
        if !confirm {
            return request.handle(app, app.store(), &pass).await;
        }
        let store = Confirming::new(app.store(), &pass);
        let handled = request.handle(app, &store, &pass).await;
        if store.holds().await.map_err(Error::from)? {
            return handled;
        }
        // Another server has changed the key or the organization; nothing was committed or answered.
        app.gate.forget_pass(presented, &pass);
    }
}

/// A request with an API key, which may be handled more than once.
struct Keyed<'r, B> {
    found: &'r Found<'r, 'r>,
    call: &'r Call,
    collection: &'static Collection,
    /// The body, until it is read.
    body: Option<B>,
    /// What the body came to once it was read.
    read: Result<Bytes, Problem>,
    /// What the rate limit says, once it was asked.
    verdict: Option<(Limit, Verdict)>,
}

impl<B: BodyStream> Keyed<'_, B> {
    async fn handle(&mut self, app: &App, store: &dyn Store, pass: &Pass) -> Handled {
        let call = self.call;
        let writes = matches!(self.found.endpoint.action, Action::Create | Action::Update);
        pass.principal.authorize(writes, call.moment.now())?;
        if let (Some(limit), None) = (app.limits.rate, &self.verdict) {
            let nanos = u64::try_from(app.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.verdict = Some((limit, limit.take(&pass.usage.bucket, nanos)));
        }
        if let Some((_, Verdict { allowed: false, wait_secs, .. })) = self.verdict {
            let refused = Problem::TooManyRequests { retry_after: wait_secs };
            return Ok(with_limits(Reply::problem(&refused, call.request_id.as_str()), self.verdict));
        }
        let organization = &pass.principal.organization;
        let handled = match self.found.endpoint.action {
            Action::List => list(store, organization.id, self.collection, call).await,
            Action::Get => get(store, organization.id, self.collection, self.found.id, call).await,
            // Boxed, so that the future of a read stays small.
            _ => Box::pin(self.write(app, store, organization)).await,
        };
        match self.verdict {
            None => handled,
            Some(_) => {
                let reply = handled.unwrap_or_else(|problem| Reply::problem(&problem, call.request_id.as_str()));
                Ok(with_limits(reply, self.verdict))
            }
        }
    }

    async fn write(&mut self, app: &App, store: &dyn Store, organization: &Organization) -> Handled {
        if let Some(body) = self.body.take() {
            self.read = read(app, self.call, body).await;
        }
        let bytes = self.read.clone()?;
        let target = (store, organization, self.collection);
        match self.found.endpoint.action {
            Action::Create => create(app, target, self.call, &bytes).await,
            _ => update(app, target, self.found.id, self.call, &bytes).await,
        }
    }
}

/// The `RateLimit` fields (draft-ietf-httpapi-ratelimit-headers).
fn with_limits(reply: Reply, verdict: Option<(Limit, Verdict)>) -> Reply {
    let Some((limit, verdict)) = verdict else { return reply };
    reply.with(HeaderName::from_static("ratelimit-policy"), &format!("\"default\";q={};w=2", limit.burst())).with(
        HeaderName::from_static("ratelimit"),
        &format!("\"default\";r={};t={}", verdict.remaining, verdict.wait_secs),
    )
}
