//! What each row of the table does: read the body, call the core, shape the answer.

use crate::{
    app::App,
    gate,
    http::{
        backup,
        call::{BodyStream, Call, read_body},
        export, keyed,
        reply::{Problem, Reply, etag, lists},
        write::{write, write_to},
    },
    imports,
    invoices::{self, Settle},
    keys,
    routes::{Action, Found, Guard},
    status, suggestions,
    webhook::endpoints,
};
use bytes::Bytes;
use rental_core::{
    access::bearer,
    error::{Error, KeyProblem},
    imports::statements::Kind,
    operation::{self, Create, Update},
    page::{self, ListQuery},
    resources::{
        Collection,
        organization::Organization,
        toll::{self, Toll},
        violation::Violation,
    },
    store::{Record, Revision, Store},
};
use uuid::Uuid;
use warp::http::{HeaderMap, Method, StatusCode, header};

/// Evaluates an expression with `T` as the resource of a path that tolls and violations have: the one place that tells
/// them apart.
macro_rules! by_type {
    ($spec:expr, $T:ident => $call:expr) => {
        if $spec.tag == toll::SPEC.tag {
            type $T = Toll;
            $call
        } else {
            type $T = Violation;
            $call
        }
    };
}

pub(super) type Handled = Result<Reply, Problem>;

/// Serves one matched request.
pub(crate) async fn handle<B: BodyStream>(app: &App, found: &Found<'_, '_>, call: &Call, body: B) -> Handled {
    match found.endpoint.guard {
        Guard::Open => open_page(app, found.endpoint.action).await,
        Guard::Key => keyed::with_key(app, found, call, body).await,
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

pub(super) fn presented(call: &Call) -> Result<&str, Error> {
    let header = call.single(&header::AUTHORIZATION).ok().flatten();
    header.and_then(bearer).ok_or(Error::Unauthenticated(KeyProblem::Missing))
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
            return list(app.store(), organization.id, collection, call).await;
        }
        (Action::Get, "event" | "delivery") => {
            let organization = operation::owner_of(app.store(), collection.spec, found.id).await?;
            return get(app.store(), organization.id, collection, found.id, call).await;
        }
        (_, "webhook_endpoint" | "event") if found.endpoint.method != Method::GET => {
            return webhooks(app, found, call, body).await;
        }
        _ => {}
    }
    match found.endpoint.action {
        Action::Import => {
            let organization = gate::organization(app.store(), found.id).await?;
            match Kind::of(collection.spec) {
                Some(_) => {
                    by_type!(collection.spec, T => imports::statement::<T, _>(app, call, organization, body).await)
                }
                None => imports::export(app, call, organization, body).await,
            }
        }
        Action::Export => export::start(app, call, &gate::organization(app.store(), found.id).await?).await,
        Action::Suggest => {
            let organization = gate::organization(app.store(), found.id).await?;
            by_type!(collection.spec, T => suggestions::list::<T>(app, call, &organization).await)
        }
        Action::Attach => {
            let bytes = read(app, call, body).await?;
            let organization = gate::organization(app.store(), found.id).await?;
            by_type!(collection.spec, T => suggestions::attach::<T>(app, call, &organization, &bytes).await)
        }
        Action::PrintInvoice => invoices::print(app, call, found.id).await,
        Action::List => list(app.store(), system.id, collection, call).await,
        Action::Get => get(app.store(), system.id, collection, found.id, call).await,
        Action::Create if found.endpoint.path.contains("{organization}") => {
            let organization = gate::organization(app.store(), found.id).await?;
            let bytes = read(app, call, body).await?;
            create(app, (app.store(), &organization, collection), call, &bytes).await
        }
        Action::Create if collection.spec.object == "api_key" => {
            keys::create(app, call, &read(app, call, body).await?).await
        }
        Action::Create => {
            let bytes = read(app, call, body).await?;
            create(app, (app.store(), &system, collection), call, &bytes).await
        }
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
            let bytes = read(app, call, body).await?;
            let reply = update(app, (app.store(), &system, collection), found.id, call, &bytes).await?;
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

pub(super) fn collection(found: &Found<'_, '_>) -> Result<&'static Collection, Problem> {
    found.endpoint.collection.ok_or_else(|| Error::Internal(format!("{} has no resource", found.endpoint.path)).into())
}

pub(super) async fn read<B: BodyStream>(app: &App, call: &Call, body: B) -> Result<Bytes, Problem> {
    let bytes = read_body(call, body, app.limits.max_body).await?;
    page::no_parameters(call.query())?;
    Ok(bytes)
}

pub(super) async fn list(store: &dyn Store, organization: Uuid, collection: &Collection, call: &Call) -> Handled {
    let query = ListQuery::parse(call.query(), collection.spec)?;
    Ok(Reply::json(operation::list(store, organization, collection.spec, &query).await?))
}

pub(super) async fn get(
    store: &dyn Store,
    organization: Uuid,
    collection: &Collection,
    id: &str,
    call: &Call,
) -> Handled {
    page::no_parameters(call.query())?;
    let Record { revision, value, .. } = operation::get(store, organization, collection.spec, id).await?;
    if lists(call.headers(), &header::IF_NONE_MATCH, revision) == Some(true) {
        let unchanged =
            Reply { status: StatusCode::NOT_MODIFIED, body: Bytes::new(), headers: HeaderMap::new(), stream: None };
        return Ok(unchanged.with(header::ETAG, &etag(revision)));
    }
    Ok(Reply::object(value, revision))
}

/// Where objects are written: the store as the request sees it, whose, and which.
pub(super) type Target<'a> = (&'a dyn Store, &'a Organization, &'static Collection);

pub(super) async fn create(
    app: &App,
    (store, organization, collection): Target<'_>,
    call: &Call,
    body: &[u8],
) -> Handled {
    let intent = Create { collection, organization, body, given: &[] };
    write_to(store, app, organization, call, body, &intent).await
}

pub(super) async fn update(
    app: &App,
    (store, organization, collection): Target<'_>,
    id: &str,
    call: &Call,
    body: &[u8],
) -> Handled {
    let expected = |revision: Revision| expects(call, revision);
    let intent = Update { collection, organization, id, body, expected: &expected };
    write_to(store, app, organization, call, body, &intent).await
}
