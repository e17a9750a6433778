//! Holds: the nights for which a rental or a block holds its vehicle. No two of them hold a vehicle on the same night.
//!
//! The key of a hold contains its length class (a power of eight) and its first day. The first days of two holds of one class
//! that do not overlap are at least that far apart. So a new hold needs only a few neighbours in each used class, however
//! many rentals a vehicle has. The vehicle's calendar contains the used classes. Every batch that adds a hold checks the
//! revision of the calendar, so of two concurrent batches only one commits, on any engine.

use crate::{
    error::Error,
    resources::organization::BookingPolicy,
    rows::key,
    schema::Hold,
    store::{Batch, Key, Order, Pages, Prior, Record, Span, Store, all_sound, get_one},
    value::{Date, Holder, OrganizationId, VehicleId},
};
use bytes::Bytes;

impl Hold {
    pub(crate) fn key(self, organization: OrganizationId) -> Key {
        key::hold(organization, self.vehicle, self.class(), self.start, self.holder)
    }

    /// The value of the row: the number of the day after the last night.
    pub(crate) fn value(self) -> Bytes {
        Bytes::copy_from_slice(&self.end.to_be_bytes())
    }
}

/// Adds the writes that turn the holds `before` of a rental or block into `after`, and the checks that they need. `prior` says
/// whether the rental or block is new, so that none of its rows can exist.
///
/// # Errors
/// [`Error::VehicleUnavailable`] when another rental or block holds a vehicle on one of the nights and the policy is exclusive.
pub async fn change(
    store: &dyn Store,
    organization: OrganizationId,
    policy: BookingPolicy,
    before: &[Hold],
    (after, prior): (&[Hold], Prior),
    batch: &mut Batch,
) -> Result<(), Error> {
    let keys: Vec<Key> = after.iter().map(|hold| hold.key(organization)).collect();
    for gone in before.iter().map(|hold| hold.key(organization)).filter(|key| !keys.contains(key)) {
        batch.delete(gone);
    }
    let new: Vec<Hold> = after.iter().copied().filter(|hold| !before.contains(hold)).collect();
    for (at, first) in new.iter().enumerate() {
        // One change of the calendar for all new holds of a vehicle.
        if new[..at].iter().any(|earlier| earlier.vehicle == first.vehicle) {
            continue;
        }
        let calendar_key = key::calendar(organization, first.vehicle);
        let calendar = get_one(store, &calendar_key).await?;
        let mut classes = calendar.as_ref().map_or(Ok(0), classes_in_use)?;
        for wanted in new.iter().filter(|hold| hold.vehicle == first.vehicle) {
            if policy == BookingPolicy::Exclusive
                && let Some(other) = first_conflict(store, organization, classes, *wanted).await?
            {
                return Err(unavailable(other));
            }
            classes |= wanted.calendar_bit();
            batch.put(wanted.key(organization), wanted.value(), prior);
        }
        let classes = Bytes::copy_from_slice(&classes.to_be_bytes());
        match calendar {
            Some(record) => batch.replace(calendar_key, record.revision, classes),
            None => batch.insert(calendar_key, classes),
        }
    }
    Ok(())
}

/// Lets only one of two concurrent batches commit that both have this for a vehicle. Call it before you read what decides about the
/// batch: it adds a change of the vehicle's calendar that changes nothing.
///
/// # Errors
/// The store is not available.
pub(super) async fn take_turns(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    batch: &mut Batch,
) -> Result<(), Error> {
    let place = key::calendar(organization, vehicle);
    match get_one(store, &place).await? {
        Some(record) => batch.replace(place, record.revision, record.value),
        None => batch.insert(place, Bytes::copy_from_slice(&0u32.to_be_bytes())),
    }
    Ok(())
}

pub(super) fn classes_in_use(calendar: &Record) -> Result<u32, Error> {
    let bytes = calendar.value.as_ref().try_into();
    bytes.map(u32::from_be_bytes).map_err(|_| Error::damaged_row(&calendar.key, "it has the wrong size"))
}

