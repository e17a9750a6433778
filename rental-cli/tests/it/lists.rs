//! Choosing what a list prints: `--columns`, `--limit` over several pages, `--jq`.

use crate::fake_server::{FakeServer, Reply, ok};

fn page(ids: std::ops::Range<usize>, more: bool) -> Reply {
    let end = ids.end;
    let rows: Vec<String> =
        ids.map(|id| format!(r#"{{"object":"vehicle","id":"{id}","name":"V{id}","daily_rate":89.50}}"#)).collect();
    let cursor = if more { format!("\"{end}\"") } else { "null".into() };
    ok(&format!(r#"{{"object":"list","has_more":{more},"next_cursor":{cursor},"data":[{}]}}"#, rows.join(",")))
}

#[test]
fn a_limit_above_a_page_asks_for_several_pages() {
    let server = FakeServer::new(vec![page(0..100, true), page(100..200, true), page(200..250, true)]);
    let ran = server.run(&["vehicles", "list", "--limit", "250", "--columns", "id"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 251), "{}", ran.stderr);
    let asked: Vec<String> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(
        asked,
        [
            "GET /v1/vehicles?limit=100",
            "GET /v1/vehicles?limit=100&starting_after=100",
            "GET /v1/vehicles?limit=50&starting_after=200"
        ]
    );
    assert!(ran.stderr.contains("--starting-after 250"), "{}", ran.stderr);
    let server = FakeServer::new(vec![page(0..100, true), page(100..120, false)]);
    let ran = server.run(&["vehicles", "list", "--limit", "1000", "--jq", ".data | length"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, "120\n");
}

#[test]
fn json_of_several_pages_keeps_the_cursor_of_the_last() {
    let server = FakeServer::new(vec![page(0..100, true), page(100..150, true)]);
    let ran = server.run(&["vehicles", "list", "--limit", "150", "--json"]);
    assert!(
        ran.stdout.starts_with(r#"{"object":"list","has_more":true,"next_cursor":"150","data":[{"#),
        "{}",
        ran.stdout
    );
}

#[test]
fn chosen_columns_are_printed_in_their_order_and_unknown_ones_refused() {
    let server = FakeServer::new(vec![page(1..3, false)]);
    let ran = server.run(&["vehicles", "list", "--columns", "daily_rate,id"]);
    assert_eq!(ran.stdout, "daily_rate\tid\n89.50\t1\n89.50\t2\n");
    for command in [&["vehicles", "list"][..], &["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"]] {
        let ran = server.run(&[command, &["--json", "--columns", "name"]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "JSON has every field");
        assert!(ran.stderr.contains("--jq chooses members"), "{}", ran.stderr);
    }
    assert_eq!(server.asked().len(), 1, "nothing was asked");
    let ran = server.run(&["vehicles", "list", "--columns", "daily_rat"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("daily_rate"), "{}", ran.stderr);
}

#[test]
fn a_column_of_names_looks_up_each_object_once() {
    let rental = |id: &str| format!(r#"{{"object":"rental","id":"{id}","vehicle_id":"v1"}}"#);
    let list =
        format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{},{}]}}"#, rental("1"), rental("2"));
    let server = FakeServer::new(vec![ok(&list), ok(r#"{"object":"vehicle","name":"White Tesla"}"#)]);
    let ran = server.run(&["rentals", "list", "--columns", "id,vehicle,vehicle_id"]);
    assert_eq!(ran.stdout, "id\tvehicle\tvehicle_id\n1\tWhite Tesla\tv1\n2\tWhite Tesla\tv1\n", "{}", ran.stderr);
    assert_eq!(server.asked().len(), 2);
    assert_eq!(server.asked()[1].line, "GET /v1/vehicles/v1");
}

#[test]
fn a_name_that_cannot_be_looked_up_is_an_id() {
    let list = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"object":"rental","id":"1","vehicle_id":"v1"}]}"#;
    for reply in [Reply::HangUp, crate::fake_server::error(404, "", "not_found_error", "resource_missing")] {
        let server = FakeServer::new(vec![ok(list), reply]);
        let ran = server.run(&["rentals", "list", "--columns", "vehicle"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "vehicle\nv1\n"), "{}", ran.stderr);
    }
}

#[test]
fn jq_filters_every_json_and_a_wrong_expression_asks_nothing() {
    let server = FakeServer::new(vec![ok(r#"{"object":"vehicle","id":"1","daily_rate":89.50}"#)]);
    let ran = server.run(&[
        "vehicles",
        "get",
        "0190d0f2-7c3a-7cc0-8000-000000000001",
        "--jq",
        "[.id, .daily_rate] | map(tostring) | join(\",\")",
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "1,89.50\n"), "{}", ran.stderr);
    let ran = server.run(&["config", "path", "--jq", ".exists"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
    let server = FakeServer::new(vec![ok("{}")]);
    let ran = server.run(&["vehicles", "list", "--jq", ".data["]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("--jq .data["), "{}", ran.stderr);
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn chosen_fields_of_an_object_are_printed_in_their_order_and_a_secret_always() {
    let vehicle = r#"{"object":"vehicle","id":"1","name":"Blue","plate":"A1","daily_rate":50}"#;
    for command in [
        &["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000000"][..],
        &["vehicles", "create", "--name", "Blue"],
        &["vehicles", "update", "0190d0f2-7c3a-7cc0-8000-000000000000", "--name", "Blue"],
    ] {
        let server = FakeServer::new(vec![ok(vehicle)]);
        let ran = server.run(&[command, &["--columns", "plate,id"]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "plate\tA1\nid\t1\n"), "{}", ran.stderr);
    }
    let server = FakeServer::new(vec![ok(r#"{"object":"operator","id":"1","name":"Ada","token":"rat_1"}"#)]);
    let ran = server.run(&["operators", "create", "--name", "Ada", "--role", "owner", "--columns", "id"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "id\t1\ntoken\trat_1\n"), "{}", ran.stderr);
    let ran = server.run(&["operators", "get", "0190d0f2-7c3a-7cc0-8000-000000000000", "--columns", "nam"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("name"), "{}", ran.stderr);
}
