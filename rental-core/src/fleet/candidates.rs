//! Reads the rentals that decide who had a vehicle at a time.

use crate::{
    error::Error,
    resources::{
        Resource, parse,
        rental::{self, OPEN, Rental, RentalStatus},
    },
    rows::key,
    schema::IndexPrefix,
    store::{Follow, Key, Order, Span, Store, all_sound},
    value::{Date, OrganizationId, Timestamp, VehicleId},
};

/// Most rentals that are read for one time. An open booking policy allows any number.
pub(super) const MOST: usize = 100;
/// Rentals in one read.
const STEP: usize = 32;
/// Rentals that nobody marked as handed over, or as given back, of which rentals on other days are read too.
const DOUBTS: usize = 4;
/// Rentals on such days that are read for one of them.
const TELLING: usize = 8;
/// Rentals with the latest recorded times that are read. A recorded pickup ends all possessions before it.
const LATEST: usize = 4;

/// Reads the rentals that decide who had a vehicle at a time: those whose customers may have had it within a day of it, and
/// those with the latest recorded times until then. About 100 are read at most.
/// Where nobody marked one of them as handed over, or as given back, rentals of other days are read that can rule it out.
///
/// # Errors
/// The store is not available.
pub async fn rentals_around(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    at: Timestamp,
) -> Result<Vec<Rental>, Error> {
    let mut rentals: Vec<Rental> = Vec::new();
    for mut span in stays_around(organization, vehicle, at.day_number()) {
        while rentals.len() < MOST {
            let found = all_sound(store.scan(&span, STEP).await?)?;
            for record in &found {
                rentals.push(parse::<Rental>(&record.key, &record.value)?);
            }
            let Some(last) = rentals.last().filter(|_| found.len() == STEP) else { break };
            span.to = entry_of(organization, last, &span);
        }
    }
    let day = at.day_number();
    for days in rentals.iter().filter_map(|one| telling_days(one, day)).take(DOUBTS).collect::<Vec<_>>() {
        let telling = rentals_between(store, organization, vehicle, days, TELLING).await?;
        add_new(&mut rentals, telling);
    }
    let prefix = |time: Timestamp| rental::recorded_look_up(vehicle, time).prefix(organization, &rental::SPEC);
    let (from, to) = (prefix(Timestamp::FIRST), prefix(at.plus_millis(1)));
    let latest = Span { from, to, order: Order::Descending, follow: follow(organization) };
    let found = all_sound(store.scan(&latest, LATEST).await?)?;
    let latest = found.iter().map(|record| parse(&record.key, &record.value)).collect::<Result<_, _>>()?;
    add_new(&mut rentals, latest);
    Ok(rentals)
}

fn add_new(rentals: &mut Vec<Rental>, found: Vec<Rental>) {
    for rental in found {
        if !rentals.iter().any(|known| known.id == rental.id) {
            rentals.push(rental);
        }
    }
}

/// Days, `[first, end)` by number, on which another rental can show that this one was over by `day`, or never took place:
/// those of a booking that nobody marked as handed over, and those since the planned return of a rental that nobody marked
/// as given back.
fn telling_days(rental: &Rental, day: u32) -> Option<(u32, u32)> {
    let start = rental.start_date?.day_number();
    let end = rental.end_date.map_or(start, Date::day_number);
    match (rental.status, rental.completed_at) {
        (RentalStatus::Approved, None) if rental.activated_at.is_none() => Some((start, end + 1)),
        (RentalStatus::Approved | RentalStatus::Active, None) if rental.end_date.is_some() && end < day => {
            Some((end, day + 1))
        }
        _ => None,
    }
}

/// Reads the rentals whose customers may have had a vehicle on one of some days, `[first, end)` by number. At most `most` are read.
///
/// # Errors
/// The store is not available.
pub(crate) async fn rentals_between(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    (first, end): (u32, u32),
    most: usize,
) -> Result<Vec<Rental>, Error> {
    let mut rentals: Vec<Rental> = Vec::new();
    for span in stays_within(organization, vehicle, (first, end)) {
        for record in all_sound(store.scan(&span, most.saturating_sub(rentals.len())).await?)? {
            rentals.push(parse::<Rental>(&record.key, &record.value)?);
        }
    }
    Ok(rentals)
}

fn follow(organization: OrganizationId) -> Option<Follow> {
    Some(Follow { prefix: key::records(organization, &rental::SPEC) })
}

/// The look-up entry of a rental, before which the next scan continues.
fn entry_of(organization: OrganizationId, rental: &Rental, span: &Span) -> Key {
    let entries = rental.effects().entries;
    let place = |one: &IndexPrefix| one.entry(organization, &rental::SPEC, rental.id.uuid());
    // If a concurrent write moved the entry of the rental, this class ends here.
    entries.iter().map(place).find(|key| *key >= span.from && *key < span.to).unwrap_or_else(|| span.from.clone())
}

/// The spans of stays that can contain a day. Class n has stays of 2^n to 2^(n+1)-1 days, so only those that begin at most
/// so many days before can reach it. One day is added on both sides for days of other time zones.
fn stays_around(organization: OrganizationId, vehicle: VehicleId, day: u32) -> Vec<Span> {
    stays_within(organization, vehicle, (day, day + 1))
}

/// The same for stays that can contain one of some days, `[first, end)`.
fn stays_within(organization: OrganizationId, vehicle: VehicleId, (first, end): (u32, u32)) -> Vec<Span> {
    let of_class = |class: u8| {
        let earliest = if class == OPEN { 0 } else { first.saturating_sub((2 << class) + 1) };
        let prefix = |start: u32| rental::stay_look_up(vehicle, class, start).prefix(organization, &rental::SPEC);
        Span { from: prefix(earliest), to: prefix(end + 1), order: Order::Descending, follow: follow(organization) }
    };
    (0..22).chain([OPEN]).map(of_class).collect()
}
