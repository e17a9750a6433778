//! Exact look-ups: a number or a word finds its objects in one range of an index. And the lists of rentals by date.

use crate::support::{Organization, Server, percent_encode, rules};
use serde_json::{Value, json};

#[track_caller]
fn found(organization: &Organization<'_>, plural: &str, param: &str, value: &str) -> Vec<String> {
    rules::ids(&rules::walk(organization, plural, &format!("&{param}={}", percent_encode(value)), 2))
}

#[test]
fn a_number_finds_what_has_it_and_nothing_of_others() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    for (plural, param) in [
        ("rentals", "booking_id"),
        ("invoices", "invoice_number"),
        ("tolls", "transaction_id"),
        ("violations", "summons_number"),
    ] {
        // Invoices number themselves; of the others, every object gets a number.
        let make = |organization: &Organization<'_>, number: &str| {
            let fields = if plural == "invoices" { json!({}) } else { json!({param: number}) };
            let id = organization.one_more(plural, fields);
            let object = organization.get(&format!("/v1/{plural}/{id}")).ok();
            (id, object[param].as_str().unwrap().to_owned())
        };
        let (id, number) = make(&organization, "BK-1 & co");
        make(&organization, "BK-10");
        make(&other, "BK-1 & co");
        assert_eq!(found(&organization, plural, param, &number), [id], "{plural}");
        assert_eq!(found(&organization, plural, param, &number[..number.len() - 1]), [""; 0], "{plural}: exactly this");
        assert_eq!(found(&organization, plural, param, "unknown"), [""; 0], "{plural}");
    }
}

#[test]
fn a_changed_booking_id_is_found_by_its_new_value_alone() {
    let organization = Server::shared().organization();
    let id = organization.one_more("rentals", json!({"booking_id": "A"}));
    organization.patch(&format!("/v1/rentals/{id}"), &json!({"booking_id": "B"})).ok();
    assert_eq!(found(&organization, "rentals", "booking_id", "A"), [""; 0]);
    assert_eq!(found(&organization, "rentals", "booking_id", "B"), [id]);
}

#[test]
fn a_plate_finds_its_vehicles_however_it_is_spelt() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let plain = organization.vehicle(json!({"plate": "ABC1234"}));
    let spelt = organization.vehicle(json!({"plate": "abc-1234", "plate_state": "NY"}));
    organization.vehicle(json!({"plate": "ABC12345"}));
    organization.vehicle(json!({}));
    other.vehicle(json!({"plate": "ABC1234"}));
    for text in ["ABC1234", "abc 1234", "ABC-1234", "NY ABC1234"] {
        assert_eq!(found(&organization, "vehicles", "plate", text), [spelt.clone(), plain.clone()], "{text}");
    }
    for text in ["-", "ABC123"] {
        assert_eq!(found(&organization, "vehicles", "plate", text), [""; 0], "{text}");
    }
    let reply = organization.get("/v1/vehicles?plate=ABC1234&status=rented");
    assert!(reply.text().contains("cannot be combined with `plate`"), "{}", reply.text());
}

#[test]
fn vehicles_are_found_by_their_status() {
    let organization = Server::shared().organization();
    let words = ["available", "rented", "maintenance", "unavailable"];
    let made = words.map(|word| organization.vehicle(json!({"status": word})));
    for (word, id) in words.iter().zip(&made) {
        assert_eq!(found(&organization, "vehicles", "status", word), [id.as_str()]);
    }
    organization.patch(&format!("/v1/vehicles/{}", made[0]), &json!({"status": "rented"})).ok();
    assert_eq!(found(&organization, "vehicles", "status", "available"), [""; 0]);
    assert_eq!(found(&organization, "vehicles", "status", "rented"), [made[1].clone(), made[0].clone()]);
    assert!(organization.get("/v1/vehicles?status=parked").bad_fields()[0].0 == "status");
}

/// A walk through a list that is ordered by a date.
#[track_caller]
fn by_date(organization: &Organization<'_>, query: &str) -> Vec<(String, String)> {
    let (mut all, mut cursor): (Vec<Value>, String) = (Vec::new(), String::new());
    loop {
        let page = rules::page(organization, &format!("/v1/rentals?limit=2&{query}{cursor}"));
        all.extend(page["data"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&starting_after={next}"),
            None => break,
        }
    }
    let field = query.split('[').next().unwrap();
    let text = |object: &Value, name: &str| object[name].as_str().unwrap().to_owned();
    all.iter().map(|object| (text(object, field), text(object, "id"))).collect()
}

#[test]
fn rentals_are_listed_by_the_days_on_which_they_begin_and_end() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let rental = |start: &str, end: &str| organization.rental(&vehicle, json!({"start_date": start, "end_date": end}));
    let late = rental("2026-06-10", "2026-06-12");
    let (early, long) = (rental("1969-12-30", "2026-06-02"), rental("2026-06-01", "2026-07-01"));
    let same = rental("2026-06-01", "2026-06-03");
    organization.rental(&vehicle, json!({}));
    let of = |date: &str, id: &String| (date.to_owned(), id.clone());
    assert_eq!(
        by_date(&organization, "start_date[gte]=0001-01-01"),
        [of("1969-12-30", &early), of("2026-06-01", &long), of("2026-06-01", &same), of("2026-06-10", &late)]
    );
    assert_eq!(
        by_date(&organization, "start_date[gte]=2026-06-01&start_date[lt]=2026-06-10"),
        [of("2026-06-01", &long), of("2026-06-01", &same)]
    );
    assert_eq!(by_date(&organization, "end_date[lt]=2026-06-12"), [of("2026-06-02", &early), of("2026-06-03", &same)]);
    organization.patch(&format!("/v1/rentals/{same}"), &json!({"end_date": null})).ok();
    assert_eq!(by_date(&organization, "end_date[gte]=2026-06-03"), [of("2026-06-12", &late), of("2026-07-01", &long)]);
}

#[test]
fn a_list_by_date_takes_dates_no_second_range_and_only_its_own_cursors() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    for day in ["2026-06-01", "2026-06-02"] {
        organization.rental(&vehicle, json!({"start_date": day, "end_date": day}));
    }
    let page = rules::page(&organization, "/v1/rentals?limit=1&start_date[gte]=2026-01-01");
    let cursor = page["next_cursor"].as_str().unwrap();
    for (query, param) in [
        ("start_date[gte]=2026-06-01T00:00:00Z".to_owned(), "start_date[gte]"),
        ("end_date[lt]=tomorrow".to_owned(), "end_date[lt]"),
        ("start_date[gte]=2026-06-01&end_date[lt]=2026-07-01".to_owned(), "end_date[lt]"),
        ("start_date[gte]=2026-06-01&status=NEW".to_owned(), "start_date[gte]"),
        (format!("end_date[gte]=2026-01-01&starting_after={cursor}"), "starting_after"),
        (format!("starting_after={cursor}"), "starting_after"),
    ] {
        let found = organization.get(&format!("/v1/rentals?{query}")).bad_fields();
        assert_eq!(found, [(param.to_owned(), "parameter_invalid".to_owned())], "{query}");
    }
}
