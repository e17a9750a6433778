//! Each format of violations, every field of every row.

use crate::{compare, fixture, line, read_violations};
use rental_core::imports::statements::ViolationRow;

fn fields(row: &ViolationRow) -> Vec<Option<String>> {
    let money = |amount: Option<rental_core::value::Money>| amount.map(|amount| amount.to_string());
    vec![
        Some(row.summons_number.to_string()),
        money(Some(row.amount_due)),
        row.plate.as_deref().map(str::to_owned),
        row.state.as_deref().map(str::to_owned),
        row.issue_date.as_deref().map(str::to_owned),
        row.violation_time.as_deref().map(str::to_owned),
        row.violation.as_deref().map(str::to_owned),
        money(row.fine_amount),
        money(row.penalty_amount),
        money(row.interest_amount),
        money(row.reduction_amount),
        money(row.payment_amount),
        row.issuing_agency.as_deref().map(str::to_owned),
        row.issued_on.map(|date| date.to_string()),
        row.issued_at.map(|at| at.to_string()),
    ]
}

#[track_caller]
fn check(file: &str, format: Option<&str>, expected: &str) {
    let rows = read_violations(&fixture(file), format).unwrap_or_else(|failed| panic!("{failed}"));
    compare(&rows.iter().map(|row| line(row, fields)).collect::<Vec<_>>(), expected);
}

#[test]
fn open_data_as_csv_keeps_what_is_no_date_and_computes_what_is_due() {
    check(
        "nyc-open-data.csv",
        None,
        r#"
        2|7000000501|161.64|ABC1234|TX|01/11/2016|08:43A|NO PARKING-DAY/TIME LIMITS|60|60|41.64|0|0|TRAFFIC|2016-01-11|2016-01-11T13:43:00.000Z
        3|7000000502|234.49|XYZ7345|NY|01/11/2016|02:47P|NO STANDING-DAY/TIME LIMITS|115|60|59.49|0|0|TRAFFIC|2016-01-11|2016-01-11T19:47:00.000Z
        4|7000000503|0|XYZ7345|NY|51/71/2004|-|BUS LANE VIOLATION|115|0|0|0|115|DEPARTMENT OF TRANSPORTATION|-|-
        5|7000000504|0|XYZ7345|NY|2026-06-02T00:00:00.000|12:05A|PHTO SCHOOL ZN SPEED VIOLATION|50|0|0|10|50|DEPARTMENT OF TRANSPORTATION|2026-06-02|2026-06-02T04:05:00.000Z
        6 invalid: `summons_number` is blank
        7 invalid: `amount_due` is blank, and there is no fine to compute it from
        8 invalid: `amount_due` must be 0 or more
        9 invalid: `summons_number` is 7E+09: a spreadsheet has rounded it...
        10 invalid: has 4 fields where the header names 19 columns...
        "#,
    );
}

#[test]
fn a_summons_number_of_a_quote_alone_is_blank() {
    let file = String::from_utf8(fixture("nyc-open-data.csv")).unwrap().replace("7000000501", "'");
    let rows = read_violations(file.as_bytes(), None).unwrap_or_else(|failed| panic!("{failed}"));
    compare(&[line(&rows[0], fields)], "2 invalid: `summons_number` must not be blank");
}

#[test]
fn open_data_as_json_has_texts_or_numbers_and_leaves_members_out() {
    check(
        "nyc-open-data.json",
        None,
        r#"
        1|7000000501|161.64|ABC1234|TX|01/11/2016|08:43A|NO PARKING-DAY/TIME LIMITS|60|60|41.64|0|0|TRAFFIC|2016-01-11|2016-01-11T13:43:00.000Z
        2|7000000502|175.5|XYZ7345|-|29/06/2014|-|-|115|60.5|-|-|-|-|-|-
        3 invalid: `summons_number` is blank
        4 invalid: `plate` must be a text or a number
        5 invalid: `summons_number` has an exponent, so its digits may be lost; write it in full
        "#,
    );
}

#[test]
fn fiscal_year_names_are_known_and_a_row_without_any_amount_is_invalid() {
    check(
        "nyc-fiscal-year.jsonl",
        None,
        r#"
        1|1400000001|35|ABC1234|NJ|06/02/2026|0752A|38|35|-|-|-|-|-|2026-06-02|2026-06-02T11:52:00.000Z
        2 invalid: `amount_due` is blank, and there is no fine to compute it from
        "#,
    );
}

#[test]
fn the_file_of_the_fleet_program_has_padded_values() {
    check(
        "nyc-fleet.csv",
        Some("nyc-fleet"),
        r#"
        2|4046000992|250|Y200000C|NY|7/3/2025|0752A|5|250|0|0|0|0|-|2025-07-03|2025-07-03T11:52:00.000Z
        3|4046000993|175|Y200001C|NY|-|-|5|250|25|0|0|100|-|-|-
        "#,
    );
}
