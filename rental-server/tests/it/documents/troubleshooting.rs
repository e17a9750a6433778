//! docs/troubleshooting.md: its table of errors is the server's catalogue, and its messages are those of the programs.

use super::{openapi, read, top};
use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

const PAGE: &str = "docs/troubleshooting.md";
const HEAD: &str = "| Status | `code` | Cause | Next step |\n|---|---|---|---|\n";
const END: &str = "\n<!-- End of the table. -->";

/// Files whose errors end the start of the server.
const STARTUP: [&str; 12] = [
    "rental-server/src/lib.rs",
    "rental-server/src/secrets.rs",
    "rental-server/src/master_key.rs",
    "rental-server/src/healthcheck.rs",
    "rental-server/src/service_manager.rs",
    "rental-server/src/upgrade.rs",
    "rental-server/src/engine.rs",
    "rental-server/src/http/tls.rs",
    "rental-core/src/store/versioned.rs",
    "rental-core/src/store/engines/redb/file.rs",
    "rental-core/src/store/engines/redb/version.rs",
    "rental-core/src/upgrade/survey.rs",
];

/// The table as the server's OpenAPI document has it.
fn catalogue() -> String {
    let document = openapi();
    let mut rows = String::new();
    for (name, response) in document["components"]["responses"].as_object().expect("responses") {
        let Some(status) = name.strip_prefix("Problem") else { continue };
        for (code, example) in response["content"]["application/json"]["examples"].as_object().expect("examples") {
            let [cause, next] = ["summary", "description"].map(|name| example[name].as_str().expect("a sentence"));
            assert!(!cause.is_empty() && !next.is_empty() && !cause.contains('|') && !next.contains('|'), "{code}");
            writeln!(rows, "| {status} | `{code}` | {cause} | {next} |").expect("a string takes all");
        }
    }
    rows
}

#[test]
fn the_table_of_troubleshooting_is_the_catalogue() {
    let text = read(PAGE);
    let (before, rest) = text.split_once(HEAD).expect("the head of the table");
    let (listed, after) = rest.split_once(END).expect("the end of the table");
    let expected = catalogue();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(top().join(PAGE), format!("{before}{HEAD}{expected}{END}{after}")).expect("the page is written");
        return;
    }
    assert!(listed == expected, "{PAGE} differs from the catalogue of the server; UPDATE=1 writes the table again");
}

/// Rust's text with its continued lines joined, and without tests.
fn source(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("text");
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut joined = String::new();
    for (at, part) in text.split("\\\n").enumerate() {
        joined += if at == 0 { part } else { part.trim_start() };
    }
    joined
}

fn sources(folder: &Path, found: &mut String) {
    for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *found += &source(&path);
        }
    }
}

/// The messages in the first column of the tables that have one.
fn messages(page: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        inside = line.starts_with("| Message |") || (inside && line.starts_with('|'));
        if inside && let Some(cell) = line.split(" | ").next() {
            found.extend(cell.split('`').skip(1).step_by(2));
        }
    }
    found
}

/// What clap and the operating system say, which no source of ours has.
const OF_OTHERS: [&str; 8] = [
    "unexpected argument '",
    "' found",
    "invalid value '",
    "' for '",
    "Address already in use",
    "Permission denied",
    "Cannot assign requested address",
    "No such file or directory",
];

#[test]
fn every_message_of_troubleshooting_is_one_of_the_programs() {
    let page = read(PAGE);
    let mut code = String::new();
    for folder in ["rental-server/src", "rental-core/src"] {
        sources(&top().join(folder), &mut code);
    }
    let messages = messages(&page);
    assert!(messages.len() > 40, "{messages:?}");
    for message in messages {
        for part in message.split("...").map(|part| part.trim_matches([' ', ':'])).filter(|part| !part.is_empty()) {
            let known = code.contains(part) || OF_OTHERS.contains(&part);
            // Numbers are filled in: `at least 32 visible`.
            let filled = part.split(" 32 ").all(|part| code.contains(part));
            assert!(known || filled, "{PAGE} has `{message}`, and no program says `{part}`");
        }
    }
}

/// The first words of each text that is an error in a file: what follows `Err(`, `Err(format!(` and the like.
fn errors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for opening in
        ["Err(format!(", "Err(", "fail(&format!(", "|error| format!(", "Unavailable(format!(", "Store(format!("]
    {
        for rest in text.split(opening).skip(1) {
            let Some(literal) = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next()) else {
                continue;
            };
            // The longest run of words between two values that are filled in.
            let runs = literal.split(['{', '}']).step_by(2).map(|run| run.trim_matches([' ', ':', ';', ',', '(', ')']));
            found.extend(runs.max_by_key(|run| run.len()).filter(|run| run.len() > 8).map(str::to_owned));
        }
    }
    found
}

#[test]
fn troubleshooting_has_every_message_of_a_refused_start() {
    let page = read(PAGE);
    let mut all = BTreeSet::new();
    STARTUP.iter().for_each(|path| all.extend(errors(&source(&top().join(path)))));
    assert!(all.len() > 20, "{all:?}");
    let words = messages(&page);
    let said = |error: &String| {
        words.iter().any(|message| {
            let mut parts =
                message.split("...").map(|part| part.trim_matches([' ', ':'])).filter(|part| part.len() > 8);
            parts.any(|part| error.contains(part) || part.contains(error.as_str()))
        })
    };
    let missing: Vec<&String> = all.iter().filter(|error| !said(error)).collect();
    assert!(missing.is_empty(), "{PAGE} lacks {missing:#?}");
}

#[test]
fn troubleshooting_has_every_code_of_the_command_line() {
    let page = read(PAGE);
    let mut code = String::new();
    sources(&top().join("rental-cli/src"), &mut code);
    let kinds = code.split("kind: \"").skip(1).chain(code.split("of(\"").skip(1));
    let kinds: BTreeSet<&str> = kinds.filter_map(|rest| rest.split('"').next()).collect();
    assert!(kinds.len() > 10, "{kinds:?}");
    for kind in kinds.into_iter().filter(|kind| !["client_error", "authentication_error"].contains(kind)) {
        assert!(page.contains(&format!("| `{kind}` |")), "{PAGE} lacks `{kind}`");
    }
}
