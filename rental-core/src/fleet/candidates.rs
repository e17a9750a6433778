//! Reads the rentals that decide who had a vehicle at a time.

use super::possession::{is_still_out, midnight};
use crate::{
    error::Error,
    resources::{
        Resource,
        organization::Organization,
        parse,
        rental::{self, BACK_BEFORE_PLAN, OPEN, Rental, RentalStatus, VehicleOut},
    },
    rows::key,
    store::{DamagedRow, Follow, Key, Order, Record, Scanned, Span, Store, StoreError, all_sound, get_one, key_of},
    value::{Date, OrganizationId, RentalId, Timestamp, VehicleId},
};
use std::collections::HashMap;

/// Most rentals that are read for one time. An open booking policy allows any number.
pub(super) const MOST: usize = 100;
/// Rentals that nobody marked as handed over, or as given back, of which rentals on other days are read too.
const MOST_DOUBTS: usize = 4;
/// Rentals on such days that are read for one of them.
const MOST_TELLING: usize = 8;
/// Rentals with the latest recorded times that are read. A recorded pickup ends all possessions before it.
const MOST_LATEST: usize = 4;
/// Days before a day that reach over those of all time zones; and a parked vehicle can be ticketed on the day after its return.
const DAYS_BEFORE: u32 = 2;

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
    let mut around = RentalsAround::read(store, organization, vehicle, at).await?;
    around.rentals.truncate(around.decisive);
    Ok(around.rentals)
}

/// The rentals that decide who had a vehicle at times of one day. Another time of the day is decided by the same rentals, save
/// those with the latest recorded times.
#[derive(Debug)]
pub(crate) struct RentalsAround {
    /// First those of the day, then those that decide the last time that was asked for, then those that decided others.
    rentals: Vec<Rental>,
    /// The number of those of the day.
    of_day: usize,
    /// The number of those that decide the last time.
    decisive: usize,
}

impl RentalsAround {
    /// Reads those of [`rentals_around`].
    pub(crate) async fn read(
        store: &dyn Store,
        organization: OrganizationId,
        vehicle: VehicleId,
        at: Timestamp,
    ) -> Result<Self, Error> {
        let day = at.day_number();
        let [first, last] = outer_stays(organization, vehicle);
        let latest = latest_recorded(organization, vehicle, at);
        let mut found = store.scan_each(&[(first, 1), (last, 1), (latest, MOST_LATEST)]).await?;
        let latest = all_sound(found.pop().unwrap_or_default())?;
        let classes = classes_of_stays(store, organization, vehicle, &found).await?;
        let mut rentals = stays_within(store, organization, vehicle, (day, day + 1), &classes, MOST).await?;
        if rentals.len() >= MOST {
            drop_ended(&mut rentals, day);
        }
        if classes.contains(&BACK_BEFORE_PLAN) {
            let early = all_sound(store.scan(&back_before_plan(organization, vehicle, day), MOST_TELLING).await?)?;
            let early = unknown(store, organization, &rentals, &early).await?;
            rentals.extend(early);
        }
        // Those that came back before their plan are in question for any time before.
        let (early, others): (Vec<_>, Vec<_>) = rentals.iter().partition(|one| one.came_back_before_plan());
        let doubts = early.into_iter().chain(others).filter_map(|one| telling_days(one, day));
        for days in doubts.take(MOST_DOUBTS).collect::<Vec<_>>() {
            let telling = rentals_between(store, organization, vehicle, days, MOST_TELLING).await?;
            add_new(&mut rentals, telling);
        }
        let mut around = Self { of_day: rentals.len(), decisive: rentals.len(), rentals };
        around.choose(store, organization, &latest).await?;
        Ok(around)
    }

    /// Reads what decides another time of the same day.
    pub(crate) async fn move_to(
        &mut self,
        store: &dyn Store,
        organization: OrganizationId,
        vehicle: VehicleId,
        at: Timestamp,
    ) -> Result<(), Error> {
        let latest = all_sound(store.scan(&latest_recorded(organization, vehicle, at), MOST_LATEST).await?)?;
        self.choose(store, organization, &latest).await
    }

