//! `/v1`: the seven resources, for API keys. Who asks, whether they may, how often, and only then what for.

use crate::{
    access::{
        Confirming,
        gate::Pass,
        limiter::{Limit, Verdict},
    },
    endpoint::{self, Endpoint, Read, Write, presented, read},
    http::{
        HeaderName,
        call::{Body, Call},
        reply::{Handled, Problem, Reply},
    },
    objects::{create, get, list, update},
    state::App,
};
use bytes::Bytes;
use rental_core::{
    error::Error,
    operations::{Edge, access::Access},
    resources::{Collection, organization::Organization, registry},
    store::Store,
};

/// The public table (spec, Endpoints).
static COLLECTIONS: [Collection; registry::API.len()] = registry::API;

/// The collection of a public resource.
pub(crate) fn collection(object: &str) -> Option<&'static Collection> {
    COLLECTIONS.iter().find(|row| row.spec.object == object)
}

/// Every operation of the public API.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    COLLECTIONS.iter().flat_map(of).collect()
}

fn of(row: &'static Collection) -> impl Iterator<Item = Endpoint> {
    let (all, one) = (format!("/v1/{}", row.spec.plural), format!("/v1/{}/{{id}}", row.spec.plural));
    let list = row.list.then(|| endpoint::list(&all, row.spec).key_read(Read::List(row)));
    let create = row.create.is_some().then(|| {
        let create = endpoint::create(&all, row.spec);
        let create = match row.spec.object {
            "rental" => create.says("A rental in `APPROVED` or `ACTIVE` with both dates holds its vehicle for the nights from pickup to return: a second one is refused with 409."),
            _ => create,
        };
        create.key_write(Write::Create(row))
    });
    let get = row.get.then(|| endpoint::retrieve(&one, row.spec).key_read(Read::Get(row)));
    let update = row.update.is_some().then(|| {
        let update = endpoint::update(&one, row.spec);
        let update = match row.spec.object {
            "rental" => update.says(
                "Setting `status` to `COMPLETED` or `CANCELLED` sends the matching webhook and frees the vehicle.",
            ),
            "toll" | "violation" => update.says("Attaches it to the customer who pays. Nothing else can be changed."),
            _ => update,
        };
        update.key_write(Write::Update(row))
    });
    [list, create, get, update].into_iter().flatten()
}

/// What a request with an API key asks for.
#[derive(Clone, Copy)]
pub(crate) enum Asked {
    Read(Read),
    Write(Write),
}

/// Serves a request that needs an API key.
pub(crate) async fn with_key(app: &App, call: &Call, (asked, id): (Asked, &str), body: Body<'_>) -> Handled {
    let mut request = Keyed { call, asked, id, body: Some(body), read: Ok(Bytes::new()), verdict: None };
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
struct Keyed<'r> {
    call: &'r Call,
    asked: Asked,
    id: &'r str,
    /// The body, until it is read.
    body: Option<Body<'r>>,
    /// What the body came to once it was read.
    read: Result<Bytes, Problem>,
    /// What the rate limit says, once it was asked.
    verdict: Option<(Limit, Verdict)>,
}

impl Keyed<'_> {
    async fn handle(&mut self, app: &App, store: &dyn Store, pass: &Pass) -> Handled {
        let call = self.call;
        let access = if matches!(self.asked, Asked::Write(_)) { Access::Write } else { Access::Read };
        pass.principal.authorize(access, call.moment.now())?;
        if let (Some(limit), None) = (app.limits.rate, &self.verdict) {
            let nanos = u64::try_from(app.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.verdict = Some((limit, limit.take(&pass.usage.bucket, nanos)));
        }
        if let Some((_, Verdict { allowed: false, wait_secs, .. })) = self.verdict {
            let refused = Problem::TooManyRequests { retry_after: wait_secs };
            return Ok(with_limits(Reply::problem(&refused, call.request_id.as_str()), self.verdict));
        }
        let organization = &pass.principal.organization;
        let handled = match self.asked {
            Asked::Read(Read::List(collection)) => list(store, organization.id, collection.spec, call).await,
            Asked::Read(Read::Get(collection)) => get(store, organization.id, collection.spec, self.id, call).await,
            // Boxed, so that the future of a read stays small.
            Asked::Write(write) => Box::pin(self.write(write, app, store, organization)).await,
        };
        match self.verdict {
            None => handled,
            Some(_) => {
                let reply = handled.unwrap_or_else(|problem| Reply::problem(&problem, call.request_id.as_str()));
                Ok(with_limits(reply, self.verdict))
            }
        }
    }

    async fn write(&mut self, write: Write, app: &App, store: &dyn Store, organization: &Organization) -> Handled {
        if let Some(mut body) = self.body.take() {
            self.read = read(app, self.call, &mut body).await;
        }
        let bytes = self.read.clone()?;
        match write {
            Write::Create(collection) => create(app, (store, organization, collection), self.call, &bytes).await,
            Write::Update(collection) => {
                update(app, (store, organization, collection), self.id, self.call, &bytes).await
            }
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
