//! ETags and preconditions: no update is lost (decisions, ETag).

use crate::support::{Organization, Server};
use serde_json::{Value, json};

/// The path of one object of each resource that PATCH changes, with a change.
#[track_caller]
fn changeable(organization: &Organization<'_>) -> Vec<(String, Value)> {
    let customer = organization.customer(json!({}));
    let change = |plural: &str| match plural {
        "vehicles" => Some(json!({"color": "Red"})),
        "customers" => Some(json!({"notes": "Changed"})),
        "rentals" => Some(json!({"booking_id": "B-1"})),
        "tolls" | "violations" => Some(json!({"customer_id": customer})),
        _ => None,
    };
    let all = organization.one_of_each();
    all.into_iter().filter_map(|(plural, id)| Some((format!("/v1/{plural}/{id}"), change(plural)?))).collect()
}

#[test]
fn every_single_object_reply_has_an_etag_and_lists_have_none() {
    let organization = Server::shared().organization();
    for (plural, id) in organization.one_of_each() {
        let reply = organization.get(&format!("/v1/{plural}/{id}"));
        let tag = reply.header("etag").unwrap_or_else(|| panic!("no ETag of {plural}"));
        assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "{tag} is no strong entity tag");
        assert_eq!(organization.get(&format!("/v1/{plural}")).header("etag"), None, "{plural}");
    }
    assert!(organization.post("/v1/leads", &json!({})).header("etag").is_some());
}

#[test]
fn an_etag_is_the_same_from_post_get_and_patch_until_the_object_changes() {
    let organization = Server::shared().organization();
    let tag = |reply: &crate::support::Reply| reply.header("etag").unwrap().to_owned();
    let made = organization.post("/v1/vehicles", &json!({"name": "White Tesla"}));
    let path = format!("/v1/vehicles/{}", made.id());
    let first = tag(&made);
    assert_eq!([tag(&organization.get(&path)), tag(&organization.get(&path))], [first.clone(), first.clone()]);
    assert_eq!(tag(&organization.patch(&path, &json!({}))), first);
    assert_eq!(tag(&organization.patch(&path, &json!({"name": "White Tesla"}))), first, "the same value is no change");
    let changed = tag(&organization.patch(&path, &json!({"name": "Black Tesla"})));
    assert_ne!(changed, first);
    assert_eq!(tag(&organization.get(&path)), changed);
    let back = tag(&organization.patch(&path, &json!({"name": "White Tesla"})));
    assert!(back != first && back != changed, "a tag is never used again");
}

#[test]
fn an_operators_change_changes_the_etag() {
    let organization = Server::shared().organization();
    let path = format!("/v1/invoices/{}", organization.one_more("invoices", json!({})));
    let before = organization.get(&path);
    let id = before.id();
    organization.server.admin("POST", &format!("/admin/v1/invoices/{id}/pay"), &Value::Null).ok();
    assert_ne!(organization.get(&path).header("etag"), before.header("etag"));
}

#[test]
fn if_none_match_with_the_present_tag_gives_304_without_a_body() {
    let organization = Server::shared().organization();
    for (plural, id) in organization.one_of_each() {
        let path = format!("/v1/{plural}/{id}");
        let tag = organization.get(&path).header("etag").unwrap().to_owned();
        for sent in
            [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), format!("{tag},\"other\""), "*".into()]
        {
            let reply = organization.call_with("GET", &path, &[("If-None-Match", &sent)], &Value::Null);
            assert_eq!((reply.status, reply.text()), (304, String::new()), "{plural} {sent}");
            assert_eq!(reply.header("etag"), Some(tag.as_str()));
            assert!(reply.header("request-id").is_some());
        }
        for sent in ["\"other\"", "W/\"other\"", "", "x", &tag.replace('"', ""), "\"*\""] {
            let reply = organization.call_with("GET", &path, &[("If-None-Match", sent)], &Value::Null);
            assert_eq!(reply.status, 200, "{plural} {sent}");
        }
    }
}

#[test]
fn if_none_match_after_a_change_gives_the_new_object() {
    let organization = Server::shared().organization();
    for (path, change) in changeable(&organization) {
        let old = organization.get(&path).header("etag").unwrap().to_owned();
        let new = organization.patch(&path, &change);
        let reply = organization.call_with("GET", &path, &[("If-None-Match", &old)], &Value::Null);
        assert_eq!((reply.status, &reply.body), (200, &new.body), "{path}");
    }
}

