//! What holds for every resource alike: the operations, the fields of a response, the one 404.

use super::{Organization, Reply, Server};
use serde_json::{Value, json};

/// The operations of the specification (spec, Endpoints).
pub(crate) const OPERATIONS: [(&str, &str); 42] = [
    ("GET", "/v1/availability"),
    ("GET", "/v1/vehicles/{id}/calendar"),
    ("GET", "/v1/vehicles/{id}/calendar_feed"),
    ("POST", "/v1/vehicles/{id}/calendar_feed"),
    ("DELETE", "/v1/vehicles/{id}/calendar_feed"),
    ("GET", "/v1/calendar_feeds"),
    ("GET", "/v1/calendar_feeds/{id}"),
    ("POST", "/v1/calendar_feeds"),
    ("DELETE", "/v1/calendar_feeds/{id}"),
    ("POST", "/v1/calendar_feeds/{id}/poll"),
    ("GET", "/v1/blocks"),
    ("GET", "/v1/blocks/{id}"),
    ("POST", "/v1/blocks"),
    ("PATCH", "/v1/blocks/{id}"),
    ("GET", "/v1/me"),
    ("GET", "/v1/events"),
    ("GET", "/v1/events/{id}"),
    ("GET", "/v1/vehicles"),
    ("GET", "/v1/vehicles/{id}"),
    ("POST", "/v1/vehicles"),
    ("PATCH", "/v1/vehicles/{id}"),
    ("GET", "/v1/customers"),
    ("GET", "/v1/customers/{id}"),
    ("POST", "/v1/customers"),
    ("PATCH", "/v1/customers/{id}"),
    ("GET", "/v1/rentals"),
    ("GET", "/v1/rentals/{id}"),
    ("POST", "/v1/rentals"),
    ("PATCH", "/v1/rentals/{id}"),
    ("GET", "/v1/invoices"),
    ("GET", "/v1/invoices/{id}"),
    ("GET", "/v1/credit_notes"),
    ("GET", "/v1/credit_notes/{id}"),
    ("GET", "/v1/tolls"),
    ("GET", "/v1/tolls/review"),
    ("GET", "/v1/tolls/{id}"),
    ("PATCH", "/v1/tolls/{id}"),
    ("GET", "/v1/violations"),
    ("GET", "/v1/violations/review"),
    ("GET", "/v1/violations/{id}"),
    ("PATCH", "/v1/violations/{id}"),
    ("POST", "/v1/leads"),
];

/// The path with the query that it requires.
pub(crate) fn with_required_query(path: &str) -> String {
    match path {
        "/v1/availability" | "/v1/vehicles/{id}/calendar" => format!("{path}?from=2026-06-01&to=2026-06-08"),
        _ => path.to_owned(),
    }
}

/// A well-formed id that no object has.
pub(crate) const UNKNOWN_ID: &str = "0190d0f2-7c3a-7cc0-8000-0000000000ff";

/// Every field that a response of this resource must carry (spec, Resources; decisions, Identity and values).
fn fields(object: &str) -> &'static [&'static str] {
    match object {
        "vehicle" => &[
            "name",
            "make",
            "model",
            "year",
            "color",
            "plate",
            "transponder_number",
            "turo_listing_id",
            "daily_rate",
            "deposit_amount",
            "status",
            "organization_id",
            "currency",
        ],
        "customer" => &["full_name", "email", "phone", "preferred_language", "source_channel", "notes"],
        "rental" => &[
            "booking_id",
            "customer_id",
            "vehicle_id",
            "start_date",
            "end_date",
            "rental_days",
            "pickup_type",
            "delivery_location",
            "final_price",
            "status",
            "damage_at_return",
            "vehicle_changed_at",
            "earlier_vehicles",
            "currency",
        ],
        "invoice" => &["invoice_number", "total", "status", "customer_id", "currency"],
        "credit_note" => {
            &["credit_note_number", "invoice_id", "customer_id", "lines", "total", "currency", "refunded_at"]
        }
        "toll" => &["amount", "agency", "vehicle_id", "customer_id", "currency"],
        "violation" => &["summons_number", "amount_due", "vehicle_id", "customer_id", "currency"],
        "lead" => &["source_channel", "customer_id", "raw_data", "status"],
        other => panic!("{other} is no resource"),
    }
}

