//! Marks the vehicles whose automatic attachments a write can change.
//!
//! The mark is in the batch of the change. [`attachments`](crate::attachments) derives the attachments of the vehicle again
//! and then removes the mark.

use super::edge::Edge;
use crate::{
    error::Error,
    fleet::first_booking,
    resources::{automatic_look_up, named_look_up, toll, vehicle, violation},
    rows::{
        key,
        recheck::{self, Recheck},
    },
    schema::{Effects, Facts, Grounds, IndexPrefix, ResourceSpec},
    store::{Batch, Check, Key, Order, Revision, Scanned, Span, Store, StoreError, get_one, key_of},
    value::{OrganizationId, VehicleId},
};
use uuid::Uuid;

/// Vehicles whose attachments name a transponder or plate and that are marked when a vehicle gets or loses it.
const MOST_NAMED: usize = 50;
/// Days before the first one of a rental that it can decide: days of other time zones, and those around which rentals are read.
const MARGIN: u32 = 3;

/// Marks the vehicles whose automatic attachments can change when the derived rows of an object change.
pub(super) async fn mark(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: OrganizationId,
    (before, after): (Option<&Effects>, &Effects),
    batch: &mut Batch,
) -> Result<(), Error> {
    if let Some(before) = before.filter(|before| before.posting != after.posting) {
        // Another posting of the passage may no longer be the second one.
        for (vehicle, at) in [before.posting, after.posting].into_iter().flatten() {
            let from = at.day_number().saturating_sub(1);
            for mark in with_attachments(store, organization, vec![(vehicle, from)]).await? {
                put(store, edge, organization, mark, batch).await?;
            }
        }
    }
    let was = before.and_then(|before| before.grounds.as_ref());
    let is = after.grounds.as_ref();
    let billed = |effects: &Effects| effects.charge.as_ref().is_some_and(|charge| charge.billed.is_some());
    let is_unbilled = before.is_some_and(billed) && !billed(after);
    let is_attachment = was.or(is).is_some_and(|grounds| matches!(grounds.facts, Facts::Attached(_)));
    // What was billed and no longer follows waits for a person. When no invoice bills it any more, it is derived again.
    if was == is && !(is_unbilled && is_attachment) {
        return Ok(());
    }
    if let Some(Grounds { facts: Facts::Attached(_), vehicle, from }) = was.or(is) {
        // A new object comes from an import of an organization, which keeps the attachments of its file. An attached one is
        // derived once more, because a rental can have changed since it was read.
        let (vehicle, from) = is.map_or((*vehicle, *from), |is| (is.vehicle, is.from));
        if before.is_some() && is.is_some() {
            put(store, edge, organization, (vehicle, from), batch).await?;
        }
        return Ok(());
    }
    let of = |grounds: &Grounds| {
        let from = grounds.from.saturating_sub(MARGIN);
        grounds.vehicles().map(move |vehicle| (vehicle, from)).collect::<Vec<_>>()
    };
    let mut marks: Vec<(VehicleId, u32)> = was.into_iter().chain(is).flat_map(of).collect();
    if was.or(is).is_some_and(|grounds| matches!(grounds.facts, Facts::Names(_) | Facts::Assignments(_))) {
        marks.extend(
            named_vehicles(store, organization, (before, after)).await?.into_iter().map(|vehicle| (vehicle, 0)),
        );
    }
    marks.sort_unstable();
    marks.dedup_by_key(|(vehicle, _)| *vehicle);
    if was.or(is).is_some_and(|grounds| matches!(grounds.facts, Facts::Rental { .. })) {
        marks = with_bookings(store, organization, marks).await?;
    }
    for mark in with_attachments(store, organization, marks).await? {
        put(store, edge, organization, mark, batch).await?;
    }
    Ok(())
}

/// The marks of a rental, each from the beginning of the booking that it can displace: a rental that took place shows that a booking
/// on the same days, which nobody marked as handed over, did not, and so decides all days of the booking. Vehicles without
/// attachments are left out: most writes cost no further read.
async fn with_bookings(
    store: &dyn Store,
    organization: OrganizationId,
    marks: Vec<(VehicleId, u32)>,
) -> Result<Vec<(VehicleId, u32)>, Error> {
    let attached =
        with_attachments(store, organization, marks.iter().map(|(vehicle, _)| (*vehicle, 0)).collect()).await?;
    let mut found = Vec::with_capacity(attached.len());
    for (vehicle, from) in marks.into_iter().filter(|(vehicle, _)| attached.iter().any(|(other, _)| other == vehicle)) {
        let first = first_booking(store, organization, vehicle, from.saturating_add(MARGIN)).await?;
        found.push((vehicle, first.map_or(from, |first| from.min(first.saturating_sub(MARGIN)))));
    }
    Ok(found)
}

