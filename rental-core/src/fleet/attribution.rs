//! Attribution: finds the rental whose customer had the vehicle when a toll or violation was caused.
//!
//! A result is clear when no other customer can have had the vehicle at that time, by what is recorded and planned of all
//! its rentals. Everything else is shown with a reason, and a person decides.

use super::{
    candidates::MOST,
    possession::{Evidence, Possession, Timeline, day_end, midnight},
};
use crate::{
    resources::{
        Occasion,
        rental::{Rental, RentalStatus},
    },
    value::{CustomerId, Date, RentalId, Timestamp, VehicleId, When, Zone},
};
use std::collections::HashSet;

/// The instant, or noon of the day; `None` when neither is known. A day without a time zone is one of `zone`.
#[must_use]
pub fn about(when: When, zone: Zone) -> Option<Timestamp> {
    const NOON: i64 = 12 * 3_600_000;
    when.at.or_else(|| when.on.map(|day| midnight(when.zone.unwrap_or(zone), day).plus_millis(NOON)))
}

/// The instants at which a toll or violation can have been caused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Occurrence {
    /// At any time of the spans that begin with `one` and `other` and are `length` milliseconds long. At both instants the clocks
    /// showed the time; they are equal, unless the clocks were set back.
    At { one: Timestamp, other: Timestamp, length: u32 },
    /// At any time from the first instant until just before the second one: only the day is known.
    Within(Timestamp, Timestamp),
}

/// The first instant of a day, and the first one after it.
type Day = (Timestamp, Timestamp);

/// A second in milliseconds.
const SECOND: u32 = 1_000;
/// A minute in milliseconds.
const MINUTE: u32 = 60_000;

impl Occurrence {
    /// A day without a time zone is one of `zone`.
    pub(super) fn new(when: When, zone: Zone) -> Option<Self> {
        let Some((one, other)) = when.instants() else {
            let zone = when.zone.unwrap_or(zone);
            return when.on.map(|day| Self::Within(midnight(zone, day), day_end(zone, day)));
        };
        // Many statements have times without seconds, and most without milliseconds. What is stored does not tell them from times
        // with the seconds 00, or the milliseconds 000.
        let is_whole = |unit: u32| one.millis().is_multiple_of(u64::from(unit));
        let length = [MINUTE, SECOND].into_iter().find(|unit| is_whole(*unit)).unwrap_or(1);
        Some(Self::At { one, other, length })
    }

    /// Whether it can be within `[from, to)`.
    pub(super) fn can_be_in(self, from: Timestamp, to: Timestamp) -> bool {
        match self {
            Self::At { one, other, length } => {
                [one, other].iter().any(|at| *at < to && from < at.plus_millis(length.into()) && from < to)
            }
            Self::Within(begin, end) => begin < to && from < end,
        }
    }

    /// Whether it is within `[from, to)`, whichever instant it was.
    fn is_in(self, from: Timestamp, to: Timestamp) -> bool {
        self.is_in_any(&[(from, to)])
    }

    /// Whether it is within one of some spans, whichever instant it was.
    pub(super) fn is_in_any(self, spans: &[(Timestamp, Timestamp)]) -> bool {
        let is_whole_in =
            |begin: Timestamp, end: Timestamp| spans.iter().any(|(from, to)| *from <= begin && end <= *to);
        match self {
            Self::At { one, other, length } => {
                [one, other].iter().all(|at| is_whole_in(*at, at.plus_millis(length.into())))
            }
            Self::Within(begin, end) => is_whole_in(begin, end),
        }
    }

    /// The first instant of its day, and the first one after it.
    fn day(self, zone: Zone) -> Day {
        match self {
            Self::At { one, .. } => {
                let day = zone.local(one).date();
                (midnight(zone, day), day_end(zone, day))
            }
            Self::Within(begin, end) => (begin, end),
        }
    }

    /// What is known of it, if that leaves open on which side of an instant it was: its minute or its second.
    fn divided_by(self, at: Timestamp) -> Option<&'static str> {
        match self {
            Self::At { one, other, length } if one == other && one <= at && at < one.plus_millis(length.into()) => {
                Some(if length == MINUTE { "minute" } else { "second" })
            }
            _ => None,
        }
    }

    /// Why it is not known at which instant it was, as the rest of a sentence.
    pub(super) fn doubt(self) -> &'static str {
        match self {
            Self::At { one, other, .. } if one != other => "the clocks showed the time twice",
            Self::At { length: MINUTE, .. } => "only the minute is known",
            Self::At { .. } => "only the second is known",
            Self::Within(..) => "only the day is known",
        }
    }
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
}

