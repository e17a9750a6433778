//! `/docs` has everything that the OpenAPI documents have, its links lead somewhere, and its examples exist.

use super::{
    pages::{Pages, anchors, code, links, split},
    read,
    shell::{Kind, Program, runs},
    whole,
};
use crate::support::{Connection, Server};
use rental_core::resources::event::EVENT_NAMES;
use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path, process::Command};

fn pages() -> Pages {
    Pages::of(&Server::shared().address)
}

/// Every operation of the document as (name, path).
fn operations(document: &Value) -> Vec<(String, String)> {
    let paths = document["paths"].as_object().expect("paths");
    let operations = paths.iter().flat_map(|(path, item)| {
        item.as_object().expect("operations").values().map(|operation| (path.clone(), operation))
    });
    operations.map(|(path, one)| (one["operationId"].as_str().expect("a name").to_owned(), path)).collect()
}

#[test]
fn every_operation_is_on_exactly_one_page() {
    let pages = pages();
    let document = whole();
    for (id, path) in operations(&document) {
        let mark = format!("<article id=\"{id}\"");
        let on: Vec<&String> = pages.0.iter().filter(|(_, page)| page.contains(&mark)).map(|(path, _)| path).collect();
        assert_eq!(on.len(), 1, "{id}: {on:?}");
        let for_operators = path.contains("admin") || path == "/metrics";
        assert_eq!(on[0].starts_with("/docs/admin/"), for_operators, "{path} is on {}", on[0]);
    }
    assert!(pages.0.len() > 25, "{:?}", pages.0.keys());
}

#[test]
fn every_link_of_the_pages_leads_to_a_page_and_to_an_anchor_of_it() {
    let pages = pages();
    for (path, page) in &pages.0 {
        for link in links(page) {
            assert!(link.starts_with('/') || link.starts_with('#'), "{path} links to {link}");
            let (target, anchor) = split(&link);
            let Some(anchor) = anchor else { continue };
            let target = if target.is_empty() { path } else { &target };
            assert!(anchors(&pages.0[target]).contains(&anchor), "{path} links to {link}");
        }
    }
}

#[test]
fn everything_that_the_search_finds_is_there() {
    let server = Server::shared();
    let pages = pages();
    let document = whole();
    let index = |path: &str| -> Vec<Vec<String>> {
        let reply = Connection::open(&server.address).send("GET", path, &[], b"");
        serde_json::from_slice(&reply.body).expect("entries")
    };
    let (public, all) = (index("/docs/search.json"), index("/docs/admin/search.json"));
    for entry in public.iter().chain(&all) {
        let [_, title, _, address, ..] = &entry[..] else { panic!("{entry:?}") };
        let (target, anchor) = split(address);
        let page = pages.0.get(&target).unwrap_or_else(|| panic!("{title}: {address}"));
        assert!(anchor.is_none_or(|anchor| anchors(page).contains(&anchor)), "{title}: {address}");
    }
    let of = |entries: &[Vec<String>], kind: &str| entries.iter().filter(|entry| entry[0] == kind).count();
    assert_eq!(of(&all, "operation"), operations(&document).len());
    assert_eq!(of(&public, "event"), EVENT_NAMES.len());
    assert!(of(&public, "error") > 25 && of(&public, "field") > 150, "{}", public.len());
    assert!(!public.iter().any(|entry| entry[3].contains("admin")), "operators have an index of their own");
}

