//! The possession of one vehicle: what is recorded and planned of all its rentals decides together who had it when.
//!
//! A pickup or return is an instant when its time is recorded, and a range when only its day is planned. Recorded times win
//! over planned days, and a recorded pickup ends every earlier possession, also one whose return nobody recorded. A swap gives
//! back one vehicle and picks up another one, both at its recorded time.

use crate::{
    resources::rental::{Rental, RentalStatus},
    value::{Date, Instants, LocalTime, Period, RentalId, Timestamp, VehicleId, Zone},
};

/// When a pickup or return was: at the earliest and at the latest. Both are equal when the time is recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Moment {
    pub(super) earliest: Timestamp,
    pub(super) latest: Timestamp,
    /// Whether the time is recorded, not only planned.
    pub(super) recorded: bool,
}

/// How much the times of a possession prove.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Evidence {
    /// The status says that the vehicle was handed over.
    HandedOver,
    /// The rental was approved, or it was cancelled after the pickup. Only a person can tell whether it took place.
    Doubtful,
}

/// The time in which the customer of a rental had the vehicle, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Possession<'r> {
    pub(super) rental: &'r Rental,
    pub(super) evidence: Evidence,
    pub(super) pickup: Moment,
    pub(super) giving_back: Moment,
    /// While no other rental comes into question, the customer had the vehicle from here: the recorded pickup, or the
    /// beginning of the planned day.
    pub(super) trusted_from: Timestamp,
    /// The end of that time: the recorded return, or the end of the planned day.
    pub(super) trusted_to: Timestamp,
    /// The planned days: the beginning of the first one, if it is known, and the end of the last one.
    pub(super) planned: (Option<Timestamp>, Timestamp),
    /// The recorded pickup, or the beginning of the planned first day.
    begin: Option<Timestamp>,
    /// The recorded return, also when another rental began before it.
    back: Option<Timestamp>,
    /// Whether a later recorded pickup ended this possession.
    pub(super) ended_by_next: bool,
    /// Whether it began with a swap: the customer had another vehicle before.
    pub(super) swapped_in: bool,
    /// Whether it ended with a swap: the customer got another vehicle.
    pub(super) swapped_out: bool,
    /// Whether the rental before was given back later than this pickup was planned.
    pub(super) waited: bool,
    /// Whether a rental that took place cannot have been before or after this one, which nobody marked as handed over.
    pub(super) displaced: bool,
}

/// The possessions of one vehicle.
#[derive(Debug)]
pub(super) struct Timeline<'r> {
    pub(super) possessions: Vec<Possession<'r>>,
}

/// After every return: the vehicle is still out.
const END: Timestamp = Timestamp::LAST;
/// A recorded time this close to the planned days is an early pickup or a late return, whatever another rental says: two days, in
/// milliseconds.
const CLOSE: i64 = 2 * 24 * 3_600_000;

/// The first instant of a day.
pub(super) fn midnight(zone: Zone, day: Date) -> Timestamp {
    match LocalTime::new(day, 0).map(|local| zone.instants(local)) {
        Some(Instants::One(at) | Instants::Two(at, _) | Instants::Gap(at)) => at,
        None => END,
    }
}

/// The first instant after a day.
pub(super) fn day_end(zone: Zone, day: Date) -> Timestamp {
    Date::from_day_number(day.day_number() + 1).map_or(END, |next| midnight(zone, next))
}

impl Moment {
    fn exact(at: Timestamp) -> Self {
        Self { earliest: at, latest: at, recorded: true }
    }

    fn between(earliest: Timestamp, latest: Timestamp) -> Self {
        Self { earliest, latest, recorded: false }
    }

    /// Whether it was certainly before an instant. A planned day is over at its end.
    fn is_before(self, at: Timestamp) -> bool {
        self.latest < at || (self.latest == at && self.earliest < at)
    }

    /// Whether it can have been at an instant or later. The end of a planned day is the first instant of the next one, and
    /// so not on that day.
    fn can_be_at_or_after(self, at: Timestamp) -> bool {
        at < self.latest || (at == self.latest && (self.earliest == at || at == END))
    }
}

