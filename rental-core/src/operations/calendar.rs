//! The calendar of a vehicle: which rentals and blocks hold it, and who had it, on some days.

use super::{
    holds::{classes_in_use, read, starts_within},
    read::get,
};
use crate::{
    error::{Error, FieldCode},
    fleet::{Had, recorded, rentals_of_days},
    request::nights::Nights,
    resources::{
        organization::Organization,
        rental::{Rental, RentalStatus},
        vehicle,
    },
    rows::key,
    schema::Hold,
    store::{Key, Span, Store, all_sound, get_one},
    value::{Date, Timestamp, VehicleId},
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

/// Most intervals in a response.
const MOST_INTERVALS: usize = 1000;

/// Days on which a rental or block holds a vehicle, or on which a customer had it.
#[derive(Serialize)]
struct Interval {
    object: &'static str,
    kind: &'static str,
    /// Of the rental or block.
    id: Uuid,
    status: Box<RawValue>,
    from: Date,
    /// The day of return; `None` while the vehicle is out.
    to: Option<Date>,
    starts_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
}

/// Reads the intervals of a vehicle that touch these days, in order, and returns the list response.
///
/// # Errors
/// [`Error::NotFound`] for a vehicle that the organization does not have; [`Error::Invalid`] when there are more than 1000
/// intervals.
pub async fn calendar(
    store: &dyn Store,
    organization: &Organization,
    vehicle: &str,
    nights: Nights,
) -> Result<Bytes, Error> {
    let record = get(store, organization.id, &vehicle::SPEC, vehicle).await?;
    let vehicle = record.key.id().map(VehicleId::from_uuid).ok_or(Error::NotFound { object: "vehicle" })?;
    let mut intervals = held(store, organization, vehicle, nights).await?;
    let rentals = rentals_of_days(store, organization, vehicle, nights.days(), MOST_INTERVALS + 1).await?;
    if intervals.len().max(rentals.len()) > MOST_INTERVALS {
        return Err(too_many());
    }
    intervals.extend(recorded(&rentals, vehicle).into_iter().filter_map(|had| possession(&had, nights)));
    if intervals.len() > MOST_INTERVALS {
        return Err(too_many());
    }
    intervals.sort_by_key(|one| (one.from, one.starts_at, one.kind, one.id));
    let list = List { object: "list", has_more: false, next_cursor: None, data: &intervals };
    serde_json::to_vec(&list).map(Bytes::from).map_err(|error| Error::Internal(error.to_string()))
}

/// The list response.
#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    has_more: bool,
    next_cursor: Option<()>,
    data: &'a [Interval],
}

fn too_many() -> Error {
    let rule = format!("must be earlier: these days have more than {MOST_INTERVALS} intervals");
    Error::field("to", FieldCode::Invalid, &rule)
}

/// The rentals and blocks that hold the vehicle on one of the nights.
async fn held(
    store: &dyn Store,
    organization: &Organization,
    vehicle: VehicleId,
    nights: Nights,
) -> Result<Vec<Interval>, Error> {
    let Some(bits) = get_one(store, &key::calendar(organization.id, vehicle)).await? else { return Ok(Vec::new()) };
    let (start, end) = nights.days();
    let range = |class| (starts_within(organization.id, vehicle, class, (start, end)), MOST_INTERVALS + 1);
    let ranges: Vec<(Span, usize)> = Hold::classes(classes_in_use(&bits)?).map(range).collect();
    let mut holds = Vec::new();
    for rows in store.scan_each(&ranges).await? {
        if rows.len() > MOST_INTERVALS {
            return Err(too_many());
        }
        for row in all_sound(rows)? {
            holds.push(read(vehicle, &row)?);
        }
    }
    holds.retain(|hold| hold.overlaps(start, end));
    let keys: Vec<Key> = holds.iter().map(|hold| key::holder(organization.id, hold.holder)).collect();
    let mut intervals = Vec::with_capacity(holds.len());
    for (hold, record) in holds.iter().zip(store.get(&keys).await?) {
        // One that was deleted or changed since holds nothing any more.
        let Some(record) = record else { continue };
        let Held { status, end_date } =
            crate::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
        let Some((from, to)) = Date::from_day_number(hold.start).zip(end_date) else { continue };
        // After a swap, the rental holds this vehicle for a part of its days.
        let to = Date::from_day_number(hold.end).map_or(to, |end| to.min(end));
        intervals.push(Interval {
            object: "interval",
            kind: hold.holder.object(),
            id: hold.holder.uuid(),
            status,
            from,
            to: Some(to),
            starts_at: None,
            ends_at: None,
        });
    }
    Ok(intervals)
}

/// The fields of a rental or block that an interval shows.
#[derive(Deserialize)]
struct Held {
    status: Box<RawValue>,
    end_date: Option<Date>,
}

/// The interval of a recorded possession, if it touches the days.
fn possession(had: &Had<'_>, nights: Nights) -> Option<Interval> {
    let Had { rental, from, to } = had;
    let day = |at: Timestamp| rental.time_zone.local(at).date();
    let (first, last) = (day(*from), to.map(day));
    let (start, end) = nights.days();
    let touches = first.day_number() < end && last.is_none_or(|last| last.day_number() >= start);
    touches.then(|| Interval {
        object: "interval",
        kind: "possession",
        id: rental.id.uuid(),
        status: status_of(rental),
        from: first,
        to: last,
        starts_at: Some(*from),
        ends_at: *to,
    })
}

fn status_of(rental: &Rental) -> Box<RawValue> {
    let word: RentalStatus = rental.status;
    serde_json::value::to_raw_value(&word).unwrap_or_default()
}