/// Holds in one scan.
const STEP: usize = 16;
/// The same when all holds are read.
const PAGE: usize = 500;

async fn first_conflict(
    store: &dyn Store,
    organization: OrganizationId,
    classes: u32,
    wanted: Hold,
) -> Result<Option<Hold>, Error> {
    for class in Hold::classes(classes) {
        let Span { from, mut to, .. } = starts_within(organization, wanted.vehicle, class, (wanted.start, wanted.end));
        loop {
            let span = Span { from: from.clone(), to, order: Order::Descending, follow: None };
            let found = all_sound(store.scan(&span, STEP).await?)?;
            for record in &found {
                let hold = read(wanted.vehicle, record)?;
                if hold.holder != wanted.holder && hold.overlaps(wanted.start, wanted.end) {
                    return Ok(Some(hold));
                }
            }
            match found.last() {
                Some(last) if found.len() == STEP => to = last.key.clone(),
                _ => break,
            }
        }
    }
    Ok(None)
}

/// What else holds the vehicle of `wanted` on one of its nights.
pub(super) async fn other(
    store: &dyn Store,
    organization: OrganizationId,
    wanted: Hold,
) -> Result<Option<Holder>, Error> {
    let calendar = get_one(store, &key::calendar(organization, wanted.vehicle)).await?;
    let classes = calendar.as_ref().map_or(Ok(0), classes_in_use)?;
    Ok(first_conflict(store, organization, classes, wanted).await?.map(|hold| hold.holder))
}

/// All holds of a vehicle on the nights `[start, end)`.
pub(super) async fn within(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    (start, end): (u32, u32),
) -> Result<Vec<Hold>, Error> {
    let Some(calendar) = get_one(store, &key::calendar(organization, vehicle)).await? else { return Ok(Vec::new()) };
    let mut holds = Vec::new();
    for class in Hold::classes(classes_in_use(&calendar)?) {
        let mut pages = Pages::of(store, starts_within(organization, vehicle, class, (start, end)), PAGE);
        while let Some(page) = pages.next().await? {
            for row in all_sound(page)? {
                holds.push(read(vehicle, &row)?);
            }
        }
    }
    holds.retain(|hold| hold.overlaps(start, end));
    Ok(holds)
}

/// The holds of one length class that can contain a night of `[start, end)`, the latest first.
pub(super) fn starts_within(
    organization: OrganizationId,
    vehicle: VehicleId,
    class: u8,
    (start, end): (u32, u32),
) -> Span {
    let starts = Hold::starts(class, start, end);
    let at = |start| key::holds_from(organization, vehicle, class, start);
    Span { from: at(starts.start), to: at(starts.end), order: Order::Descending, follow: None }
}

pub(super) fn read(vehicle: VehicleId, record: &Record) -> Result<Hold, Error> {
    let parts = key::hold_parts(&record.key).zip(record.value.as_ref().try_into().ok());
    let ((start, holder), end) = parts.ok_or_else(|| Error::damaged_row(&record.key, "it has the wrong size"))?;
    Ok(Hold { vehicle, holder, start, end: u32::from_be_bytes(end) })
}

