//! `--demo`: a sample fleet in a temporary store, written by the same operations as requests.

mod data;

use crate::{
    edge::{self, FixedClock},
    fleet_api,
    operator::{api_keys, operators, organizations::ORGANIZATIONS, records},
    state::App,
};
use bytes::Bytes;
use data::{ADDRESSES, CHANNELS, FIRST_NAMES, LANGUAGES, LAST_NAMES, TOLLS, VEHICLES, VIOLATIONS};
use futures_util::future::join_all;
use rental_core::{
    error::Error,
    operations::{self, Create, Edge, Intent, Settle, Update},
    request::page,
    resources::{Collection, api_key, invoice::Settlement, operator, organization::Organization},
    schema::ResourceSpec,
    value::{Date, Timestamp},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};
use uuid::Uuid;

/// A temporary directory. It is removed when the process shuts down gracefully.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Result<Self, String> {
        let made = tempfile::Builder::new().prefix("rental-demo-").tempdir();
        made.map(Self).map_err(|error| format!("cannot make a temporary directory: {error}"))
    }

    pub(crate) fn store_url(&self) -> String {
        format!("redb:{}", self.0.path().join("demo.redb").display())
    }
}

/// Fills the store and prints how to use it.
pub(crate) async fn fill(app: &Arc<App>, base: &str, token: &str) -> Result<(), String> {
    let explain = |error: Error| format!("cannot make the sample data: {error:?}");
    let (organization, write_key) = seed(app).await.map_err(explain)?;
    let read_key =
        api_keys::issue(app, &organization, "read", "Demo, read only", &FixedClock::new()).await.map_err(explain)?;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(
        out,
        "rental-server {version}: demo data in a temporary store; Ctrl-C removes it

  base URL         {base}
  docs             {base}/docs
  organization     {id}  ({name})
  read_write key   {write_key}
  read key         {read_key}
  admin token      {token}

Try it:

  curl -s '{base}/v1/rentals?status=ACTIVE&limit=3' -H 'Authorization: Bearer {write_key}'

For the examples of the README and for rental-cli, paste this in another terminal:

  export RENTAL_BASE_URL={base} RENTAL_API_KEY={write_key} RENTAL_ADMIN_TOKEN={token} RENTAL_ORGANIZATION={id}
",
        version = env!("CARGO_PKG_VERSION"),
        id = organization.id,
        name = organization.name,
    );
    let _ = out.flush();
    Ok(())
}

async fn seed(app: &App) -> Result<(Organization, String), Error> {
    let system = Seed { app, organization: Organization::system() };
    let made = system.create(Some(ORGANIZATIONS), vec![json!({"name": "Sunrise Rentals (demo)"})]).await?;
    let organization = Organization::deserialize(&made[0]).map_err(|error| Error::Internal(error.to_string()))?;
    let key = api_keys::issue(app, &organization, "read_write", "Demo", &FixedClock::new()).await?;
    let documented = Ids::documented(&api_key::SPEC)?;
    api_keys::issue(app, &organization, "read", "Example of the documentation", &documented).await?;
    operators::issue(app, "read_only", "Example of the documentation", &Ids::documented(&operator::SPEC)?).await?;
    let seed = Seed { app, organization };
    let today = today();
    let vehicles = seed.create(fleet_api::collection("vehicle"), (0..VEHICLES.len()).map(vehicle).collect()).await?;
    let customers = seed.create(fleet_api::collection("customer"), (0..200).map(customer).collect()).await?;
    let rentals =
        (0..400).map(|n| rental(n, &vehicles[n % vehicles.len()], &customers[(n * 37 + 11) % customers.len()], today));
    let rentals = seed.create(fleet_api::collection("rental"), rentals.collect()).await?;
    for rental in rentals.iter().filter(|rental| rental["status"] == "ACTIVE") {
        seed.hand_over(text(rental, "vehicle_id")).await?;
    }
    let ended: Vec<&Value> = rentals.iter().filter(|rental| rental["status"] == "COMPLETED").collect();
    let bills = ended.iter().rev().take(90).rev().map(|rental| invoice(rental, &vehicles)).collect();
    let bills = seed.create(records::collection("invoice"), bills).await?;
    for (at, bill) in bills.iter().enumerate().filter(|(at, _)| at % 4 != 0) {
        let how = if at % 20 == 1 { Settlement::Void } else { Settlement::Paid(None) };
        let settle = Settle { organization: &seed.organization, id: text(bill, "id"), how };
        seed.perform(&settle, &FixedClock::new()).await?;
    }
    let credited = bills.iter().enumerate().find(|(at, _)| at % 4 != 0 && at % 20 != 1).map(|(_, bill)| bill);
    let credit = |bill: &Value| json!({"invoice_id": bill["id"], "lines": [{"line": 0, "amount": 25}], "reason": "Returned early"});
    seed.create(records::collection("credit_note"), credited.map(credit).into_iter().collect()).await?;
    let tolls = (0..150).map(|n| toll(n, ended[(n * 7) % ended.len()], &vehicles)).collect();
    seed.create(records::collection("toll"), tolls).await?;
    let violations = (0..40).map(|n| violation(n, ended[(n * 13 + 5) % ended.len()], &vehicles)).collect();
    seed.create(records::collection("violation"), violations).await?;
    let lead =
        json!({"source_channel": "website", "raw_data": {"message": "Need an SUV for five days in June", "party": 5}});
    seed.create(fleet_api::collection("lead"), vec![lead]).await?;
    // After all rentals of the vehicle in the workshop.
    let block = json!({
        "vehicle_id": vehicles[10]["id"], "start_date": day(today + 90), "end_date": day(today + 97), "reason": "maintenance",
        "notes": "Yearly inspection",
    });
    seed.create(fleet_api::collection("block"), vec![block]).await?;
    Ok((seed.organization, key))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}

