//! The calendar feed of a vehicle: its token is made, replaced and revoked, and who has it reads which days are taken.

use super::{
    edge::Edge,
    holds::{classes_in_use, read, starts_within},
    intent::{Intent, Prepared, Preparing},
    read::get,
};
use crate::{
    calendars::{Entry, written},
    error::Error,
    fleet::vehicles_still_out,
    resources::{
        Resource,
        organization::{Organization, Plan, SYSTEM},
        parse,
        rental::{self, VehicleOut, vehicle_out, vehicles_out},
        vehicle::{self, Vehicle},
    },
    rows::{
        key,
        vehicle_feed::{Token, VehicleFeed},
    },
    schema::Hold,
    store::{Batch, Key, Span, Store, all_sound, get_one},
    value::{CalendarFeedId, Date, OrganizationId, Timestamp, VehicleId},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;

/// Days before today that a feed has.
pub const DAYS_BEFORE: u32 = 30;
/// Days from today that a feed has.
pub const DAYS_AHEAD: u32 = 730;
/// Most entries of a feed.
pub(crate) const MOST_ENTRIES: usize = 2000;
/// Most rentals because of which a vehicle is out that a feed looks at.
const MOST_OUT: usize = 16;
/// What the vehicle's feed is called in errors.
const OBJECT: &str = "calendar feed of the vehicle";

/// Makes a token for the feed of a vehicle, in the place of the one that it had, or revokes it.
pub struct ChangeVehicleFeed<'a> {
    /// The organization that owns the vehicle.
    pub organization: &'a Organization,
    /// The id of the vehicle.
    pub vehicle: &'a str,
    /// The new token; `None` to revoke the present one.
    pub token: Option<Token>,
}

impl Intent for ChangeVehicleFeed<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let vehicle = vehicle_named(store, self.organization, self.vehicle).await?;
            let place = key::vehicle_feed(self.organization.id, vehicle);
            let before = get_one(store, &place).await?;
            let mut batch = Batch::default();
            let body = match (self.token, before) {
                (Some(token), before) => {
                    let feed = VehicleFeed::new(&token, edge.now());
                    match before {
                        Some(before) => batch.replace(place, before.revision, feed.value()),
                        None => batch.insert(place, feed.value()),
                    }
                    body(vehicle, "active", &feed)
                }
                (None, Some(before)) => {
                    batch.delete(place);
                    body(vehicle, "revoked", &VehicleFeed::read(&before)?)
                }
                (None, None) => return Err(Error::NotFound { object: OBJECT }),
            };
            Ok(Prepared { batch, body, revision: 1, object: None, asks: Vec::new() })
        })
    }
}

/// Tells whether a vehicle has a feed, and since when. Nothing tells its token.
///
/// # Errors
/// [`Error::NotFound`] for an unknown vehicle, and for one without a feed.
pub async fn vehicle_feed(store: &dyn Store, organization: &Organization, vehicle: &str) -> Result<Bytes, Error> {
    let vehicle = vehicle_named(store, organization, vehicle).await?;
    let row = get_one(store, &key::vehicle_feed(organization.id, vehicle)).await?;
    let row = row.ok_or(Error::NotFound { object: OBJECT })?;
    Ok(body(vehicle, "active", &VehicleFeed::read(&row)?))
}

async fn vehicle_named(store: &dyn Store, organization: &Organization, id: &str) -> Result<VehicleId, Error> {
    let record = get(store, organization.id, &vehicle::SPEC, id).await?;
    record.key.id().map(VehicleId::from_uuid).ok_or(Error::NotFound { object: vehicle::SPEC.object })
}

fn body(vehicle: VehicleId, status: &str, feed: &VehicleFeed) -> Bytes {
    let body = json!({
        "object": "vehicle_calendar_feed",
        "vehicle_id": vehicle,
        "status": status,
        "created_at": feed.created_at,
    });
    body.to_string().into()
}

/// Finds the organization of a presented token.
///
/// # Errors
/// [`Error::NotFound`] when it is the token of no feed; [`Error::PlanRequired`] when the organization has no access.
pub async fn feed_owner(store: &dyn Store, token: &Token) -> Result<(Organization, Vehicle), Error> {
    let (organization, vehicle) = (token.organization, token.vehicle);
    let keys = [
        key::vehicle_feed(organization, vehicle),
        Organization::key(SYSTEM, organization),
        Vehicle::key(organization, vehicle),
    ];
    let mut found = store.get(&keys).await?.into_iter();
    let mut next = || found.next().flatten().ok_or(Error::NotFound { object: "calendar" });
    let (feed, organization, vehicle) = (next()?, next()?, next()?);
    if !VehicleFeed::read(&feed)?.is_of(token) {
        return Err(Error::NotFound { object: "calendar" });
    }
    let organization: Organization = parse(&organization.key, &organization.value)?;
    if organization.plan != Plan::Pro {
        return Err(Error::PlanRequired);
    }
    Ok((organization, parse(&vehicle.key, &vehicle.value)?))
}