/// Checks that `value` is a whole object: every field is there, the id is a UUIDv7, the times are RFC 3339 in UTC.
#[track_caller]
pub(crate) fn whole(value: &Value, object: &str) {
    assert_eq!(value["object"], json!(object), "{value}");
    for field in ["id", "object", "created_at", "updated_at"].iter().chain(fields(object)) {
        assert!(value.get(field).is_some(), "{field} is missing in {value}");
    }
    let id = value["id"].as_str().unwrap();
    let digits: Vec<usize> = id.split('-').map(str::len).collect();
    assert_eq!((digits, &id[14..15]), (vec![8, 4, 4, 4, 12], "7"), "{id} is no UUIDv7");
    assert!(id.bytes().all(|byte| matches!(byte, b'-' | b'0'..=b'9' | b'a'..=b'f')), "{id}");
    for time in ["created_at", "updated_at"] {
        let text = value[time].as_str().unwrap();
        let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{text}");
    }
}

/// The body without its request id, to compare two refusals byte for byte.
pub(crate) fn without_request_id(reply: &Reply) -> String {
    let id = reply.header("request-id").expect("every answer has one");
    reply.text().replace(id, "")
}

/// GET returns the whole object, with nulls for what is not set.
#[track_caller]
pub(crate) fn is_returned_whole(plural: &str) {
    let organization = Server::shared().organization();
    let (_, id) = organization.one_of_each().into_iter().find(|(known, _)| *known == plural).unwrap();
    let object = organization.get(&format!("/v1/{plural}/{id}")).ok();
    whole(&object, plural.trim_end_matches('s'));
    assert_eq!(object["id"], id.as_str());
}

/// Unknown, malformed and foreign ids get one and the same 404.
#[track_caller]
pub(crate) fn ids_that_lead_nowhere_look_alike(method: &str, plural: &str) {
    let [own, other] = [Server::shared().organization(), Server::shared().organization()];
    let find = |organization: &Organization<'_>| {
        let all = organization.one_of_each();
        all.into_iter().find(|(known, _)| *known == plural).map(|(_, id)| id).unwrap()
    };
    let (mine, foreign) = (find(&own), find(&other));
    let body = if method == "GET" { Value::Null } else { json!({}) };
    let send = |id: &str| own.call(method, &format!("/v1/{plural}/{id}"), &body);
    assert_eq!(send(&mine).status, 200);
    let expected = send(UNKNOWN_ID);
    expected.error(404, "invalid_request_error", "resource_missing");
    let long = "a".repeat(2000);
    let (upper, bare, urn) = (mine.to_uppercase(), mine.replace('-', ""), format!("urn:uuid:{mine}"));
    for id in [&foreign, "x", "0", "null", "%00", "%20", "..%2f", "%ff", "é", &long, &upper, &bare, &urn] {
        let reply = send(id);
        assert_eq!((reply.status, without_request_id(&reply)), (404, without_request_id(&expected)), "{id}");
        assert_eq!(reply.headers.len(), expected.headers.len(), "{id}");
    }
}

/// PATCH with `{}` or nothing at all: 200, the same bytes, the same ETag.
#[track_caller]
pub(crate) fn an_empty_patch_changes_nothing(plural: &str) {
    let organization = Server::shared().organization();
    let (_, id) = organization.one_of_each().into_iter().find(|(known, _)| *known == plural).unwrap();
    let path = format!("/v1/{plural}/{id}");
    let before = organization.get(&path);
    for body in ["{}", "", " { } "] {
        let reply = organization.raw("PATCH", &path, &[], body.as_bytes());
        assert_eq!((reply.status, &reply.body), (200, &before.body), "{body:?}");
        assert_eq!(reply.header("etag"), before.header("etag"));
    }
    assert_eq!(organization.get(&path).header("etag"), before.header("etag"));
}