/// The result of [`decide`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The customer of this rental had the vehicle.
    Clear(Candidate),
    /// Several customers are possible, or none is certain enough. The sentence says why; a person decides.
    Unclear(String, Vec<Candidate>),
    /// No rental is possible. The sentence says why.
    Nobody(String, Vec<Candidate>),
}

/// A possession, and whether it can contain an instant.
struct Weighed<'t, 'r> {
    possession: &'t Possession<'r>,
    at: Occurrence,
    /// Whether the instant is on the planned days of the rental.
    planned: bool,
    /// Whether the customer can have had the vehicle on the day of the instant.
    on_that_day: bool,
    /// Whether the customer gave the vehicle back before, and it can have stayed where it was parked.
    parked: bool,
    /// Whether the customer can have had the vehicle.
    possible: bool,
    /// Whether the customer had the vehicle, if the planned days were kept.
    surely: bool,
    /// Whether it was in the second of the recorded return, and so perhaps just before it.
    in_second_of_return: bool,
    /// Whether another rental rules this one out.
    ruled_out_by_another: bool,
    /// Whether another rental that comes into question took place, too, and the two cannot have followed each other.
    contradicted: bool,
}

/// Decides which of its rentals had a vehicle at a time. The days of each rental are in its own time zone, and so is a day of
/// the toll or violation without a time zone.
#[must_use]
pub fn decide(rentals: &[Rental], vehicle: VehicleId, when: When, occasion: Occasion) -> Verdict {
    if rentals.len() >= MOST {
        return Verdict::Unclear(format!("The vehicle has {MOST} or more rentals around that time."), Vec::new());
    }
    let timeline = Timeline::of(rentals, vehicle);
    // Nearly always all rentals have one time zone.
    let mut known: Option<(Zone, Option<(Occurrence, Day)>)> = None;
    let mut occurrence = |zone: Zone| match known {
        Some((same, at)) if same == zone => at,
        _ => known.insert((zone, Occurrence::new(when, zone).map(|at| (at, at.day(zone))))).1,
    };
    let with_time = timeline.possessions.iter().filter_map(|one| Some((one, occurrence(one.rental.time_zone)?)));
    let mut weighed: Vec<Weighed<'_, '_>> = with_time.map(|(one, (at, day))| Weighed::new(one, at, day)).collect();
    weighed.sort_by_key(|one| (one.possession.pickup.earliest, one.possession.rental.id));
    rule_out(&mut weighed);
    if occasion == Occasion::Parking {
        mark_parked(&mut weighed);
    }
    let open: Vec<&Weighed<'_, '_>> = weighed.iter().filter(|one| one.possible).collect();
    let parked: Vec<&Weighed<'_, '_>> = weighed.iter().filter(|one| one.parked).collect();
    // A customer who gave the vehicle back and has it again pays in both cases.
    let is_of_all = |best: &usize| {
        let customer = |one: &Weighed<'_, '_>| one.possession.rental.customer_id;
        parked.iter().all(|one| customer(one) == customer(open[*best]))
    };
    if let Some(best) = trusted(&open).filter(is_of_all) {
        return Verdict::Clear(open[best].candidate());
    }
    // A rental that had the vehicle twice, with another one between, is one.
    let mut rentals: Vec<RentalId> = open.iter().chain(&parked).map(|one| one.possession.rental.id).collect();
    rentals.sort_unstable();
    rentals.dedup();
    let others = weighed.iter().filter(|one| !one.possible && !one.parked && (one.planned || one.on_that_day));
    let mut known = HashSet::new();
    let shown = open.iter().chain(&parked).copied().chain(others);
    let shown = shown.filter(|one| known.insert(one.possession.rental.id));
    let candidates: Vec<Candidate> = shown.map(Weighed::candidate).collect();
    match rentals.len() {
        0 if candidates.is_empty() => {
            let reason = "By what is recorded and planned, no rental had the vehicle on that day.";
            Verdict::Nobody(reason.into(), candidates)
        }
        0 => Verdict::Nobody("What is recorded rules out every rental of that day.".into(), candidates),
        1 => Verdict::Unclear(candidates[0].reason.clone(), candidates),
        many if weighed.iter().any(|one| one.contradicted) => {
            Verdict::Unclear(format!("{many} rentals come into question: they contradict each other."), candidates)
        }
        many => Verdict::Unclear(format!("{many} rentals come into question."), candidates),
    }
}

