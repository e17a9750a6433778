//! What is left to bill of the tolls and violations of a customer, and to which rental each of them belongs.

use rental_core::{
    error::Error,
    request::page::ListQuery,
    resources::{
        Attributable, Billable, Resource,
        organization::Organization,
        parse,
        rental::{self, Rental, RentalStatus},
        toll::Toll,
        violation::Violation,
    },
    rows::recheck::Marked,
    store::{Span, Store, all_sound},
    value::{CustomerId, Date, InvoiceId, Money, RentalId, Timestamp, VehicleId, When},
};
use std::{cmp::Reverse, collections::HashMap};
use uuid::Uuid;

/// Most unbilled tolls, and most unbilled violations, of a customer that one request reads.
const MOST_UNBILLED: usize = 20_000;
/// Most rentals of a customer that are compared with what a person attached.
const MOST_RENTALS: usize = 5_000;
/// Objects in one read.
const PAGE: usize = 500;

/// What an item is. Tolls come first on an invoice.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Charge {
    Toll,
    Violation,
}

/// The place of an item among those of its rental: tolls first, of each kind the newest first.
pub(super) type Place = (Charge, Reverse<Uuid>);

/// A toll or violation of which something is left to bill.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) place: Place,
    pub(super) left: Money,
    /// The invoices that billed other parts of it.
    pub(super) invoices: Vec<InvoiceId>,
    /// What decides who pays it, if no person did.
    pub(super) decided_by: Vec<Marked>,
}

/// What is left to bill of the tolls and violations of one customer, by the rental that each of them belongs to. Those of `None`
/// were attached by a person to a customer who had no rental then.
#[derive(Debug, Default)]
pub(super) struct Unbilled {
    by_rental: HashMap<Option<RentalId>, Vec<Item>>,
    /// How many tolls, violations and rentals were read.
    pub(super) read: usize,
    /// Whether not all of them were read.
    pub(super) is_cut: bool,
}

/// What is looked for.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// All tolls and violations of the customer.
    All,
    /// Those of one rental, or of none, up to a number: tolls and violations as asked.
    Of(Option<RentalId>, [bool; 2], usize),
}

impl Unbilled {
    /// Reads those of a customer.
    ///
    /// # Errors
    /// The store is not available, or something that is needed is damaged.
    pub(super) async fn read(
        store: &dyn Store,
        organization: &Organization,
        customer: CustomerId,
        wanted: Wanted,
    ) -> Result<Self, Error> {
        let mut all = Self::default();
        let mut rentals = None;
        all.add::<Toll>(store, organization, customer, wanted, &mut rentals).await?;
        all.add::<Violation>(store, organization, customer, wanted, &mut rentals).await?;
        Ok(all)
    }

    /// The items of a rental, or of none, in order.
    pub(super) fn of(&self, rental: Option<RentalId>) -> &[Item] {
        self.by_rental.get(&rental).map_or(&[], Vec::as_slice)
    }

    /// The rentals that have items, newest first.
    pub(super) fn rentals(&self) -> Vec<RentalId> {
        let mut all: Vec<RentalId> = self.by_rental.keys().copied().flatten().collect();
        all.sort_unstable_by_key(|id| Reverse(id.uuid()));
        all
    }

    async fn add<T: Attributable + Billable>(
        &mut self,
        store: &dyn Store,
        organization: &Organization,
        customer: CustomerId,
        wanted: Wanted,
        rentals: &mut Option<Vec<Rental>>,
    ) -> Result<(), Error> {
        let kind =
            if T::SPEC.object == rental_core::resources::toll::SPEC.object { Charge::Toll } else { Charge::Violation };
        if matches!(wanted, Wanted::Of(_, with, _) if !with[kind as usize]) {
            return Ok(());
        }
        let mut query = unbilled_of::<T>(customer)?;
        for _ in 0..MOST_UNBILLED / PAGE {
            let found = all_sound(store.scan(&span(&query, organization, T::SPEC)?, PAGE).await?)?;
            self.read += found.len();
            for record in &found {
                let one: T = parse(&record.key, &record.value)?;
                let rental = self.rental_of(&one, store, organization, customer, rentals).await?;
                if let Wanted::Of(only, _, most) = wanted {
                    if rental != only {
                        continue;
                    }
                    if self.of(only).len() >= most {
                        self.is_cut = true;
                        return Ok(());
                    }
                }
                let item = Item {
                    place: (kind, Reverse(one.id().uuid())),
                    left: one.left_to_bill(),
                    invoices: one.account().1.to_vec(),
                    decided_by: one.decided_by().collect(),
                };
                self.by_rental.entry(rental).or_default().push(item);
            }
            query.starting_after = found.last().and_then(|record| record.key.id());
            if found.len() < PAGE {
                return Ok(());
            }
        }
        self.is_cut = true;
        Ok(())
    }

