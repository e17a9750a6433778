//! Headers of sections, totals and rows that were cut off: no row is read by the header of other rows, and none vanishes.

use crate::{SETTINGS, compare, line, read_tolls, read_violations, refusal};
use rental_core::imports::statements::{Mapping, Row, Settings, TOLLS, TollRow};
use rental_core::value::Currency;

/// The number of each row and what became of it, in two words.
#[track_caller]
fn kinds<T>(rows: &[(u64, Row<T>)], expected: &[(u64, &str)]) {
    let kind = |row: &Row<T>| match row {
        Row::Record(_) => "record",
        Row::Skipped(..) => "skipped",
        Row::Section(_) => "section",
        Row::Invalid(..) => "invalid",
    };
    let found: Vec<_> = rows.iter().map(|(number, row)| (*number, kind(row))).collect();
    assert_eq!(found, expected);
}

#[track_caller]
fn of_format(format: &str, file: &str, expected: &[(u64, &str)]) {
    let rows = read_tolls(file.as_bytes(), Some(format), None, &SETTINGS).unwrap_or_else(|failed| panic!("{failed}"));
    kinds(&rows, expected);
}

fn mapping(members: &str, columns: &str) -> Mapping {
    let text = format!(
        r#"{{"agency": "A13", "time_zone": "Europe/Paris", {members} "charges": "positive", "columns": {{{columns}}}}}"#
    );
    Mapping::parse(&text, TOLLS.has_issuer).unwrap_or_else(|why| panic!("{why}"))
}

const COLUMNS: &str =
    r#""transaction_id": "Nr", "date": "Date", "plaza": "Gare", "plate": "Plaque", "amount": "Montant""#;

fn settings() -> Settings {
    Settings { currency: Currency::parse("EUR").expect("the euro"), ..SETTINGS }
}

#[track_caller]
fn mapped((members, columns): (&str, &str), file: &str) -> Vec<(u64, Row<TollRow>)> {
    let mapping = mapping(members, columns);
    read_tolls(file.as_bytes(), None, Some(&mapping), &settings()).unwrap_or_else(|failed| panic!("{failed}"))
}

const DMY: &str = r#""date_order": "dmy","#;
const HEADER: &str = "Nr;Date;Gare;Plaque;Montant\n1;02/06/2026;Bercy;AB-123-CD;7,00\n";

#[test]
fn payments_below_a_list_of_fines_are_no_fines() {
    let file = "ticket_number,issue_date,license_plate_number,license_plate_state,current_amount_due\n\
        51611803,2026-06-02 00:25:00,Q12345,IL,50.0\nPayments,,,,\nreceipt,paid_on,license_plate,state,paid\n\
        7001,2026-06-09 10:00:00,Q12345,IL,75.0\n";
    let rows = read_violations(file.as_bytes(), Some("chicago")).unwrap_or_else(|failed| panic!("{failed}"));
    kinds(&rows, &[(2, "record"), (3, "skipped"), (4, "section"), (5, "skipped")]);
}

