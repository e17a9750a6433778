//! What the clients and operators of a history ask for next. Few vehicles, few days and few plates make them collide.

use crate::{
    disk::Dice,
    requests::{Act, Request},
};
use rental_core::resources::{
    self, Collection, api_key::ApiKey, credit_note::CreditNote, invoice::Invoice, invoice::Settlement, of,
    organization::Organization,
};
use serde_json::{Value, json};
use std::sync::Arc;

static API_KEYS: Collection = of::<ApiKey>().create().done();
static CREDIT_NOTES: Collection = of::<CreditNote>().create().done();
static INVOICES: Collection = of::<Invoice>().create().done();

/// The objects of one organization that its clients know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    vehicles: Vec<String>,
    customers: Vec<String>,
    rentals: Vec<String>,
    blocks: Vec<String>,
    invoices: Vec<String>,
    credit_notes: Vec<String>,
    /// Tolls and violations, and the customers who pay for them.
    charges: Vec<Charge>,
}

#[derive(Clone, Debug)]
struct Charge {
    object: String,
    id: String,
    customer: Option<String>,
}

impl Known {
    pub(crate) fn learn(&mut self, object: &Value) {
        let (Some(kind), Some(id)) = (object["object"].as_str(), object["id"].as_str()) else { return };
        let ids = match kind {
            "vehicle" => &mut self.vehicles,
            "customer" => &mut self.customers,
            "rental" => &mut self.rentals,
            "block" => &mut self.blocks,
            "invoice" => &mut self.invoices,
            "credit_note" => &mut self.credit_notes,
            "toll" | "violation" => {
                self.charges.retain(|charge| charge.id != id);
                let customer = object["customer_id"].as_str().map(str::to_owned);
                return self.charges.push(Charge { object: kind.into(), id: id.into(), customer });
            }
            _ => return,
        };
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
}

fn row(object: &str) -> &'static Collection {
    resources::api().find(|row| row.spec.object == object).expect("it is in the API")
}

fn recorded(object: &str) -> &'static Collection {
    resources::recorded().find(|row| row.spec.object == object).expect("operators record it")
}

fn one<'k, T>(known: &'k [T], dice: &mut Dice) -> &'k T {
    &known[dice.roll(known.len())]
}

/// Text of very different lengths, so that rows share pages, fill one, and need several.
fn text(dice: &mut Dice) -> String {
    let length = if dice.one_in(6) { dice.roll(9_000) } else { dice.roll(300) };
    "abcdefgh".repeat(length / 8 + 1)
}

/// First and last day of a rental. Few days and few vehicles, so that many requests want the same nights.
fn days(dice: &mut Dice) -> (String, String) {
    let (first, nights) = (1 + dice.roll(20), dice.roll(8));
    (format!("2026-06-{first:02}"), format!("2026-06-{:02}", first + nights))
}

/// Mostly the plate of the vehicle that is known at this place; sometimes that of another one, which gives it up.
fn plate(at: usize, dice: &mut Dice) -> String {
    format!("ABC{}", if dice.one_in(5) { dice.roll(3) } else { at })
}

/// The next request of a client of `organization`, or of an operator for it, which knows these objects.
pub(crate) fn next(number: usize, organization: &Organization, known: &Known, dice: &mut Dice) -> Arc<Request> {
    let about = if dice.one_in(2) { bookings(number, organization, known, dice) } else { None };
    let about = about.or_else(|| charges(number, organization, known, dice));
    Arc::new(about.unwrap_or_else(|| rental(number, organization, known, dice)))
}

