//! Objects named by what people call them: plate, email address, full name, booking id, the agency's number.

use crate::fake_server::{FakeServer, Ran, error, ok};

const ORGANIZATION: &str = "0190d0f2-7c3a-7cc0-8000-000000000000";
const VEHICLE: &str = "0190d0f2-0000-7000-8000-000000000001";
const CUSTOMER: &str = "0190d0f2-0000-7000-8000-000000000002";
const OTHER: &str = "0190d0f2-0000-7000-8000-000000000003";
const RENTAL: &str = "0190d0f2-0000-7000-8000-000000000004";
const TOLL: &str = "0190d0f2-0000-7000-8000-000000000005";
const INVOICE: &str = "0190d0f2-0000-7000-8000-000000000006";

fn list(ids: &[&str]) -> String {
    let data: Vec<String> = ids.iter().map(|id| format!(r#"{{"id":"{id}"}}"#)).collect();
    format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{}]}}"#, data.join(","))
}

/// Runs a command line, its words separated by `|`, against the answers, and compares all requests: line and body.
#[track_caller]
fn check(words: &str, answers: &[String], requests: &[(&str, &str)]) {
    let server = FakeServer::new(answers.iter().map(|answer| ok(answer)).collect());
    let ran = server.run(&words.split('|').collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{words}: {}", ran.stderr);
    let asked = server.asked();
    let asked: Vec<(&str, &str)> = asked.iter().map(|asked| (asked.line.as_str(), asked.body.as_str())).collect();
    assert_eq!(asked, requests, "{words}");
}

#[test]
fn a_vehicle_has_the_name_of_its_plate() {
    let answers = [list(&[VEHICLE]), list(&[])];
    let look_up = ("GET /v1/vehicles?plate=LZA%207293&limit=6", "");
    for (words, line, body) in [
        ("vehicles|get|LZA 7293", format!("GET /v1/vehicles/{VEHICLE}"), ""),
        ("vehicles|update|LZA 7293|--daily-rate|60", format!("PATCH /v1/vehicles/{VEHICLE}"), r#"{"daily_rate":60}"#),
        ("vehicles|assignments|LZA 7293", format!("GET /admin/v1/vehicles/{VEHICLE}/assignments"), ""),
        ("vehicles|calendar-feed|LZA 7293|--revoke|--yes", format!("DELETE /v1/vehicles/{VEHICLE}/calendar_feed"), ""),
        ("tolls|list|--vehicle|LZA 7293", format!("GET /v1/tolls?vehicle={VEHICLE}"), ""),
    ] {
        check(words, &answers, &[look_up, (&line, body)]);
    }
}

#[test]
fn a_vehicle_without_that_plate_is_the_one_with_that_name() {
    let named = format!(
        r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{{"id":"{OTHER}","name":"White Tesla 2"}},{{"id":"{VEHICLE}","name":"White Tesla"}}]}}"#
    );
    let answers = [list(&[]), named, r#"{"id":"1"}"#.to_owned()];
    let by_plate = ("GET /v1/vehicles?plate=White%20Tesla&limit=6", "");
    let by_name = ("GET /v1/vehicles?limit=100", "");
    for (words, line, body) in [
        ("vehicles|get|White Tesla", format!("GET /v1/vehicles/{VEHICLE}"), ""),
        (
            "vehicles|update|White Tesla|--daily-rate|60",
            format!("PATCH /v1/vehicles/{VEHICLE}"),
            r#"{"daily_rate":60}"#,
        ),
    ] {
        check(words, &answers, &[by_plate, by_name, (&line, body)]);
    }
}

