//! The table of all bounds, and the code.

use super::{read, top};
use std::{collections::BTreeSet, fs, path::Path};

/// The constants that set the limits of docs/limits.md, and tests of them.
const BOUNDS: &str = "rental-server/tests/it/documents/bounds.md";
/// Constants with such names are bounds.
const WORDS: [&str; 10] =
    ["MOST", "MAX", "LONGEST", "QUEUE", "GROUP", "DEADLINE", "TIMEOUT", "ATTEMPTS", "RETRIES", "TOLERANCE"];
/// Constants whose documentation begins so are bounds, too.
const BEGINNINGS: [&str; 9] = [
    "Most ",
    "The most ",
    "Maximum ",
    "Longest ",
    "The longest ",
    "Largest ",
    "The largest ",
    "Time-out ",
    "Time for ",
];

/// A constant of the code.
struct Constant {
    /// `file: NAME = VALUE`.
    written: String,
    is_bound: bool,
}

impl Constant {
    /// The constant of a line, if it is one, with the first line of its documentation.
    fn of(file: &str, line: &str, documentation: &str) -> Option<Self> {
        let plain = line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").trim_start_matches("pub ");
        let (name, rest) = plain.strip_prefix("const ")?.split_once(": ")?;
        let (kind, value) = rest.split_once(" = ")?;
        let is_named_so = name.split('_').any(|word| WORDS.contains(&word));
        let is_described_so = BEGINNINGS.iter().any(|begin| documentation.starts_with(begin));
        // A group of commands, which is described by its name.
        let is_bound = (is_named_so || is_described_so) && kind != "Group";
        Some(Self { written: format!("{file}: {name} = {}", value.strip_suffix(';')?), is_bound })
    }
}

/// The constants below a folder. The names of files begin with `prefix`.
fn constants(folder: &Path, prefix: &str, found: &mut Vec<Constant>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
        if entry.is_dir() {
            constants(&entry, &format!("{prefix}{name}/"), found);
            continue;
        }
        let (text, mut documentation) = (fs::read_to_string(&entry).expect("text"), None);
        for line in text.lines().map(str::trim) {
            match line.strip_prefix("/// ") {
                Some(text) => drop(documentation.get_or_insert(text)),
                // An attribute stands between the two.
                None if line.starts_with("#[") || line == "///" => {}
                None => {
                    let told = documentation.take().unwrap_or_default();
                    found.extend(Constant::of(&format!("{prefix}{name}"), line, told));
                }
            }
        }
    }
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

#[test]
fn the_table_of_limits_has_every_bound_with_its_present_value() {
    let (table, mut code) = (read(BOUNDS), Vec::new());
    let [cli, verifier] = ["rental-cli/src/", "rental-webhook-verify/src/"];
    for (folder, prefix) in [("rental-server/src", ""), ("rental-core/src", ""), (cli, cli), (verifier, verifier)] {
        constants(&top().join(folder), prefix, &mut code);
    }
    let listed: BTreeSet<&str> = quoted(&table).filter(|text| text.contains(".rs: ")).collect();
    let written: BTreeSet<&str> = code.iter().map(|constant| constant.written.as_str()).collect();
    assert!(listed.len() > 50 && written.len() > 100, "{} {}", listed.len(), written.len());
    let gone: Vec<_> = listed.difference(&written).collect();
    assert!(gone.is_empty(), "{BOUNDS} has these, and the code does not: {gone:#?}");
    let bounds = code.iter().filter(|constant| constant.is_bound).map(|constant| constant.written.as_str());
    let lacking: Vec<_> = bounds.filter(|bound| !listed.contains(bound)).collect();
    assert!(
        lacking.is_empty(),
        "{BOUNDS} lacks these: {lacking:#?}. Does a client meet them? Then docs/limits.md, too"
    );
}

/// Each limit of the page is set by a flag, or by what the row of the same name says in the table of constants.
#[test]
fn each_limit_of_the_page_says_what_sets_it() {
    let (page, bounds) = (read("docs/limits.md"), read(BOUNDS));
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| What"));
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect();
        let is_known = bounds.contains(&format!("| {} |", cells[0]));
        assert!(is_known || cells.last().is_some_and(|by| !by.is_empty()), "{row}");
    }
}

#[test]
fn a_bound_is_known_by_its_name_or_by_its_documentation() {
    let is_bound = |line, documentation| Constant::of("a.rs", line, documentation).is_some_and(|one| one.is_bound);
    assert!(is_bound("const MOST_ROWS: usize = 3;", ""));
    assert!(is_bound("pub(crate) const CONNECT: Duration = Duration::from_secs(5);", "Time-out of a new connection."));
    assert!(!is_bound("const PAGE: usize = 3;", "Rows in one scan."));
    assert!(!is_bound("let most = 3;", "Most rows."));
}

#[test]
fn the_table_of_limits_names_flags_and_tests_that_exist() {
    let (table, flags) = (read("docs/limits.md") + &read(BOUNDS), read("rental-server/src/config.rs"));
    let mut commands = String::new();
    sources(&top().join("rental-cli/src"), &mut commands);
    for flag in quoted(&table).filter_map(|text| text.strip_prefix("--")) {
        let field = flag.replace('-', "_");
        let is_there = flags.contains(&format!("{field}: ")) || commands.contains(&format!(".long(\"{flag}\")"));
        assert!(is_there, "there is no flag --{flag}");
    }
    let mut names = String::new();
    for package in ["rental-server", "rental-core", "rental-cli", "rental-webhook-verify"] {
        sources(&top().join(package).join("tests"), &mut names);
        sources(&top().join(package).join("src"), &mut names);
    }
    for row in read(BOUNDS).lines().filter(|line| line.starts_with("| ")) {
        for test in quoted(row.rsplit(" | ").next().unwrap_or("")) {
            let last = test.rsplit("::").next().unwrap_or(test);
            let found = names.contains(&format!("fn {last}(")) || names.contains(&format!("mod {last};"));
            assert!(found, "there is no test {test}");
        }
    }
}

pub(super) fn sources(folder: &Path, text: &mut String) {
    for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).expect("text"));
        }
    }
}
