//! `--no-webhooks`: a server on a restored copy sends nothing, and loses nothing.

use super::{PRIVATE, act, hook, one_event, quiet_while};
use crate::support::{Organization, Server, receiver::Receiver};
use serde_json::{Value, json};

#[test]
fn a_server_that_sends_no_webhooks_keeps_them_for_one_that_does() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let receiver = Receiver::start();
    let silent = Server::start_in(directory.path(), &[PRIVATE, "--no-webhooks"]);
    let before = silent.organization();
    let hook = hook(&before, &receiver);
    one_event(&before);
    let status = silent.admin("GET", "/admin/v1/status", &Value::Null).ok();
    assert_eq!(status["webhooks_sending"], json!(false));
    let tested = act(&silent, &hook, "test", &Value::Null);
    assert!(tested.status == 409 && tested.text().contains("--no-webhooks"), "{}", tested.text());
    quiet_while();
    assert_eq!((receiver.count(), receiver.connections()), (0, 0));
    assert!(silent.log().contains("--no-webhooks"), "the log says it");
    let (id, read, write) = (before.id.clone(), before.read.clone(), before.write.clone());
    silent.signal("TERM");
    silent.wait_until_gone();
    let sending = Server::start_in(directory.path(), &[PRIVATE]);
    let after = Organization { server: &sending, id, read, write };
    receiver.wait_for(1);
    one_event(&after);
    receiver.wait_for(2);
}
