//! A clock that was set back while the server did not run.

use crate::support::{Organization, Server};
use rental_core::{
    resources::event,
    rows::key,
    store::{Batch, Commit, Span, Store, redb::Redb},
    value::OrganizationId,
};
use serde_json::json;
use uuid::Uuid;

#[test]
fn new_objects_are_newer_than_those_that_a_faster_clock_made() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let before = server.organization();
    before.vehicle(json!({}));
    let (id, read, write) = (before.id.clone(), before.read.clone(), before.write.clone());
    server.signal("TERM");
    server.wait_until_gone();
    // An event as a clock that is an hour ahead would have made it.
    let organization = OrganizationId::parse(&id).expect("an id");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let store = Redb::open(&directory.path().join("store.redb"), 16 << 20).expect("the server closed it");
    let newest = Span::newest_first(&key::records(organization, &event::SPEC));
    let record = runtime.block_on(store.scan(&newest, 1)).expect("read").remove(0).expect("an event");
    let present = record.key.id().expect("its id").as_u128();
    let future = Uuid::from_u128(present + (3_600_000 << 80));
    let mut batch = Batch::default();
    batch.insert(key::record(organization, &event::SPEC, future), record.value);
    assert_eq!(runtime.block_on(store.commit(batch)).expect("written"), Commit::Applied);
    store.close().expect("closed");

    let server = Server::start_on_file(directory.path(), &[]);
    let after = Organization { server: &server, id, read, write };
    let ids: Vec<String> = (0..5).map(|_| after.vehicle(json!({}))).collect();
    assert!(ids[0] > future.to_string() && ids.is_sorted(), "{future}: {ids:?}");
    assert!(server.log().contains("newer than this machine's clock"), "{}", server.log());
}
