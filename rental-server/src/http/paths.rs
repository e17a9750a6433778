//! How a method and a path find their endpoint.

use crate::http::{call::shown_path, problem::Problem};
use rental_core::request::page;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};
use warp::http::Method;

/// A path of the table: where its id begins, and the endpoints that share the path.
#[derive(Default)]
struct Node {
    id_from: usize,
    endpoints: Vec<(Method, usize)>,
}

/// The methods and paths of all endpoints.
pub(crate) struct Paths {
    router: matchit::Router<Node>,
    /// How the paths begin: `/v1/vehicles`, `/admin/v1/organizations`.
    beginnings: BTreeSet<String>,
}

/// The endpoint of a request, and the range of its path that is the id.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Index of the endpoint in the table.
    pub(crate) row: usize,
    id: Range<usize>,
}

impl Place {
    /// The id in the request's path; empty for paths without one.
    pub(crate) fn id<'p>(&self, path: &'p str) -> &'p str {
        path.get(self.id.clone()).unwrap_or("")
    }
}

impl Paths {
    /// The paths of these endpoints, each with its index in the table. A path has at most one id, written as `{...}`.
    ///
    /// # Panics
    /// When two paths cannot be told apart.
    pub(crate) fn new<'e>(endpoints: impl Iterator<Item = (usize, (&'e Method, &'e str))>) -> Self {
        let (mut nodes, mut beginnings) = (BTreeMap::<&str, Node>::new(), BTreeSet::new());
        for (row, (method, path)) in endpoints {
            let node = nodes.entry(path).or_default();
            node.id_from = path.find('{').unwrap_or(path.len());
            node.endpoints.push((method.clone(), row));
            beginnings.insert(beginning(path).to_owned());
        }
        let mut router = matchit::Router::new();
        for (path, node) in nodes {
            router.insert(path, node).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        Self { router, beginnings }
    }

    /// Finds the endpoint of a request. An unknown path is a 404, a known path with another method a 405 with `Allow`.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Result<Place, Problem> {
        let Ok(matchit::Match { value: node, params }) = self.router.at(path) else {
            return Err(self.unknown(method, path));
        };
        // HEAD is GET without the body (RFC 9110, 9.3.2); hyper leaves the body out.
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        let Some((_, row)) = node.endpoints.iter().find(|(known, _)| known == wanted) else {
            return Err(Problem::MethodNotAllowed { allow: node.allowed() });
        };
        let id_len = params.iter().next().map_or(0, |(_, id)| id.len());
        Ok(Place { row: *row, id: node.id_from..node.id_from + id_len })
    }

    fn unknown(&self, method: &Method, path: &str) -> Problem {
        let shown: String = shown_path(path).chars().take(100).collect();
        let next = match shown.strip_suffix('/') {
            Some(bare) if self.router.at(bare).is_ok() => format!("; try {bare} without the last slash."),
            _ if shown.contains("/v1/v1") => "; /v1 is in it twice: is it also at the end of a base URL?".into(),
            _ if shown.starts_with("/v1/admin/") => {
                "; operators' paths begin with /admin: is /v1 at the end of a base URL?".into()
            }
            _ if self.router.at(&format!("/v1{shown}")).is_ok() => format!("; did you mean `/v1{shown}`?"),
            _ if !shown.starts_with("/v1") && !shown.starts_with("/admin") => {
                "; paths begin with /v1. See /docs.".into()
            }
            _ => self.similar(beginning(&shown)).unwrap_or_else(|| ". See /docs for all paths.".into()),
        };
        Problem::RouteUnknown { hint: format!("There is no {method} {shown}{next}") }
    }

    /// The path of the resource with the most similar name; `None` when there is one of this name, or none is similar enough.
    fn similar(&self, beginning: &str) -> Option<String> {
        let prefix = &beginning[..=beginning.rfind('/')?];
        let names = self.beginnings.iter().filter_map(|known| known.strip_prefix(prefix));
        let similar = page::nearest(&beginning[prefix.len()..], names);
        let is_other = !similar.is_empty() && !self.beginnings.contains(beginning);
        is_other.then(|| similar.replacen('`', &format!("`{prefix}"), 1))
    }
}

