//! The documents are true: what they show works, what they name exists, what must be said is said.

mod boundaries;
mod clients;
mod deploying;
mod evidence;
mod imports;
mod limits;
pub(crate) mod pages;
mod reference_page;
mod renditions;
mod shell;
mod specification;
mod troubleshooting;
mod uploads;

use crate::support::{Connection, Server};
use rental_core::rows::Tag;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const DOCUMENTS: [&str; 46] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs/api.md",
    "docs/README.md",
    "docs/SUMMARY.md",
    "docs/attribution.md",
    "docs/backup.md",
    "docs/calendars.md",
    "docs/cli.md",
    "docs/clients.md",
    "docs/comparison.md",
    "docs/gdpr.md",
    "docs/glossary.md",
    "docs/sizing.md",
    "docs/troubleshooting.md",
    "docs/upgrade.md",
    "docs/deploy.md",
    "docs/releases.md",
    "docs/imports.md",
    "docs/runbook.md",
    "docs/limits.md",
    "docs/observability.md",
    "docs/reference.md",
    "docs/benchmarks.md",
    "docs/webhooks.md",
    "docs/postgresql.md",
    "docs/reliability.md",
    "docs/security.md",
    "docs/spec.md",
    "docs/decisions.md",
    "docs/quickstart/README.md",
    "docs/quickstart/curl.md",
    "docs/quickstart/typescript.md",
    "docs/quickstart/python.md",
    "docs/quickstart/operator.md",
    "docs/quickstart/month.md",
    "docs/quickstart/webhooks.md",
    "examples/booking-site/README.md",
    "examples/fleet-import/README.md",
    "rental-core/README.md",
    "rental-webhook-verify/README.md",
    "clients/python/README.md",
    "clients/typescript/README.md",
];

/// The top of the repository.
pub(crate) fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file of the repository.
#[track_caller]
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The targets of the links in a Markdown text.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// rustdoc hides lines of Rust that begin with `# `; every other reader of the page sees them.
#[test]
fn no_example_in_rust_has_hidden_lines() {
    for path in DOCUMENTS {
        let mut rust = false;
        for line in read(path).lines() {
            if let Some(language) = line.strip_prefix("```") {
                rust = !rust && language.starts_with("rust");
            }
            assert!(!rust || !(line == "#" || line.starts_with("# ")), "{path}: {line}");
        }
    }
}

/// A heading as the fragment of a link.
fn fragment(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    for document in DOCUMENTS {
        let text = read(document);
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let folder = Path::new(document).parent().expect("a file lies in a folder");
            let target = if file.is_empty() { PathBuf::from(document) } else { folder.join(file) };
            assert!(top().join(&target).is_file(), "{document} links to {link}");
            if !heading.is_empty() {
                let found = fs::read_to_string(top().join(&target)).expect("text");
                let known = found.lines().filter(|line| line.starts_with('#')).any(|line| fragment(line) == heading);
                assert!(known, "{document} links to {link}");
            }
        }
    }
}

#[test]
fn the_architecture_names_every_kind_of_row() {
    let text = read("ARCHITECTURE.md");
    for tag in Tag::ALL {
        // `IndexEntry` is written as two words.
        let words = format!("{tag:?}").chars().fold(String::new(), |mut words, letter| {
            if letter.is_uppercase() && !words.is_empty() {
                words.push(' ');
            }
            words.extend(letter.to_lowercase());
            words
        });
        let named = format!("`{}` {words}", char::from(*tag as u8));
        assert!(text.contains(&named), "ARCHITECTURE.md lacks {named}");
    }
}

#[test]
fn the_architecture_names_every_module_and_only_files_that_exist() {
    let text = read("ARCHITECTURE.md");
    let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    for folder in ["rental-core/src", "rental-server/src"] {
        for entry in fs::read_dir(top().join(folder)).expect("a folder").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let shown = if entry.path().is_dir() { format!("{name}/") } else { name.clone() };
            let beside = name == "lib.rs" || name.ends_with(".css");
            assert!(beside || quoted.contains(&shown.as_str()), "{folder}/{name} is not on the map");
        }
    }
    let places = ["", "rental-core/src/", "rental-core/src/store/", "rental-core/src/resources/", "rental-server/src/"];
    let more = ["rental-server/src/http/", "rental-server/examples/", "rental-cli/src/"];
    for file in quoted.iter().filter(|word| word.ends_with(".rs") && !word.contains("NAME")) {
        let found = places.iter().chain(&more).any(|place| top().join(place).join(file).is_file());
        assert!(found, "there is no {file}");
    }
}

