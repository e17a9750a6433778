//! What is absent on purpose is absent: the invariants of ARCHITECTURE.md.

use super::{dependencies, manifests, read, top};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The lines of code below a folder as (file, line), comments left out.
fn code(folder: &str) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for file in files(&top().join(folder)) {
        let name = file.strip_prefix(top()).expect("it is inside").to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("text");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.extend(code.map(|line| (name.clone(), line.to_owned())));
    }
    assert!(lines.len() > 100, "{folder} has code");
    lines
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// Whether `word` stands in the line as a word of its own.
fn says(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !before.ends_with(part) && (!after.starts_with(part) || word.ends_with(':'))
    })
}

/// None of these words stands below `folder`, but in files that begin with one of `except`.
#[track_caller]
fn only_in(folder: &str, words: &[&str], except: &[&str]) {
    for (file, line) in code(folder) {
        let allowed = except.iter().any(|place| file.starts_with(&format!("{folder}/{place}")));
        let word = words.iter().find(|word| says(&line, word));
        assert!(allowed || word.is_none(), "{file} has {word:?}: {line}");
    }
}

#[test]
fn the_core_knows_no_http_clock_randomness_environment_or_runtime() {
    let core = "rental-core/src";
    only_in(core, &["warp", "hyper", "http::", "reqwest", "StatusCode", "HeaderMap"], &[]);
    only_in(core, &["SystemTime"], &["platform/system.rs"]);
    only_in(core, &["Instant", "Utc::now", "Local"], &[]);
    only_in(core, &["new_v4", "now_v7", "rand"], &[]);
    only_in(core, &["new_v7", "getrandom"], &["platform/system.rs"]);
    only_in(core, &["env", "println", "eprintln", "TcpStream", "UdpSocket", "ToSocketAddrs"], &[]);
    only_in(core, &["std::fs"], &["store/engines/redb.rs", "store/engines/redb/"]);
    only_in(core, &["tokio"], &["store/engines/redb", "store/engines/postgres", "store/conformance.rs"]);
    for (file, line) in code(core).into_iter().filter(|(file, _)| file.contains("store/engines/redb")) {
        assert!(!line.contains("tokio::") || line.contains("tokio::sync"), "{file}: {line}");
    }
}

#[test]
fn redb_appears_in_its_own_files_only() {
    only_in(
        "rental-core/src",
        &["use redb", "redb::Database", "redb::StorageBackend"],
        &["store/engines/redb.rs", "store/engines/redb/"],
    );
    for (folder, manifest) in manifests() {
        let named = dependencies(&manifest).contains("redb");
        // The simulated disk of a fuzz target is a storage of redb, like that of the tests of the engine.
        assert_eq!(named, folder.is_empty() || folder == "rental-core" || folder == "fuzz", "{folder}");
    }
}

#[test]
fn the_client_of_postgres_appears_in_its_own_files_only() {
    let words = ["tokio_postgres", "deadpool_postgres", "tokio_postgres_rustls", "rustls"];
    only_in("rental-core/src", &words, &["store/engines/postgres"]);
    for (folder, manifest) in manifests() {
        assert_eq!(dependencies(&manifest).contains("tokio-postgres"), folder == "rental-core", "{folder}");
    }
}

#[test]
fn the_programs_know_engines_only_through_the_table() {
    let words = ["redb::", "postgres::", "Redb", "Postgres"];
    // The store of a dry run is a file for itself, which no URL names.
    only_in("rental-server/src", &words, &["operator/imports.rs", "webhooks/tests.rs"]);
    only_in("rental-cli/src", &words, &[]);
    only_in("rental-core/src", &words, &["store/engines", "platform/open.rs"]);
}

#[test]
fn resources_never_see_a_store() {
    only_in("rental-core/src/resources", &["Store", "Batch", "Span"], &[]);
    only_in("rental-core/src/value", &["Store", "store", "resources"], &[]);
}

