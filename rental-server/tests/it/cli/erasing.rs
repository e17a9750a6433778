//! Erasing a person at the prompt, and what becomes of backups and of the file.

use super::{Cli, ran};
use crate::{
    support::{ADMIN_TOKEN, Connection, Organization, Server},
    webhooks::erasing::{complete, holding, rows},
};
use rental_core::{check, store::redb::ClosedFile};
use serde_json::{Value, json};
use std::{fs, path::Path};

const SECRETS: [&str; 4] = ["Grace Hopper", "grace@navy.example", "+12025550142", "9 Harbor Lane"];
const KEPT: &str = "Cleaning for Grace";

fn person(organization: &Organization) -> String {
    let [name, email, phone, place] = SECRETS;
    let customer = organization.post("/v1/customers", &json!({"full_name": "Somebody"})).id();
    let vehicle = organization.vehicle(json!({}));
    let rental = json!({"vehicle_id": vehicle, "customer_id": customer, "delivery_location": place});
    organization.post("/v1/rentals", &rental).ok();
    let lines = json!([{"description": KEPT, "amount": 5}]);
    organization.recorded("invoices", &json!({"customer_id": customer, "lines": lines}));
    // After the invoice was issued, which keeps its buyer as it was.
    let body = json!({"full_name": name, "email": email, "phone": phone});
    organization.patch(&format!("/v1/customers/{customer}"), &body).ok();
    customer
}

fn backup(server: &Server, to: &Path) {
    let token = format!("Bearer {ADMIN_TOKEN}");
    let headers = [("Authorization", token.as_str())];
    let reply = Connection::open(&server.address).send("GET", "/admin/v1/backup?pace=full", &headers, b"");
    assert_eq!(reply.status, 200);
    fs::write(to, reply.body).unwrap();
}

fn stop(server: Server) {
    server.signal("TERM");
    server.wait_until_gone();
}

/// Whether the bytes of a file contain a word.
fn has(path: &Path, word: &str) -> bool {
    fs::read(path).unwrap().windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn erase_asks_waits_and_prints_the_report_and_prints_it_again() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let organization = server.organization();
    let customer = person(&organization);
    let words = format!("customers erase {customer} --organization {}", organization.id);
    let asked = cli.run(server, &words);
    assert_eq!(asked.code, Some(2), "{asked:?}");
    assert!(asked.stderr.contains("--yes"), "{asked:?}");
    assert_eq!(organization.get(&format!("/v1/customers/{customer}")).ok()["erased_at"], Value::Null);
    let erased = cli.run(server, &format!("{words} --yes --json"));
    assert_eq!(erased.code, Some(0), "{erased:?}");
    let report = erased.json();
    assert_eq!((&report["status"], &report["rewritten"]["rentals"]), (&json!("complete"), &json!(1)));
    assert_eq!(report["invoices"].as_array().map(Vec::len), Some(1));
    assert_eq!(cli.run(server, &format!("{words} --yes --json")).json(), report);
    assert_eq!(cli.run(server, &format!("customers erasure {customer} --json")).json(), report);
    let shown = cli.run(server, &format!("{words} --yes"));
    assert!(shown.stdout.contains("INV-000001") && shown.stderr.contains("Backups"), "{shown:?}");
    let elsewhere = cli.run(server, &format!("customers erase {customer} --organization {customer} --yes"));
    assert_eq!(elsewhere.code, Some(3), "{elsewhere:?}");
}

#[test]
fn a_compacted_file_has_nothing_of_the_person_and_an_older_backup_is_erased_again() {
    let Some(cli) = Cli::find() else { return };
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_on_file(directory.path(), &[]);
    let organization = server.organization();
    let customer = person(&organization);
    let (older, newer) = (cli.home.path().join("older.backup"), cli.home.path().join("newer.backup"));
    backup(&server, &older);
    let erased = cli.run(&server, &format!("customers erase {customer} --organization {} --yes", organization.id));
    assert_eq!(erased.code, Some(0), "{erased:?}");
    backup(&server, &newer);
    drop(organization);
    stop(server);
    let file = directory.path().join("store.redb");
    let store = |path: &Path| format!("redb:{}", path.display());
    let offline = |words: &str| ran(&mut cli.command("http://127.0.0.1:1", words));
    let compacted = offline(&format!("store compact {}", store(&file)));
    assert_eq!(compacted.code, Some(0), "{compacted:?}");
    for word in SECRETS {
        assert!(!has(&file, word), "{word} is in the compacted file");
    }
    assert!(has(&file, KEPT), "the invoice is kept");
    assert_eq!(offline(&format!("store check {}", store(&file))).code, Some(0));

    // The list comes from the store of before, or from a newer backup.
    for (n, list) in [store(&file), newer.display().to_string()].into_iter().enumerate() {
        let folder = cli.home.path().join(format!("restored-{n}"));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("store.redb");
        let words = format!("store restore {} --to {} --json", older.display(), store(&path));
        let restored = offline(&format!("{words} --erased {list} --erased {list}"));
        assert_eq!((restored.code, &restored.json()["erased_people_added"]), (Some(0), &json!(1)), "{restored:?}");
        for verb in ["check", "repair"] {
            let told = offline(&format!("store {verb} {}", store(&path)));
            assert!(told.code == Some(1) && told.stderr.contains("hint: start the server"), "{told:?}");
            assert!(!told.stdout.contains("not repairable"), "{told:?}");
        }
        fs::copy(directory.path().join("store.redb.master-key"), folder.join("store.redb.master-key")).unwrap();
        let server = Server::start_on_file(&folder, &[]);
        let report = complete(&server, &customer);
        assert_eq!(report["rewritten"]["customers"], 1);
        let all = rows(&server);
        for word in SECRETS {
            assert_eq!(holding(&all, word), Vec::<String>::new(), "{word}");
        }
        stop(server);
        let closed = ClosedFile::open(&path, 4 << 20).unwrap();
        assert_eq!(check::of_file(&closed, &mut |_| {}).listed, []);
    }
    let plain = offline(&format!("store restore {} --to {}", older.display(), store(&directory.path().join("x.redb"))));
    assert!(plain.stderr.contains("--erased"), "{plain:?}");
}