#[test]
fn a_customer_is_found_in_any_case_and_composed_or_decomposed() {
    let all = [
        (VEHICLE, "Bob", "null"),
        (CUSTOMER, "José Núñez", "\"jose@example.com\""),
        (OTHER, "alice", "null"),
        (RENTAL, "Alice", "null"),
        (TOLL, "ALICE", "\"a@example.com\""),
    ];
    let all = all.map(|(id, name, email)| format!(r#"{{"id":"{id}","full_name":"{name}","email":{email}}}"#)).join(",");
    let all = format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{all}]}}"#);
    for (name, id) in [
        ("bob", VEHICLE),
        ("BOB", VEHICLE),
        ("José Núñez", CUSTOMER),
        ("Jose\u{301} Nu\u{301}n\u{303}ez", CUSTOMER),
        ("josé NÚÑEZ", CUSTOMER),
        ("JOSE\u{301} NU\u{301}N\u{303}EZ", CUSTOMER),
        ("alice", OTHER),
        ("Alice", RENTAL),
    ] {
        let answers = [all.clone(), r#"{"id":"1"}"#.to_owned()];
        let line = format!("GET /v1/customers/{id}");
        check(&format!("customers|get|{name}"), &answers, &[("GET /v1/customers?limit=100", ""), (&line, "")]);
    }
    let one = |id: &str, name: &str| ok(&format!(r#"{{"id":"{id}","full_name":"{name}"}}"#));
    let server = FakeServer::new(vec![ok(&all), one(OTHER, "alice"), one(RENTAL, "Alice"), one(TOLL, "ALICE")]);
    let ran = server.run(&["customers", "get", "aLICE"]);
    let said = format!("3 customers have the full name \"aLICE\": alice ({OTHER}); Alice ({RENTAL}); ALICE ({TOLL})");
    let flat = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(ran.code == Some(1) && flat.contains(&said), "{}", ran.stderr);
}

#[test]
fn blocks_and_calendar_feeds_have_the_name_of_their_vehicle_if_it_has_one_of_them() {
    let answers = [list(&[VEHICLE]), list(&[OTHER]), r#"{"id":"1"}"#.to_owned()];
    let vehicle = ("GET /v1/vehicles?plate=LZA7293&limit=6", "");
    let feeds = format!("GET /v1/calendar_feeds?vehicle={VEHICLE}&limit=6");
    let blocks = format!("GET /v1/blocks?vehicle={VEHICLE}&status=active&limit=6");
    for (words, list, line, body) in [
        ("calendar-feeds|get|LZA7293", &feeds, format!("GET /v1/calendar_feeds/{OTHER}"), ""),
        ("calendar-feeds|poll|LZA7293", &feeds, format!("POST /v1/calendar_feeds/{OTHER}/poll"), ""),
        ("calendar-feeds|delete|LZA7293|--yes", &feeds, format!("DELETE /v1/calendar_feeds/{OTHER}"), ""),
        (
            "blocks|update|LZA7293|--status|cancelled",
            &blocks,
            format!("PATCH /v1/blocks/{OTHER}"),
            r#"{"status":"cancelled"}"#,
        ),
    ] {
        check(words, &answers, &[vehicle, (list, ""), (&line, body)]);
    }
    let server = FakeServer::new(vec![ok(&list(&[VEHICLE])), ok(&list(&[OTHER, TOLL]))]);
    let ran = server.run(&["blocks", "get", "LZA7293"]);
    let said = format!("2 blocks have the vehicle \"LZA7293\": {OTHER}, {TOLL}");
    assert!(ran.code == Some(1) && ran.stderr.contains(&said), "{}", ran.stderr);
}

#[test]
fn operators_api_keys_and_webhook_endpoints_are_named_by_what_their_lists_show() {
    let page = |member: &str, value: &str| {
        let object =
            |id: &str, revoked: &str| format!(r#"{{"id":"{id}","{member}":"{value}","revoked_at":{revoked}}}"#);
        let both = [object(OTHER, "\"2026-05-05T09:30:00.000Z\""), object(VEHICLE, "null")].join(",");
        format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{both}]}}"#)
    };
    for (words, member, value, plural, line) in [
        ("operators|get|Ada Lovelace", "name", "Ada Lovelace", "operators", "GET /admin/v1/operators/"),
        ("operators|revoke|Ada|--yes", "name", "Ada", "operators", "POST /admin/v1/operators/"),
        ("api-keys|revoke|Website|--yes", "name", "Website", "api_keys", "POST /admin/v1/api_keys/"),
        (
            "webhook-endpoints|get|https://h/x",
            "url",
            "https://h/x",
            "webhook_endpoints",
            "GET /admin/v1/webhook_endpoints/",
        ),
        (
            "events|resend|0190d0f2-0000-7000-8000-000000000009|--endpoint|https://h/x",
            "url",
            "https://h/x",
            "webhook_endpoints",
            "POST /admin/v1/events/",
        ),
    ] {
        let server = FakeServer::new(vec![ok(&page(member, value)), ok(&list(&[]))]);
        let words_of_line = words.split('|').collect::<Vec<_>>();
        // Another organization can have an API key of this name or an endpoint of this URL.
        let of = if plural == "operators" { String::new() } else { format!("organization={ORGANIZATION}&") };
        if plural != "operators" {
            let ran = server.run(&words_of_line);
            assert_eq!((ran.code, server.asked().len()), (Some(2), 0), "{words}: {}", ran.stderr);
            assert!(ran.stderr.contains("set RENTAL_ORGANIZATION, or use the id"), "{}", ran.stderr);
        }
        let ran = Ran::of(server.command(&words_of_line).env("RENTAL_ORGANIZATION", ORGANIZATION));
        assert_eq!(ran.code, Some(0), "{words}: {}", ran.stderr);
        let asked = server.asked();
        let look_up = format!("GET /admin/v1/{plural}?{of}limit=100");
        assert_eq!((asked.len(), asked[0].line.as_str()), (2, look_up.as_str()));
        let said = format!("{} {}", asked[1].line, asked[1].body);
        assert!(said.starts_with(line) && said.contains(VEHICLE), "{words}: {said}");
    }
}

#[test]
fn a_rental_is_made_of_a_plate_and_an_email_address() {
    check(
        "rentals|create|--customer|ada@example.com|--vehicle|LZA7293|--start-date|2026-06-01",
        &[list(&[CUSTOMER]), list(&[VEHICLE]), r#"{"id":"1"}"#.to_owned()],
        &[
            ("GET /v1/customers?email=ada%40example.com&limit=6", ""),
            ("GET /v1/vehicles?plate=LZA7293&limit=6", ""),
            (
                "POST /v1/rentals",
                &format!(r#"{{"customer_id":"{CUSTOMER}","vehicle_id":"{VEHICLE}","start_date":"2026-06-01"}}"#),
            ),
        ],
    );
}

#[test]
fn a_customer_can_be_named_by_the_exact_full_name() {
    let named = |id: &str, name: &str| format!(r#"{{"id":"{id}","full_name":"{name}"}}"#);
    let first = format!(
        r#"{{"object":"list","has_more":true,"next_cursor":"c","data":[{}]}}"#,
        named(OTHER, "Ada Lovelace Jr")
    );
    let last = format!(
        r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{}]}}"#,
        named(CUSTOMER, "Ada Lovelace")
    );
    check(
        &format!("tolls|attach|{TOLL}|--customer|Ada Lovelace"),
        &[first, last, r#"{"id":"1"}"#.to_owned()],
        &[
            ("GET /v1/customers?limit=100", ""),
            ("GET /v1/customers?limit=100&starting_after=c", ""),
            (&format!("PATCH /v1/tolls/{TOLL}"), &format!(r#"{{"customer_id":"{CUSTOMER}"}}"#)),
        ],
    );
}

#[test]
fn tolls_violations_and_rentals_have_the_numbers_of_others() {
    let body = format!(r#"{{"customer_id":"{CUSTOMER}"}}"#);
    let attach = |plural: &str| format!("{plural}|attach|612-1|--customer|{CUSTOMER}");
    check(
        &attach("tolls"),
        &[list(&[TOLL]), r#"{"id":"1"}"#.to_owned()],
        &[("GET /v1/tolls?transaction_id=612-1&limit=6", ""), (&format!("PATCH /v1/tolls/{TOLL}"), &body)],
    );
    check(
        &attach("violations"),
        &[list(&[TOLL]), r#"{"id":"1"}"#.to_owned()],
        &[("GET /v1/violations?summons_number=612-1&limit=6", ""), (&format!("PATCH /v1/violations/{TOLL}"), &body)],
    );
    check(
        "tolls|release|612-1",
        &[list(&[TOLL]), r#"{"id":"1"}"#.to_owned()],
        &[("GET /v1/tolls?transaction_id=612-1&limit=6", ""), (&format!("POST /admin/v1/tolls/{TOLL}/release"), "")],
    );
    check(
        &format!("invoices|create|--organization|{ORGANIZATION}|--rental|B1001|--with-tolls"),
        &[list(&[RENTAL]), r#"{"id":"1"}"#.to_owned()],
        &[
            ("GET /v1/rentals?booking_id=B1001&limit=6", ""),
            (
                &format!("POST /admin/v1/organizations/{ORGANIZATION}/invoices/drafts"),
                &format!(r#"{{"with_tolls":true,"with_violations":false,"rental_id":"{RENTAL}"}}"#),
            ),
        ],
    );
    check(
        &format!("invoices|create|--organization|{ORGANIZATION}|--customer|{CUSTOMER}|--with-violations"),
        &[r#"{"id":"1"}"#.to_owned()],
        &[(
            &format!("POST /admin/v1/organizations/{ORGANIZATION}/invoices/drafts"),
            &format!(r#"{{"with_tolls":false,"with_violations":true,"customer_id":"{CUSTOMER}"}}"#),
        )],
    );
    for more in [&[][..], &["--rental", RENTAL, "--customer", CUSTOMER]] {
        let server = FakeServer::new(Vec::new());
        let ran = server.run(&[&["invoices", "create", "--organization", ORGANIZATION, "--with-tolls"], more].concat());
        assert_eq!((ran.code, server.asked().len()), (Some(2), 0), "{}", ran.stderr);
        assert!(ran.stderr.contains("need --rental or --customer, and not both"), "{}", ran.stderr);
    }
}

#[test]
fn lines_of_an_invoice_name_what_they_bill() {
    check(
        &format!(
            "invoices|create|--organization|{ORGANIZATION}|--customer|{CUSTOMER}|--line|Cleaning=12.50|--line|toll:612-1|--line|rental:{RENTAL}"
        ),
        &[list(&[TOLL]), r#"{"id":"1"}"#.to_owned()],
        &[
            ("GET /v1/tolls?transaction_id=612-1&limit=6", ""),
            (
                &format!("POST /admin/v1/organizations/{ORGANIZATION}/invoices"),
                &format!(
                    r#"{{"customer_id":"{CUSTOMER}","lines":[{{"description":"Cleaning","amount":12.50}},{{"toll_id":"{TOLL}"}},{{"rental_id":"{RENTAL}"}}]}}"#
                ),
            ),
        ],
    );
}

/// A line of text with the amount would leave the toll unbilled, and it would be billed again.
#[test]
fn a_line_bills_a_part_of_the_toll_violation_or_rental_that_it_names() {
    let of = format!("invoices|create|--organization|{ORGANIZATION}|--customer|{CUSTOMER}|--line|");
    let post = format!("POST /admin/v1/organizations/{ORGANIZATION}/invoices");
    for (line, look_up, billed) in [
        ("toll:612-1=3.00", "tolls?transaction_id=612-1", format!(r#"{{"toll_id":"{TOLL}","amount":3.00}}"#)),
        ("toll: 612-1=6.94", "tolls?transaction_id=612-1", format!(r#"{{"toll_id":"{TOLL}","amount":6.94}}"#)),
        ("violation:999=5", "violations?summons_number=999", format!(r#"{{"violation_id":"{TOLL}","amount":5}}"#)),
        ("rental:BK9=100", "rentals?booking_id=BK9", format!(r#"{{"rental_id":"{TOLL}","amount":100}}"#)),
    ] {
        check(
            &format!("{of}{line}"),
            &[list(&[TOLL]), r#"{"id":"1"}"#.to_owned()],
            &[
                (&format!("GET /v1/{look_up}&limit=6"), ""),
                (&post, &format!(r#"{{"customer_id":"{CUSTOMER}","lines":[{billed}]}}"#)),
            ],
        );
    }
    let text = r#"{"description":"Toll: bridge","amount":5}"#;
    let body = format!(r#"{{"customer_id":"{CUSTOMER}","lines":[{text}]}}"#);
    check(&format!("{of}Toll: bridge=5"), &[r#"{"id":"1"}"#.to_owned()], &[(&post, &body)]);
    let server = FakeServer::new(vec![ok(&list(&[]))]);
    let line = ["--line", "toll:612-9=3.00"];
    let words = ["invoices", "create", "--organization", ORGANIZATION, "--customer", CUSTOMER];
    let ran = server.run(&[&words[..], &line].concat());
    let asked = server.asked();
    assert!(ran.code == Some(3) && asked.iter().all(|asked| asked.line.starts_with("GET ")), "{}", ran.stderr);
    for line in ["toll:=3", "toll:612-1=three", "rental:"] {
        let server = FakeServer::new(Vec::new());
        let ran = server.run(&[&words[..], &["--line", line]].concat());
        assert_eq!((ran.code, server.asked().len()), (Some(2), 0), "{line}: {}", ran.stderr);
    }
}

#[test]
fn a_toll_is_credited_by_its_number() {
    let invoice = format!(
        r#"{{"id":"{INVOICE}","lines":[{{"toll_id":null,"rental_id":"{RENTAL}"}},{{"toll_id":"{OTHER}"}},{{"toll_id":"{TOLL}"}}]}}"#
    );
    let get = format!("GET /v1/invoices/{INVOICE}");
    for (line, credited) in [
        ("toll:612-1", r#"{"lines":[{"line":2},{"line":0,"amount":1.50}]}"#),
        ("toll:612-1=4.50", r#"{"lines":[{"line":2,"amount":4.50},{"line":0,"amount":1.50}]}"#),
    ] {
        check(
            &format!("invoices|credit|{INVOICE}|--line|{line}|--line|0=1.50"),
            &[invoice.clone(), list(&[TOLL]), r#"{"id":"1"}"#.to_owned()],
            &[
                (&get, ""),
                ("GET /v1/tolls?transaction_id=612-1&limit=6", ""),
                (&format!("POST /admin/v1/invoices/{INVOICE}/credit"), credited),
            ],
        );
    }
    let with_fees = invoice.replace("]}", r#",{"description":"Toll fee: 5 × 4.95"},{"description":"Cleaning"}]}"#);
    for (more, note) in
        [(&[][..], "line 3 of the invoice, \"Toll fee: 5 × 4.95\", is not credited"), (&["--line", "3=4.95"], "")]
    {
        let server = FakeServer::new(vec![ok(&with_fees), ok(&list(&[TOLL])), ok(r#"{"id":"1"}"#)]);
        let ran = server.run(&[&["invoices", "credit", INVOICE, "--line", "toll:612-1"], more].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(
            ran.stderr.contains(note) && ran.stderr.contains("is not credited") != note.is_empty(),
            "{}",
            ran.stderr
        );
    }
    let server = FakeServer::new(vec![ok(&invoice), ok(&list(&[CUSTOMER]))]);
    let ran = server.run(&["invoices", "credit", INVOICE, "--line", "toll:612-9"]);
    assert_eq!((ran.code, server.asked().len()), (Some(3), 2), "{}", ran.stderr);
    assert!(ran.stderr.contains("this invoice does not bill toll 612-9"), "{}", ran.stderr);
}

#[test]
fn a_number_that_is_no_place_of_a_line_is_taken_for_that_of_a_toll() {
    for (line, is_place) in [("61231234567", false), ("200", false), ("199", true)] {
        let server = FakeServer::new(vec![]);
        let ran = server.run(&["invoices", "credit", "0190d0f2-7c3a-7cc0-8000-000000000001", "--line", line]);
        assert_ne!(ran.code, Some(0), "{line}");
        assert_eq!(ran.stderr.contains(&format!("write toll:{line}")), !is_place, "{}", ran.stderr);
    }
}

/// Runs a command that ends after the look-up.
#[track_caller]
fn refused(words: &[&str], answer: &str) -> Ran {
    let server = FakeServer::new(vec![ok(answer), ok(answer), error(500, "", "api_error", "internal_error")]);
    let ran = server.run(words);
    // A vehicle is looked up by its plate, then by its name.
    let look_ups = 1 + usize::from(words.contains(&"--vehicle"));
    assert_eq!((ran.stdout.as_str(), server.asked().len()), ("", look_ups), "{}", ran.stderr);
    ran
}

#[test]
fn a_name_of_nothing_or_of_several_objects_is_refused_with_the_next_step() {
    for (words, said) in [
        (
            &["tolls", "list", "--vehicle", "LZA1"][..],
            "no vehicle has the plate or the name \"LZA1\", and it is not an id",
        ),
        (&["customers", "get", "a@b.c"], "no customer has the email address \"a@b.c\", and it is not an id"),
        (&["customers", "get", "Ada"], "no customer has the full name \"Ada\", and it is not an id"),
        (&["rentals", "get", "B1"], "no rental has the booking id \"B1\", and it is not an id"),
    ] {
        let ran = refused(words, &list(&[]));
        assert!(ran.code == Some(3) && ran.stderr.contains(said) && ran.stderr.contains("hint: "), "{}", ran.stderr);
    }
    let ran = refused(&["tolls", "get", "1"], &list(&[TOLL, OTHER]));
    assert!(
        ran.stderr.contains(&format!("2 tolls have the transaction number \"1\": {TOLL}, {OTHER}")),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.code, Some(1));
}

#[test]
fn what_is_neither_a_number_nor_an_id_of_an_invoice_is_refused_with_the_form_of_a_number() {
    for (words, said) in [
        (&["invoices", "get", "7"][..], "\"7\" is no number of an invoice, such as INV-000007, and no id"),
        (&["invoices", "pdf", "x", "--to", "x.pdf"], "\"x\" is no number of an invoice, such as INV-000042, and no id"),
        (&["invoices", "void", "7", "--yes"], "such as INV-000007"),
        (&["invoices", "credit", "7", "--yes"], "such as INV-000007"),
        (&["credit-notes", "list", "--invoice", "7"], "such as INV-000007"),
        (&["credit-notes", "get", "INV-7"], "\"INV-7\" is no number of a credit note, such as CN-000042, and no id"),
    ] {
        let server = FakeServer::new(vec![error(404, "", "not_found_error", "resource_missing")]);
        let ran = server.run(words);
        let plural = words[0];
        assert!(ran.code == Some(3) && ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("hint: `rental-cli") && ran.stderr.contains(" list"), "{plural}: {}", ran.stderr);
        assert_eq!(server.asked().len(), 0, "{words:?}");
    }
}

#[test]
fn a_look_up_of_an_operators_command_says_that_it_needs_an_api_key() {
    let server = FakeServer::new(vec![ok("{}")]);
    let mut command = server.command(&["tolls", "release", "612-1"]);
    let output = command.env_remove("RENTAL_API_KEY").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(4) && said.contains("an API key is needed to look up the toll"), "{said}");
    assert_eq!(server.asked().len(), 0);
}
