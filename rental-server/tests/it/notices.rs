//! The header `Rental-Notice`: a write that is taken tells of the other record of one car, person or booking.

use crate::support::{Connection, Organization, Reply, Server};
use serde_json::{Value, json};

#[track_caller]
fn noticed(reply: &Reply, expected: &[(&str, &str, &str)]) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let members = expected.iter().map(|(kind, object, id)| format!("{kind}; {object}=\"{id}\""));
    let (expected, found) = (members.collect::<Vec<_>>(), reply.header("rental-notice").unwrap_or_default());
    // Best effort: what a database answers only after the commit is left out (docs/api.md).
    if std::env::var("RENTAL_TEST_STORE").is_ok_and(|store| store == "postgres") {
        let told = found.split(", ").filter(|told| !told.is_empty());
        told.for_each(|told| assert!(expected.iter().any(|one| one == told), "{told} is none of {expected:?}"));
    } else {
        assert_eq!(found, expected.join(", "));
    }
}

fn new_vehicle(organization: &Organization, fields: Value) -> Reply {
    let mut body = json!({"name": "Car"});
    body.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap());
    organization.post("/v1/vehicles", &body)
}

fn change(organization: &Organization, plural: &str, id: &str, fields: &Value) -> Reply {
    organization.patch(&format!("/v1/{plural}/{id}"), fields)
}

#[test]
fn a_second_vehicle_with_a_plate_or_transponder_in_service_is_made_and_told() {
    let organization = Server::shared().organization();
    let fields = json!({"plate": "ABC 123", "plate_state": "NY", "transponder_number": "00412345678"});
    let first = new_vehicle(&organization, fields.clone());
    noticed(&first, &[]);
    let first = first.id();
    let second = new_vehicle(&organization, fields);
    noticed(&second, &[("same-transponder", "vehicle", &first), ("same-plate", "vehicle", &first)]);
    let second = second.id();
    // Another spelling is the same number; another state and another serial are not.
    let plate = |plate: &str, state: &str| json!({"plate": plate, "plate_state": state});
    noticed(&new_vehicle(&organization, plate("abc-123", "New York")), &[("same-plate", "vehicle", &first)]);
    noticed(&new_vehicle(&organization, plate("ABC123", "NJ")), &[]);
    noticed(
        &new_vehicle(&organization, json!({"transponder_number": "12345678"})),
        &[("same-transponder", "vehicle", &first)],
    );
    // A PATCH tells of what it changes.
    noticed(&change(&organization, "vehicles", &second, &json!({"color": "Red"})), &[]);
    noticed(&change(&organization, "vehicles", &second, &plate("OTHER1", "NY")), &[]);
    noticed(&change(&organization, "vehicles", &second, &plate("ABC123", "NY")), &[("same-plate", "vehicle", &first)]);
    // Vehicles out of service keep their plates.
    let sold = new_vehicle(&organization, json!({"plate": "SOLD1", "status": "unavailable"})).id();
    let next = new_vehicle(&organization, json!({"plate": "SOLD1"}));
    noticed(&next, &[]);
    let back = change(&organization, "vehicles", &sold, &json!({"status": "available"}));
    noticed(&back, &[("same-plate", "vehicle", &next.id())]);
    // Nothing of another organization.
    noticed(&new_vehicle(&Server::shared().organization(), plate("ABC123", "NY")), &[]);
}

#[test]
fn notices_arrive_in_some_of_several_tries() {
    let organization = Server::shared().organization();
    let fields = json!({"plate": "OFT 1", "plate_state": "NY", "transponder_number": "00412345999"});
    new_vehicle(&organization, fields.clone()).id();
    let customer = json!({"full_name": "Ada", "email": "often@example.com"});
    let customer_id = organization.post("/v1/customers", &customer).id();
    let mut vehicle = organization.vehicle(json!({}));
    let mut told = std::collections::BTreeSet::new();
    let kinds = ["same-booking-id", "same-email", "same-plate", "same-transponder"];
    for _ in 0..20 {
        let booking = json!({"customer_id": customer_id, "vehicle_id": vehicle, "booking_id": "OFTEN"});
        let replies = [
            new_vehicle(&organization, fields.clone()),
            organization.post("/v1/customers", &customer),
            organization.post("/v1/rentals", &booking),
        ];
        vehicle = replies[0].id();
        let headers = replies.iter().filter_map(|reply| reply.header("rental-notice"));
        let names = headers.flat_map(|header| header.split(", ").filter_map(|one| one.split(';').next()));
        told.extend(names.map(str::to_owned));
        if kinds.iter().all(|kind| told.contains(*kind)) {
            return;
        }
    }
    panic!("only {told:?} of {kinds:?} were told");
}

