//! Every engine runs the one conformance suite.

use rental_core::store::{conformance, memory::Memory, redb::Redb};
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime starts")
}

fn redb() -> Redb {
    Redb::on_backend(redb::backends::InMemoryBackend::new()).expect("an empty store opens")
}

#[test]
fn redb_behaves_like_the_model() {
    conformance::behaves_like_the_model(&runtime(), 200, redb);
}

#[test]
fn racing_commits_on_redb_have_one_winner() {
    conformance::racing_commits_have_one_winner(&runtime(), redb);
}

#[test]
fn racing_commits_on_the_model_have_one_winner() {
    conformance::racing_commits_have_one_winner(&runtime(), Memory::default);
}

#[test]
fn redb_counts_what_commits_change() {
    conformance::counts_what_commits_change(&runtime(), 200, redb);
}

#[test]
fn a_snapshot_of_redb_shows_one_moment() {
    runtime().block_on(conformance::a_snapshot_shows_one_moment(&redb()));
}
