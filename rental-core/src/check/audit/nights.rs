//! The check that no two rentals or blocks hold one vehicle on one night.

use crate::{
    schema::Hold,
    value::{Date, OrganizationId, VehicleId},
};

/// The holds of the vehicle that the walk is at. Its rows follow each other, those of one length class before those of the next one.
#[derive(Default)]
pub(super) struct Nights {
    of: Option<(OrganizationId, VehicleId)>,
    holds: Vec<Hold>,
}

/// A vehicle that is held more than once on a night.
pub(super) struct Twice {
    pub(super) organization: OrganizationId,
    pub(super) vehicle: VehicleId,
    /// Who holds it, and on which nights, as sentences.
    pub(super) what: Vec<String>,
}

impl Nights {
    /// Adds a hold. Ends the vehicle before, when it is of another one.
    pub(super) fn add(&mut self, organization: OrganizationId, hold: Hold) -> Option<Twice> {
        let of = Some((organization, hold.vehicle));
        let before = if self.of == of { None } else { self.end() };
        self.of = of;
        self.holds.push(hold);
        before
    }

    /// Ends the vehicle that the walk is at. Returns it if it is held more than once on a night.
    pub(super) fn end(&mut self) -> Option<Twice> {
        let ((organization, vehicle), holds) = (self.of.take()?, std::mem::take(&mut self.holds));
        let tell = |(first, second): (Hold, Hold)| {
            format!("{} and {} both hold it {}", first.holder, second.holder, shared(first, second))
        };
        let what: Vec<String> = held_twice(holds).into_iter().map(tell).collect();
        (!what.is_empty()).then_some(Twice { organization, vehicle, what })
    }
}

/// The holds that have a night in common with an earlier one of another rental or block; that one comes first.
fn held_twice(mut holds: Vec<Hold>) -> Vec<(Hold, Hold)> {
    holds.sort_by_key(|hold| (hold.start, hold.end, hold.holder.uuid()));
    let mut found = Vec::new();
    // The latest ends before, of at most two holders: one of them is another one than that of the next hold.
    let mut latest: Vec<Hold> = Vec::new();
    for hold in holds {
        found.extend(
            latest
                .iter()
                .find(|before| before.holder != hold.holder && before.end > hold.start)
                .map(|one| (*one, hold)),
        );
        match latest.iter_mut().find(|before| before.holder == hold.holder) {
            Some(before) if before.end < hold.end => *before = hold,
            Some(_) => {}
            None => latest.push(hold),
        }
        latest.sort_by_key(|before| std::cmp::Reverse(before.end));
        latest.truncate(2);
    }
    found
}

/// The nights that two holds share: `on the nights from 2026-06-03 to 2026-06-04`.
fn shared(first: Hold, second: Hold) -> String {
    let (from, last) = (first.start.max(second.start), first.end.min(second.end) - 1);
    let day = |number| Date::from_day_number(number).map_or_else(|| number.to_string(), |day| day.to_string());
    if from == last {
        return format!("on the night of {}", day(from));
    }
    format!("on the nights from {} to {}", day(from), day(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{BlockId, Holder, RentalId};
    use proptest::prelude::*;

    fn hold(holder: u128, start: u32, nights: u32) -> Hold {
        let by = match holder % 2 {
            0 => Holder::Block(BlockId::from_u128(holder)),
            _ => Holder::Rental(RentalId::from_u128(holder)),
        };
        Hold { vehicle: VehicleId::from_u128(1), holder: by, start, end: start + nights }
    }

    #[test]
    fn the_day_of_return_is_free_and_one_rental_can_have_a_vehicle_twice() {
        assert_eq!(held_twice(vec![hold(1, 10, 3), hold(2, 13, 2), hold(3, 8, 2)]), []);
        assert_eq!(held_twice(vec![hold(1, 10, 3), hold(1, 12, 3)]), []);
        let (first, second) = (hold(1, 10, 3), hold(2, 12, 9));
        assert_eq!(held_twice(vec![second, first]), [(first, second)]);
        assert_eq!(shared(hold(1, 740_000, 3), hold(2, 740_002, 9)), format!("on the night of {}", day(740_002)));
        let nights = format!("on the nights from {} to {}", day(740_001), day(740_002));
        assert_eq!(shared(hold(1, 740_000, 3), hold(2, 740_001, 9)), nights);
    }

    fn day(number: u32) -> Date {
        Date::from_day_number(number).unwrap()
    }

    proptest! {
        /// Compares with each pair of holds.
        #[test]
        fn a_hold_is_told_exactly_when_it_has_a_night_of_an_earlier_one(
            holds in proptest::collection::vec((0u128..5, 0u32..60, 1u32..20), 0..25)
        ) {
            let mut holds: Vec<Hold> = holds.into_iter().map(|(holder, start, nights)| hold(holder, start, nights)).collect();
            let told = held_twice(holds.clone());
            for (first, second) in &told {
                prop_assert!(first.holder != second.holder && first.overlaps(second.start, second.end));
            }
            holds.sort_by_key(|hold| (hold.start, hold.end, hold.holder.uuid()));
            let expected: Vec<Hold> = holds.iter().enumerate().filter(|(at, hold)| {
                holds[..*at].iter().any(|other| other.holder != hold.holder && other.overlaps(hold.start, hold.end))
            }).map(|(_, hold)| *hold).collect();
            prop_assert_eq!(told.into_iter().map(|(_, second)| second).collect::<Vec<_>>(), expected);
        }
    }
}
