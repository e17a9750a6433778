//! GET /v1/availability

use crate::support::{Organization, Server, rules};
use serde_json::{Value, json};

type Nights<'a> = (&'a str, &'a str);

#[track_caller]
fn book(organization: &Organization<'_>, vehicle: &str, (start, end): Nights<'_>, status: &str) -> String {
    let customer = organization.customer(json!({}));
    let body = json!({
        "vehicle_id": vehicle, "customer_id": customer, "start_date": start, "end_date": end, "status": status,
    });
    organization.post("/v1/rentals", &body).id()
}

/// The ids of all pages.
#[track_caller]
fn free(organization: &Organization<'_>, (from, to): Nights<'_>, more: &str) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = rules::page(organization, &format!("/v1/availability?from={from}&to={to}{more}{cursor}"));
        found.extend(rules::ids(page["data"].as_array().unwrap()));
        let Some(next) = page["next_cursor"].as_str() else { return found };
        cursor = format!("&starting_after={next}");
    }
}

#[test]
fn a_vehicle_is_available_when_nothing_holds_it_on_any_of_the_nights() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    book(&organization, &vehicle, ("2090-03-10", "2090-03-15"), "APPROVED");
    let block = json!({"vehicle_id": vehicle, "start_date": "2090-04-01", "end_date": "2090-04-01"});
    organization.post("/v1/blocks", &block).ok();
    for (nights, is_free) in [
        (("2090-03-10", "2090-03-15"), false),
        (("2090-03-01", "2090-03-10"), true),
        (("2090-03-15", "2090-04-01"), true),
        (("2090-03-15", "2090-04-02"), false),
        (("2090-03-14", "2090-03-14"), false),
        (("2090-03-09", "2090-03-11"), false),
        (("2090-03-12", "2090-03-13"), false),
        (("2090-04-01", "2090-04-01"), false),
        (("2090-04-02", "2090-04-02"), true),
        (("2090-01-01", "2090-12-31"), false),
        (("2089-03-10", "2089-04-10"), true),
    ] {
        let expected = if is_free { vec![vehicle.clone()] } else { vec![] };
        assert_eq!(free(&organization, nights, ""), expected, "{nights:?}");
        assert_eq!(free(&organization, nights, &format!("&vehicle={vehicle}")), expected, "{nights:?} of one");
    }
}

#[test]
fn requests_completed_and_cancelled_rentals_hold_nothing() {
    let organization = Server::shared().organization();
    let nights = ("2090-03-10", "2090-03-15");
    for status in ["NEW", "COMPLETED", "CANCELLED"] {
        let vehicle = organization.vehicle(json!({}));
        book(&organization, &vehicle, nights, status);
        assert_eq!(free(&organization, nights, &format!("&vehicle={vehicle}")), [vehicle], "{status}");
    }
}

#[test]
fn a_vehicle_in_maintenance_or_out_of_service_is_not_available() {
    let organization = Server::shared().organization();
    let made = ["available", "rented", "maintenance", "unavailable"]
        .map(|status| organization.vehicle(json!({"status": status})));
    assert_eq!(free(&organization, ("2090-01-01", "2090-01-02"), ""), [made[1].clone(), made[0].clone()]);
}

/// An active rental that was to end in the past: the customer still has the vehicle, and nobody knows for how long.
#[test]
fn a_vehicle_that_is_out_beyond_its_planned_return_is_not_available() {
    let organization = Server::shared().organization();
    let nights = ("2090-01-01", "2090-01-02");
    let [overdue, dateless, planned] = [(); 3].map(|()| organization.vehicle(json!({})));
    let late = book(&organization, &overdue, ("2026-01-01", "2026-01-05"), "ACTIVE");
    organization.rental(&dateless, json!({"status": "ACTIVE"}));
    book(&organization, &planned, ("2026-01-01", "2089-12-31"), "ACTIVE");
    assert_eq!(free(&organization, nights, ""), std::slice::from_ref(&planned));
    organization.patch(&format!("/v1/rentals/{late}"), &json!({"status": "COMPLETED"})).ok();
    assert_eq!(free(&organization, nights, ""), [planned, overdue]);
}

/// Nobody recorded the return of an overdue rental, but the vehicle was handed over to the next customer since, and came back.
#[test]
fn a_later_recorded_pickup_shows_that_an_overdue_vehicle_came_back() {
    let organization = Server::shared().organization();
    let nights = ("2090-01-01", "2090-01-02");
    let vehicle = organization.vehicle(json!({}));
    book(&organization, &vehicle, ("2026-01-01", "2026-01-05"), "ACTIVE");
    let next = |status: &str, activated: &str| {
        organization.rental(&vehicle, json!({"status": status, "activated_at": activated}));
    };
    next("COMPLETED", "2025-12-01T12:00:00Z");
    assert_eq!(free(&organization, nights, ""), [""; 0], "a pickup before tells nothing");
    next("COMPLETED", "2026-02-01T12:00:00Z");
    assert_eq!(free(&organization, nights, ""), std::slice::from_ref(&vehicle));
    next("ACTIVE", "2026-03-01T12:00:00Z");
    assert_eq!(free(&organization, nights, ""), [""; 0]);
}

/// Nobody recorded a time, but the next rental is completed, so the vehicle came back before it.
#[test]
fn a_later_completed_rental_shows_that_an_overdue_vehicle_came_back() {
    let organization = Server::shared().organization();
    let nights = ("2090-01-01", "2090-01-02");
    for activated in [json!(null), json!("2026-01-01T12:00:00Z")] {
        let vehicle = organization.vehicle(json!({}));
        let dates = json!({"start_date": "2026-01-01", "end_date": "2026-01-05"});
        let rental = organization.rental(&vehicle, json!({"status": "ACTIVE", "activated_at": activated}));
        organization.patch(&format!("/v1/rentals/{rental}"), &dates).ok();
        let is_free = || free(&organization, nights, "").contains(&vehicle);
        book(&organization, &vehicle, ("2025-12-01", "2025-12-03"), "COMPLETED");
        assert!(!is_free(), "a rental before tells nothing");
        book(&organization, &vehicle, ("2026-02-01", "2026-02-03"), "COMPLETED");
        assert!(is_free(), "{activated}");
    }
}

