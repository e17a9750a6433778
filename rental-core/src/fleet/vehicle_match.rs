//! Finds the vehicle that had a transponder or plate at a time.

use super::attribution::Occurrence;
use crate::{
    error::Error,
    resources::{
        Resource,
        assignment::{self, Assignment, AssignmentKind, VehicleAssignments},
        parse,
        vehicle::{NamedVehicle, Vehicle},
    },
    schema::IndexPrefix,
    store::{Record, Span, Store, all_sound},
    value::{Name, OrganizationId, Text, VehicleId, When, Zone},
};

/// The vehicle of a transponder or plate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum VehicleMatch {
    /// Exactly one vehicle, with this id.
    One(VehicleId),
    /// No vehicle of the fleet.
    None,
    /// Several vehicles, or one by the transponder and another by the plate, or none at that time. The sentence says which, and
    /// the ids are those of the vehicles that it can have been.
    Unclear(String, Vec<VehicleId>),
}

/// Most vehicles with one plate number or transponder serial that are read.
const MOST_VEHICLES: usize = 50;
/// Vehicles that a sentence names. A reason has room for no more.
const NAMED_VEHICLES: usize = 3;

/// A vehicle and one of its assignments.
pub type Held = (VehicleId, Assignment);

/// The vehicles that have or had the transponder and the plate of a toll or violation.
#[derive(Clone, Debug, Default)]
pub struct Holders {
    by_tag: Vec<Held>,
    by_plate: Vec<Held>,
    /// Vehicles whose records were read.
    present: Vec<VehicleId>,
    /// The state of the plate that is looked for.
    state: Option<String>,
}

impl Holders {
    /// Reads who has or had a transponder, and a plate with its state.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn read(
        store: &dyn Store,
        organization: OrganizationId,
        tag: Option<&str>,
        (plate, state): (Option<&str>, Option<&str>),
    ) -> Result<Self, Error> {
        let named = |kind, number: &str, state: Option<&str>| {
            let state = state.map(|state| Text::fit(state, 255));
            Some(Assignment { kind, number: Name::fit(number, 255)?, state, from: None, to: None })
        };
        let mut found = Self::default();
        if let Some(tag) = tag.and_then(|tag| named(AssignmentKind::TollTag, tag, None)) {
            found.by_tag = read_holders(store, organization, &tag, &mut found.present).await?;
        }
        if let Some(plate) = plate.and_then(|plate| named(AssignmentKind::Plate, plate, state)) {
            found.state = plate.plate().and_then(|plate| plate.state);
            // Vehicles of another state are left out when the time is known: a vehicle of this state may have it then.
            found.by_plate = read_holders(store, organization, &plate, &mut found.present).await?;
        }
        Ok(found)
    }

    /// The vehicles whose records were read, and so are there.
    #[must_use]
    pub fn present(&self) -> &[VehicleId] {
        &self.present
    }

    /// The vehicle that had them at a time. A day without a time zone is one of `zone`.
    #[must_use]
    pub fn at(&self, when: When, zone: Zone) -> VehicleMatch {
        let at = Occurrence::new(when, zone);
        let tags = then(&self.by_tag, at);
        let plates = of_state(then(&self.by_plate, at), self.state.as_deref());
        let found = agreed(&ids(&tags), &ids(&plates), at);
        match (&found, at) {
            (VehicleMatch::One(vehicle), Some(at))
                if !covers(&tags, *vehicle, at) && !covers(&plates, *vehicle, at) =>
            {
                let own = tags.iter().chain(&plates).find(|(owner, _)| owner == vehicle);
                let held = own.map(|(_, one)| format!("the {} {}", one.kind_in_words(), one.time_in_words()));
                let held = held.unwrap_or_default();
                let why = format!("Vehicle {vehicle} had {held}, and {}.", at.doubt());
                VehicleMatch::Unclear(why, vec![*vehicle])
            }
            (VehicleMatch::None, _) => match self.by_tag.first().or_else(|| self.by_plate.first()) {
                Some((vehicle, other)) => {
                    let (kind, time) = (other.kind_in_words(), other.time_in_words());
                    let why = format!("No vehicle had this {kind} at that time; vehicle {vehicle} has it {time}.");
                    VehicleMatch::Unclear(why, Vec::new())
                }
                None => found,
            },
            _ => found,
        }
    }
}

