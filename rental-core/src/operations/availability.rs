//! Which vehicles are available on some nights (`docs/decisions.md`, "Availability").
//!
//! A vehicle is available when no rental and no block holds it on one of the nights, when no customer has it by the timeline of
//! its possessions, and when its status lets it be rented. A few reads of many ranges answer for up to 500 vehicles. The result is a
//! hint: another request can hold the vehicle after it. The POST of the rental checks the holds again.

use super::holds::{classes_in_use, read, starts_within};
use crate::{
    error::Error,
    fleet::vehicles_still_out,
    request::{
        nights::{Asked, AvailabilityQuery},
        page,
    },
    resources::{
        organization::Organization,
        rental::{VehicleOut, vehicle_out, vehicles_out},
        vehicle::{self, VehicleStatus},
    },
    rows::key,
    schema::Hold,
    store::{Key, Record, Span, Store, after, all_sound},
    value::{Id, Timestamp, VehicleId},
};
use bytes::Bytes;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};

/// Most vehicles that a page examines.
const MOST_EXAMINED: usize = 500;
/// Vehicles that a page examines for each object that it may show.
const EXAMINED_FOR_EACH: usize = 5;
/// Vehicles that a page examines at least, so that a small page is rarely empty while more follow.
const LEAST_EXAMINED: usize = 100;
/// Most entries of vehicles that are out which a page reads. It examines fewer vehicles when there are more.
const MOST_OUT: usize = 1000;
/// Holds of one range in the first read. A range that has more of them is read on.
const FIRST_HOLDS: usize = 4;
/// Holds of one range in each further read.
const MORE_HOLDS: usize = 64;

/// Reads a page of the vehicles that are available, newest first, and returns the list response.
///
/// # Errors
/// The store is not available.
pub async fn available(
    store: &dyn Store,
    organization: &Organization,
    query: &AvailabilityQuery,
    now: Timestamp,
) -> Result<Bytes, Error> {
    let Some(mut examined) = examine(store, organization, query, now).await? else { return Ok(page::list(&[], None)) };
    let taken = taken(store, organization, &examined.candidates, query).await?;
    examined.vehicles.retain(|(id, _)| examined.candidates.contains_key(id) && !taken.contains(id));
    let shown = examined.vehicles.len().min(query.limit);
    // A full page ends at its last object. A page that is not full has examined all of its vehicles.
    let next = match examined.vehicles.get(shown) {
        Some(_) => examined.vehicles.get(shown - 1).map(|(id, _)| *id),
        None => examined.next,
    };
    let records: Vec<Record> = examined.vehicles.into_iter().take(shown).map(|(_, record)| record).collect();
    Ok(page::list(&records, next.map(|id| id.to_string()).as_deref()))
}

/// The vehicles of a page before their holds are read.
struct Examined {
    /// All of them, newest first.
    vehicles: Vec<(VehicleId, Record)>,
    /// Those that can be available, with the bits of their calendars.
    candidates: HashMap<VehicleId, u32>,
    /// The last one, if more vehicles follow.
    next: Option<VehicleId>,
}