/// The vehicles of the tolls and violations that name a transponder or plate of these derived rows. One call of the store for most
/// new numbers, which no attachment names.
async fn named_vehicles(
    store: &dyn Store,
    organization: OrganizationId,
    (before, after): (Option<&Effects>, &Effects),
) -> Result<Vec<VehicleId>, Error> {
    let gone = before.into_iter().flat_map(|before| &before.entries).filter(|entry| !after.entries.contains(entry));
    let names = after.entries.iter().chain(gone).filter(|entry| vehicle::is_name_look_up(entry));
    let under = |name: &IndexPrefix| {
        [&toll::SPEC, &violation::SPEC].map(|spec| Span::under(named_look_up(name).prefix(organization, spec)))
    };
    let mut spans: Vec<Span> = names.flat_map(under).collect();
    let mut found = Vec::new();
    while !spans.is_empty() && found.len() < MOST_NAMED {
        let scans: Vec<(Span, usize)> = spans.iter().map(|span| (span.clone(), 1)).collect();
        let rows = store.scan_each(&scans).await?;
        let firsts = spans.into_iter().zip(rows);
        let next = |(span, rows): (Span, Vec<Scanned>)| {
            // The vehicle and the id of the object are the end of the key.
            let (of_vehicle, _) = key_of(rows.first()?).as_bytes().split_last_chunk::<16>()?;
            found.push(VehicleId::from_uuid(Uuid::from_bytes(*of_vehicle.last_chunk()?)));
            Some(Span { from: Span::under(Key::from(of_vehicle.to_vec())).to, ..span })
        };
        spans = firsts.filter_map(next).collect();
    }
    Ok(found)
}

/// The index entries of a vehicle's automatic attachments on a day and later, or after an entry.
pub(crate) fn automatic(organization: OrganizationId, spec: &ResourceSpec, vehicle: VehicleId, from: u32) -> Span {
    let place = |day: u32| automatic_look_up(vehicle, day).prefix(organization, spec);
    Span { from: place(from), to: place(u32::MAX), order: Order::Ascending, follow: None }
}

/// Those of the vehicles that have automatic attachments on their day or later. One call of the store.
async fn with_attachments(
    store: &dyn Store,
    organization: OrganizationId,
    mut marks: Vec<(VehicleId, u32)>,
) -> Result<Vec<(VehicleId, u32)>, Error> {
    if marks.is_empty() {
        return Ok(marks);
    }
    let entries = |(vehicle, from): &(VehicleId, u32)| {
        [&toll::SPEC, &violation::SPEC].map(|spec| (automatic(organization, spec, *vehicle, *from), 1))
    };
    let scans: Vec<(Span, usize)> = marks.iter().flat_map(entries).collect();
    let found = store.scan_each(&scans).await?;
    let mut of_each = found.chunks(2);
    marks.retain(|_| of_each.next().is_some_and(|rows| rows.iter().any(|rows| !rows.is_empty())));
    Ok(marks)
}

/// Adds the mark of a vehicle, or extends the one that it has.
pub(crate) async fn put(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: OrganizationId,
    (vehicle, from): (VehicleId, u32),
    batch: &mut Batch,
) -> Result<(), Error> {
    let place = key::recheck(organization, vehicle);
    let from = match get_one(store, &place).await {
        Ok(Some(row)) => {
            batch.checks.push(Check::At(place.clone(), row.revision));
            Recheck::read(&row).map_or(0, |mark| mark.from.min(from))
        }
        Ok(None) => {
            batch.checks.push(Check::Absent(place.clone()));
            from
        }
        // Nobody knows from which day on it was: all attachments are derived again.
        Err(StoreError::Damaged(_)) => 0,
        Err(error) => return Err(error.into()),
    };
    recheck::put(batch, place, revision(edge), Recheck::from(from).value());
    Ok(())
}

/// A revision that no former mark of the vehicle had.
fn revision(edge: &dyn Edge) -> Revision {
    let (high, low) = edge.new_id().as_u64_pair();
    // Revisions are below 2^63, and the steps of a mark count up from here.
    (high.rotate_left(17) ^ low) & (u64::MAX >> 2)
}
