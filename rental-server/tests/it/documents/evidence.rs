//! The evidence that the documents name exists: tests by name, requirements one by one, and files of the package.

use super::{read, top};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

/// The pages whose tables name tests.
const PAGES: [&str; 2] = ["docs/security.md", PROMISES];
/// The promises of all pages, with their tests.
const PROMISES: &str = "rental-server/tests/it/documents/promises.md";

/// Sections of OWASP ASVS 5.0 with the number of their requirements of levels 1 and 2, which are numbered from 1.
#[rustfmt::skip]
const SECTIONS: [(&str, usize); 75] = [
    ("1.1", 2), ("1.2", 9), ("1.3", 11), ("1.4", 3), ("1.5", 2), ("2.1", 3), ("2.2", 3), ("2.3", 4), ("2.4", 1), ("3.2", 2), ("3.3", 4),
    ("3.4", 6), ("3.5", 5), ("3.7", 2), ("4.1", 3), ("4.2", 1), ("4.3", 2), ("4.4", 4), ("5.1", 1), ("5.2", 3), ("5.3", 2), ("5.4", 3),
    ("6.1", 3), ("6.2", 12), ("6.3", 4), ("6.4", 4), ("6.5", 5), ("6.6", 3), ("6.8", 4), ("7.1", 3), ("7.2", 4), ("7.3", 2), ("7.4", 5),
    ("7.5", 2), ("7.6", 2), ("8.1", 2), ("8.2", 3), ("8.3", 1), ("8.4", 1), ("9.1", 3), ("9.2", 4), ("10.1", 2), ("10.2", 2), ("10.3", 4),
    ("10.4", 11), ("10.5", 5), ("10.6", 2), ("10.7", 3), ("11.1", 2), ("11.2", 3), ("11.3", 3), ("11.4", 4), ("11.5", 1), ("11.6", 1),
    ("12.1", 3), ("12.2", 2), ("12.3", 4), ("13.1", 1), ("13.2", 5), ("13.3", 2), ("13.4", 5), ("14.1", 2), ("14.2", 4), ("14.3", 3),
    ("15.1", 3), ("15.2", 3), ("15.3", 7), ("16.1", 1), ("16.2", 5), ("16.3", 4), ("16.4", 3), ("16.5", 3), ("17.1", 1), ("17.2", 4), ("17.3", 2),
];

/// The names of all tests in the sources, with the files that have them.
fn tests() -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let crates = ["rental-core", "rental-server", "rental-cli", "rental-webhook-verify"];
    let mut folders: Vec<_> =
        crates.iter().flat_map(|name| ["src", "tests"].map(|part| top().join(name).join(part))).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).expect("text");
                for name in names(&text) {
                    found.entry(name.to_owned()).or_default().push(path.display().to_string());
                }
            }
        }
    }
    found
}

/// The functions of a source that have an attribute `test`.
fn names(source: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    source.lines().map(str::trim_start).filter_map(move |line| {
        is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
        std::mem::take(&mut is_test).then(|| function.split(['(', '<']).next().unwrap_or(function))
    })
}

/// The words of a text that are code and read like the name of a test: at least four words, and no metric.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let name = |word: &&str| {
        let plain = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        plain && word.matches('_').count() >= 3 && !word.starts_with("rental_")
    };
    text.split('`').skip(1).step_by(2).filter(name)
}

/// The rows of the tables below a heading, up to the next heading of the same level.
fn rows(text: &str, heading: &str) -> Vec<Vec<String>> {
    let level = format!("{} ", &heading[..heading.find(' ').expect("a level")]);
    let inside = text.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with(&level));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    inside.filter(|line| line.starts_with("| ")).map(cells).collect()
}

#[test]
fn every_test_that_the_documents_name_exists() {
    let known = tests();
    assert!(known.len() > 1000, "{}", known.len());
    for page in PAGES {
        let text = read(page);
        let missing: BTreeSet<&str> = named(&text).filter(|name| !known.contains_key(*name)).collect();
        assert!(missing.is_empty(), "{page} names tests that do not exist: {missing:#?}");
        assert!(named(&text).count() > 20, "{page}");
    }
}

