//! Keeps the dated assignments of a vehicle in step with its fields, and replaces them for an operator.

use super::{
    completion::finish,
    edge::{Edge, created_at, id_time},
    intent::{Intent, Prepared, Preparing},
    newest::made_at,
    read::get,
};
use crate::{
    error::{Error, FieldCode, FieldErrors},
    fleet::{Held, has_holders, holders, recorded_holders},
    request::body::Verb,
    resources::{
        Object, Outcome, Resource,
        assignment::{self, Assignment, VehicleAssignments, changed, mistakes, of_fields, wrong},
        effects,
        organization::Organization,
        parse,
        vehicle::{self, Vehicle},
    },
    schema::{Effects, Facts, Fields, IndexPrefix, Names},
    store::{Batch, Check, Record, Revision, Store, all_sound, get_one},
    value::{FromField, Id, OrganizationId, Timestamp, VehicleId},
};
use bytes::Bytes;
use serde_json::json;

/// How long after the creation of a vehicle a number that it loses can have been mistyped: 30 days, in milliseconds.
const CORRECTED_WITHIN: i64 = 30 * 86_400_000;

/// The assignments of a vehicle as an operator sees them, also of a vehicle without a record of them, with their revision.
///
/// # Errors
/// No vehicle has this id, or the store is not available.
pub async fn shown(store: &dyn Store, organization: OrganizationId, id: &str) -> Result<(Bytes, Revision), Error> {
    let record = get(store, organization, &vehicle::SPEC, id).await?;
    let vehicle: Vehicle = parse(&record.key, &record.value)?;
    let known = recorded(store, organization, vehicle.id).await?;
    Ok((view(vehicle.id, &present(known.as_ref(), &vehicle)), revision(&record, known.as_ref())))
}

/// The revision of what an operator sees. Both rows tell it, and their revisions only rise, so their sum is a revision too.
fn revision(vehicle: &Record, known: Option<&(Record, VehicleAssignments)>) -> Revision {
    vehicle.revision + known.map_or(0, |(record, _)| record.revision)
}

fn view(vehicle: VehicleId, list: &[Assignment]) -> Bytes {
    json!({"object": assignment::SPEC.object, "vehicle_id": vehicle, "assignments": list}).to_string().into()
}

/// All assignments of a vehicle: those that are recorded, else those that its fields tell.
fn present(known: Option<&(Record, VehicleAssignments)>, vehicle: &Vehicle) -> Vec<Assignment> {
    known.map_or_else(|| of_fields(&vehicle.names()), |(_, all)| all.assignments.clone())
}

/// The request of an operator to replace all assignments of a vehicle.
pub struct Assign<'a> {
    /// The organization that owns the vehicle.
    pub organization: &'a Organization,
    /// The id of the vehicle in the path.
    pub vehicle: &'a str,
    /// The request's body.
    pub body: &'a [u8],
    /// Whether the caller expects this present revision of the assignments.
    pub expected: &'a (dyn Fn(Revision) -> bool + Sync),
}

impl Intent for Assign<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let organization = self.organization;
            let fields = Fields::parse(self.body, &assignment::SPEC, Verb::Update, 0)?;
            let list: Option<Vec<Assignment>> = fields.get("assignments").and_then(FromField::from_field);
            let list = list.ok_or_else(|| Error::field("assignments", FieldCode::Missing, "is required"))?;
            let record = get(store, organization.id, &vehicle::SPEC, self.vehicle).await?;
            let vehicle: Vehicle = parse(&record.key, &record.value)?;
            let known = recorded(store, organization.id, vehicle.id).await?;
            let mut revision = revision(&record, known.as_ref());
            if !(self.expected)(revision) {
                return Err(Error::PreconditionFailed);
            }
            let before = present(known.as_ref(), &vehicle);
            let mut errors = mistakes(&list, &vehicle);
            errors
                .extend(clashes(store, organization.id, vehicle.id, (&before, &list)).await?.listed().iter().cloned());
            errors.or(())?;
            let mut batch = Batch::default();
            let body = view(vehicle.id, &list);
            if list != before {
                // The list agrees with these fields.
                batch.checks.push(Check::At(record.key, record.revision));
                batch = write(store, edge, organization, (vehicle.id, known), list, batch).await?;
                revision += 1;
            }
            Ok(Prepared { batch, body, revision, object: Some(Box::new(vehicle)), asks: Vec::new() })
        })
    }
}