#[test]
fn warp_and_status_codes_stay_in_the_http_folder_and_hyper_there_and_where_others_are_called() {
    let server = "rental-server/src";
    only_in(server, &["warp", "StatusCode"], &["http/"]);
    only_in(server, &["hyper_util", "hyper_rustls", "tower_service"], &["http/", "outgoing/"]);
    let at = ["http/", "outgoing/", "telemetry/", "webhooks/download.rs", "webhooks/send.rs"];
    only_in(server, &["hyper", "http_body_util"], &at);
    only_in(server, &["reject", "rejection"], &[]);
}

#[test]
fn clocks_and_random_ids_are_read_at_the_edge_only() {
    for (folder, at) in [("rental-server/src", "edge.rs"), ("rental-cli/src", "edge.rs")] {
        only_in(folder, &["SystemTime", "Utc::now", "new_v4", "now_v7", "new_v7"], &[at]);
    }
    only_in(
        "rental-server/src",
        &["Instant::now"],
        &["state.rs", "supervisor/", "http/", "metrics/", "telemetry/", "congestion.rs", "outgoing/", "webhooks/"],
    );
    let banned = read("clippy.toml");
    for call in ["std::time::SystemTime::now", "uuid::Uuid::now_v7", "uuid::Uuid::new_v4"] {
        assert!(banned.contains(call), "{call}");
    }
}

#[test]
fn the_supervisor_starts_the_background_tasks() {
    // Connections, and the wait for a second signal, end by themselves. The upgrade of a store, and the thread that
    // tells systemd of its opening, end before the first background task starts.
    only_in(
        "rental-server/src",
        &["spawn"],
        &[
            "supervisor/",
            "http/",
            "lib.rs",
            "service_manager.rs",
            "upgrade.rs",
            "webhooks/lanes.rs",
            "webhooks/lane.rs",
            "webhooks/tests.rs",
        ],
    );
}

#[test]
fn the_command_line_opens_a_store_in_one_place() {
    let words = ["rental_core::store", "redb", "Redb", "Store", "ClosedFile"];
    only_in("rental-cli/src", &words, &["commands/store.rs", "commands/store/"]);
    // Where the core is named with a list of its modules, that list has no store.
    for (file, line) in code("rental-cli/src").into_iter().filter(|(file, _)| !file.contains("/commands/store")) {
        assert!(!line.contains("rental_core::{") || !says(&line, "store"), "{file}: {line}");
    }
}

#[test]
fn the_verifier_stands_alone() {
    for (folder, manifest) in manifests() {
        let named = dependencies(&manifest);
        // Fuzzing and the core's examples hold it against what is signed; the programs do not need it.
        let programs = if folder == "rental-core" { without_dev_dependencies(&manifest) } else { named.clone() };
        assert!(folder == "fuzz" || !programs.contains("rental-webhook-verify"), "{folder}");
        let own = named.iter().filter(|name| name.starts_with("rental-"));
        assert!(folder != "rental-webhook-verify" || own.count() == 0, "{folder}");
    }
}

/// The names of the dependencies that are part of a build.
fn without_dev_dependencies(manifest: &str) -> BTreeSet<String> {
    let sections = manifest.split("\n[").filter(|section| !section.starts_with("dev-dependencies"));
    dependencies(&sections.collect::<Vec<_>>().join("\n["))
}

#[test]
fn the_programs_leave_out_the_clock_of_the_library() {
    assert!(read("rental-core/src/platform.rs").contains("#[cfg(feature = \"system\")]\nmod system;"));
    for (folder, manifest) in manifests().into_iter().filter(|(folder, _)| folder != "rental-core") {
        for line in manifest.lines().filter(|line| line.starts_with("rental-core")) {
            assert!(line.contains("default-features = false") && !line.contains("\"system\""), "{folder}: {line}");
        }
    }
}

#[test]
fn every_crate_forbids_unsafe_code() {
    assert!(read("Cargo.toml").contains("unsafe_code = \"forbid\""));
    for (folder, manifest) in manifests().into_iter().filter(|(folder, _)| !folder.is_empty()) {
        let shared = manifest.contains("[lints]\nworkspace = true");
        assert!(shared || manifest.contains("unsafe_code = \"forbid\""), "{folder}");
    }
}