/// Reads the vehicles that have or had a tag or plate like this one, with the assignments that say so.
///
/// # Errors
/// The store is not available.
pub(crate) async fn holders(
    store: &dyn Store,
    organization: OrganizationId,
    named: &Assignment,
) -> Result<Vec<Held>, Error> {
    read_holders(store, organization, named, &mut Vec::new()).await
}

/// The same. Adds the vehicles whose records were read to `present`.
async fn read_holders(
    store: &dyn Store,
    organization: OrganizationId,
    named: &Assignment,
    present: &mut Vec<VehicleId>,
) -> Result<Vec<Held>, Error> {
    let Some(look_up) = named.look_up() else { return Ok(Vec::new()) };
    let names = |record: &Record| {
        let vehicle = NamedVehicle::read(record)?;
        Ok((vehicle.id, assignment::of_fields(&vehicle.names())))
    };
    // In this order. A vehicle that loses the number between the two reads gets a record in the same write.
    let mut found = read(store, look_up.span(organization, Vehicle::SPEC), names).await?;
    present.extend(found.iter().map(|(vehicle, _)| *vehicle));
    let recorded = recorded(store, organization, &look_up).await?;
    found.retain(|(vehicle, _)| !recorded.iter().any(|(known, _)| known == vehicle));
    found.extend(recorded);
    Ok(like(named, found))
}

/// The same without the vehicles whose fields alone tell it: those with a record, as each has that no longer has the number.
///
/// # Errors
/// The store is not available.
pub(crate) async fn recorded_holders(
    store: &dyn Store,
    organization: OrganizationId,
    named: &Assignment,
) -> Result<Vec<Held>, Error> {
    let Some(look_up) = named.look_up() else { return Ok(Vec::new()) };
    Ok(like(named, recorded(store, organization, &look_up).await?))
}

fn like(named: &Assignment, found: Vec<(VehicleId, Vec<Assignment>)>) -> Vec<Held> {
    let held = found.into_iter().flat_map(|(vehicle, list)| list.into_iter().map(move |one| (vehicle, one)));
    held.filter(|(_, one)| one.is_like(named)).collect()
}

async fn recorded(
    store: &dyn Store,
    organization: OrganizationId,
    look_up: &IndexPrefix,
) -> Result<Vec<(VehicleId, Vec<Assignment>)>, Error> {
    let assignments = |record: &Record| {
        let all: VehicleAssignments = parse(&record.key, &record.value)?;
        Ok((all.vehicle_id, all.assignments))
    };
    read(store, look_up.span(organization, VehicleAssignments::SPEC), assignments).await
}

/// Whether a vehicle has or had a number with one of these look-ups. One call of the store: most new numbers are nobody's.
///
/// # Errors
/// The store is not available.
pub(crate) async fn has_holders(
    store: &dyn Store,
    organization: OrganizationId,
    look_ups: &[IndexPrefix],
) -> Result<bool, Error> {
    if look_ups.is_empty() {
        return Ok(false);
    }
    let entries = |prefix: &IndexPrefix| {
        [Vehicle::SPEC, VehicleAssignments::SPEC].map(|spec| (Span::under(prefix.prefix(organization, spec)), 1))
    };
    let scans: Vec<(Span, usize)> = look_ups.iter().flat_map(entries).collect();
    Ok(store.scan_each(&scans).await?.iter().any(|rows| !rows.is_empty()))
}

async fn read(
    store: &dyn Store,
    span: Span,
    parts: impl Fn(&Record) -> Result<(VehicleId, Vec<Assignment>), Error>,
) -> Result<Vec<(VehicleId, Vec<Assignment>)>, Error> {
    let found = all_sound(store.scan(&span, MOST_VEHICLES).await?)?;
    found.iter().map(parts).collect()
}

/// Those that can be at that time; all of them when it is not known.
fn then(held: &[Held], at: Option<Occurrence>) -> Vec<&Held> {
    let can_be = |one: &Assignment| {
        let (from, to) = one.span();
        at.is_none_or(|at| at.can_be_in(from, to))
    };
    held.iter().filter(|(_, one)| can_be(one)).collect()
}

