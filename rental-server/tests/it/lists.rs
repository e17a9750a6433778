//! What every list promises: the envelope, the parameters, and a walk that shows everything once (decisions, Lists).

mod damaged;
mod exact;
mod model;
mod sync;
mod walks;

use crate::support::{Organization, Server, rules};
use serde_json::{Value, json};

const LISTS: [&str; 6] = ["vehicles", "customers", "rentals", "invoices", "tolls", "violations"];

/// `count` objects, the newest first.
#[track_caller]
fn filled(organization: &Organization<'_>, plural: &str, count: usize) -> Vec<String> {
    let mut fields = json!({});
    if plural == "rentals" {
        fields =
            json!({"vehicle_id": organization.vehicle(json!({})), "customer_id": organization.customer(json!({}))});
    } else if plural == "invoices" {
        fields = json!({"customer_id": organization.customer(json!({}))});
    }
    let mut made: Vec<String> = (0..count).map(|_| organization.one_more(plural, fields.clone())).collect();
    made.reverse();
    made
}

#[test]
fn an_empty_list_is_an_envelope_without_objects() {
    let organization = Server::shared().organization();
    for plural in LISTS {
        let page = rules::page(&organization, &format!("/v1/{plural}"));
        assert_eq!(page, json!({"object": "list", "has_more": false, "next_cursor": null, "data": []}), "{plural}");
    }
}

#[test]
fn a_page_holds_20_objects_unless_told_otherwise_and_at_most_100() {
    let organization = Server::shared().organization();
    for plural in LISTS {
        let made = filled(&organization, plural, 102);
        let path = format!("/v1/{plural}");
        for (query, length) in
            [("", 20), ("?", 20), ("?limit=1", 1), ("?limit=99", 99), ("?limit=100", 100), ("?limit=007", 7)]
        {
            let page = rules::page(&organization, &format!("{path}{query}"));
            assert_eq!(rules::ids(page["data"].as_array().unwrap()), made[..length], "{plural}{query}");
            assert_eq!(page["next_cursor"], json!(made[length - 1]), "{plural}{query}");
        }
    }
}

#[test]
fn a_limit_outside_1_to_100_is_refused_on_every_list() {
    let organization = Server::shared().organization();
    for plural in LISTS {
        for bad in
            ["0", "101", "-1", "%2B5", "1.5", "1e1", "ten", "", "null", "99999999999999999999999", "%31%30%31", "5%20"]
        {
            let reply = organization.get(&format!("/v1/{plural}?limit={bad}"));
            assert_eq!(reply.bad_fields(), [("limit".to_owned(), "parameter_invalid".to_owned())], "{plural} {bad}");
        }
    }
}

#[test]
fn has_more_is_true_only_while_more_follow() {
    let organization = Server::shared().organization();
    for plural in LISTS {
        let made = filled(&organization, plural, 4);
        for (limit, more) in [(3, true), (4, false), (5, false)] {
            let page = rules::page(&organization, &format!("/v1/{plural}?limit={limit}"));
            assert_eq!(page["has_more"], json!(more), "{plural} {limit}");
        }
        let last = rules::page(&organization, &format!("/v1/{plural}?limit=2&starting_after={}", made[1]));
        assert_eq!(
            (rules::ids(last["data"].as_array().unwrap()), &last["has_more"]),
            (made[2..].to_vec(), &json!(false))
        );
        let beyond = rules::page(&organization, &format!("/v1/{plural}?starting_after={}", made[3]));
        assert_eq!(beyond, json!({"object": "list", "has_more": false, "next_cursor": null, "data": []}));
    }
}

#[test]
fn a_cursor_is_a_position_and_need_not_be_an_object() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    for plural in LISTS {
        let mut made = filled(&organization, plural, 3);
        let foreign = other.one_more(plural, json!({}));
        made.insert(0, organization.one_more(plural, json!({})));
        for cursor in [
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "00000000-0000-0000-0000-000000000000",
            "0190d0f2-7c3a-4cc0-8000-000000000001",
            &foreign,
            &made[1],
        ] {
            let page = rules::page(&organization, &format!("/v1/{plural}?starting_after={cursor}"));
            let expected: Vec<&String> = made.iter().filter(|id| id.as_str() < cursor).collect();
            assert_eq!(rules::ids(page["data"].as_array().unwrap()).iter().collect::<Vec<_>>(), expected, "{cursor}");
        }
    }
}

#[test]
fn a_malformed_cursor_is_refused_on_every_list() {
    let organization = Server::shared().organization();
    let id = organization.vehicle(json!({}));
    for plural in LISTS {
        for bad in ["", "x", "0", "null", &id.to_uppercase(), &id.replace('-', ""), &id[1..], &format!("{id}0"), "%00"]
        {
            let reply = organization.get(&format!("/v1/{plural}?starting_after={bad}"));
            assert_eq!(reply.bad_fields(), [("starting_after".to_owned(), "parameter_invalid".to_owned())], "{bad}");
        }
    }
}