/// An error for each new or changed assignment that another vehicle has at the same time, unless it was so before.
async fn clashes(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    (before, after): (&[Assignment], &[Assignment]),
) -> Result<FieldErrors, Error> {
    let mut errors = FieldErrors::default();
    for (at, new) in after.iter().enumerate().filter(|(_, one)| !before.contains(one)) {
        let held = holders(store, organization, new).await?;
        for (other, theirs) in
            held.iter().filter(|(other, one)| *other != vehicle && new.newly_clashes_with(one, before))
        {
            let rule = format!(
                "overlaps with the {} of vehicle {other}: change the assignments of that vehicle first, or give times that \
                 do not overlap",
                theirs.in_words()
            );
            errors.add(|| wrong(at, "", &rule));
        }
    }
    Ok(errors)
}

/// The record of a vehicle's assignments, if it has one.
///
/// # Errors
/// The store is not available.
pub async fn recorded(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
) -> Result<Option<(Record, VehicleAssignments)>, Error> {
    let span = assignment::of_vehicle(vehicle).span(organization, &assignment::SPEC);
    let found = all_sound(store.scan(&span, 1).await?)?.pop();
    found.map(|record| Ok((record.clone(), parse(&record.key, &record.value)?))).transpose()
}

/// Adds to the batch of a vehicle what the change of its transponder or plate means for its assignments. A vehicle needs no
/// record as long as its fields tell all of them.
pub(super) async fn follow(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    (before, after): (Option<&Effects>, &Effects),
    batch: Batch,
) -> Result<Batch, Error> {
    let (was, is) = (before.and_then(names), names(after));
    let Some(vehicle) = was.or(is).map(|(vehicle, _)| vehicle).filter(|_| was != is) else { return Ok(batch) };
    let nothing = Names::default();
    let [was, is] = [was, is].map(|names| names.map_or(&nothing, |(_, names)| names));
    let known = match before {
        Some(_) => recorded(store, organization.id, vehicle).await?,
        None => None,
    };
    let mut held: Vec<Held> = Vec::new();
    let own = of_fields(is);
    let look_ups: Vec<IndexPrefix> = own.iter().filter_map(Assignment::look_up).collect();
    let is_known = has_holders(store, organization.id, &look_ups).await?;
    for named in own.into_iter().filter(|_| is_known) {
        held.extend(match before {
            Some(_) => holders(store, organization.id, &named).await?,
            None => recorded_holders(store, organization.id, &named).await?,
        });
    }
    let held = without_corrected(store, organization.id, held).await?;
    // When a new vehicle has a number that another one still has, nobody knows which of them has it: it did not move.
    let tells = |one: &Assignment| before.is_some() || one.to.is_some();
    let moved =
        |named: &Assignment| held.iter().any(|(owner, one)| *owner != vehicle && one.is_like(named) && tells(one));
    let list = known.as_ref().map_or_else(|| of_fields(was), |(_, all)| all.assignments.clone());
    let created = match before {
        Some(_) => made(store, organization.id, vehicle, edge.now()).await?,
        None => created_at(vehicle.uuid(), edge.now()),
    };
    let is_new = edge.now() < created.plus_millis(CORRECTED_WITHIN);
    let rivals = if is_new { rivals(store, organization.id, vehicle, created, (was, is)).await? } else { Vec::new() };
    let mistaken = |gone: &Assignment| rivals.iter().any(|rival| rival.is_like(gone));
    let next = changed(list, (was, is), (moved, mistaken), edge.now());
    match known {
        None if next == of_fields(is) => Ok(batch),
        known => write(store, edge, organization, (vehicle, known), next, batch).await,
    }
}

