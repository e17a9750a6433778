//! The requests of a history: what clients ask for, each under an idempotency key of its own.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

use crate::disk::Dice;
use rental_core::{
    error::Error,
    operations::{self, Create, Edge, Update, Written, idempotency::IdempotencyKey},
    resources::{self, Collection, invoice::Invoice, of, organization::Organization},
    store::Store,
    value::Timestamp,
};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use uuid::Uuid;

static INVOICES: Collection = of::<Invoice>().create().done();
static ORGANIZATIONS: Collection = of::<Organization>().create().done();

/// Times and ids of a history: both rise with every call.
#[derive(Debug, Default)]
pub(crate) struct Ticks(pub(crate) AtomicU64);

impl Ticks {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl Edge for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_777_973_400_000 + i64::try_from(self.next()).unwrap())
    }

    fn new_id(&self) -> Uuid {
        let tick = self.next();
        Uuid::from_u128((u128::from(1_777_973_400_000 + tick) << 80) | (0x7 << 76) | (0x2 << 62) | u128::from(tick))
    }
}

pub(crate) enum Act {
    Create,
    /// A change of the object with this id.
    Change(String),
}

/// One request with its idempotency key.
pub(crate) struct Request {
    pub(crate) organization: Organization,
    pub(crate) collection: &'static Collection,
    pub(crate) act: Act,
    pub(crate) body: String,
    pub(crate) key: IdempotencyKey,
}

impl Request {
    fn new(
        number: usize,
        organization: &Organization,
        collection: &'static Collection,
        act: Act,
        body: &serde_json::Value,
    ) -> Self {
        let (organization, body) = (organization.clone(), body.to_string());
        let key = IdempotencyKey::new(format!("request-{number}").as_bytes(), "POST", "/", body.as_bytes()).unwrap();
        Self { organization, collection, act, body, key }
    }

    /// The creation of an organization, by the operator.
    pub(crate) fn organization(number: usize, name: &str) -> Self {
        Self::new(number, &Organization::system(), &ORGANIZATIONS, Act::Create, &json!({"name": name}))
    }

    pub(crate) async fn perform(&self, store: &dyn Store, edge: &dyn Edge) -> Result<Written, Error> {
        let (collection, organization, body) = (self.collection, &self.organization, self.body.as_bytes());
        let render = |error: &Error| (409, json!({"error": format!("{error:?}")}).to_string().into());
        let (create, change);
        let intent: &dyn operations::Intent = match &self.act {
            Act::Create => {
                create = Create { collection, organization, body: body.into(), given: &[] };
                &create
            }
            Act::Change(id) => {
                change = Update { collection, organization, id, body: body.into(), expected: &|_| true };
                &change
            }
        };
        operations::write(store, edge, organization.id, Some(&self.key), intent, (200, &render)).await
    }

    /// The status that a change of a rental sends.
    pub(crate) fn sent_status(&self) -> Option<String> {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        let status = body["status"].as_str().map(str::to_owned);
        status.filter(|_| matches!(self.act, Act::Change(_)) && self.collection.spec.object == "rental")
    }
}

/// The objects of one organization that its clients know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) vehicles: Vec<String>,
    pub(crate) customers: Vec<String>,
    pub(crate) rentals: Vec<String>,
}

impl Known {
    pub(crate) fn learn(&mut self, object: &str, id: &str) {
        let ids = match object {
            "vehicle" => &mut self.vehicles,
            "customer" => &mut self.customers,
            "rental" => &mut self.rentals,
            _ => return,
        };
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
}

fn row(object: &str) -> &'static Collection {
    resources::api().find(|row| row.spec.object == object).unwrap()
}

fn one<'k>(ids: &'k [String], dice: &mut Dice) -> &'k str {
    &ids[dice.roll(ids.len())]
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

/// The next request of a client of `organization`, which knows these objects.
pub(crate) fn next(number: usize, organization: &Organization, known: &Known, dice: &mut Dice) -> Arc<Request> {
    let create = |object: &str, body| Request::new(number, organization, row(object), Act::Create, &body);
    let change = |object: &str, id: &str, body| {
        Request::new(number, organization, row(object), Act::Change(id.to_owned()), &body)
    };
    let status = |dice: &mut Dice| ["NEW", "APPROVED", "ACTIVE"][dice.roll(3)];
    Arc::new(match dice.roll(16) {
        _ if known.vehicles.is_empty() => create("vehicle", json!({"name": "White Tesla", "daily_rate": 89.5})),
        _ if known.customers.is_empty() => create("customer", json!({"full_name": "Ada Lovelace"})),
        0 if known.vehicles.len() < 3 => create("vehicle", json!({"name": text(dice)[..8], "plate": "ABC1234"})),
        0 | 1 => change("vehicle", one(&known.vehicles, dice), json!({"color": text(dice)[..8]})),
        2 => create("customer", json!({"full_name": "Grace Hopper", "notes": text(dice)})),
        3 | 4 => change("customer", one(&known.customers, dice), json!({"notes": text(dice)})),
        5 => create("lead", json!({"raw_data": {"message": text(dice).repeat(1 + dice.roll(4))}})),
        6 => {
            let body = json!({
                "customer_id": one(&known.customers, dice),
                "lines": [{"description": "Days", "amount": dice.roll(900)}],
            });
            Request::new(number, organization, &INVOICES, Act::Create, &body)
        }
        7..=9 if !known.rentals.is_empty() => {
            let status = ["NEW", "APPROVED", "ACTIVE", "COMPLETED", "CANCELLED"][dice.roll(5)];
            change("rental", one(&known.rentals, dice), json!({"status": status}))
        }
        10 | 11 if !known.rentals.is_empty() => {
            let (start, end) = days(dice);
            change("rental", one(&known.rentals, dice), json!({"start_date": start, "end_date": end}))
        }
        _ => {
            let (start, end) = days(dice);
            let (vehicle, customer) = (one(&known.vehicles, dice), one(&known.customers, dice));
            create(
                "rental",
                json!({"vehicle_id": vehicle, "customer_id": customer, "start_date": start, "end_date": end,
                    "status": status(dice)}),
            )
        }
    })
}