impl<'r> Possession<'r> {
    /// What the rental alone says about a period; `None` when its vehicle was never handed over.
    fn of(rental: &'r Rental, period: Period) -> Option<Self> {
        let zone = rental.time_zone;
        let (activated, completed) = (period.from.or(rental.activated_at), period.until.or(rental.completed_at));
        let (swapped_in, swapped_out) = (period.from.is_some(), period.until.is_some());
        let evidence = match (rental.status, activated.or(completed)) {
            (RentalStatus::Active | RentalStatus::Completed, _) | (RentalStatus::Approved, Some(_)) => {
                Evidence::HandedOver
            }
            (RentalStatus::Approved, None) if rental.start_date.is_some() => Evidence::Doubtful,
            (RentalStatus::Cancelled, _) if activated.is_some() => Evidence::Doubtful,
            (RentalStatus::New | RentalStatus::Approved | RentalStatus::Cancelled, _) => return None,
        };
        let start = rental.start_date.map(|start| midnight(zone, start));
        let end = rental.end_date.map(|end| day_end(zone, end));
        // A return before the planned first day shows that the pickup was not on that day either.
        let pickup_day = rental.start_date.filter(|_| completed.zip(start).is_none_or(|(back, start)| start <= back));
        let (pickup, trusted_from) = match (activated, start, pickup_day) {
            (Some(at), ..) => (Moment::exact(at), at),
            (None, Some(begin), Some(start)) => (Moment::between(begin, day_end(zone, start)), begin),
            (None, ..) => (Moment::between(Timestamp::FIRST, completed.unwrap_or(END)), END),
        };
        let planned_end = rental.end_date.zip(end).filter(|(_, end)| pickup.earliest < *end);
        let is_out = rental.status != RentalStatus::Completed && evidence == Evidence::HandedOver;
        let (giving_back, trusted_to) = match (completed, planned_end) {
            (Some(at), _) => (Moment::exact(at), at),
            // Nobody recorded the return, and its planned day is over: the customer may still have the vehicle.
            (None, Some((_, end))) if is_out => (Moment::between(end, END), end),
            // It was cancelled because the vehicle came back early, or before it was handed over: nobody knows when.
            (None, Some((_, end))) if rental.status == RentalStatus::Cancelled => {
                (Moment::between(pickup.earliest, end), end)
            }
            (None, Some((last, end))) => (Moment::between(midnight(zone, last), end), end),
            // The plan was over before the pickup, so only the day of the pickup is left of it.
            (None, None) if is_out && rental.end_date.is_some() => {
                let end = day_end(zone, zone.local(pickup.earliest).date());
                (Moment::between(end, END), end)
            }
            (None, None) if is_out => (Moment::between(END, END), END),
            (None, None) => (Moment::between(pickup.earliest, END), pickup.earliest),
        };
        let giving_back = Moment { earliest: giving_back.earliest.max(pickup.earliest), ..giving_back };
        let pickup = Moment { latest: pickup.latest.min(giving_back.latest.max(pickup.earliest)), ..pickup };
        let (ended_by_next, waited, displaced) = (false, false, false);
        Some(Self {
            rental,
            evidence,
            pickup,
            giving_back,
            trusted_from,
            trusted_to,
            planned: (start, end.unwrap_or(END)),
            begin: activated.or_else(|| start.filter(|_| pickup_day.is_some())),
            back: completed,
            ended_by_next,
            swapped_in,
            swapped_out,
            waited,
            displaced,
        })
    }

    /// Whether this possession was before another one, because one of them began before the other began or ended. `false`
    /// also when nothing tells, and when their times contradict each other.
    fn is_before(&self, other: &Self) -> bool {
        let first = |one: &Self, next: &Self| {
            // What is still out after its planned days can have come back on the last one, before a pickup of that day.
            let is_on_an_earlier_day = one.pickup.is_before(next.giving_back.earliest) && !next.is_out();
            one.pickup.latest < next.giving_back.earliest
                || is_on_an_earlier_day
                || (one.pickup.latest <= next.pickup.earliest && one.pickup.earliest < next.pickup.earliest)
        };
        // A recorded return wins over a planned one, when nothing tells the pickup before it.
        let known = |one: &Self, next: &Self| {
            let back = next.giving_back;
            let can_be_back = one.giving_back.earliest < back.earliest || one.giving_back.latest == END;
            let is_after = one.pickup.latest < back.earliest && can_be_back;
            next.has_unknown_pickup() && back.recorded && is_after
        };
        match (self.pickup.recorded, other.pickup.recorded) {
            (true, true) => self.pickup.earliest < other.pickup.earliest,
            _ if known(self, other) != known(other, self) => known(self, other),
            _ => first(self, other) && !first(other, self),
        }
    }

    /// Whether neither a recorded time nor a planned day tells when the vehicle was picked up.
    pub(super) fn has_unknown_pickup(&self) -> bool {
        self.begin.is_none()
    }

    /// Whether this possession certainly began before an instant.
    fn began_before(&self, at: Timestamp) -> bool {
        if self.pickup.recorded { self.pickup.earliest < at } else { self.pickup.latest <= at }
    }

