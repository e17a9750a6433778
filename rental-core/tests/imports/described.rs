//! Files as people have them: lines above the header, sections, totals, encodings, and dates and amounts in other forms.

use crate::{SETTINGS, compare, line, read_tolls, refusal, violations};
use rental_core::{
    imports::statements::{Mapping, Reader, Settings, TOLLS, TollRow, VIOLATIONS, ViolationRow},
    value::{Currency, Text, Zone},
};

const MAPPING: &str = r#"{"agency": "HCTRA", "time_zone": "America/Chicago", "charges": "positive", "date_order": "mdy", "columns": {
    "transaction_id": "Trans ID", "date": "Transaction Date", "plate": "Plate", "amount": "Amount"}}"#;
const FILE: &str = "Trans ID,Transaction Date,Plate,Amount\n9001,06/02/2026,LZA7293,$2.50\n";
/// The end of [`MAPPING`].
const END: &str = r#""plate": "Plate", "amount": "Amount"}}"#;

fn fields(row: &TollRow) -> Vec<Option<String>> {
    let text = |text: &Option<Text>| text.as_deref().map(str::to_owned);
    let amount = if row.credit { format!("-{}", row.amount) } else { row.amount.to_string() };
    let on = row.occurred_on.map(|date| date.to_string());
    vec![text(&row.transaction_id), on, text(&row.plaza), text(&row.plate), text(&row.transponder_number), Some(amount)]
}

/// Reads tolls with [`MAPPING`] after a text in it was replaced.
#[track_caller]
fn reads(file: &[u8], (from, to): (&str, &str), expected: &str) {
    assert!(MAPPING.contains(from), "{from}");
    let mapping = Mapping::parse(&MAPPING.replace(from, to), TOLLS.has_issuer).unwrap_or_else(|why| panic!("{why}"));
    let rows = read_tolls(file, None, Some(&mapping), &SETTINGS).unwrap_or_else(|failed| panic!("{failed}"));
    compare(&rows.iter().map(|row| line(row, fields)).collect::<Vec<_>>(), expected);
}

