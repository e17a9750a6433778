//! When the occurrences of a rule begin (RFC 5545, 3.3.10), by the clock and without zones. Each step is counted, so a rule that
//! never matches costs little.

use super::reading::{MOST_STEPS_OF_ONE, Steps};
use calcard::icalendar::{ICalendarFrequency as Frequency, ICalendarMonth, ICalendarRecurrenceRule as Rule};
use chrono::{Datelike, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Weekday};

/// Most occurrences of the events with one UID, from their beginning to the end of the window.
pub(super) const MOST_OCCURRENCES: usize = 20_000;
/// Most occurrences of a rule on a day.
const MOST_OF_A_DAY: usize = 24;

/// Why a rule cannot be expanded: what follows the name of its event.
pub(super) type Why = String;

/// A part of time by the clock, both ends included.
#[derive(Clone, Copy)]
pub(super) struct ClockRange {
    pub(super) from: NaiveDateTime,
    pub(super) to: NaiveDateTime,
}

pub(super) fn too_many() -> Why {
    format!("has too many occurrences, more than {MOST_OCCURRENCES}")
}

/// What the clock shows when the occurrences of a rule begin in a part of time. Earlier ones can be there too. The rule begins at
/// `start`; its `UNTIL` is not looked at.
pub(super) fn starts(
    rule: &Rule,
    start: NaiveDateTime,
    range: ClockRange,
    steps: &Steps,
) -> Result<Vec<NaiveDateTime>, Why> {
    let mut series = Series::of(rule, start)?;
    let found = series.starts(range);
    steps.take(series.steps);
    found
}

/// A rule with what it takes from its start.
struct Series<'r> {
    rule: &'r Rule,
    start: NaiveDateTime,
    interval: i64,
    months: Vec<u8>,
    days_of_month: Vec<i8>,
    /// With a number: that one of the month or year.
    weekdays: Vec<(Option<i16>, Weekday)>,
    times: Vec<NaiveTime>,
    week_start: Weekday,
    /// Steps for each day.
    cost: usize,
    steps: usize,
}

impl<'r> Series<'r> {
    fn of(rule: &'r Rule, start: NaiveDateTime) -> Result<Self, Why> {
        let unreadable = |what: &str| format!("has an RRULE that cannot be read: {what}");
        let a_day =
            [&rule.byhour, &rule.byminute, &rule.bysecond].map(|list| list.len().max(1)).iter().product::<usize>();
        if rule.freq > Frequency::Daily || a_day > MOST_OF_A_DAY {
            return Err("recurs more than once a day".into());
        }
        if !is_in_range(rule) {
            return Err(unreadable("a value that is out of range"));
        }
        let is_long = matches!(rule.freq, Frequency::Yearly | Frequency::Monthly);
        if !is_long && rule.byday.iter().any(|day| day.ordwk.is_some()) {
            return Err(unreadable("a number before a weekday, in neither a month nor a year"));
        }
        let mut series = Self {
            rule,
            start,
            interval: i64::from(rule.interval.unwrap_or(1).max(1)),
            months: rule.bymonth.iter().map(ICalendarMonth::month).collect(),
            days_of_month: rule.bymonthday.clone(),
            weekdays: rule.byday.iter().map(|day| (day.ordwk, day.weekday.into())).collect(),
            times: times(rule, start.time()),
            week_start: rule.wkst.map_or(Weekday::Mon, Weekday::from),
            cost: 0,
            steps: 0,
        };
        if series.times.is_empty() {
            return Err(unreadable("a time that no day has"));
        }
        series.add_days_of_start();
        let values = [rule.byweekno.len(), rule.byyearday.len(), rule.bysetpos.len()].iter().sum::<usize>();
        series.cost =
            1 + values + series.months.len() + series.days_of_month.len() + series.weekdays.len() + series.times.len();
        Ok(series)
    }

