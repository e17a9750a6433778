//! THE TABLE: every endpoint of the server, and how a path finds its row.
//!
//! The seven resources come from [`rental_core::resources::API`], which reads like the specification; the operator's
//! rows and the few open pages stand here. The OpenAPI document is made from the same rows.

use crate::http::reply::Problem;
use rental_core::{
    event,
    resources::{
        API, Collection, api_key::ApiKey, audit_entry::AuditEntry, delivery::Delivery, invoice::Invoice, of,
        organization::Organization, toll::Toll, violation::Violation, webhook_endpoint::WebhookEndpoint,
    },
};
use std::{collections::HashMap, ops::Range};
use warp::http::Method;

/// Who may call an endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Guard {
    /// Anybody.
    Open,
    /// Who has an API key; whether it must be able to write follows from the method.
    Key,
    /// Who has the admin token.
    Admin,
}

/// What an endpoint does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Action {
    List,
    Get,
    Create,
    Update,
    RevokeKey,
    RotateKey,
    Delete,
    Enable,
    Disable,
    RotateSecret,
    TestEndpoint,
    Recover,
    Resend,
    PayInvoice,
    VoidInvoice,
    PrintInvoice,
    Import,
    Suggest,
    Attach,
    Status,
    Backup,
    Export,
    Health,
    Ready,
    Metrics,
    OpenApi,
    Docs,
    DocsStyle,
}

impl Action {
    /// Whether it may take longer than the request time-out: it limits by itself how long it waits for its client.
    pub(crate) fn takes_its_time(self) -> bool {
        self == Self::Import
    }
}

/// One row: a method on a path.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// With `{id}` or `{organization}` in the place of an id.
    pub(crate) path: String,
    pub(crate) action: Action,
    pub(crate) guard: Guard,
    /// The resource, where the endpoint has one.
    pub(crate) collection: Option<&'static Collection>,
}

/// The operator's own resources. API keys are made and changed by actions, so their row has no `create` or `update`.
const ORGANIZATIONS: Collection = of::<Organization>().list().get().create().update().done();
pub(crate) const API_KEYS: Collection = of::<ApiKey>().list().get().create().done();
/// What operators record for an organization.
const INVOICES: Collection = of::<Invoice>().create().done();
const TOLLS: Collection = of::<Toll>().create().done();
const VIOLATIONS: Collection = of::<Violation>().create().done();

const ENDPOINTS: Collection = of::<WebhookEndpoint>().list().get().create().update().done();
const DELIVERIES: Collection = of::<Delivery>().list().get().done();
/// Events are written with the change that they tell of, byte for byte as they are sent: there is no struct to parse.
const EVENTS: Collection =
    Collection { spec: &event::SPEC, counter: None, list: true, get: true, create: None, update: None };

const AUDIT: Collection = of::<AuditEntry>().list().get().done();

static OPERATOR: [Collection; 4] = [ORGANIZATIONS, API_KEYS, ENDPOINTS, AUDIT];
/// What belongs to an organization and only operators see.
static OBSERVED: [Collection; 2] = [EVENTS, DELIVERIES];
static RECORDED: [Collection; 3] = [INVOICES, TOLLS, VIOLATIONS];