#[test]
fn sections_with_other_columns_are_skipped_in_the_formats_of_agencies() {
    let trips =
        "Tag Number,LPN,Start Date,Start Time,Toll Road,Amount\n3081234567,1AB2CD,02/06/2026,08:15:20,CityLink,$6.21\n";
    let refunds = "Refunds\nTag Number,LPN,Posted Date,Time,Product,Refund\n3081234567,1AB2CD,04/06/2026,08:00:00,CityLink,$6.21\n";
    of_format(
        "citylink",
        &format!("{trips}{refunds}"),
        &[(2, "record"), (3, "skipped"), (4, "section"), (5, "skipped")],
    );
    let without_tag = "LPN,Start Date,Start Time,Toll Road,Amount\n1AB2CD,02/06/2026,08:15:20,CityLink,$6.21\n";
    let fees = "LPN,Posted,Time,Description,Fee\n1AB2CD,30/06/2026,09:00:00,Image fee,$0.78\nTotal,,,,$0.78\n";
    let again = format!("{without_tag}{fees}{without_tag}");
    of_format("citylink", &again, &[(2, "record"), (3, "section"), (4, "skipped"), (5, "skipped"), (7, "record")]);
    let trip =
        "Kfz;Datum;Start;Buchungsnummer;Art;Strecke;EUR\nD XY 101;02.06.2026;08:15;111111111111;Maut;Bonn;3,10\n";
    let credit =
        "Fahrzeug;Tag;Zeit;Nummer;Typ;Grund;Betrag\nD XY 101;05.06.2026;08:15;222222222222;Gutschrift;Kulanz;3,10\n";
    let file = format!("{trip}{credit}");
    let rows = read_tolls(file.as_bytes(), Some("toll-collect"), None, &settings()).unwrap();
    kinds(&rows, &[(2, "record"), (3, "section"), (4, "skipped")]);
}

