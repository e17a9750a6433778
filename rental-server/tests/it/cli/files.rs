//! Files in and out at the prompt: imports, exports, printed invoices, and who pays for what came in.

use super::{Cli, ran, url};
use crate::support::{Organization, Server};
use serde_json::{Value, json};
use std::{fs, io::Write, process::Stdio};

const HEADER: &str = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n";

fn toll(n: u32, amount: &str) -> String {
    format!("T{n},2026-06-02T10:03:00-04:00,MTAB&T,RKB,ABC1234,NY,,{amount}\n")
}

fn listed(organization: &Organization, plural: &str) -> Vec<Value> {
    organization.get(&format!("/v1/{plural}?limit=100")).ok()["data"].as_array().unwrap().clone()
}

#[test]
fn an_import_prints_the_servers_object_or_its_counts_and_the_first_bad_rows() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let organization = server.organization();
    let mut file = [HEADER, &toll(1, "6.94"), &toll(2, "1")].concat();
    (10..35).for_each(|n| file.push_str(&toll(n, "much")));
    fs::write(cli.home.path().join("tolls.csv"), &file).unwrap();
    let words = format!("tolls import --organization {} tolls.csv", organization.id);
    let trial = cli.run(server, &format!("{words} --dry-run --json"));
    assert_eq!(
        (trial.code, trial.stderr.as_str(), listed(&organization, "tolls").len()),
        (Some(0), "", 0),
        "{trial:?}"
    );
    let counted = |answer: &Value| [answer["received"].clone(), answer["created"].clone(), answer["invalid"].clone()];
    assert_eq!((counted(&trial.json()), &trial.json()["dry_run"]), ([json!(27), json!(2), json!(25)], &json!(true)));
    assert_eq!(trial.json()["errors"].as_array().unwrap().len(), 25);
    let real = cli.run(server, &words);
    assert_eq!(real.code, Some(0), "{real:?}");
    assert!(real.stdout.lines().any(|line| line == "created\t2") && !real.stdout.contains("errors"), "{real:?}");
    assert_eq!(real.stderr.lines().filter(|line| line.starts_with("row ")).count(), 20, "{real:?}");
    assert!(real.stderr.contains("row 4: ") && real.stderr.contains("25 rows are invalid"), "{real:?}");
    let again = cli.run(server, &format!("{words} --json"));
    assert_eq!(counted(&again.json()), [json!(27), json!(0), json!(25)]);
}

#[test]
fn an_import_shows_the_rows_for_review_on_stderr() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let organization = server.organization();
    let unidentified = "T2,2026-06-02T10:03:00Z,MTAB&T,RKB,,,,2\n";
    fs::write(cli.home.path().join("tolls.csv"), [HEADER, &toll(1, "1"), unidentified].concat()).unwrap();
    let words = format!("tolls import --organization {} tolls.csv", organization.id);
    let trial = cli.run(server, &format!("{words} --dry-run"));
    assert!(trial.stderr.starts_with("row 3 would be recorded without a plate and a transponder"), "{trial:?}");
    let ran = cli.run(server, &words);
    assert!(ran.stdout.lines().any(|line| line == "created\t2") && !ran.stdout.contains("review"), "{ran:?}");
    assert!(ran.stderr.starts_with("row 3 was recorded without a plate and a transponder"), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
}

#[test]
fn a_file_comes_from_stdin_and_options_reach_the_server() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let organization = server.organization();
    let feed = |words: &str, text: &str| {
        let mut child = cli
            .command(&url(server), words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let whose = format!("--organization {} - --json", organization.id);
    let ezpass = "Lane Txn ID,Tag/Plate #,Agency,Entry Plaza,Exit Plaza,Class,Date,Exit Time,Amount\n1,NY ABC1234,MTAB&T,,RKB,1,06/02/2026,10:03:32 PM,$-2.94\n";
    let answer = feed(&format!("tolls import {whose} --format ezpass-ny --time-zone America/Chicago"), ezpass);
    assert_eq!((&answer["created"], &answer["format"]), (&json!(1), &json!("ezpass-ny")));
    assert_eq!(listed(&organization, "tolls")[0]["occurred_at"], "2026-06-03T03:03:32.000Z");
    let mapping = "{\n \"agency\": \"TxTag\", \"charges\": \"positive\",\n \"columns\": {\"occurred_at\": \"When\", \"plate\": \"Plate\", \"amount\": \"Amount\"}\n}\n";
    fs::write(cli.home.path().join("txtag.json"), mapping).unwrap();
    let file = "When,Plate,Amount\n2026-06-02T10:03:00Z,ABC1234,1.5\n";
    assert_eq!(feed(&format!("tolls import {whose} --mapping txtag.json"), file)["created"], 1);
    let violations = "plate,state,summons_number,amount_due\nABC1234,NY,463,50\n";
    assert_eq!(feed(&format!("violations import {whose} --issuer Albany"), violations)["created"], 1);
    assert_eq!(listed(&organization, "violations")[0]["issuer"], "Albany");
}

#[test]
fn a_refused_file_is_exit_6_and_a_missing_one_1() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let organization = server.organization();
    fs::write(cli.home.path().join("bad.csv"), "a,b\n1,2\n").unwrap();
    let import = |words: &str| cli.run(server, &format!("{words} --organization {}", organization.id));
    let refused = import("tolls import bad.csv");
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert!(refused.stderr.contains("This file was refused"), "{refused:?}");
    for words in ["import bad.csv", "violations import bad.csv --format nonsense"] {
        let refused = import(words);
        assert_eq!(refused.code, Some(6), "{refused:?}");
    }
    let missing = import("tolls import nowhere.csv");
    assert_eq!((missing.code, missing.stderr.contains("cannot read nowhere.csv")), (Some(1), true), "{missing:?}");
    let unknown = cli.run(server, "tolls import bad.csv --organization 0190d0f2-7c3a-7cc0-8000-000000000000");
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
}