/// GET of one object and writes take no query parameters.
#[track_caller]
pub(crate) fn query_parameters_are_refused(method: &str, plural: &str) {
    let organization = Server::shared().organization();
    let path = match organization.one_of_each().into_iter().find(|(known, _)| *known == plural) {
        Some((_, id)) if method != "POST" => format!("/v1/{plural}/{id}"),
        _ => format!("/v1/{plural}"),
    };
    let body = if method == "GET" { Value::Null } else { json!({}) };
    let reply = organization.call(method, &format!("{path}?expand=customer&limit=1"), &body);
    let unknown = |name: &str| (name.to_owned(), "parameter_unknown".to_owned());
    assert_eq!(reply.bad_fields(), [unknown("expand"), unknown("limit")]);
}

/// All objects of a list, page after page; `has_more` and `next_cursor` must agree on every page.
#[track_caller]
pub(crate) fn walk(organization: &Organization<'_>, plural: &str, query: &str, limit: usize) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = page(organization, &format!("/v1/{plural}?limit={limit}{query}{cursor}"));
        let data = page["data"].as_array().unwrap();
        assert!(data.len() <= limit);
        all.extend(data.iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => {
                assert_eq!((data.len(), data[limit - 1]["id"].as_str()), (limit, Some(next)));
                assert!(!cursor.ends_with(next), "the walk stands still at {next}");
                cursor = format!("&starting_after={next}");
            }
            None => return all,
        }
    }
}

/// One page; its envelope is checked.
#[track_caller]
pub(crate) fn page(organization: &Organization<'_>, path: &str) -> Value {
    let page = organization.get(path).ok();
    let mut names: Vec<&String> = page.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["data", "has_more", "next_cursor", "object"], "{path}");
    assert_eq!(page["object"], json!("list"));
    assert_eq!(page["has_more"], json!(page["next_cursor"].is_string()), "{path}");
    assert!(page["next_cursor"].is_string() || page["next_cursor"].is_null(), "{path}");
    page
}

/// The ids of some objects, in order.
pub(crate) fn ids(objects: &[Value]) -> Vec<String> {
    objects.iter().map(|object| object["id"].as_str().unwrap().to_owned()).collect()
}

impl Organization<'_> {
    /// One more object of any list: the required fields, and these.
    #[track_caller]
    pub(crate) fn one_more(&self, plural: &str, mut fields: Value) -> String {
        let mut default = |name: &str, value: Value| {
            if fields.get(name).is_none() {
                fields[name] = value;
            }
        };
        match plural {
            "vehicles" => default("name", json!("Test vehicle")),
            "customers" => default("full_name", json!("Test Customer")),
            "rentals" => {
                default("vehicle_id", json!(self.vehicle(json!({}))));
                default("customer_id", json!(self.customer(json!({}))));
            }
            "invoices" => {
                default("customer_id", json!(self.customer(json!({}))));
                default("lines", json!([{"description": "Days", "amount": 10}]));
            }
            "credit_notes" => {
                let line = json!([{"description": "Days", "amount": 10}]);
                default("invoice_id", json!(self.one_more("invoices", json!({"lines": line}))));
            }
            "tolls" => {
                default("amount", json!(6.94));
                default("agency", json!("MTAB&T"));
            }
            _ => {
                default("summons_number", json!("4631234567"));
                default("amount_due", json!(50));
            }
        }
        match plural {
            "vehicles" | "customers" | "rentals" => self.post(&format!("/v1/{plural}"), &fields).id(),
            _ => self.recorded(plural, &fields),
        }
    }
}