#[test]
fn the_header_is_found_below_other_lines_with_any_delimiter() {
    for (above, lines) in [
        ("sep=,\n", 1),
        ("Account:,1234567,,\nPeriod:,06/01/2026 - 06/30/2026,,\n,,,\n", 3),
        ("Statement; for; Smith; John; Plate; A\n\n", 2),
    ] {
        for delimiter in [",", ";", "\t", "|"] {
            let file = format!("{above}{}", FILE.replace(',', delimiter));
            let expected = format!("{}|9001|2026-06-02|-|LZA7293|-|2.5", lines + 2);
            reads(file.as_bytes(), ("mdy", "mdy"), &expected);
            let skipping = format!("\"skip_lines\": {lines}, \"agency\"");
            reads(file.as_bytes(), ("\"agency\"", &skipping), &expected);
        }
    }
    let mapping = Mapping::parse(&MAPPING.replace("\"Plate\"", "\"Plates\""), TOLLS.has_issuer).expect("a mapping");
    let refused = refusal(read_tolls(format!("a\n\n{FILE}").as_bytes(), None, Some(&mapping), &SETTINGS));
    for words in ["in line 3", "no column `Plates`; is `Plate` it?", "`optional`"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    let file = "Export of June\ntransaction_id;agency;plate;amount\n1;A;P;1\n";
    assert_eq!(read_tolls(file.as_bytes(), None, None, &SETTINGS).map(|rows| rows.len()).ok(), Some(1));
}

#[test]
fn titles_and_totals_are_skipped_and_a_row_without_its_date_is_not() {
    let file = format!(
        "{FILE}9002,06/03/2026,LZA7293,$1.00\nTotal,,,$3.50\n,,Sub-total,$3.50\nTotal tolls: $3.50\n,,,\nEnd of report\n\
         9003,,Total Plaza,$1.00\nTOTAL,2,3.50\n9004,,LZA7293,$1.00\n9005,06/03/2026\n9006,06/03/2026,LZA7293\n"
    );
    reads(
        file.as_bytes(),
        ("mdy", "mdy"),
        "2|9001|2026-06-02|-|LZA7293|-|2.5
         3|9002|2026-06-03|-|LZA7293|-|1
         4 skipped: a total of other rows
         5 skipped: a total of other rows
         6 skipped: a title, a total or a line of blanks
         7 skipped: a title, a total or a line of blanks
         8 skipped: a title, a total or a line of blanks
         9 invalid: `Transaction Date` is blank
         10 skipped: a title, a total or a line of blanks
         11 invalid: `Transaction Date` is blank
         12 invalid: has 2 fields where the header names 4 columns...
         13 invalid: has 3 fields where the header names 4 columns...",
    );
}

#[test]
fn each_section_is_read_by_its_own_header() {
    let file = "By tag\nTag,Trans ID,Transaction Date,Plate,Amount\nX1,9001,06/02/2026,LZA7293,$2.50\n\
        By plate\nTransaction Date,Plate,Amount,Trans ID\n06/03/2026,LZA7293,$1.00,9002\n\
        Fees\nDate,What,Amount\n06/30/2026,Fee,$0.78\n06/30/2026,Fee,$0.79\n\
        By plate\nTrans ID,Transaction Date,Plate,Amount\n9003,06/04/2026,LZA7293,$3.00\n";
    reads(
        file.as_bytes(),
        ("\"columns\"", "\"optional\": {\"transponder_number\": \"Tag\"}, \"columns\""),
        "3|9001|2026-06-02|-|LZA7293|X1|2.5
         4 skipped: a title, a total or a line of blanks
         6|9002|2026-06-03|-|LZA7293|-|1
         7 skipped: a title, a total or a line of blanks
         8 section: begins a section in which there is no column `Trans ID`...
         9 skipped: a row of a section that cannot be read as the others
         10 skipped: a row of a section that cannot be read as the others
         11 skipped: a title, a total or a line of blanks
         13|9003|2026-06-04|-|LZA7293|-|3",
    );
}

#[test]
fn text_of_another_encoding_is_read_where_the_mapping_names_it() {
    let file = b"Trans ID,Transaction Date,Plate,Amount,Ort\n1A,06/02/2026,M\xdc 123,1,K\xf6ln\n";
    let utf_8: String = file.iter().map(|byte| char::from(*byte)).collect();
    let utf_16 = |mark: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        format!("{mark}{utf_8}").encode_utf16().flat_map(bytes).collect()
    };
    let bytes = [
        file.to_vec(),
        utf_8.clone().into_bytes(),
        utf_16("\u{feff}", u16::to_le_bytes),
        utf_16("\u{feff}", u16::to_be_bytes),
        utf_16("", u16::to_le_bytes),
        utf_16("", u16::to_be_bytes),
    ];
    for encoding in ["windows-1252", "iso-8859-1", "latin1", "utf-16"] {
        let to = format!(
            "\"plaza\": \"Ort\", \"plate\": \"Plate\", \"amount\": \"Amount\"}}, \"encoding\": \"{encoding}\"}}"
        );
        for file in bytes.iter().skip(if encoding == "utf-16" { 2 } else { 0 }) {
            reads(file, (END, &to), "2|1A|2026-06-02|K\u{f6}ln|M\u{dc} 123|-|1");
        }
    }
    reads(file, ("mdy", "mdy"), "2 invalid: is not UTF-8 text; name the `encoding` of the file in a mapping file...");
}

#[test]
fn dates_are_read_in_the_form_that_the_mapping_says() {
    let file = "Trans ID,Transaction Date,Plate,Amount\n\
        1A,02 Jun 2026,P,1\n2A,2-JUN-2026,P,1\n3A,020626,P,1\n4A,20260602,P,1\n";
    let read = |number: u32| format!("{}|{number}A|2026-06-02|-|P|-|1\n", number + 1);
    let without = "4 invalid: `Transaction Date` is `020626`, which has no marks between day, month and year...\n";
    reads(file.as_bytes(), ("mdy", "mdy"), &[&read(1), &read(2), without, &*read(4)].concat());
    for form in ["DDMMYY", "%d%m%y", "ddmmyyyy"] {
        let to = format!("\"date_format\": \"{form}\"");
        reads(file.as_bytes(), ("\"date_order\": \"mdy\"", &to), &(1..=4).map(read).collect::<String>());
    }
}

