//! The table of all endpoints, and how a request reaches its handler.

use crate::{
    access::failures::Surface,
    damaged_rows::DamagedRows,
    edge,
    endpoint::{Endpoint, Handle, Handler, Request, is_for_operators},
    fleet_api,
    guard::{By, Needed, Open},
    http::{
        Method,
        call::{Body, Call},
        paths::{Paths, Place},
        problem::Problem,
        reply::{self, Handled},
        serve::Service,
    },
    observability, operator, reference,
    state::App,
    telemetry::{Span, What},
    trace_context::TraceParent,
};
use prometheus_client::metrics::gauge::Gauge;
use rental_core::{operations::Edge, resources::organization::SYSTEM};
use std::{
    future::Future,
    sync::{Arc, LazyLock, atomic::AtomicBool},
    time::Duration,
};

/// All endpoints, in the order of the document.
pub(crate) static ENDPOINTS: LazyLock<Vec<Endpoint>> = LazyLock::new(|| {
    [fleet_api::endpoints(), operator::endpoints(), observability::endpoints(), reference::endpoints()]
        .into_iter()
        .flatten()
        .collect()
});

/// The method and the path of each endpoint.
pub(crate) fn names() -> impl Iterator<Item = (&'static Method, &'static str)> {
    ENDPOINTS.iter().map(|endpoint| (&endpoint.method, endpoint.path.as_str()))
}

/// The endpoints that a listener serves. The others do not exist there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Offered {
    All,
    /// All except those for operators.
    Public,
}

/// The server: the table, and the state that handlers use.
pub(crate) struct Server {
    app: Arc<App>,
    endpoints: &'static [Endpoint],
    paths: Paths,
}

impl Server {
    pub(crate) fn new(app: Arc<App>, offered: Offered) -> Self {
        let served = names().enumerate().filter(|(_, (_, path))| offered == Offered::All || !is_for_operators(path));
        Self { app, endpoints: &ENDPOINTS, paths: Paths::new(served) }
    }
}

impl Server {
    /// Records a request as a span, unless its caller records none.
    fn record_span(&self, call: &Call, place: Option<&Place>, status: u16, took: Duration) {
        let parent = call.trace_parent();
        if parent.is_some_and(|parent| !parent.sampled) {
            return;
        }
        let trace = parent.map_or_else(edge::new_trace, |parent| parent.trace);
        let endpoint = place.map(|place| &self.endpoints[place.row]);
        self.app.hooks.settings.telemetry.record(Span {
            context: TraceParent { trace, span: edge::new_span(), sampled: true },
            parent: parent.map(|parent| parent.span),
            began: call.clock.now(),
            took,
            organization: call.organization.get().copied(),
            what: What::Request { endpoint: endpoint.map(|one| (one.method.as_str(), one.path.as_str())), status },
        });
    }
}

impl Service for Server {
    fn paths(&self) -> &Paths {
        &self.paths
    }

    fn handle<'r>(
        &'r self,
        place: &'r Place,
        call: &'r Call,
        body: Body<'r>,
    ) -> impl Future<Output = Handled> + Send + 'r {
        let (app, endpoint, id) = (&*self.app, &self.endpoints[place.row], place.id(call.path()));
        async move {
            let handled = match &endpoint.handler {
                Handler::Key(action, collection) => {
                    fleet_api::with_key(app, call, (*action, collection, id), body).await
                }
                Handler::Open(handle) => handle(Request::new(app, call, id, body, Open::admit())).await,
                // Boxed, so that the future of a request with an API key stays small.
                Handler::Reader(handle) => Box::pin(admitted(handle, endpoint, (app, call, id), body)).await,
                Handler::Operator(handle) => Box::pin(admitted(handle, endpoint, (app, call, id), body)).await,
                Handler::Owner(handle) => Box::pin(admitted(handle, endpoint, (app, call, id), body)).await,
            };
            let handled = handled.inspect_err(|problem| note(app, call, endpoint, problem));
            if reply::turns_away(&handled) {
                // Boxed: it is rare.
                Box::pin(app.refusals.wait(app.nanos_since_start())).await;
            }
            handled
        }
    }

    fn takes_its_time(&self, place: &Place) -> bool {
        self.endpoints[place.row].takes_its_time
    }

    fn max_body(&self) -> usize {
        self.app.limits.max_body
    }

    fn request_timeout(&self) -> Duration {
        self.app.limits.request_timeout
    }

    fn damaged(&self) -> &Arc<DamagedRows> {
        &self.app.hooks.damaged
    }

    fn draining(&self) -> &AtomicBool {
        &self.app.draining
    }

    fn crowded(&self) {
        self.app.metrics.crowded.inc();
    }

    fn served(&self, call: &Call, place: Option<&Place>, status: u16, took: Duration) {
        self.app.metrics.record(place.map(|place| place.row), status, took);
        if self.app.hooks.settings.telemetry.is_on() {
            self.record_span(call, place, status, took);
        }
    }

    fn in_flight(&self) -> Gauge {
        self.app.metrics.in_flight.clone()
    }

    fn opened(&self) {
        self.app.metrics.connections.inc();
        self.app.metrics.connections_total.inc();
    }

    fn closed(&self) {
        self.app.metrics.connections.dec();
    }

    fn refused(&self) {
        self.app.metrics.connections_refused.inc();
    }
}