#[test]
fn a_header_that_lacks_or_repeats_a_column_ends_the_section() {
    let skipping = format!(r#"{DMY} "skip": {{"column": "Genre", "values": ["Cre\u0301dit"]}},"#);
    let with_kind = "Nr;Date;Gare;Plaque;Montant;Genre\n1;02/06/2026;Bercy;AB-123-CD;7,00;\n2;02/06/2026;Bercy;AB-123-CD;7,00;CR\u{c9}DIT\n";
    let kind = "Nr;Date;Gare;Plaque;Montant;Kind\n3;03/06/2026;Bercy;AB-123-CD;7,00;Cr\u{e9}dit\n";
    let rows = mapped((&skipping, COLUMNS), &format!("{with_kind}{kind}"));
    kinds(&rows, &[(2, "record"), (3, "skipped"), (4, "section"), (5, "skipped")]);
    let timed = format!("{COLUMNS}, \"time\": \"Heure\"");
    for (columns, header, file) in [
        (
            timed.as_str(),
            "Nr;Date;Heure trajet;Gare;Plaque;Montant",
            "Nr;Date;Heure;Gare;Plaque;Montant\n1;02/06/2026;10:00;Bercy;AB-123-CD;7,00\n",
        ),
        (COLUMNS, "No;Date;Gare;Plaque;Montant", HEADER),
        (COLUMNS, "Nr;Date;Gare;Plaque;Montant;Montant", HEADER),
        (COLUMNS, "Montant;Montant;2;3;4", HEADER),
    ] {
        let values =
            header.split(';').map(|name| if name == "Date" { "03/06/2026" } else { "8" }).collect::<Vec<_>>().join(";");
        let rows = mapped((DMY, columns), &format!("{file}{header}\n{values}\n"));
        kinds(&rows, &[(2, "record"), (3, "section"), (4, "skipped")]);
    }
}

#[test]
fn a_header_with_which_amounts_have_the_other_sign_ends_the_section() {
    let nj = "TRANSACTION DATE,TAG/PLATE NUMBER,AGENCY,ACTIVITY,ENTRY TIME,ENTRY PLAZA,EXIT TIME,EXIT PLAZA,AMOUNT";
    let row = "03/02/2026,00611743677,NJTP,TOLL,-,-,08:15:00,RAR";
    for (first, second) in [
        ((nj.to_owned(), format!("{row},-$2.00")), (format!("{nj},PLAZA ID"), format!("{row},$3.00,7"))),
        ((format!("{nj},PLAZA ID"), format!("{row},$3.00,7")), (nj.to_owned(), format!("{row},-$2.00"))),
    ] {
        let file = format!("{}\n{}\n{}\n{}\n", first.0, first.1, second.0, second.1);
        of_format("ezpass-nj", &file, &[(2, "record"), (3, "section"), (4, "skipped")]);
    }
}

#[test]
fn labels_and_rows_are_no_headers() {
    let file = format!(
        "{HEADER}Véhicule:;Kombi;;;\nPlaque;AB-123-CD\nFin;du;relevé:\n2;03/06/2026;Bercy;Montant;x\n3;03/06/2026;Bercy;AB-123-CD;7,00\n"
    );
    let rows = mapped((DMY, COLUMNS), &file);
    kinds(&rows, &[(2, "record"), (3, "invalid"), (4, "skipped"), (5, "invalid"), (6, "invalid"), (7, "record")]);
}

#[test]
fn a_row_with_a_number_or_plate_is_no_total_and_one_that_was_cut_off_is_told() {
    let file = format!(
        "{HEADER}2;31/06/2026;Total Bercy;AB-123-CD;7,00\n3;;Somme Sud;AB-123-CD;8,00\n;;Totaux;;22,00\nTotals;;;;22,00\n4;03/06/2026\n"
    );
    let rows = mapped((DMY, COLUMNS), &file);
    kinds(&rows, &[(2, "record"), (3, "invalid"), (4, "invalid"), (5, "skipped"), (6, "skipped"), (7, "invalid")]);
    // Totals are in no sum, also in a section that is skipped.
    let rows = mapped(
        (DMY, COLUMNS),
        &format!("{HEADER}Reçu;Payé le;Note;Nom;Montant\n7;05/06/2026;;AB;9,00\n;;Total;;9,00\n"),
    );
    let sums: Vec<String> = rows
        .iter()
        .filter_map(|(_, row)| if let Row::Skipped(_, sum) = row { Some(sum.to_string()) } else { None })
        .collect();
    assert_eq!(sums, ["9", "0"]);
}

#[test]
fn a_row_without_the_first_part_of_its_joined_number_has_none() {
    let columns = COLUMNS.replace(r#""Nr""#, r#"{"join": ["Nr", "Gare", "Montant"]}"#);
    let file = format!("{HEADER};02/06/2026;Bercy;AB-123-CD;7,00\n-;03/06/2026;Bercy;AB-123-CD;7,00\n");
    let rows = mapped((DMY, &columns), &file);
    let numbers: Vec<_> = rows
        .iter()
        .map(|(_, row)| match row {
            Row::Record(row) => row.transaction_id.as_deref().map(str::to_owned),
            _ => panic!("{row:?}"),
        })
        .collect();
    assert_eq!(numbers, [Some("1 Bercy 7,00".to_owned()), None, None]);
}

#[test]
fn names_of_columns_months_and_amounts_have_several_spellings() {
    let columns = COLUMNS.replace("\"Nr\"", "\"N° d'avis\"");
    let file = "Nº d’avis;Date;Gare;Plaque;Montant\n1;02 FE\u{301}V 2026;Bercy;AB-123-CD;7,00\n2;03 aou\u{302}t 2026;Bercy;AB-123-CD;7,00\n";
    kinds(&mapped((DMY, &columns), file), &[(2, "record"), (3, "record")]);
    let columns = COLUMNS.replace(r#""Montant""#, r#"{"sum": ["Net", "Taxe"]}"#);
    let file = "Nr;Date;Gare;Plaque;Net;Taxe\n1;02/06/2026;Bercy;AB-123-CD;7,00;\u{2013}\n2;02/06/2026;Bercy;AB-123-CD;7,00;\u{2212}\n";
    kinds(&mapped((DMY, &columns), file), &[(2, "record"), (3, "record")]);
    // The yen sign of Shift_JIS is the backslash of ASCII.
    let mapping = mapping(&format!("{DMY} \"encoding\": \"shift_jis\","), COLUMNS);
    let yen = Settings { currency: Currency::parse("JPY").expect("the yen"), ..SETTINGS };
    let file = b"Nr;Date;Gare;Plaque;Montant\n1;02/06/2026;\x93\x8c\x8b\x9e;AB;\\1250\n2;02/06/2026;\x93\x8c\x8b\x9e;AB;much\n";
    let rows = read_tolls(file, None, Some(&mapping), &yen).unwrap();
    let shown = |row: &TollRow| vec![row.plaza.as_deref().map(str::to_owned), Some(row.amount.to_string())];
    let lines: Vec<_> = rows.iter().map(|row| line(row, shown)).collect();
    compare(&lines, "2|東京|1250\n3 invalid: `Montant` is `much`, which is no amount such as 694 or -694");
    let columns = [r#""date_format": "DDMMYY","#, COLUMNS];
    let rows = mapped((columns[0], columns[1]), &HEADER.replace("02/06/2026", "310626"));
    compare(
        &[line(&rows[0], |_| Vec::new())],
        "2 invalid: `Date` is `310626`, which is not a date with the day first, such as 291225",
    );
}

#[test]
fn the_header_is_the_first_line_with_all_columns() {
    let above = "Nr;Date;Montant\n12;30/06/2026;7,00\n";
    kinds(&mapped((DMY, COLUMNS), &format!("{above}{HEADER}")), &[(4, "record")]);
    let refused = |file: &str, members: &str| {
        let mapping = mapping(&format!("{DMY} {members}"), COLUMNS);
        refusal(read_tolls(file.as_bytes(), None, Some(&mapping), &settings()))
    };
    let long = format!("{}{HEADER}", "Relevé;de;juin\n".repeat(60));
    let why = refused(&long, "");
    assert!(why.contains("first 50 lines") && why.contains("`skip_lines`"), "{why}");
    let why = refused("sep=;\nA;B;C\n1;2;3\n", "");
    assert!(why.contains("Found: A, B, C") && !why.contains("first 50"), "{why}");
    let why = refused(HEADER, r#""skip_lines": 18446744073709551615,"#);
    assert!(why.contains("expected"), "{why}");
}

#[test]
fn a_row_that_is_no_text_in_the_encoding_of_the_mapping_is_refused() {
    let file = b"Nr;Date;Gare;Plaque;Montant\n1;02/06/2026;Bercy;\xc4-1;7,00\n2;02/06/2026;Bercy;AB-123-CD;7,00\n";
    for (encoding, expected) in [("utf-8", "invalid"), ("windows-1252", "record")] {
        let mapping = mapping(&format!(r#"{DMY} "encoding": "{encoding}","#), COLUMNS);
        let rows = read_tolls(&file[..], None, Some(&mapping), &settings()).unwrap_or_else(|failed| panic!("{failed}"));
        kinds(&rows, &[(2, expected), (3, "record")]);
    }
}

#[test]
fn a_column_is_added_up_or_joined_once() {
    for columns in [
        r#""transaction_id": "Nr", "date": "Date", "plate": "Plaque", "amount": {"sum": ["Montant", "montant"]}"#,
        r#""transaction_id": {"join": ["Nr", "NR"]}, "date": "Date", "plate": "Plaque", "amount": "Montant""#,
    ] {
        let text = format!(
            r#"{{"agency": "A13", "time_zone": "Europe/Paris", "charges": "positive", "columns": {{{columns}}}}}"#
        );
        let why = Mapping::parse(&text, TOLLS.has_issuer).err().unwrap_or_default();
        assert!(why.contains("twice"), "{why}");
    }
}

#[test]
fn rows_that_a_quotation_mark_without_an_end_swallows_are_told() {
    let rest =
        "2;\"03/06/2026;Bercy;AB-123-CD;3,00\n3;04/06/2026;Bercy;AB-123-CD;4,00\n4;05/06/2026;Bercy;AB-123-CD;5,00\n";
    kinds(&mapped((DMY, COLUMNS), &format!("{HEADER}{rest}")), &[(2, "record"), (3, "invalid")]);
    let ended = format!("{HEADER}\"{rest}");
    kinds(&mapped((DMY, COLUMNS), &ended), &[(2, "record"), (3, "invalid"), (4, "record"), (5, "record")]);
}
