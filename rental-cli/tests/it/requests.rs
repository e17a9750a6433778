//! What each command asks the server for.

use crate::fake_server::{FakeServer, ok};

/// Any id.
const ID: &str = "0190d0f2-0000-7000-8000-000000000001";

/// Runs a command line, its words separated by `|`, and compares the request line and body. `ID-1` stands for an id.
#[track_caller]
fn check(words: &str, line: &str, body: &str) {
    let [words, line, body] =
        [words, line, body].map(|text| text.replace("ID-", "0190d0f2-7c3a-7cc0-8000-00000000000"));
    let server =
        FakeServer::new(vec![ok(r#"{"object":"list","id":"1","has_more":false,"next_cursor":null,"data":[]}"#)]);
    let ran = server.run(&words.split('|').collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = server.asked();
    assert_eq!((asked.len(), asked[0].line.as_str(), asked[0].body.as_str()), (1, line.as_str(), body.as_str()));
    assert_eq!(asked[0].header("content-type"), (!body.is_empty()).then_some("application/json"));
    assert_eq!(asked[0].header("user-agent"), Some(concat!("rental-cli/", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn organizations_are_the_operators() {
    check(
        "organizations|create|--name|N|--plan|free|--currency|JPY|--booking-policy|open",
        "POST /admin/v1/organizations",
        r#"{"name":"N","plan":"free","default_currency":"JPY","booking_policy":"open"}"#,
    );
    check("organizations|list|--limit|2", "GET /admin/v1/organizations?limit=2", "");
    check(
        "organizations|get|0190d0f2-7c3a-7cc0-8000-000000000000",
        "GET /admin/v1/organizations/0190d0f2-7c3a-7cc0-8000-000000000000",
        "",
    );
    check(
        "organizations|update|0190d0f2-7c3a-7cc0-8000-000000000000|--plan|pro",
        "PATCH /admin/v1/organizations/0190d0f2-7c3a-7cc0-8000-000000000000",
        r#"{"plan":"pro"}"#,
    );
}

#[test]
fn api_keys_are_the_operators() {
    check(
        "api-keys|create|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--scope|read|--name|Web",
        "POST /admin/v1/api_keys",
        r#"{"organization_id":"0190d0f2-7c3a-7cc0-8000-000000000000","name":"Web","scope":"read"}"#,
    );
    check(
        "api-keys|list|--organization|0190d0f2-7c3a-7cc0-8000-000000000000",
        "GET /admin/v1/api_keys?organization=0190d0f2-7c3a-7cc0-8000-000000000000",
        "",
    );
    check(&format!("api-keys|get|{ID}"), &format!("GET /admin/v1/api_keys/{ID}"), "");
    check(&format!("api-keys|revoke|{ID}|--yes"), &format!("POST /admin/v1/api_keys/{ID}/revoke"), "");
    let rotate = format!("POST /admin/v1/api_keys/{ID}/rotate");
    check(&format!("api-keys|rotate|{ID}"), &rotate, r#"{"overlap_seconds":86400}"#);
    check(&format!("api-keys|rotate|{ID}|--overlap|0s|--yes"), &rotate, r#"{"overlap_seconds":0}"#);
}

#[test]
fn expires_in_counts_from_now() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1"}"#)]);
    for time in ["90d", "91d"] {
        server.run(&[
            "api-keys",
            "create",
            "--organization",
            "0190d0f2-7c3a-7cc0-8000-000000000000",
            "--scope",
            "read",
            "--expires-in",
            time,
        ]);
    }
    let times: Vec<String> =
        server.asked().iter().map(|asked| asked.body.rsplit('"').nth(1).unwrap().to_owned()).collect();
    assert!(times[0].ends_with('Z') && times[0].len() == "2026-05-05T09:30:00.000Z".len(), "{times:?}");
    assert!(times[0] < times[1], "{times:?}");
}

#[test]
fn the_fleet_is_the_organizations() {
    check(
        "vehicles|create|--name|White Tesla|--daily-rate|89.50|--turo-listing-id|12",
        "POST /v1/vehicles",
        r#"{"name":"White Tesla","turo_listing_id":"12","daily_rate":89.50}"#,
    );
    check(
        "vehicles|update|ID-1|--status|maintenance|--clear|color",
        "PATCH /v1/vehicles/ID-1",
        r#"{"color":null,"status":"maintenance"}"#,
    );
    check("customers|list|--email|a+b@example.com", "GET /v1/customers?email=a%2Bb%40example.com", "");
    check("customers|create|--full-name|Ada", "POST /v1/customers", r#"{"full_name":"Ada"}"#);
    check(
        "rentals|create|--customer|ID-c|--vehicle|ID-1|--start-date|2026-06-01|--final-price|100",
        "POST /v1/rentals",
        r#"{"customer_id":"ID-c","vehicle_id":"ID-1","start_date":"2026-06-01","final_price":100}"#,
    );
    check("rentals|update|ID-1|--damage-at-return|true", "PATCH /v1/rentals/ID-1", r#"{"damage_at_return":true}"#);
    check(
        "rentals|list|--vehicle|ID-1|--status|NEW|--customer|ID-c",
        "GET /v1/rentals?status=NEW&customer=ID-c&vehicle=ID-1",
        "",
    );
    check(
        "rentals|list|--customer|ID-c|--created-gte|2026-05-05T00:00:00Z|--starting-after|x",
        "GET /v1/rentals?customer=ID-c&created%5Bgte%5D=2026-05-05T00%3A00%3A00Z&starting_after=x",
        "",
    );
}

#[test]
fn invoices_are_read_by_the_organization_and_written_by_the_operator() {
    check("invoices|list|--status|open", "GET /v1/invoices?status=open", "");
    check("invoices|get|ID-1", "GET /v1/invoices/ID-1", "");
    check(
        "invoices|create|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--customer|ID-c|--rental|ID-2|--line|a=b=12.50|--line|Toll=6.94",
        "POST /admin/v1/organizations/0190d0f2-7c3a-7cc0-8000-000000000000/invoices",
        r#"{"customer_id":"ID-c","rental_id":"ID-2","lines":[{"description":"a=b","amount":12.50},{"description":"Toll","amount":6.94}]}"#,
    );
    check("invoices|pay|ID-1", "POST /admin/v1/invoices/ID-1/pay", "");
    check(
        "invoices|pay|ID-1|--paid-at|2026-06-05T10:00:00-04:00",
        "POST /admin/v1/invoices/ID-1/pay",
        r#"{"paid_at":"2026-06-05T10:00:00-04:00"}"#,
    );
    check("invoices|void|ID-1|--yes", "POST /admin/v1/invoices/ID-1/void", "");
    check(
        "invoices|credit|ID-1|--line|0|--line|2=4.50|--reason|x|--rebill|true",
        "POST /admin/v1/invoices/ID-1/credit",
        r#"{"reason":"x","rebill":true,"lines":[{"line":0},{"line":2,"amount":4.50}]}"#,
    );
    check("invoices|credit|ID-1", "POST /admin/v1/invoices/ID-1/credit", "{}");
}

#[test]
fn credit_notes_are_read_by_the_organization_and_written_by_the_operator() {
    check("credit-notes|list|--invoice|ID-2", "GET /v1/credit_notes?invoice=ID-2", "");
    check("credit-notes|get|ID-1", "GET /v1/credit_notes/ID-1", "");
    check(
        "credit-notes|create|--organization|0190d0f2-7c3a-7cc0-8000-000000000000|--invoice|ID-2|--line|0=1",
        "POST /admin/v1/organizations/0190d0f2-7c3a-7cc0-8000-000000000000/credit_notes",
        r#"{"invoice_id":"ID-2","lines":[{"line":0,"amount":1}]}"#,
    );
    // One member, because the order of members depends on the features with which the workspace is built.
    check(
        "credit-notes|refund|ID-1|--reference|re_1",
        "POST /admin/v1/credit_notes/ID-1/refund",
        r#"{"refund_reference":"re_1"}"#,
    );
    check(
        "credit-notes|refund|ID-1|--at|2026-06-05T10:00:00Z",
        "POST /admin/v1/credit_notes/ID-1/refund",
        r#"{"refunded_at":"2026-06-05T10:00:00Z"}"#,
    );
}

#[test]
fn tolls_and_violations_are_attached() {
    check("tolls|list|--vehicle|ID-1", "GET /v1/tolls?vehicle=ID-1", "");
    check("tolls|attach|ID-1|--customer|ID-c", "PATCH /v1/tolls/ID-1", r#"{"customer_id":"ID-c"}"#);
    check("violations|get|ID-1", "GET /v1/violations/ID-1", "");
    check("violations|attach|ID-1|--customer|", "PATCH /v1/violations/ID-1", r#"{"customer_id":null}"#);
}

#[test]
fn leads_take_json_from_the_line_or_a_file() {
    check("leads|create", "POST /v1/leads", "{}");
    check(
        r#"leads|create|--source-channel|web|--raw-data|{"a": 1.50}"#,
        "POST /v1/leads",
        r#"{"source_channel":"web","raw_data":{"a": 1.50}}"#,
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("form.json");
    std::fs::write(&file, "{\"b\":2}\n").unwrap();
    check(&format!("leads|create|--raw-data|@{}", file.display()), "POST /v1/leads", r#"{"raw_data":{"b":2}}"#);
}

#[test]
fn an_id_cannot_change_the_path() {
    check("leads|get|../customers?x#y", "GET /admin/v1/leads/..%2Fcustomers%3Fx%23y", "");
}

const LISTED: &str = r#"{"object":"list","has_more":true,"next_cursor":"c","data":[{"object":"organization","id":"0190d0f2-0000-7000-8000-000000000001","name":"Sunrise Rentals"},{"object":"organization","id":"0190d0f2-0000-7000-8000-000000000002","name":"Twice"}]}"#;
const LISTED_NEXT: &str = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"object":"organization","id":"0190d0f2-0000-7000-8000-000000000003","name":"Twice"}]}"#;

#[test]
fn an_organization_can_be_named_by_its_name() {
    let named = "--organization|Sunrise Rentals";
    for (line, request, body) in [
        (format!("events|list|{named}"), format!("GET /admin/v1/organizations/{ID}/events"), String::new()),
        (format!("api-keys|list|{named}"), format!("GET /admin/v1/api_keys?organization={ID}"), String::new()),
        (
            format!("api-keys|create|--scope|read|{named}"),
            "POST /admin/v1/api_keys".into(),
            format!(r#"{{"organization_id":"{ID}","scope":"read"}}"#),
        ),
        ("organizations|get|Sunrise Rentals".into(), format!("GET /admin/v1/organizations/{ID}"), String::new()),
        ("organizations|get|sunrise RENTALS".into(), format!("GET /admin/v1/organizations/{ID}"), String::new()),
        (
            "organizations|update|Sunrise Rentals|--plan|pro".into(),
            format!("PATCH /admin/v1/organizations/{ID}"),
            r#"{"plan":"pro"}"#.into(),
        ),
    ] {
        let server = FakeServer::new(vec![
            ok(LISTED),
            ok(LISTED_NEXT),
            ok(r#"{"object":"list","has_more":false,"next_cursor":null,"data":[]}"#),
        ]);
        let words: Vec<&str> = line.split('|').collect();
        let ran = server.run(&words);
        let asked: Vec<String> = server.asked().iter().map(|asked| asked.line.clone()).collect();
        let listed =
            ["GET /admin/v1/organizations?limit=100", "GET /admin/v1/organizations?limit=100&starting_after=c"];
        assert_eq!(asked, [listed[0], listed[1], &request], "{line}: {}", ran.stderr);
        assert_eq!(server.asked()[2].body, body, "{line}");
    }
}

#[test]
fn a_name_of_no_or_of_several_organizations_is_refused_with_the_next_step() {
    for (name, code, said) in [
        (
            "Twice",
            1,
            "2 organizations have the name \"Twice\": 0190d0f2-0000-7000-8000-000000000002, 0190d0f2-0000-7000-8000-000000000003\nhint: use the id",
        ),
        (
            "TWICE",
            1,
            "2 organizations have the name \"TWICE\": 0190d0f2-0000-7000-8000-000000000002 (Twice), 0190d0f2-0000-7000-8000-000000000003 (Twice)",
        ),
        ("Moonset", 3, "no organization has the name \"Moonset\"\nhint: `rental-cli organizations list --all` shows"),
    ] {
        let server = FakeServer::new(vec![ok(LISTED), ok(LISTED_NEXT)]);
        let ran = server.run(&["events", "list", "--organization", name]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{name}");
        let flat = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&said.split_whitespace().collect::<Vec<_>>().join(" ")), "{name}: {}", ran.stderr);
        assert_eq!(server.asked().len(), 2);
    }
}

/// By its last characters a key of another organization can look like one of this one.
#[test]
fn trigger_asks_whose_the_key_is_and_makes_nothing_with_that_of_another_organization() {
    let status = ok(r#"{"object":"status","time":"2026-05-05T09:30:00.000Z","webhook_brand":"Rental"}"#);
    let me = ok(r#"{"object":"me","organization_id":"0190d0f2-7c3a-7cc0-8000-00000000000b","scope":"read_write"}"#);
    let server = FakeServer::new(vec![status, me]);
    let organization = "0190d0f2-7c3a-7cc0-8000-00000000000a";
    let ran = server.run(&["trigger", "customer.created", "--organization", organization]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("another organization than {organization}; nothing was changed")));
    let asked: Vec<String> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(asked, ["GET /admin/v1/status", "GET /v1/me"]);
}
