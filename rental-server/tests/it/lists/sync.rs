//! Sync lists: every list by `updated_at`, with changes between the pages (decisions, Lists).

use super::LISTS;
use crate::support::{Organization, Server, rules};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SINCE: &str = "updated[gte]=2020-01-01T00:00:00Z";

/// Walks to the end; `between` runs after each page but the last. What was seen of each object last.
#[track_caller]
fn walk(
    organization: &Organization<'_>,
    plural: &str,
    limit: usize,
    mut between: impl FnMut(usize),
) -> BTreeMap<String, Value> {
    let (mut seen, mut cursor, mut last) = (BTreeMap::new(), String::new(), (String::new(), String::new()));
    for turn in 0.. {
        let page = rules::page(organization, &format!("/v1/{plural}?{SINCE}&limit={limit}{cursor}"));
        for object in page["data"].as_array().unwrap() {
            let text = |name: &str| object[name].as_str().unwrap().to_owned();
            let place = (text("updated_at"), text("id"));
            assert!(place > last, "{plural}: rising by time and id");
            seen.insert(place.1.clone(), object.clone());
            last = place;
        }
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&starting_after={next}");
        between(turn);
    }
    seen
}

/// Changes an object in the way that its resource allows.
#[track_caller]
fn change(organization: &Organization<'_>, plural: &str, id: &str, turn: usize) {
    let text = format!("changed {turn}");
    let body = match plural {
        "vehicles" => json!({"color": text}),
        "customers" => json!({"notes": text}),
        "rentals" => json!({"booking_id": text}),
        "invoices" => {
            let path = format!("/admin/v1/invoices/{id}/pay");
            organization.server.admin("POST", &path, &Value::Null).ok();
            return;
        }
        _ => json!({"customer_id": organization.customer(json!({}))}),
    };
    organization.patch(&format!("/v1/{plural}/{id}"), &body).ok();
}

#[test]
fn every_list_shows_what_changed_during_the_walk_again() {
    let organization = Server::shared().organization();
    for plural in LISTS {
        let made: Vec<String> = (0..12).map(|_| organization.one_more(plural, json!({}))).collect();
        let seen = walk(&organization, plural, 3, |turn| {
            // An object that was shown, and on later turns objects that were not.
            if turn < 4 {
                change(&organization, plural, &made[turn * 3], turn);
            }
        });
        for id in &made {
            assert_eq!(seen[id], organization.get(&format!("/v1/{plural}/{id}")).ok(), "{plural}");
        }
    }
}

#[test]
fn a_bound_is_exact_to_the_millisecond() {
    let organization = Server::shared().organization();
    for plural in LISTS {
        let id = organization.one_more(plural, json!({}));
        organization.one_more(plural, json!({}));
        change(&organization, plural, &id, 1);
        let object = organization.get(&format!("/v1/{plural}/{id}")).ok();
        let updated = object["updated_at"].as_str().unwrap();
        let found = |query: String| {
            let page = rules::page(&organization, &format!("/v1/{plural}?{query}"));
            rules::ids(page["data"].as_array().unwrap())
        };
        assert_eq!(found(format!("updated[gte]={updated}")), [id.as_str()], "{plural}");
        assert!(!found(format!("updated[lt]={updated}")).contains(&id), "{plural}");
        assert_eq!(found(format!("updated[gte]={updated}&updated[lt]={updated}")), [""; 0], "{plural}");
    }
}

#[test]
fn a_sync_list_takes_no_other_filter_and_only_its_own_cursors() {
    let organization = Server::shared().organization();
    let id = organization.vehicle(json!({}));
    organization.vehicle(json!({}));
    let cursor = |plural: &str| {
        let page = rules::page(&organization, &format!("/v1/{plural}?{SINCE}&limit=1"));
        page["next_cursor"].as_str().unwrap().to_owned()
    };
    let own = cursor("vehicles");
    organization.customer(json!({}));
    organization.customer(json!({}));
    let foreign = cursor("customers");
    let plain = |query: String| organization.get(&format!("/v1/vehicles?{query}"));
    for (reply, param, words) in [
        (plain(format!("{SINCE}&created[lt]=2030-01-01T00:00:00Z")), "updated[gte]", "or `updated` alone"),
        (plain(format!("{SINCE}&starting_after={id}")), "starting_after", "in order of creation"),
        (plain(format!("{SINCE}&starting_after={foreign}")), "starting_after", "the cursor of another list"),
        (plain(format!("starting_after={own}")), "starting_after", "send `updated` with it"),
        (
            organization.get(&format!("/v1/rentals?status=NEW&{SINCE}")),
            "updated[gte]",
            "`status` with `customer` with `vehicle`",
        ),
    ] {
        assert_eq!(reply.bad_fields(), [(param.to_owned(), "parameter_invalid".to_owned())]);
        assert!(reply.text().contains(words), "{}", reply.text());
    }
    plain(format!("{SINCE}&starting_after={own}")).ok();
}

#[test]
fn no_sync_list_shows_anything_of_another_organization() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    for plural in LISTS {
        other.one_more(plural, json!({}));
        let own = organization.one_more(plural, json!({}));
        let page = rules::page(&organization, &format!("/v1/{plural}?{SINCE}"));
        assert!(page["data"].as_array().unwrap().iter().any(|object| object["id"] == json!(own)));
        let foreign = other.get(&format!("/v1/{plural}")).ok();
        for id in rules::ids(foreign["data"].as_array().unwrap()) {
            assert!(!page.to_string().contains(&id), "{plural}");
        }
    }
}
