//! Which module depends on which, and the circles among them.

use super::modules::{Module, Modules, child};
use std::collections::{BTreeMap, BTreeSet};

/// Name of a crate's root among its modules.
pub(super) const ROOT: &str = "crate";

/// For each node the nodes that it depends on.
pub(super) type Graph = BTreeMap<String, BTreeSet<String>>;

/// Where a path leads.
enum Target {
    /// To a module itself.
    Module(String),
    /// To an item that this module defines.
    Item(String),
}

/// Between files, named by their module. `imports.rs` says what counts as a dependency.
pub(super) fn files(modules: &Modules) -> Graph {
    let mut graph = Graph::new();
    for (name, module) in modules {
        let from = node(&module.file);
        let targets = dependencies(modules, name, module);
        let targets = targets.iter().map(|target| node(&modules[target].file)).filter(|target| *target != from);
        let targets: BTreeSet<String> = targets.collect();
        graph.entry(from).or_default().extend(targets);
    }
    graph
}

/// Between rooms: the first segments of the modules' paths.
pub(super) fn rooms(files: &Graph) -> Graph {
    let room = |file: &String| file.split("::").next().unwrap_or_default().to_owned();
    let mut graph = Graph::new();
    for (file, targets) in files {
        let from = room(file);
        let targets = targets.iter().map(room).filter(|target| *target != from).collect::<BTreeSet<_>>();
        graph.entry(from).or_default().extend(targets);
    }
    graph
}

/// The strongly connected components of two nodes or more.
pub(super) fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = graph.keys().map(|node| (node, reached(graph, node))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (node, others) in reach.iter().filter(|(node, others)| others.contains(*node)) {
        let circle = others.iter().filter(|other| reach[**other].contains(node));
        found.insert(circle.map(|other| (*other).clone()).collect());
    }
    found.into_iter().collect()
}

fn reached<'a>(graph: &'a Graph, node: &'a String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&String> = graph[node].iter().collect();
    while let Some(node) = next.pop() {
        if found.insert(node) {
            next.extend(graph.get(node).into_iter().flatten());
        }
    }
    found
}

fn node(module: &str) -> String {
    if module.is_empty() { ROOT.to_owned() } else { module.to_owned() }
}

/// The modules whose items `module` uses.
fn dependencies(modules: &Modules, name: &str, module: &Module) -> BTreeSet<String> {
    let below = |target: &str| name.is_empty() || target.starts_with(&format!("{name}::"));
    let used = |import: &str| module.paths.iter().any(|path| path[0] == import);
    let mut found = BTreeSet::new();
    for import in &module.imports {
        let target = match resolve(modules, name, &import.path, 0) {
            Some(Target::Item(target)) => target,
            Some(Target::Module(target)) if import.name == "*" => target,
            // A module's name is no dependency yet: the paths that begin with it are.
            _ => continue,
        };
        if !(import.public && below(&target) && !used(&import.name)) {
            found.insert(target);
        }
    }
    for path in module.paths.iter().filter(|path| path.len() > 1) {
        if let Some(Target::Item(target) | Target::Module(target)) = resolve(modules, name, path, 0) {
            found.insert(target);
        }
    }
    found
}

/// Where a path leads that stands in module `from`; `None` when out of the crate.
fn resolve(modules: &Modules, from: &str, path: &[String], depth: usize) -> Option<Target> {
    // Imports that lead to each other in a circle do not compile; a name that shadows a crate's would look like one.
    if depth > 16 {
        return None;
    }
    let mut at = from.to_owned();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => (at, rest) = (String::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {
            while let Some("super") = rest.first().map(String::as_str) {
                at = at.rsplit_once("::").map_or("", |(parent, _)| parent).to_owned();
                rest = &rest[1..];
            }
        }
        first => {
            let module = &modules[from];
            let known =
                modules.contains_key(&child(from, first)) || imported(modules, from, module, first, depth).is_some();
            if !known {
                return None;
            }
        }
    }
    while let Some((name, after)) = rest.split_first() {
        rest = after;
        let below = child(&at, name);
        if modules.contains_key(&below) {
            at = below;
            continue;
        }
        match imported(modules, &at, &modules[&at], name, depth) {
            Some(Target::Module(module)) => at = module,
            Some(item) => return Some(item),
            None => return Some(Target::Item(at)),
        }
    }
    Some(Target::Module(at))
}

/// Where a name leads that a module imports.
fn imported(modules: &Modules, at: &str, module: &Module, name: &str, depth: usize) -> Option<Target> {
    if module.items.contains(name) {
        return None;
    }
    let named = module.imports.iter().find(|import| import.name == name);
    if let Some(import) = named {
        return resolve(modules, at, &import.path, depth + 1);
    }
    module.imports.iter().filter(|import| import.name == "*").find_map(|import| {
        match resolve(modules, at, &import.path, depth + 1)? {
            Target::Module(target) => {
                let inside = &modules[&target];
                if inside.items.contains(name) {
                    return Some(Target::Item(target));
                }
                let public = inside.imports.iter().any(|import| import.public && import.name == name);
                if public { imported(modules, &target, inside, name, depth + 1) } else { None }
            }
            item => Some(item),
        }
    })
}
