//! Two records of one car, person or booking, at the prompt.

use super::{Cli, Ran, ran, url};
use crate::support::{Organization, Server};
use serde_json::{Value, json};

fn run(cli: &Cli, organization: &Organization, words: &str) -> Ran {
    let ran = ran(cli.command(&url(organization.server), words).env("RENTAL_API_KEY", &organization.write));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

/// Runs a command until its answer has a notice: the server looks for one beside its commit, which can be faster on a database.
fn run_until_told(cli: &Cli, organization: &Organization, words: &str) -> Ran {
    let mut tries = std::iter::repeat_with(|| run(cli, organization, words)).take(20);
    tries.find(|ran| !ran.stderr.is_empty()).expect("a notice in one of 20 tries")
}

#[test]
fn a_notice_is_a_sentence_on_stderr_that_names_the_other_object_and_the_next_step() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    let create = "vehicles create --name Corolla --plate CLI8888 --plate-state NY --json";
    let first = run(&cli, &organization, create);
    assert_eq!(first.stderr, "");
    let first = first.json()["id"].as_str().unwrap().to_owned();
    let second = run_until_told(&cli, &organization, create);
    assert_eq!(second.json()["object"], "vehicle", "stdout has the object alone");
    let told = &second.stderr;
    let named = format!(
        "Note: Another vehicle in service has this plate: Corolla, NY CLI8888, available ({first}). If both are"
    );
    assert!(told.starts_with(&named) && told.contains("clear the plate"), "{told}");
    assert!(told.ends_with("`rental-cli vehicles duplicates` lists all of them.\n"), "{told}");
    assert_eq!(run(&cli, &organization, &format!("{create} --quiet")).stderr, "");

    let customer = organization.post("/v1/customers", &json!({"full_name": "Ada"})).id();
    let rent = |status: &str| {
        format!(
            "rentals create --vehicle {first} --customer {customer} --start-date 2027-03-01 --end-date 2027-03-04 --status {status}"
        )
    };
    run(&cli, &organization, &format!("{} --booking-id B7", rent("APPROVED")));
    let requested = run_until_told(&cli, &organization, &rent("NEW")).stderr;
    let named = "Note: The vehicle of this NEW rental is held on some of its nights: B7, 2027-03-01 to 2027-03-04, APPROVED, Corolla, Ada (";
    assert!(requested.starts_with(named), "{requested}");
}

#[test]
fn duplicates_lists_each_record_with_the_steps_and_doctor_counts_them() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    assert!(run(&cli, &organization, "vehicles duplicates").stderr.contains("No two records"));
    let [first, second] =
        [(); 2].map(|()| organization.vehicle(json!({"plate": "DUP 1", "transponder_number": "00412345678"})));
    organization.vehicle(json!({"plate": "DUP1", "status": "unavailable"}));
    let [ada, bea] = [(); 2].map(|()| organization.customer(json!({"email": "ada@example.com"})));
    let booking = json!({"vehicle_id": first, "customer_id": ada, "booking_id": "B1"});
    let [one, other] = [(); 2].map(|()| organization.post("/v1/rentals", &booking).id());

    let listed = run(&cli, &organization, "vehicles duplicates --json").json();
    let rows = listed["data"].as_array().unwrap().iter();
    let found: Vec<_> = rows
        .map(|row| [&row["matched"], &row["resource"], &row["id"]].map(|text| text.as_str().unwrap().to_owned()))
        .collect();
    let row = |matched: &str, resource: &str, id: &String| [matched.to_owned(), resource.to_owned(), id.clone()];
    let expected = [
        row("plate", "vehicle", &first),
        row("plate", "vehicle", &second),
        row("transponder", "vehicle", &first),
        row("transponder", "vehicle", &second),
        row("email", "customer", &ada),
        row("email", "customer", &bea),
        row("booking_id", "rental", &one),
        row("booking_id", "rental", &other),
    ];
    assert_eq!(found, expected);
    let shown = run(&cli, &organization, "vehicles duplicates");
    for step in ["rentals update RENTAL --vehicle KEPT", "--clear plate", "never move"] {
        assert!(shown.stderr.contains(step), "{shown:?}");
    }

    let told = run(&cli, &organization, "doctor --json").json();
    let check = told["checks"].as_array().unwrap().iter().find(|check| check["name"] == "duplicates").unwrap().clone();
    let fact = "several records have one value each of 1 booking id, 1 email, 1 plate, 1 transponder";
    assert_eq!((&check["status"], &check["fact"]), (&json!("warning"), &json!(fact)));

    // A command that takes a name tells which records have it.
    let mut asked = cli.command(&url(organization.server), "rentals get B1");
    let refused = ran(asked.env("RENTAL_API_KEY", &organization.write)).stderr;
    for id in [&one, &other] {
        assert!(refused.contains(&format!("B1, NEW, Test vehicle, Test Customer ({id})")), "{refused}");
    }

    // The steps put it right: the rental of the second record moves, and its numbers are cleared.
    run(&cli, &organization, &format!("rentals update {other} --vehicle {first}"));
    run(&cli, &organization, &format!("vehicles update {second} --clear plate --clear transponder-number"));
    let left = run(&cli, &organization, "vehicles duplicates --json").json();
    let is_of_vehicles = |row: &Value| row["resource"] == "vehicle";
    assert!(!left["data"].as_array().unwrap().iter().any(is_of_vehicles), "{left}");
}