    fn end_at(&mut self, at: Timestamp) {
        if at < self.giving_back.latest {
            self.giving_back.latest = at;
            self.giving_back.earliest = self.giving_back.earliest.min(at);
            self.trusted_to = self.trusted_to.min(at);
            self.ended_by_next = true;
        }
    }

    /// Adjusts this possession to those before and after it.
    fn adjust(&mut self, all: &[Self]) {
        self.end_at_next(all);
        self.doubt_beside_cancelled(all);
        self.doubt_unplanned_return(all);
        self.begin_after_earlier(all);
    }

    /// Whether this is another rental that took place.
    fn is_certain_beside(&self, other: &Self) -> bool {
        self.rental.id != other.rental.id && self.evidence == Evidence::HandedOver
    }

    /// Ends this possession at the pickup of a later one. Only a pickup that follows from a recorded time ends one: plans are often
    /// late. What was cancelled ends at a planned one, too; a pickup that only follows from other rentals is none.
    fn end_at_next(&mut self, all: &[Self]) {
        let next = |other: &&Self| match other.pickup.recorded {
            true => self.began_before(other.pickup.earliest) || self.is_before(other),
            false if self.is_cancelled() && !other.has_unknown_pickup() => self.begins_before(other),
            false => other.giving_back.recorded && self.is_before(other),
        };
        let certain = all.iter().filter(|other| other.is_certain_beside(self));
        // A pickup that contradicts this plan, or that this plan contradicts, does not end it on its own days.
        let is_within_plan = |other: &Self| {
            let is_planned_for = |last: Timestamp| !other.has_unknown_pickup() && other.pickup.latest <= last;
            self.is_out() && self.last_day().is_some_and(is_planned_for)
        };
        let end = |other: &Self| match other.pickup.recorded {
            true if other.is_contradicted_by(self) => self.span_end().max(other.pickup.latest),
            false if is_within_plan(other) => self.span_end().max(other.pickup.latest),
            _ => other.pickup.latest,
        };
        if let Some(at) = certain.filter(next).map(end).min() {
            self.end_at(at);
        }
    }

    /// Trusts the plan of this possession only until the recorded pickup of one that was cancelled; and a planned pickup only after the
    /// one of another customer who picked the vehicle up on that day.
    fn doubt_beside_cancelled(&mut self, all: &[Self]) {
        let cancelled = || all.iter().filter(|other| other.rental.id != self.rental.id && other.is_cancelled());
        let begins_later = |other: &&Self| self.giving_back.earliest.max(self.pickup.latest) <= other.pickup.earliest;
        let next = cancelled().filter(begins_later).map(|other| other.pickup.earliest).min();
        let is_on_first_day = |other: &&Self| {
            let window = self.pickup.earliest..self.pickup.latest;
            other.rental.customer_id != self.rental.customer_id && window.contains(&other.pickup.earliest)
        };
        let before = cancelled().filter(is_on_first_day).map(|other| other.giving_back.earliest).max();
        if let Some(at) = next.filter(|_| !self.giving_back.recorded) {
            self.trusted_to = self.trusted_to.min(at);
        }
        if let Some(at) = before.filter(|_| !self.pickup.recorded) {
            self.trusted_from = self.trusted_from.max(at);
        }
    }

    /// Trusts a recorded return for which no day was planned only until the next rental that took place before that return: the
    /// status was perhaps changed long after the vehicle came back.
    fn doubt_unplanned_return(&mut self, all: &[Self]) {
        if self.rental.end_date.is_some() || self.back.is_none() {
            return;
        }
        let contradicts = |other: &&Self| self.begin <= other.begin && self.is_contradicted_by(other);
        if let Some(at) = all.iter().filter(contradicts).filter_map(|other| other.begin).min() {
            self.trusted_to = self.trusted_to.min(at);
        }
    }

    /// Begins this possession after the return of each earlier one.
    fn begin_after_earlier(&mut self, all: &[Self]) {
        if self.pickup.recorded || (self.rental.start_date.is_none() && !self.giving_back.recorded) {
            return;
        }
        // A booking that took place waited only for a return that is known to be late.
        let took_place = self.evidence == Evidence::HandedOver;
        let can_wait = |other: &Self| other.giving_back.recorded || other.giving_back.earliest < self.pickup.latest;
        let earlier = |other: &&Self| {
            let is_earlier = other.is_before(self) && other.giving_back.earliest < self.giving_back.latest;
            is_earlier && (took_place || can_wait(other))
        };
        let certain = all.iter().filter(|other| other.is_certain_beside(self));
        let back = certain.filter(earlier).map(|other| other.giving_back.earliest).max();
        if let Some(back) = back.filter(|back| *back > self.pickup.earliest) {
            self.pickup.earliest = back;
            self.pickup.latest = self.pickup.latest.max(back);
            self.trusted_from = self.trusted_from.max(back);
            self.waited = true;
        }
    }