/// Reads the vehicles of a page, their calendars, and which of them are out. `None` when no vehicle can match.
async fn examine(
    store: &dyn Store,
    organization: &Organization,
    query: &AvailabilityQuery,
    now: Timestamp,
) -> Result<Option<Examined>, Error> {
    let most = (query.limit * EXAMINED_FOR_EACH).clamp(LEAST_EXAMINED, MOST_EXAMINED);
    let within = |prefix: Key| match (query.vehicle, query.starting_after) {
        (Some(Asked::Nothing), _) => None,
        (Some(Asked::Id(id)), after_id) if after_id.is_none_or(|after| id.uuid() < after) => {
            let one = key::entry(&prefix, id.uuid());
            Some(Span { to: after(&one), ..Span::newest_first(&one) })
        }
        (Some(Asked::Id(_)), _) => None,
        (None, Some(after)) => Some(Span::newest_first(&prefix).before_id(&prefix, after)),
        (None, None) => Some(Span::newest_first(&prefix)),
    };
    let id = organization.id;
    let prefixes = [key::records(id, &vehicle::SPEC), key::calendars(id), vehicles_out(id)];
    let [Some(vehicles), Some(calendars), Some(out)] = prefixes.map(within) else { return Ok(None) };
    let scans = [(vehicles, most + 1), (calendars, most + 1), (out, MOST_OUT)];
    let mut found = store.scan_each(&scans).await?.into_iter();
    let mut next = || all_sound(found.next().unwrap_or_default());
    let (mut vehicles, calendars, out) = (next()?, next()?, next()?);
    let mut more = vehicles.len() > most;
    vehicles.truncate(most);
    let mut out: Vec<VehicleOut> = out.iter().filter_map(|entry| vehicle_out(&entry.key)).collect();
    if out.len() == MOST_OUT
        && let Some(VehicleOut { vehicle: last, .. }) = out.last()
    {
        // Of the vehicles after this one it is not known whether they are out.
        let known = vehicles.iter().take_while(|record| record.key.id() >= Some(last.uuid())).count();
        more |= known < vehicles.len();
        vehicles.truncate(known);
    }
    let today = organization.time_zone.local(now).date().day_number();
    let (start, end) = query.nights.days();
    // The customer has the vehicle until the planned return. After that day, nobody knows until when.
    let takes = |last: u32| last < today || (today < end && start < last);
    let examined: HashSet<VehicleId> = vehicles.iter().filter_map(|row| row.key.id()).map(Id::from_uuid).collect();
    out.retain(|one| examined.contains(&one.vehicle) && one.last.is_none_or(takes));
    let out = vehicles_still_out(store, id, &out, now).await?;
    let out: HashSet<VehicleId> = out.iter().map(|one| one.vehicle).collect();
    let mut bits = HashMap::new();
    for calendar in &calendars {
        if let Some(id) = calendar.key.id() {
            bits.insert(Id::from_uuid(id), classes_in_use(calendar)?);
        }
    }
    let mut examined =
        Examined { vehicles: Vec::with_capacity(vehicles.len()), candidates: HashMap::new(), next: None };
    for record in vehicles {
        let Some(id) = record.key.id().map(VehicleId::from_uuid) else { continue };
        if !out.contains(&id) && can_be_rented(&record)? {
            examined.candidates.insert(id, bits.get(&id).copied().unwrap_or(0));
        }
        examined.next = Some(id).filter(|_| more);
        examined.vehicles.push((id, record));
    }
    Ok(Some(examined))
}

/// Whether the status of a vehicle lets it be rented.
fn can_be_rented(record: &Record) -> Result<bool, Error> {
    #[derive(Deserialize)]
    struct Status {
        status: VehicleStatus,
    }
    let vehicle: Status = serde_json::from_slice(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
    Ok(!matches!(vehicle.status, VehicleStatus::Maintenance | VehicleStatus::Unavailable))
}

/// The candidates that are held on one of the nights.
async fn taken(
    store: &dyn Store,
    organization: &Organization,
    candidates: &HashMap<VehicleId, u32>,
    query: &AvailabilityQuery,
) -> Result<HashSet<VehicleId>, Error> {
    let (start, end) = query.nights.days();
    let mut taken = HashSet::new();
    let ranges = |(vehicle, bits): (&VehicleId, &u32)| {
        let vehicle = *vehicle;
        let range = move |class| (vehicle, starts_within(organization.id, vehicle, class, (start, end)));
        Hold::classes(*bits).map(range).collect::<Vec<_>>()
    };
    let mut open: Vec<(VehicleId, Span)> = candidates.iter().flat_map(ranges).collect();
    // Keys that are neighbours share pages of a file.
    open.sort_unstable_by(|one, other| one.1.from.cmp(&other.1.from));
    let mut limit = FIRST_HOLDS;
    while !open.is_empty() {
        let scans: Vec<(Span, usize)> = open.iter().map(|(_, span)| (span.clone(), limit)).collect();
        let found = store.scan_each(&scans).await?;
        let mut rest = Vec::new();
        for ((vehicle, mut span), rows) in open.into_iter().zip(found) {
            let rows = all_sound(rows)?;
            let mut holds = false;
            for row in &rows {
                holds |= read(vehicle, row)?.overlaps(start, end);
            }
            match rows.last() {
                _ if holds => drop(taken.insert(vehicle)),
                Some(last) if rows.len() == limit => {
                    span.to = last.key.clone();
                    rest.push((vehicle, span));
                }
                _ => {}
            }
        }
        (open, limit) = (rest, MORE_HOLDS);
    }
    Ok(taken)
}
