//! Rentals (spec, Rental; states in spec, Rental status).

mod handover;
mod vehicles;

use crate::{
    error::{Error, FieldCode, FieldError},
    resources::{
        Billable, Create, Portable, Resource, RuleContext, Update, event::EventType, fields, vehicle::Vehicle,
    },
    rows::{Row, key},
    schema::{
        AMOUNT_BILLED, Ask, CREATED_AT, CURRENCY, Charge, Effects, Facts, Fields, Grounds, Hold, INVOICE_IDS,
        IndexPrefix, Kind, LookUpSpec, ResourceSpec, SAME_BOOKING_ID, SECOND_ACTIVE, UPDATED_AT, field, filter, id,
        index, look_up, object, ordered_index,
    },
    store::Key,
    value::{
        Currency, CustomerId, Date, EarlierVehicle, Holder, InvoiceId, MOST_LINES, Money, OrganizationId, Period,
        RentalId, Text, Timestamp, VehicleId, Zone, words,
    },
};
use serde::{Deserialize, Serialize};

words! {
    /// The states of a rental (spec, Rental status).
    pub enum RentalStatus {
        /// Requested. Does not hold the vehicle.
        New = "NEW",
        /// Confirmed. Holds the vehicle.
        Approved = "APPROVED",
        /// The customer has the vehicle. Holds the vehicle.
        Active = "ACTIVE",
        /// The customer has returned the vehicle.
        Completed = "COMPLETED",
        /// The rental does not take place.
        Cancelled = "CANCELLED",
    }
}

words! {
    /// How the customer gets the vehicle.
    pub enum PickupType {
        /// The customer comes to the fleet's location.
        Pickup = "pickup",
        /// The fleet brings the vehicle to the address in `delivery_location`.
        Delivery = "delivery",
    }
}

/// The look-up of rentals by the days on which the customer may have had the vehicle: length class, first and last day. Those that
/// came back before their planned days are a class of their own, by the day of that return.
const STAY: LookUpSpec = look_up(128, "stay");

/// The look-up of rentals by the recorded pickup of the vehicle; by its recorded return when only that is known.
const RECORDED: LookUpSpec = look_up(129, "recorded");

/// The look-up of rentals whose customers have the vehicle now: vehicle, and the last planned day.
const OUT: LookUpSpec = look_up(130, "out");

/// The look-up of completed rentals of which something is left to bill.
const UNBILLED: LookUpSpec = look_up(140, "unbilled");

