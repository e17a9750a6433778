//! Names beside the ids of one object, and in the messages of an import. A pipe and JSON get what the server sent. The progress
//! of an import.

use crate::{
    fake_server::{FakeServer, Reply, ok},
    terminal::plain,
};

const ID: &str = "0190d0f2-7c3a-7cc0-8000-000000000001";
const VEHICLE: &str = "0190d0f2-7c3a-7cc0-8000-00000000000a";
const CUSTOMER: &str = "0190d0f2-7c3a-7cc0-8000-00000000000b";
const FIRST: &str = "0190d0f2-7c3a-7cc0-8000-00000000000c";
const LAST: &str = "0190d0f2-7c3a-7cc0-8000-00000000000d";

fn toll() -> String {
    format!(
        r#"{{"id":"{ID}","object":"toll","amount":6.94,"currency":"USD","vehicle_id":"{VEHICLE}","customer_id":"{CUSTOMER}","rental_id":null,"invoice_ids":["{FIRST}","{LAST}"],"organization_id":"{ID}"}}"#
    )
}

fn lines(server: &FakeServer) -> Vec<String> {
    let mut lines: Vec<String> = server.asked().into_iter().skip(1).map(|asked| asked.line).collect();
    lines.sort();
    lines
}

#[test]
fn an_object_on_a_terminal_has_names_beside_its_ids() {
    let server = FakeServer::new(vec![ok(&toll()), ok(r#"{"object":"any","name":"Grey Camry"}"#)]);
    let shown = plain(&server, &["tolls", "get", ID], 140);
    for text in [
        format!("vehicle_id:      {VEHICLE} (Grey Camry)\n"),
        format!("customer_id:     {CUSTOMER} (Grey Camry)\n"),
        format!("invoice_ids:     {FIRST}, {LAST} (Grey Camry)\n"),
        format!("organization_id: {ID}\n"),
        "rental_id:       -\n".to_owned(),
    ] {
        assert!(shown.contains(&text), "{text}: {shown}");
    }
    let asked = [
        format!("GET /v1/customers/{CUSTOMER}"),
        format!("GET /v1/invoices/{LAST}"),
        format!("GET /v1/vehicles/{VEHICLE}"),
    ];
    assert_eq!(lines(&server), asked, "one request for each field");
}

#[test]
fn a_name_that_is_not_found_leaves_the_id_as_it_was() {
    let server = FakeServer::new(vec![ok(&toll()), ok(r#"{"object":"any"}"#)]);
    let shown = plain(&server, &["tolls", "get", ID], 140);
    assert!(shown.contains(&format!("customer_id:     {CUSTOMER}\n")), "{shown}");
    assert!(shown.contains(&format!("[\"{FIRST}\",\"{LAST}\"]\n")), "{shown}");
}

#[test]
fn a_pipe_and_json_have_ids_alone_and_look_nothing_up() {
    let script = || FakeServer::new(vec![ok(&toll()), ok(r#"{"object":"any","name":"Grey Camry"}"#)]);
    let server = script();
    let piped = server.run(&["tolls", "get", ID]).stdout;
    assert!(piped.contains(&format!("customer_id\t{CUSTOMER}\n")) && server.asked().len() == 1, "{piped}");
    let server = script();
    assert_eq!(plain(&server, &["tolls", "get", ID, "--json"], 140), toll() + "\n");
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn the_failed_rows_of_an_import_name_invoices_by_their_numbers() {
    let summary = format!(
        r#"{{"object":"import","received":2,"created":1,"updated":0,"duplicates":0,"skipped":0,"invalid":1,"errors":[{{"row":14,"message":"This toll is billed on invoice {FIRST}. Void that invoice, or credit its line."}}],"review":[{{"row":3,"message":"is attached to customer {CUSTOMER}."}}]}}"#
    ) + "\n";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tolls.csv");
    std::fs::write(&file, "transaction_id\n").unwrap();
    let args = ["tolls", "import", "--organization", ID, file.to_str().unwrap()];
    let named = r#"{"object":"any","invoice_number":"INV-000042","email":"ada@example.com"}"#;
    let script = || FakeServer::new(vec![ok(r#"{"default_currency":"USD"}"#), ok(&summary), ok(named)]);
    let shown = plain(&script(), &args, 140);
    assert!(shown.contains("row 14: This toll is billed on invoice INV-000042. Void that invoice"), "{shown}");
    assert!(shown.contains("row 3 is attached to customer ada@example.com."), "{shown}");
    let server = script();
    let piped = server.run(&args).stderr;
    assert!(piped.contains(&format!("row 14: This toll is billed on invoice {FIRST}.")), "{piped}");
    assert_eq!(server.asked().len(), 2, "a log has the text of the server");
}

#[test]
fn the_progress_of_an_import_has_no_rate_before_it_is_known() {
    let begun = "{\"object\":\"import_progress\",\"rows\":0,\"of\":100}\n".repeat(3);
    let summary = r#"{"object":"import","received":100,"created":100,"invalid":0}"#;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tolls.csv");
    std::fs::write(&file, "transaction_id\n").unwrap();
    let answer = Reply::Slowly(format!("{begun}{summary}\n").into_bytes());
    let server = FakeServer::new(vec![ok(r#"{"default_currency":"USD"}"#), answer]);
    let shown = plain(&server, &["tolls", "import", "--organization", ID, file.to_str().unwrap()], 140);
    assert!(shown.contains("0 of 100 rows (0 %)"), "{shown:?}");
    assert!(!shown.contains("0/s") && !shown.contains(" left"), "{shown:?}");
}