/// Rules out what another rental makes impossible: recorded times win over planned ones, and a customer who had the vehicle
/// by plan rules out those who may have had it, unless the plans contradict each other.
fn rule_out(weighed: &mut [Weighed<'_, '_>]) {
    let is_out = |one: usize, by: usize, weighed: &[Weighed<'_, '_>]| {
        let (one, by) = (&weighed[one], &weighed[by]);
        let is_trusted = by.possession.is_recorded() && !by.possession.is_contradicted_by(one.possession);
        // What is recorded of a rental that was cancelled is not less true.
        let recorded = is_trusted && !one.possession.is_recorded() && !one.possession.is_cancelled();
        let planned = !one.surely && !one.is_overdue() && one.possession.can_follow_or_precede(by.possession);
        by.surely_took_place() && !one.in_second_of_return && (recorded || planned)
    };
    let possible: Vec<usize> = (0..weighed.len()).filter(|at| weighed[*at].possible).collect();
    let out: Vec<usize> = possible
        .iter()
        .copied()
        .filter(|one| possible.iter().any(|by| by != one && is_out(*one, *by, weighed)))
        .collect();
    for at in out {
        weighed[at].possible = false;
        weighed[at].ruled_out_by_another = true;
    }
    let is_contradicted = |one: &Weighed<'_, '_>| one.possible && weighed.iter().any(|other| one.contradicts(other));
    let contradicted: Vec<bool> = weighed.iter().map(is_contradicted).collect();
    weighed.iter_mut().zip(contradicted).for_each(|(one, contradicted)| one.contradicted = contradicted);
}

/// Marks the rentals whose customers gave the vehicle back and can have left it parked, unless another one had it by then.
fn mark_parked(weighed: &mut [Weighed<'_, '_>]) {
    if weighed.iter().any(|one| one.possible && (one.surely_took_place() || one.was_picked_up())) {
        return;
    }
    let is_parked = |one: &Weighed<'_, '_>| one.was_given_back_shortly_before() && !one.was_followed(weighed);
    let parked: Vec<bool> = weighed.iter().map(is_parked).collect();
    weighed.iter_mut().zip(parked).for_each(|(one, parked)| one.parked = parked);
}

/// The rental, among those that are possible, that is attached: all are of one customer, and at least one says that the
/// customer had the vehicle. Neighbours of one customer count as one.
fn trusted(open: &[&Weighed<'_, '_>]) -> Option<usize> {
    let customer = open.first()?.possession.rental.customer_id;
    if open.iter().any(|one| one.possession.rental.customer_id != customer) {
        return None;
    }
    let certain: Vec<usize> =
        (0..open.len()).filter(|at| open[*at].possession.evidence == Evidence::HandedOver).collect();
    let from = certain.iter().map(|at| open[*at].possession.trusted_from).min()?;
    let to = certain.iter().map(|at| open[*at].possession.trusted_to).max()?;
    let holds = |one: &Weighed<'_, '_>| one.at.is_in(one.possession.trusted_from, one.possession.trusted_to);
    let best = certain.iter().copied().min_by_key(|at| {
        let one = open[*at];
        (!holds(one), !one.surely, !one.possession.pickup.recorded, *at)
    })?;
    open[best].at.is_in(from, to).then_some(best)
}

impl<'t, 'r> Weighed<'t, 'r> {
    fn new(possession: &'t Possession<'r>, at: Occurrence, (midnight, day_end): Day) -> Self {
        let (pickup, back) = (possession.pickup, possession.giving_back);
        let (first, end) = possession.planned;
        let planned = first.is_some_and(|first| at.can_be_in(first, end));
        let before_return = at.can_be_in(pickup.earliest, back.latest);
        let in_second_of_return = !before_return
            && possession.is_given_back_in_whole_second()
            && at.can_be_in(back.latest, back.latest.plus_millis(SECOND.into()));
        let reached = before_return || in_second_of_return;
        // The end of a planned day is the first instant of the next one, and so not on that one.
        let is_back_before = if back.recorded { back.latest < midnight } else { back.latest <= midnight };
        Self {
            possession,
            at,
            planned,
            on_that_day: pickup.earliest < day_end && !is_back_before,
            parked: false,
            possible: reached && !possession.displaced,
            surely: at.is_in(pickup.latest, back.earliest),
            in_second_of_return,
            ruled_out_by_another: reached && possession.displaced,
            contradicted: false,
        }
    }