/// Writes the calendar of a vehicle: the days for which rentals and blocks hold it, and today while it is out beyond its
/// planned return. It says nothing about customers. Blocks that came from the calendar feed `without` are left out: its readers
/// know these days already.
///
/// # Errors
/// [`Error::Conflict`] when there are more than 2000 of them.
pub async fn vehicle_calendar(
    store: &dyn Store,
    organization: &Organization,
    vehicle: &Vehicle,
    (now, without): (Timestamp, Option<CalendarFeedId>),
) -> Result<String, Error> {
    let today = organization.time_zone.local(now).date().day_number();
    let days = (today.saturating_sub(DAYS_BEFORE), today + DAYS_AHEAD);
    let holds = holds(store, organization.id, vehicle.id, days).await?;
    let out = out(store, organization.id, vehicle.id, (today, now)).await?;
    let keys = holds.iter().map(|hold| key::holder(organization.id, hold.holder));
    let out_keys = out.iter().map(|(id, _)| key::record(organization.id, &rental::SPEC, *id));
    let records = store.get(&keys.chain(out_keys).collect::<Vec<Key>>()).await?;
    let (mut entries, mut times) = (Vec::with_capacity(records.len()), HashMap::new());
    let named = holds.iter().map(|hold| (hold.holder.object(), hold.holder.uuid(), (hold.start, hold.end)));
    let also = out.iter().map(|(id, end)| ("out", *id, (today, end.unwrap_or(days.1))));
    for ((kind, id, (start, end)), record) in named.chain(also).zip(records) {
        // One that was changed or deleted since holds nothing any more.
        let Some(record) = record else { continue };
        let Changed { updated_at, calendar_feed_id } =
            crate::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
        if calendar_feed_id.is_some() && calendar_feed_id == without {
            continue;
        }
        let (Some(start), Some(end)) = (Date::from_day_number(start), Date::from_day_number(end)) else { continue };
        let summary = if kind == "block" { "Blocked" } else { "Booked" };
        // One that holds the vehicle twice has two entries.
        let count = times.entry((kind, id)).and_modify(|count| *count += 1).or_insert(1);
        let name = if *count == 1 { format!("{kind}-{id}") } else { format!("{kind}-{id}-{count}") };
        entries.push(Entry { name, start, end, summary, changed_at: updated_at });
    }
    entries.sort_by(|one, other| (one.start, &one.name).cmp(&(other.start, &other.name)));
    Ok(written(&vehicle.name, &entries))
}

/// When a rental or block was last changed, and the calendar feed that a block came from.
#[derive(Deserialize)]
struct Changed {
    updated_at: Timestamp,
    calendar_feed_id: Option<CalendarFeedId>,
}

/// The holds of a vehicle on these days, earliest first.
async fn holds(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    (start, end): (u32, u32),
) -> Result<Vec<Hold>, Error> {
    let Some(bits) = get_one(store, &key::calendar(organization, vehicle)).await? else { return Ok(Vec::new()) };
    let range = |class| (starts_within(organization, vehicle, class, (start, end)), MOST_ENTRIES + 1);
    let ranges: Vec<(Span, usize)> = Hold::classes(classes_in_use(&bits)?).map(range).collect();
    let mut holds = Vec::new();
    for rows in store.scan_each(&ranges).await? {
        for row in all_sound(rows)? {
            holds.push(read(vehicle, &row)?);
        }
    }
    holds.retain(|hold| hold.overlaps(start, end));
    if holds.len() > MOST_ENTRIES {
        let more =
            format!("More than {MOST_ENTRIES} rentals and blocks hold the vehicle on the days of its calendar feed.");
        return Err(Error::Conflict(more));
    }
    holds.sort_by_key(|hold| (hold.start, hold.end));
    Ok(holds)
}

/// The rentals because of which a vehicle is out although no hold says so: the planned return is over, and today is taken; or
/// it is not known, and no later day is free (`None`).
async fn out(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    (today, now): (u32, Timestamp),
) -> Result<Vec<(uuid::Uuid, Option<u32>)>, Error> {
    let span = Span::under(key::entry(&vehicles_out(organization), vehicle.uuid()));
    let rows = all_sound(store.scan(&span, MOST_OUT).await?)?;
    let mut out: Vec<VehicleOut> = rows.iter().filter_map(|row| vehicle_out(&row.key)).collect();
    out.retain(|one| one.last.is_none_or(|last| last < today));
    let out = vehicles_still_out(store, organization, &out, now).await?;
    Ok(out.iter().map(|one| (one.rental.uuid(), one.last.map(|_| today + 1))).collect())
}
