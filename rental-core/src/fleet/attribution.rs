//! Attribution: finds the vehicle of a transponder or plate, and the rental that had the vehicle at a time.
//!
//! A result is clear only when it follows from recorded facts. Everything else is shown with a reason, and a person decides.
//! A recorded fact against a rental rules it out, even if other facts support it.

use crate::{
    error::Error,
    resources::{
        Occasion, parse,
        rental::{self, OPEN, Rental, RentalStatus},
        vehicle::{self, Vehicle},
    },
    rows::key,
    schema::IndexPrefix,
    store::{Follow, Order, Span, Store, all_sound},
    value::{
        CustomerId, Date, Instants, LocalTime, OrganizationId, Plate, RentalId, Timestamp, VehicleId, Zone, same_tag,
        tag_digits,
    },
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
        ([], _, _) => {
            VehicleMatch::Unclear(format!("{} vehicles have this plate number, of different states.", by_plate.len()))
        }
    }
}

/// The time of a toll or violation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct When {
    /// The instant, if the statement contains a time of day.
    pub at: Option<Timestamp>,
    /// The local day, if the statement contains a valid date.
    pub on: Option<Date>,
}

impl When {
    /// The day in `zone`; `None` when neither is known.
    #[must_use]
    pub fn day(self, zone: Zone) -> Option<Date> {
        self.at.map(|at| zone.local(at).date()).or(self.on)
    }
}

/// The time of a toll or violation in the time zone of a rental.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct OccurrenceTime {
    /// The local day.
    day: Date,
    /// The possible instants: two when the clocks were set back, none when only the day is known.
    instants: [Option<Timestamp>; 2],
}

impl OccurrenceTime {
    /// Converts the time into the time zone of a rental; `None` when it is not known.
    fn new(when: When, zone: Zone) -> Option<Self> {
        let Some(at) = when.at else { return when.on.map(|day| Self { day, instants: [None, None] }) };
        let local: LocalTime = zone.local(at);
        // The statement contained a local time. If it occurred twice, both instants are possible.
        let instants = match zone.instants(local) {
            Instants::Two(first, second) => [Some(first), Some(second)],
            Instants::One(_) | Instants::Gap(_) => [Some(at), None],
        };
        Some(Self { day: local.date(), instants })
    }
}

/// How well a rental matches a time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Standing {
    /// The recorded pickup is before it and the recorded return after it, on planned days.
    Certain,
    /// It is on a planned day, and no recorded fact contradicts.
    Likely,
    /// It is possible. A person should decide.
    Possible,
    /// A recorded fact contradicts.
    RuledOut,
}

/// A rental that may have had the vehicle, with the reason.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// The id of the rental.
    pub rental: RentalId,
    /// The id of the rental's customer.
    pub customer: CustomerId,
    /// The facts for and against the rental, as a sentence.
    pub reason: String,
    standing: Standing,
    /// Whether a pickup before this time is recorded.
    handed_over: bool,
}

/// The result of [`decide`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Exactly this rental had the vehicle.
    Clear(Candidate),
    /// Several rentals are possible, or none is certain enough. The sentence says why; a person decides.
    Unclear(String, Vec<Candidate>),
    /// No rental is possible. The sentence says why.
    Nobody(String, Vec<Candidate>),
}

/// Reads the rentals that may have had a vehicle on a day.
///
/// # Errors
/// The store is not available.
pub async fn rentals_around(
    store: &dyn Store,
    organization: OrganizationId,
    vehicle: VehicleId,
    day: Date,
) -> Result<Vec<Rental>, Error> {
    const STEP: usize = 32;
    let mut rentals = Vec::new();
    for mut span in spans_around(organization, vehicle, day.day_number()) {
        // An open booking policy allows any number of rentals. With a hundred the result is unclear anyway.
        while rentals.len() < 100 {
            let found = all_sound(store.scan(&span, STEP).await?)?;
            for record in &found {
                rentals.push(parse::<Rental>(&record.key, &record.value)?);
            }
            let Some(last) = rentals.last().filter(|_| found.len() == STEP) else { break };
            span.to = entry_of(organization, last, &span);
        }
    }
    Ok(rentals)
}

/// The look-up entry of a rental, after which the next scan continues.
fn entry_of(organization: OrganizationId, rental: &Rental, span: &Span) -> crate::store::Key {
    use crate::resources::Resource;
    let entries = rental.effects().entries;
    let place = |one: &IndexPrefix| one.entry(organization, &rental::SPEC, rental.id.uuid());
    // If a concurrent write moved the entry of the rental, this class ends here.
    entries.first().map(place).filter(|key| *key >= span.from && *key < span.to).unwrap_or_else(|| span.from.clone())
}

/// The spans of stays that can contain a day. Class n has stays of 2^n to 2^(n+1)-1 days, so only those that begin at most
/// so many days before can reach it. One day is added on both sides for early pickups and late returns.
fn spans_around(organization: OrganizationId, vehicle: VehicleId, day: u32) -> Vec<Span> {
    let of_class = |class: u8| {
        let earliest = if class == OPEN { 0 } else { day.saturating_sub(2 << class) };
        let prefix = |start: u32| rental::stay_look_up(vehicle, class, start).prefix(organization, &rental::SPEC);
        let follow = Some(Follow { prefix: key::records(organization, &rental::SPEC) });
        Span { from: prefix(earliest), to: prefix(day + 2), order: Order::Descending, follow }
    };
    (0..22).chain([OPEN]).map(of_class).collect()
}

