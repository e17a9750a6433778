//! The table of all endpoints, and how a request reaches its handler.

use crate::{
    endpoint::{Endpoint, Handler, Open, Operator, Request},
    fleet_api,
    http::{
        Method,
        call::{Body, Call},
        paths::{Paths, Place},
        reply::{Handled, Reply},
        serve::Service,
    },
    observability, operator, reference,
    state::App,
};
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

/// The server: the table, and the state that handlers use.
pub(crate) struct Server {
    app: Arc<App>,
    endpoints: &'static [Endpoint],
    paths: Paths,
}

impl Server {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { app, endpoints: &ENDPOINTS, paths: Paths::new(names()) }
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
            match &endpoint.handler {
                Handler::Key(action, collection) => {
                    fleet_api::with_key(app, call, (*action, collection, id), body).await
                }
                Handler::Open(handle) => handle(Request::new(app, call, id, body, Open::admit())).await,
                Handler::Operator(handle) => {
                    let by = Operator::admit(app, call, endpoint)?;
                    // What operators read is about people and secrets of others.
                    handle(Request::new(app, call, id, body, by)).await.map(Reply::not_stored)
                }
            }
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

    fn draining(&self) -> &AtomicBool {
        &self.app.draining
    }

    fn served(&self, place: Option<&Place>, status: u16, took: Duration) {
        self.app.metrics.record(place.map(|place| place.row), status, took);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Documentation;
    use rental_core::resources;

    /// The audit log names a change by its operation.
    #[test]
    fn every_change_by_an_operator_has_a_name_for_the_audit_log() {
        let changes = ENDPOINTS
            .iter()
            .filter(|endpoint| matches!(endpoint.handler, Handler::Operator(_)) && endpoint.method != Method::GET);
        for endpoint in changes {
            assert!(matches!(endpoint.documentation, Documentation::Operation(_)), "{}", endpoint.path);
        }
    }

    #[test]
    fn every_operation_of_a_public_collection_is_an_endpoint() {
        let keyed = |endpoint: &&Endpoint| matches!(endpoint.handler, Handler::Key(..));
        let offered = resources::api().flat_map(|one| [one.list, one.get, one.create.is_some(), one.update.is_some()]);
        assert_eq!(ENDPOINTS.iter().filter(keyed).count(), offered.filter(|offered| *offered).count());
    }

    #[test]
    fn every_endpoint_is_found_by_its_own_path() {
        let paths = Paths::new(names());
        for (row, (method, path)) in names().enumerate() {
            let path = path.replace("{id}", "x").replace("{organization}", "x");
            assert_eq!(paths.find(method, &path).ok().map(|place| place.row), Some(row), "{method} {path}");
        }
    }
}
