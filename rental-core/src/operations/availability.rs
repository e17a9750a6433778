//! Which vehicles are available on some nights (`docs/decisions.md`, "Availability").
//!
//! A vehicle is available when no rental and no block holds it on one of the nights, when no customer has it by the timeline of
//! its possessions, and when its status lets it be rented. A few reads of many ranges answer for up to 500 vehicles. The result is a
//! hint: another request can hold the vehicle after it. The POST of the rental checks the holds again.

use super::{
    holds::{classes_in_use, read, starts_within},
    read::Listed,
};
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
    store::{DamagedRow, Key, Record, Scanned, Span, Store, after, key_of},
    value::{OrganizationId, Timestamp, VehicleId},
};
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

/// Reads a page of the vehicles that are available, newest first. A vehicle is left out when a damaged row keeps it from being known.
///
/// # Errors
/// The store is not available.
pub async fn available(
    store: &dyn Store,
    organization: &Organization,
    query: &AvailabilityQuery,
    now: Timestamp,
) -> Result<Listed, Error> {
    let Some(mut examined) = examine(store, organization, query, now).await? else {
        return Ok(Listed { body: page::list(&[], None), damaged: Vec::new() });
    };
    let taken = taken(store, organization, &mut examined, query).await?;
    let Examined { mut vehicles, candidates, unknown, next } = examined;
    vehicles.retain(|(id, _)| candidates.contains_key(id) && !taken.contains(id) && !unknown.contains_key(id));
    let shown = vehicles.len().min(query.limit);
    // A full page ends at its last object. A page that is not full has examined all of its vehicles.
    let next = match vehicles.get(shown) {
        Some(_) => vehicles.get(shown - 1).map(|(id, _)| *id),
        None => next,
    };
    let records: Vec<Record> = vehicles.into_iter().take(shown).map(|(_, record)| record).collect();
    // Those behind the last object of the page belong to the next page.
    let of_page = |id: &VehicleId| next.is_none_or(|next| *id >= next) && !taken.contains(id);
    let damaged = unknown.into_iter().filter(|(id, _)| of_page(id)).map(|(_, row)| row).collect();
    Ok(Listed { body: page::list(&records, next.map(|id| id.to_string()).as_deref()), damaged })
}

/// The vehicles of a page before their holds are read.
struct Examined {
    /// All of them that are not damaged, newest first.
    vehicles: Vec<(VehicleId, Record)>,
    /// Those that can be available, with the bits of their calendars.
    candidates: HashMap<VehicleId, u32>,
    /// Those of which nobody knows whether they are available, with the damaged row.
    unknown: HashMap<VehicleId, DamagedRow>,
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
    let mut next = || found.next().unwrap_or_default();
    let (mut vehicles, calendars, out) = (next(), next(), next());
    let mut more = vehicles.len() > most;
    vehicles.truncate(most);
    let mut out: Vec<VehicleOut> = out.iter().filter_map(|entry| vehicle_out(key_of(entry))).collect();
    if out.len() == MOST_OUT
        && let Some(VehicleOut { vehicle: last, .. }) = out.last()
    {
        // Of the vehicles after this one it is not known whether they are out.
        let known = vehicles.iter().take_while(|row| key_of(row).id() >= Some(last.uuid())).count();
        more |= known < vehicles.len();
        vehicles.truncate(known);
    }
    let today = organization.time_zone.local(now).date().day_number();
    let (start, end) = query.nights.days();
    // The customer has the vehicle until the planned return. After that day, nobody knows until when.
    let takes = |last: u32| last < today || (today < end && start < last);
    let examined: HashSet<VehicleId> = vehicles.iter().filter_map(vehicle_of).collect();
    out.retain(|one| examined.contains(&one.vehicle) && one.last.is_none_or(takes));
    let (out, mut unknown) = still_out(store, id, &out, now).await?;
    let mut bits: HashMap<VehicleId, Result<u32, Error>> = HashMap::new();
    for calendar in calendars {
        if let Some(id) = vehicle_of(&calendar) {
            bits.insert(id, calendar.map_err(Error::Damaged).and_then(|calendar| classes_in_use(&calendar)));
        }
    }
    let (mut sound, mut candidates, mut next) = (Vec::with_capacity(vehicles.len()), HashMap::new(), None);
    for row in vehicles {
        let Some(id) = vehicle_of(&row) else { continue };
        next = Some(id).filter(|_| more);
        let mut damaged = Vec::new();
        let judged = row.map_err(Error::Damaged).and_then(|record| Ok((can_be_rented(&record)?, record)));
        if let Some((can_be_rented, record)) = Error::note_damage(judged, &mut damaged)? {
            if can_be_rented && !out.contains(&id) {
                let bits = Error::note_damage(bits.remove(&id).unwrap_or(Ok(0)), &mut damaged)?;
                candidates.extend(bits.map(|bits| (id, bits)));
            }
            sound.push((id, record));
        }
        unknown.extend(damaged.pop().map(|row| (id, row)));
    }
    Ok(Some(Examined { vehicles: sound, candidates, unknown, next }))
}

fn vehicle_of(row: &Scanned) -> Option<VehicleId> {
    key_of(row).id().map(VehicleId::from_uuid)
}

/// Those of the vehicles that are out by all their rentals, and those of which a damaged rental hides it.
async fn still_out(
    store: &dyn Store,
    organization: OrganizationId,
    out: &[VehicleOut],
    now: Timestamp,
) -> Result<(HashSet<VehicleId>, HashMap<VehicleId, DamagedRow>), Error> {
    let mut unknown = HashMap::new();
    let found = match vehicles_still_out(store, organization, out, now).await {
        Err(Error::Damaged(_)) => {
            let (mut found, mut damaged) = (Vec::new(), Vec::new());
            for one in out {
                let alone = vehicles_still_out(store, organization, std::slice::from_ref(one), now).await;
                found.extend(Error::note_damage(alone, &mut damaged)?.into_iter().flatten());
                unknown.extend(damaged.pop().map(|row| (one.vehicle, row)));
            }
            found
        }
        found => found?,
    };
    Ok((found.iter().map(|one| one.vehicle).collect(), unknown))
}

/// Whether the status of a vehicle lets it be rented.
fn can_be_rented(record: &Record) -> Result<bool, Error> {
    #[derive(Deserialize)]
    struct Status {
        status: VehicleStatus,
    }
    let vehicle: Status =
        crate::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
    Ok(!matches!(vehicle.status, VehicleStatus::Maintenance | VehicleStatus::Unavailable))
}

/// The candidates that are held on one of the nights. Those of which a damaged hold can hide it become unknown.
async fn taken(
    store: &dyn Store,
    organization: &Organization,
    Examined { candidates, unknown, .. }: &mut Examined,
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
            let next = rows.last().filter(|_| rows.len() == limit).map(|last| key_of(last).clone());
            let (mut holds, mut damaged) = (false, Vec::new());
            for row in rows {
                let hold = row.map_err(Error::Damaged).and_then(|row| read(vehicle, &row));
                holds |= Error::note_damage(hold, &mut damaged)?.is_some_and(|hold| hold.overlaps(start, end));
            }
            unknown.extend(damaged.pop().map(|row| (vehicle, row)));
            match next {
                _ if holds => drop(taken.insert(vehicle)),
                Some(last) => {
                    span.to = last;
                    rest.push((vehicle, span));
                }
                None => {}
            }
        }
        (open, limit) = (rest, MORE_HOLDS);
    }
    Ok(taken)
}
