//! Time zones: what the calendar defines decides, and names are looked up where it defines nothing.

use super::{days, event, problems};

/// Standard and summer time in the United States, at these offsets.
fn rules(standard: &str, summer: &str) -> String {
    format!(
        "BEGIN:STANDARD\nDTSTART:16010101T020000\nTZOFFSETFROM:{summer}\nTZOFFSETTO:{standard}\nRRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=1SU;BYMONTH=11\nEND:STANDARD\nBEGIN:DAYLIGHT\nDTSTART:16010101T020000\nTZOFFSETFROM:{standard}\nTZOFFSETTO:{summer}\nRRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=2SU;BYMONTH=3\nEND:DAYLIGHT"
    )
}

fn zone(name: &str, parts: &str) -> String {
    format!("BEGIN:VTIMEZONE\nTZID:{name}\n{parts}\nEND:VTIMEZONE")
}

/// Two nights in a zone, from 23:30, seen in New York.
fn nights(name: &str, month: u32) -> String {
    event(&format!("DTSTART;TZID={name}:2027{month:02}10T233000\nDTEND;TZID={name}:2027{month:02}12T003000"))
}

#[test]
fn the_definition_in_the_calendar_decides_whatever_its_name() {
    for name in [
        "Customized Time Zone",
        "tzone://Microsoft/Custom",
        "Eastern Standard Time 1",
        "Pacific Standard Time",
        "/freeassociation.sourceforge.net/Europe/Berlin",
        "Europe/Berlin",
        "Zürich",
    ] {
        // Of New York, and three hours behind it: half past two of the next day there.
        for (parts, summer, winter) in [
            (rules("-0500", "-0400"), "A 2027-07-10/2027-07-12", "A 2027-01-10/2027-01-12"),
            (rules("-0800", "-0700"), "A 2027-07-11/2027-07-12", "A 2027-01-11/2027-01-12"),
        ] {
            let definition = zone(name, &parts);
            assert_eq!(days(&format!("{definition}\n{}", nights(name, 7))), [summer], "{name}");
            assert_eq!(days(&format!("{definition}\n{}", nights(name, 1))), [winter], "{name}");
        }
    }
    // Commas and a colon in the name, as Outlook writes them. One hour behind New York, in summer only.
    let name = "(UTC+00:00) Dublin, Edinburgh, Lisbon, London";
    for written in [name.to_owned(), name.replace(',', "\\,")] {
        let definition = zone(&written, &rules("-0500", "-0500"));
        for quoted in [format!("\"{name}\""), name.to_owned()] {
            let found = days(&format!("{definition}\n{}", nights(&quoted, 7)));
            assert_eq!(found, ["A 2027-07-11/2027-07-12"], "{written} {quoted}");
        }
    }
}

/// 13 hours ahead of New York, and then behind it.
#[test]
fn a_definition_has_single_changes_and_lists_of_them_too() {
    let part = |kind: &str, [start, from, to]: [&str; 3], more: &str| {
        format!("BEGIN:{kind}\nDTSTART:{start}\nTZOFFSETFROM:{from}\nTZOFFSETTO:{to}\n{more}END:{kind}")
    };
    let night = |day: &str| event(&format!("DTSTART;TZID=Mine:{day}T010000\nDTEND;TZID=Mine:{day}T100000"));
    let one = zone("Mine", &part("STANDARD", ["19700101T000000", "+0000", "+0900"], ""));
    assert_eq!(days(&format!("{one}\n{}", night("20260910"))), ["A 2026-09-09/2026-09-09"]);
    let listed = part("STANDARD", ["20260601T000000", "+0900", "-0500"], "RDATE:20270601T000000,20280101T000000\n");
    let back = part("DAYLIGHT", ["20270101T000000", "-0500", "+0900"], "");
    let changing = zone("Mine", &[listed, back].join("\n"));
    for (day, found) in [
        ("20260510", "A 2026-05-09/2026-05-09"),
        ("20260910", "A 2026-09-10/2026-09-10"),
        ("20270210", "A 2027-02-09/2027-02-09"),
        ("20270910", "A 2027-09-10/2027-09-10"),
    ] {
        assert_eq!(days(&format!("{changing}\n{}", night(day))), [found], "{day}");
    }
    // The last rule ends in 2026, in UTC: from then on there is no summer time.
    let ended = rules("-0500", "-0400").replace("BYMONTH=3", "BYMONTH=3;UNTIL=20260308T070000Z");
    assert_eq!(days(&format!("{}\n{}", zone("Mine", &ended), nights("Mine", 7))), ["A 2027-07-11/2027-07-12"]);
    // With seconds, as Apple has them of the time before standard time.
    let apple = part("STANDARD", ["18930401T000000", "+005328", "+0100"], "");
    assert_eq!(days(&format!("{}\n{}", zone("Mine", &apple), night("20260910"))), ["A 2026-09-09/2026-09-10"]);
}

