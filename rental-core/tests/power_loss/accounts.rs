//! What the rows of a store mean for each other: nights, money, numbers, keys, transponders and plates, and nothing personal
//! of who was erased. Read from the records alone.

use crate::{
    judge::{Erased, Response, parse},
    requests::{Act, Request},
};
use rental_core::{
    erasing::task_id,
    operations::api_keys::{key_hash, open_entry},
    resources::{assignment, block, credit_note, invoice, rental, toll, vehicle, violation},
    rows::{Row, key},
    schema::ResourceSpec,
    store::{Key, Record},
    value::{CustomerId, OrganizationId},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use uuid::Uuid;

/// The objects of a resource, each with its organization.
fn all<T: DeserializeOwned>(rows: &[Record], spec: &ResourceSpec) -> Result<Vec<(OrganizationId, T)>, String> {
    let of = |row: &Record| match Row::decode(&row.key) {
        Some(Row::Record { organization, resource, .. }) if resource == spec.tag => Some(organization),
        _ => None,
    };
    rows.iter().filter_map(|row| Some((of(row)?, row))).map(|(owner, row)| Ok((owner, parse(row)?))).collect()
}

fn find<'r>(rows: &'r [Record], key: &Key) -> Option<&'r Record> {
    rows.binary_search_by(|row| row.key.cmp(key)).ok().map(|at| &rows[at])
}

/// No two rentals or blocks hold a vehicle on one night. Does not read the rows of the holds.
pub(crate) fn no_night_twice(rows: &[Record]) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Holder {
        id: Uuid,
        vehicle_id: Option<Uuid>,
        status: Option<String>,
        start_date: Option<String>,
        end_date: Option<String>,
    }
    let mut held: BTreeMap<Uuid, Vec<(String, String, Uuid)>> = BTreeMap::new();
    for (_, holder) in [all::<Holder>(rows, &rental::SPEC)?, all(rows, &block::SPEC)?].into_iter().flatten() {
        let holds = matches!(holder.status.as_deref(), Some("APPROVED" | "ACTIVE" | "active"));
        if let (true, Some(vehicle), Some(start), Some(end)) =
            (holds, holder.vehicle_id, holder.start_date, holder.end_date)
        {
            // What ends on the day on which it begins holds that day: its end follows the day's text.
            let end = if end == start { format!("{end}+") } else { end };
            held.entry(vehicle).or_default().push((start, end, holder.id));
        }
    }
    for (vehicle, mut nights) in held {
        nights.sort();
        if let Some(pair) = nights.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            return Err(format!("holders overlap: two hold vehicle {vehicle} on one night: {pair:?}"));
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Invoice {
    id: Uuid,
    invoice_number: String,
    status: String,
    lines: Vec<Line>,
    amount_credited: u64,
    credit_note_ids: BTreeSet<Uuid>,
}

#[derive(Deserialize)]
struct CreditNote {
    id: Uuid,
    credit_note_number: String,
    invoice_id: Uuid,
    lines: Vec<Line>,
    refunded_at: Option<String>,
}

/// A line of an invoice or of a credit note.
#[derive(Deserialize)]
struct Line {
    amount: u64,
    toll_id: Option<Uuid>,
    violation_id: Option<Uuid>,
    /// Of a credit note: the line of the invoice, and whether what it bills can be billed again.
    line: Option<usize>,
    rebill: Option<bool>,
}

impl Line {
    fn source(&self) -> Option<Uuid> {
        self.toll_id.or(self.violation_id)
    }
}

/// What invoices bill and credit notes give back adds up, and both are numbered without gaps.
pub(crate) fn accounts(rows: &[Record]) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Charge {
        id: Uuid,
        amount_billed: u64,
        amount: Option<u64>,
    }
    let invoices: Vec<(OrganizationId, Invoice)> = all(rows, &invoice::SPEC)?;
    let notes: Vec<(OrganizationId, CreditNote)> = all(rows, &credit_note::SPEC)?;
    numbers(invoices.iter().map(|(owner, invoice)| (*owner, &*invoice.invoice_number)))?;
    numbers(notes.iter().map(|(owner, note)| (*owner, &*note.credit_note_number)))?;
    let mut billed: BTreeMap<Uuid, i64> = BTreeMap::new();
    let mut bill = |source: Option<Uuid>, amount: i64| {
        source.into_iter().for_each(|source| *billed.entry(source).or_default() += amount);
    };
    for (_, invoice) in invoices.iter().filter(|(_, invoice)| invoice.status != "void") {
        invoice.lines.iter().for_each(|line| bill(line.source(), line.amount as i64));
    }
    for (_, invoice) in &invoices {
        let of = || notes.iter().map(|(_, note)| note).filter(|note| note.invoice_id == invoice.id);
        let mut left: Vec<u64> = invoice.lines.iter().map(|line| line.amount).collect();
        for line in of().flat_map(|note| &note.lines) {
            let place = line.line.and_then(|line| left.get_mut(line));
            let place = place.ok_or_else(|| format!("a credit note of {} has no line of it", invoice.id))?;
            let rest = place.checked_sub(line.amount);
            *place = rest.ok_or_else(|| format!("a line of invoice {} is credited twice", invoice.id))?;
            if line.rebill == Some(true) {
                bill(line.source(), -(line.amount as i64));
            }
        }
        let credited: u64 = of().flat_map(|note| &note.lines).map(|line| line.amount).sum();
        let listed: BTreeSet<Uuid> = of().map(|note| note.id).collect();
        if credited != invoice.amount_credited || listed != invoice.credit_note_ids {
            return Err(format!("invoice {} does not say what is credited of it: {credited}, {listed:?}", invoice.id));
        }
        if invoice.status != "paid" && of().any(|note| note.refunded_at.is_some()) {
            return Err(format!("the money of invoice {} was given back, and it is not paid", invoice.id));
        }
    }
    for (_, charge) in [all::<Charge>(rows, &toll::SPEC)?, all(rows, &violation::SPEC)?].into_iter().flatten() {
        let (says, is) = (charge.amount_billed, billed.get(&charge.id).copied().unwrap_or_default());
        if says as i64 != is || charge.amount.is_some_and(|amount| says > amount) {
            return Err(format!("{} says that {says} of it is billed, and invoices bill {is}", charge.id));
        }
    }
    Ok(())
}