#[test]
fn created_is_a_half_open_range_on_every_list() {
    let organization = Server::shared().organization();
    for plural in LISTS {
        filled(&organization, plural, 5);
        let all = rules::walk(&organization, plural, "", 100);
        let time = |at: usize| all[at]["created_at"].as_str().unwrap().to_owned();
        let expect = |query: String, keep: &dyn Fn(&str) -> bool| {
            let kept: Vec<Value> =
                all.iter().filter(|one| keep(one["created_at"].as_str().unwrap())).cloned().collect();
            assert_eq!(rules::walk(&organization, plural, &query, 2), kept, "{plural} {query}");
        };
        for at in 0..5 {
            let bound = time(at);
            expect(format!("&created[gte]={bound}"), &|created| created >= bound.as_str());
            expect(format!("&created[lt]={bound}"), &|created| created < bound.as_str());
            let (from, to) = (time(4), bound);
            expect(format!("&created%5Bgte%5D={from}&created%5Blt%5D={to}"), &|created| {
                created >= from.as_str() && created < to.as_str()
            });
        }
        expect("&created[gte]=2100-01-01T00:00:00Z".into(), &|_| false);
        expect("&created[lt]=9999-12-31T23:59:59.999Z".into(), &|_| true);
        expect("&created[gte]=1970-01-01T01:00:00%2B01:00".into(), &|_| true);
        expect("&created[gte]=9999-01-01T00:00:00Z&created[lt]=1970-01-01T00:00:00Z".into(), &|_| false);
    }
}

#[test]
fn a_created_bound_may_be_finer_than_a_millisecond() {
    let organization = Server::shared().organization();
    let id = organization.vehicle(json!({}));
    let created = organization.get(&format!("/v1/vehicles/{id}")).ok()["created_at"].as_str().unwrap().to_owned();
    let just_after = created.replace('Z', "9Z");
    assert_eq!(rules::walk(&organization, "vehicles", &format!("&created[gte]={just_after}"), 10).len(), 0);
    assert_eq!(rules::walk(&organization, "vehicles", &format!("&created[lt]={just_after}"), 10).len(), 1);
}

#[test]
fn a_created_bound_that_is_no_time_is_refused() {
    let organization = Server::shared().organization();
    for name in ["created[gte]", "created[lt]"] {
        for bad in [
            "",
            "now",
            "2026-06-01",
            "1780000000",
            "2026-13-01T00:00:00Z",
            "2026-06-01T00:00:00",
            "2026-06-01T25:00:00Z",
        ] {
            let reply = organization.get(&format!("/v1/tolls?{name}={bad}"));
            assert_eq!(reply.bad_fields(), [(name.to_owned(), "parameter_invalid".to_owned())], "{bad}");
        }
    }
}

#[test]
fn a_time_without_a_zone_is_refused_with_the_same_time_in_utc() {
    let organization = Server::shared().organization();
    let server = Server::shared();
    let time = "2026-01-01T10:00:00";
    let endpoint = json!({"organization_id": organization.id, "url": "https://hooks.example.com/a"});
    let endpoint = server.admin("POST", "/admin/v1/webhook_endpoints", &endpoint).id();
    let admin = |path: &str, field: &str| server.admin("POST", path, &json!({field: time}));
    for (field, reply) in [
        ("created[gte]", organization.get(&format!("/v1/tolls?created[gte]={time}"))),
        ("updated[lt]", organization.get(&format!("/v1/tolls?updated[lt]={time}"))),
        ("disabled_since", admin("/admin/v1/webhook_endpoints/enable", "disabled_since")),
        ("since", admin(&format!("/admin/v1/webhook_endpoints/{endpoint}/recover"), "since")),
        ("paid_at", admin("/admin/v1/invoices/1/pay", "paid_at")),
        ("refunded_at", admin("/admin/v1/credit_notes/1/refund", "refunded_at")),
    ] {
        assert_eq!(reply.bad_fields(), [(field.to_owned(), "parameter_invalid".to_owned())], "{}", reply.text());
        let said = reply.json()["error"]["message"].as_str().expect("text").to_owned();
        assert!(said.contains("has no time zone; write 2026-01-01T10:00:00Z"), "{said}");
    }
}