/// These assignments without those that were corrected: a vehicle lost the number soon after its creation, and is taken to have had
/// another one of that kind all the time. Such a number did not move from that vehicle to the next one: which of the two had it
/// before is not known.
async fn without_corrected(
    store: &dyn Store,
    organization: OrganizationId,
    held: Vec<Held>,
) -> Result<Vec<Held>, Error> {
    let mut moved = Vec::with_capacity(held.len());
    for (owner, one) in held {
        let all = match one.to.filter(|_| one.from.is_none()) {
            Some(to) if to < made(store, organization, owner, to).await?.plus_millis(CORRECTED_WITHIN) => {
                recorded(store, organization, owner).await?
            }
            _ => None,
        };
        let right = |other: &Assignment| other.kind == one.kind && other.from.is_none() && !other.is_like(&one);
        if !all.is_some_and(|(_, all)| all.assignments.iter().any(right)) {
            moved.push((owner, one));
        }
    }
    Ok(moved)
}

/// When a vehicle was created, before a later time of the clock: the time in its id, unless ids were ahead of the clock.
async fn made(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    later: Timestamp,
) -> Result<Timestamp, Error> {
    let in_id = id_time(vehicle.uuid());
    if in_id <= later {
        return Ok(in_id);
    }
    let record = get_one(store, &Vehicle::key(organization, vehicle)).await?;
    Ok(record.as_ref().and_then(made_at).unwrap_or(later))
}

/// The assignments of other vehicles with a number that a new vehicle loses, when the other vehicle had the number before the new one
/// was created. The new vehicle was then created with a number that it never had. A number that the other vehicle got later has moved.
/// A plate of another state, or of none, is another plate.
async fn rivals(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    created: Timestamp,
    (was, is): (&Names, &Names),
) -> Result<Vec<Assignment>, Error> {
    let is = of_fields(is);
    let mut rivals = Vec::new();
    for gone in of_fields(was).into_iter().filter(|gone| !is.iter().any(|kept| kept.is_like(gone))) {
        let held = holders(store, organization, &gone).await?.into_iter();
        // Ids rise with the time of creation.
        let is_earlier = |(owner, one): &Held| one.from.map_or(*owner < vehicle, |from| from < created);
        let is_it = |one: &Assignment| one.to.is_none() && (gone.state.is_none() || one.is_same(&gone));
        let others = held.filter(|(owner, one)| *owner != vehicle && is_it(one));
        rivals.extend(others.filter(is_earlier).map(|(_, one)| one));
    }
    Ok(rivals)
}

/// The transponder and plate in the derived rows of a vehicle.
fn names(effects: &Effects) -> Option<(VehicleId, &Names)> {
    let grounds = effects.grounds.as_ref()?;
    match &grounds.facts {
        Facts::Names(names) => Some((grounds.vehicle, names)),
        _ => None,
    }
}

/// Adds the record of a vehicle's assignments to a batch, or its change.
async fn write(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    (vehicle, known): (VehicleId, Option<(Record, VehicleAssignments)>),
    list: Vec<Assignment>,
    mut batch: Batch,
) -> Result<Batch, Error> {
    let now = edge.now();
    let (place, revision, outcome) = match known {
        Some((record, before)) => {
            let mut after = VehicleAssignments { assignments: list, ..before.clone() };
            if after == before {
                return Ok(batch);
            }
            after.touch(now);
            let outcome = Outcome::new(after, true, Vec::new(), Some(effects::of(&before)))?;
            batch.replace(record.key.clone(), record.revision, outcome.json.clone());
            (record.key, record.revision + 1, outcome)
        }
        None => {
            let uuid = edge.new_id();
            let created = created_at(uuid, now);
            let object = VehicleAssignments {
                id: Id::from_uuid(uuid),
                object: assignment::SPEC.object.into(),
                vehicle_id: vehicle,
                assignments: list,
                created_at: created,
                updated_at: created,
            };
            let place = VehicleAssignments::key(organization.id, object.id);
            let outcome = Outcome::new(object, true, Vec::new(), None)?;
            batch.insert(place.clone(), outcome.json.clone());
            (place, 1, outcome)
        }
    };
    Ok(finish(store, edge, organization, &assignment::SPEC, (place, revision), outcome, batch).await?.batch)
}
