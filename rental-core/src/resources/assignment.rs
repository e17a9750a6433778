//! Dated assignments: which toll tags and plates a vehicle had, and when.
//!
//! A vehicle without a record here has had its present transponder and plate since ever. The first change that this does not
//! tell writes the record ([`crate::operations::assignments`]). From then on the record has every assignment of the vehicle,
//! also the present ones.

use super::vehicle::{self, Vehicle};
use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    resources::{Portable, Resource, RuleContext, fields},
    schema::{
        BY_UPDATE, CREATED_AT, Effects, Facts, Grounds, IndexPrefix, IndexSpec, Kind, LookUpSpec, Names, ResourceSpec,
        UPDATED_AT, field, filter, id, index, look_up, object, ordered_index,
    },
    value::{
        AssignmentsId, FieldValue, FromField, Name, Plate, Text, Timestamp, VehicleId, objects, same_tag, tag_number,
        words,
    },
};
use serde::{Deserialize, Serialize};

/// Most assignments of one vehicle.
pub const MOST_ASSIGNMENTS: usize = 100;

words! {
    /// What is assigned to a vehicle.
    pub enum AssignmentKind {
        /// A toll transponder.
        TollTag = "toll_tag",
        /// A license plate.
        Plate = "plate",
    }
}

const OF_VEHICLE: IndexSpec = index(1, &["vehicle_id"]);
/// The look-up of vehicles by the serial of a transponder that they have or had. Its entries have the values of the same
/// look-up of vehicles.
const TAG: LookUpSpec = look_up(128, "transponder");
/// The look-up of vehicles by the number of a plate that they have or had, likewise.
const PLATE: LookUpSpec = look_up(129, "plate");

/// The example of the assignments in the documentation.
const EXAMPLE: &str = "[{\"kind\":\"toll_tag\",\"number\":\"00412345678\",\"state\":null,\"from\":null,\"to\":\"2026-06-15T14:00:00.000Z\"},\
    {\"kind\":\"plate\",\"number\":\"ABC1234\",\"state\":\"NY\",\"from\":null,\"to\":null}]";

/// The description of the assignments of a vehicle.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "vehicle_assignments",
    plural: "assignments",
    tag: 23,
    doc: "The toll tags and plates that a vehicle has and had, each with its time.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000017\""),
        object("\"vehicle_assignments\""),
        field("vehicle_id", Kind::Reference("vehicle"), "The vehicle.", "\"0190d0f2-7c3a-7cc0-8000-000000000001\""),
        field("assignments", Kind::Assignments, "What the vehicle has and had, at most 100.", EXAMPLE).update_only(),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[filter("vehicle", "vehicle_id")],
    ranges: BY_UPDATE,
    indexes: &[OF_VEHICLE, ordered_index(16, "updated_at")],
    look_ups: &[TAG, PLATE],
    usual_changes: &["assignments"],
};

fields! {
    /// A toll tag or plate with the time in which a vehicle has it: from the first instant until just before the second one,
    /// each `None` without a bound. The state of a plate is in any spelling.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "the names say it")]
    pub struct Assignment {
        pub kind: AssignmentKind,
        pub number: Name,
        pub state: Option<Text>,
        pub from: Option<Timestamp>,
        pub to: Option<Timestamp>,
    }
}

