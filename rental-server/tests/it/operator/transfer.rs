//! The way out and in: an export has everything as it is, and an import makes the same of it, once.

use super::{all, counts};
use crate::{
    events_in_store::stop,
    support::{ADMIN_TOKEN, Connection, Organization, Reply, Server, flip},
};
use rental_core::{
    check,
    store::{SCHEMA_VERSION, redb::ClosedFile},
};
use serde_json::{Value, json};
use std::io::BufRead;

fn path(organization: &Organization, word: &str) -> String {
    format!("/admin/v1/organizations/{}/{word}", organization.id)
}

/// An export without its first line, which tells the version: [`import`] writes it again. Another test may be making one on the same
/// server.
#[track_caller]
fn export(organization: &Organization) -> String {
    loop {
        let reply = organization.server.admin("GET", &path(organization, "export?pace=full"), &Value::Null);
        if reply.status != 409 {
            assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-ndjson")));
            let text = reply.text();
            let (first, rest) = text.split_once('\n').unwrap();
            assert_eq!(first, format!("{{\"object\":\"export\",\"schema_version\":{SCHEMA_VERSION}}}"));
            let end = format!("\"objects\":{}}}", text.lines().count() - 1);
            assert!(rest.trim_end().ends_with(&end), "the last line counts all lines before it");
            let fewer = format!("\"objects\":{}}}", text.lines().count() - 2);
            return rest.replace(&end, &fewer);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn import(organization: &Organization, query: &str, file: &str) -> Reply {
    import_with(organization, query, &[], file)
}

fn import_with(organization: &Organization, query: &str, headers: &[(&str, &str)], file: &str) -> Reply {
    let token = format!("Bearer {ADMIN_TOKEN}");
    let mut all = vec![("Authorization", token.as_str()), ("Content-Type", "application/x-ndjson")];
    all.extend_from_slice(headers);
    let path = path(organization, &format!("import{query}"));
    Connection::open(&organization.server.address).send("POST", &path, &all, with_version(file).as_bytes())
}

/// The file with its first line, which the last one counts.
fn with_version(file: &str) -> String {
    const END: &str = "{\"object\":\"export_end\",\"objects\":";
    let version = format!("{{\"object\":\"export\",\"schema_version\":{SCHEMA_VERSION}}}\n");
    let Some((lines, end)) = file.split_once(END) else { return version + file };
    let (count, rest) = end.split_once('}').unwrap();
    format!("{version}{lines}{END}{}}}{rest}", count.parse::<usize>().unwrap() + 1)
}

fn objects(file: &str) -> Vec<Value> {
    file.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The file with other lines between its first and its last one.
fn with_lines(file: &str, lines: &[String]) -> String {
    let head = file.lines().next().unwrap();
    let end = json!({"object": "export_end", "objects": lines.len() + 1});
    format!("{head}\n{}{end}\n", lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

fn body(file: &str) -> Vec<String> {
    let lines: Vec<&str> = file.lines().collect();
    lines[1..lines.len() - 1].iter().map(|line| (*line).to_owned()).collect()
}

/// Something of everything: holds, bills of each status, tolls that were attached by somebody, by a rental, or to nobody.
struct Rich {
    vehicle: String,
    customer: String,
    toll: String,
    violation: String,
    rental: String,
}

fn fill(organization: &Organization) -> Rich {
    let vehicle = organization.vehicle(json!({"plate": "ABC1234", "plate_state": "NY", "daily_rate": 89.5}));
    let customer = organization.customer(json!({"email": "ada@example.com", "notes": "line \u{2028} \"quoted\" é"}));
    let dates = json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "status": "APPROVED"});
    let rental = organization.rental(&vehicle, dates);
    organization
        .patch(&format!("/v1/rentals/{rental}"), &json!({"status": "ACTIVE", "activated_at": "2026-06-01T09:00:00Z"}))
        .ok();
    organization.rental(&vehicle, json!({"start_date": "2026-07-01", "end_date": "2026-07-01"}));
    let toll = |amount: f64, more: Value| {
        let mut fields = json!({"amount": amount, "agency": "MTAB&T", "plate": "ABC1234", "plate_state": "NY"});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        organization.recorded("tolls", &fields)
    };
    let billed = toll(6.94, json!({"customer_id": customer, "transaction_id": "T1"}));
    toll(1.0, json!({"vehicle_id": vehicle, "occurred_at": "2026-06-02T14:03:00Z", "plaza": "RKB"}));
    toll(2.5, json!({"occurred_at": "2026-06-02T15:00:00Z"}));
    organization.server.admin("POST", &path(organization, "tolls/suggestions"), &json!({"limit": 1})).ok();
    let violation = organization.recorded(
        "violations",
        &json!({"summons_number": "463", "issuer": "NYC", "amount_due": 50, "customer_id": customer}),
    );
    let bill = |lines: Value| organization.recorded("invoices", &json!({"customer_id": customer, "lines": lines}));
    bill(json!([{"toll_id": billed}, {"description": "Fee", "amount": 2}]));
    let paid = bill(json!([{"violation_id": violation}]));
    let void = bill(json!([{"description": "Mistake", "amount": 0.01}]));
    organization.server.admin("POST", &format!("/admin/v1/invoices/{paid}/pay"), &Value::Null).ok();
    organization.server.admin("POST", &format!("/admin/v1/invoices/{void}/void"), &Value::Null).ok();
    let lead = b"{\"raw_data\": {\n  \"n\": 1.50,\r\n \"text\": \"a\\nb\"\n}}";
    assert_eq!(organization.raw("POST", "/v1/leads", &[], lead).status, 200);
    Rich { vehicle, customer, toll: billed, violation, rental }
}

const RESOURCES: [&str; 6] = ["vehicles", "customers", "rentals", "tolls", "violations", "invoices"];

#[test]
fn an_export_has_every_object_as_a_get_gives_it_and_after_what_it_names() {
    let organization = Server::shared().organization();
    fill(&organization);
    let file = export(&organization);
    let lines = objects(&file);
    assert_eq!(lines[0]["id"], json!(organization.id));
    assert_eq!(lines.last().unwrap(), &json!({"object": "export_end", "objects": lines.len() - 1}));
    let mut expected: Vec<Value> = RESOURCES
        .iter()
        .flat_map(|plural| {
            let mut objects = all(&organization, plural);
            objects.reverse();
            objects
        })
        .collect();
    let found = &lines[1..lines.len() - 1];
    expected.push(found.last().unwrap().clone());
    assert_eq!(found, expected);
    assert_eq!(
        (&found.last().unwrap()["object"], &found.last().unwrap()["raw_data"]["n"]),
        (&json!("lead"), &json!(1.5))
    );
    assert!(file.contains("{   \"n\": 1.50,   \"text\": \"a\\nb\" }"), "{file}");
    for plural in RESOURCES {
        let id = all(&organization, plural)[0]["id"].as_str().unwrap().to_owned();
        let get = organization.get(&format!("/v1/{plural}/{id}")).text();
        assert!(file.lines().any(|line| line == get), "{get}");
    }
}

#[test]
fn an_export_has_no_secret_and_nothing_of_other_organizations() {
    let server = Server::start(&["--webhook-allow-private"]);
    let [organization, other] = [server.organization(), server.organization()];
    let foreign: Vec<String> = other.one_of_each().into_iter().map(|(_, id)| id).collect();
    let endpoint = json!({"organization_id": organization.id, "url": "http://127.0.0.1:9/x"});
    let secret = server.admin("POST", "/admin/v1/webhook_endpoints", &endpoint).ok()["secret"].clone();
    fill(&organization);
    let file = export(&organization);
    let mut hidden = foreign;
    hidden.extend([organization.write.clone(), organization.read.clone(), other.id.clone(), "127.0.0.1:9".into()]);
    hidden.push(secret.as_str().expect("a secret").to_owned());
    assert!(hidden.iter().all(|text| !file.contains(text.as_str())), "{file}");
}

#[test]
fn an_import_into_a_new_store_exports_the_same_lines_and_a_second_one_creates_nothing() {
    let source = Server::shared().organization();
    let rich = fill(&source);
    let file = export(&source);
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_on_file(folder.path(), &[]);
    {
        let target = server.organization();
        assert!(
            file.contains("\"attribution\":\"automatic\"") && file.contains("\"attribution\":\"manual\""),
            "{file}"
        );
        let trial = import(&target, "?dry_run=true", &file).ok();
        assert_eq!((&trial["dry_run"], export(&target).lines().count()), (&json!(true), 2));
        let mut real = import(&target, "", &file).ok();
        assert_eq!(counts(&real), [file.lines().count() as u64 - 2, 0, 0, 0, 0], "{real}");
        let sums = json!({"tolls": 10.44, "violations": 50, "invoices": 58.95, "credit_notes": 0});
        assert_eq!(sums_of(&real), ["received", "created"].map(|_| sums.clone()));
        assert_eq!(real["amounts"]["created"], 119.39);
        real["dry_run"] = json!(true);
        assert_eq!(trial, real);
        let moved = export(&target);
        assert_eq!(body(&moved), body(&file.replace(&source.id, &target.id)));
        let again = import(&target, "", &file).ok();
        assert_eq!(counts(&again), [0, 0, file.lines().count() as u64 - 2, 0, 0], "{again}");
        let none = json!({"tolls": 0, "violations": 0, "invoices": 0, "credit_notes": 0});
        assert_eq!((sums_of(&again), &again["amounts"]["duplicates"]), ([sums, none], &json!(119.39)));
        assert_eq!(export(&target), moved);
        let events = server.admin("GET", &path(&target, "events"), &Value::Null).ok();
        assert_eq!(events["data"], json!([]));
        what_goes_with_objects_came_along(&target, &rich);
        let log = server
            .admin(
                "GET",
                &format!("/admin/v1/audit_entries?organization={}&action=importOrganization", target.id),
                &Value::Null,
            )
            .ok();
        assert_eq!(log["data"].as_array().unwrap().len(), 1, "{log}");
    }
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    let closed = ClosedFile::open(&folder.path().join("store.redb"), 4 << 20).expect("it opens");
    let report = check::of_file(&closed, &mut |_| {});
    assert_eq!(report.problems, 0, "{report:?}");
}

/// What an import received and created of each resource with amounts.
fn sums_of(answer: &Value) -> [Value; 2] {
    let of = |count: &str| {
        let each = answer["amounts_by_resource"].as_object().unwrap().iter();
        each.map(|(plural, sums)| (plural.clone(), sums[count].clone())).collect()
    };
    ["received", "created"].map(of)
}

/// Holds, identities, bills, look-ups and numbers.
#[track_caller]
fn what_goes_with_objects_came_along(target: &Organization, rich: &Rich) {
    let again = json!({"vehicle_id": rich.vehicle, "customer_id": rich.customer, "status": "APPROVED", "start_date": "2026-06-04", "end_date": "2026-06-09"});
    let refused = target.post("/v1/rentals", &again).error(409, "invalid_request_error", "vehicle_unavailable");
    assert_eq!(refused["conflicting_rental_id"], json!(rich.rental));
    let other = target.customer(json!({}));
    for (plural, id) in [("tolls", &rich.toll), ("violations", &rich.violation)] {
        let moved = target.patch(&format!("/v1/{plural}/{id}"), &json!({"customer_id": other}));
        moved.error(409, "invalid_request_error", "state_conflict");
    }
    let statement = "transaction_id,agency,plate,plate_state,amount\nT1,MTAB&T,ABC1234,NY,6.94\n";
    assert_eq!(counts(&super::import(target, "tolls", "", statement).ok()), [0, 0, 1, 0, 0]);
    let line = json!([{"description": "Next", "amount": 1}]);
    let next = target.recorded("invoices", &json!({"customer_id": other, "lines": line}));
    assert_eq!(target.get(&format!("/v1/invoices/{next}")).ok()["invoice_number"], "INV-000004");
    let suggested = target.server.admin("GET", &path(target, "tolls/suggestions"), &Value::Null).ok();
    assert_eq!(suggested["data"].as_array().unwrap().len(), 1, "{suggested}");
    let found = target
        .get(&format!("/v1/rentals?customer={}", all(target, "rentals")[0]["customer_id"].as_str().unwrap()))
        .ok();
    assert_eq!(found["data"].as_array().unwrap().len(), 1);
}

/// A file of one organization, and a server of its own with another one.
fn moving() -> (String, Server) {
    let source = Server::shared().organization();
    fill(&source);
    (export(&source), Server::start(&[]))
}

#[test]
fn a_line_that_cannot_be_used_is_reported_and_stops_no_other() {
    let (file, server) = moving();
    let target = server.organization();
    let lines = body(&file);
    let changed: Vec<String> = lines
        .iter()
        .map(|line| match line {
            line if line.contains("\"object\":\"violation\"") => line.replace("\"NYC\"", "7"),
            line => line.clone(),
        })
        .chain([
            "nonsense".to_owned(),
            "{\"object\":\"api_key\"}".to_owned(),
            lines[0].replace("Test vehicle", "Other"),
        ])
        .collect();
    let answer = import(&target, "", &with_lines(&file, &changed)).ok();
    let told: Vec<&str> =
        answer["errors"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap()).collect();
    // The violation, the invoice that bills it and the one behind that, and the last three lines.
    assert_eq!(told.len(), 6, "{told:?}");
    for (message, part) in told.iter().zip([
        "`issuer` must be a string",
        "`lines[0].violation_id` names no violation",
        "`invoice_number` must be INV-000002",
        "no JSON object",
        "must be one of vehicle",
        "there already with other content",
    ]) {
        assert!(message.contains(part), "{message} lacks {part}");
    }
    // Also of a line that is no object of its resource.
    let invalid =
        ["tolls", "violations", "invoices"].map(|plural| answer["amounts_by_resource"][plural]["invalid"].clone());
    assert_eq!(invalid, [json!(0), json!(50), json!(50.01)]);
    let created = answer["created"].as_u64().unwrap();
    assert_eq!(created as usize, lines.len() - 3);
    let mended = import(&target, "", &file).ok();
    assert_eq!(counts(&mended), [3, 0, created, 0, 0], "{mended}");
    assert_eq!(body(&export(&target)).len(), lines.len());
}

#[test]
fn a_line_that_needs_a_damaged_row_is_reported_and_stops_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_on_file(directory.path(), &[]);
    let organization = server.organization();
    let [damaged, sound] = ["break-me-here", "sound"].map(|notes| organization.customer(json!({"notes": notes})));
    let vehicle = organization.vehicle(json!({}));
    let rental = json!({"vehicle_id": vehicle, "customer_id": sound});
    let lost = organization.post("/v1/rentals", &rental).id();
    let file = export(&organization);
    let (id, read, write) = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    drop(organization);
    stop(server);
    flip(&directory.path().join("store.redb"), "break-me-here");

    let server = Server::start_on_file(directory.path(), &[]).expecting_errors("damaged");
    let organization = Organization { server: &server, id, read, write };
    // The rental is not there any more, and another one names the damaged customer.
    // Two other ids with the time in the id.
    let mut others = ["0001", "0002", "0003"].map(|end| format!("{}{end}", &lost[..lost.len() - 4])).into_iter();
    let [one, another] = [(); 2].map(|()| others.find(|id| *id != lost).expect("two of three differ"));
    let lines = body(&file).into_iter().flat_map(|line| match line.contains(&format!("\"id\":\"{lost}\"")) {
        true => vec![line.replace(&lost, &one), line.replace(&lost, &another).replace(&sound, &damaged)],
        false => vec![line],
    });
    let file = with_lines(&file, &lines.collect::<Vec<_>>());
    for (query, created) in [("?dry_run=true", 1), ("", 1), ("", 0)] {
        let answer = import(&organization, query, &file).ok();
        assert_eq!((&answer["created"], &answer["invalid"]), (&json!(created), &json!(2)), "{answer}");
        for error in answer["errors"].as_array().unwrap() {
            assert!(error["message"].as_str().unwrap().contains("store repair"), "{error}");
        }
    }
    organization.get(&format!("/v1/rentals/{one}")).ok();
}

#[test]
fn a_car_that_the_organization_has_already_is_not_made_again() {
    let source = Server::shared().organization();
    fill(&source);
    // The file has two records of one car itself: they arrive as they are.
    for _ in 0..2 {
        source.vehicle(json!({"plate": "TWICE1"}));
    }
    let (file, server) = (export(&source), Server::start(&[]));
    let target = server.organization();
    let there = target.vehicle(json!({"plate": "abc-1234", "plate_state": "New York"}));
    let told = import(&target, "", &file).ok();
    let why = format!("Vehicle {there} of this organization has this plate, so the car was not made again.");
    assert!(told["errors"][0]["message"].as_str().unwrap().starts_with(&why), "{told}");
    assert_eq!(all(&target, "vehicles").len(), 3);
    target.patch(&format!("/v1/vehicles/{there}"), &json!({"plate": null})).ok();
    let told = import(&target, "", &file).ok();
    assert_eq!((&told["invalid"], all(&target, "vehicles").len()), (&json!(0), 4), "{told}");
}

#[test]
fn ids_that_another_organization_of_the_server_has_are_refused() {
    let source = Server::shared().organization();
    fill(&source);
    let file = export(&source);
    let copy = Server::shared().organization();
    let answer = import(&copy, "", &file).ok();
    assert_eq!(counts(&answer), [0, 0, 0, 0, file.lines().count() as u64 - 2]);
    assert!(answer["errors"][0]["message"].as_str().unwrap().contains("Another organization"), "{answer}");
    assert_eq!(export(&copy).lines().count(), 2);
}

#[test]
fn a_file_that_is_not_whole_or_in_another_currency_is_refused() {
    let (file, server) = moving();
    let target = server.organization();
    let euros = server.organization_with(&json!({"name": "Euros", "default_currency": "EUR"}));
    let last = file.trim_end().rfind('\n').unwrap() + 1;
    for (organization, bad, part) in [
        (&euros, file.clone(), "in USD"),
        (&target, file[..last].to_owned(), "broken off"),
        (&target, file[..last / 2].to_owned(), "broken off"),
        (&target, file.replacen("\"objects\":", "\"objects\":1", 1), "export it again"),
        (&target, file.split_once('\n').unwrap().1.to_owned(), "first line"),
        (&target, "plate,state\nA,B\n".to_owned(), "first line"),
        (&target, String::new(), "empty"),
        (&target, format!("{file}{{}}\n"), "goes on"),
    ] {
        for headers in [&[][..], &[("Accept", "application/x-ndjson")]] {
            let error =
                import_with(organization, "", headers, &bad).error(400, "invalid_request_error", "file_refused");
            assert!(error["message"].as_str().unwrap().contains(part), "{error}");
        }
        assert_eq!(export(organization).lines().count(), 2);
    }
    let unknown = import(&target, "?format=x", &file).bad_fields();
    assert_eq!(unknown, [("format".to_owned(), "parameter_unknown".to_owned())]);
}

#[test]
fn an_import_tells_how_far_it_is_to_who_asks() {
    let organization = Server::shared().organization();
    let header = "transaction_id,agency,plate,plate_state,amount\n";
    let file = (0..900).fold(header.to_owned(), |file, n| file + &format!("T{n},MTAB&T,A,NY,1\n"));
    let token = format!("Bearer {ADMIN_TOKEN}");
    let headers = [("Authorization", token.as_str()), ("Accept", "text/html;q=0.1, Application/X-NDJSON;q=1")];
    let send = |file: &str| {
        let path = path(&organization, "tolls/import");
        Connection::open(&organization.server.address).send("POST", &path, &headers, file.as_bytes())
    };
    let reply = send(&file);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-ndjson")));
    let mut lines = objects(&reply.text());
    assert_eq!(counts(&lines.pop().unwrap()), [900, 0, 0, 0, 0]);
    assert_eq!(lines[0], json!({"object": "import_progress", "rows": 0, "of": 900}));
    let rows: Vec<u64> = lines.iter().map(|line| line["rows"].as_u64().unwrap()).collect();
    assert!(rows.is_sorted() && *rows.last().unwrap() <= 900, "{rows:?}");
    send("nonsense\n1\n").error(400, "invalid_request_error", "file_refused");
}

#[test]
fn invoices_in_the_order_of_their_ids_find_their_numbers() {
    let (file, server) = moving();
    let target = server.organization();
    let (mut bills, rest): (Vec<String>, Vec<String>) =
        body(&file).into_iter().partition(|line| line.contains("\"object\":\"invoice\""));
    bills.reverse();
    let answer = import(&target, "", &with_lines(&file, &[rest, bills].concat())).ok();
    assert_eq!(answer["invalid"], 0, "{answer}");
}

/// A client that is slow to read sees nothing of what is written meanwhile.
#[test]
fn an_export_is_of_one_moment() {
    let server = Server::start(&[]);
    let organization = server.organization();
    // More than the kernel and the server keep for a client that does not read.
    let notes = "n".repeat(9_900);
    for _ in 0..700 {
        organization.customer(json!({"notes": notes}));
    }
    let mut connection = Connection::open(&server.address);
    let path = path(&organization, "export?pace=full");
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n");
    connection.write(request.as_bytes()).unwrap();
    connection.stream.fill_buf().unwrap();
    assert_eq!(organization.post("/v1/leads", &json!({"source_channel": "later"})).status, 200);
    let file = connection.read_reply(false).unwrap().text();
    assert!(!file.contains("\"lead\"") && file.ends_with("{\"object\":\"export_end\",\"objects\":702}\n"));
    assert!(export(&organization).contains("\"later\""));
}