/// The description of a rental.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "rental",
    plural: "rentals",
    tag: 3,
    doc: "A booking of a vehicle by a customer.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000003\""),
        object("\"rental\""),
        field("booking_id", Kind::Text(255), "External booking reference.", "\"BK-1042\"").optional().personal("null"),
        field(
            "customer_id",
            Kind::Reference("customer"),
            "Renting customer.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000002\"",
        )
        .required(),
        field(
            "vehicle_id",
            Kind::Reference("vehicle"),
            "Reserved vehicle.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000001\"",
        )
        .required(),
        field("start_date", Kind::Date, "Pickup date.", "\"2026-06-01\"").optional(),
        field("end_date", Kind::Date, "Return date, on or after the pickup date.", "\"2026-06-05\"").optional(),
        field("rental_days", Kind::Integer(0, 3_652_058), "Number of nights; null while a date is missing.", "4")
            .or_null(),
        field("pickup_type", Kind::Word(PickupType::WORDS), "How the customer gets the vehicle.", "\"pickup\"")
            .optional(),
        field(
            "delivery_location",
            Kind::Paragraph(1000, MOST_LINES),
            "Delivery address, if applicable.",
            "\"1 Market St, San Francisco\"",
        )
        .optional()
        .personal("null"),
        field(
            "final_price",
            Kind::Money,
            "Locked-in total price: when left out at creation, nights times the vehicle's daily rate, and at least one night.",
            "358",
        )
        .optional(),
        CURRENCY,
        field(
            "status",
            Kind::Word(RentalStatus::WORDS),
            "Where the rental stands. APPROVED and ACTIVE hold the vehicle.",
            "\"NEW\"",
        )
        .starts_as("\"NEW\""),
        field("damage_at_return", Kind::Boolean, "Whether damage was found on return.", "false")
            .starts_as("false")
            .update_only(),
        field(
            "activated_at",
            Kind::Time,
            "When the vehicle was handed over. A PATCH of the status to ACTIVE sets it to now, unless it is sent or known, \
             until 14 days after `start_date` and the day after `end_date`; later it stays null.",
            "\"2026-06-01T14:00:00.000Z\"",
        )
        .optional(),
        field(
            "completed_at",
            Kind::Time,
            "When the vehicle came back. A PATCH of the status to COMPLETED sets it to now, unless it is sent or known, \
             until 14 days after `end_date` if it was ACTIVE, else until the day after; later it stays null.",
            "null",
        )
        .optional(),
        field(
            "vehicle_changed_at",
            Kind::Time,
            "When the customer got the present vehicle for another one; null without a swap. In a PATCH: the time of the swap \
             to `vehicle_id`, by default now while the customer has the vehicle. With null, or a time before the handover, the \
             customer had this vehicle from the beginning.",
            "null",
        )
        .or_null()
        .update_only(),
        field(
            "earlier_vehicles",
            Kind::EarlierVehicles,
            "The vehicles that the customer had before a swap, in order.",
            "[]",
        ),
        field(
            "time_zone",
            Kind::TimeZone,
            "Where its days begin and end: the organization's time zone when the rental was created.",
            "\"America/New_York\"",
        ),
        AMOUNT_BILLED,
        INVOICE_IDS,
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[
        filter("status", "status"),
        filter("customer", "customer_id"),
        filter("vehicle", "vehicle_id"),
        filter("booking_id", "booking_id"),
    ],
    ranges: &[filter("updated", "updated_at"), filter("start_date", "start_date"), filter("end_date", "end_date")],
    indexes: &[
        index(1, &["status"]),
        index(2, &["customer_id"]),
        index(3, &["status", "customer_id"]),
        index(4, &["vehicle_id"]),
        index(5, &["status", "vehicle_id"]),
        index(6, &["customer_id", "vehicle_id"]),
        index(7, &["status", "customer_id", "vehicle_id"]),
        ordered_index(16, "updated_at"),
        index(20, &["booking_id"]),
        ordered_index(21, "start_date"),
        ordered_index(22, "end_date"),
    ],
    look_ups: &[STAY, RECORDED, OUT, UNBILLED],
    usual_changes: &["status", "damage_at_return"],
};

