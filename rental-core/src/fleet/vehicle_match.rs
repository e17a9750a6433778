//! Finds the vehicle of a transponder or plate.

use crate::{
    error::Error,
    resources::{
        parse,
        vehicle::{self, Vehicle},
    },
    store::{Span, Store, all_sound},
    value::{OrganizationId, Plate, VehicleId, same_tag, tag_digits},
};

/// The vehicle of a transponder or plate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum VehicleMatch {
    /// Exactly one vehicle, with this id.
    One(VehicleId),
    /// No vehicle of the fleet.
    None,
    /// Several vehicles, or one by the transponder and another by the plate. The sentence says which.
    Unclear(String),
}

/// Most vehicles with one plate number or transponder serial that are read.
const MOST_VEHICLES: usize = 50;

/// Finds the vehicle of a toll or violation: by its transponder, else by its plate and state. Without either the result is
/// [`VehicleMatch::None`].
///
/// # Errors
/// The store is not available.
pub async fn vehicle_of(
    store: &dyn Store,
    organization: OrganizationId,
    tag: Option<&str>,
    (plate, state): (Option<&str>, Option<&str>),
) -> Result<VehicleMatch, Error> {
    let by_tag = match tag.and_then(tag_digits) {
        Some(digits) => {
            let found = vehicles(store, &vehicle::tag_look_up(&digits).span(organization, &vehicle::SPEC)).await?;
            let has_it = |vehicle: &Vehicle| {
                vehicle.transponder_number.as_deref().and_then(tag_digits).is_some_and(|own| same_tag(&own, &digits))
            };
            found.into_iter().filter(has_it).map(|vehicle| vehicle.id).collect()
        }
        None => Vec::new(),
    };
    let by_plate = match plate.and_then(|plate| Plate::parse(plate, state)) {
        Some(plate) => {
            let found = vehicles(store, &vehicle::plate_look_up(&plate).span(organization, &vehicle::SPEC)).await?;
            of_state(&found, plate.state.as_deref())
        }
        None => Vec::new(),
    };
    Ok(agreed(&by_tag, &by_plate))
}

async fn vehicles(store: &dyn Store, span: &Span) -> Result<Vec<Vehicle>, Error> {
    let found = all_sound(store.scan(span, MOST_VEHICLES).await?)?;
    found.iter().map(|record| parse(&record.key, &record.value)).collect()
}

/// The vehicles whose plate has this state. If there is none: those whose state is unknown, or all if `state` is unknown.
fn of_state(found: &[Vehicle], state: Option<&str>) -> Vec<VehicleId> {
    let own = |vehicle: &Vehicle| Plate::parse(vehicle.plate.as_deref()?, vehicle.plate_state.as_deref())?.state;
    let exact = found.iter().filter(|vehicle| state.is_some() && own(vehicle).as_deref() == state);
    let exact: Vec<VehicleId> = exact.map(|vehicle| vehicle.id).collect();
    if !exact.is_empty() {
        return exact;
    }
    let possible = found.iter().filter(|vehicle| state.is_none() || own(vehicle).is_none());
    possible.map(|vehicle| vehicle.id).collect()
}

fn agreed(by_tag: &[VehicleId], by_plate: &[VehicleId]) -> VehicleMatch {
    let both: Vec<VehicleId> = by_tag.iter().filter(|id| by_plate.contains(id)).copied().collect();
    match (by_tag, by_plate, both.as_slice()) {
        ([], [], _) => VehicleMatch::None,
        (_, _, [one]) => VehicleMatch::One(*one),
        ([tag], [plate, ..], []) => {
            VehicleMatch::Unclear(format!("The transponder belongs to vehicle {tag}, the plate to {plate}."))
        }
        ([one], ..) | ([], [one], _) => VehicleMatch::One(*one),
        ([_, _, ..], ..) => VehicleMatch::Unclear(format!("{} vehicles have this transponder.", by_tag.len())),
        ([], _, _) => VehicleMatch::Unclear(format!("{} vehicles have this plate number.", by_plate.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_and_a_plate_must_agree() {
        let [a, b] = [1, 2].map(VehicleId::from_u128);
        for (tag, plate, expected) in [
            (&[][..], &[][..], VehicleMatch::None),
            (&[a], &[], VehicleMatch::One(a)),
            (&[], &[b], VehicleMatch::One(b)),
            (&[a], &[a], VehicleMatch::One(a)),
            (&[a], &[a, b], VehicleMatch::One(a)),
            (&[a, b], &[b], VehicleMatch::One(b)),
        ] {
            assert_eq!(agreed(tag, plate), expected);
        }
        for (tag, plate) in [(&[a][..], &[b][..]), (&[a, b], &[]), (&[], &[a, b]), (&[a, b], &[a, b])] {
            assert!(matches!(agreed(tag, plate), VehicleMatch::Unclear(_)), "{tag:?} {plate:?}");
        }
    }
}