    /// Whether both this and another rental, of another customer, took place by what is known of them, and only one of them can have.
    fn contradicts(&self, other: &Self) -> bool {
        let (one, other_one) = (self.possession, other.possession);
        let took_place = one.evidence == Evidence::HandedOver && other_one.evidence == Evidence::HandedOver;
        let is_of_another = one.rental.customer_id != other_one.rental.customer_id;
        self.possible && other.possible && took_place && is_of_another && !one.can_follow_or_precede(other_one)
    }

    /// Whether the planned days are over, and nobody marked the rental as given back.
    fn is_overdue(&self) -> bool {
        let possession = self.possession;
        possession.is_out() && self.at.can_be_in(possession.trusted_to, possession.giving_back.latest)
    }

    /// Whether the customer had the vehicle if the planned days were kept, and the rental took place.
    fn surely_took_place(&self) -> bool {
        self.surely && self.possession.evidence == Evidence::HandedOver
    }

    /// Whether it was after a recorded pickup.
    fn was_picked_up(&self) -> bool {
        let pickup = self.possession.pickup;
        pickup.recorded && self.at.is_in(pickup.latest, Timestamp::LAST)
    }

    /// Whether it was after the return, on that day or the next one. A parked vehicle can be ticketed after its return.
    fn was_given_back_shortly_before(&self) -> bool {
        let (rental, zone) = (self.possession.rental, self.possession.rental.time_zone);
        let back = self.possession.giving_back;
        let planned = rental.end_date.filter(|end| self.possession.pickup.earliest < day_end(zone, *end));
        let day = if back.recorded { Some(zone.local(back.latest).date()) } else { planned };
        let is_back = match rental.status {
            RentalStatus::Completed => true,
            RentalStatus::Active | RentalStatus::Approved => back.recorded,
            RentalStatus::Cancelled => back.recorded && self.possession.pickup.recorded,
            RentalStatus::New => false,
        } || self.possession.swapped_out;
        let Some(day) = day.filter(|_| !self.possible && is_back) else {
            return false;
        };
        let Some(next) = Date::from_day_number(day.day_number() + 1) else { return false };
        self.at.can_be_in(back.latest, day_end(zone, next)) && !self.possession.ended_by_next
    }

    /// Whether another customer certainly got the vehicle between the return and the occasion.
    fn was_followed(&self, all: &[Self]) -> bool {
        let back = self.possession.giving_back.latest;
        let has_begun = |other: &Self| {
            let took_place = other.possession.evidence == Evidence::HandedOver || other.possession.pickup.recorded;
            took_place && other.at.is_in(other.possession.pickup.latest, Timestamp::LAST)
        };
        all.iter().any(|other| has_begun(other) && back <= other.possession.pickup.earliest)
    }

    fn candidate(&self) -> Candidate {
        let rental = self.possession.rental;
        Candidate { rental: rental.id, customer: rental.customer_id, reason: self.reason() }
    }

    /// The facts for and against the rental.
    fn reason(&self) -> String {
        let rental = self.possession.rental;
        let days = match (rental.start_date, rental.end_date) {
            (Some(start), Some(end)) => format!("{start} to {end}"),
            (Some(start), None) => format!("from {start}"),
            (None, Some(end)) => format!("until {end}"),
            (None, None) => "without dates".into(),
        };
        if self.possible { self.reason_for(&days) } else { self.reason_against(&days) }
    }

