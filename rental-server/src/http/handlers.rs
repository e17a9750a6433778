//! What each row of the table does: open the gate, read the body, call the core, shape the answer.

use crate::{
    app::App,
    gate,
    http::{
        backup,
        call::{BodyStream, Call, read_body},
        export,
        reply::{Problem, Reply, etag, lists},
        write::write,
    },
    imports::{self, Kind},
    invoices::{self, Settle},
    keys,
    limiter::Verdict,
    routes::{Action, Found, Guard},
    status, suggestions,
    webhook::endpoints,
};
use bytes::Bytes;
use rental_core::{
    access::bearer,
    error::{Error, KeyProblem},
    operation::{self, Create, Edge, Update},
    page::{self, ListQuery},
    resources::{Collection, organization::Organization},
    store::{Record, Revision},
};
use uuid::Uuid;
use warp::http::{HeaderMap, HeaderName, Method, StatusCode, header};

type Handled = Result<Reply, Problem>;

/// Serves one matched request.
pub(crate) async fn handle<B: BodyStream>(app: &App, found: &Found<'_, '_>, call: &Call, body: B) -> Handled {
    match found.endpoint.guard {
        Guard::Open => open_page(app, found.endpoint.action).await,
        Guard::Key => with_key(app, found, call, body).await,
        // Boxed, like every write: reads are the hot path, and a small future is a cheap one.
        Guard::Admin => Box::pin(with_admin_token(app, found, call, body)).await,
    }
}

async fn open_page(app: &App, action: Action) -> Handled {
    let page = |body: Bytes, kind: &str| Ok(Reply::json(body).with(header::CONTENT_TYPE, kind));
    match action {
        Action::Ready => {
            let draining = app.draining.load(std::sync::atomic::Ordering::Relaxed);
            if draining {
                return Err(Error::Unavailable("draining".into()).into());
            }
            app.store().ready().await.map_err(Error::from)?;
            Ok(Reply::json(Bytes::from_static(b"{\"status\":\"ready\"}")))
        }
        Action::Metrics => {
            // A store that cannot be read shows in other metrics; the last count stays.
            if let Ok(backlog) = app.hooks.backlog().await {
                app.hooks.metrics.set_backlog(backlog);
            }
            page(
                app.metrics.page(app.store.stats()).into(),
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            )
        }
        Action::OpenApi => Ok(Reply::json(app.openapi.clone())),
        Action::Docs => Ok(Reply::page(app.docs.clone(), crate::docs_page::POLICY)),
        Action::DocsStyle => page(Bytes::from_static(crate::docs_page::STYLE.as_bytes()), "text/css; charset=utf-8"),
        _ => Ok(Reply::json(Bytes::from_static(b"{\"status\":\"ok\"}"))),
    }
}

fn presented(call: &Call) -> Result<&str, Error> {
    let header = call.single(&header::AUTHORIZATION).ok().flatten();
    header.and_then(bearer).ok_or(Error::Unauthenticated(KeyProblem::Missing))
}

