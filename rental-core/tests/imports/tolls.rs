//! Each format of statements, every field of every row.

use crate::{SETTINGS, compare, fixture, line, read_tolls};
use rental_core::{
    imports::statements::{Mapping, Row, Settings, TOLLS, TollRow},
    value::Zone,
};

fn fields(row: &TollRow) -> Vec<Option<String>> {
    let direction = if row.credit { "back" } else { "toll" };
    vec![
        Some(format!("{direction} {}", row.amount)),
        Some(row.agency.to_string()),
        row.transaction_id.as_deref().map(str::to_owned),
        row.occurred_on.map(|date| date.to_string()),
        row.occurred_at.map(|at| at.to_string()),
        row.plaza.as_deref().map(str::to_owned),
        row.plate.as_deref().map(str::to_owned),
        row.plate_state.as_deref().map(str::to_owned),
        row.transponder_number.as_deref().map(str::to_owned),
    ]
}

#[track_caller]
fn check(file: &str, format: Option<&str>, mapping: Option<&Mapping>, settings: &Settings, expected: &str) {
    let rows = read_tolls(&fixture(file), format, mapping, settings).unwrap_or_else(|failed| panic!("{failed}"));
    compare(&rows.iter().map(|row| line(row, fields)).collect::<Vec<_>>(), expected);
}

#[test]
fn the_generic_format_has_rfc_3339_times_and_charges_above_zero() {
    check(
        "generic.csv",
        None,
        None,
        &SETTINGS,
        r#"
        2|toll 6.94|MTAB&T|61231234501|2026-06-02|2026-06-02T14:03:00.000Z|RKB|ABC1234|NY|00412345678
        3|toll 11|Bridges, Tunnels & "Co"|61231234502|2026-06-02|2026-06-03T03:30:00.000Z|-|XYZ-77|-|-
        4|toll 1.5|NJTP|-|-|-|18W|-|-|00611743677
        6|toll 6.94|MTAB&T|61231234503|2026-06-03|2026-06-03T08:00:00.250Z|RKB|ABC1234|NY|-
        7 invalid: `transponder_number` is 1.29143E+11: a spreadsheet has rounded it...
        8|back 6.94|MTAB&T|61231234505|2026-06-03|2026-06-03T08:10:00.000Z|RKB|ABC1234|NY|-
        9 skipped: no charge: the amount is 0
        10 invalid: `occurred_at` is `2026-06-03 08:20:00`, which has no time zone; write 2026-06-03T08:20:00Z...
        11 invalid: `agency` is blank
        12 invalid: `amount` has more decimals than the currency's 2...
        13 invalid: `amount` is blank
        14 invalid: has 6 fields where the header names 8 columns...
        15 invalid: `transaction_id` is 6.12313E+10: a spreadsheet has rounded it...
        16 invalid: `plaza` has a line break in it; is a quotation mark missing?
        18|toll 6.94|MTAB&T|61231234514|2026-06-03|2026-06-03T08:55:00.000Z|RKB|-|-|-
        "#,
    );
}

#[test]
fn a_time_zone_makes_local_times_of_the_generic_format_readable_and_tells_the_local_day() {
    let settings = Settings { zone: Zone::parse("America/Chicago"), ..SETTINGS };
    let file =
        b"agency,amount,plate,occurred_at\nA,1,P,2026-06-03 08:20:00\nA,1,P,2026-06-03T03:00:00Z\nA,1,P,2026-06-03\n";
    let rows = read_tolls(file, None, None, &settings).unwrap();
    compare(
        &rows.iter().map(|row| line(row, fields)).collect::<Vec<_>>(),
        "2|toll 1|A|-|2026-06-03|2026-06-03T13:20:00.000Z|-|P|-|-
         3|toll 1|A|-|2026-06-02|2026-06-03T03:00:00.000Z|-|P|-|-
         4|toll 1|A|-|2026-06-03|-|-|P|-|-",
    );
}

