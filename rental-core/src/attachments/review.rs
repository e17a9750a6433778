//! The tolls and violations that a person has to look at, in words for people.

use super::derivation::{Derived, Deriving};
use crate::{
    error::{Error, FieldCode},
    fleet::attribution::{Candidate, Verdict},
    operations::{Listed, sound_page},
    request::page,
    resources::{
        Attributable, Resource, customer::Customer, organization::Organization, parse, rental::Rental, review_look_up,
        vehicle::Vehicle,
    },
    store::{Store, get_each},
    value::{CustomerId, Id, VehicleId, When},
};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};

/// Candidates that one row shows.
const MOST_CANDIDATES: usize = 20;

/// A page of the tolls or violations that a person has to look at, as a list response: those without a customer, and those that
/// an invoice bills although somebody else or nobody pays by what is recorded now. One that cannot be judged, because a row that it
/// needs is damaged, is left out. Tolls are listed newest first, violations
/// by the day of issue, earliest first. `query` is the query of the request.
///
/// # Errors
/// [`Error::Invalid`] for parameters other than `limit` and `starting_after`; the store is not available.
pub async fn review<T: Attributable>(
    store: &dyn Store,
    organization: &Organization,
    query: &str,
) -> Result<Listed, Error> {
    let (limit, after) = parameters(query)?;
    let look_up = review_look_up();
    let prefix = look_up.prefix(organization.id, T::SPEC);
    let mut span = look_up.span(organization.id, T::SPEC);
    if let Some(after) = after {
        span.to = prefix.followed_by(&after);
    }
    let (mut found, mut damaged) = sound_page(store, &span, limit).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let (mut rows, mut cursor) = (Vec::with_capacity(found.len()), None);
    let mut deriving = Deriving::new(store, organization);
    for record in &found {
        let Some(object) = Error::note_damage(parse::<T>(&record.key, &record.value), &mut damaged)? else { continue };
        let entry = object.review_entry().map(|entry| entry.entry(organization.id, T::SPEC, object.id().uuid()));
        cursor = entry.map(|entry| hex::encode(&entry.as_bytes()[prefix.as_bytes().len()..])).filter(|_| has_more);
        let read = async {
            let derived = deriving.derive(&object).await?;
            let vehicle = derived.vehicle.or_else(|| object.known_vehicle());
            Ok((vehicle, row(store, organization, &object, derived).await?))
        };
        rows.extend(Error::note_damage(read.await, &mut damaged)?);
    }
    let rows = with_vehicles(store, organization, rows).await?;
    if has_more && cursor.is_none() {
        return Err(damaged
            .pop()
            .map_or_else(|| Error::Internal("a page has no cursor".into()), |row| Error::Damaged(row.into())));
    }
    let list = json!({"object": "list", "has_more": has_more, "next_cursor": cursor, "data": rows});
    Ok(Listed { body: list.to_string().into(), damaged })
}

/// The bytes of a cursor: the length and value of the order, and the id.
const CURSOR: usize = 2 + 4 + 16;

fn parameters(query: &str) -> Result<(usize, Option<Vec<u8>>), Error> {
    let (mut limit, mut after) = (page::DEFAULT_LIMIT, None);
    for (name, value) in page::parameters(query, &["limit", "starting_after"])? {
        if name == "limit" {
            let rule = "must be a whole number from 1 to 100";
            let given = value.parse().ok().filter(|limit| (1..=page::MAX_LIMIT).contains(limit));
            limit = given.ok_or_else(|| Error::field("limit", FieldCode::Invalid, rule))?;
        } else {
            let rule = "must be a `next_cursor` of this list";
            let bytes = hex::decode(&value).ok().filter(|bytes| bytes.len() == CURSOR);
            after = Some(bytes.ok_or_else(|| Error::field("starting_after", FieldCode::Invalid, rule))?);
        }
    }
    Ok((limit, after))
}