/// Whether these assignments of the vehicle, one after the other, last during the whole time.
fn covers(held: &[&Held], vehicle: VehicleId, at: Occurrence) -> bool {
    let own = held.iter().filter(|(owner, _)| *owner == vehicle).map(|(_, one)| one);
    at.is_in_any(&assignment::joined_spans(own))
}

fn ids(held: &[&Held]) -> Vec<VehicleId> {
    let mut ids: Vec<VehicleId> = held.iter().map(|(vehicle, _)| *vehicle).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Those whose plate has this state. If there is none: those whose state is unknown, or all if `state` is unknown.
fn of_state<'h>(found: Vec<&'h Held>, state: Option<&str>) -> Vec<&'h Held> {
    let own = |held: &Held| held.1.plate().and_then(|plate| plate.state);
    let exact: Vec<&Held> =
        found.iter().filter(|held| state.is_some() && own(held).as_deref() == state).copied().collect();
    if !exact.is_empty() {
        return exact;
    }
    found.into_iter().filter(|held| state.is_none() || own(held).is_none()).collect()
}

/// Some vehicles in words: `A and B`, or the first ones and how many more there are.
fn listed(vehicles: &[VehicleId]) -> String {
    let mut words: Vec<String> = vehicles.iter().take(NAMED_VEHICLES).map(VehicleId::to_string).collect();
    if vehicles.len() > NAMED_VEHICLES {
        words.push(format!("{} more", vehicles.len() - NAMED_VEHICLES));
    }
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} and {last}", words.join(", ")) }
}

fn agreed(by_tag: &[VehicleId], by_plate: &[VehicleId], at: Option<Occurrence>) -> VehicleMatch {
    let both: Vec<VehicleId> = by_tag.iter().filter(|id| by_plate.contains(id)).copied().collect();
    let several = |vehicles: &[VehicleId], what: &str| {
        let count = vehicles.len();
        let then = match at {
            Some(Occurrence::At { .. }) => format!("had this {what} at that time"),
            Some(Occurrence::Within(..)) => format!("had this {what} on that day"),
            None => format!("have or had this {what}"),
        };
        VehicleMatch::Unclear(format!("{count} vehicles {then}: {}.", listed(vehicles)), vehicles.to_vec())
    };
    match (by_tag, by_plate, both.as_slice()) {
        ([], [], _) => VehicleMatch::None,
        (_, _, [one]) => VehicleMatch::One(*one),
        ([tag], [plate, ..], []) => {
            let why = format!("The transponder belongs to vehicle {tag}, the plate to {plate}.");
            VehicleMatch::Unclear(why, vec![*tag, *plate])
        }
        ([one], ..) | ([], [one], _) => VehicleMatch::One(*one),
        ([_, _, ..], ..) => several(by_tag, "transponder"),
        ([], _, _) => several(by_plate, "plate number"),
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
            assert_eq!(agreed(tag, plate, None), expected);
        }
        for (tag, plate) in [(&[a][..], &[b][..]), (&[a, b], &[]), (&[], &[a, b]), (&[a, b], &[a, b])] {
            let VehicleMatch::Unclear(_, both) = agreed(tag, plate, None) else { panic!("{tag:?} {plate:?}") };
            assert_eq!(both, [a, b]);
        }
    }

    #[test]
    fn vehicles_with_one_number_are_named_as_far_as_a_reason_has_room() {
        for (count, expected) in
            [(2, "1 and 2"), (3, "1, 2 and 3"), (4, "1, 2, 3 and 1 more"), (50, "1, 2, 3 and 47 more")]
        {
            let vehicles: Vec<VehicleId> = (1..=count).map(VehicleId::from_u128).collect();
            let VehicleMatch::Unclear(why, _) = agreed(&[], &vehicles, None) else { panic!("{count}") };
            let named = (1..=count)
                .rev()
                .fold(why, |why, id| why.replace(&VehicleId::from_u128(id).to_string(), &id.to_string()));
            assert_eq!(named, format!("{count} vehicles have or had this plate number: {expected}."));
        }
    }
}