fields! {
    /// The assignments of one vehicle.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct VehicleAssignments {
        pub id: AssignmentsId,
        pub object: String,
        pub vehicle_id: VehicleId,
        pub assignments: Vec<Assignment>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Assignment {
    /// The first instant and the first one after it.
    #[must_use]
    pub fn span(&self) -> (Timestamp, Timestamp) {
        (self.from.unwrap_or(Timestamp::FIRST), self.to.unwrap_or(Timestamp::LAST))
    }

    /// The prefix of the entries in the look-up of transponders or plates; `None` for a number that no statement can name.
    #[must_use]
    pub fn look_up(&self) -> Option<IndexPrefix> {
        match self.kind {
            AssignmentKind::TollTag => tag_number(&self.number).map(|number| vehicle::tag_look_up(&number)),
            AssignmentKind::Plate => self.plate().map(|plate| vehicle::plate_look_up(&plate)),
        }
    }

    /// The plate in canonical form.
    #[must_use]
    pub fn plate(&self) -> Option<Plate> {
        Plate::parse(&self.number, self.state.as_deref()).filter(|_| self.kind == AssignmentKind::Plate)
    }

    /// Whether both can be the same tag or plate. A plate without a state can be that of any state.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self.kind, other.kind) {
            (AssignmentKind::TollTag, AssignmentKind::TollTag) => tag_number(&self.number)
                .zip(tag_number(&other.number))
                .is_some_and(|(one, other)| same_tag(&one, &other)),
            (AssignmentKind::Plate, AssignmentKind::Plate) => {
                self.plate().zip(other.plate()).is_some_and(|(one, other)| {
                    let states = one.state.zip(other.state);
                    one.number == other.number && states.is_none_or(|(one, other)| one == other)
                })
            }
            _ => false,
        }
    }

    /// Whether both are the same tag or plate, of the same state.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.is_like(other) && self.plate() == other.plate()
    }

    /// Whether both can be the same tag or plate at the same time.
    #[must_use]
    pub fn clashes_with(&self, other: &Self) -> bool {
        self.is_like(other) && self.overlap(other).is_some()
    }

    /// The time that both have in common.
    fn overlap(&self, other: &Self) -> Option<(Timestamp, Timestamp)> {
        let ((from, to), (other_from, other_to)) = (self.span(), other.span());
        let (from, to) = (from.max(other_from), to.min(other_to));
        (from < to).then_some((from, to))
    }

    /// Whether this assignment of a vehicle clashes with that of another one at a time at which those of the vehicle did not
    /// clash `before`. An overlap that is there can be made shorter, first at one vehicle and then at the other one.
    #[must_use]
    pub(crate) fn newly_clashes_with(&self, other: &Self, before: &[Self]) -> bool {
        let Some((from, to)) = self.overlap(other).filter(|_| self.is_like(other)) else { return false };
        let had = joined_spans(before.iter().filter(|one| one.is_like(other)));
        !had.iter().any(|(begin, end)| *begin <= from && to <= *end)
    }

    /// The assignment in words: `transponder 00412345678 from 2026-06-01T00:00:00.000Z`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let kind = self.kind_in_words();
        let state = self.state.as_deref().map(|state| format!(" of {state}")).unwrap_or_default();
        format!("{kind} {}{state} {}", &*self.number, self.time_in_words())
    }

    /// What is assigned, in words.
    #[must_use]
    pub fn kind_in_words(&self) -> &'static str {
        match self.kind {
            AssignmentKind::TollTag => "transponder",
            AssignmentKind::Plate => "plate",
        }
    }

    /// Its time in words.
    #[must_use]
    pub fn time_in_words(&self) -> String {
        match (self.from, self.to) {
            (None, None) => "at all times".to_owned(),
            (Some(from), None) => format!("from {from} on"),
            (None, Some(to)) => format!("until {to}"),
            (Some(from), Some(to)) => format!("from {from} to {to}"),
        }
    }
}

