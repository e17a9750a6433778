//! Marks the vehicles and numbers whose tolls and violations a write can change.
//!
//! The mark is in the batch of the change. [`attachments`](crate::attachments) derives the tolls and violations of the vehicle or
//! number again and then removes the mark.

use super::{edge::Edge, number};
use crate::{
    error::Error,
    fleet::first_booking,
    resources::{automatic_look_up, toll, vehicle, violation},
    rows::{
        key,
        number::counter,
        recheck::{self, Marked, Recheck},
    },
    schema::{Effects, Facts, Grounds, IndexPrefix, ResourceSpec},
    store::{Batch, Check, Key, Order, Revision, Span, Store, StoreError, get_each, get_one},
    value::OrganizationId,
};

/// Days before the first one of a rental that it can decide: days of other time zones, and those around which rentals are read.
const MARGIN: u32 = 3;

/// Marks the vehicles and numbers whose tolls and violations can change when the derived rows of an object change.
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
            for mark in with_attachments(store, organization, vec![(Marked::vehicle(vehicle), from)]).await? {
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
            put(store, edge, organization, (Marked::vehicle(vehicle), from), batch).await?;
        }
        return Ok(());
    }
    let is_rental = was.or(is).is_some_and(|grounds| matches!(grounds.facts, Facts::Rental { .. }));
    let marks = match is_rental {
        true => {
            let mut marks: Vec<(Marked, u32)> = was.into_iter().chain(is).flat_map(of_rental).collect();
            marks.sort_unstable();
            marks.dedup_by_key(|(marked, _)| *marked);
            let marks = with_bookings(store, organization, marks).await?;
            with_attachments(store, organization, marks).await?
        }
        false => of_numbers(store, edge, organization, numbers(was, is), batch).await?,
    };
    for mark in marks {
        put(store, edge, organization, mark, batch).await?;
    }
    Ok(())
}

/// The numbers that something names or can name by now. What named a number before numbers had counters is found by its index entry.
async fn of_numbers(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: OrganizationId,
    numbers: Vec<Marked>,
    batch: &mut Batch,
) -> Result<Vec<(Marked, u32)>, Error> {
    let counters: Vec<Key> = numbers.iter().map(|number| counter(organization, *number)).collect();
    let found = if counters.is_empty() { Vec::new() } else { get_each(store, &counters).await? };
    let (mut marks, mut others) = (Vec::new(), Vec::new());
    for ((number, counter), seen) in numbers.into_iter().zip(counters).zip(found) {
        let can_be_named = number::raise(batch, counter, seen, revision(edge));
        if can_be_named { &mut marks } else { &mut others }.push((number, 0));
    }
    marks.extend(with_attachments(store, organization, others).await?);
    Ok(marks)
}

/// The vehicles of a rental, and the first day that it can decide.
fn of_rental(grounds: &Grounds) -> impl Iterator<Item = (Marked, u32)> {
    let from = grounds.from.saturating_sub(MARGIN);
    grounds.vehicles().map(move |vehicle| (Marked::vehicle(vehicle), from))
}

/// The marks of a rental, each from the beginning of the booking that it can displace: a rental that took place shows that a booking
/// on the same days, which nobody marked as handed over, did not, and so decides all days of the booking. Vehicles without
/// attachments are left out: most writes cost no further read.
async fn with_bookings(
    store: &dyn Store,
    organization: OrganizationId,
    marks: Vec<(Marked, u32)>,
) -> Result<Vec<(Marked, u32)>, Error> {
    let attached =
        with_attachments(store, organization, marks.iter().map(|(marked, _)| (*marked, 0)).collect()).await?;
    let mut found = Vec::with_capacity(attached.len());
    for (marked, from) in marks.into_iter().filter(|(marked, _)| attached.iter().any(|(other, _)| other == marked)) {
        let Some(vehicle) = marked.as_vehicle() else { continue };
        let first = first_booking(store, organization, vehicle, from.saturating_add(MARGIN)).await?;
        found.push((marked, first.map_or(from, |first| from.min(first.saturating_sub(MARGIN)))));
    }
    Ok(found)
}

/// The transponders and plates that a vehicle gets, loses, or has at other times or with another state.
fn numbers(was: Option<&Grounds>, is: Option<&Grounds>) -> Vec<Marked> {
    let [was, is] = [was, is].map(|grounds| grounds.map(held).unwrap_or_default());
    let lost = was.iter().filter(|one| !is.contains(one));
    let changed = lost.chain(is.iter().filter(|one| !was.contains(one)));
    let mut numbers: Vec<Marked> = changed.map(|(look_up, _)| Marked::number(look_up)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The look-ups of what a vehicle has or had, each with what else is known of it.
fn held(grounds: &Grounds) -> Vec<(IndexPrefix, String)> {
    match &grounds.facts {
        Facts::Names(names) => {
            let state = names[2].as_deref().unwrap_or_default();
            let look_ups = vehicle::name_look_ups(names.each_ref().map(Option::as_deref));
            look_ups.map(|look_up| (look_up, state.to_owned())).collect()
        }
        Facts::Assignments(held) => held.clone(),
        Facts::Rental { .. } | Facts::Attached(_) => Vec::new(),
    }
}

/// The index entries of what a vehicle or number decides about, on a day and later, or after an entry.
pub(crate) fn automatic(organization: OrganizationId, spec: &ResourceSpec, marked: Marked, from: u32) -> Span {
    let place = |day: u32| automatic_look_up(marked, day).prefix(organization, spec);
    Span { from: place(from), to: place(u32::MAX), order: Order::Ascending, follow: None }
}

/// Those of the vehicles and numbers that decide about something on their day or later. One call of the store.
async fn with_attachments(
    store: &dyn Store,
    organization: OrganizationId,
    mut marks: Vec<(Marked, u32)>,
) -> Result<Vec<(Marked, u32)>, Error> {
    if marks.is_empty() {
        return Ok(marks);
    }
    let entries = |(marked, from): &(Marked, u32)| {
        [&toll::SPEC, &violation::SPEC].map(|spec| (automatic(organization, spec, *marked, *from), 1))
    };
    let scans: Vec<(Span, usize)> = marks.iter().flat_map(entries).collect();
    let found = store.scan_each(&scans).await?;
    let mut of_each = found.chunks(2);
    marks.retain(|_| of_each.next().is_some_and(|rows| rows.iter().any(|rows| !rows.is_empty())));
    Ok(marks)
}

/// Adds the mark of a vehicle or number, or extends the one that it has.
pub(crate) async fn put(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: OrganizationId,
    (marked, from): (Marked, u32),
    batch: &mut Batch,
) -> Result<(), Error> {
    let place = key::recheck(organization, marked);
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

/// A revision that no former mark of the vehicle or number had.
fn revision(edge: &dyn Edge) -> Revision {
    let (high, low) = edge.new_id().as_u64_pair();
    // Revisions are below 2^63, and the steps of a mark count up from here.
    (high.rotate_left(17) ^ low) & (u64::MAX >> 2)
}
