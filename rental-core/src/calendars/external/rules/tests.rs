//! Rules, compared with the expansion of `calcard`, which cannot be bounded.

use super::*;
use calcard::{
    Entry, Parser,
    common::timezone::Tz,
    icalendar::{ICalendar, ICalendarProperty, ICalendarValue},
};
use proptest::prelude::*;

fn calendar(start: &str, rule: &str) -> ICalendar {
    let text =
        format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nDTSTART:{start}\nRRULE:{rule}\nEND:VEVENT\nEND:VCALENDAR\n");
    match Parser::new(&text).entry() {
        Entry::ICalendar(calendar) => calendar,
        other => panic!("{other:?}"),
    }
}

fn time(text: &str) -> NaiveDateTime {
    NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%S").unwrap()
}

/// The occurrences in a part of time, and the steps that they took.
fn expanded(start: &str, rule: &str, [from, to]: [&str; 2]) -> (Result<Vec<NaiveDateTime>, Why>, usize) {
    let calendar = calendar(start, rule);
    let entry = calendar.components[1].property(&ICalendarProperty::Rrule).unwrap();
    let Some(ICalendarValue::RecurrenceRule(rule)) = entry.values.first() else { panic!("{entry:?}") };
    let range = ClockRange { from: time(from), to: time(to) };
    let mut series = Series::of(rule, time(start)).unwrap();
    let found = series.starts(range);
    (found.map(|all| all.into_iter().filter(|at| *at >= range.from).collect()), series.steps)
}

fn numbers(from: i32, to: i32) -> impl Strategy<Value = String> {
    let number = prop_oneof![from..=-1, 1..=to];
    prop::collection::vec(number, 1..4).prop_map(|all| {
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        all.join(",")
    })
}

fn part(name: &'static str, values: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(String::new()), 1 => values.prop_map(move |values| format!(";{name}={values}"))]
}

/// Weekdays, all of them with a number or none.
fn weekdays(with_numbers: bool) -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["MO", "TU", "WE", "TH", "FR", "SA", "SU"]);
    let number = if with_numbers { prop_oneof![-4..=-1, 1..=4].boxed() } else { Just(0).boxed() };
    prop::collection::vec((number, name), 1..4).prop_map(|all| {
        let one =
            |(number, name): &(i32, &str)| if *number == 0 { (*name).to_owned() } else { format!("{number}{name}") };
        all.iter().map(one).collect::<Vec<_>>().join(",")
    })
}

fn rule() -> impl Strategy<Value = String> {
    let freq = prop::sample::select(vec!["YEARLY", "MONTHLY", "WEEKLY", "DAILY"]);
    (freq, any::<bool>()).prop_flat_map(|(freq, numbered)| {
        let is_long = freq == "YEARLY" || freq == "MONTHLY";
        let parts = (
            part("INTERVAL", (1..5).prop_map(|number: i32| number.to_string())),
            part(
                "BYMONTH",
                prop::collection::vec(1..=12, 1..3)
                    .prop_map(|all: Vec<i32>| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")),
            ),
            if freq == "WEEKLY" { Just(String::new()).boxed() } else { part("BYMONTHDAY", numbers(-31, 31)).boxed() },
            part("BYDAY", weekdays(is_long && numbered)),
            if freq == "YEARLY" { part("BYYEARDAY", numbers(-366, 366)).boxed() } else { Just(String::new()).boxed() },
            if freq == "YEARLY" { part("BYWEEKNO", numbers(-1, 53)).boxed() } else { Just(String::new()).boxed() },
            part("BYHOUR", Just("9,7".to_owned())),
            part("WKST", prop::sample::select(vec!["SU", "MO", "WE"]).prop_map(str::to_owned)),
            part("COUNT", (1..40).prop_map(|number: i32| number.to_string())),
        );
        (parts, part("BYSETPOS", numbers(-3, 3))).prop_map(move |((a, b, c, d, e, f, g, h, i), j)| {
            let by = [b, c, d, e, f.clone(), g].concat();
            let j = if by.is_empty() { String::new() } else { j };
            // Weeks of a year that begin on another day than Monday are not compared: calcard counts some of them otherwise.
            let h = if f.is_empty() { h } else { String::new() };
            format!("FREQ={freq}{a}{by}{h}{i}{j}")
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn occurrences_are_those_of_calcard(rule in rule(), day in 0_u64..3000, ahead in 0_u64..2000) {
        let start = NaiveDate::from_ymd_opt(2010, 1, 1).unwrap() + Days::new(day);
        let [from, to] = [start + Days::new(ahead), start + Days::new(ahead + 900)];
        let [start, from, to] = [start, from, to].map(|day| day.format("%Y%m%dT080000").to_string());
        let (found, _) = expanded(&start, &rule, [&from, &to]);
        // Where nothing follows, `calcard` goes on for thousands of years.
        let (later, _) = expanded(&start, &rule, [&to, "20400101T000000"]);
        prop_assume!(later.is_ok_and(|later| !later.is_empty()));
        let all = calendar(&start, &format!("{rule};UNTIL={to}")).expand_dates(Tz::Floating, 20_000);
        prop_assert!(all.errors.is_empty(), "{:?}", all.errors);
        let expected = all.events.iter().map(|one| one.start.naive_local()).filter(|at| *at >= time(&from));
        prop_assert_eq!(found, Ok(expected.collect::<Vec<_>>()), "{} {}", start, rule);
    }
}

/// What calcard reads otherwise, or not at all.
#[test]
fn weekdays_with_and_without_a_number_are_both_taken() {
    let (found, _) = expanded("20260601T080000", "FREQ=MONTHLY;BYDAY=1TU,WE", ["20260601T000000", "20260612T000000"]);
    assert_eq!(found.unwrap(), ["20260602T080000", "20260603T080000", "20260610T080000"].map(time));
}

/// Each begins with the window, however long ago the rule began.
#[test]
fn a_rule_that_never_matches_takes_few_steps() {
    for (start, rule, most) in [
        ("00010101T000000", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", 4000),
        ("19000101T000000", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", 1000),
        ("19730101T000000", "FREQ=WEEKLY;BYMONTH=2,3;BYSETPOS=50", 5000),
        ("20260101T000000", "FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6", 2000),
    ] {
        let (found, steps) = expanded(start, rule, ["20260501T000000", "20280501T000000"]);
        assert_eq!(found, Ok(Vec::new()), "{rule}");
        assert!(steps < most, "{rule}: {steps}");
    }
    // Those that are counted have to begin at their start.
    let (found, steps) = expanded(
        "00010101T000000",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=2",
        ["20260501T000000", "20280501T000000"],
    );
    assert!(found.is_err_and(|why| why.contains("more than 200000 steps")) && steps < 210_000);
}