/// The times of some assignments, with those that follow each other joined.
#[must_use]
pub(crate) fn joined_spans<'a>(list: impl Iterator<Item = &'a Assignment>) -> Vec<(Timestamp, Timestamp)> {
    let mut spans: Vec<(Timestamp, Timestamp)> = list.map(Assignment::span).collect();
    spans.sort_unstable();
    let mut joined: Vec<(Timestamp, Timestamp)> = Vec::new();
    for (from, to) in spans {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// The transponder and the plate of a vehicle's fields as assignments without beginning and end.
#[must_use]
pub fn of_fields([tag, plate, state]: &Names) -> Vec<Assignment> {
    let open = |kind, number: &Option<String>, state: Option<Text>| {
        let number = Name::parse(number.clone()?, 255).ok()?;
        let one = Assignment { kind, number, state, from: None, to: None };
        one.look_up().is_some().then_some(one)
    };
    let state = state.as_deref().map(|state| Text::fit(state, 255));
    let tag = open(AssignmentKind::TollTag, tag, None);
    tag.into_iter().chain(open(AssignmentKind::Plate, plate, state)).collect()
}

/// The assignments of a vehicle after its fields have changed from `before` to `after` at `now`. What it no longer has ends
/// now, except what it never had (`mistaken`): that is removed. What it gets begins now if it moved here from another vehicle
/// (`moved`), or this one had it before; else it is like the fields of a new vehicle, and so a correction, and has no beginning.
#[must_use]
pub fn changed(
    mut list: Vec<Assignment>,
    (before, after): (&Names, &Names),
    (moved, mistaken): (impl Fn(&Assignment) -> bool, impl Fn(&Assignment) -> bool),
    now: Timestamp,
) -> Vec<Assignment> {
    let (before, after) = (of_fields(before), of_fields(after));
    for gone in before.iter().filter(|old| !after.iter().any(|new| new.is_same(old))) {
        let Some(at) = list.iter().position(|one| one.to.is_none() && one.is_same(gone)) else { continue };
        // A plate whose state becomes known or unknown is the same plate.
        if let Some(new) = after.iter().find(|new| new.is_like(gone)) {
            let ended = list.iter().filter(|one| one.to.is_some() && one.is_like(new)).filter_map(|one| one.to).max();
            list[at] = Assignment { from: list[at].from.max(ended), ..new.clone() };
        } else if list[at].from.is_none() && mistaken(&list[at]) {
            list.remove(at);
        } else {
            // What was planned for later never begins.
            list[at].to = Some(list[at].from.map_or(now, |from| from.max(now)));
        }
    }
    list.retain(|one| one.span().0 < one.span().1);
    for new in after {
        if !list.iter().any(|one| one.to.is_none() && one.is_same(&new)) {
            let from = (moved(&new) || list.iter().any(|one| one.is_like(&new))).then_some(now);
            list.push(Assignment { from, ..new });
        }
    }
    bounded(list)
}

/// The error of one assignment in a list.
pub(crate) fn wrong(at: usize, member: &str, rule: &str) -> FieldError {
    FieldError::new(&format!("assignments[{at}]{member}"), FieldCode::Invalid, rule)
}

/// Checks a whole list against the fields of its vehicle.
#[must_use]
pub fn mistakes(list: &[Assignment], vehicle: &Vehicle) -> FieldErrors {
    let mut errors = FieldErrors::default();
    for (at, one) in list.iter().enumerate() {
        if one.look_up().is_none() {
            let rule = match one.kind {
                AssignmentKind::TollTag => "must be the number of a transponder, with a digit",
                AssignmentKind::Plate => "must have a letter or digit",
            };
            errors.add(|| wrong(at, ".number", rule));
        }
        if one.kind == AssignmentKind::TollTag && one.state.is_some() {
            errors.add(|| wrong(at, ".state", "must be null for a toll tag"));
        }
        if one.from.zip(one.to).is_some_and(|(from, to)| from >= to) {
            errors.add(|| wrong(at, ".to", "must be after `from`"));
        }
        if let Some(earlier) = list[..at].iter().position(|earlier| earlier.clashes_with(one)) {
            let rule = format!(
                "overlaps with `assignments[{earlier}]`, {}: end one before the other begins, or make them one",
                list[earlier].in_words()
            );
            errors.add(|| wrong(at, "", &rule));
        }
    }
    for own in lacking(list, vehicle) {
        let field = match own.kind {
            AssignmentKind::TollTag => "transponder_number",
            AssignmentKind::Plate => "plate",
        };
        let rule = format!(
            "must have the vehicle's present `{field}` without a `to`: {}. To end it, change the vehicle first",
            Assignment { from: None, to: None, ..own }.in_words().trim_end_matches(" at all times")
        );
        errors.add(|| FieldError::new("assignments", FieldCode::Invalid, &rule));
    }
    errors
}

/// What a vehicle has by its fields, and no assignment of the list without an end says.
#[must_use]
pub fn lacking(list: &[Assignment], vehicle: &Vehicle) -> Vec<Assignment> {
    let mut own = of_fields(&vehicle.names());
    own.retain(|own| !list.iter().any(|one| one.to.is_none() && one.is_same(own)));
    own
}

/// The list without the assignments that ended first, if it is too long.
fn bounded(mut list: Vec<Assignment>) -> Vec<Assignment> {
    while list.len() > MOST_ASSIGNMENTS {
        let ended = (0..list.len()).min_by_key(|at| list[*at].span().1).unwrap_or(0);
        list.remove(ended);
    }
    list
}

/// The prefix of the index entry of a vehicle's assignments.
#[must_use]
pub(crate) fn of_vehicle(vehicle: VehicleId) -> IndexPrefix {
    IndexPrefix::new(OF_VEHICLE.number).with(vehicle.as_bytes())
}

impl FromField for Vec<Assignment> {
    fn from_field(value: &FieldValue) -> Option<Self> {
        objects(value)
    }
}

impl Resource for VehicleAssignments {
    const SPEC: &'static ResourceSpec = &SPEC;

    /// One record for each vehicle, and the look-ups by every tag and plate.
    fn effects(&self) -> Effects {
        let held = self.assignments.iter().filter_map(|one| Some((one.look_up()?, format!("{one:?}"))));
        let held: Vec<(IndexPrefix, String)> = held.collect();
        let mut entries: Vec<IndexPrefix> = Vec::new();
        for (entry, _) in &held {
            if !entries.contains(entry) {
                entries.push(entry.clone());
            }
        }
        let facts = Facts::Assignments(held);
        Effects {
            entries,
            identity: Some(self.vehicle_id.to_string()),
            grounds: Some(Grounds { vehicle: self.vehicle_id, from: 0, facts }),
            ..Effects::default()
        }
    }
}

impl Portable for VehicleAssignments {
    fn arrive(&self, context: &RuleContext<'_>) -> Result<(), Error> {
        match context.reference::<Vehicle>("vehicle_id")? {
            Some(vehicle) => mistakes(&self.assignments, &vehicle).or(()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