#[test]
fn ezpass_ny_charges_are_negative_and_times_local() {
    check(
        "ezpass-ny.csv",
        Some("ezpass-ny"),
        None,
        &SETTINGS,
        r#"
        2|toll 6.94|MTAB&T|61231234501|2025-12-29|2025-12-29T22:13:32.000Z|RKB|-|-|99900000001
        3|toll 2.01|NYSTA|61231234502|2025-12-29|2025-12-29T22:13:00.000Z|B15|LZA7293|NY|-
        4|back 6.94|MTAB&T|61231234503|2025-12-30|2025-12-30T11:00:00.000Z|RKB|-|-|99900000001
        5 skipped: money that came in without an agency: a payment, not a toll
        6 skipped: a payment or a fee of the account, not a toll
        7 invalid: `Tag/Plate #` is 1.29143E+11: a spreadsheet has rounded it...
        8|toll 16.06|PANYNJ|61231234507|2025-12-31|-|GWL|CUR123|NJ|-
        9|toll 16.06|PANYNJ|61231234508|2025-11-02|2025-11-02T05:30:00.000Z|GWL|-|-|00411743677
        10|toll 16.06|PANYNJ|61231234509|2025-03-09|2025-03-09T07:30:00.000Z|GWL|-|-|00411743677
        11 skipped: no charge: the amount is 0
        12 invalid: `Amount` has more decimals than the currency's 2...
        13 invalid: `Date` is `29/12/2025`, which is not a date with the month first, such as 12/29/2025
        14 invalid: `Exit Time` is `25:30:00`, which is not a time such as 05:13:32 PM or 17:13
        15 invalid: has 8 fields where the header names 9 columns...
        16 invalid: `Agency` is blank
        17 invalid: `Lane Txn ID` is 6.12313E+10: a spreadsheet has rounded it...
        18|toll 1234.56|PANYNJ|61231234517|2025-11-03|2025-11-03T06:30:00.000Z|GWL|-|-|00411743677
        19 invalid: `Date` is blank
        "#,
    );
}

#[test]
fn ezpass_ny_fleet_charges_stand_in_parentheses() {
    check(
        "ezpass-ny-fleet.csv",
        Some("ezpass-ny-fleet"),
        None,
        &SETTINGS,
        r#"
        2|toll 9|MTABT|71231234501|2026-01-03|2026-01-04T04:58:01.000Z|CRZ|-|-|00412345678
        3|toll 9.11|MTABT|71231234502|2026-01-03|2026-01-04T04:05:09.000Z|QMT|T123456C|NY|-
        4|back 9|MTABT|71231234503|2026-01-03|2026-01-04T04:58:01.000Z|CRZ|-|-|00412345678
        5 skipped: a payment or a fee of the account, not a toll
        6 skipped: a payment or a fee of the account, not a toll
        "#,
    );
}

#[test]
fn ezpass_nj_with_17_columns_charges_below_zero_and_takes_the_exit_before_the_entry() {
    check(
        "ezpass-nj.csv",
        Some("ezpass-nj"),
        None,
        &SETTINGS,
        r#"
        2|toll 13.85|NJTP|-|2026-03-02|2026-03-02T05:20:31.000Z|18W|-|-|00611743677
        3|toll 2.1|GSP|-|2026-03-02|2026-03-02T13:15:00.000Z|RAR|CUR123|NJ|-
        4|toll 1|NJTP|-|2026-03-03|2026-03-03T12:00:00.000Z|9|-|-|00611743677
        5 skipped: a payment or a fee of the account, not a toll
        6|back 13.85|NJTP|-|2026-03-04|2026-03-04T12:00:00.000Z|18W|-|-|00611743677
        7|toll 13.85|NJTP|-|2026-03-04|-|18W|-|-|00611743677
        "#,
    );
}

#[test]
fn ezpass_nj_with_a_plaza_id_charges_above_zero() {
    check(
        "ezpass-nj-plaza-id.tsv",
        Some("ezpass-nj"),
        None,
        &SETTINGS,
        r#"
        2|toll 13.85|NJTP|-|2026-03-02|2026-03-02T05:20:31.000Z|18W|-|-|00611743677
        3|back 13.85|NJTP|-|2026-03-03|2026-03-03T05:20:31.000Z|18W|-|-|00611743677
        4 skipped: a payment or a fee of the account, not a toll
        "#,
    );
}

#[test]
fn ezpass_pa_names_no_agency_and_has_date_and_time_in_one_column() {
    check(
        "ezpass-pa.csv",
        Some("ezpass-pa"),
        None,
        &SETTINGS,
        r#"
        2|toll 14.2|PA Turnpike|-|2026-01-18|2026-01-18T23:07:00.000Z|Harrisburg East|-|-|00611743677
        3|toll 5|PA Turnpike|-|2026-01-20|2026-01-20T05:07:00.000Z|DRBA 03|-|-|00611743677
        4|toll 7.1|PA Turnpike|-|2026-01-22|2026-01-23T04:59:00.000Z|Gateway|MHR9274|PA|-
        5|toll 7.1|PA Turnpike|-|2026-01-23|-|Gateway|MHR9274|PA|-
        6 skipped: a payment or a fee of the account, not a toll
        7|back 14.2|PA Turnpike|-|2026-01-18|2026-01-18T23:07:00.000Z|Harrisburg East|-|-|00611743677
        8 invalid: `Exit Date` is blank
        "#,
    );
}

