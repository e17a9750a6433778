//! No vehicle is held twice on one night (`docs/decisions.md`, "Rentals hold vehicles"): the boundaries, and races.

use crate::support::{Organization, Reply, Server};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Barrier, Mutex},
    time::Duration,
};

type Nights<'a> = (&'a str, &'a str);

/// Sends a request until the server takes it: a busy machine refuses some of many clients at first, and changes nothing.
fn answered(send: impl Fn() -> Reply) -> Reply {
    loop {
        let reply = send();
        if reply.status != 503 {
            return reply;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An organization with one customer, who books.
struct Fleet {
    organization: Organization<'static>,
    customer: String,
}

impl Fleet {
    fn new() -> Self {
        Self::with_policy("exclusive")
    }

    fn with_policy(policy: &str) -> Self {
        let organization = Server::shared().organization_with(&json!({"name": "Fleet", "booking_policy": policy}));
        let customer = organization.customer(json!({}));
        Self { organization, customer }
    }

    fn vehicle(&self) -> String {
        self.organization.vehicle(json!({}))
    }

    fn book(&self, vehicle: &str, (start, end): Nights<'_>, status: &str) -> Reply {
        let body = json!({"customer_id": self.customer, "vehicle_id": vehicle, "start_date": start, "end_date": end, "status": status});
        answered(|| self.organization.post("/v1/rentals", &body))
    }

    fn change(&self, rental: &str, body: &Value) -> Reply {
        answered(|| self.organization.patch(&format!("/v1/rentals/{rental}"), body))
    }

    fn set_policy(&self, policy: &str) {
        let path = format!("/admin/v1/organizations/{}", self.organization.id);
        self.organization.server.admin("PATCH", &path, &json!({"booking_policy": policy})).ok();
    }

    fn all_rentals(&self) -> Vec<Value> {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.organization.get(&format!("/v1/rentals?limit=100{cursor}")).ok();
            found.extend(page["data"].as_array().expect("a list").iter().cloned());
            let Some(next) = page["next_cursor"].as_str() else { return found };
            cursor = format!("&starting_after={next}");
        }
    }
}

/// A 409 that names the rental which holds the vehicle.
#[track_caller]
fn refused(reply: &Reply, holder: &str) {
    let error = reply.error(409, "invalid_request_error", "vehicle_unavailable");
    assert_eq!(error["conflicting_rental_id"], json!(holder));
    assert!(error["message"].as_str().is_some_and(|message| message.contains(holder)), "{error}");
}

/// ISO dates sort as text; `~` is behind every digit, so a same-day rental ends after its day began.
pub(crate) fn nights(rental: &Value) -> Option<(String, String)> {
    let (start, end) = (rental["start_date"].as_str()?, rental["end_date"].as_str()?);
    let holding = ["APPROVED", "ACTIVE"].contains(&rental["status"].as_str()?);
    holding.then(|| (start.to_owned(), if start == end { format!("{end}~") } else { end.to_owned() }))
}

/// Every pair of rentals that hold the same vehicle on the same night; also used after crashes.
pub(crate) fn double_bookings(rentals: &[Value]) -> Vec<(Value, Value)> {
    let mut by_vehicle: HashMap<&str, Vec<(&Value, String, String)>> = HashMap::new();
    for rental in rentals {
        if let Some((start, end)) = nights(rental) {
            let vehicle = rental["vehicle_id"].as_str().expect("a rental has a vehicle");
            by_vehicle.entry(vehicle).or_default().push((rental, start, end));
        }
    }
    let mut found = Vec::new();
    for holds in by_vehicle.values() {
        for (at, (rental, start, end)) in holds.iter().enumerate() {
            let clashing = holds[at + 1..].iter().filter(|(_, from, to)| start < to && from < end);
            found.extend(clashing.map(|(other, ..)| ((*rental).clone(), (*other).clone())));
        }
    }
    found
}

#[test]
fn every_way_to_overlap_is_refused_and_every_way_to_touch_is_not() {
    let fleet = Fleet::new();
    let vehicle = fleet.vehicle();
    let holder = fleet.book(&vehicle, ("2027-03-10", "2027-03-15"), "APPROVED").id();
    let cases = [
        (("2027-03-10", "2027-03-15"), true),
        (("2027-03-09", "2027-03-16"), true),
        (("2027-03-11", "2027-03-14"), true),
        (("2027-03-09", "2027-03-11"), true),
        (("2027-03-14", "2027-03-20"), true),
        (("2027-03-10", "2027-03-10"), true),
        (("2027-03-14", "2027-03-14"), true),
        (("2000-01-01", "2100-01-01"), true),
        (("2027-03-05", "2027-03-10"), false),
        (("2027-03-15", "2027-03-18"), false),
        (("2027-03-15", "2027-03-15"), false),
        (("2027-03-09", "2027-03-09"), false),
    ];
    for (nights, clashes) in cases {
        let reply = fleet.book(&vehicle, nights, "APPROVED");
        if clashes {
            refused(&reply, &holder);
        } else {
            let id = reply.id();
            fleet.change(&id, &json!({"status": "CANCELLED"})).ok();
        }
    }
}

#[test]
fn a_return_on_the_day_of_pickup_holds_that_day() {
    let fleet = Fleet::new();
    let vehicle = fleet.vehicle();
    let holder = fleet.book(&vehicle, ("2027-03-10", "2027-03-10"), "ACTIVE").id();
    refused(&fleet.book(&vehicle, ("2027-03-10", "2027-03-10"), "ACTIVE"), &holder);
    refused(&fleet.book(&vehicle, ("2027-03-09", "2027-03-11"), "APPROVED"), &holder);
    fleet.book(&vehicle, ("2027-03-11", "2027-03-11"), "ACTIVE").ok();
    fleet.book(&vehicle, ("2027-03-09", "2027-03-10"), "ACTIVE").ok();
}

#[test]
fn moving_the_dates_moves_the_hold() {
    let fleet = Fleet::new();
    let vehicle = fleet.vehicle();
    let first = fleet.book(&vehicle, ("2027-03-10", "2027-03-15"), "APPROVED").id();
    let second = fleet.book(&vehicle, ("2027-03-15", "2027-03-20"), "APPROVED").id();
    refused(&fleet.change(&first, &json!({"end_date": "2027-03-16"})), &second);
    // Onto nights that are partly its own.
    fleet.change(&first, &json!({"start_date": "2027-03-12", "end_date": "2027-03-14"})).ok();
    fleet.change(&second, &json!({"start_date": "2027-03-14"})).ok();
    refused(&fleet.change(&first, &json!({"end_date": "2027-03-15"})), &second);
    fleet.book(&vehicle, ("2027-03-10", "2027-03-12"), "APPROVED").ok();
}

#[test]
fn changing_the_vehicle_frees_the_old_and_holds_the_new() {
    let fleet = Fleet::new();
    let (old, new) = (fleet.vehicle(), fleet.vehicle());
    let nights = ("2027-03-10", "2027-03-15");
    let (moving, staying) = (fleet.book(&old, nights, "APPROVED").id(), fleet.book(&new, nights, "APPROVED").id());
    refused(&fleet.change(&moving, &json!({"vehicle_id": new})), &staying);
    fleet.change(&staying, &json!({"status": "COMPLETED"})).ok();
    fleet.change(&moving, &json!({"vehicle_id": new})).ok();
    fleet.book(&old, nights, "APPROVED").ok();
    refused(&fleet.book(&new, nights, "APPROVED"), &moving);
}

#[test]
fn a_new_rental_holds_nothing_until_it_is_approved() {
    let fleet = Fleet::new();
    let vehicle = fleet.vehicle();
    let nights = ("2027-03-10", "2027-03-15");
    let [first, second] = ["NEW", "NEW"].map(|status| fleet.book(&vehicle, nights, status).id());
    fleet.change(&first, &json!({"status": "APPROVED"})).ok();
    refused(&fleet.change(&second, &json!({"status": "APPROVED"})), &first);
    refused(&fleet.change(&second, &json!({"status": "ACTIVE"})), &first);
    fleet.change(&first, &json!({"status": "ACTIVE"})).ok();
    refused(&fleet.change(&second, &json!({"status": "APPROVED"})), &first);
    fleet.change(&first, &json!({"status": "NEW"})).ok();
    fleet.change(&second, &json!({"status": "ACTIVE"})).ok();
}

#[test]
fn completed_and_cancelled_free_the_vehicle_and_coming_back_is_checked_again() {
    for ended in ["COMPLETED", "CANCELLED"] {
        let fleet = Fleet::new();
        let vehicle = fleet.vehicle();
        let nights = ("2027-03-10", "2027-03-15");
        let first = fleet.book(&vehicle, nights, "APPROVED").id();
        fleet.change(&first, &json!({"status": ended})).ok();
        let second = fleet.book(&vehicle, nights, "ACTIVE").id();
        for back in ["APPROVED", "ACTIVE"] {
            refused(&fleet.change(&first, &json!({"status": back})), &second);
        }
        fleet.change(&second, &json!({"status": ended})).ok();
        fleet.change(&first, &json!({"status": "APPROVED"})).ok();
        refused(&fleet.change(&second, &json!({"status": "APPROVED"})), &first);
    }
}

#[test]
fn a_rental_without_both_dates_holds_nothing_until_it_has_them() {
    let fleet = Fleet::new();
    let vehicle = fleet.vehicle();
    let body =
        json!({"customer_id": fleet.customer, "vehicle_id": vehicle, "status": "APPROVED", "start_date": "2027-03-10"});
    let half = fleet.organization.post("/v1/rentals", &body).id();
    let holder = fleet.book(&vehicle, ("2027-03-12", "2027-03-15"), "APPROVED").id();
    refused(&fleet.change(&half, &json!({"end_date": "2027-03-13"})), &holder);
    fleet.change(&half, &json!({"end_date": "2027-03-12"})).ok();
    refused(&fleet.book(&vehicle, ("2027-03-11", "2027-03-12"), "APPROVED"), &half);
    fleet.change(&half, &json!({"end_date": null})).ok();
    fleet.book(&vehicle, ("2027-03-11", "2027-03-12"), "APPROVED").ok();
}

#[test]
fn a_refused_change_changes_nothing() {
    let fleet = Fleet::new();
    let (vehicle, other) = (fleet.vehicle(), fleet.vehicle());
    let nights = ("2027-03-10", "2027-03-15");
    let holder = fleet.book(&vehicle, nights, "APPROVED").id();
    let rental = fleet.book(&other, nights, "APPROVED").id();
    let path = format!("/v1/rentals/{rental}");
    let before = fleet.organization.get(&path);
    refused(&fleet.change(&rental, &json!({"vehicle_id": vehicle, "booking_id": "moved", "final_price": 1})), &holder);
    let after = fleet.organization.get(&path);
    assert_eq!((&after.body, after.header("etag")), (&before.body, before.header("etag")));
    refused(&fleet.book(&other, nights, "APPROVED"), &rental);
}

#[test]
fn an_open_organization_records_clashes_and_an_exclusive_one_refuses_new_ones() {
    let fleet = Fleet::with_policy("open");
    let vehicle = fleet.vehicle();
    let nights = ("2027-03-10", "2027-03-15");
    let clashing = ["APPROVED", "ACTIVE", "APPROVED"].map(|status| fleet.book(&vehicle, nights, status).id());
    assert_eq!(double_bookings(&fleet.all_rentals()).len(), 3);
    fleet.set_policy("exclusive");
    let reply = fleet.book(&vehicle, ("2027-03-14", "2027-03-16"), "APPROVED");
    let error = reply.error(409, "invalid_request_error", "vehicle_unavailable");
    assert!(clashing.iter().any(|id| error["conflicting_rental_id"] == json!(id)), "{error}");
    // What was recorded stays, and may change in everything but its nights.
    fleet.change(&clashing[0], &json!({"booking_id": "kept", "status": "ACTIVE"})).ok();
    assert_eq!(fleet.change(&clashing[0], &json!({"end_date": "2027-03-14"})).status, 409);
    for ended in &clashing[1..] {
        fleet.change(ended, &json!({"status": "CANCELLED"})).ok();
    }
    fleet.change(&clashing[0], &json!({"end_date": "2027-03-14"})).ok();
    refused(&fleet.change(&clashing[1], &json!({"status": "APPROVED"})), &clashing[0]);
    fleet.set_policy("open");
    fleet.change(&clashing[1], &json!({"status": "APPROVED"})).ok();
}

const CLIENTS: usize = 50;
const VEHICLES: usize = 5;

/// Runs `client` in as many threads, which start together.
pub(crate) fn race(clients: usize, client: impl Fn(usize) + Sync) {
    let start = Barrier::new(clients);
    std::thread::scope(|scope| {
        for number in 0..clients {
            let (start, client) = (&start, &client);
            scope.spawn(move || {
                start.wait();
                client(number);
            });
        }
    });
}

#[test]
fn fifty_clients_who_want_the_same_nights_have_one_winner_for_each_vehicle() {
    let fleet = Fleet::new();
    let vehicles: Vec<String> = (0..VEHICLES).map(|_| fleet.vehicle()).collect();
    for (round, nights) in [("2027-03-10", "2027-03-15"), ("2027-04-10", "2027-04-10"), ("2027-05-01", "2027-06-30")]
        .into_iter()
        .enumerate()
    {
        let requests: Vec<String> =
            (0..CLIENTS).map(|client| fleet.book(&vehicles[client % VEHICLES], nights, "NEW").id()).collect();
        let (winners, losers) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        race(CLIENTS, |client| {
            // Half of them ask for a new rental, half approve one that waits.
            let vehicle = client % VEHICLES;
            let posts = (client / VEHICLES + round).is_multiple_of(2);
            let reply = match posts {
                true => fleet.book(&vehicles[vehicle], nights, "APPROVED"),
                false => fleet.change(&requests[client], &json!({"status": "APPROVED"})),
            };
            match reply.status {
                200 => winners.lock().unwrap().push((vehicle, reply.id())),
                _ => losers.lock().unwrap().push((vehicle, reply)),
            }
        });
        let mut winners = winners.into_inner().unwrap();
        winners.sort();
        assert_eq!(winners.iter().map(|(vehicle, _)| *vehicle).collect::<Vec<_>>(), (0..VEHICLES).collect::<Vec<_>>());
        let losers = losers.into_inner().unwrap();
        losers.iter().for_each(|(vehicle, reply)| refused(reply, &winners[*vehicle].1));
        assert_eq!(double_bookings(&fleet.all_rentals()), []);
    }
}

/// A small generator, so that a failing run can be repeated: the seed is the client's number.
pub(crate) fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

pub(crate) fn march(day: u64) -> String {
    format!("2027-03-{:02}", 1 + day)
}

#[test]
fn a_race_of_posts_and_patches_never_ends_with_two_holds_on_one_night() {
    const STEPS: usize = 12;
    let fleet = Fleet::new();
    let vehicles: Vec<String> = (0..VEHICLES).map(|_| fleet.vehicle()).collect();
    let (won, lost) = (Mutex::new(0), Mutex::new(Vec::new()));
    race(CLIENTS, |client| {
        let mut state = client as u64 + 1;
        let mut own: Vec<String> = Vec::new();
        for _ in 0..STEPS {
            let (start, length) = (random(&mut state, 25), random(&mut state, 5));
            let (start, end) = (march(start), march(start + length));
            let vehicle = &vehicles[random(&mut state, VEHICLES as u64) as usize];
            let target = own.get(random(&mut state, own.len() as u64 + 1) as usize).cloned();
            let reply = match (target, random(&mut state, 4)) {
                (None, _) => fleet.book(vehicle, (&start, &end), "APPROVED"),
                (Some(rental), 0) => fleet.change(&rental, &json!({"status": "CANCELLED"})),
                (Some(rental), 1) => fleet.change(&rental, &json!({"vehicle_id": vehicle, "status": "ACTIVE"})),
                (Some(rental), _) => fleet.change(&rental, &json!({"start_date": start, "end_date": end})),
            };
            match reply.status {
                200 => {
                    let id = reply.id();
                    *won.lock().unwrap() += 1;
                    own.retain(|known| *known != id);
                    own.push(id);
                }
                _ => lost.lock().unwrap().push(reply),
            }
        }
    });
    let rentals = fleet.all_rentals();
    assert_eq!(double_bookings(&rentals), []);
    let ids: Vec<&Value> = rentals.iter().map(|rental| &rental["id"]).collect();
    let lost = lost.into_inner().unwrap();
    for reply in &lost {
        let error = reply.error(409, "invalid_request_error", "vehicle_unavailable");
        assert!(ids.contains(&&error["conflicting_rental_id"]), "a rental of the same organization: {error}");
    }
    assert!(won.into_inner().unwrap() > CLIENTS && lost.len() > CLIENTS, "a race needs winners and losers");
}