async fn with_key<B: BodyStream>(app: &App, found: &Found<'_, '_>, call: &Call, body: B) -> Handled {
    let collection = collection(found)?;
    let pass = app.gate.open(app.store(), presented(call)?, call.moment.now()).await?;
    let writes = matches!(found.endpoint.action, Action::Create | Action::Update);
    pass.principal.authorize(writes, call.moment.now())?;
    let verdict = app.limits.rate.map(|limit| {
        let nanos = u64::try_from(app.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        (limit, limit.take(&pass.usage.bucket, nanos))
    });
    if let Some((_, Verdict { allowed: false, wait_secs, .. })) = verdict {
        let refused = Problem::TooManyRequests { retry_after: wait_secs };
        return Ok(with_limits(Reply::problem(&refused, call.request_id.as_str()), verdict));
    }
    let organization = &pass.principal.organization;
    let handled = match found.endpoint.action {
        Action::List => list(app, organization.id, collection, call).await,
        Action::Get => get(app, organization.id, collection, found.id, call).await,
        Action::Create => Box::pin(create(app, organization, collection, call, body)).await,
        _ => Box::pin(update(app, organization, collection, found.id, call, body)).await,
    };
    match verdict {
        None => handled,
        Some(_) => {
            let reply = handled.unwrap_or_else(|problem| Reply::problem(&problem, call.request_id.as_str()));
            Ok(with_limits(reply, verdict))
        }
    }
}

/// The `RateLimit` fields (draft-ietf-httpapi-ratelimit-headers).
fn with_limits(reply: Reply, verdict: Option<(crate::limiter::Limit, Verdict)>) -> Reply {
    let Some((limit, verdict)) = verdict else { return reply };
    reply.with(HeaderName::from_static("ratelimit-policy"), &format!("\"default\";q={};w=2", limit.burst())).with(
        HeaderName::from_static("ratelimit"),
        &format!("\"default\";r={};t={}", verdict.remaining, verdict.wait_secs),
    )
}

async fn with_admin_token<B: BodyStream>(app: &App, found: &Found<'_, '_>, call: &Call, body: B) -> Handled {
    if !app.is_admin(presented(call)?) {
        return Err(Problem::NotAdmin);
    }
    if found.endpoint.action == Action::Backup {
        return backup::start(app, call).await;
    }
    if found.endpoint.action == Action::Status {
        page::no_parameters(call.query())?;
        return Ok(Reply::json(status::body(app).await?.into()));
    }
    let collection = collection(found)?;
    if found.endpoint.method != Method::GET {
        call.acting.set(crate::openapi::operation_id(found.endpoint, collection.spec));
    }
    let system = Organization::system();
    match (found.endpoint.action, collection.spec.object) {
        (Action::List, "event" | "delivery") => {
            let organization = gate::organization(app.store(), found.id).await?;
            return list(app, organization.id, collection, call).await;
        }
        (Action::Get, "event" | "delivery") => {
            let organization = operation::owner_of(app.store(), collection.spec, found.id).await?;
            return get(app, organization.id, collection, found.id, call).await;
        }
        (_, "webhook_endpoint" | "event") if found.endpoint.method != Method::GET => {
            return webhooks(app, found, call, body).await;
        }
        _ => {}
    }
    match found.endpoint.action {
        Action::Import => {
            let organization = gate::organization(app.store(), found.id).await?;
            let kind = match collection.spec.object {
                "toll" => Kind::Tolls,
                "violation" => Kind::Violations,
                _ => Kind::Objects,
            };
            imports::run(app, call, organization, kind, body).await
        }
        Action::Export => export::start(app, call, &gate::organization(app.store(), found.id).await?).await,
        Action::Suggest => {
            let organization = gate::organization(app.store(), found.id).await?;
            suggestions::list(app, call, &organization, collection.spec).await
        }
        Action::Attach => {
            let bytes = read(app, call, body).await?;
            let organization = gate::organization(app.store(), found.id).await?;
            suggestions::attach(app, call, &organization, collection.spec, &bytes).await
        }
        Action::PrintInvoice => invoices::print(app, call, found.id).await,
        Action::List => list(app, system.id, collection, call).await,
        Action::Get => get(app, system.id, collection, found.id, call).await,
        Action::Create if found.endpoint.path.contains("{organization}") => {
            let organization = gate::organization(app.store(), found.id).await?;
            create(app, &organization, collection, call, body).await
        }
        Action::Create if collection.spec.object == "api_key" => {
            keys::create(app, call, &read(app, call, body).await?).await
        }
        Action::Create => create(app, &system, collection, call, body).await,
        Action::RevokeKey => keys::revoke(app, call, found.id, &read(app, call, body).await?).await,
        Action::RotateKey => keys::rotate(app, call, found.id, &read(app, call, body).await?).await,
        Action::PayInvoice | Action::VoidInvoice => {
            let bytes = read(app, call, body).await?;
            let organization = operation::owner_of(app.store(), collection.spec, found.id).await?;
            let settle = Settle {
                organization: &organization,
                id: found.id,
                void: found.endpoint.action == Action::VoidInvoice,
            };
            write(app, &organization, call, &bytes, &settle).await
        }
        _ => {
            let reply = update(app, &system, collection, found.id, call, body).await?;
            app.gate.forget();
            Ok(reply)
        }
    }
}

async fn webhooks<B: BodyStream>(app: &App, found: &Found<'_, '_>, call: &Call, body: B) -> Handled {
    let bytes = read(app, call, body).await?;
    let id = found.id;
    match found.endpoint.action {
        Action::Create => endpoints::create(app, call, &bytes).await,
        Action::Update => endpoints::update(app, call, id, &bytes, &|revision| expects(call, revision)).await,
        Action::Delete => endpoints::delete(app, call, id).await,
        Action::RotateSecret => endpoints::rotate(app, call, id, &bytes).await,
        Action::TestEndpoint => endpoints::test(app, id).await,
        Action::Recover => endpoints::recover(app, call, id, &bytes).await,
        Action::Resend => endpoints::resend(app, call, id, &bytes).await,
        action => endpoints::switch(app, call, id, action == Action::Enable).await,
    }
}

/// Whether `If-Match`, if it was sent, lists this revision.
fn expects(call: &Call, revision: Revision) -> bool {
    lists(call.headers(), &header::IF_MATCH, revision).unwrap_or(true)
}

fn collection(found: &Found<'_, '_>) -> Result<&'static Collection, Problem> {
    found.endpoint.collection.ok_or_else(|| Error::Internal(format!("{} has no resource", found.endpoint.path)).into())
}

async fn read<B: BodyStream>(app: &App, call: &Call, body: B) -> Result<Bytes, Problem> {
    let bytes = read_body(call, body, app.limits.max_body).await?;
    page::no_parameters(call.query())?;
    Ok(bytes)
}

async fn list(app: &App, organization: Uuid, collection: &Collection, call: &Call) -> Handled {
    let query = ListQuery::parse(call.query(), collection.spec)?;
    Ok(Reply::json(operation::list(app.store(), organization, collection.spec, &query).await?))
}

async fn get(app: &App, organization: Uuid, collection: &Collection, id: &str, call: &Call) -> Handled {
    page::no_parameters(call.query())?;
    let Record { revision, value, .. } = operation::get(app.store(), organization, collection.spec, id).await?;
    if lists(call.headers(), &header::IF_NONE_MATCH, revision) == Some(true) {
        let unchanged =
            Reply { status: StatusCode::NOT_MODIFIED, body: Bytes::new(), headers: HeaderMap::new(), stream: None };
        return Ok(unchanged.with(header::ETAG, &etag(revision)));
    }
    Ok(Reply::object(value, revision))
}

async fn create<B: BodyStream>(
    app: &App,
    organization: &Organization,
    collection: &Collection,
    call: &Call,
    body: B,
) -> Handled {
    let bytes = read(app, call, body).await?;
    let intent = Create { collection, organization, body: &bytes, given: &[] };
    write(app, organization, call, &bytes, &intent).await
}

async fn update<B: BodyStream>(
    app: &App,
    organization: &Organization,
    collection: &Collection,
    id: &str,
    call: &Call,
    body: B,
) -> Handled {
    let bytes = read(app, call, body).await?;
    let expected = |revision: Revision| expects(call, revision);
    let intent = Update { collection, organization, id, body: &bytes, expected: &expected };
    write(app, organization, call, &bytes, &intent).await
}