/// What people look for in the prose and among the headers. `.ci/page/check` types these words in a browser.
#[test]
fn the_search_finds_the_prose_and_the_headers() {
    let server = Server::shared();
    let reply = Connection::open(&server.address).send("GET", "/docs/search.json", &[], b"");
    let entries: Vec<Vec<String>> = serde_json::from_slice(&reply.body).expect("entries");
    for (words, address) in [
        ("signature", "/docs/webhooks#verifying"),
        ("webhook signature", "/docs/webhooks#header.Service-Signature"),
        ("verify", "/docs/webhooks#verifying"),
        ("pagination", "/docs#lists"),
        ("idempotency-key", "/docs#header.Idempotency-Key"),
        ("idempotency-key", "/docs#retries"),
        ("retry", "/docs#retries"),
        ("retries", "/docs#retries"),
        ("retry", "/docs/webhooks#deliveries"),
        ("etag", "/docs#header.ETag"),
        ("etag", "/docs#lost-updates"),
        ("bearer", "/docs#basics"),
        ("if-none-match", "/docs#header.If-None-Match"),
        ("retry-after", "/docs#header.Retry-After"),
        ("refunds", "/docs/credit_notes"),
        ("refunds", "/docs/credit_notes#credit_note.refunded_at"),
        ("reservation", "/docs/rentals"),
        ("reservations", "/docs#first-booking"),
        ("cancel booking", "/docs/rentals"),
        ("overdue", "/docs/invoices"),
        ("permission", "/docs/errors#insufficient_scope"),
        ("page size", "/docs#lists"),
        ("sort", "/docs#lists"),
        ("date format", "/docs#amounts"),
        ("whsec", "/docs/webhooks#verifying"),
        ("postman", "/docs#clients"),
        ("cors", "/docs#clients"),
        ("browser", "/docs#clients"),
        ("login", "/docs#basics"),
        ("ical", "/docs/calendar_feeds"),
        ("ezpass", "/docs/tolls"),
        ("parking ticket", "/docs/violations"),
        ("throttling", "/docs/errors#rate_limited"),
        ("traceparent", "/docs#request-ids"),
        ("x-request-id", "/docs#request-ids"),
    ] {
        // As the script of the pages does: every word or its singular is in the title, in the text, or is another word for it.
        let fits = |entry: &&Vec<String>| {
            let searched = [&entry[1..3], &entry[4..]].concat().join(" ").to_lowercase();
            let is_there = |word: &str| searched.contains(word);
            words.split(' ').all(|word| is_there(word) || word.strip_suffix('s').is_some_and(is_there))
        };
        let found: Vec<&str> = entries.iter().filter(fits).map(|entry| entry[3].as_str()).collect();
        assert!(found.contains(&address), "{words}: {found:?}");
    }
}

#[test]
fn the_page_about_webhooks_has_the_payload_of_every_event_type() {
    let pages = pages();
    let page = &pages.0["/docs/webhooks"];
    for name in EVENT_NAMES {
        let part = page.split_once(&format!("aria-label=\"payload of {name}\"")).expect(name).1;
        let payload: Value = serde_json::from_str(&code(part)).expect("JSON");
        assert_eq!(payload["type"], *name);
        assert!(payload["data"]["id"].is_string(), "{payload}");
    }
}

/// The names of the clients' methods, as their sources define them. `clients/check` compiles the examples.
#[test]
fn every_call_of_the_pages_is_a_method_of_the_clients() {
    let pages = pages();
    let (typescript, python) = (pages.examples("typescript"), pages.examples("python"));
    let of_organizations = operations(&whole()).iter().filter(|(_, path)| path.starts_with("/v1/")).count();
    assert_eq!((typescript.len(), python.len()), (of_organizations, of_organizations));
    let call = |code: &str| {
        let after = code.rsplit_once("rental.").expect("a call").1;
        after.split('(').next().expect("a name").to_owned()
    };
    let source = read("clients/typescript/src/client.ts") + &read("clients/typescript/src/operations.ts");
    for (page, example) in typescript {
        let call = call(&example);
        let (group, method) = call.split_once('.').unwrap_or(("", &call));
        let known = |name: &str, ends: &[&str]| ends.iter().any(|end| source.contains(&format!(" {name}{end}")));
        assert!(group.is_empty() || known(group, &[": "]), "{page}: {call}");
        assert!(known(method, &["(", ": "]), "{page}: {call}");
    }
    let source = read("clients/python/src/rental_client/client.py");
    for (page, example) in python {
        let call = call(&example);
        let (group, method) = call.split_once('.').unwrap_or(("", &call));
        assert!(group.is_empty() || source.contains(&format!("self.{group} = ")), "{page}: {call}");
        assert!(source.contains(&format!("def {method}(")), "{page}: {call}");
    }
}