/// Writes the sample data of one organization.
struct Seed<'a> {
    app: &'a App,
    organization: Organization,
}

impl Seed<'_> {
    /// Creates objects in the order of the bodies. Many at once share a commit. The first one has the id that the
    /// examples of the documentation use, so that they work when pasted.
    async fn create(&self, collection: Option<&Collection>, bodies: Vec<Value>) -> Result<Vec<Value>, Error> {
        let collection = collection.ok_or_else(|| Error::Internal("no such collection".into()))?;
        let make = async |body: &Value, ids: Ids| {
            let body = body.to_string();
            let (organization, body) = (&self.organization, (&body).into());
            self.perform(&Create { collection, organization, body, given: &[] }, &ids).await
        };
        let mut made = Vec::with_capacity(bodies.len());
        let (first, rest) = bodies.split_at(bodies.len().min(1));
        for body in first {
            made.push(make(body, Ids::documented(collection.spec)?).await?);
        }
        for chunk in rest.chunks(50) {
            for object in join_all(chunk.iter().map(|body| make(body, Ids::default()))).await {
                made.push(object?);
            }
        }
        Ok(made)
    }

    /// Sets the status of a vehicle that a customer has to `rented`.
    async fn hand_over(&self, id: &str) -> Result<Value, Error> {
        let collection = fleet_api::collection("vehicle").ok_or_else(|| Error::Internal("no vehicles".into()))?;
        let (organization, body) = (&self.organization, br#"{"status":"rented"}"#.into());
        self.perform(&Update { collection, organization, id, body, expected: &|_| true }, &FixedClock::new()).await
    }

    async fn perform(&self, intent: &dyn Intent, edge: &dyn Edge) -> Result<Value, Error> {
        let render = |_: &Error| (500, Bytes::new());
        let (store, organization) = (self.app.store(), self.organization.id);
        let written = operations::write(store, edge, organization, None, intent, (200, &render)).await?;
        rental_core::value::read_json(&written.body).map_err(|error| Error::Internal(error.to_string()))
    }
}

/// Gives a chosen id first, if there is one, and new ids after it.
struct Ids {
    first: Mutex<Option<Uuid>>,
    rest: FixedClock,
}

impl Default for Ids {
    fn default() -> Self {
        Self { first: Mutex::default(), rest: FixedClock::new() }
    }
}

impl Ids {
    /// The first id is that of the documentation's example.
    fn documented(spec: &ResourceSpec) -> Result<Self, Error> {
        let example: Option<String> = spec.field("id").and_then(|field| serde_json::from_str(field.example).ok());
        let id =
            example.and_then(|text| page::id(&text)).ok_or_else(|| Error::Internal("an example is no id".into()))?;
        Ok(Self { first: Mutex::new(Some(id)), ..Self::default() })
    }
}

impl Edge for Ids {
    fn now(&self) -> Timestamp {
        self.rest.now()
    }

    fn new_id(&self) -> Uuid {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.unwrap_or_else(|| self.rest.new_id())
    }
}

fn today() -> u32 {
    Date::parse(&edge::now().to_string()[..10]).map_or(0, Date::day_number)
}

fn day(number: u32) -> String {
    Date::from_day_number(number).map_or_else(String::new, |date| date.to_string())
}

fn plate(n: usize) -> String {
    format!(
        "K{}{} {:04}",
        char::from(b'A' + (n % 26) as u8),
        char::from(b'A' + (n * 7 % 26) as u8),
        (n * 1237 + 1042) % 10_000
    )
    .replace(' ', "")
}

fn tag(n: usize) -> String {
    format!("004{:08}", 12_345_678 + n * 7919)
}

fn vehicle(n: usize) -> Value {
    let (name, make, model, year, color, rate, deposit) = VEHICLES[n];
    let number = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    json!({
        "name": name, "make": make, "model": model, "year": year, "color": color, "plate": plate(n), "transponder_number": tag(n),
        "turo_listing_id": if n.is_multiple_of(3) { json!((1_100_000 + n * 3571).to_string()) } else { Value::Null },
        "daily_rate": number(rate), "deposit_amount": number(deposit),
        "status": match n { 10 => "maintenance", 24 => "unavailable", _ => "available" },
    })
}

