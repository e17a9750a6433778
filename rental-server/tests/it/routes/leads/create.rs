//! POST /v1/leads

use crate::support::{Organization, Reply, Server, fields::text, rules};
use serde_json::{Value, json};

#[track_caller]
fn send(organization: &Organization<'_>, body: &str) -> Reply {
    organization.raw("POST", "/v1/leads", &[], body.as_bytes())
}

#[test]
fn a_lead_needs_nothing_at_all() {
    let organization = Server::shared().organization();
    for body in ["", "{}", r#"{"source_channel":null,"customer_id":null,"raw_data":null}"#] {
        let lead = send(&organization, body).ok();
        rules::whole(&lead, "lead");
        assert_eq!((&lead["source_channel"], &lead["status"]), (&json!("api"), &json!("NEW")), "{body}");
        assert_eq!((&lead["customer_id"], &lead["raw_data"]), (&Value::Null, &Value::Null), "{body}");
    }
}

#[test]
fn the_row_of_the_specification_is_taken_as_it_stands() {
    let organization = Server::shared().organization();
    let body = json!({"source_channel": "website", "customer_id": organization.customer(json!({})),
        "raw_data": {"message": "Need an SUV in June", "seats": 7}});
    let lead = organization.post("/v1/leads", &body).ok();
    for (field, sent) in body.as_object().unwrap() {
        assert_eq!(&lead[field], sent, "{field}");
    }
}

#[test]
fn the_source_channel_takes_any_text_within_its_bounds() {
    let organization = Server::shared().organization();
    let (good, bad) = text("source_channel", 255).values();
    for (sent, stored) in good {
        let lead = send(&organization, &format!("{{\"source_channel\":{sent}}}")).ok();
        assert_eq!(lead["source_channel"], serde_json::from_str::<Value>(&stored).unwrap());
    }
    for sent in bad {
        let reply = send(&organization, &format!("{{\"source_channel\":{sent}}}"));
        assert_eq!(reply.bad_fields(), [("source_channel".to_owned(), "parameter_invalid".to_owned())], "{sent}");
    }
}

/// The text of `raw_data` in an answer.
#[track_caller]
fn kept(reply: &Reply) -> String {
    let text = reply.text();
    let start = text.find("\"raw_data\":").unwrap_or_else(|| panic!("no raw_data in {text}")) + "\"raw_data\":".len();
    let end = text.rfind(",\"status\":").expect("status follows");
    text[start..end].to_owned()
}

#[test]
fn raw_data_comes_back_byte_for_byte() {
    let organization = Server::shared().organization();
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    for raw in [
        "{}",
        "{ \"b\" : 1.50,\t\"a\" : [1e2, \"\\u00e9\", \"é\", \"\\/\"] }",
        "{\"z\":1,\"a\":2,\"\":3,\"1\":4}",
        "{\"big\":9007199254740993,\"bigger\":123456789012345678901234567890,\"exact\":0.10000000000000000000000001}",
        "{\"zero\":-0,\"zeros\":1.000,\"exp\":1E+2,\"tiny\":1e-400}",
        "{\"text\":\"a\\u0000b\\n\\ud83d\\ude97\",\"null\":null,\"true\":true}",
        "{\"html\":\"</script><!--\",\"status\":\"x\",\"raw_data\":{\"raw_data\":{}}}",
        "{\n  \"pretty\": [\r\n    1,\n    2\n  ]\n}",
        &deep,
    ] {
        assert_eq!(kept(&send(&organization, &format!("{{\"raw_data\": {raw} }}"))), raw);
    }
}

#[test]
fn raw_data_keeps_numbers_that_no_float_holds() {
    let organization = Server::shared().organization();
    for raw in ["{\"n\":1e400}", "{\"n\":-1E9999}"] {
        assert_eq!(kept(&send(&organization, &format!("{{\"raw_data\":{raw}}}"))), raw);
    }
}

#[test]
fn raw_data_is_an_object_of_at_most_64_kib() {
    let organization = Server::shared().organization();
    let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
    for bytes in [65_535, 65_536] {
        let raw = sized(bytes);
        assert_eq!(raw.len(), bytes);
        assert_eq!(kept(&send(&organization, &format!("{{\"raw_data\":{raw}}}"))), raw);
    }
    for bad in [sized(65_537), "[]".into(), "[{}]".into(), "1".into(), "\"{}\"".into(), "true".into()] {
        let reply = send(&organization, &format!("{{\"raw_data\":{bad}}}"));
        assert_eq!(reply.bad_fields(), [("raw_data".to_owned(), "parameter_invalid".to_owned())]);
    }
}

#[test]
fn a_repeated_key_inside_raw_data_is_named_with_its_path() {
    let organization = Server::shared().organization();
    for (raw, param) in [
        ("{\"a\":1,\"a\":1}", "raw_data.a"),
        ("{\"form\":{\"a\":1,\"b\":2,\"a\":3}}", "raw_data.form.a"),
        ("{\"list\":[{\"a\":1},{\"a\":1,\"\\u0061\":2}]}", "raw_data.list.a"),
    ] {
        let reply = send(&organization, &format!("{{\"raw_data\":{raw}}}"));
        assert_eq!(reply.bad_fields(), [(param.to_owned(), "parameter_duplicate".to_owned())]);
    }
}

#[test]
fn a_customer_that_there_is_not_is_refused_by_name() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    for id in [rules::UNKNOWN_ID, &other.customer(json!({})), &organization.vehicle(json!({})), "x", ""] {
        let reply = organization.post("/v1/leads", &json!({"customer_id": id}));
        assert_eq!(reply.bad_fields(), [("customer_id".to_owned(), "resource_missing".to_owned())], "{id}");
    }
    for bad in [json!(1), json!([]), json!({})] {
        let reply = organization.post("/v1/leads", &json!({"customer_id": bad}));
        assert_eq!(reply.bad_fields(), [("customer_id".to_owned(), "parameter_invalid".to_owned())]);
    }
}

#[test]
fn unknown_server_only_and_repeated_fields_are_refused() {
    let organization = Server::shared().organization();
    for name in ["id", "object", "status", "created_at", "updated_at", "email", "rawdata", "organization_id"] {
        let reply = send(&organization, &format!("{{\"{name}\":\"NEW\"}}"));
        assert_eq!(reply.bad_fields(), [(name.to_owned(), "parameter_unknown".to_owned())]);
    }
    assert!(send(&organization, "{\"rawdata\":{}}").text().contains("did you mean `raw_data`"));
    let reply = send(&organization, "{\"raw_data\":{},\"raw_data\":{}}");
    assert_eq!(reply.bad_fields(), [("raw_data".to_owned(), "parameter_duplicate".to_owned())]);
}

#[test]
fn several_bad_fields_are_named_at_once() {
    let organization = Server::shared().organization();
    let reply = send(&organization, r#"{"source_channel":1,"raw_data":[],"customer_id":2,"x":3}"#);
    let mut found: Vec<String> = reply.bad_fields().into_iter().map(|(param, _)| param).collect();
    found.sort();
    assert_eq!(found, ["customer_id", "raw_data", "source_channel", "x"]);
}

#[test]
fn there_is_no_endpoint_to_list_or_retrieve_leads() {
    let organization = Server::shared().organization();
    let id = organization.post("/v1/leads", &json!({})).id();
    organization.get("/v1/leads").error(405, "invalid_request_error", "method_not_allowed");
    organization.get(&format!("/v1/leads/{id}")).error(404, "invalid_request_error", "route_unknown");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("POST", "leads");
}