    /// A rule that names no days has those of its start.
    fn add_days_of_start(&mut self) {
        let Rule { byweekno, byyearday, bymonthday, byday, .. } = self.rule;
        if !(byweekno.is_empty() && byyearday.is_empty() && bymonthday.is_empty() && byday.is_empty()) {
            return;
        }
        let (month, day) = (u8::try_from(self.start.month()), i8::try_from(self.start.day()));
        match self.rule.freq {
            Frequency::Yearly => {
                if self.months.is_empty() {
                    self.months.extend(month);
                }
                self.days_of_month.extend(day);
            }
            Frequency::Monthly => self.days_of_month.extend(day),
            Frequency::Weekly => self.weekdays.push((None, self.start.weekday())),
            _ => {}
        }
    }

    fn starts(&mut self, range: ClockRange) -> Result<Vec<NaiveDateTime>, Why> {
        let (mut found, mut left) = (Vec::new(), self.rule.count.unwrap_or(u32::MAX));
        for number in self.first_period(range.from.date()).. {
            let Some((first, last)) = self.period(number).filter(|(first, _)| *first <= range.to.date()) else { break };
            for at in self.of_period(first, last)? {
                if at < self.start {
                    continue;
                }
                if left == 0 || at > range.to {
                    return Ok(found);
                }
                left -= 1;
                found.push(at);
            }
            if found.len() > MOST_OCCURRENCES {
                return Err(too_many());
            }
        }
        Ok(found)
    }

    /// The number of the period with which to begin. Occurrences that are counted are counted from the first one.
    fn first_period(&self, from: NaiveDate) -> i64 {
        let start = self.start.date();
        let days = (from - start).num_days();
        let years = i64::from(from.year()) - i64::from(start.year());
        let ahead = match self.rule.freq {
            Frequency::Yearly => years,
            Frequency::Monthly => years * 12 + i64::from(from.month()) - i64::from(start.month()),
            Frequency::Weekly => days / 7,
            _ => days,
        };
        if self.rule.count.is_some() { 0 } else { (ahead / self.interval - 1).max(0) }
    }

    /// The first and the last day of a period. `None` for a year that no date has.
    fn period(&self, number: i64) -> Option<(NaiveDate, NaiveDate)> {
        let (start, ahead) = (self.start.date(), number.checked_mul(self.interval)?);
        let after = |day: NaiveDate, days: i64| day.checked_add_days(Days::new(u64::try_from(days).ok()?));
        match self.rule.freq {
            Frequency::Yearly => {
                let year = start.year().checked_add(i32::try_from(ahead).ok()?)?;
                Some((NaiveDate::from_ymd_opt(year, 1, 1)?, NaiveDate::from_ymd_opt(year, 12, 31)?))
            }
            Frequency::Monthly => {
                let first = start.with_day(1)?.checked_add_months(Months::new(u32::try_from(ahead).ok()?))?;
                Some((first, first.checked_add_months(Months::new(1))?.pred_opt()?))
            }
            Frequency::Weekly => {
                let first = after(start.week(self.week_start).checked_first_day()?, ahead.checked_mul(7)?)?;
                Some((first, after(first, 6)?))
            }
            _ => after(start, ahead).map(|day| (day, day)),
        }
    }

    /// The occurrences of a period, in their order.
    fn of_period(&mut self, first: NaiveDate, last: NaiveDate) -> Result<Vec<NaiveDateTime>, Why> {
        let (mut all, mut next) = (Vec::new(), Some(first));
        while let Some(day) = next.filter(|day| *day <= last) {
            self.steps += self.cost;
            if self.steps > MOST_STEPS_OF_ONE as usize {
                return Err(format!("has an RRULE that takes more than {MOST_STEPS_OF_ONE} steps"));
            }
            let has_month = self.months.is_empty() || self.months.iter().any(|month| u32::from(*month) == day.month());
            if !has_month {
                next = day.with_day(1).and_then(|first| first.checked_add_months(Months::new(1)));
                continue;
            }
            if self.takes(day) {
                all.extend(self.times.iter().map(|time| day.and_time(*time)));
            }
            next = day.succ_opt();
        }
        let positions = &self.rule.bysetpos;
        if !positions.is_empty() {
            let count = i32::try_from(all.len()).unwrap_or(i32::MAX);
            self.steps += all.len() * positions.len();
            let numbered = all.into_iter().zip(1..);
            let is_chosen = |number: i32| positions.contains(&number) || positions.contains(&(number - count - 1));
            all = numbered.filter(|(_, number)| is_chosen(*number)).map(|(at, _)| at).collect();
        }
        Ok(all)
    }