#[test]
fn a_second_customer_with_an_email_and_a_second_rental_with_a_booking_id_are_made_and_told() {
    let organization = Server::shared().organization();
    let ada = json!({"full_name": "Ada", "email": "ada@example.com"});
    let first = organization.post("/v1/customers", &ada).id();
    let told = ("same-email", "customer", first.as_str());
    noticed(&organization.post("/v1/customers", &ada), &[told]);
    let other = organization.customer(json!({}));
    noticed(&change(&organization, "customers", &other, &json!({"email": "ada@example.com"})), &[told]);
    noticed(&change(&organization, "customers", &other, &json!({"phone": "+14155550123"})), &[]);

    let vehicle = organization.vehicle(json!({}));
    let booking = json!({"customer_id": first, "vehicle_id": vehicle, "booking_id": "B1"});
    let rental = organization.post("/v1/rentals", &booking).id();
    noticed(&organization.post("/v1/rentals", &booking), &[("same-booking-id", "rental", &rental)]);
}

#[test]
fn a_rental_of_a_car_that_somebody_has_or_that_is_not_available_is_taken_and_told() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let dates = |from: &str, to: &str, status: &str| json!({"start_date": from, "end_date": to, "status": status});
    let rent = |fields: Value| {
        let mut body = json!({"vehicle_id": vehicle, "customer_id": organization.customer(json!({}))});
        body.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap());
        organization.post("/v1/rentals", &body)
    };
    // The first one is overdue: it holds other nights.
    let late = rent(dates("2026-06-01", "2026-06-05", "ACTIVE"));
    noticed(&late, &[]);
    let late = late.id();
    let next = rent(dates("2026-06-10", "2026-06-15", "APPROVED"));
    noticed(&next, &[]);
    let next = next.id();
    let active = json!({"status": "ACTIVE"});
    noticed(&change(&organization, "rentals", &next, &active), &[("second-active", "rental", &late)]);
    // It is told when it happens, and not of each change after.
    noticed(&change(&organization, "rentals", &next, &json!({"end_date": "2026-06-16"})), &[]);

    let new = rent(dates("2026-06-15", "2026-06-20", "NEW"));
    noticed(&new, &[("nights-held", "rental", &next)]);
    let free = rent(dates("2026-06-16", "2026-06-20", "NEW"));
    noticed(&free, &[]);
    let free = free.id();
    noticed(
        &change(&organization, "rentals", &free, &json!({"start_date": "2026-06-14"})),
        &[("nights-held", "rental", &next)],
    );
    let block = json!({"vehicle_id": vehicle, "start_date": "2026-08-01", "end_date": "2026-08-03"});
    let block = organization.post("/v1/blocks", &block).id();
    noticed(&rent(dates("2026-07-01", "2026-09-01", "NEW")), &[("nights-held", "block", &block)]);

    for status in ["maintenance", "rented", "unavailable"] {
        change(&organization, "vehicles", &vehicle, &json!({"status": status})).ok();
        let approved = rent(dates("2027-06-01", "2027-06-05", "APPROVED"));
        noticed(&approved, &[("vehicle-not-available", "vehicle", &vehicle)]);
        noticed(&change(&organization, "rentals", &approved.id(), &json!({"status": "CANCELLED"})), &[]);
    }
}

#[test]
fn the_document_and_the_page_of_the_api_have_every_kind_of_notice() {
    let document: Value = Connection::open(&Server::shared().address).send("GET", "/openapi.json", &[], b"").ok();
    let header = document["components"]["headers"]["RentalNotice"]["description"].as_str().unwrap().to_owned();
    for (path, has) in [("vehicles", true), ("customers", true), ("rentals", true), ("blocks", false)] {
        let reply = &document["paths"][format!("/v1/{path}")]["post"]["responses"]["200"]["headers"];
        assert_eq!(reply["Rental-Notice"].is_object(), has, "{path}");
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/api.md")).unwrap();
    for spec in rental_core::schema::NOTICES {
        let form = format!("`{}; {}=\"ID\"`", spec.name, spec.names[0]);
        for text in [form.as_str(), spec.says, spec.next] {
            assert!(header.contains(text) && page.contains(text), "{text}");
        }
    }
}
