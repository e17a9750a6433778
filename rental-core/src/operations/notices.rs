//! The notices of a response. They are looked up while the commit of the write runs, so that no response waits for them.

use super::holds;
use crate::{
    error::Error,
    resources::{
        assignment::{Assignment, AssignmentKind, of_fields},
        spec_of,
        vehicle::{self, NamedVehicle, VehicleStatus},
    },
    rows::key,
    schema::{Ask, NIGHTS_HELD, NOT_AVAILABLE, Names, Notice, NoticeSpec, SAME_PLATE, SAME_TRANSPONDER},
    store::{Key, Record, Span, Store, get_one, key_of},
    value::OrganizationId,
};
use futures_util::future::{BoxFuture, join_all, try_join_all};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Mutex,
};
use uuid::Uuid;

/// Most vehicles with one number that are read for a notice.
const MOST_VEHICLES: usize = 20;

/// Waits for a commit, and runs `looking` at the same time. `looking` ends with the commit, whether it is done or not.
pub(super) async fn beside<T>(commit: impl Future<Output = T>, looking: impl Future<Output = ()>) -> T {
    let (mut commit, mut looking, mut found) = (pin!(commit), pin!(looking), false);
    poll_fn(|context| {
        // The commit first: an embedded engine begins to write, and the reads that follow take no time of their own.
        let done = commit.as_mut().poll(context);
        found = found || looking.as_mut().poll(context).is_ready();
        done
    })
    .await
}

/// Adds the notices for what a write of `own` asks. All searches run at the same time, because a database answers each over the network.
/// An error only ends the search: notices are best effort.
pub(super) async fn look_up(
    store: &dyn Store,
    organization: OrganizationId,
    own: Uuid,
    asks: &[Ask],
    found: &Mutex<Vec<Notice>>,
) {
    let mut searches: Vec<BoxFuture<'_, ()>> = Vec::with_capacity(asks.len());
    for ask in asks {
        searches.push(Box::pin(async move {
            let Ok(notices) = answer(store, organization, own, ask).await else { return };
            if let Ok(mut found) = found.lock() {
                found.extend(notices);
            }
        }));
    }
    join_all(searches).await;
}

async fn answer(store: &dyn Store, organization: OrganizationId, own: Uuid, ask: &Ask) -> Result<Vec<Notice>, Error> {
    let notice = |spec: &'static NoticeSpec, object, id| vec![Notice { spec, object, id }];
    Ok(match ask {
        Ask::Vehicles(names) => same_vehicles(store, organization, names, |id| id != own).await?,
        Ask::Another(notice_spec, entry) => {
            let Some(spec) = spec_of(notice_spec.on) else { return Ok(Vec::new()) };
            let rows = store.scan(&Span::under(entry.prefix(organization, spec)), 2).await?;
            let other = rows.iter().filter_map(|row| key_of(row).id()).find(|id| *id != own);
            other.map(|id| notice(notice_spec, spec.object, id)).unwrap_or_default()
        }
        Ask::Status(id) => {
            let place = key::record(organization, &vehicle::SPEC, id.uuid());
            match get_one(store, &place).await?.map(|record| NamedVehicle::read(&record)).transpose()? {
                Some(vehicle) if vehicle.status != VehicleStatus::Available => {
                    notice(&NOT_AVAILABLE, vehicle::SPEC.object, id.uuid())
                }
                _ => Vec::new(),
            }
        }
        Ask::Holder(wanted) => {
            let other = holds::other(store, organization, *wanted).await?;
            other.map(|other| notice(&NIGHTS_HELD, other.object(), other.uuid())).unwrap_or_default()
        }
    })
}

/// The first other vehicle in service with the transponder, and the first one with the plate.
///
/// # Errors
/// The store is not available.
pub(crate) async fn same_vehicles(
    store: &dyn Store,
    organization: OrganizationId,
    names: &Names,
    is_other: impl Fn(Uuid) -> bool + Send + Sync,
) -> Result<Vec<Notice>, Error> {
    let is_other: &(dyn Fn(Uuid) -> bool + Send + Sync) = &is_other;
    let mut searches: Vec<BoxFuture<'_, Result<Option<Notice>, Error>>> = Vec::new();
    for wanted in of_fields(names) {
        searches.push(Box::pin(same_vehicle(store, organization, wanted, is_other)));
    }
    Ok(try_join_all(searches).await?.into_iter().flatten().collect())
}

/// The first other vehicle in service with a transponder or plate.
async fn same_vehicle(
    store: &dyn Store,
    organization: OrganizationId,
    wanted: Assignment,
    is_other: &(dyn Fn(Uuid) -> bool + Send + Sync),
) -> Result<Option<Notice>, Error> {
    let Some(look_up) = wanted.look_up() else { return Ok(None) };
    let entries = store.scan(&Span::under(look_up.prefix(organization, &vehicle::SPEC)), MOST_VEHICLES).await?;
    let others = entries.iter().filter_map(|row| key_of(row).id()).filter(|id| is_other(*id));
    let places: Vec<Key> = others.map(|id| key::record(organization, &vehicle::SPEC, id)).collect();
    if places.is_empty() {
        return Ok(None);
    }
    let is_it = |record: &Record| {
        let other = NamedVehicle::read(record).ok().filter(|other| other.status.is_in_service())?;
        of_fields(&other.names()).iter().any(|held| held.is_like(&wanted)).then_some(other.id)
    };
    let spec = match wanted.kind {
        AssignmentKind::TollTag => &SAME_TRANSPONDER,
        AssignmentKind::Plate => &SAME_PLATE,
    };
    let other = store.get(&places).await?.iter().flatten().find_map(is_it);
    Ok(other.map(|id| Notice { spec, object: vehicle::SPEC.object, id: id.uuid() }))
}
