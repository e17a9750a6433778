//! GET /v1/rentals

use super::STATUSES;
use crate::support::{Server, rules};
use serde_json::json;

#[test]
fn the_list_holds_whole_rentals_as_a_get_gives_them_newest_first() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"daily_rate": 10}));
    let mut made: Vec<String> = (0..4).map(|_| organization.rental(&vehicle, json!({}))).collect();
    made.reverse();
    let page = rules::page(&organization, "/v1/rentals");
    let data = page["data"].as_array().unwrap();
    assert_eq!(rules::ids(data), made);
    for rental in data {
        rules::whole(rental, "rental");
        assert_eq!(&organization.get(&format!("/v1/rentals/{}", rental["id"].as_str().unwrap())).ok(), rental);
    }
}

#[test]
fn status_and_customer_select_alone_and_together() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let customers = [(); 2].map(|()| organization.customer(json!({})));
    let mut made = Vec::new();
    for status in STATUSES {
        for customer in &customers {
            let body = json!({"vehicle_id": vehicle, "customer_id": customer, "status": status});
            made.insert(0, (status, customer, organization.post("/v1/rentals", &body).id()));
        }
    }
    let found = |query: &str| rules::ids(&rules::walk(&organization, "rentals", query, 3));
    let expected = |keep: &dyn Fn(&str, &String) -> bool| -> Vec<String> {
        made.iter().filter(|(status, customer, _)| keep(status, customer)).map(|(.., id)| id.clone()).collect()
    };
    for wanted in STATUSES {
        assert_eq!(found(&format!("&status={wanted}")), expected(&|status, _| status == wanted));
        for owner in &customers {
            let both = expected(&|status, customer| status == wanted && customer == owner);
            assert_eq!(both.len(), 1);
            assert_eq!(found(&format!("&status={wanted}&customer={owner}")), both);
            assert_eq!(found(&format!("&customer={owner}&status={wanted}")), both, "in any order");
        }
    }
    for owner in &customers {
        assert_eq!(found(&format!("&customer={owner}")), expected(&|_, customer| customer == owner));
    }
}

#[test]
fn a_status_that_there_is_not_is_refused_with_a_suggestion() {
    let organization = Server::shared().organization();
    for bad in ["new", "NEWS", "", "NEW,ACTIVE", "%4eew"] {
        let reply = organization.get(&format!("/v1/rentals?status={bad}"));
        assert_eq!(reply.bad_fields(), [("status".to_owned(), "parameter_invalid".to_owned())], "{bad}");
    }
    let reply = organization.get("/v1/rentals?status=APROVED");
    assert!(reply.text().contains("did you mean `APPROVED`"), "{}", reply.text());
}

#[test]
fn a_customer_that_there_is_not_has_no_rentals() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    organization.rental(&organization.vehicle(json!({})), json!({}));
    let foreign = other.customer(json!({}));
    for nobody in [rules::UNKNOWN_ID, &foreign, "cus_123", "x"] {
        assert_eq!(rules::walk(&organization, "rentals", &format!("&customer={nobody}"), 10).len(), 0, "{nobody}");
    }
}

#[test]
fn a_rental_moves_between_the_filters_with_its_fields() {
    let organization = Server::shared().organization();
    let id = organization.rental(&organization.vehicle(json!({})), json!({}));
    let path = format!("/v1/rentals/{id}");
    let old = organization.get(&path).ok()["customer_id"].as_str().unwrap().to_owned();
    let new = organization.customer(json!({}));
    organization.patch(&path, &json!({"status": "APPROVED", "customer_id": new})).ok();
    let count = |query: &str| rules::walk(&organization, "rentals", query, 10).len();
    for (query, expected) in [
        ("&status=NEW".to_owned(), 0),
        ("&status=APPROVED".to_owned(), 1),
        (format!("&customer={old}"), 0),
        (format!("&customer={new}"), 1),
        (format!("&customer={new}&status=APPROVED"), 1),
        (format!("&customer={old}&status=APPROVED"), 0),
        (format!("&customer={new}&status=NEW"), 0),
    ] {
        assert_eq!(count(&query), expected, "{query}");
    }
}