fn customer(n: usize) -> Value {
    let (first, last) = (FIRST_NAMES[n % FIRST_NAMES.len()], LAST_NAMES[n / FIRST_NAMES.len()]);
    json!({
        "full_name": format!("{first} {last}"),
        "email": format!("{}.{}@example.com", first.to_lowercase(), last.to_lowercase()),
        "phone": format!("+1212555{:04}", 100 + n),
        "preferred_language": LANGUAGES[n % LANGUAGES.len()],
        "source_channel": CHANNELS[n % CHANNELS.len()],
    })
}

/// Each vehicle has sixteen rentals, one after another, from five months ago to next month. The date decides the
/// status.
fn rental(n: usize, vehicle: &Value, customer: &Value, today: u32) -> Value {
    let (car, turn) = ((n % VEHICLES.len()) as u32, (n / VEHICLES.len()) as u32);
    let start = today - 150 + turn * 12 + car % 5;
    let end = start + 2 + (car * 5 + turn * 3) % 8;
    let status = match () {
        () if end < today && (n * 7).is_multiple_of(9) => "CANCELLED",
        () if end < today => "COMPLETED",
        () if start <= today => "ACTIVE",
        () if start < today + 14 => "APPROVED",
        () => "NEW",
    };
    let delivery = n.is_multiple_of(5);
    json!({
        "customer_id": customer["id"], "vehicle_id": vehicle["id"], "start_date": day(start), "end_date": day(end), "status": status,
        "booking_id": if n.is_multiple_of(3) { json!(format!("TURO-{}", 40_000_000 + n * 317)) } else { Value::Null },
        "pickup_type": if delivery { "delivery" } else { "pickup" },
        "delivery_location": if delivery { json!(ADDRESSES[n / 5 % ADDRESSES.len()]) } else { Value::Null },
    })
}

fn place_of(rental: &Value, vehicles: &[Value]) -> usize {
    vehicles.iter().position(|vehicle| vehicle["id"] == rental["vehicle_id"]).unwrap_or(0)
}

fn invoice(rental: &Value, vehicles: &[Value]) -> Value {
    let name = text(&vehicles[place_of(rental, vehicles)], "name");
    let line =
        json!({"description": format!("{} nights, {name}", rental["rental_days"]), "amount": rental["final_price"]});
    json!({"customer_id": rental["customer_id"], "rental_id": rental["id"], "lines": [line]})
}

fn during(rental: &Value, n: usize) -> u32 {
    let start = Date::parse(text(rental, "start_date")).map_or(0, Date::day_number);
    let nights = rental["rental_days"].as_u64().and_then(|nights| u32::try_from(nights).ok()).unwrap_or(1);
    start + n as u32 % nights.max(1)
}

fn toll(n: usize, rental: &Value, vehicles: &[Value]) -> Value {
    let (agency, plaza, amount) = TOLLS[n % TOLLS.len()];
    let car = place_of(rental, vehicles);
    let amount: Value = serde_json::from_str(amount).unwrap_or(Value::Null);
    json!({
        "amount": amount, "agency": agency, "plaza": plaza, "vehicle_id": rental["vehicle_id"],
        "customer_id": if n % 5 < 3 { rental["customer_id"].clone() } else { Value::Null },
        "transaction_id": (61_230_000_000_u64 + n as u64 * 104_729).to_string(),
        "occurred_at": format!("{}T{:02}:{:02}:00Z", day(during(rental, n)), 6 + n % 17, n * 7 % 60),
        "plate": plate(car), "plate_state": "NY", "transponder_number": tag(car),
    })
}

fn violation(n: usize, rental: &Value, vehicles: &[Value]) -> Value {
    let (what, fine, agency) = VIOLATIONS[n % VIOLATIONS.len()];
    let fine: u64 = fine.parse().unwrap_or(0);
    let penalty = if n.is_multiple_of(4) { 25 } else { 0 };
    let paid = if n % 6 == 5 { fine + penalty } else { 0 };
    let date = day(during(rental, n));
    json!({
        "summons_number": (4_630_000_000_u64 + n as u64 * 15_485).to_string(), "amount_due": fine + penalty - paid,
        "vehicle_id": rental["vehicle_id"], "customer_id": if n.is_multiple_of(2) { rental["customer_id"].clone() } else { Value::Null },
        "plate": plate(place_of(rental, vehicles)), "state": "NY",
        "issue_date": format!("{}/{}/{}", &date[5..7], &date[8..], &date[..4]),
        "issued_on": date, "violation_time": format!("{:02}:{:02}{}", 1 + n % 11, n * 17 % 60, if n.is_multiple_of(2) { "A" } else { "P" }),
        "violation": what, "fine_amount": fine, "penalty_amount": penalty, "interest_amount": 0, "reduction_amount": 0,
        "payment_amount": paid, "issuing_agency": agency,
    })
}