#[test]
fn repeated_and_unknown_parameters_are_refused_by_name_on_every_list() {
    let organization = Server::shared().organization();
    for plural in LISTS {
        for (query, param, code) in [
            ("limit=5&limit=5", "limit", "parameter_duplicate"),
            ("limit=5&%6cimit=5", "limit", "parameter_duplicate"),
            ("offset=5", "offset", "parameter_unknown"),
            ("ending_before=x", "ending_before", "parameter_unknown"),
            ("Limit=5", "Limit", "parameter_unknown"),
            ("limit%00=5", "limit\0", "parameter_unknown"),
            ("organization_id=x", "organization_id", "parameter_unknown"),
            ("created=2026-06-01T00:00:00Z", "created", "parameter_unknown"),
            ("created[gt]=2026-06-01T00:00:00Z", "created[gt]", "parameter_unknown"),
            ("%e9=1", "%e9", "parameter_invalid"),
            ("limit=%zz", "limit", "parameter_invalid"),
            ("limit=%1", "limit", "parameter_invalid"),
        ] {
            let reply = organization.get(&format!("/v1/{plural}?{query}"));
            assert_eq!(reply.bad_fields(), [(param.to_owned(), code.to_owned())], "{plural} {query}");
        }
    }
}

#[test]
fn a_filter_of_another_list_is_an_unknown_parameter() {
    let organization = Server::shared().organization();
    for (plural, known) in [
        ("vehicles", &["status"][..]),
        ("customers", &["email"][..]),
        ("rentals", &["status", "customer", "vehicle"][..]),
        ("invoices", &["status", "customer"][..]),
        ("tolls", &["vehicle", "customer"][..]),
        ("violations", &["vehicle", "customer"][..]),
    ] {
        for filter in ["email", "status", "customer", "vehicle"] {
            let reply = organization.get(&format!("/v1/{plural}?{filter}=open"));
            let unknown = reply.status == 400 && reply.bad_fields()[0].1 == "parameter_unknown";
            assert_eq!(unknown, !known.contains(&filter), "{plural} {filter}: {}", reply.text());
        }
    }
}

#[test]
fn a_misspelt_parameter_gets_a_suggestion() {
    let organization = Server::shared().organization();
    for (path, hint) in [
        ("/v1/vehicles?limt=5", "`limit`"),
        ("/v1/rentals?custmer=x", "`customer`"),
        ("/v1/rentals?stauts=NEW", "`status`"),
        ("/v1/tolls?vehicel=x", "`vehicle`"),
        ("/v1/tolls?vehicle_id=x", "`vehicle`"),
        ("/v1/rentals?customer_id=x", "`customer`"),
        ("/v1/customers?starting_afer=x", "`starting_after`"),
        ("/v1/vehicles?page=2", "`starting_after`"),
        ("/v1/rentals?per_page=50", "`limit`"),
        ("/v1/vehicles?license_plate=x", "`plate`"),
        ("/v1/tolls?unbilled=true", "`billed=false`"),
    ] {
        let text = organization.get(path).text();
        assert!(text.contains(&format!("did you mean {hint}?")), "{path}: {text}");
    }
}

#[test]
fn a_parameter_like_no_other_gets_those_of_the_list() {
    let organization = Server::shared().organization();
    for name in ["q", "sort", "name"] {
        let text = organization.get(&format!("/v1/vehicles?{name}=x")).text();
        let taken =
            "is not a parameter of this list; it takes `limit`, `starting_after`, `created[gte]`, `created[lt]`, ";
        assert!(text.contains(taken) && text.contains("`plate`") && text.contains("`updated[lt]`"), "{name}: {text}");
    }
}

#[test]
fn a_status_is_not_suggested_for_its_opposite() {
    let text = Server::shared().organization().get("/v1/invoices?status=unpaid").text();
    assert!(text.contains("must be one of open, paid, void.") && !text.contains("did you mean"), "{text}");
}

#[test]
fn every_bad_parameter_is_named_at_once() {
    let organization = Server::shared().organization();
    let reply =
        organization.get("/v1/rentals?limit=0&status=x&starting_after=y&nonsense=1&created[gte]=z&created[lt]=");
    let mut found: Vec<String> = reply.bad_fields().into_iter().map(|(param, _)| param).collect();
    found.sort();
    assert_eq!(found, ["created[gte]", "created[lt]", "limit", "nonsense", "starting_after", "status"]);
}

#[test]
fn names_and_values_may_be_percent_encoded() {
    let organization = Server::shared().organization();
    let id = organization.customer(json!({"email": "a+b@example.com"}));
    for query in ["email=a%2Bb%40example.com", "%65mail=a%2bb@example.com", "email=a+b@example.com&limit=%31%30"] {
        let page = rules::page(&organization, &format!("/v1/customers?{query}"));
        assert_eq!(rules::ids(page["data"].as_array().unwrap()), std::slice::from_ref(&id), "{query}");
    }
}