#[test]
fn if_match_with_the_present_tag_lets_a_patch_through() {
    let organization = Server::shared().organization();
    for (path, change) in changeable(&organization) {
        let tag = organization.get(&path).header("etag").unwrap().to_owned();
        let reply = organization.call_with("PATCH", &path, &[("If-Match", &format!("\"other\", {tag}"))], &change);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        organization.call_with("PATCH", &path, &[("If-Match", "*")], &change).ok();
        organization.call_with("PATCH", &path, &[("If-Match", reply.header("etag").unwrap())], &json!({})).ok();
    }
}

#[test]
fn if_match_with_a_stale_tag_gives_412_and_changes_nothing() {
    let organization = Server::shared().organization();
    for (path, change) in changeable(&organization) {
        let stale = organization.get(&path).header("etag").unwrap().to_owned();
        organization.patch(&path, &change).ok();
        let before = organization.get(&path);
        for sent in [stale.as_str(), "\"other\"", "\"\"", "x", ""] {
            for body in [&change, &json!({})] {
                let reply = organization.call_with("PATCH", &path, &[("If-Match", sent)], body);
                reply.error(412, "invalid_request_error", "precondition_failed");
                let error = reply.json();
                let message = error["error"]["message"].as_str().unwrap();
                assert!(message.contains("lacks the quotes of an `ETag`, such as `\"1\"`"), "{message}");
            }
        }
        let after = organization.get(&path);
        assert_eq!((after.header("etag"), &after.body), (before.header("etag"), &before.body));
    }
}

#[test]
fn the_body_and_the_id_are_judged_before_the_precondition() {
    let organization = Server::shared().organization();
    let path = format!("/v1/vehicles/{}", organization.vehicle(json!({})));
    let stale = [("If-Match", "\"other\"")];
    organization.call_with("PATCH", &path, &stale, &json!({"year": 1})).error(
        400,
        "invalid_request_error",
        "parameter_invalid",
    );
    let nowhere = format!("/v1/vehicles/{}", crate::support::rules::UNKNOWN_ID);
    organization.call_with("PATCH", &nowhere, &stale, &json!({})).error(
        404,
        "invalid_request_error",
        "resource_missing",
    );
}

#[test]
fn of_patches_that_race_with_one_if_match_exactly_one_wins() {
    let organization = Server::shared().organization();
    for round in 0..15 {
        for (path, _) in changeable(&organization).into_iter().take(3) {
            let tag = organization.get(&path).header("etag").unwrap().to_owned();
            let field = if path.contains("vehicles") {
                "color"
            } else if path.contains("customers") {
                "notes"
            } else {
                "booking_id"
            };
            let send = |racer: usize| {
                let body = json!({field: format!("{round}-{racer}")});
                organization.call_with("PATCH", &path, &[("If-Match", &tag)], &body)
            };
            let replies: Vec<_> = std::thread::scope(|scope| {
                let racers: Vec<_> = (0..4).map(|racer| scope.spawn(move || send(racer))).collect();
                racers.into_iter().map(|racer| racer.join().unwrap()).collect()
            });
            let (won, lost): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
            assert_eq!(won.len(), 1, "{path}: {:?}", replies.iter().map(|reply| reply.status).collect::<Vec<_>>());
            lost.iter().for_each(|reply| drop(reply.error(412, "invalid_request_error", "precondition_failed")));
            assert_eq!(organization.get(&path).body, won[0].body);
        }
    }
}

#[test]
fn of_patches_that_race_without_a_precondition_none_is_lost() {
    let organization = Server::shared().organization();
    let path = format!("/v1/vehicles/{}", organization.vehicle(json!({})));
    let fields = ["make", "model", "color", "plate", "transponder_number", "turo_listing_id"];
    std::thread::scope(|scope| {
        for field in fields {
            let (organization, path) = (&organization, &path);
            scope.spawn(move || organization.patch(path, &json!({field: field})).ok());
        }
    });
    let vehicle = organization.get(&path).ok();
    fields.iter().for_each(|field| assert_eq!(vehicle[field], json!(field)));
}