    fn reason_for(&self, days: &str) -> String {
        let (possession, rental) = (self.possession, self.possession.rental);
        if possession.evidence == Evidence::Doubtful {
            return match rental.status {
                RentalStatus::Cancelled => format!("Cancelled, planned {days}, but handed over before."),
                _ => format!("Approved for {days}, but never marked as handed over."),
            };
        }
        if !self.at.is_in(possession.pickup.earliest, possession.giving_back.latest) {
            let (begin, end) = (possession.pickup, possession.giving_back);
            let is_end_recorded = end.recorded || possession.ended_by_next;
            let moments = [(begin.earliest, begin.recorded), (end.latest, is_end_recorded)];
            let recorded = || moments.into_iter().filter(|(_, recorded)| *recorded).map(|(moment, _)| moment);
            let is_about = |moment: Timestamp| self.at.can_be_in(moment, moment.plus_millis(1));
            return match recorded().find_map(|moment| self.at.divided_by(moment)) {
                Some(unit) => format!("Planned {days}; handed over or given back within that {unit}."),
                None if self.in_second_of_return || recorded().any(is_about) => {
                    format!("Planned {days}; handed over or given back at about that time.")
                }
                None => format!("Planned {days}, and {}.", self.at.doubt()),
            };
        }
        let is_trusted = !self.at.can_be_in(possession.trusted_to, possession.giving_back.latest);
        let has_days = rental.start_date.is_some() && rental.end_date.is_some();
        match (self.planned, possession.pickup.recorded, possession.giving_back.recorded) {
            (_, true, true) if self.contradicted || !is_trusted => {
                format!("Handed over before and given back after it; planned {days}. Another rental contradicts that.")
            }
            (true, true, true) if has_days => format!("Handed over before and given back after it, within {days}."),
            (_, false, true) if possession.has_unknown_pickup() && rental.start_date.is_some() => {
                format!("Planned {days}, but its recorded return was before that, and its pickup is not recorded.")
            }
            (_, true, true) => format!("Handed over before and given back after it; planned {days}."),
            (true, _, false) if !is_trusted && possession.is_out() => {
                format!("Planned {days}, but another rental began since, and nobody recorded the return.")
            }
            (true, false, _) if self.at.can_be_in(possession.pickup.earliest, possession.trusted_from) => {
                format!("Planned {days}, but one that was cancelled had the vehicle on the first day.")
            }
            (true, ..) if is_trusted && self.contradicted => {
                format!("Planned {days}, but another rental was planned or had the vehicle at the same time.")
            }
            (true, ..) if is_trusted => format!("Had the vehicle {days}."),
            (false, _, true) => format!("Planned {days}, but given back later."),
            (..) if rental.status == RentalStatus::Completed => {
                format!("Planned {days}, and it is not recorded when it was given back.")
            }
            (false, true, _) if rental.start_date.is_none() => "Handed over before, and not yet given back.".into(),
            (false, false, _) if rental.start_date.is_none() => {
                "Marked as handed over, but it is not recorded when.".into()
            }
            _ => self.reason_outside(days),
        }
    }

    /// The reason of a rental that is not given back, before or after its planned days.
    fn reason_outside(&self, days: &str) -> String {
        let rental = self.possession.rental;
        let early = rental.start_date.is_some_and(|start| {
            let start = midnight(rental.time_zone, start);
            self.at.can_be_in(Timestamp::FIRST, start)
        });
        if early {
            format!("Planned {days}, but handed over earlier.")
        } else {
            format!("Planned {days}, and not yet given back.")
        }
    }

    /// The reason of a rental whose customer can have left the vehicle parked.
    fn reason_parked(&self, days: &str) -> String {
        let (back, zone) = (self.possession.giving_back, self.possession.rental.time_zone);
        let stayed = "and the vehicle can have stayed parked";
        if !back.recorded {
            return format!("Planned {days}, so given back the day before, {stayed}.");
        }
        let (midnight, _) = self.at.day(zone);
        let when = if midnight <= back.latest { "earlier that day" } else { "the day before" };
        format!("Given back {when}, {stayed}; planned {days}.")
    }

    fn reason_against(&self, days: &str) -> String {
        if self.parked {
            return self.reason_parked(days);
        }
        let possession = self.possession;
        if self.ruled_out_by_another {
            return format!("Planned {days}, but another rental had the vehicle at that time.");
        }
        let begun = self.at.can_be_in(possession.pickup.earliest, Timestamp::LAST);
        match (begun, possession.swapped_in, possession.swapped_out) {
            (false, true, _) => return format!("Planned {days}, but the customer got this vehicle by a later swap."),
            (true, _, true) if !possession.ended_by_next => {
                return format!("Planned {days}, but the customer got another vehicle by a swap before.");
            }
            _ => {}
        }
        match (begun, possession.waited, possession.ended_by_next) {
            (false, true, _) => format!("Planned {days}, but the rental before was given back later."),
            (false, false, _) => format!("Planned {days}, but handed over later."),
            (true, _, true) => format!("Planned {days}, but the vehicle was handed over to the next rental before."),
            (true, ..) => format!("Planned {days}, but given back before."),
        }
    }
}

#[cfg(test)]
mod tests;