/// Each requirement has one row that answers it, or a section, chapter or requirement of the list that does not apply.
#[test]
fn every_requirement_of_asvs_levels_1_and_2_has_one_answer() {
    let text = read("docs/security.md");
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for (section, count) in SECTIONS {
        wanted.extend((1..=count).map(|number| format!("{section}.{number}")));
    }
    assert_eq!(wanted.len(), 253);
    let mut answered: BTreeMap<String, usize> = BTreeMap::new();
    for row in
        rows(&text, "## ASVS 5.0, levels 1 and 2").iter().filter(|row| row[0].starts_with(|c: char| c.is_ascii_digit()))
    {
        for given in row[0].split(',').map(str::trim) {
            let below = format!("{given}.");
            let covered: Vec<&String> = wanted.iter().filter(|id| *id == given || id.starts_with(&below)).collect();
            assert!(!covered.is_empty(), "ASVS has no {given} at levels 1 and 2");
            covered.into_iter().for_each(|id| *answered.entry(id.clone()).or_default() += 1);
        }
    }
    let missing: Vec<&String> = wanted.iter().filter(|id| answered.get(*id) != Some(&1)).collect();
    assert!(missing.is_empty(), "without an answer, or with several: {missing:?}");
}

/// `met` means: by a test or a command that anyone can run. Everything else says in words how it is met, or why not.
#[test]
fn what_is_met_names_its_test_or_command() {
    let (text, known) = (read("docs/security.md"), tests());
    let states = ["met", "design", "operator", "partly", "not met"];
    let tables = ["## ASVS 5.0, levels 1 and 2", "## OWASP API Security Top 10, 2023", "## Faults found and mended"];
    for heading in tables {
        let judged: Vec<Vec<String>> = rows(&text, heading).into_iter().filter(|row| row.len() == 4).collect();
        assert!(judged.len() >= 10, "{heading}");
        for row in judged.iter().filter(|row| {
            row[0] != "Requirement" && row[0] != "Risk" && row[0] != "Fault" && !row[0].starts_with("---")
        }) {
            let (state, evidence) = (row[2].as_str(), row[3].as_str());
            assert!(states.contains(&state), "{heading}: {row:?}");
            let command =
                ["cargo ", ".ci/", "rental-cli "].iter().any(|command| evidence.contains(&format!("`{command}")));
            let proven = command || named(evidence).any(|name| known.contains_key(name));
            assert!(proven || state != "met", "{heading}: {row:?}");
            assert!(evidence.len() > 10, "{heading}: {row:?}");
        }
    }
}

/// Each promise has a test, or a command that anyone can run. "the same" is what the row before has.
#[test]
fn every_promise_names_its_test_or_command() {
    let (text, known) = (read(PROMISES), tests());
    for (heading, titles) in [
        ("## Promises and their tests", ["Promise", "Test", "Command"]),
        ("## Promises of the other pages", ["Page", "Promise", "Test"]),
    ] {
        let mut promises = rows(&text, heading).into_iter();
        assert_eq!(promises.next().expect("a table"), titles, "{heading}");
        let promises: Vec<Vec<String>> = promises.collect();
        assert!(promises.len() >= 20, "{heading}");
        let evidence = titles.iter().position(|title| *title == "Test").expect("a column");
        for (number, row) in promises.iter().enumerate() {
            assert_eq!(row.len(), 3, "{heading}: {row:?}");
            let is_proven = |cell: &str| {
                let is_command = |code: &str| {
                    ["cargo ", ".ci/", "deploy/", "clients/"].iter().any(|command| code.starts_with(command))
                };
                (number > 0 && cell.starts_with("the same"))
                    || cell.split('`').skip(1).step_by(2).any(is_command)
                    || named(cell).any(|name| known.contains_key(name))
            };
            let commands = &row[titles.len() - 1];
            assert!(is_proven(commands) && (is_proven(&row[evidence]) || commands.contains("`cargo fuzz")), "{row:?}");
        }
    }
}

