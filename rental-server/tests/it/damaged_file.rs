//! A file with damage, as its owner meets it: what the engine opens is served, and what it refuses leads to a backup.

use crate::{
    cli::Cli,
    events_in_store::stop,
    support::{Organization, Server, ended, flip},
};
use serde_json::json;
use std::{fs, path::Path, process::Command, time::Duration};

const MARKED: &str = "break-me-here";

/// Whether `rental-cli store VERB` ends well, and what it prints; `None` where it is not built.
fn store(directory: &Path, verb: &str, flags: &str) -> Option<(bool, String)> {
    let words = format!("store {verb} redb:{} {flags}", directory.join("store.redb").display());
    let ran = Cli::find()?.command("", &words).output().expect("it runs");
    let printed = [ran.stdout, ran.stderr].concat();
    Some((ran.status.success(), String::from_utf8_lossy(&printed).into_owned()))
}

/// Nothing that the engine checks at a start is damaged, after a clean close and after a kill of a server that had nothing to write.
#[test]
fn a_flipped_bit_in_a_row_harms_only_its_row_and_a_check_and_a_repair_name_the_backup() {
    for signal in ["TERM", "KILL"] {
        let directory = tempfile::tempdir().expect("a directory");
        let server = Server::start_on_file(directory.path(), &[]);
        let made = server.organization();
        let broken = made.post("/v1/vehicles", &json!({"name": MARKED})).id();
        let sound = made.post("/v1/vehicles", &json!({"name": "beside"})).ok();
        let (id, read, write) = (made.id.clone(), made.read.clone(), made.write.clone());
        drop(made);
        // The usage is saved and recounted 1 and 2 s after the POSTs, and the file is closed 250 ms after the last write.
        std::thread::sleep(Duration::from_secs(4));
        server.signal(signal);
        server.wait_until_gone();
        drop(server);
        flip(&directory.path().join("store.redb"), MARKED);
        let Some((checked, told)) = store(directory.path(), "check", "") else { return };
        assert!(!checked && told.contains("vehicle") && told.contains("restore the last good backup"), "{told}");
        let before = fs::read(directory.path().join("store.redb")).expect("the file");
        let repaired = store(directory.path(), "repair", "--yes");
        assert!(repaired.is_some_and(|(done, told)| !done && told.contains("restore the last good backup")));
        assert!(fs::read(directory.path().join("store.redb")).expect("the file") == before);
        let server = Server::start_on_file(directory.path(), &[]).expecting_errors("damaged");
        let organization = Organization { server: &server, id, read, write };
        organization.get(&format!("/v1/vehicles/{broken}")).error(500, "api_error", "data_damaged");
        let path = format!("/v1/vehicles/{}", sound["id"].as_str().expect("an id"));
        assert_eq!(organization.get(&path).ok(), sound);
        organization.patch(&path, &json!({"color": "red"})).ok();
        drop(organization);
        stop(server);
    }
}

#[test]
fn a_server_that_was_killed_under_load_refuses_a_damaged_file_in_one_line_that_names_the_way_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let made = server.organization();
    made.post("/v1/vehicles", &json!({"name": MARKED})).ok();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let body = json!({"name": "beside"}).to_string();
            let bearer = format!("Bearer {}", made.write);
            let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
            let mut connection = crate::support::Connection::open(&server.address);
            while connection.try_send("POST", "/v1/vehicles", &headers, body.as_bytes()).is_ok() {}
        });
        std::thread::sleep(Duration::from_millis(500));
        server.signal("KILL");
    });
    server.wait_until_gone();
    drop(made);
    drop(server);
    let file = directory.path().join("store.redb");
    flip(&file, MARKED);
    let before = fs::read(&file).expect("the file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rental-server"));
    command.args(["--listen", "127.0.0.1:0", "--store", &format!("redb:{}", file.display())]);
    let output = ended(&mut command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("restore it from a backup"), "{said}");
    assert!(fs::read(&file).expect("the file") == before, "nothing was changed");
}