/// A command that rental-cli does not have, or flags that it does not take, end with exit code 2; a panic with 101.
#[test]
fn every_command_of_the_pages_is_one_of_rental_cli() {
    let folder = Path::new(env!("CARGO_BIN_EXE_rental-server")).parent().expect("a folder");
    if !runs(Path::new("bash")) || !runs(&folder.join("rental-cli")) {
        return;
    }
    let demo = Program::start(Kind::Demo);
    let pages = Pages::of(demo.address());
    let directory = tempfile::tempdir().expect("a temporary directory");
    // The server looks at the content of a file before it looks at its rows.
    for (name, header) in [("tolls.csv", "transaction_id,amount"), ("violations.csv", "plate,summons_number")] {
        fs::write(directory.path().join(name), format!("{header}\n")).expect("a file");
    }
    fs::write(directory.path().join("organizations.png"), b"no image").expect("a file");
    let examples = pages.examples("cli");
    let commands: BTreeSet<&str> = examples.iter().map(|(_, command)| command.as_str()).collect();
    assert!(commands.len() > 100, "{}", commands.len());
    for command in commands {
        let mut shell = Command::new("bash");
        shell.args(["-c", command]).current_dir(directory.path()).env_clear().envs(&demo.variables);
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        let ended = shell.env("PATH", path).env("HOME", directory.path()).output().expect("bash runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        // These ask before they act, and here nobody can answer.
        let asks = said.contains("no terminal can answer");
        assert!(asks || matches!(ended.status.code(), Some(0 | 3 | 6)), "{command}\n{}\n{said}", ended.status);
    }
}

#[test]
fn an_operator_and_an_integrator_get_pages_of_their_own() {
    let pages = pages();
    for (path, page) in &pages.0 {
        let (own, other) = ("data-secret=\"key\"", "data-secret=\"token\"");
        let (own, other) = if path.starts_with("/docs/admin") { (other, own) } else { (own, other) };
        assert!(page.contains(own) && !page.contains(other), "{path}");
    }
}

/// A browser asks for pages, every other client for JSON.
#[test]
fn a_page_that_does_not_exist_is_a_404_with_a_way_back_for_browsers() {
    let server = Server::shared();
    let get =
        |path: &str, accept: &str| Connection::open(&server.address).send("GET", path, &[("Accept", accept)], b"");
    for path in ["/docs/bookings", "/docs/admin/bookings"] {
        let page = get(path, "text/html,application/xhtml+xml,*/*;q=0.8");
        assert_eq!((page.status, page.header("content-type")), (404, Some("text/html; charset=utf-8")), "{path}");
        let text = page.text();
        assert!(text.contains("There is no such page") && text.contains("href=\"/docs\""), "{text}");
        assert!(page.header("content-security-policy").is_some() && page.header("etag").is_none(), "{path}");
        for accept in ["application/json", "*/*"] {
            get(path, accept).error(404, "invalid_request_error", "resource_missing");
        }
    }
    assert_eq!(get("/docs/vehicles", "text/html").status, 200);
}

#[test]
fn the_example_of_free_vehicles_prints_their_names_prices_and_statuses() {
    let pages = pages();
    let page = &pages.0["/docs/vehicles"];
    for code in [
        "console.log(vehicle.name, vehicle.daily_rate, vehicle.status);",
        "print(vehicle.name, vehicle.daily_rate, vehicle.status)",
    ] {
        assert!(page.contains(code), "{code}");
    }
}