    /// Whether the rule names a day of one of its months.
    fn takes(&self, day: NaiveDate) -> bool {
        let Rule { byweekno, byyearday, .. } = self.rule;
        let days_of_month = u32::from(day.num_days_in_month());
        (byyearday.is_empty() || has(byyearday, day.ordinal(), days_of_year(day)))
            && (self.days_of_month.is_empty() || has(&self.days_of_month, day.day(), days_of_month))
            && (self.weekdays.is_empty() || self.weekdays.iter().any(|named| self.is_weekday(*named, day)))
            && (byweekno.is_empty() || self.has_week(day))
    }

    /// Whether a day is this weekday, or such a one of its month or year.
    fn is_weekday(&self, (number_of, weekday): (Option<i16>, Weekday), day: NaiveDate) -> bool {
        let of_year = self.rule.freq == Frequency::Yearly && self.months.is_empty();
        let (number, days) =
            if of_year { (day.ordinal(), days_of_year(day)) } else { (day.day(), u32::from(day.num_days_in_month())) };
        let is_numbered = |wanted: i16| {
            let other_days = if wanted < 0 { days - number } else { number - 1 };
            other_days / 7 + 1 == u32::from(wanted.unsigned_abs())
        };
        weekday == day.weekday() && number_of.is_none_or(is_numbered)
    }

    /// Whether the rule names the week of a day. A week belongs to the year that has four of its days or more.
    fn has_week(&self, day: NaiveDate) -> bool {
        let middle = |day: NaiveDate| {
            let first = day.week(self.week_start).checked_first_day();
            first.and_then(|first| first.checked_add_days(Days::new(3))).unwrap_or(day)
        };
        let number = |middle: NaiveDate| middle.ordinal0() / 7 + 1;
        let middle_of_this = middle(day);
        let last = NaiveDate::from_ymd_opt(middle_of_this.year(), 12, 28).map_or(52, |day| number(middle(day)));
        has(&self.rule.byweekno, number(middle_of_this), last)
    }
}

/// Whether a list has a number, counted from the first of so many or from the last one, which is -1.
fn has<N: Copy + Into<i64>>(list: &[N], number: u32, count: u32) -> bool {
    let (number, count) = (i64::from(number), i64::from(count));
    list.iter().any(|one| [number, number - count - 1].contains(&(*one).into()))
}

/// Whether there are such months, weeks, days and times, and their positions.
fn is_in_range(rule: &Rule) -> bool {
    let counted = |number: i64, most: i64| (1..=most).contains(&number.abs());
    rule.bymonth.iter().all(|month| counted(month.month().into(), 12))
        && rule.byweekno.iter().all(|week| counted((*week).into(), 53))
        && rule.byyearday.iter().all(|day| counted((*day).into(), 366))
        && rule.bymonthday.iter().all(|day| counted((*day).into(), 31))
        && rule.byday.iter().filter_map(|day| day.ordwk).all(|number| counted(number.into(), 53))
        && rule.bysetpos.iter().all(|position| counted((*position).into(), 366))
        && rule.byhour.iter().all(|hour| *hour < 24)
        && rule.byminute.iter().chain(&rule.bysecond).all(|number| *number <= 60)
}

fn days_of_year(day: NaiveDate) -> u32 {
    if day.leap_year() { 366 } else { 365 }
}

/// The times of a day at which occurrences begin, in their order. What the rule does not say is as in its first one.
fn times(rule: &Rule, first: NaiveTime) -> Vec<NaiveTime> {
    let or = |list: &[u8], of_first: u32| -> Vec<u32> {
        if list.is_empty() { vec![of_first] } else { list.iter().copied().map(u32::from).collect() }
    };
    let (minutes, seconds) = (or(&rule.byminute, first.minute()), or(&rule.bysecond, first.second()));
    let mut times = Vec::new();
    for hour in or(&rule.byhour, first.hour()) {
        for minute in &minutes {
            times.extend(seconds.iter().filter_map(|second| NaiveTime::from_hms_opt(hour, *minute, *second)));
        }
    }
    times.sort_unstable();
    times.dedup();
    times
}

#[cfg(test)]
mod tests;