#[test]
fn an_import_without_a_valid_row_is_exit_6_and_with_one_0() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let organization = server.organization();
    let invalid = toll(1, "a lot");
    let (skipped, valid) = (toll(3, "0"), toll(2, "1"));
    for (rows, code, format) in [
        (invalid.clone(), 6, ""),
        (invalid.clone() + &skipped, 6, ""),
        (skipped.clone(), 0, ""),
        (invalid.clone() + &valid, 0, " --json"),
        (invalid.clone() + &valid, 0, ""),
    ] {
        let file = HEADER.to_owned() + &rows;
        fs::write(cli.home.path().join("rows.csv"), file).unwrap();
        let ran = cli.run(server, &format!("tolls import rows.csv --organization {}{format}", organization.id));
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert_eq!(ran.stderr.contains("every row of the file is invalid"), code == 6, "{ran:?}");
    }
    let mapping = "\u{feff}{\"agency\": \"A\", \"charges\": \"positive\", \"columns\": {\"occurred_at\": \"When\", \"plate\": \"P\", \"amount\": \"Sum\"}}";
    fs::write(cli.home.path().join("bom.json"), mapping).unwrap();
    fs::write(cli.home.path().join("bom.csv"), "\u{feff}When,P,Sum\n2026-06-02T10:03:00Z,ABC1234,1.5\n").unwrap();
    let ran =
        cli.run(server, &format!("tolls import bom.csv --mapping bom.json --organization {} --json", organization.id));
    assert_eq!((ran.code, ran.json()["created"].clone()), (Some(0), json!(1)), "{ran:?}");
}

#[test]
fn an_import_that_attaches_gets_from_the_file_to_the_payer() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let organization = server.organization();
    let vehicle = organization.vehicle(json!({"plate": "ABC1234", "plate_state": "NY"}));
    let customer = organization.post("/v1/customers", &json!({"full_name": "Ann"})).ok()["id"].clone();
    let rental = json!({"vehicle_id": vehicle, "customer_id": customer, "status": "ACTIVE", "start_date": "2026-06-01", "end_date": "2026-06-09", "activated_at": "2026-06-01T10:00:00Z"});
    organization.post("/v1/rentals", &rental).ok();
    let unknown = "T2,2026-06-02T10:03:00Z,MTAB&T,RKB,XYZ9999,NY,,2\n";
    fs::write(cli.home.path().join("tolls.csv"), [HEADER, &toll(1, "1"), unknown].concat()).unwrap();
    let words = format!("tolls import --organization {} tolls.csv --attach", organization.id);
    let ran = cli.run(server, &words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("1 attached; 1 without a clear customer"), "{ran:?}");
    let of = |number: &str| {
        let tolls = listed(&organization, "tolls");
        tolls.iter().find(|toll| toll["transaction_id"] == number).expect("it is recorded")["customer_id"].clone()
    };
    assert_eq!((of("T1"), of("T2")), (customer, Value::Null));
    let both = cli.run(server, &format!("{words} --dry-run"));
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn a_large_file_is_sent_for_longer_than_the_time_out() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let organization = server.organization();
    let words = format!("tolls import --organization {} - --json --timeout 1s", organization.id);
    let mut child = cli.command(&url(server), &words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(HEADER.as_bytes()).unwrap();
    for n in 0..6 {
        std::thread::sleep(std::time::Duration::from_millis(400));
        stdin.write_all(toll(n, "1").as_bytes()).unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["created"], 6);
}