/// Decides which of a vehicle's rentals had it at a time. The days of each rental are in its own time zone.
#[must_use]
pub fn decide(rentals: &[Rental], when: When, occasion: Occasion) -> Verdict {
    let mut candidates: Vec<Candidate> = rentals.iter().filter_map(|rental| weigh(rental, when, occasion)).collect();
    candidates.sort_by_key(|candidate| (candidate.standing, candidate.rental));
    let of = |standing: Standing| candidates.iter().filter(move |candidate| candidate.standing == standing);
    let open = candidates.iter().filter(|candidate| candidate.standing != Standing::RuledOut).count();
    let certain = of(Standing::Certain).count();
    let taken = candidates.iter().filter(|one| one.standing != Standing::RuledOut && one.handed_over).count();
    match (open, certain, of(Standing::Likely).count()) {
        (1, 1, _) | (1, _, 1) => Verdict::Clear(candidates.swap_remove(0)),
        // Other rentals were planned for that day, but only this one has a recorded pickup.
        (_, 1, _) if taken == 1 => Verdict::Clear(candidates.swap_remove(0)),
        (0, ..) if candidates.is_empty() => {
            Verdict::Nobody("No rental had the vehicle on that day.".into(), candidates)
        }
        (0, ..) => Verdict::Nobody("What is recorded rules out every rental of that day.".into(), candidates),
        (1, ..) => Verdict::Unclear(candidates[0].reason.clone(), candidates),
        _ => Verdict::Unclear(format!("{open} rentals come into question."), candidates),
    }
}

fn weigh(rental: &Rental, when: When, occasion: Occasion) -> Option<Candidate> {
    let zone = rental.time_zone;
    let time = OccurrenceTime::new(when, zone)?;
    let start = rental.start_date?;
    let end = rental.end_date;
    let (standing, reason) = match rental.status {
        RentalStatus::Active | RentalStatus::Completed | RentalStatus::Approved => {
            let planned = start <= time.day && end.is_none_or(|end| time.day <= end);
            standing(rental, (start, end), planned, time, occasion)?
        }
        RentalStatus::New | RentalStatus::Cancelled => return None,
    };
    let handed_over = rental.activated_at.is_some_and(|at| time.after(at, zone) == Some(true));
    Some(Candidate { rental: rental.id, customer: rental.customer_id, reason, standing, handed_over })
}

fn standing(
    rental: &Rental,
    (start, end): (Date, Option<Date>),
    planned: bool,
    time: OccurrenceTime,
    occasion: Occasion,
) -> Option<(Standing, String)> {
    let zone = rental.time_zone;
    let days = end.map_or_else(|| format!("from {start}"), |end| format!("{start} to {end}"));
    let handed_over = rental.activated_at.map(|at| time.after(at, zone));
    let still_out = rental.completed_at.map(|at| time.before(at, zone));
    match (handed_over, still_out) {
        (Some(Some(false)), _) if planned => {
            return Some((Standing::RuledOut, format!("Planned {days}, but handed over later.")));
        }
        (_, Some(Some(false))) if planned => {
            return Some((Standing::RuledOut, format!("Planned {days}, but given back before.")));
        }
        (Some(None), _) | (_, Some(None)) if planned => {
            return Some((
                Standing::Possible,
                format!("Planned {days}; handed over or given back at about that time."),
            ));
        }
        _ => {}
    }
    if planned {
        return Some(match rental.status {
            RentalStatus::Approved => {
                (Standing::Possible, format!("Approved for {days}, but never marked as handed over."))
            }
            _ if handed_over == Some(Some(true)) && still_out == Some(Some(true)) => {
                (Standing::Certain, format!("Handed over before and given back after it, within {days}."))
            }
            _ => (Standing::Likely, format!("Had the vehicle {days}.")),
        });
    }
    if handed_over == Some(Some(false)) || rental.status == RentalStatus::Approved {
        return None;
    }
    if time.day < start {
        let early = handed_over == Some(Some(true)) && still_out != Some(Some(false));
        return early.then(|| (Standing::Possible, format!("Planned {days}, but handed over earlier.")));
    }
    let day_after = end.is_some_and(|end| time.day.day_number() == end.day_number() + 1);
    match (rental.status, still_out) {
        (RentalStatus::Active, _) => Some((Standing::Possible, format!("Planned {days}, and not yet given back."))),
        (_, Some(Some(true) | None)) => Some((Standing::Possible, format!("Planned {days}, but given back later."))),
        _ if day_after && occasion == Occasion::Violation => {
            Some((Standing::Possible, format!("Given back within a day before; planned {days}.")))
        }
        _ => None,
    }
}

impl OccurrenceTime {
    /// Whether it was at or after `at`; `None` when this is not known.
    fn after(self, at: Timestamp, zone: Zone) -> Option<bool> {
        self.compare(at, zone, |instant| instant >= at)
    }

    /// Whether it was before `at`; `None` when this is not known.
    fn before(self, at: Timestamp, zone: Zone) -> Option<bool> {
        self.compare(at, zone, |instant| instant < at)
    }

    fn compare(self, at: Timestamp, zone: Zone, holds: impl Fn(Timestamp) -> bool) -> Option<bool> {
        let mut answers = self.instants.iter().flatten().map(|instant| holds(*instant));
        match answers.next() {
            Some(first) => answers.all(|other| other == first).then_some(first),
            None => {
                let day = zone.local(at).date();
                // To compare with another day, any time of the day is right.
                (day != self.day).then(|| holds(if self.day < day { Timestamp::default() } else { Timestamp::LAST }))
            }
        }
    }
}

#[cfg(test)]
mod tests;
