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

mod crates;
mod graph;
mod modules;

use super::top;
use crates::{CRATES, Crate};
use graph::{Graph, ROOT};
use std::{collections::BTreeSet, fs};

/// The dependencies of a crate of the workspace, between rooms and between files.
fn graphs(name: &str) -> (Graph, Graph) {
    let source = top().join(name).join("src");
    let files = graph::files(&modules::read(&|file| fs::read_to_string(source.join(file)).ok()));
    (graph::rooms(&files), files)
}

/// The circles of a graph, each module with those that it uses; empty if there are none.
fn circles(graph: &Graph) -> String {
    let mut lines = String::new();
    for circle in graph::circles(graph) {
        lines += "A circle:\n";
        for node in &circle {
            let targets: Vec<&String> = graph[node].iter().filter(|target| circle.contains(target)).collect();
            lines += &format!("  {node} -> {targets:?}\n");
        }
    }
    lines
}

#[test]
fn modules_form_no_circles() {
    for Crate { name, .. } in CRATES {
        let (between_rooms, between_files) = graphs(name);
        for (nodes, graph) in [("rooms", &between_rooms), ("files", &between_files)] {
            println!("{name}: {} {nodes}", graph.len());
            let found = circles(graph);
            assert!(found.is_empty(), "{name}, {nodes}:\n{found}");
        }
    }
}

#[test]
fn rooms_use_only_rooms_before_them_in_the_declared_order() {
    for Crate { name, order } in CRATES {
        let broken = against(order, &graphs(name).0);
        assert!(broken.is_empty(), "{name}: {}", broken.join("; "));
    }
}

#[test]
fn every_crate_of_the_workspace_is_read() {
    let manifest = super::read("Cargo.toml");
    let members = manifest.lines().find_map(|line| line.strip_prefix("members = ")).expect("members");
    let members: BTreeSet<&str> = members.split('"').skip(1).step_by(2).collect();
    assert_eq!(members, CRATES.iter().map(|one| one.name).collect());
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