    /// The rental that a toll or violation belongs to. Each belongs to one at most, so no two invoices can have it: the rental
    /// that it was attached through, else the one during which it happened to a vehicle of that rental. What happened to
    /// another vehicle belongs to the rental that the customer had then: a person said that this customer pays.
    async fn rental_of<T: Attributable>(
        &mut self,
        one: &T,
        store: &dyn Store,
        organization: &Organization,
        customer: CustomerId,
        rentals: &mut Option<Vec<Rental>>,
    ) -> Result<Option<RentalId>, Error> {
        if let Some(rental) = one.payer().rental {
            return Ok(Some(rental));
        }
        let rentals = match rentals {
            Some(rentals) => rentals,
            None => {
                let found = rentals_of(store, organization, customer).await?;
                self.read += found.len();
                self.is_cut |= found.len() >= MOST_RENTALS;
                rentals.insert(found)
            }
        };
        // What was cancelled or never approved is billed by nobody.
        let is_kept = |rental: &Rental| !matches!(rental.status, RentalStatus::New | RentalStatus::Cancelled);
        let happened = rentals.iter().filter(|rental| is_kept(rental) && during(rental, one.when()));
        let of_vehicle = |rental: &Rental| had(rental, one.known_vehicle());
        Ok(happened.max_by_key(|rental| (of_vehicle(rental), precedence(rental))).map(|rental| rental.id))
    }
}

/// The list of what is unbilled of a customer.
fn unbilled_of<T: Resource>(customer: CustomerId) -> Result<ListQuery, Error> {
    ListQuery::parse(&format!("billed=false&customer={customer}"), T::SPEC)
}

fn span(
    query: &ListQuery,
    organization: &Organization,
    spec: &'static rental_core::schema::ResourceSpec,
) -> Result<Span, Error> {
    query.span(organization.id, spec).ok_or_else(|| Error::Internal("a list has no span".into()))
}

/// The two spans that have an entry when something is unbilled of a customer. They do not follow the entries.
pub(super) fn probes(organization: &Organization, customer: CustomerId) -> Result<[Span; 2], Error> {
    let entries = |span: Span| Span { follow: None, ..span };
    let tolls = span(&unbilled_of::<Toll>(customer)?, organization, Toll::SPEC)?;
    let violations = span(&unbilled_of::<Violation>(customer)?, organization, Violation::SPEC)?;
    Ok([tolls, violations].map(entries))
}

/// The newest rentals of a customer.
async fn rentals_of(
    store: &dyn Store,
    organization: &Organization,
    customer: CustomerId,
) -> Result<Vec<Rental>, Error> {
    let mut query = ListQuery::parse(&format!("customer={customer}"), &rental::SPEC)?;
    let mut rentals = Vec::new();
    while rentals.len() < MOST_RENTALS {
        let found = all_sound(store.scan(&span(&query, organization, &rental::SPEC)?, PAGE).await?)?;
        for record in &found {
            rentals.push(parse(&record.key, &record.value)?);
        }
        query.starting_after = found.last().and_then(|record| record.key.id());
        if found.len() < PAGE {
            break;
        }
    }
    Ok(rentals)
}

/// Whether the customer of the rental had this vehicle through it, also before a swap. What has no vehicle can be of any.
fn had(rental: &Rental, vehicle: Option<VehicleId>) -> bool {
    let earlier = || rental.earlier_vehicles.iter().map(|one| one.vehicle_id);
    vehicle.is_none_or(|vehicle| rental.vehicle_id == vehicle || earlier().any(|one| one == vehicle))
}

/// Whether it happened between the recorded times of the rental, else between its dates.
fn during(rental: &Rental, When { at, on, .. }: When) -> bool {
    if let (Some(at), Some(out), Some(back)) = (at, rental.activated_at, rental.completed_at) {
        return out <= at && at <= back;
    }
    let day = at.map(|at| rental.time_zone.local(at).date()).or(on);
    let (Some(day), Some(start), Some(end)) = (day, rental.start_date, rental.end_date) else { return false };
    start <= day && day <= end
}

/// Of several rentals during which something happened it belongs to the greatest: one that took place, and of those the one
/// that began last.
fn precedence(rental: &Rental) -> (u8, u32, Option<Timestamp>, Uuid) {
    let stage = match rental.status {
        RentalStatus::Completed => 3,
        RentalStatus::Active => 2,
        RentalStatus::Approved => 1,
        RentalStatus::New | RentalStatus::Cancelled => 0,
    };
    let day = rental.activated_at.map(|at| rental.time_zone.local(at).date()).or(rental.start_date);
    (stage, day.map_or(0, Date::day_number), rental.activated_at, rental.id.uuid())
}