/// The request at this place of the first ones: a customer has a vehicle, and the tolls of it are attached automatically.
pub(crate) fn first(number: usize, organization: &Organization, known: &Known, at: usize) -> Option<Arc<Request>> {
    let new = |collection, act, body| Some(Arc::new(Request::new(number, organization, collection, act, &body)));
    let toll = |day: u8| {
        let at = format!("2026-06-0{day}T16:00:00.000Z");
        new(recorded("toll"), Act::Create, json!({"amount": day, "agency": "MTA", "plate": "ABC0", "occurred_at": at}))
    };
    match at {
        0 => new(row("vehicle"), Act::Create, json!({"name": "White Tesla", "daily_rate": 89.5, "plate": "ABC0"})),
        1 => new(row("customer"), Act::Create, json!({"full_name": format!("Ada {number:05} Lovelace")})),
        2 => {
            let body = json!({"vehicle_id": known.vehicles[0], "customer_id": known.customers[0],
                "start_date": "2026-06-01", "end_date": "2026-06-09", "status": "ACTIVE"});
            new(row("rental"), Act::Create, body)
        }
        3 => toll(3),
        4 => toll(5),
        5 | 6 => new(row("toll"), Act::Release(known.charges[at - 5].id.clone()), json!({})),
        _ => None,
    }
}

/// A new rental, or what it needs.
fn rental(number: usize, organization: &Organization, known: &Known, dice: &mut Dice) -> Request {
    let create = |object: &str, body| Request::new(number, organization, row(object), Act::Create, &body);
    if known.vehicles.is_empty() {
        return create("vehicle", json!({"name": "White Tesla", "daily_rate": 89.5, "plate": plate(0, dice)}));
    }
    if known.customers.is_empty() {
        return create("customer", json!({"full_name": format!("Ada {number:05} Lovelace")}));
    }
    let (start, end) = days(dice);
    let (vehicle, customer) = (one(&known.vehicles, dice), one(&known.customers, dice));
    let status = ["NEW", "APPROVED", "ACTIVE", "ACTIVE"][dice.roll(4)];
    let body =
        json!({"vehicle_id": vehicle, "customer_id": customer, "start_date": start, "end_date": end, "status": status});
    create("rental", body)
}

/// What the API's clients do with the fleet. None when it is about an object that they do not know.
fn bookings(number: usize, organization: &Organization, known: &Known, dice: &mut Dice) -> Option<Request> {
    let create = |object: &str, body| Some(Request::new(number, organization, row(object), Act::Create, &body));
    let change = |object: &str, ids: &[String], dice: &mut Dice, body| {
        let id = (!ids.is_empty()).then(|| one(ids, dice))?;
        Some(Request::new(number, organization, row(object), Act::Change(id.clone()), &body))
    };
    match dice.roll(16) {
        0 if known.vehicles.len() < 3 => {
            create("vehicle", json!({"name": text(dice)[..8], "plate": plate(known.vehicles.len(), dice)}))
        }
        0 => {
            let body = json!({"color": text(dice)[..8]});
            change("vehicle", &known.vehicles, dice, body)
        }
        1 | 2 if !known.vehicles.is_empty() => {
            let at = dice.roll(known.vehicles.len());
            let body = json!({"plate": plate(at, dice), "transponder_number": format!("0041234567{}", dice.roll(3))});
            change("vehicle", &known.vehicles[at..=at], dice, body)
        }
        3 => create("customer", json!({"full_name": format!("Grace {number:05} Hopper"), "notes": text(dice)})),
        4 | 5 => {
            let body = json!({"notes": format!("note {number:05} {}", text(dice))});
            change("customer", &known.customers, dice, body)
        }
        6 => create("lead", json!({"raw_data": {"message": text(dice).repeat(1 + dice.roll(4))}})),
        7..=9 => {
            let status = ["NEW", "APPROVED", "ACTIVE", "ACTIVE", "COMPLETED", "CANCELLED"][dice.roll(6)];
            change("rental", &known.rentals, dice, json!({"status": status}))
        }
        10 | 11 => {
            let (start, end) = days(dice);
            change("rental", &known.rentals, dice, json!({"start_date": start, "end_date": end}))
        }
        12 if !known.vehicles.is_empty() => {
            let (start, end) = days(dice);
            create("block", json!({"vehicle_id": one(&known.vehicles, dice), "start_date": start, "end_date": end}))
        }
        13 => {
            let status = if dice.one_in(3) { "active" } else { "cancelled" };
            change("block", &known.blocks, dice, json!({"status": status}))
        }
        _ => Some(rental(number, organization, known, dice)),
    }
}