/// The patch releases in a changelog that have another schema version than the release before them.
fn wrong_patch_releases(changelog: &str) -> Vec<String> {
    let releases = changelog.split("\n## ").skip(1).filter_map(|section| {
        let name = section.split_whitespace().next()?;
        let (_, said) = section.split_once("Schema version of the store: ")?;
        let version: u64 = said.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()?;
        Some((name.to_owned(), version))
    });
    let newest_first: Vec<(String, u64)> = releases.collect();
    let pairs = newest_first.windows(2).filter(|pair| !pair[0].0.ends_with(".0") && pair[0].1 != pair[1].1);
    pairs.map(|pair| pair[0].0.clone()).collect()
}

#[test]
fn a_patch_release_has_the_schema_version_of_the_release_before_it() {
    let section =
        |name: &str, version: u64| format!("\n## {name} - a day\nSchema version of the store: {version}. Stores of\n");
    let of = |all: &[(&str, u64)]| all.iter().map(|(name, version)| section(name, *version)).collect::<String>();
    assert_eq!(wrong_patch_releases(&of(&[("0.3.0", 10), ("0.2.2", 10), ("0.2.1", 9), ("0.2.0", 9)])), ["0.2.2"]);
    let changelog = read("CHANGELOG.md");
    assert_eq!(wrong_patch_releases(&changelog), Vec::<String>::new());
    let present = format!("\nSchema version of the store: {}.", rental_core::store::SCHEMA_VERSION);
    let newest = changelog.split("\n## ").nth(1).expect("a release");
    assert!(newest.contains(&present), "the changelog says the schema version of this program");
}

/// The file of settings may hold the admin token.
#[test]
fn the_package_keeps_settings_and_data_from_other_users() {
    let manifest = read("rental-server/Cargo.toml");
    let settings = manifest.lines().find(|line| line.contains("etc/default/rental-server\"")).expect("it is an asset");
    assert!(settings.trim().ends_with("\"640\"],"), "{settings}");
    let unit = read("rental-server/debian/rental-server.service");
    for line in
        ["User=rental", "StateDirectoryMode=0700", "UMask=0077", "NoNewPrivileges=yes", "CapabilityBoundingSet="]
    {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
}

/// No program has a version of a crate that an advisory names and that was replaced because of it.
#[test]
fn the_bill_of_materials_lists_what_the_programs_are_made_of() {
    let bill = || {
        let ran = Command::new(top().join(".ci/sbom")).output().expect("python3 is installed");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        ran.stdout
    };
    let bytes = bill();
    assert!(bytes == bill(), "the same Cargo.lock gives the same bytes");
    let bill: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    let components = bill["components"].as_array().expect("components");
    let version = |name: &str| {
        let mut found = components.iter().filter(|one| one["name"] == name);
        found.next().and_then(|one| one["version"].as_str())
    };
    for name in ["rental-server", "rental-cli", "redb", "rustls", "hyper", "tokio"] {
        assert!(version(name).is_some(), "{name}");
    }
    assert!(version("proptest").is_none(), "it is for tests only");
    let lock = read("Cargo.lock");
    let time = lock.split("name = \"time\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    let numbers = |version: &str| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>();
    assert!(
        time.is_none_or(|time| numbers(time) >= numbers("0.3.47")),
        "time before 0.3.47 is in an advisory: {time:?}"
    );
    let checks = read(".ci/run");
    for line in [
        "cargo deny --locked check bans licenses sources",
        "cargo deny --locked fetch db",
        "cargo deny --locked check --disable-fetch advisories",
        ".ci/sbom >",
    ] {
        assert!(checks.contains(line), "{line}");
    }
    assert!(top().join("deny.toml").is_file());
}