#[test]
fn sunpass_has_a_column_for_debits_and_one_for_credits() {
    check(
        "sunpass.csv",
        Some("sunpass"),
        None,
        &SETTINGS,
        r#"
        2|toll 4.13|Florida's Turnpike|900100200301|2025-06-22|2025-06-22T19:16:01.000Z|GOLDEN GLADES|-|-|129143000017
        3|toll 0.7|MDX|900100200302|2025-06-22|2025-06-22T04:16:01.000Z|NW 87TH AVE|IJNH27|FL|-
        4 invalid: `TRANSPONDER/LICENSE PLATE` is 1.29143E+11: a spreadsheet has rounded it...
        5 skipped: a payment or a fee of the account, not a toll
        6 skipped: money that came in without an agency: a payment, not a toll
        7|back 4.13|Florida's Turnpike|900100200306|2025-06-22|2025-06-22T19:16:01.000Z|GOLDEN GLADES|-|-|129143000017
        8 invalid: has both a debit and a credit; correct the row
        9 invalid: `DEBIT(-)` is blank
        10 invalid: has a negative debit or credit, which could mean either; correct the row, or give both columns to `amount` in a mapping
        "#,
    );
}

#[test]
fn a_mapping_reads_the_file_of_any_other_agency() {
    let mapping = Mapping::parse(std::str::from_utf8(&fixture("autoexpreso.json")).unwrap(), TOLLS.has_issuer).unwrap();
    check(
        "autoexpreso.csv",
        None,
        Some(&mapping),
        &SETTINGS,
        r#"
        2|toll 0.6|AutoExpreso|-|2026-02-03|2026-02-04T00:05:00.000Z|Buchanan|JKL123|-|12345678
        3|toll 1|AutoExpreso|-|2026-02-13|-|Caguas|JKL123|-|-
        4 skipped: a kind of row that the mapping file skips
        5 invalid: `Fecha` is `02/14/2026`, which is not a date with the day first, such as 29/12/2025
        "#,
    );
}

#[test]
fn a_mapping_may_name_a_column_for_the_agency_and_several_for_a_field() {
    let mapping = Mapping::parse(
        r#"{"agency": {"column": "Toll Road"}, "columns": {"occurred_at": "When", "plaza": ["Exit", "Entry"],
            "tag_or_plate": "Tag", "plate_state": "State", "debit": "Debit"}, "date_order": "mdy"}"#,
        TOLLS.has_issuer,
    )
    .unwrap();
    let settings = Settings {
        currency: rental_core::value::Currency::parse("JPY").unwrap(),
        zone: Zone::parse("America/Chicago"),
        ..SETTINGS
    };
    let file = b"Toll Road;When;Exit;Entry;Tag;State;Debit;Memo\nTxTag;06/03/26 8:20 PM;-;North;nb-123;US-TX;4;x\n";
    let rows = read_tolls(file, None, Some(&mapping), &settings).unwrap();
    let expected = "2|toll 4|TxTag|-|2026-06-03|2026-06-04T01:20:00.000Z|North|NB123|TX|-";
    compare(&rows.iter().map(|row| line(row, fields)).collect::<Vec<_>>(), expected);
}

#[test]
fn rows_that_call_themselves_payments_or_fees_are_skipped() {
    let file = String::from_utf8(fixture("ezpass-nj.csv")).unwrap();
    for kind in [
        "Prepaid Toll Payment",
        "PREPAID PAYMENT",
        "Replenishment",
        "Monthly Service Fee",
        "MONTHLY FEE",
        "Statement Fee",
        "Account Fee",
        "Lease Tag-INT",
        "Tag Lease",
        "Lost Tag Fee",
        "Tag Deposit",
        "Transponder Purchase",
    ] {
        let rows = read_tolls(file.replace("TOLL", kind).as_bytes(), Some("ezpass-nj"), None, &SETTINGS).unwrap();
        assert!(matches!(rows[0].1, Row::Skipped(..)), "{kind}: {:?}", rows[0]);
    }
}