    /// Adjusts this possession, whose return nobody recorded, to the rentals after it.
    ///
    /// They show that the vehicle can have come back on the planned day of the return, and at any time when none is planned. When
    /// one of them is completed, the vehicle came back before its pickup. One that took place before the planned return contradicts
    /// the plan: from then on, a person decides.
    fn end_by_plan(&mut self, all: &[Self]) {
        let is_open = !self.giving_back.recorded && self.giving_back.latest == END;
        if !is_open || self.evidence == Evidence::Doubtful {
            return;
        }
        let due = self.last_day().unwrap_or(Timestamp::FIRST).max(self.pickup.earliest);
        let next: Vec<(&Self, Timestamp)> =
            all.iter().filter_map(|other| Some((other, self.can_end_before(other)?))).collect();
        let Some(from) = next.iter().map(|(_, from)| *from).min() else { return };
        let contradicts = next.iter().any(|(other, _)| other.pickup.latest <= due);
        let is_completed = |other: &Self| other.rental.status == RentalStatus::Completed && self.begins_before(other);
        let completed = next.iter().filter(|(other, _)| is_completed(other)).map(|(other, _)| other.pickup.latest);
        let ended = completed.filter(|at| due < *at).min();
        self.giving_back.earliest = self.giving_back.earliest.min(from.max(self.pickup.earliest));
        if self.rental.end_date.is_none() || contradicts {
            self.trusted_to = self.trusted_to.min(from);
        }
        if let Some(at) = ended {
            self.end_at(at);
        }
    }

    /// From when another rental tells that this possession, whose return nobody recorded, can have ended before it.
    fn can_end_before(&self, other: &Self) -> Option<Timestamp> {
        if self.rental.id == other.rental.id {
            return None;
        }
        let can_begin_before = self.pickup.earliest < other.pickup.latest;
        let begins_before = self.begins_before(other);
        let is_booking = other.evidence == Evidence::Doubtful && !other.pickup.recorded;
        let Some(last) = self.last_day() else {
            let has_it_later = self.pickup.latest < other.giving_back.latest;
            let can_end = begins_before || (can_begin_before && has_it_later);
            return can_end.then_some(other.pickup.earliest);
        };
        let is_on_last_day = last < other.pickup.latest && can_begin_before && !other.is_cancelled();
        // A booking does not take place while the vehicle is out by plan.
        let can_end = is_on_last_day || (begins_before && !is_booking);
        let from = if last < other.pickup.latest { other.pickup.earliest.max(last) } else { other.pickup.earliest };
        can_end.then_some(from)
    }

    /// Whether the pickup of this possession was before that of another one, by their days or because their order is known.
    fn begins_before(&self, other: &Self) -> bool {
        self.pickup.latest <= other.pickup.earliest || self.is_before(other)
    }

    /// The beginning of the planned day of the return.
    fn last_day(&self) -> Option<Timestamp> {
        self.rental.end_date.map(|end| midnight(self.rental.time_zone, end))
    }

    /// Whether nobody marked the rental as handed over, and one that took place overlaps with its plan.
    fn is_displaced(&self, all: &[Self]) -> bool {
        let took_place = |other: &&Self| other.evidence == Evidence::HandedOver;
        let is_only_planned = self.evidence == Evidence::Doubtful && !self.pickup.recorded;
        is_only_planned && all.iter().filter(took_place).any(|other| !self.can_follow_or_precede(other))
    }

    /// Whether this and another possession can have followed each other.
    pub(super) fn can_follow_or_precede(&self, other: &Self) -> bool {
        other.pickup.can_be_at_or_after(self.giving_back.earliest)
            || self.pickup.can_be_at_or_after(other.giving_back.earliest)
    }