/// The names of the dependencies in a manifest, of all sorts.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            inside = section.trim_end_matches(']').ends_with("dependencies");
        } else if let Some((name, _)) = line.split_once(['.', '=', ' ']).filter(|_| inside && !line.starts_with('#')) {
            names.insert(name.trim().to_owned());
        }
    }
    names.remove("");
    names
}

/// Every manifest of the repository, as (folder, text).
fn manifests() -> Vec<(String, String)> {
    let mut found = vec![(String::new(), read("Cargo.toml"))];
    for entry in fs::read_dir(top()).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().join("Cargo.toml").is_file() {
            found.push((name.clone(), read(&format!("{name}/Cargo.toml"))));
        }
    }
    found
}

#[test]
fn the_architecture_names_every_dependency() {
    let text = read("ARCHITECTURE.md");
    for (folder, manifest) in manifests() {
        for name in dependencies(&manifest).iter().filter(|name| !name.starts_with("rental-")) {
            assert!(text.contains(&format!("`{name}`")), "{name} of {folder}/Cargo.toml has no reason");
        }
    }
}

#[test]
fn the_reference_for_operators_names_every_flag_and_variable() {
    let text = read("docs/reference.md");
    let help = Command::new(env!("CARGO_BIN_EXE_rental-server")).arg("--help").output().expect("the program runs");
    let help = String::from_utf8(help.stdout).expect("text");
    let words = help.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)));
    let named: BTreeSet<&str> = words.filter(|word| word.starts_with("--") || word.starts_with("RENTAL_")).collect();
    assert!(named.len() > 15, "{named:?}");
    for word in named.into_iter().filter(|word| !["--", "--help", "--version"].contains(word)) {
        assert!(text.contains(&format!("`{word}")), "{word}");
    }
}

#[test]
fn the_guide_for_users_names_every_filter() {
    let text = read("docs/api.md");
    let document = openapi();
    for (path, item) in document["paths"].as_object().expect("paths").iter().filter(|row| row.0.starts_with("/v1/")) {
        for parameter in item["get"]["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "query") {
            let name = parameter["name"].as_str().expect("a name");
            let row = text.lines().find(|line| line.starts_with("| ") && line.contains(&format!("`{path}`")));
            assert!(row.is_some_and(|row| row.contains(&format!("`{name}`"))), "{path} {name}");
        }
    }
}

#[test]
fn the_runbook_names_every_background_task() {
    let (runbook, mut code, mut found) = (read("docs/runbook.md"), String::new(), 0);
    limits::sources(&top().join("rental-server/src"), &mut code);
    for name in code.split("supervisor.start(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(runbook.contains(&format!("`{name}`")), "docs/runbook.md does not name the task `{name}`");
        found += 1;
    }
    assert!(found >= 15, "{found}");
}

/// The OpenAPI document of the API, which is the same on every server.
fn openapi() -> Value {
    served("/openapi.json")
}

/// One OpenAPI document with the operations and components of the API and of operators.
pub(crate) fn whole() -> Value {
    let (mut whole, operators) = (openapi(), served("/openapi-admin.json"));
    let add = |members: &mut Value, more: &Value| {
        members.as_object_mut().expect("members").extend(more.as_object().expect("members").clone());
    };
    add(&mut whole["paths"], &operators["paths"]);
    for (section, members) in operators["components"].as_object().expect("components") {
        add(&mut whole["components"][section], members);
    }
    whole
}

/// One of the JSON documents that need no key.
fn served(path: &str) -> Value {
    served_at(&Server::shared().address, path)
}

fn served_at(address: &str, path: &str) -> Value {
    Connection::open(address).send("GET", path, &[], b"").ok()
}