    /// The rentals that decide the last time that was asked for.
    pub(crate) fn decisive(&self) -> &[Rental] {
        &self.rentals[..self.decisive]
    }

    /// How many rentals were read.
    pub(crate) fn len(&self) -> usize {
        self.rentals.len()
    }

    /// Makes the rentals of the day and those of these entries the decisive ones, and reads those that it lacks.
    async fn choose(
        &mut self,
        store: &dyn Store,
        organization: OrganizationId,
        latest: &[Record],
    ) -> Result<(), Error> {
        self.decisive = self.of_day;
        for id in latest.iter().filter_map(|entry| entry.key.id()).map(RentalId::from_uuid) {
            let known = self.rentals.iter().position(|known| known.id == id);
            if let Some(at) = known.filter(|at| *at >= self.decisive) {
                self.rentals.swap(at, self.decisive);
                self.decisive += 1;
            }
        }
        for rental in unknown(store, organization, &self.rentals, latest).await? {
            self.rentals.insert(self.decisive, rental);
            self.decisive += 1;
        }
        Ok(())
    }
}

/// Drops the rentals of which nothing is known since [`MOST_LATEST`] others were picked up before a day: a recorded pickup ends all
/// possessions before it. A vehicle that is rented day by day has any number of them, when nobody records its returns.
fn drop_ended(rentals: &mut Vec<Rental>, day: u32) {
    let pickups = rentals.iter().filter(|one| one.happened()).filter_map(|one| one.activated_at);
    let mut pickups: Vec<u32> =
        pickups.map(Timestamp::day_number).filter(|pickup| pickup + DAYS_BEFORE <= day).collect();
    pickups.sort_unstable_by_key(|pickup| std::cmp::Reverse(*pickup));
    if let Some(since) = pickups.get(MOST_LATEST - 1) {
        rentals.retain(|one| one.last_known_day().is_none_or(|last| last + DAYS_BEFORE >= *since));
    }
}

fn add_new(rentals: &mut Vec<Rental>, found: Vec<Rental>) {
    for rental in found {
        if !rentals.iter().any(|known| known.id == rental.id) {
            rentals.push(rental);
        }
    }
}