    /// Whether a recorded pickup long before the planned days, or a recorded return long after them, takes days from another
    /// rental that took place; or a recorded return for which no day was planned. One of the two is written down wrong, and nobody
    /// knows which.
    ///
    /// This depends on these two rentals only, not on what others change of them.
    pub(super) fn is_contradicted_by(&self, other: &Self) -> bool {
        let is_another = self.rental.customer_id != other.rental.customer_id && other.is_certain_beside(self);
        let (Some(from), Some(begin)) = (self.begin, other.begin) else { return false };
        let (first, last) = self.planned;
        let is_early = |first: Timestamp| {
            let is_on_its_days = begin < from && other.certain_end().is_some_and(|end| from < end);
            self.pickup.recorded
                && from.plus_millis(CLOSE) < first
                && (is_on_its_days || (from <= begin && begin < first))
        };
        let is_late = |back: Timestamp| {
            let end = other.span_end();
            let is_unplanned = self.rental.end_date.is_none() || (last.plus_millis(CLOSE) < back && last < end);
            is_unplanned && from <= begin && end <= back
        };
        is_another && (first.is_some_and(is_early) || self.back.is_some_and(is_late))
    }

    /// The recorded return, or the end of the planned day of the return, or the last instant.
    fn span_end(&self) -> Timestamp {
        self.back.unwrap_or(self.planned.1)
    }

    /// Until when the customer certainly had the vehicle, if the plan was kept: the recorded return, or the beginning of the
    /// planned day of the return.
    fn certain_end(&self) -> Option<Timestamp> {
        self.back.or_else(|| self.last_day())
    }

    /// Whether the customer has the vehicle by the status of the rental, and nobody recorded the return.
    pub(super) fn is_out(&self) -> bool {
        let is_over = self.rental.status == RentalStatus::Completed || self.giving_back.recorded;
        self.evidence == Evidence::HandedOver && !is_over
    }

    /// Whether the return is recorded, and to the second: it can have been at any time of that second.
    pub(super) fn is_given_back_in_whole_second(&self) -> bool {
        let back = self.giving_back;
        back.recorded && !self.ended_by_next && back.latest.millis().is_multiple_of(1_000)
    }

    /// Whether it was cancelled after a recorded pickup.
    pub(super) fn is_cancelled(&self) -> bool {
        self.rental.status == RentalStatus::Cancelled && self.pickup.recorded
    }

    /// Whether pickup and return are both recorded.
    pub(super) fn is_recorded(&self) -> bool {
        self.pickup.recorded && self.giving_back.recorded
    }
}

/// The time in which the customer of a rental had the vehicle, from a recorded pickup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Had<'r> {
    pub(crate) rental: &'r Rental,
    pub(crate) from: Timestamp,
    /// The recorded return, or the pickup of the next rental; `None` while it is not known.
    pub(crate) to: Option<Timestamp>,
}

/// The possessions of a vehicle by these rentals whose pickup was recorded.
pub(crate) fn recorded(rentals: &[Rental], vehicle: VehicleId) -> Vec<Had<'_>> {
    let possessions = Timeline::of(rentals, vehicle).possessions.into_iter();
    let known = possessions.filter(|one| one.pickup.recorded && one.evidence == Evidence::HandedOver);
    known
        .map(|one| {
            let back = Some(one.giving_back.latest).filter(|_| one.giving_back.recorded || one.ended_by_next);
            Had { rental: one.rental, from: one.pickup.earliest, to: back }
        })
        .collect()
}

/// Whether a rental whose return nobody recorded still has a vehicle at a time: no recorded pickup of another rental, and no
/// completed rental after it, shows that the vehicle came back.
pub(crate) fn is_still_out(rentals: &[Rental], vehicle: VehicleId, rental: RentalId, now: Timestamp) -> bool {
    let possessions = Timeline::of(rentals, vehicle).possessions;
    let of_rental = |one: &&Possession<'_>| one.rental.id == rental && !one.giving_back.recorded;
    possessions.iter().filter(of_rental).any(|one| now < one.giving_back.latest)
}

impl<'r> Timeline<'r> {
    /// The timeline of a vehicle by these rentals, in any order.
    pub(super) fn of(rentals: &'r [Rental], vehicle: VehicleId) -> Self {
        let periods = |rental: &'r Rental| rental.periods().map(move |period| (rental, period));
        let of_vehicle = rentals.iter().flat_map(periods).filter(|(_, period)| period.vehicle == vehicle);
        let mut possessions: Vec<Possession<'r>> =
            of_vehicle.filter_map(|(rental, period)| Possession::of(rental, period)).collect();
        let alone = possessions.clone();
        possessions.iter_mut().for_each(|one| one.end_by_plan(&alone));
        // Each round can tell the order of further pairs.
        for _ in 0..possessions.len() {
            let before = possessions.clone();
            possessions.iter_mut().for_each(|one| one.adjust(&before));
            if possessions == before {
                break;
            }
        }
        let adjusted = possessions.clone();
        possessions.iter_mut().for_each(|one| one.displaced = one.is_displaced(&adjusted));
        Self { possessions }
    }
}