fn numbers<'r>(of: impl Iterator<Item = (OrganizationId, &'r str)>) -> Result<(), String> {
    let mut numbers: BTreeMap<OrganizationId, Vec<&str>> = BTreeMap::new();
    of.for_each(|(owner, number)| numbers.entry(owner).or_default().push(number));
    for (owner, mut all) in numbers {
        all.sort_unstable();
        let number = |text: &str| text.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
        if !all.iter().copied().map(number).eq((1..=all.len()).map(Some)) {
            return Err(format!("numbers of {owner} have a gap, or two are equal: {all:?}"));
        }
    }
    Ok(())
}

/// The dated list of a vehicle, if it has one, has its plate and transponder without an end, and nothing else without one.
pub(crate) fn assignments(rows: &[Record]) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Vehicle {
        id: Uuid,
        plate: Option<String>,
        transponder_number: Option<String>,
    }
    #[derive(Deserialize)]
    struct List {
        vehicle_id: Uuid,
        assignments: Vec<Assignment>,
    }
    #[derive(Deserialize)]
    struct Assignment {
        number: String,
        to: Option<String>,
    }
    let lists: Vec<(OrganizationId, List)> = all(rows, &assignment::SPEC)?;
    for (owner, vehicle) in all::<Vehicle>(rows, &vehicle::SPEC)? {
        let mut own: Vec<&str> =
            [&vehicle.plate, &vehicle.transponder_number].into_iter().filter_map(|it| it.as_deref()).collect();
        let mut of = lists.iter().filter(|(of, list)| *of == owner && list.vehicle_id == vehicle.id);
        let Some((_, list)) = of.next() else { continue };
        let mut open: Vec<&str> =
            list.assignments.iter().filter(|one| one.to.is_none()).map(|one| &*one.number).collect();
        own.sort_unstable();
        open.sort_unstable();
        if own != open || of.next().is_some() {
            return Err(format!("vehicle {} has {own:?}, and its assignments say {open:?}", vehicle.id));
        }
    }
    Ok(())
}

/// Each key that was shown to somebody leads to its record.
pub(crate) fn keys(rows: &[Record], requests: &[Arc<Request>], promised: &[&Response]) -> Result<(), String> {
    for response in promised {
        let request = &requests[response.request];
        if !matches!(request.act, Act::Issue(_)) || response.status != 200 {
            continue;
        }
        let hash = key_hash(&request.new_key().text).ok_or("a key is no key")?;
        let found = find(rows, &key::access(&hash)).and_then(|row| open_entry(&row.value, &hash));
        let object: Value = serde_json::from_str(&response.body).map_err(|error| error.to_string())?;
        if found.is_none_or(|id| Some(&*id.to_string()) != object["id"].as_str()) {
            return Err(format!("request {} was acknowledged, and its key opens {found:?}", response.request));
        }
    }
    Ok(())
}

/// Once the task that erases a customer is done, no row has what was personal about the customer.
pub(crate) fn personal_data(rows: &[Record], promised: &[&Response], erased: &Erased) -> Result<(), String> {
    for id in &erased.0 {
        let customer = CustomerId::from_uuid(id.parse().map_err(|_| format!("{id} is no id"))?);
        if find(rows, &key::task(task_id(customer))).is_some() {
            continue;
        }
        for response in promised {
            let object: Value = serde_json::from_str(&response.body).map_err(|error| error.to_string())?;
            if object["id"].as_str() != Some(id) || object["object"] != "customer" || !object["erased_at"].is_null() {
                continue;
            }
            let personal = ["full_name", "notes"].map(|field| object[field].as_str().unwrap_or_default());
            // Names and first words of notes have a number of their own.
            let marks = personal.into_iter().filter_map(|text| text.get(..11).filter(|mark| mark.contains(" 0")));
            for mark in marks {
                let row = rows.iter().find(|row| String::from_utf8_lossy(&row.value).contains(mark));
                if let Some(row) = row {
                    return Err(format!("customer {id} is erased, and {:?} has {mark:?}", row.key));
                }
            }
        }
    }
    Ok(())
}