async fn row<T: Attributable>(
    store: &dyn Store,
    organization: &Organization,
    object: &T,
    derived: Derived,
) -> Result<Value, Error> {
    let payer = object.payer();
    let is_billed = payer.review.is_some() && payer.customer.is_some();
    let candidates: &[Candidate] = match &derived.verdict {
        Verdict::Clear(candidate) => std::slice::from_ref(candidate),
        Verdict::Unclear(_, candidates) | Verdict::Nobody(_, candidates) => candidates,
    };
    let candidates = &candidates[..candidates.len().min(MOST_CANDIDATES)];
    let people: Vec<CustomerId> = candidates.iter().map(|candidate| candidate.customer).chain(payer.customer).collect();
    let customers: HashMap<_, Customer> = each(store, organization, people).await?;
    let rentals: HashMap<_, Rental> =
        each(store, organization, candidates.iter().map(|one| one.rental).collect()).await?;
    let name = |id: CustomerId| customers.get(&id).map(|customer| customer.full_name.clone());
    let shown = candidates.iter().map(|one| {
        let rental = rentals.get(&one.rental);
        json!({
            "rental_id": one.rental, "customer_id": one.customer, "customer_name": name(one.customer),
            "start_date": rental.map(|rental| rental.start_date), "end_date": rental.map(|rental| rental.end_date),
            "reason": one.reason,
        })
    });
    let twin = match &derived.twin {
        Some((id, _)) => twin::<T>(store, organization, Id::from_uuid(*id)).await?,
        None => None,
    };
    let [tag, plate, state] = object.identifiers();
    let When { at, on, .. } = object.when();
    let charged = object.charged();
    let [status, plate_type] = object.reported();
    Ok(json!({
        "object": "review", "resource": T::SPEC.object, "id": object.id(), "verdict": verdict(&derived),
        "reason": payer.review.as_deref().filter(|_| is_billed).unwrap_or_else(|| derived.reason()),
        "when": local_time(organization, object), "occurred_at": at, "occurred_on": on, "plate": plate, "plate_state": state,
        "transponder_number": tag, "agency": charged.agency, "number": charged.number, "place": charged.place,
        "amount": charged.amount, "currency": charged.currency,
        "respond_by": object.respond_by(), "status": status, "plate_type": plate_type,
        "vehicle_id": null, "vehicle_name": null, "vehicle_plate": null, "billed": is_billed,
        "customer_id": payer.customer, "customer_name": payer.customer.and_then(name),
        "candidates": shown.collect::<Vec<_>>(), "twin": twin,
    }))
}

/// The rows with the id, name and plate of their vehicles, which are read together. A vehicle whose record is damaged or was
/// removed has its id only: its row says that the record is lost.
async fn with_vehicles(
    store: &dyn Store,
    organization: &Organization,
    rows: Vec<(Option<VehicleId>, Value)>,
) -> Result<Vec<Value>, Error> {
    let ids: BTreeSet<VehicleId> = rows.iter().filter_map(|(vehicle, _)| *vehicle).collect();
    let keys: Vec<_> = ids.into_iter().map(|id| Vehicle::key(organization.id, id)).collect();
    let found = get_each(store, &keys).await?.into_iter().filter_map(|read| read.ok().flatten());
    let vehicles = found.filter_map(|record| parse::<Vehicle>(&record.key, &record.value).ok());
    let vehicles: HashMap<_, _> = vehicles.map(|vehicle| (vehicle.id, vehicle)).collect();
    let named = |(id, mut row): (Option<VehicleId>, Value)| {
        let vehicle = id.and_then(|id| vehicles.get(&id));
        row["vehicle_id"] = json!(id);
        row["vehicle_name"] = json!(vehicle.map(|vehicle| &vehicle.name));
        row["vehicle_plate"] = json!(vehicle.and_then(|vehicle| vehicle.plate.as_ref()));
        row
    };
    Ok(rows.into_iter().map(named).collect())
}

/// The other posting of the same passage, in words for people.
async fn twin<T: Attributable>(
    store: &dyn Store,
    organization: &Organization,
    id: Id<T::Kind>,
) -> Result<Option<Value>, Error> {
    let Some(twin) = each::<T>(store, organization, vec![id]).await?.remove(&id) else { return Ok(None) };
    let payer = twin.payer();
    let customers: HashMap<_, Customer> = each(store, organization, payer.customer.into_iter().collect()).await?;
    let name = payer.customer.and_then(|id| customers.get(&id)).map(|customer| &customer.full_name);
    let [tag, plate, state] = twin.identifiers();
    let charged = twin.charged();
    Ok(Some(json!({
        "id": id, "when": local_time(organization, &twin), "plate": plate, "plate_state": state, "transponder_number": tag,
        "agency": charged.agency, "number": charged.number, "place": charged.place, "amount": charged.amount, "customer_id": payer.customer, "customer_name": name,
        "billed": twin.billed().is_some(),
    })))
}

/// The objects with these ids.
async fn each<T: Resource>(
    store: &dyn Store,
    organization: &Organization,
    ids: Vec<Id<T::Kind>>,
) -> Result<HashMap<Id<T::Kind>, T>, Error> {
    let keys: Vec<_> = ids.into_iter().map(|id| T::key(organization.id, id)).collect();
    let found = store.get(&keys).await?.into_iter().flatten();
    found
        .map(|record| {
            let object: T = parse(&record.key, &record.value)?;
            Ok((object.id(), object))
        })
        .collect()
}

fn verdict(derived: &Derived) -> &'static str {
    match derived.verdict {
        Verdict::Clear(_) => "clear",
        Verdict::Unclear(..) => "unclear",
        Verdict::Nobody(..) => "nobody",
    }
}

/// The day and time where the statement has them, else where the organization is: `2026-06-02 10:03 -04:00`; only the day
/// when the time is not known.
#[must_use]
pub fn local_time<T: Attributable>(organization: &Organization, object: &T) -> Option<String> {
    let When { at, on, zone } = object.when();
    at.map(|at| zone.unwrap_or(organization.time_zone).shown(at)).or_else(|| on.map(|day| day.to_string()))
}
