//! The rules on small crates of a few lines.

use super::{against, circles, graph, modules};

/// A crate as (file, text).
type Files<'a> = &'a [(&'a str, &'a str)];

fn files(files: Files<'_>) -> graph::Graph {
    let load = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned());
    graph::files(&modules::read(&load))
}

/// The arrows of a crate, as `from -> to`.
#[track_caller]
fn check(crate_files: Files<'_>, expected: &[&str]) {
    let graph = files(crate_files);
    let arrows: Vec<String> =
        graph.iter().flat_map(|(from, targets)| targets.iter().map(move |to| format!("{from} -> {to}"))).collect();
    assert_eq!(arrows, expected);
}

const ROOT: (&str, &str) = ("lib.rs", "mod a; mod b;");

#[test]
fn a_use_tree_leads_to_each_module_that_it_names() {
    let main = ("main.rs", "mod a; mod b; mod c; fn main() {}");
    let a = ("a.rs", "use crate::{b::{self, X}, c::Y as Z}; use std::fmt;");
    check(&[main, a, ("b.rs", "pub struct X;"), ("c.rs", "pub struct Y;")], &["a -> b", "a -> c"]);
}

#[test]
fn paths_in_code_count_with_and_without_use() {
    check(&[ROOT, ("a.rs", "fn f() { crate::b::g(); }"), ("b.rs", "pub fn g() {}")], &["a -> b"]);
    check(&[ROOT, ("a.rs", "fn f(x: super::b::X) {}"), ("b.rs", "pub struct X;")], &["a -> b"]);
    check(&[ROOT, ("a.rs", "use crate::b; fn f() { b::g(); }"), ("b.rs", "pub fn g() {}")], &["a -> b"]);
}

#[test]
fn paths_in_macro_calls_count() {
    let a = ("a.rs", "fn f() { println!(\"{}\", vec![(1, crate::b::g(2))].len()); }");
    check(&[ROOT, a, ("b.rs", "pub fn g(n: u8) -> u8 { n }")], &["a -> b"]);
}

#[test]
fn a_re_export_leads_to_the_module_that_defines_the_item() {
    let b = ("b.rs", "mod inner; pub use inner::X;");
    let inner = ("b/inner.rs", "pub struct X;");
    check(&[ROOT, ("a.rs", "use crate::b::X;"), b, inner], &["a -> b::inner"]);
    check(&[ROOT, ("a.rs", "fn f() { crate::b::X; }"), b, inner], &["a -> b::inner"]);
    let all = ("b.rs", "mod inner; pub use inner::*;");
    check(&[ROOT, ("a.rs", "use crate::b::X;"), all, inner], &["a -> b::inner"]);
}

#[test]
fn code_for_tests_does_not_count() {
    let a = "#[cfg(test)] mod tests; #[cfg(test)] mod inline { use crate::b::X; } #[cfg(test)] use crate::b::X;
             #[cfg(test)] fn f() { crate::b::g() } #[test] fn t() { crate::b::g() }";
    check(&[ROOT, ("a.rs", a), ("b.rs", "pub struct X; pub fn g() {}")], &[]);
}

#[test]
fn a_parent_that_only_declares_and_re_exports_is_used_by_its_children() {
    let inner = ("a/inner.rs", "use super::Y; pub struct X(Y);");
    let declares = ("a.rs", "mod inner; pub use inner::X; pub struct Y;");
    check(&[ROOT, declares, ("b.rs", ""), inner], &["a::inner -> a"]);
    assert!(graph::circles(&files(&[ROOT, declares, ("b.rs", ""), inner])).is_empty());
}

#[test]
fn a_parent_and_a_child_that_use_each_other_are_a_circle() {
    let inner = ("a/inner.rs", "use super::Y; pub struct X(Y);");
    for parent in [
        "mod inner; use inner::X; pub struct Y;",
        "mod inner; pub use inner::X; pub struct Y; fn f(x: X) {}",
        "mod inner; pub struct Y; fn f() { inner::g(); }",
    ] {
        let circles = graph::circles(&files(&[ROOT, ("a.rs", parent), ("b.rs", ""), inner]));
        assert_eq!(circles, [["a", "a::inner"]], "{parent}");
    }
}

#[test]
fn visibilities_and_attributes_are_no_dependencies() {
    check(&[ROOT, ("a.rs", "pub(crate) fn f() {} #[expect(dead_code)] pub(in crate::b) struct X;"), ("b.rs", "")], &[]);
}

#[test]
fn a_circle_is_found_between_rooms_and_only_there_inside_of_none() {
    let root = ("lib.rs", "mod a; mod b; mod c;");
    let graph = files(&[
        root,
        ("a.rs", "mod inner; use crate::b::X; pub struct Y;"),
        ("a/inner.rs", "pub struct Z;"),
        ("b.rs", "use crate::a::inner::Z; pub struct X;"),
        ("c.rs", "use crate::a::Y;"),
    ]);
    assert!(graph::circles(&graph).is_empty(), "the files depend on each other one way");
    assert_eq!(graph::circles(&graph::rooms(&graph)), [["a", "b"]]);
}

#[test]
fn a_circle_is_shown_with_its_arrows_alone() {
    let root = ("lib.rs", "mod a; mod b; mod c;");
    let (a, b) = ("use crate::{b::X, c::Z}; pub struct Y;", "use crate::a::Y; pub struct X;");
    let graph = files(&[root, ("a.rs", a), ("b.rs", b), ("c.rs", "pub struct Z;")]);
    assert_eq!(circles(&graph), "A circle:\n  a -> [\"b\"]\n  b -> [\"a\"]\n");
    let graph = files(&[root, ("a.rs", a), ("b.rs", "pub struct X;"), ("c.rs", "pub struct Z;")]);
    assert_eq!(circles(&graph), "");
}

#[test]
fn an_order_names_every_room_and_the_arrows_against_it() {
    let root = ("lib.rs", "mod a; mod b; mod c;");
    let of = |a, b, c| graph::rooms(&files(&[root, ("a.rs", a), ("b.rs", b), ("c.rs", c)]));
    let right = of("pub struct X;", "use crate::a::X;", "use crate::a::X; pub struct Y;");
    assert_eq!(against("a < {b, c}", &right), [""; 0]);
    assert_eq!(against("a < b < c", &right), [""; 0]);
    assert_eq!(against("b < {a, c}", &right), ["b uses a, which is not before it", "c uses a, which is not before it"]);
    assert_eq!(against("a < b", &right), ["c is not in the order"]);
    assert_eq!(against("a < {b, c} < d", &right), ["d is in the order, but is no room"]);
    let aside = of("pub struct X;", "use crate::c::Y;", "pub struct Y;");
    assert_eq!(against("a < {b, c}", &aside), ["b uses c, which is not before it"]);
}
