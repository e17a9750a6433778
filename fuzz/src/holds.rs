//! Holds against the obvious rule: a rental fits when no other hold of the vehicle has a night in common with it.

use crate::Pieces;
use rental_core::{
    operations::holds,
    resources::organization::BookingPolicy,
    schema::Hold,
    store::{Batch, Commit, Prior, Store, memory::Memory},
    value::{Date, Holder, OrganizationId, RentalId, VehicleId},
};
use std::{
    collections::HashMap,
    future::Future,
    task::{Context, Poll, Waker},
};

/// Each seven bytes are one change: rental, vehicle, start, nights, what.
pub fn check(data: &[u8]) {
    let store = Memory::default();
    let mut pieces = Pieces(data);
    let mut model: HashMap<u8, (u8, u32, u32)> = HashMap::new();
    while !pieces.is_empty() {
        let [rental, vehicle, what] = pieces.array::<3>();
        let (start, nights) =
            (u32::from(u16::from_be_bytes(pieces.array())), u32::from(u16::from_be_bytes(pieces.array())));
        let wanted = (vehicle % 3, start, start + nights.max(1));
        let after = (what & 3 != 0).then_some(wanted);
        let policy = if what & 0x1c == 0 { BookingPolicy::Open } else { BookingPolicy::Exclusive };
        let before = model.get(&rental).copied();
        let clash = |(vehicle, start, end): (u8, u32, u32)| {
            model.iter().any(|(other, held)| *other != rental && held.0 == vehicle && start < held.2 && held.1 < end)
        };
        let refused = policy == BookingPolicy::Exclusive && before != after && after.is_some_and(clash);
        let hold = |(vehicle, start, end): (u8, u32, u32)| hold(vehicle, rental, start, end);
        let mut batch = Batch::default();
        let decided = now(holds::change(
            &store,
            OrganizationId::nil(),
            policy,
            before.map(hold).as_slice(),
            (after.map(hold).as_slice(), Prior::Any),
            &mut batch,
        ));
        assert_eq!(decided.is_err(), refused, "{after:?} of {rental} beside {model:?}");
        if decided.is_ok() {
            assert_eq!(now(store.commit(batch)), Ok(Commit::Applied));
            match after {
                Some(wanted) => drop(model.insert(rental, wanted)),
                None => drop(model.remove(&rental)),
            }
        }
    }
}

fn hold(vehicle: u8, rental: u8, start: u32, end: u32) -> Hold {
    let day = |number| Date::from_day_number(number + 700_000).expect("a day");
    Hold::new(
        VehicleId::from_u128(vehicle.into()),
        Holder::Rental(RentalId::from_u128(rental.into())),
        day(start),
        day(end),
    )
}

/// The memory store answers at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store never waits"),
    }
}
