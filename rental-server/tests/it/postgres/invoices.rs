//! Invoice numbers that three servers give out: none is missing, none comes twice.

use super::{everywhere, three};
use crate::{
    holds::race,
    support::{ADMIN_TOKEN, Connection, Reply, Server, rules::walk},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

const CLIENTS: usize = 12;
const STEPS: usize = 8;
const TOLLS: usize = 20;

fn bill(server: &Server, organization: &str, key: &str, body: &Value) -> Reply {
    let (path, token) = (format!("/admin/v1/organizations/{organization}/invoices"), format!("Bearer {ADMIN_TOKEN}"));
    let headers = [("Authorization", token.as_str()), ("Idempotency-Key", key)];
    Connection::open(&server.address).send("POST", &path, &headers, body.to_string().as_bytes())
}

/// Clients want the same tolls billed, so many are refused; each asks a second server the same.
#[test]
fn invoice_numbers_of_three_servers_have_no_gap_and_no_duplicate() {
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    let (here, customer) = (&all[0], all[0].customer(json!({})));
    let toll = |n| here.recorded("tolls", &json!({"amount": n, "agency": "MTAB&T", "customer_id": customer}));
    let tolls: Vec<String> = (1..=TOLLS).map(toll).collect();
    let (made, refused) = (Mutex::new(BTreeMap::new()), Mutex::new(0));
    race(CLIENTS, |client| {
        for step in 0..STEPS {
            let line = match (client + step) % 3 {
                0 => json!({"description": "Fee", "amount": 1}),
                1 => json!({"toll_id": tolls[(client * 5 + step * 3) % TOLLS]}),
                _ => json!({"toll_id": tolls[(step * 7) % TOLLS]}),
            };
            let (key, body) = (format!("{client}-{step}"), json!({"customer_id": customer, "lines": [line]}));
            let [first, again] = [0, 1].map(|n| bill(&servers[(client + step + n) % 3], &here.id, &key, &body));
            assert_eq!((first.status, &first.body), (again.status, &again.body));
            if first.status == 200 {
                made.lock().unwrap().insert(first.id(), first.json());
            } else {
                first.error(409, "invalid_request_error", "state_conflict");
                *refused.lock().unwrap() += 1;
            }
        }
    });
    let (made, refused) = (made.into_inner().unwrap(), refused.into_inner().unwrap());
    assert!(made.len() > CLIENTS && refused > CLIENTS, "{} made, {refused} refused", made.len());
    assert_eq!(made.len() + refused, CLIENTS * STEPS, "each answer is of an invoice of its own");
    let numbers: BTreeSet<&str> = made.values().map(|invoice| invoice["invoice_number"].as_str().unwrap()).collect();
    let expected: Vec<String> = (1..=made.len()).map(|number| format!("INV-{number:06}")).collect();
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), expected);
    let billed: Vec<&str> = made.values().filter_map(|invoice| invoice["lines"][0]["toll_id"].as_str()).collect();
    assert_eq!(billed.iter().collect::<BTreeSet<_>>().len(), billed.len(), "a toll is billed once");
    for organization in &all {
        let listed = walk(organization, "invoices", "", 30);
        assert_eq!(listed, made.values().rev().cloned().collect::<Vec<_>>());
    }
}