/// Notes a failed authentication.
fn note(app: &App, call: &Call, endpoint: &Endpoint, problem: &Problem) {
    if let Some(why) = problem.failed_authentication() {
        let surface = if endpoint.handler.role().is_some() { Surface::Admin } else { Surface::Api };
        app.failures.note(call.client_address(), surface, why, call.at.saturating_duration_since(app.started));
    }
}

/// Handles a request of an operator, if the guard admits it.
async fn admitted<'r, R: Needed>(
    handle: &Handle<By<R>>,
    endpoint: &'static Endpoint,
    (app, call, id): (&'r App, &'r Call, &'r str),
    body: Body<'r>,
) -> Handled {
    let by = By::<R>::admit(app, call, endpoint.documentation.id()).await?;
    app.room_for_response(SYSTEM).await?;
    // What operators read is about people and secrets of others.
    let handled = handle(Request::new(app, call, id, body, by)).await;
    handled.map(|reply| reply.not_stored().counted(&app.responses, SYSTEM.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Action;
    use rental_core::resources::{self, operator::Role};

    /// The audit log names an action by its operation.
    #[test]
    fn every_action_of_an_operator_has_a_name_for_the_audit_log() {
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.handler.role().is_some()) {
            assert!(!endpoint.documentation.id().is_empty(), "{}", endpoint.path);
        }
    }

    /// `read_only` has GET, `operator` everything but operators, the master key, deletion and erasing (decisions).
    #[test]
    fn every_operators_endpoint_needs_the_role_that_the_decisions_say() {
        for Endpoint { method, path, handler, .. } in ENDPOINTS.iter() {
            let owners = ["/operators", "/master_key", "/erase", "/clock"].iter().any(|word| path.contains(word))
                || (method == Method::DELETE && path == "/admin/v1/organizations/{id}");
            let expected = match () {
                () if !path.starts_with("/admin/") => None,
                () if owners => Some(Role::Owner),
                () if method == Method::GET => Some(Role::ReadOnly),
                () => Some(Role::Operator),
            };
            assert_eq!(handler.role(), expected, "{method} {path}");
        }
    }

    #[test]
    fn every_operation_of_a_public_collection_is_an_endpoint() {
        let generic = [Action::List, Action::Get, Action::Create, Action::Update];
        let keyed =
            |endpoint: &&Endpoint| matches!(endpoint.handler, Handler::Key(action, _) if generic.contains(&action));
        let offered = resources::api().flat_map(|one| [one.list, one.get, one.create.is_some(), one.update.is_some()]);
        assert_eq!(ENDPOINTS.iter().filter(keyed).count(), offered.filter(|offered| *offered).count());
    }

    #[test]
    fn every_endpoint_is_found_by_its_own_path() {
        let paths = Paths::new(names().enumerate());
        for (row, (method, path)) in names().enumerate() {
            let path = path.replace("{id}", "x").replace("{organization}", "x");
            assert_eq!(paths.find(method, &path).ok().map(|place| place.row), Some(row), "{method} {path}");
        }
    }
}