impl Node {
    fn allowed(&self) -> String {
        let mut methods: Vec<&str> = self.endpoints.iter().map(|(method, _)| method.as_str()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.join(", ")
    }
}

/// The part of a path that names a resource: `/v1/vehicles` of `/v1/vehicles/{id}`, `/admin/v1/api_keys` of the paths below it.
fn beginning(path: &str) -> &str {
    let parts = if path.starts_with("/admin/") { 3 } else { 2 };
    path.match_indices('/').nth(parts).map_or(path, |(end, _)| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [(Method, &str); 8] = [
        (Method::GET, "/v1/vehicles"),
        (Method::POST, "/v1/vehicles"),
        (Method::GET, "/v1/vehicles/{id}"),
        (Method::PATCH, "/v1/vehicles/{id}"),
        (Method::POST, "/v1/leads"),
        (Method::POST, "/admin/v1/api_keys/{id}/rotate"),
        (Method::GET, "/admin/v1/organizations/{organization}/tolls"),
        (Method::POST, "/admin/v1/organizations/{organization}/tolls/import"),
    ];

    fn paths() -> Paths {
        Paths::new(TABLE.iter().map(|(method, path)| (method, *path)).enumerate())
    }

    fn found(method: &Method, path: &str) -> Option<(usize, String)> {
        let place = paths().find(method, path).ok()?;
        Some((place.row, place.id(path).to_owned()))
    }

    #[test]
    fn every_endpoint_is_found_by_its_own_path() {
        for (row, (method, path)) in TABLE.iter().enumerate() {
            let id = if path.contains('{') { "x" } else { "" };
            let path = path.replace("{id}", "x").replace("{organization}", "x");
            assert_eq!(found(method, &path), Some((row, id.to_owned())), "{path}");
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
            assert_eq!(found(&Method::GET, path), None, "{path}");
        }
    }

    #[test]
    fn an_unknown_path_says_what_to_try() {
        for (path, expected) in [
            ("/v1/vehicle", "There is no GET /v1/vehicle; did you mean `/v1/vehicles`?"),
            ("/v1/vehicels/x", "There is no GET /v1/vehicels/x; did you mean `/v1/vehicles`?"),
            (
                "/admin/v1/api-keys/x/rotate",
                "There is no GET /admin/v1/api-keys/x/rotate; did you mean `/admin/v1/api_keys`?",
            ),
            ("/v1/vehicles/x/y", "There is no GET /v1/vehicles/x/y. See /docs for all paths."),
            ("/v1/bicycles", "There is no GET /v1/bicycles. See /docs for all paths."),
            (
                "/v1/v1/vehicles",
                "There is no GET /v1/v1/vehicles; /v1 is in it twice: is it also at the end of a base URL?",
            ),
            (
                "/v1/admin/v1/leads",
                "There is no GET /v1/admin/v1/leads; operators' paths begin with /admin: is /v1 at the end of a base URL?",
            ),
            ("/vehicles", "There is no GET /vehicles; did you mean `/v1/vehicles`?"),
            ("/cars", "There is no GET /cars; paths begin with /v1. See /docs."),
            ("/v1/", "There is no GET /v1/. See /docs for all paths."),
            ("/v1/vehicles/", "There is no GET /v1/vehicles/; try /v1/vehicles without the last slash."),
        ] {
            let Err(Problem::RouteUnknown { hint }) = paths().find(&Method::GET, path) else {
                panic!("{path} is known")
            };
            assert_eq!(hint, expected);
        }
    }

    #[test]
    fn a_known_path_with_another_method_lists_those_it_has() {
        let allow = |method, path| match paths().find(&method, path) {
            Err(Problem::MethodNotAllowed { allow }) => allow,
            _ => panic!("expected 405"),
        };
        assert_eq!(allow(Method::DELETE, "/v1/vehicles"), "GET, POST, HEAD");
        assert_eq!(allow(Method::POST, "/admin/v1/organizations/x/tolls"), "GET, HEAD");
        assert_eq!(allow(Method::GET, "/v1/leads"), "POST");
        assert_eq!(allow(Method::PUT, "/v1/vehicles/x"), "GET, PATCH, HEAD");
    }
}