/// All rows, in the order of the documentation.
fn endpoints() -> Vec<Endpoint> {
    let mut rows = Vec::new();
    let mut add = |method: Method, path: String, action, guard, collection| {
        rows.push(Endpoint { method, path, action, guard, collection })
    };
    for (prefix, guard, table) in [("/v1", Guard::Key, &API_TABLE[..]), ("/admin/v1", Guard::Admin, &OPERATOR[..])] {
        for row in table {
            let (all, one) = (format!("{prefix}/{}", row.spec.plural), format!("{prefix}/{}/{{id}}", row.spec.plural));
            let offered = [
                (row.list, Method::GET, &all, Action::List),
                (row.create.is_some(), Method::POST, &all, Action::Create),
                (row.get, Method::GET, &one, Action::Get),
                (row.update.is_some(), Method::PATCH, &one, Action::Update),
            ];
            for (_, method, path, action) in offered.into_iter().filter(|row| row.0) {
                add(method, path.clone(), action, guard, Some(row));
            }
        }
    }
    let keys = Some(&OPERATOR[1]);
    add(Method::POST, "/admin/v1/api_keys/{id}/rotate".into(), Action::RotateKey, Guard::Admin, keys);
    add(Method::POST, "/admin/v1/api_keys/{id}/revoke".into(), Action::RevokeKey, Guard::Admin, keys);
    let endpoints = Some(&OPERATOR[2]);
    add(Method::DELETE, "/admin/v1/webhook_endpoints/{id}".into(), Action::Delete, Guard::Admin, endpoints);
    for (word, action) in [
        ("enable", Action::Enable),
        ("disable", Action::Disable),
        ("rotate_secret", Action::RotateSecret),
        ("test", Action::TestEndpoint),
        ("recover", Action::Recover),
    ] {
        add(Method::POST, format!("/admin/v1/webhook_endpoints/{{id}}/{word}"), action, Guard::Admin, endpoints);
    }
    for row in &OBSERVED {
        let (all, one) = (
            format!("/admin/v1/organizations/{{organization}}/{}", row.spec.plural),
            format!("/admin/v1/{}/{{id}}", row.spec.plural),
        );
        add(Method::GET, all, Action::List, Guard::Admin, Some(row));
        add(Method::GET, one, Action::Get, Guard::Admin, Some(row));
    }
    add(Method::POST, "/admin/v1/events/{id}/resend".into(), Action::Resend, Guard::Admin, Some(&OBSERVED[0]));
    for row in &RECORDED {
        let path = format!("/admin/v1/organizations/{{organization}}/{}", row.spec.plural);
        add(Method::POST, path, Action::Create, Guard::Admin, Some(row));
    }
    let invoices = Some(&RECORDED[0]);
    add(Method::POST, "/admin/v1/invoices/{id}/pay".into(), Action::PayInvoice, Guard::Admin, invoices);
    add(Method::POST, "/admin/v1/invoices/{id}/void".into(), Action::VoidInvoice, Guard::Admin, invoices);
    add(Method::GET, "/admin/v1/invoices/{id}/print".into(), Action::PrintInvoice, Guard::Admin, invoices);
    for row in &RECORDED[1..] {
        let path = |word: &str| format!("/admin/v1/organizations/{{organization}}/{}/{word}", row.spec.plural);
        add(Method::POST, path("import"), Action::Import, Guard::Admin, Some(row));
        add(Method::GET, path("suggestions"), Action::Suggest, Guard::Admin, Some(row));
        add(Method::POST, path("suggestions"), Action::Attach, Guard::Admin, Some(row));
    }
    let organizations = Some(&OPERATOR[0]);
    let path = |word: &str| format!("/admin/v1/organizations/{{organization}}/{word}");
    add(Method::GET, path("export"), Action::Export, Guard::Admin, organizations);
    add(Method::POST, path("import"), Action::Import, Guard::Admin, organizations);
    add(Method::GET, "/admin/v1/status".into(), Action::Status, Guard::Admin, None);
    add(Method::GET, "/admin/v1/backup".into(), Action::Backup, Guard::Admin, None);
    for (path, action) in [
        ("/healthz", Action::Health),
        ("/readyz", Action::Ready),
        ("/metrics", Action::Metrics),
        ("/openapi.json", Action::OpenApi),
        ("/docs", Action::Docs),
        ("/docs.css", Action::DocsStyle),
    ] {
        add(Method::GET, path.into(), action, Guard::Open, None);
    }
    rows
}

static API_TABLE: [Collection; 7] = API;

/// The rows that share one path.
#[derive(Default)]
struct Node(Vec<usize>);

/// The table with its look-up: a path is tried whole, then as `PARENT/{id}`, then as `PARENT/{id}/WORD` and
/// `PARENT/{id}/WORD/WORD`.
pub(crate) struct Routes {
    pub(crate) endpoints: Vec<Endpoint>,
    whole: HashMap<String, Node>,
    object: HashMap<String, Node>,
    under_object: HashMap<String, Vec<(String, Node)>>,
}

/// Where a path leads: a row, and where in the path the id stands.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The row's number: its place in the metrics.
    pub(crate) row: usize,
    id: Range<usize>,
}

/// A row, and the id in the path that leads to it.
pub(crate) struct Found<'r, 'p> {
    pub(crate) endpoint: &'r Endpoint,
    /// The id in the path, or nothing.
    pub(crate) id: &'p str,
}

impl Routes {
    pub(crate) fn new() -> Self {
        let endpoints = endpoints();
        let mut routes =
            Self { endpoints: Vec::new(), whole: HashMap::new(), object: HashMap::new(), under_object: HashMap::new() };
        for (row, endpoint) in endpoints.iter().enumerate() {
            let node = match endpoint.path.split_once("/{") {
                None => routes.whole.entry(endpoint.path.clone()).or_default(),
                Some((parent, rest)) => match rest.split_once("}/") {
                    None => routes.object.entry(parent.to_owned()).or_default(),
                    Some((_, word)) => {
                        let words = routes.under_object.entry(parent.to_owned()).or_default();
                        let at = words.iter().position(|(known, _)| known == word).unwrap_or_else(|| {
                            words.push((word.to_owned(), Node::default()));
                            words.len() - 1
                        });
                        &mut words[at].1
                    }
                },
            };
            node.0.push(row);
        }
        routes.endpoints = endpoints;
        routes
    }

