//! How a method and a path find their endpoint.

use crate::http::{call::shown_path, problem::Problem};
use std::{collections::BTreeMap, ops::Range};
use warp::http::Method;

/// A path of the table: where its id begins, and the endpoints that share the path.
#[derive(Default)]
struct Node {
    id_from: usize,
    endpoints: Vec<(Method, usize)>,
}

/// The methods and paths of all endpoints.
pub(crate) struct Paths(matchit::Router<Node>);

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
        let mut nodes = BTreeMap::<&str, Node>::new();
        for (row, (method, path)) in endpoints {
            let node = nodes.entry(path).or_default();
            node.id_from = path.find('{').unwrap_or(path.len());
            node.endpoints.push((method.clone(), row));
        }
        let mut router = matchit::Router::new();
        for (path, node) in nodes {
            router.insert(path, node).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        Self(router)
    }

    /// Finds the endpoint of a request. An unknown path is a 404, a known path with another method a 405 with `Allow`.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Result<Place, Problem> {
        let Ok(matchit::Match { value: node, params }) = self.0.at(path) else { return Err(unknown(method, path)) };
        // HEAD is GET without the body (RFC 9110, 9.3.2); hyper leaves the body out.
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        let Some((_, row)) = node.endpoints.iter().find(|(known, _)| known == wanted) else {
            return Err(Problem::MethodNotAllowed { allow: node.allowed() });
        };
        let id_len = params.iter().next().map_or(0, |(_, id)| id.len());
        Ok(Place { row: *row, id: node.id_from..node.id_from + id_len })
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

fn unknown(method: &Method, path: &str) -> Problem {
    let shown: String = shown_path(path).chars().take(100).collect();
    let hint = match shown.strip_suffix('/') {
        Some(bare) if bare.len() > 1 => format!("There is no {method} {shown}; try {bare} without the last slash."),
        _ if !shown.starts_with("/v1") && !shown.starts_with("/admin") => {
            format!("There is no {method} {shown}; paths begin with /v1. See /docs.")
        }
        _ => format!("There is no {method} {shown}. See /docs for all paths."),
    };
    Problem::RouteUnknown { hint }
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
