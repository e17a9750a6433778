//! How a method and a path find their endpoint.

use crate::http::reply::Problem;
use std::{collections::HashMap, ops::Range};
use warp::http::Method;

/// The endpoints that share one path, by number.
#[derive(Default)]
struct Node(Vec<usize>);

/// The methods and paths of all endpoints: a path is tried whole, then as `PARENT/{id}`, then as `PARENT/{id}/WORD` and
/// `PARENT/{id}/WORD/WORD`.
#[derive(Default)]
pub(crate) struct Paths {
    methods: Vec<Method>,
    whole: HashMap<String, Node>,
    object: HashMap<String, Node>,
    under_object: HashMap<String, Vec<(String, Node)>>,
}

/// Where a path leads: an endpoint, and where in the path the id stands.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The endpoint's number in the order that was given.
    pub(crate) row: usize,
    id: Range<usize>,
}

impl Place {
    /// The id in the path that led here, or nothing.
    pub(crate) fn id<'p>(&self, path: &'p str) -> &'p str {
        path.get(self.id.clone()).unwrap_or("")
    }
}

impl Paths {
    /// The paths of these endpoints, each with `{...}` in the place of an id.
    pub(crate) fn new<'e>(endpoints: impl Iterator<Item = (&'e Method, &'e str)>) -> Self {
        let mut paths = Self::default();
        for (row, (method, path)) in endpoints.enumerate() {
            let node = match path.split_once("/{") {
                None => paths.whole.entry(path.to_owned()).or_default(),
                Some((parent, rest)) => match rest.split_once("}/") {
                    None => paths.object.entry(parent.to_owned()).or_default(),
                    Some((_, word)) => {
                        let words = paths.under_object.entry(parent.to_owned()).or_default();
                        let at = words.iter().position(|(known, _)| known == word).unwrap_or_else(|| {
                            words.push((word.to_owned(), Node::default()));
                            words.len() - 1
                        });
                        &mut words[at].1
                    }
                },
            };
            node.0.push(row);
            paths.methods.push(method.clone());
        }
        paths
    }

    /// Finds the endpoint of a request: an unknown path is a 404, a known one with another method a 405 with `Allow`.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Result<Place, Problem> {
        let Some((node, id)) = self.node(path) else { return Err(unknown(method, path)) };
        // HEAD is GET without the body (RFC 9110, 9.3.2); hyper leaves the body out.
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        let row = node.0.iter().find(|row| self.methods[**row] == *wanted);
        row.map(|row| Place { row: *row, id }).ok_or_else(|| Problem::MethodNotAllowed { allow: self.allowed(node) })
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
        let mut methods: Vec<&str> = node.0.iter().map(|row| self.methods[*row].as_str()).collect();
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
        Paths::new(TABLE.iter().map(|(method, path)| (method, *path)))
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