/// Reads the rentals of these entries that are not among `known`.
async fn unknown(
    store: &dyn Store,
    organization: OrganizationId,
    known: &[Rental],
    entries: &[Record],
) -> Result<Vec<Rental>, Error> {
    let mut keys: Vec<Key> = Vec::new();
    for id in entries.iter().filter_map(|entry| entry.key.id()).map(RentalId::from_uuid) {
        let key = Rental::key(organization, id);
        if known.iter().all(|known| known.id != id) && !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let found = store.get(&keys).await?;
    found.iter().flatten().map(|record| parse(&record.key, &record.value)).collect()
}

/// Days, `[first, end)` by number, on which another rental can show that this one was over by `day`, or never took place:
/// those of a booking that nobody marked as handed over, and those since the pickup of a rental that nobody marked as given
/// back, or without a planned day of the return.
fn telling_days(rental: &Rental, day: u32) -> Option<(u32, u32)> {
    let start = rental.start_date.map(Date::day_number);
    let swap = rental.earlier_vehicles.first().map(|one| one.until);
    let handed_over = rental.activated_at.into_iter().chain(swap).map(Timestamp::day_number).min();
    // Nothing tells the pickup: it was after the returns of those that had the vehicle before.
    let is_undated = (start.is_none() && rental.activated_at.is_none() && rental.status != RentalStatus::New)
        || rental.came_back_before_plan();
    let back = swap.or(rental.completed_at).map(Timestamp::day_number).filter(|back| is_undated && day < *back);
    if let Some(back) = back {
        return Some((day, back + 1));
    }
    match (rental.status, rental.completed_at, handed_over) {
        (RentalStatus::Approved, None, None) => Some((start?, rental.end_date.map_or(start?, Date::day_number) + 1)),
        (RentalStatus::New, ..) => None,
        // Where no day of the return was planned, another rental that took place before it contradicts it.
        (_, Some(_), _) if rental.end_date.is_some() => None,
        // Its planned day tells when it was given back, unless it was handed over later.
        (RentalStatus::Completed, None, _)
            if rental.end_date.is_some_and(|end| handed_over.is_none_or(|up| up + 1 < end.day_number())) =>
        {
            None
        }
        _ => {
            let pickup = handed_over.into_iter().chain(start).min()?;
            (pickup < day).then_some((pickup, day + 1))
        }
    }
}

/// Reads the rentals whose customers may have had a vehicle on one of some days, `[first, end)` by number. At most `most` are read.
///
/// # Errors
/// The store is not available.
async fn rentals_between(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    (first, end): (u32, u32),
    most: usize,
) -> Result<Vec<Rental>, Error> {
    let outer = store.scan_each(&outer_stays(organization, vehicle).map(|span| (span, 1))).await?;
    let classes = classes_of_stays(store, organization, vehicle, &outer).await?;
    stays_within(store, organization, vehicle, (first, end), &classes, most).await
}

/// The first day, by number, of the rentals that reach a day and whose pickup rentals of that day can tell: bookings that nobody
/// marked as handed over, and completed ones whose pickup is not known.
///
/// # Errors
/// The store is not available.
pub(crate) async fn first_booking(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    day: u32,
) -> Result<Option<u32>, Error> {
    if !store.scan(&back_before_plan(organization, vehicle, day), 1).await?.is_empty() {
        return Ok(Some(0));
    }
    let rentals = rentals_between(store, organization, vehicle, (day, day.saturating_add(1)), MOST).await?;
    let begin = |one: &Rental| match (one.status, one.start_date) {
        _ if one.activated_at.is_some() => None,
        (RentalStatus::Approved, Some(start)) => Some(start.day_number()),
        (_, None) => Some(0),
        _ => None,
    };
    Ok(rentals.iter().filter_map(begin).min())
}

/// Reads the rentals whose customers may have had a vehicle on one of some days, `[first, end)` by number, and those with the
/// last recorded times before and the first ones after these days, which tell when a possession began or ended. At most `most`
/// and a few more are read.
///
/// # Errors
/// The store is not available.
pub(crate) async fn rentals_of_days(
    store: &dyn Store,
    organization: &Organization,
    vehicle: VehicleId,
    (first, end): (u32, u32),
    most: usize,
) -> Result<Vec<Rental>, Error> {
    let (zone, organization) = (organization.time_zone, organization.id);
    let mut rentals = rentals_between(store, organization, vehicle, (first, end), most).await?;
    let day = |number: u32| Date::from_day_number(number).map_or(Timestamp::LAST, |day| midnight(zone, day));
    let place = |time: Timestamp| rental::recorded_look_up(vehicle, time).prefix(organization, &rental::SPEC);
    let after = Span { from: place(day(end)), to: place(Timestamp::LAST), order: Order::Ascending, follow: None };
    for span in [latest_recorded(organization, vehicle, day(first)), after] {
        let span = Span { follow: follow(organization), ..span };
        let found = all_sound(store.scan(&span, MOST_LATEST).await?)?;
        let found = found.iter().map(|record| parse(&record.key, &record.value)).collect::<Result<_, _>>()?;
        add_new(&mut rentals, found);
    }
    Ok(rentals)
}

/// Of vehicles that are out by the status of a rental, those that are out by all their rentals, with the planned day of the
/// return. A later recorded pickup shows that the vehicle came back before, also when nobody recorded that return; and so does, when
/// the planned return is over, a completed rental of later days.
///
/// # Errors
/// The store is not available.
pub(crate) async fn vehicles_still_out(
    store: &dyn Store,
    organization: OrganizationId,
    out: &[VehicleOut],
    now: Timestamp,
) -> Result<Vec<VehicleOut>, Error> {
    let latest = |one: &VehicleOut| (latest_recorded(organization, one.vehicle, now), MOST_LATEST);
    let scans: Vec<(Span, usize)> = out.iter().map(latest).collect();
    let mut seen: Vec<Vec<RentalId>> = Vec::with_capacity(out.len());
    for entries in store.scan_each(&scans).await? {
        let entries = all_sound(entries)?;
        seen.push(entries.iter().filter_map(|entry| entry.key.id()).map(RentalId::from_uuid).collect());
    }
    // Until its planned return, the rental with the latest recorded pickup has the vehicle. The others are compared with those that
    // came after them.
    let today = now.day_number();
    let is_due = |at: &usize| out[*at].last.is_none_or(|last| last <= today);
    let is_last = |at: &usize| seen[*at].first() == Some(&out[*at].rental) && !is_due(at);
    let (last, compared): (Vec<usize>, Vec<usize>) = (0..seen.len()).partition(is_last);
    let ids = |at: &usize| {
        let other = seen[*at].iter().filter(|id| **id != out[*at].rental);
        other.copied().chain([out[*at].rental]).collect::<Vec<_>>()
    };
    let mut wanted: Vec<RentalId> = compared.iter().flat_map(ids).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let keys: Vec<Key> = wanted.iter().map(|id| Rental::key(organization, *id)).collect();
    let mut rentals: HashMap<RentalId, Rental> = HashMap::new();
    for record in store.get(&keys).await?.into_iter().flatten() {
        let rental = parse::<Rental>(&record.key, &record.value)?;
        rentals.insert(rental.id, rental);
    }
    let mut still_out: Vec<VehicleOut> = last.into_iter().map(|at| out[at]).collect();
    for at in compared {
        let VehicleOut { vehicle, rental, .. } = out[at];
        let mut of_vehicle: Vec<Rental> = ids(&at).iter().filter_map(|id| rentals.get(id)).cloned().collect();
        let since = rentals.get(&rental).filter(|_| is_due(&at)).and_then(|rental| telling_days(rental, today));
        if let Some(since) = since {
            add_new(&mut of_vehicle, rentals_between(store, organization, vehicle, since, MOST_TELLING).await?);
        }
        if is_still_out(&of_vehicle, vehicle, rental, now) {
            still_out.push(out[at]);
        }
    }
    Ok(still_out)
}

/// The look-up entries of the rentals of a vehicle with recorded times until an instant, the latest first.
fn latest_recorded(organization: OrganizationId, vehicle: VehicleId, at: Timestamp) -> Span {
    let prefix = |time: Timestamp| rental::recorded_look_up(vehicle, time).prefix(organization, &rental::SPEC);
    let (from, to) = (prefix(Timestamp::FIRST), prefix(at.plus_millis(1)));
    Span { from, to, order: Order::Descending, follow: None }
}

/// The look-up entries of the rentals of a vehicle that came back before their planned days, around a day or after it. Nobody
/// recorded their pickup, so it can have been at any time before that return.
fn back_before_plan(organization: OrganizationId, vehicle: VehicleId, day: u32) -> Span {
    let earliest = day.saturating_sub(DAYS_BEFORE);
    let place = |class, start| rental::stay_look_up(vehicle, class, start).prefix(organization, &rental::SPEC);
    let (from, to) = (place(BACK_BEFORE_PLAN, earliest), place(BACK_BEFORE_PLAN, u32::MAX));
    Span { from, to, order: Order::Ascending, follow: None }
}

fn follow(organization: OrganizationId) -> Option<Follow> {
    Some(Follow { prefix: key::records(organization, &rental::SPEC) })
}

/// All stays of a vehicle, from the first class and from the last one.
fn outer_stays(organization: OrganizationId, vehicle: VehicleId) -> [Span; 2] {
    let all = stays_from(organization, vehicle, 0);
    [all.clone(), Span { order: Order::Descending, ..all }]
}

/// The stays of a vehicle of this class and of those behind it.
fn stays_from(organization: OrganizationId, vehicle: VehicleId, class: u8) -> Span {
    let place = |class, start| rental::stay_look_up(vehicle, class, start).prefix(organization, &rental::SPEC);
    Span { from: place(class, 0), to: place(BACK_BEFORE_PLAN, u32::MAX), order: Order::Ascending, follow: None }
}

/// The classes in which a vehicle has stays, in order: most have a few. `outer` is what [`outer_stays`] found, one row of each; a
/// class between them is found by the first entry behind the class before.
async fn classes_of_stays(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    outer: &[Vec<Scanned>],
) -> Result<Vec<u8>, Error> {
    let place = rental::stay_look_up(vehicle, 0, 0).prefix(organization, &rental::SPEC);
    // Before the day, which has 4 bytes, and its length.
    let class_byte = place.as_bytes().len().saturating_sub(4 + 2 + 1);
    let class_of = |rows: &Vec<Scanned>| rows.first().and_then(|row| key_of(row).as_bytes().get(class_byte).copied());
    let mut outer = outer.iter().filter_map(class_of);
    let (Some(mut class), Some(last)) = (outer.next(), outer.next()) else { return Ok(Vec::new()) };
    let mut classes = vec![class];
    while class < last {
        let next = stays_from(organization, vehicle, class + 1);
        let Some(found) = class_of(&store.scan(&next, 1).await?).filter(|found| *found > class) else { break };
        classes.push(found);
        class = found;
    }
    Ok(classes)
}

/// Reads the rentals of a vehicle whose stays reach some days, `[first, end)`; at most `most`. Class n has stays of 2^n to
/// 2^(n+1)-1 days, so only those that begin at most so many days before can reach them. One day is added after them for days of
/// other time zones, and [`DAYS_BEFORE`] before them.
///
/// # Errors
/// The store is not available, or has an entry of a rental that is not there.
async fn stays_within(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    (first, end): (u32, u32),
    classes: &[u8],
    most: usize,
) -> Result<Vec<Rental>, Error> {
    let limit = most.max(MOST);
    let earliest = first.saturating_sub(DAYS_BEFORE);
    let place = |class: u8, start: u32| rental::stay_look_up(vehicle, class, start).prefix(organization, &rental::SPEC);
    let of_class = |class: &u8| {
        let from = if *class == OPEN { 0 } else { first.saturating_sub(2 << (*class).min(30)) };
        let span =
            Span { from: place(*class, from), to: place(*class, end + 1), order: Order::Descending, follow: None };
        (span, limit)
    };
    let spans: Vec<(Span, usize)> = classes.iter().filter(|class| **class <= OPEN).map(of_class).collect();
    let mut entries: Vec<Key> = Vec::new();
    for found in store.scan_each(&spans).await? {
        // When there can be more of them, none is left out, so that a caller who asked for so many sees that.
        let are_all = found.len() < limit;
        let reaches = |entry: &Key| rental::last_day_of_stay(entry, &place(0, 0)).is_none_or(|last| earliest <= last);
        let found = all_sound(found)?.into_iter().map(|entry| entry.key);
        entries.extend(found.filter(|entry| !are_all || reaches(entry)));
    }
    entries.truncate(most);
    let records = Follow { prefix: key::records(organization, &rental::SPEC) };
    let mut places = Vec::with_capacity(entries.len());
    for entry in &entries {
        let place = records.target(entry.as_bytes());
        places.push(place.ok_or_else(|| StoreError::Damaged(DamagedRow::points_nowhere(entry.clone())))?);
    }
    let mut rentals = Vec::with_capacity(places.len());
    for (entry, found) in entries.into_iter().zip(store.get(&places).await?) {
        match found {
            Some(record) => rentals.push(parse::<Rental>(&record.key, &record.value)?),
            // It may have been removed since its entry was read.
            None if get_one(store, &entry).await?.is_none() => {}
            None => return Err(StoreError::Damaged(DamagedRow::dangling(entry)).into()),
        }
    }
    Ok(rentals)
}