    /// Finds the row for a request: an unknown path is a 404, a known one with another method a 405 with `Allow`.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Result<Place, Problem> {
        let Some((node, id)) = self.node(path) else { return Err(unknown(method, path)) };
        // HEAD is GET without the body (RFC 9110, 9.3.2); hyper leaves the body out.
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        let row = node.0.iter().find(|row| self.endpoints[**row].method == *wanted);
        row.map(|row| Place { row: *row, id }).ok_or_else(|| Problem::MethodNotAllowed { allow: self.allowed(node) })
    }

    /// The row at a place that [`Routes::find`] gave for this path.
    pub(crate) fn at<'r, 'p>(&'r self, place: &Place, path: &'p str) -> Found<'r, 'p> {
        Found { endpoint: &self.endpoints[place.row], id: path.get(place.id.clone()).unwrap_or("") }
    }

    fn node(&self, path: &str) -> Option<(&Node, Range<usize>)> {
        if let Some(node) = self.whole.get(path) {
            return Some((node, 0..0));
        }
        let (parent, last) = path.rsplit_once('/')?;
        if last.is_empty() {
            return None;
        }
        if let Some(node) = self.object.get(parent) {
            return Some((node, path.len() - last.len()..path.len()));
        }
        let (mut parent, mut id) = parent.rsplit_once('/')?;
        for _ in 0..2 {
            let words = self.under_object.get(parent).filter(|_| !id.is_empty());
            let end = parent.len() + 1 + id.len();
            let rest = path.get(end + 1..)?;
            if let Some((_, node)) = words.and_then(|words| words.iter().find(|(word, _)| word == rest)) {
                return Some((node, parent.len() + 1..end));
            }
            (parent, id) = parent.rsplit_once('/')?;
        }
        None
    }

    fn allowed(&self, node: &Node) -> String {
        let mut methods: Vec<&str> = node.0.iter().map(|row| self.endpoints[*row].method.as_str()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.join(", ")
    }
}

fn unknown(method: &Method, path: &str) -> Problem {
    let shown: String = path.chars().take(100).collect();
    let hint = match shown.strip_suffix('/') {
        Some(bare) if bare.len() > 1 => format!("There is no {method} {shown}; try {bare} without the last slash."),
        _ if !shown.starts_with("/v1") && !shown.starts_with("/admin") => {
            format!("There is no {method} {shown}; paths begin with /v1. See /docs.")
        }
        _ => format!("There is no {method} {shown}. See /docs for all paths."),
    };
    Problem::RouteUnknown { hint }
}

/// The table row of a public resource.
pub(crate) fn public(object: &str) -> Option<&'static Collection> {
    API_TABLE.iter().find(|row| row.spec.object == object)
}

/// The row under which the operator records objects of a resource.
pub(crate) fn recorded(object: &str) -> Option<&'static Collection> {
    RECORDED.iter().find(|row| row.spec.object == object)
}

/// The row of the operator's own resource.
pub(crate) fn operator(object: &str) -> Option<&'static Collection> {
    OPERATOR.iter().find(|row| row.spec.object == object)
}

/// Every resource that documents speak of, once.
pub(crate) fn collections() -> impl Iterator<Item = &'static Collection> {
    API_TABLE.iter().chain(&OPERATOR).chain(&OBSERVED)
}

/// All descriptions that documents speak of.
pub(crate) fn specs() -> impl Iterator<Item = &'static rental_core::spec::ResourceSpec> {
    collections().map(|row| row.spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: Method, path: &str) -> Option<(String, String)> {
        let routes = Routes::new();
        let found = routes.at(&routes.find(&method, path).ok()?, path);
        Some((found.endpoint.path.clone(), found.id.to_owned()))
    }

    #[test]
    fn the_public_table_has_the_21_operations_of_the_specification() {
        let routes = Routes::new();
        assert_eq!(routes.endpoints.iter().filter(|row| row.guard == Guard::Key).count(), 21);
    }

    #[test]
    fn every_row_is_found_by_its_own_path() {
        let routes = Routes::new();
        for endpoint in &routes.endpoints {
            let path = endpoint.path.replace("{id}", "x").replace("{organization}", "x");
            assert_eq!(found(endpoint.method.clone(), &path).map(|found| found.0), Some(endpoint.path.clone()));
        }
    }

    #[test]
    fn other_paths_are_unknown() {
        for path in [
            "",
            "/",
            "/v1",
            "/v1/",
            "/v1/vehicles/",
            "/v1/vehicles//",
            "/v1/vehicles/a/b",
            "//v1/vehicles",
            "/V1/vehicles",
            "/v1/leads/x",
            "/v1/vehicles/../vehicles",
        ] {
            assert_eq!(found(Method::GET, path), None, "{path}");
        }
    }

    #[test]
    fn a_known_path_with_another_method_lists_those_it_has() {
        let routes = Routes::new();
        let allow = |method, path| match routes.find(&method, path) {
            Err(Problem::MethodNotAllowed { allow }) => allow,
            _ => panic!("expected 405"),
        };
        assert_eq!(allow(Method::DELETE, "/v1/vehicles"), "GET, POST, HEAD");
        assert_eq!(allow(Method::POST, "/v1/invoices"), "GET, HEAD");
        assert_eq!(allow(Method::GET, "/v1/leads"), "POST");
        assert_eq!(allow(Method::PUT, "/v1/tolls/x"), "GET, PATCH, HEAD");
    }
}