/// What operators do: tolls and violations, invoices and credit notes, keys, erasing. None when it is about an object that
/// they do not know.
fn charges(number: usize, organization: &Organization, known: &Known, dice: &mut Dice) -> Option<Request> {
    let request = |collection, act, body| Some(Request::new(number, organization, collection, act, &body));
    let id = |ids: &[String], dice: &mut Dice| (!ids.is_empty()).then(|| one(ids, dice).clone());
    let amount = 1 + dice.roll(50);
    match dice.roll(24) {
        0 | 1 => {
            let at = format!("2026-06-{:02}T{:02}:00:00.000Z", 1 + dice.roll(24), dice.roll(24));
            let body =
                json!({"amount": amount, "agency": "MTA", "plate": plate(dice.roll(3), dice), "occurred_at": at});
            request(recorded("toll"), Act::Create, body)
        }
        2 => {
            let body = json!({"summons_number": format!("S-{}", dice.roll(40)), "amount_due": amount,
                "plate": plate(dice.roll(3), dice), "issue_date": format!("06/{:02}/2026", 1 + dice.roll(24))});
            request(recorded("violation"), Act::Create, body)
        }
        3 | 4 if !known.charges.is_empty() => {
            let charge = one(&known.charges, dice);
            let body = json!({"customer_id": id(&known.customers, dice)?});
            request(row(&charge.object), Act::Change(charge.id.clone()), body)
        }
        5..=8 if !known.charges.is_empty() => {
            let charge = one(&known.charges, dice);
            request(row(&charge.object), Act::Release(charge.id.clone()), json!({}))
        }
        9..=11 => {
            let mut lines = vec![json!({"description": "Days", "amount": amount})];
            let charge = known.charges.iter().filter(|charge| charge.customer.is_some()).nth(dice.roll(4));
            if let Some(charge) = charge {
                let member = format!("{}_id", charge.object);
                lines.push(json!({member: charge.id}));
            }
            let customer = charge.and_then(|charge| charge.customer.clone()).or_else(|| id(&known.customers, dice))?;
            request(&INVOICES, Act::Create, json!({"customer_id": customer, "lines": lines}))
        }
        13 if dice.one_in(2) => {
            request(&INVOICES, Act::Settle(id(&known.invoices, dice)?, Settlement::Void), json!({}))
        }
        12 | 13 => request(&INVOICES, Act::Settle(id(&known.invoices, dice)?, Settlement::Paid(None)), json!({})),
        14..=17 => {
            let mut body = json!({"invoice_id": id(&known.invoices, dice)?, "rebill": dice.one_in(2)});
            if dice.one_in(2) {
                body["lines"] = json!([{"line": usize::from(dice.one_in(3)), "amount": 1 + dice.roll(9)}]);
            }
            request(&CREDIT_NOTES, Act::Create, body)
        }
        18 | 23 => request(&CREDIT_NOTES, Act::Refund(id(&known.credit_notes, dice)?), json!({})),
        19 => {
            let mut random = [0; 32];
            random.iter_mut().for_each(|byte| *byte = dice.roll(256) as u8);
            let body = json!({"organization_id": organization.id, "name": text(dice)[..8], "scope": "read"});
            Some(Request::new(number, &Organization::system(), &API_KEYS, Act::Issue(random), &body))
        }
        20 | 22 if number > 20 && known.customers.len() > 2 => {
            request(row("customer"), Act::Erase(id(&known.customers, dice)?), json!({}))
        }
        21 => request(row("lead"), Act::CreateDaysAgo, json!({"raw_data": text(dice)})),
        _ => None,
    }
}