fn unavailable(other: Hold) -> Error {
    let day = |number| Date::from_day_number(number).map_or_else(String::new, |date| date.to_string());
    let message = format!(
        "The vehicle is held by {} from {} to {}. Choose other dates or another vehicle, or cancel that {}.",
        other.holder,
        day(other.start),
        day(other.end),
        other.holder.object()
    );
    Error::VehicleUnavailable { holder: other.holder, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        store::{Commit, memory::Memory},
        value::{BlockId, RentalId},
    };
    use proptest::prelude::*;
    use std::{
        collections::HashMap,
        future::Future,
        task::{Context, Poll, Waker},
    };

    /// The memory store answers at once.
    fn now<T>(future: impl Future<Output = T>) -> T {
        match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("the memory store never waits"),
        }
    }

    fn hold(rental: u128, start: u32, nights: u32) -> Hold {
        let day = |number| Date::from_day_number(number).unwrap();
        let holder = match rental % 3 {
            0 => Holder::Block(BlockId::from_u128(rental)),
            _ => Holder::Rental(RentalId::from_u128(rental)),
        };
        Hold::new(VehicleId::from_u128(1), holder, day(start), day(start + nights))
    }

    fn take(store: &Memory, policy: BookingPolicy, before: Option<Hold>, after: Option<Hold>) -> Result<Commit, Error> {
        let mut batch = Batch::default();
        let (before, after): (Vec<Hold>, Vec<Hold>) = (before.into_iter().collect(), after.into_iter().collect());
        now(change(store, OrganizationId::nil(), policy, &before, (&after, Prior::Any), &mut batch))?;
        Ok(now(store.commit(batch))?)
    }

    #[test]
    fn a_night_is_held_once_and_the_return_day_is_free() {
        let store = Memory::default();
        assert!(take(&store, BookingPolicy::Exclusive, None, Some(hold(1, 100, 3))).is_ok());
        assert!(take(&store, BookingPolicy::Exclusive, None, Some(hold(2, 103, 2))).is_ok());
        let refused = take(&store, BookingPolicy::Exclusive, None, Some(hold(3, 102, 1)));
        assert!(
            matches!(refused, Err(Error::VehicleUnavailable { holder, .. }) if holder == Holder::Rental(RentalId::from_u128(1)))
        );
    }

    #[test]
    fn a_same_day_rental_holds_that_day() {
        let store = Memory::default();
        assert!(take(&store, BookingPolicy::Exclusive, None, Some(hold(1, 100, 0))).is_ok());
        assert!(take(&store, BookingPolicy::Exclusive, None, Some(hold(2, 100, 0))).is_err());
        assert!(take(&store, BookingPolicy::Exclusive, None, Some(hold(3, 101, 0))).is_ok());
    }

    #[test]
    fn two_that_saw_the_same_calendar_cannot_both_commit() {
        let store = Memory::default();
        let (mut first, mut second) = (Batch::default(), Batch::default());
        for (batch, rental) in [(&mut first, 1), (&mut second, 2)] {
            now(change(
                &store,
                OrganizationId::nil(),
                BookingPolicy::Exclusive,
                &[],
                (&[hold(rental, 100, 3)], Prior::Any),
                batch,
            ))
            .unwrap();
        }
        assert_eq!(now(store.commit(first)), Ok(Commit::Applied));
        assert!(matches!(now(store.commit(second)), Ok(Commit::Stale(_))));
    }

    proptest! {
        /// Compares with the simple rule: a hold fits if it overlaps no existing one, including those from an open policy.
        #[test]
        fn fits_exactly_when_no_other_hold_overlaps(
            steps in proptest::collection::vec((0u128..12, 0u32..400, prop_oneof![0u32..9, 0u32..300], any::<bool>(), prop::bool::weighted(0.15)), 1..60)
        ) {
            let store = Memory::default();
            let mut model: HashMap<u128, Hold> = HashMap::new();
            for (rental, start, nights, release, open) in steps {
                let before = model.get(&rental).copied();
                let after = (!release).then(|| hold(rental, start, nights));
                let policy = if open { BookingPolicy::Open } else { BookingPolicy::Exclusive };
                let clash = after.is_some_and(|new| before != after && model.values().any(|old| old.holder != new.holder && old.overlaps(new.start, new.end)));
                let outcome = take(&store, policy, before, after);
                prop_assert_eq!(outcome.is_err(), clash && !open, "{:?} in {:?}", after, model);
                if outcome.is_ok() {
                    match after {
                        Some(new) => drop(model.insert(rental, new)),
                        None => drop(model.remove(&rental)),
                    }
                }
            }
        }
    }
}
