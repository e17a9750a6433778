//! The table of all bounds, and the code.

use super::{read, top};
use std::{collections::BTreeSet, fs, path::Path};

/// Constants with such names are bounds.
const WORDS: [&str; 6] = ["MOST", "MAX", "LONGEST", "QUEUE", "GROUP", "DEADLINE"];

/// `file: NAME = VALUE` of all constants below a folder.
fn constants(folder: &Path, below: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        if entry.is_dir() {
            constants(&entry, below, found);
            continue;
        }
        let file = entry.strip_prefix(below).expect("inside").to_string_lossy().into_owned();
        let text = fs::read_to_string(&entry).expect("text");
        for line in text.lines() {
            let line = line
                .trim()
                .trim_start_matches("pub(crate) ")
                .trim_start_matches("pub(super) ")
                .trim_start_matches("pub ");
            if let Some(constant) = line.strip_prefix("const ")
                && let Some((name, rest)) = constant.split_once(": ")
                && let Some((_, value)) = rest.split_once(" = ")
                && let Some(value) = value.strip_suffix(';')
            {
                found.insert(format!("{file}: {name} = {value}"));
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
    let (table, mut code) = (read("docs/limits.md"), BTreeSet::new());
    for folder in ["rental-server/src", "rental-core/src"] {
        let folder = top().join(folder);
        constants(&folder, &folder, &mut code);
    }
    let listed: BTreeSet<&str> = quoted(&table).filter(|text| text.contains(".rs: ")).collect();
    assert!(listed.len() > 50 && code.len() > 100, "{} {}", listed.len(), code.len());
    for bound in &listed {
        assert!(code.contains(*bound), "docs/limits.md has `{bound}`, and the code does not");
    }
    let name =
        |constant: &str| constant.split(": ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or("").to_owned();
    for bound in code.iter().filter(|bound| name(bound).split('_').any(|word| WORDS.contains(&word))) {
        assert!(listed.contains(bound.as_str()), "docs/limits.md lacks `{bound}`");
    }
}

#[test]
fn the_table_of_limits_names_flags_and_tests_that_exist() {
    let (table, flags) = (read("docs/limits.md"), read("rental-server/src/config.rs"));
    for flag in quoted(&table).filter_map(|text| text.strip_prefix("--")) {
        let field = flag.replace('-', "_");
        assert!(flags.contains(&format!("{field}: ")), "there is no flag --{flag}");
    }
    let mut names = String::new();
    for folder in ["rental-server/tests", "rental-server/src", "rental-core/tests", "rental-core/src"] {
        sources(&top().join(folder), &mut names);
    }
    for row in table.lines().filter(|line| line.matches(" | ").count() == 4) {
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