/// The customer took the vehicle before the first planned day, so it is not here until the planned return.
#[test]
fn a_vehicle_that_was_handed_over_early_is_not_available_before_its_first_planned_day() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let rental = book(&organization, &vehicle, ("2090-03-10", "2090-03-15"), "APPROVED");
    let before = ("2090-03-01", "2090-03-05");
    assert_eq!(free(&organization, before, ""), std::slice::from_ref(&vehicle));
    let path = format!("/v1/rentals/{rental}");
    organization.patch(&path, &json!({"status": "ACTIVE"})).ok();
    assert_eq!(free(&organization, before, ""), [""; 0]);
    assert_eq!(free(&organization, ("2090-03-15", "2090-03-16"), ""), std::slice::from_ref(&vehicle));
    assert_eq!(free(&organization, ("2020-03-01", "2020-03-02"), ""), std::slice::from_ref(&vehicle), "days gone by");
    // After a swap, this customer has the other vehicle.
    let other = organization.vehicle(json!({}));
    organization.patch(&path, &json!({"vehicle_id": other})).ok();
    assert_eq!(free(&organization, before, ""), std::slice::from_ref(&vehicle));
    organization.patch(&path, &json!({"status": "COMPLETED"})).ok();
    assert_eq!(free(&organization, before, ""), [other, vehicle]);
}

/// A page examines 100 vehicles at least.
#[test]
fn a_small_page_is_not_empty_while_one_of_the_next_vehicles_is_available() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    for _ in 0..20 {
        organization.vehicle(json!({"status": "maintenance"}));
    }
    let page = rules::page(&organization, "/v1/availability?from=2090-01-01&to=2090-01-02&limit=1");
    assert_eq!((rules::ids(page["data"].as_array().unwrap()), &page["has_more"]), (vec![vehicle], &json!(false)));
}

#[test]
fn a_walk_shows_every_available_vehicle_once_as_a_list_does() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    other.vehicle(json!({}));
    let nights = ("2090-03-10", "2090-03-15");
    let mut expected: Vec<Value> = Vec::new();
    for n in 0..60 {
        let vehicle = organization.vehicle(json!({"year": 1950 + n}));
        if n % 7 == 0 || n > 40 {
            book(&organization, &vehicle, nights, "APPROVED");
        } else {
            expected.insert(0, organization.get(&format!("/v1/vehicles/{vehicle}")).ok());
        }
    }
    for limit in [1, 3, 20, 100] {
        assert_eq!(free(&organization, nights, &format!("&limit={limit}")), rules::ids(&expected), "{limit}");
    }
    let page = rules::page(&organization, "/v1/availability?from=2090-03-10&to=2090-03-15&limit=100");
    assert_eq!(page["data"].as_array().unwrap(), &expected);
}

/// Under an open policy holds overlap, so a long hold can begin before many short ones.
#[test]
fn overlapping_holds_of_an_open_policy_are_all_seen() {
    let organization = Server::shared().organization_with(&json!({"name": "Open", "booking_policy": "open"}));
    let vehicle = organization.vehicle(json!({}));
    book(&organization, &vehicle, ("2090-03-01", "2090-03-08"), "APPROVED");
    for day in 2..8 {
        for _ in 0..3 {
            book(&organization, &vehicle, (&format!("2090-03-0{day}"), &format!("2090-03-0{day}")), "APPROVED");
        }
    }
    assert_eq!(free(&organization, ("2090-03-07", "2090-03-07"), ""), [""; 0]);
    assert_eq!(free(&organization, ("2090-03-08", "2090-03-09"), ""), [vehicle]);
}

#[test]
fn bad_and_missing_parameters_are_named() {
    let organization = Server::shared().organization();
    for (query, expected) in [
        ("", &[("from", "parameter_missing"), ("to", "parameter_missing")][..]),
        ("from=2026-06-01", &[("to", "parameter_missing")]),
        ("from=2026-06-01&to=June", &[("to", "parameter_invalid")]),
        ("from=2026-06-02&to=2026-06-01", &[("to", "parameter_invalid")]),
        ("from=2026-06-01&to=2027-06-03", &[("to", "parameter_invalid")]),
        ("from=2026-06-01&to=2026-06-01&limit=101", &[("limit", "parameter_invalid")]),
        ("from=2026-06-01&to=2026-06-01&starting_after=x", &[("starting_after", "parameter_invalid")]),
        ("from=2026-06-01&to=2026-06-01&status=available", &[("status", "parameter_unknown")]),
    ] {
        let found = organization.get(&format!("/v1/availability?{query}")).bad_fields();
        let found: Vec<(&str, &str)> = found.iter().map(|(param, code)| (param.as_str(), code.as_str())).collect();
        assert_eq!(found, expected, "{query}");
    }
    assert_eq!(free(&organization, ("2026-06-01", "2027-06-02"), "&vehicle=x"), [""; 0]);
}

#[test]
fn a_vehicle_of_another_organization_is_not_shown() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let foreign = other.vehicle(json!({}));
    for id in [&foreign, rules::UNKNOWN_ID] {
        assert_eq!(free(&organization, ("2090-01-01", "2090-01-02"), &format!("&vehicle={id}")), [""; 0]);
    }
}
