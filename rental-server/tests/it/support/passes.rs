//! Which tests run on file stores and again on PostgreSQL (`RENTAL_TEST_STORE=postgres`), and which run once.

use std::{env, fs, path::Path, process::Command, sync::OnceLock};

/// What `tests/it/once` lists for one of these reasons: parts of the names of tests.
fn once(reasons: &[&str]) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/once");
    let lines = fs::read_to_string(path).expect("the tests that run once");
    let texts = lines.lines().filter_map(|line| line.split_once(' ').filter(|(reason, _)| reasons.contains(reason)));
    texts.map(|(_, text)| text.to_owned()).collect()
}

/// Fails a test that `tests/it/once` lists as `own` and that asks for the store of the pass: on PostgreSQL it would do something else.
///
/// Functions that give out a server which tests share call this too, because only the first test starts it. A test is known by
/// the name of its thread, so a server that another thread of a test asks for is not checked.
#[track_caller]
pub(crate) fn assert_this_test_runs_on_each_store() {
    static ONCE: OnceLock<Vec<String>> = OnceLock::new();
    let once = ONCE.get_or_init(|| once(&["own"]));
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    let listed = once.iter().find(|text| name.contains(text.as_str()));
    assert!(
        listed.is_none(),
        "{name} asks for the store of the pass, so it must also run on PostgreSQL: rental-server/tests/it/once has {listed:?}"
    );
}

/// A line of a test that is gone, or has another name now, skips nothing.
#[test]
fn each_line_of_the_list_names_a_test() {
    let this = env::current_exe().expect("this program");
    let list = Command::new(this).arg("--list").output().expect("the names of the tests").stdout;
    let names = String::from_utf8(list).expect("names");
    let mut stale = once(&["edge", "own"]);
    assert!(stale.len() > 10, "{stale:?}");
    stale.retain(|text| !names.contains(text));
    assert!(stale.is_empty(), "no test has one of these in its name: {stale:?}");
}
