//! No circles between the modules of a crate, and the order of its rooms. The imports are parsed with `syn`.
//!
//! A *room* is a module directly below the crate's root, with all modules below it. A *file* is a module with a file of
//! its own. What counts:
//!
//! - A module depends on the module that **defines** an item which it names: in a `use`, in a path in its code, or in the
//!   tokens of a macro call. A path through a re-export leads to the module that is re-exported, not to the one between.
//! - `mod child;` is no dependency of the parent. Neither is `pub use child::Item`, unless the parent's own code uses `Item`.
//! - So a parent may declare and re-export its children while they use its items. It may also use its children while they
//!   do not use its items. Both at once is a circle like any other.
//! - Between rooms, dependencies inside of one room do not count.
//! - Code for tests does not count.

mod graph;
mod known;
mod modules;

use super::top;
use graph::{Graph, ROOT};
use known::{CRATES, Known};
use std::{collections::BTreeSet, fs};

/// The dependencies of a crate of the workspace, between rooms and between files.
fn graphs(name: &str) -> (Graph, Graph) {
    let source = top().join(name).join("src");
    let files = graph::files(&modules::read(&|file| fs::read_to_string(source.join(file)).ok()));
    (graph::rooms(&files), files)
}

fn members(circle: &[String]) -> BTreeSet<&str> {
    circle.iter().map(String::as_str).collect()
}

/// What differs between the circles of a graph and those that are known; empty if nothing does.
fn difference(graph: &Graph, known: &[&[&str]]) -> String {
    let found = graph::circles(graph);
    let known: Vec<BTreeSet<&str>> = known.iter().map(|circle| circle.iter().copied().collect()).collect();
    let mut lines = String::new();
    for (circle, members) in
        found.iter().map(|circle| (circle, members(circle))).filter(|(_, members)| !known.contains(members))
    {
        let smaller = known.iter().any(|known| members.is_subset(known));
        lines += if smaller { "A known circle became smaller:\n" } else { "There is a new circle:\n" };
        for node in circle {
            let targets: Vec<&String> = graph[node].iter().filter(|target| members.contains(target.as_str())).collect();
            lines += &format!("  {node} -> {targets:?}\n");
        }
    }
    let gone = known.iter().filter(|circle| !found.iter().any(|found| members(found) == **circle));
    lines.extend(gone.map(|circle| format!("This known circle is gone: {circle:?}\n")));
    if !lines.is_empty() {
        let listed: String = found.iter().map(|circle| format!("&{circle:?}, ")).collect();
        lines += &format!("All of them, as `known.rs` lists them: &[{listed}]\n");
    }
    lines
}

#[test]
fn modules_form_no_circles_but_the_known_ones() {
    let mut differences = String::new();
    for Known { name, rooms, files, .. } in CRATES {
        let (between_rooms, between_files) = graphs(name);
        for (nodes, graph, known) in [("rooms", &between_rooms, rooms), ("files", &between_files, files)] {
            let inside: usize = graph::circles(graph).iter().map(Vec::len).sum();
            println!("{name}: {inside} of {} {nodes} in circles", graph.len());
            let different = difference(graph, known);
            if !different.is_empty() {
                differences += &format!("{name}, {nodes}:\n{different}\n");
            }
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}

#[test]
fn rooms_use_only_rooms_before_them_in_the_declared_order() {
    for Known { name, order, .. } in CRATES.iter().filter(|known| !known.order.is_empty()) {
        let broken = against(order, &graphs(name).0);
        assert!(broken.is_empty(), "{name}: {}", broken.join("; "));
    }
}

#[test]
fn every_crate_of_the_workspace_is_read() {
    let manifest = super::read("Cargo.toml");
    let members = manifest.lines().find_map(|line| line.strip_prefix("members = ")).expect("members");
    let members: BTreeSet<&str> = members.split('"').skip(1).step_by(2).collect();
    assert_eq!(members, CRATES.iter().map(|known| known.name).collect());
}

/// What contradicts an order such as `value < store < {webhooks, imports} < platform`. Rooms in braces do not use each
/// other. The root is after all rooms.
fn against(order: &str, rooms: &Graph) -> Vec<String> {
    let layers: Vec<Vec<&str>> = order
        .split('<')
        .map(|layer| layer.trim().trim_matches(['{', '}']).split(',').map(str::trim).collect())
        .chain([vec![ROOT]])
        .collect();
    let layer = |room: &str| layers.iter().position(|layer| layer.contains(&room));
    let mut broken = Vec::new();
    for room in layers.iter().flatten().filter(|room| !rooms.contains_key(**room)) {
        broken.push(format!("{room} is in the order, but is no room"));
    }
    for (room, targets) in rooms {
        match layer(room) {
            None => broken.push(format!("{room} is not in the order")),
            Some(own) => {
                let later = targets.iter().filter(|target| layer(target).is_none_or(|other| other >= own));
                broken.extend(later.map(|target| format!("{room} uses {target}, which is not before it")));
            }
        }
    }
    broken
}

mod tests_of_the_rules;