#[test]
fn a_name_without_a_definition_is_looked_up() {
    for (name, found) in [
        ("America/Los_Angeles", "A 2027-07-11/2027-07-12"),
        ("America/New_York", "A 2027-07-10/2027-07-12"),
        ("Europe/Berlin", "A 2027-07-10/2027-07-11"),
        ("/freeassociation.sourceforge.net/Europe/Berlin", "A 2027-07-10/2027-07-11"),
        ("/mozilla.org/20050126_1/Europe/Berlin", "A 2027-07-10/2027-07-11"),
        ("/softwarestudio.org/Olson_20011030_5/America/Argentina/Buenos_Aires", "A 2027-07-10/2027-07-11"),
        ("W. Europe Standard Time", "A 2027-07-10/2027-07-11"),
        ("Pacific Standard Time", "A 2027-07-11/2027-07-12"),
        ("tzone://Microsoft/Utc", "A 2027-07-10/2027-07-11"),
        ("\"(UTC-08:00) Pacific Time (US & Canada)\"", "A 2027-07-11/2027-07-12"),
        ("(UTC+00:00) Dublin, Edinburgh, Lisbon, London", "A 2027-07-10/2027-07-11"),
    ] {
        assert_eq!(days(&nights(name, 7)), [found], "{name}");
        // A definition without offsets says nothing.
        let empty = zone(name.trim_matches('"'), "");
        assert_eq!(days(&format!("{empty}\n{}", nights(name, 7))), [found], "{name}");
    }
}

/// Its times count in the organization's zone: a vehicle that is wrongly free is worse.
#[test]
fn a_name_that_nobody_knows_is_named_once() {
    let both = format!("{}\n{}", nights("Customized Time Zone", 7), nights("Customized Time Zone", 8));
    let told = "nobody knows the time zone Customized Time Zone: its times count in the organization's zone";
    assert_eq!(problems(&both), [told]);
    let broken = zone("Mine", &rules("-0500", "-0400").replace("RRULE:FREQ=YEARLY", "RRULE:FREQ=SOMETIMES"));
    assert_eq!(problems(&format!("{broken}\n{}", nights("Mine", 7))).len(), 1);
}

/// Of all names in the Common Locale Data Repository those that are hard to spell, or that moved lately.
#[test]
fn the_names_of_windows_are_known() {
    let names = "Aus Central W.|Central America|Central Europe|Central European|Chatham Islands|Dateline|E. South America|FLE|GMT|GTB|\
        Greenwich|Jordan|Lord Howe|N. Central Asia|Qyzylorda|Romance|Sao Tome|South Sudan|Syria|Turks And Caicos|US Mountain|\
        W. Central Africa|W. Mongolia|West Bank|Yukon";
    for name in names.split('|').map(|name| format!("{name} Standard Time")) {
        assert_eq!(problems(&nights(&name, 7)), [""; 0], "{name}");
    }
    for name in ["Central Standard Time (Mexico)", "Russia Time Zone 11", "UTC", "UTC+13", "UTC-02"] {
        assert_eq!(problems(&nights(name, 7)), [""; 0], "{name}");
    }
}
