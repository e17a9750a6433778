//! Bookings that race through three servers: no vehicle is held twice on one night, and no night is lost.

use super::{everywhere, three};
use crate::{
    holds::{double_bookings, march, nights, race, random},
    support::{
        Organization, Reply,
        rules::{ids, walk},
    },
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Barrier, Mutex},
    thread,
};

fn book(organization: &Organization, vehicle: &str, customer: &str, (start, end): (&str, &str)) -> Reply {
    let body = json!({"customer_id": customer, "vehicle_id": vehicle, "start_date": start, "end_date": end, "status": "APPROVED"});
    organization.post("/v1/rentals", &body)
}

/// The rental that was in the way.
#[track_caller]
fn holder(reply: &Reply) -> String {
    let error = reply.error(409, "invalid_request_error", "vehicle_unavailable");
    error["conflicting_rental_id"].as_str().expect("an id").to_owned()
}

/// Four sets at a time: all bookings of a set want the night of the 15th, and what they want around it is random.
#[test]
fn of_overlapping_bookings_one_wins_whichever_servers_they_went_to() {
    const SETS: usize = 4;
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    let customer = all[0].customer(json!({}));
    let mut won = Vec::new();
    for seed in 0..8 {
        let vehicles = [(); 2].map(|()| all[seed % 3].vehicle(json!({})));
        let replies = [(); SETS].map(|()| Mutex::new(Vec::new()));
        race(SETS * 6, |client| {
            let (set, mut state) = (client % SETS, (seed * 100 + client) as u64);
            let (start, end) = (1 + random(&mut state, 15), 16 + random(&mut state, 13));
            let day = |day: u64| format!("2027-{:02}-{day:02}", 3 + set / 2);
            let reply = book(&all[(client / SETS) % 3], &vehicles[set % 2], &customer, (&day(start), &day(end)));
            replies[set].lock().unwrap().push(reply);
        });
        for set in replies {
            let (winners, losers): (Vec<_>, Vec<_>) =
                set.into_inner().unwrap().into_iter().partition(|reply| reply.status == 200);
            assert_eq!((winners.len(), losers.len()), (1, 5), "seed {seed}");
            let winner = winners[0].id();
            losers.iter().for_each(|loser| assert_eq!(holder(loser), winner));
            won.push(winner);
        }
    }
    won.sort();
    for organization in &all {
        let rentals = walk(organization, "rentals", "", 100);
        let mut listed = ids(&rentals);
        listed.sort();
        assert_eq!(listed, won, "a loser leaves nothing behind");
        assert_eq!(double_bookings(&rentals), []);
    }
}

const CLIENTS: u64 = 12;
const STEPS: u64 = 15;

/// Books, moves, gives to another vehicle and cancels rentals of its own, each time by way of any server. Gives how often
/// it was refused; `accepted` gets what was answered last for each rental.
fn client(
    seed: u64,
    all: &[Organization; 3],
    (vehicles, customer): (&[String], &str),
    accepted: &Mutex<BTreeMap<String, Value>>,
) -> usize {
    let (mut state, mut own, mut refused) = (seed, Vec::<String>::new(), 0);
    for _ in 0..STEPS {
        let start = random(&mut state, 25);
        let (start, end) = (march(start), march(start + random(&mut state, 5)));
        let vehicle = &vehicles[random(&mut state, vehicles.len() as u64) as usize];
        let organization = &all[random(&mut state, 3) as usize];
        let target = own.get(random(&mut state, own.len() as u64 + 1) as usize).cloned();
        let change = |rental: String, body: Value| organization.patch(&format!("/v1/rentals/{rental}"), &body);
        let reply = match (target, random(&mut state, 4)) {
            (None, _) => book(organization, vehicle, customer, (&start, &end)),
            (Some(rental), 0) => change(rental, json!({"status": "CANCELLED"})),
            (Some(rental), 1) => change(rental, json!({"vehicle_id": vehicle, "status": "ACTIVE"})),
            (Some(rental), _) => change(rental, json!({"start_date": start, "end_date": end})),
        };
        if reply.status != 200 {
            holder(&reply);
            refused += 1;
            continue;
        }
        let id = reply.id();
        own.retain(|known| *known != id);
        own.push(id.clone());
        accepted.lock().unwrap().insert(id, reply.json());
    }
    refused
}

/// Which rental holds this vehicle on this night, as far as the answers tell.
fn expected_holder<'m>(model: &'m BTreeMap<String, Value>, vehicle: &str, night: &str) -> Option<&'m String> {
    let holds = |rental: &Value| {
        let (start, end) = nights(rental).unwrap_or_default();
        rental["vehicle_id"] == vehicle && start.as_str() <= night && night < end.as_str()
    };
    model.iter().find(|(_, rental)| holds(rental)).map(|(id, _)| id)
}

/// The model is what was answered. Then every night of every vehicle is asked for: one that a rental of the model holds is
/// refused in its name, and all others are free, also those that were held and given up.
#[test]
fn bookings_moves_and_cancellations_by_way_of_three_servers_leave_one_calendar() {
    let Some(servers) = three() else { return };
    for seed in 0..3_u64 {
        let all = everywhere(&servers, &servers[seed as usize].organization());
        let vehicles = [(); 3].map(|()| all[0].vehicle(json!({})));
        let customer = all[0].customer(json!({}));
        let (accepted, start) = (Mutex::default(), Barrier::new(CLIENTS as usize));
        let refused: usize = thread::scope(|scope| {
            let run = |number| {
                let (all, fleet, accepted, start) = (&all, (&vehicles[..], customer.as_str()), &accepted, &start);
                scope.spawn(move || {
                    start.wait();
                    client(seed * 1000 + number, all, fleet, accepted)
                })
            };
            let clients: Vec<_> = (0..CLIENTS).map(run).collect();
            clients.into_iter().map(|client| client.join().expect("a client ends")).sum()
        });
        let mut model: BTreeMap<String, Value> = accepted.into_inner().unwrap();
        assert!(model.len() > 20 && refused > 20, "seed {seed}: {} accepted, {refused} refused", model.len());
        let newest_first: Vec<Value> = model.values().rev().cloned().collect();
        assert_eq!(double_bookings(&newest_first), [], "seed {seed}");
        for organization in &all {
            assert_eq!(walk(organization, "rentals", "", 100), newest_first, "seed {seed}");
        }
        for (vehicle, day) in vehicles.iter().flat_map(|vehicle| (0..30).map(move |day| (vehicle, day))) {
            let night = march(day);
            let reply = book(&all[day as usize % 3], vehicle, &customer, (&night, &march(day + 1)));
            match expected_holder(&model, vehicle, &night) {
                Some(expected) => assert_eq!(holder(&reply), *expected, "seed {seed}: {vehicle} on {night}"),
                None => drop(model.insert(reply.id(), reply.json())),
            }
        }
    }
}