#[test]
fn an_organization_moves_to_another_server_by_export_and_import() {
    let Some(cli) = Cli::find() else { return };
    let (from, to) = (Server::start(&[]), Server::start(&[]));
    let (source, target) = (from.organization(), to.organization());
    source.one_of_each();
    let words = format!("export --organization {} --to org.ndjson", source.id);
    let written = cli.run(&from, &format!("{words} --json"));
    assert_eq!((written.code, written.json()["objects"].clone()), (Some(0), json!(8)), "{written:?}");
    let file = fs::read_to_string(cli.home.path().join("org.ndjson")).unwrap();
    assert_eq!(written.json()["bytes"], json!(file.len()));
    assert!(!cli.home.path().join("org.ndjson.partial").exists());
    let in_the_way = cli.run(&from, &words);
    assert_eq!(in_the_way.code, Some(6), "{in_the_way:?}");
    assert_eq!(cli.run(&from, &format!("{words} --force")).code, Some(0));
    let piped = cli.run(&from, &format!("export --organization {} --pace full", source.id));
    assert_eq!((piped.code, piped.stdout.as_str(), piped.stderr.as_str()), (Some(0), file.as_str(), ""));
    assert_eq!(cli.run(&from, &format!("export --organization {} --json", source.id)).code, Some(2));
    let imported = cli.run(&to, &format!("import --organization {} org.ndjson --json", target.id));
    assert_eq!((imported.code, imported.json()["created"].clone()), (Some(0), json!(8)), "{imported:?}");
    assert_eq!(imported.json()["received"], written.json()["objects"], "both count the same objects");
    assert_eq!(listed(&target, "invoices")[0]["id"], listed(&source, "invoices")[0]["id"]);
}

#[test]
fn an_import_into_another_organization_of_the_server_says_what_to_do() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let (source, target) = (server.organization(), server.organization());
    source.vehicle(json!({}));
    cli.run(server, &format!("export --organization {} --to own.ndjson", source.id));
    let ran = cli.run(server, &format!("import --organization {} own.ndjson", target.id));
    assert_eq!(ran.code, Some(6), "{ran:?}");
    let words = [
        "import the file into another server",
        "else create new objects over the API",
        "correct what the messages name",
    ];
    words.iter().for_each(|words| assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr));
}

#[test]
fn suggestions_of_all_pages_are_shown_and_what_is_clear_is_attached() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let organization = server.organization();
    let vehicle = organization.vehicle(json!({"plate": "ABC1234", "plate_state": "NY"}));
    let dates = json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "status": "ACTIVE", "activated_at": "2026-06-01T09:00:00Z"});
    let rental = organization.rental(&vehicle, dates);
    let file =
        (0..130).fold(HEADER.to_owned(), |file, n| file + &toll(n, "1")) + "X,2026-06-02T10:03:00Z,A,,OTHER,NY,,1\n";
    fs::write(cli.home.path().join("tolls.csv"), file).unwrap();
    cli.run(server, &format!("tolls import --organization {} tolls.csv", organization.id));
    let words = format!("tolls suggest --organization {}", organization.id);
    let shown = cli.run(server, &words);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(
        (lines.len(), lines[0]),
        (132, "id\tverdict\tattached\tvehicle\tcustomer\trental\treason\twhen\tplate\tamount"),
        "{shown:?}"
    );
    assert_eq!(shown.stderr, "130 clear, 0 unclear, 1 with nobody\n");
    assert!(lines[2].contains(&rental) && lines[2].contains("\tfalse\t"), "{}", lines[2]);
    let attached = cli.run(server, &format!("{words} --attach --json"));
    let rows = attached.json()["data"].as_array().unwrap().clone();
    assert_eq!((rows.len(), rows.iter().filter(|row| row["attached"] == true).count()), (131, 130));
    let left = cli.run(server, &format!("{words} --json"));
    assert_eq!((left.json()["data"].as_array().unwrap().len(), left.json()["has_more"].clone()), (1, json!(false)));
    let none = cli.run(server, &format!("violations suggest --organization {} --json", organization.id));
    assert_eq!(none.json(), json!({"object": "list", "has_more": false, "next_cursor": null, "data": []}));
}

#[test]
fn an_invoice_is_printed_and_the_log_says_who_did_what() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::shared();
    let organization = server.organization();
    let objects = organization.one_of_each();
    // One without credits, so that it can be made void.
    let customer = objects.iter().find(|(plural, _)| *plural == "customers").map(|(_, id)| id).unwrap();
    let lines = json!({"customer_id": customer, "lines": [{"description": "Cleaning", "amount": 20}]});
    let id = &organization.recorded("invoices", &lines);
    let page = cli.run(server, &format!("invoices print {id}"));
    assert_eq!((page.code, page.stdout.starts_with("<!doctype html>")), (Some(0), true), "{page:?}");
    assert!(page.stdout.contains("INV-000002"), "{page:?}");
    let written = cli.run(server, &format!("invoices print {id} --to page.html --json"));
    assert_eq!(written.json()["bytes"], json!(page.stdout.len()));
    assert_eq!(fs::read_to_string(cli.home.path().join("page.html")).unwrap(), page.stdout);
    assert_eq!(cli.run(server, &format!("invoices print {id} --to page.html")).code, Some(6));
    cli.run(server, &format!("invoices void {id} --yes"));
    let log = cli.run(server, &format!("audit list --organization {} --action voidInvoice --json", organization.id));
    let rows = log.json()["data"].as_array().unwrap().clone();
    assert_eq!((rows.len(), &rows[0]["resource_id"]), (1, &json!(id)), "{log:?}");
    let entry = rows[0]["id"].as_str().unwrap();
    assert_eq!(cli.run(server, &format!("audit get {entry} --json")).json(), rows[0]);
    let table = ran(&mut cli.command(&url(server), &format!("audit list --organization {}", organization.id)));
    assert!(table.stdout.contains("voidInvoice"), "{table:?}");
}