fields! {
    /// A rental of a vehicle to a customer (spec, Rental).
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct Rental {
        pub id: RentalId,
        pub object: String,
        pub booking_id: Option<Text>,
        pub customer_id: CustomerId,
        pub vehicle_id: VehicleId,
        pub start_date: Option<Date>,
        pub end_date: Option<Date>,
        pub rental_days: Option<u32>,
        pub pickup_type: Option<PickupType>,
        pub delivery_location: Option<Text>,
        pub final_price: Option<Money>,
        pub currency: Currency,
        pub status: RentalStatus,
        pub damage_at_return: bool,
        pub activated_at: Option<Timestamp>,
        pub completed_at: Option<Timestamp>,
        pub vehicle_changed_at: Option<Timestamp>,
        pub earlier_vehicles: Vec<EarlierVehicle>,
        pub time_zone: Zone,
        pub amount_billed: Money,
        pub invoice_ids: Vec<InvoiceId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Rental {
    /// Checks the order of the dates and computes `rental_days` from them.
    fn count_nights(&mut self) -> Result<(), Error> {
        self.rental_days = match (self.start_date, self.end_date) {
            (Some(start), Some(end)) => Some(u32::try_from(start.nights_until(end)).map_err(|_| dates_out_of_order())?),
            _ => None,
        };
        Ok(())
    }

    /// The first and last day on which the customer may have had the present vehicle or an earlier one, by its dates and its
    /// recorded times; the last one is `None` while it is unknown. `None` for rentals whose vehicle was not handed over.
    fn stay(&self) -> Option<(u32, Option<u32>)> {
        let (start, end) = (self.start_date.map(Date::day_number), self.end_date.map(Date::day_number));
        // One day less and one more than in UTC, because the local day may be a neighbour.
        let day_before = |time: Timestamp| time.day_number().saturating_sub(1);
        let times = || self.activated_at.into_iter().chain(self.earlier_vehicles.iter().map(|one| one.until));
        let (out, last_out) = (times().next().map(day_before), times().next_back().map(day_before));
        let back = self.completed_at.map(|time| time.day_number() + 1);
        // Without a day and a time of the pickup, a swap tells only that it was before.
        let known_pickup = start.is_some() || self.activated_at.is_some() || self.earlier_vehicles.is_empty();
        let first = start.into_iter().chain(out).min().filter(|_| known_pickup);
        // A pickup on the last planned day or later leaves open when the vehicle came back.
        let known = back.is_some() || end.is_some_and(|end| last_out.is_none_or(|out| out + 2 <= end));
        let last = end.max(back).max(first).filter(|_| known);
        match self.status {
            RentalStatus::New => None,
            RentalStatus::Approved if out.or(back).is_none() => Some((start?, end)),
            RentalStatus::Active | RentalStatus::Approved => Some((first.unwrap_or(0), None)),
            RentalStatus::Completed => Some((first.unwrap_or(0), last)),
            RentalStatus::Cancelled => out.map(|_| (first.unwrap_or(0), last)),
        }
    }

    /// Whether the first vehicle came back before the planned first day, and no pickup is recorded. So nobody knows when it was
    /// picked up, and its stay does not tell.
    pub(crate) fn came_back_before_plan(&self) -> bool {
        self.first_return().is_some_and(|(_, back)| {
            let is_before = |start| self.time_zone.local(back).date() < start;
            self.activated_at.is_none() && self.start_date.is_some_and(is_before)
        })
    }

    /// The first vehicle, and when the customer gave it back or got another one for it, if that is recorded.
    fn first_return(&self) -> Option<(VehicleId, Timestamp)> {
        let swap = self.earlier_vehicles.first().map(|one| (one.vehicle_id, one.until));
        swap.or_else(|| self.completed_at.map(|at| (self.vehicle_id, at)))
    }

    /// The entries of the look-up of stays: one for each vehicle, and one of the first vehicle when it came back before its plan.
    fn stays(&self) -> Vec<IndexPrefix> {
        let Some((start, last)) = self.stay() else { return Vec::new() };
        let entry = |vehicle, last: Option<u32>| {
            let class = last.map_or(OPEN, |last| (last + 1).saturating_sub(start).max(1).ilog2() as u8);
            stay_entry(vehicle, class, start, last.unwrap_or(u32::MAX))
        };
        let mut stays = vec![entry(self.vehicle_id, last)];
        let mut seen = vec![self.vehicle_id];
        // The latest period of a vehicle comes first.
        for EarlierVehicle { vehicle_id, until } in self.earlier_vehicles.iter().rev() {
            if !seen.contains(vehicle_id) {
                let planned = self.end_date.map_or(start, Date::day_number);
                stays.push(entry(*vehicle_id, Some(planned.max(until.day_number() + 1).max(start))));
                seen.push(*vehicle_id);
            }
        }
        if let Some((vehicle, back)) = self.first_return().filter(|_| self.happened() && self.came_back_before_plan()) {
            stays.push(stay_entry(vehicle, BACK_BEFORE_PLAN, back.day_number(), back.day_number()));
        }
        stays
    }

    /// The entry of the look-up of vehicles that are out: handed over, and nobody has recorded the return.
    fn out(&self) -> Option<IndexPrefix> {
        let last = self.end_date.map_or(NO_LAST_DAY, Date::day_number);
        self.is_out().then(|| OUT.of(&[self.vehicle_id.as_bytes(), &last.to_be_bytes()]))
    }

    /// What decides who had the vehicle. `None` for rentals whose vehicle was not handed over.
    fn grounds(&self) -> Option<Grounds> {
        let (from, _) = self.stay()?;
        let from = if self.came_back_before_plan() { 0 } else { from };
        let facts = Facts::Rental {
            customer: self.customer_id,
            status: self.status.as_str(),
            days: [self.start_date, self.end_date],
            times: [self.activated_at, self.completed_at],
            zone: self.time_zone,
            earlier: self.earlier_vehicles.clone(),
        };
        Some(Grounds { vehicle: self.vehicle_id, from, facts })
    }

    /// Whether it is completed, and something of its price is left to bill or it has no price and no invoice.
    #[must_use]
    pub fn awaits_invoice(&self) -> bool {
        let left = match self.price() {
            Some(_) => !self.left_to_bill().is_zero(),
            None => self.invoice_ids.is_empty(),
        };
        self.status == RentalStatus::Completed && left
    }

    /// The entries of the look-up by recorded times, one for each period: its beginning, else its end.
    fn recorded(&self) -> Vec<IndexPrefix> {
        let of = |one: Period| {
            let begun = one.from.or(self.activated_at);
            Some(recorded_look_up(one.vehicle, begun.or(one.until).or(self.completed_at)?))
        };
        if self.happened() { self.periods().filter_map(of).collect() } else { Vec::new() }
    }

    /// The last day by number, in UTC, on which the rental says something of its vehicle: by its dates and its recorded times.
    pub(crate) fn last_known_day(&self) -> Option<u32> {
        let dates = [self.start_date, self.end_date].into_iter().flatten().map(Date::day_number);
        let times = [self.activated_at, self.completed_at].into_iter().flatten();
        let swaps = self.earlier_vehicles.iter().map(|one| one.until);
        dates.chain(times.chain(swaps).map(Timestamp::day_number)).max()
    }

    /// Whether its recorded times count: it was not only requested, and not cancelled.
    pub(crate) fn happened(&self) -> bool {
        !matches!(self.status, RentalStatus::New | RentalStatus::Cancelled)
    }
}

/// The prefix of the entries of completed rentals of which something is left to bill.
#[must_use]
pub fn unbilled_look_up() -> IndexPrefix {
    UNBILLED.of(&[])
}

/// The length class of stays without a last day.
pub const OPEN: u8 = 31;
/// The class of rentals that came back before their planned days, behind all others. Few vehicles have one.
pub(crate) const BACK_BEFORE_PLAN: u8 = 32;

/// The last day of a rental without an end date, in the look-up of vehicles that are out.
const NO_LAST_DAY: u32 = u32::MAX;

/// The prefix of the look-up of vehicles that are out. The id of a vehicle follows.
#[must_use]
pub(crate) fn vehicles_out(organization: OrganizationId) -> Key {
    key::index(organization, &SPEC, &[OUT.number, 0, 16])
}

/// Reads an entry of the look-up of vehicles that are out.
#[must_use]
pub(crate) fn vehicle_out(entry: &Key) -> Option<VehicleOut> {
    let Some(Row::IndexEntry { values, id, .. }) = Row::decode(entry) else { return None };
    let (vehicle, rest) = values.get(2..)?.split_first_chunk::<16>()?;
    let last = u32::from_be_bytes(*rest.get(2..)?.first_chunk()?);
    Some(VehicleOut {
        vehicle: VehicleId::from_slice(vehicle)?,
        rental: RentalId::from_uuid(id),
        last: Some(last).filter(|last| *last != NO_LAST_DAY),
    })
}

/// An entry of the look-up of vehicles that are out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VehicleOut {
    pub(crate) vehicle: VehicleId,
    pub(crate) rental: RentalId,
    /// The number of the planned day of the return; `None` when none is planned.
    pub(crate) last: Option<u32>,
}

/// The look-up prefix of the stays of `vehicle` that begin on day `start`. Class n, up to 30, has stays of 2^n to 2^(n+1)-1 days;
/// [`OPEN`] has those without a last day. In [`BACK_BEFORE_PLAN`] the first and the last day are that of the return.
#[must_use]
pub(crate) fn stay_look_up(vehicle: VehicleId, class: u8, start: u32) -> IndexPrefix {
    STAY.of(&[vehicle.as_bytes(), &[class], &start.to_be_bytes()])
}

/// The look-up entry of a stay, without the rental.
fn stay_entry(vehicle: VehicleId, class: u8, start: u32, last: u32) -> IndexPrefix {
    STAY.of(&[vehicle.as_bytes(), &[class], &start.to_be_bytes(), &last.to_be_bytes()])
}

/// The last day of a stay, by number, from the key of its entry: it is between the first day and the id of the rental. `place` is any
/// place of the look-up, up to the first day. `None` for a key that is too short.
#[must_use]
pub(crate) fn last_day_of_stay(entry: &Key, place: &Key) -> Option<u32> {
    let (before, _) = entry.as_bytes().split_last_chunk::<16>()?;
    let last = before.get(place.as_bytes().len()..)?.last_chunk()?;
    Some(u32::from_be_bytes(*last))
}

/// The look-up prefix of the rentals of `vehicle` with a recorded pickup, or only a recorded return, at a time.
#[must_use]
pub(crate) fn recorded_look_up(vehicle: VehicleId, at: Timestamp) -> IndexPrefix {
    RECORDED.of(&[vehicle.as_bytes(), &at.millis().to_be_bytes()])
}

pub(super) fn dates_out_of_order() -> Error {
    let wrong = |param, rule| FieldError::new(param, FieldCode::Invalid, rule);
    let both = vec![
        wrong("end_date", "must be on or after `start_date`"),
        wrong("start_date", "must be on or before `end_date`"),
    ];
    Error::Invalid(both.into())
}

impl Resource for Rental {
    const SPEC: &'static ResourceSpec = &SPEC;

    fn effects(&self) -> Effects {
        let unbilled = self.awaits_invoice().then(unbilled_look_up);
        let single = self.out().into_iter().chain(unbilled);
        let entries = self.stays().into_iter().chain(self.recorded()).chain(single).collect();
        let charge = Charge { customer: Some(self.customer_id), amount: self.final_price, billed: self.billed() };
        Effects { holds: self.holds(), entries, charge: Some(charge), grounds: self.grounds(), ..Effects::default() }
    }

    fn asks(&self, before: Option<&Self>) -> Vec<Ask> {
        let is_new = |part: &dyn Fn(&Self) -> bool| before.is_none_or(|before| !part(before));
        let mut asks = Vec::new();
        if is_new(&|before| before.booking_id == self.booking_id) {
            asks.extend(self.entry(&["booking_id"]).map(|entry| Ask::Another(&SAME_BOOKING_ID, entry)));
        }
        let of_status = is_new(&|before| (before.status, before.vehicle_id) == (self.status, self.vehicle_id));
        match self.status {
            RentalStatus::New => {
                let dates = (self.start_date, self.end_date);
                if (of_status || is_new(&|before| (before.start_date, before.end_date) == dates))
                    && let (Some(start), Some(end)) = dates
                {
                    asks.push(Ask::Holder(Hold::new(self.vehicle_id, Holder::Rental(self.id), start, end)));
                }
            }
            RentalStatus::Approved | RentalStatus::Active if of_status => {
                asks.push(Ask::Status(self.vehicle_id));
                if self.status == RentalStatus::Active {
                    asks.extend(self.entry(&["status", "vehicle_id"]).map(|entry| Ask::Another(&SECOND_ACTIVE, entry)));
                }
            }
            _ => {}
        }
        asks
    }
}

impl Billable for Rental {
    fn price(&self) -> Option<Money> {
        self.final_price
    }

    fn account(&self) -> (Money, &[InvoiceId]) {
        (self.amount_billed, &self.invoice_ids)
    }

    fn set_account(&mut self, billed: Money, invoices: Vec<InvoiceId>) {
        (self.amount_billed, self.invoice_ids) = (billed, invoices);
    }
}

impl Portable for Rental {
    fn arrive(&self, _: &RuleContext<'_>) -> Result<(), Error> {
        let mut counted = self.clone();
        counted.count_nights()?;
        if counted.rental_days != self.rental_days {
            let rule = "must be the nights from `start_date` to `end_date`, or null where one is missing";
            return Err(Error::field("rental_days", FieldCode::Invalid, rule));
        }
        self.check_handover()
    }
}

impl Create for Rental {
    /// Sets the price, unless the request contains one: nights times the present rate of the vehicle. A rental that ends on the
    /// day on which it starts costs as one night.
    fn create(&mut self, context: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        self.count_nights()?;
        self.check_handover()?;
        if self.final_price.is_none()
            && let Some(nights) = self.rental_days
            && let Some(vehicle) = context.reference::<Vehicle>("vehicle_id")?
            // A rate in another currency cannot be the price.
            && let Some(rate) = vehicle.daily_rate.filter(|_| vehicle.currency == self.currency)
        {
            self.final_price = Some(rate.times(nights.max(1)).ok_or_else(|| Error::too_large("final_price"))?);
        }
        Ok(vec![EventType::RentalCreated])
    }
}

impl Update for Rental {
    fn apply(&mut self, before: &Self, sent: &Fields, context: &RuleContext<'_>) -> Result<(), Error> {
        self.count_nights()?;
        self.note_handover(before, sent, context.now);
        self.change_vehicle(before, sent, context.now)?;
        self.check_handover()
    }

    /// `rental.updated` if a field changed. Every PATCH with the status COMPLETED or CANCELLED emits its event, even if the
    /// status stays the same (spec, Rentals).
    fn events(&self, _: &Self, changed: bool, sent: &Fields) -> Vec<EventType> {
        let updated = changed.then_some(EventType::RentalUpdated);
        let ended = match self.status {
            RentalStatus::Completed if sent.has("status") => Some(EventType::RentalCompleted),
            RentalStatus::Cancelled if sent.has("status") => Some(EventType::RentalCancelled),
            _ => None,
        };
        updated.into_iter().chain(ended).collect()
    }
}