#[test]
fn amounts_of_columns_are_added_and_texts_joined() {
    let file = "Trans ID,Transaction Date,Code,Number,Net,Tax\n1A,06/02/2026,D,12345,$2.10,$0.40\n2A,06/02/2026,,12345,$2.10,\n\
        3A,06/02/2026,D,12345,\u{2212}$2.10,0.40-\n4A,06/02/2026,D,12345,,\n5A,06/02/2026,D,12345,1,x\n";
    reads(
        file.as_bytes(),
        (END, r#""plate": {"join": ["Code", "Number"]}, "amount": {"sum": ["Net", "Tax"]}}}"#),
        "2|1A|2026-06-02|-|D 12345|-|2.5
         3|2A|2026-06-02|-|12345|-|2.1
         4|3A|2026-06-02|-|D 12345|-|-2.5
         5 invalid: `Net` is blank
         6 invalid: `Net` is `x`, which is no amount such as 6.94, -$6.94 or ($1,234.56)",
    );
    for (from, to, words) in [
        (r#""Amount""#, r#"{"join": ["Net"]}"#, "takes `sum`"),
        (r#""Plate""#, r#"{"sum": ["Net"]}"#, "takes `join`"),
        (r#""Plate""#, r#"{"add": ["Net"]}"#, "no member `add`"),
        (r#""mdy""#, r#""mdy", "date_format": "DDMMYY""#, "a format says the order"),
        (r#""date_order": "mdy""#, r#""date_format": "DD.MM""#, "\"DD.MM.YYYY\""),
        (r#""mdy""#, r#""mdy", "encoding": "klingon""#, "windows-1252"),
        (r#""mdy""#, r#""mdy", "skip_lines": "x""#, "a number of lines"),
        (r#""mdy""#, r#""mdy", "optional": {"plate": "P"}"#, "in `columns` and in `optional`"),
        (r#""transaction_id""#, r#""summons_number""#, "no member `summons_number`"),
    ] {
        let why = Mapping::parse(&MAPPING.replace(from, to), TOLLS.has_issuer).expect_err(to);
        assert!(why.contains(words), "{to}: {why}");
    }
    assert!(Mapping::parse(&format!("\u{feff}{MAPPING}"), TOLLS.has_issuer).is_ok(), "a byte order mark");
}

fn shown(row: &ViolationRow) -> Vec<Option<String>> {
    let (on, at) = (row.issued_on.map(|date| date.to_string()), row.issued_at.map(|at| at.to_string()));
    vec![Some(row.summons_number.to_string()), Some(row.amount_due.to_string()), on, at]
}

#[track_caller]
fn lists(file: &str, format: Option<&str>, [zone, home]: [&str; 2], expected: &str) {
    let settings =
        Settings { currency: Currency::USD, zone: Zone::parse(zone), home: Zone::parse(home).expect("a zone") };
    match violations(file.as_bytes(), format, &settings).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(rows) => compare(&rows.iter().map(|row| line(row, shown)).collect::<Vec<_>>(), expected),
        Err(failed) => assert!(failed.to_string().contains(expected), "{failed}"),
    }
}

#[test]
fn a_list_is_read_in_the_zone_and_order_that_was_said() {
    let (berlin, new_york) = ("Europe/Berlin", "America/New_York");
    let file = "summons_number,issue_date,violation_time,plate,amount_due\n1A,06/02/2026,0843P,P,5\n";
    let iso = &file.replace("06/02/2026", "2026-06-02");
    let (in_new_york, in_berlin) =
        ("2|1A|5|2026-06-02|2026-06-03T00:43:00.000Z", "2|1A|5|2026-06-02|2026-06-02T18:43:00.000Z");
    let ambiguous = "2 invalid: `issue_date` is `06/02/2026`, where nothing says whether the day or the month comes...";
    let refused = "give --time-zone, such as --time-zone Europe/Berlin, or --format nyc-open-data";
    for (zone, home, format, file, expected) in [
        ("", new_york, None, file, in_new_york),
        (new_york, berlin, None, file, in_new_york),
        ("", berlin, Some("nyc-open-data"), file, in_new_york),
        (berlin, new_york, Some("nyc-open-data"), file, in_berlin),
        ("", berlin, None, file, refused),
        ("", berlin, None, iso, refused),
        (berlin, berlin, None, file, ambiguous),
        (berlin, new_york, None, iso, in_berlin),
    ] {
        lists(file, format, [zone, home], expected);
    }
}

#[test]
fn a_time_behind_the_date_of_a_violation_is_read_and_midnight_is_none() {
    let file = "summons_number,issue_date,plate,amount_due\n1A,2026-06-02 00:25:00,P,5\n2A,06/02/2026 05:07:00 PM,P,5\n\
        3A,2026-06-02T00:00:00.000,P,5\n4A,2026-06-02T10:00:00Z,P,5\nTotal,,,15\n";
    lists(
        file,
        Some("nyc-open-data"),
        ["America/Chicago", "America/Chicago"],
        "2|1A|5|2026-06-02|2026-06-02T05:25:00.000Z
         3|2A|5|2026-06-02|2026-06-02T22:07:00.000Z
         4|3A|5|2026-06-02|-
         5|4A|5|2026-06-02|2026-06-02T10:00:00.000Z
         6 skipped: a total of other rows",
    );
}

#[test]
fn a_mapping_describes_a_list_of_violations_too() {
    let text = r#"{"issuer": "Ville", "time_zone": "Europe/Paris", "date_order": "dmy",
        "columns": {"summons_number": "Avis", "issue_date": "Jour", "violation_time": "Heure", "plate": "Plaque", "amount": "Du"},
        "optional": {"respond_by": "Delai", "status": "Etat"}, "skip": {"column": "Etat", "values": ["Annule"]}}"#;
    let mapping = Mapping::parse(text, VIOLATIONS.has_issuer).unwrap_or_else(|why| panic!("{why}"));
    let file = "Avis;Jour;Heure;Plaque;Du;Etat\nV1;02/06/2026;0843;P;5,10;Ouvert\nV2;02/06/2026;;P;5;ANNULE\n\
        V3;31/31/2026;;P;5;\nV4;02/06/2026;x;P;5;\n";
    let settings = Settings { currency: Currency::parse("EUR").expect("the euro"), ..SETTINGS };
    let rows = Reader::<_, ViolationRow>::open(file.as_bytes(), None, Some(&mapping), &settings);
    let rows = rows.and_then(Iterator::collect::<Result<Vec<_>, _>>).unwrap_or_else(|failed| panic!("{failed}"));
    compare(
        &rows.iter().map(|row| line(row, shown)).collect::<Vec<_>>(),
        "2|V1|5.1|2026-06-02|2026-06-02T06:43:00.000Z
         3 skipped: a kind of row that the mapping file skips
         4 invalid: `Jour` is `31/31/2026`, which is not a date with the day first, such as 29/12/2025
         5 invalid: `Heure` is `x`, which is not a time such as 05:13:32 PM or 17:13",
    );
    assert_eq!(mapping.issuer().map(ToString::to_string).as_deref(), Some("Ville"));
    for (from, to, words) in [
        (r#""summons_number": "Avis","#, "", "needs `summons_number`"),
        (r#", "amount": "Du""#, "", "needs `amount_due` or `fine_amount`"),
        (r#""dmy","#, r#""dmy", "charges": "positive","#, "`charges` is for tolls"),
        (r#""plate""#, r#""plaza""#, "no member `plaza`"),
        (r#""issue_date""#, r#""isue_date""#, "did you mean `issue_date`"),
        (r#""date_order": "dmy","#, "", "`date_order`"),
    ] {
        assert!(text.contains(from), "{from}");
        let why = Mapping::parse(&text.replace(from, to), VIOLATIONS.has_issuer).expect_err(to);
        assert!(why.contains(words), "{to}: {why}");
    }
}
