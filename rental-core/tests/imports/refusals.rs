//! Files and mappings that are refused whole, and what the sentence says.

use crate::{SETTINGS, TOLL_FORMATS, VIOLATION_FORMATS, fixture, read_tolls, read_violations, refusal, tolls};
use rental_core::imports::statements::{Failed, Mapping, TOLLS};

/// The sentence for a statement has all these words.
#[track_caller]
fn refused(bytes: &[u8], format: Option<&str>, words: &[&str]) {
    says(&refusal(read_tolls(bytes, format, None, &SETTINGS)), words);
}

#[track_caller]
fn refused_violations(bytes: &[u8], format: Option<&str>, words: &[&str]) {
    says(&refusal(read_violations(bytes, format)), words);
}

#[track_caller]
fn says(sentence: &str, words: &[&str]) {
    for word in words {
        assert!(sentence.contains(word), "{word}: {sentence}");
    }
}

#[test]
fn other_kinds_of_files_are_named_with_the_way_to_csv() {
    let html = b"\xef\xbb\xbf\n <!DOCTYPE html><html><body>Sign in</body></html>";
    let cases: [(&[u8], &str); 8] = [
        (b"", "empty"),
        (b" \r\n\n", "empty"),
        (b"PK\x03\x04zip", "xlsx"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "xls"),
        (b"%PDF-1.7", "PDF"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"agency,amount\0,plate\n", "NUL"),
        (html, "web page"),
    ];
    for (bytes, words) in cases {
        refused(bytes, None, &[words]);
        refused_violations(bytes, None, &[words]);
    }
    refused(b" [{\"agency\":\"A\"}]", None, &["JSON", "CSV"]);
    refused(b"agency,amount,pl\xe4te\nA,1,P\n", None, &["UTF-8", "line 1", "`encoding`"]);
}

#[test]
fn the_format_that_fits_is_named() {
    for (file, format) in [
        ("ezpass-ny.csv", "ezpass-ny"),
        ("ezpass-ny-fleet.csv", "ezpass-ny-fleet"),
        ("ezpass-nj.csv", "ezpass-nj"),
        ("ezpass-nj-plaza-id.tsv", "ezpass-nj"),
        ("ezpass-pa.csv", "ezpass-pa"),
        ("sunpass.csv", "sunpass"),
        ("generic.csv", "generic"),
    ] {
        for (other, _) in TOLL_FORMATS.iter().filter(|(other, _)| *other != format) {
            refused(&fixture(file), Some(other), &[&format!("this looks like {format}; use --format {format}")]);
        }
    }
    refused(&fixture("nyc-open-data.csv"), None, &["violations"]);
    refused_violations(&fixture("nyc-fleet.csv"), None, &["use --format nyc-fleet"]);
    refused_violations(&fixture("nyc-open-data.csv"), Some("nyc-fleet"), &["use --format nyc-open-data"]);
}

#[test]
fn a_format_that_does_not_exist_is_refused_with_the_nearest() {
    refused(b"", Some("ezpas-ny"), &["did you mean `ezpass-ny`", "sunpass"]);
    refused_violations(b"", Some("nyc-flet"), &["did you mean `nyc-fleet`"]);
    for (name, about) in TOLL_FORMATS.iter().chain(VIOLATION_FORMATS) {
        assert!(!name.is_empty() && about.len() > 20, "{name}");
    }
    let mapping = Mapping::parse(MAPPING, TOLLS.has_issuer).unwrap();
    let both = tolls(&b""[..], Some("generic"), Some(&mapping), &SETTINGS);
    assert!(matches!(both, Err(Failed::Refused(reason)) if reason.0.contains("not both")));
}

#[test]
fn a_missing_column_is_named_with_what_is_near() {
    refused(b"agencie,amount,plate\nA,1,P\n", None, &["no column `agency`", "is `agencie` it?"]);
    refused(b"agency,plate\nA,P\n", None, &["no column `amount`"]);
    refused(b"agency,amount\nA,1\n", None, &["`transponder_number` or `plate`"]);
    refused(
        b"agency,amount,plate,plaza_\nA,1,P,X\nA,1,P,X,\n",
        Some("sunpass"),
        &["TRANSACTION NUMBER", "Found: agency"],
    );
    refused_violations(b"plate,amount_due\nP,1\n", None, &["no column `summons_number`"]);
    refused_violations(b"summons_number,amount_due\n1,1\n", None, &["no column `plate`"]);
}

#[test]
fn a_first_line_that_does_not_look_like_column_names_is_not_shown() {
    let secret = "c76e0cd2".repeat(8);
    let message = |file: &str| match tolls(file.as_bytes(), Some("generic"), None, &SETTINGS) {
        Err(Failed::Refused(reason)) => reason.0,
        _ => panic!("the file was read"),
    };
    let one = message(&format!("{secret}\n"));
    assert!(one.contains("one column, whose name has 64 characters"), "{one}");
    let longer = message(&format!("{secret}{secret}\n"));
    assert!(longer.contains("one column, whose name has more than 64 characters"), "{longer}");
    let two = message(&format!("id,{secret}\n"));
    assert!(two.contains("2 columns, of which number 2 has a name of more than 40 characters"), "{two}");
    for told in [one, longer, two] {
        assert!(!told.contains("c76e0cd2"), "{told}");
    }
}

#[test]
fn a_column_that_marks_a_format_must_be_there() {
    // Without it, `Date` could be the day of the posting.
    let file = String::from_utf8(fixture("ezpass-ny-fleet.csv")).unwrap().replace("Posted Date", "Something");
    refused(file.as_bytes(), Some("ezpass-ny-fleet"), &["no column `Posted Date`"]);
}

#[test]
fn the_generic_format_has_no_other_columns_and_none_twice() {
    refused(b"agency,amount,plate,plate_stat\nA,1,P,NY\n", None, &["`plate_stat` is none of them", "`plate_state`"]);
    refused(b"agency,amount,plate,Plate\nA,1,P,P\n", None, &["two columns `plate`"]);
    refused_violations(b"plate,plate,summons_number,amount_due\nP,P,1,1\n", None, &["two columns `plate`"]);
}

#[test]
fn a_list_of_a_fiscal_year_without_amounts_is_refused_whole() {
    let file = b"summons_number,plate_id,registration_state,violation_code\n1400000001,ABC1234,NJ,38\n";
    refused_violations(file, None, &["fiscal year", "no amounts", "Open Parking and Camera Violations"]);
}

#[test]
fn a_first_record_with_more_fields_than_the_header_refuses_the_file() {
    let file = fixture("nyc-fleet-one-field-more.csv");
    refused_violations(&file, Some("nyc-fleet"), &["names 30 columns", "line 2, has 31 fields"]);
    let file = String::from_utf8(fixture("ezpass-ny.csv")).unwrap().replace("\"Class\",", "");
    refused(file.as_bytes(), Some("ezpass-ny"), &["names 8 columns", "9 fields"]);
}

#[test]
fn json_that_breaks_off_or_is_something_else_is_refused() {
    let one = "{\"summons_number\":\"1\",\"plate\":\"P\",\"amount_due\":\"1\"}";
    for (text, words) in [
        (format!("[{one},"), "the file ends before the list does"),
        (format!("[{one}"), "the file ends before the list does"),
        (format!("[{}", &one[..20]), "in the middle of it"),
        (format!("[{one} {one}]"), "a comma"),
        (format!("[{one}]x"), "something follows"),
        (format!("[{one},]"), "at object 2"),
        (format!("[{one},7]"), "at object 2"),
        (format!("{one}\n\"text\""), "at object 2"),
        (format!("[{one},{{\"plate\":}}]"), "at object 2"),
        ("{\"message\":\"dataset.missing\",\"error\":true}".into(), "none of them"),
    ] {
        refused_violations(text.as_bytes(), None, &[words]);
    }
    assert_eq!(read_violations(format!("\u{feff} [ {one} , {one} ] \n").as_bytes(), None).unwrap().len(), 2);
    assert_eq!(read_violations(b"[]", None).unwrap().len(), 0);
}

const MAPPING: &str = r#"{"agency": "TxTag", "time_zone": "America/Chicago", "date_order": "mdy", "charges": "positive",
    "columns": {"date": "Date", "time": "Time", "plate": "Plate", "amount": "Amount"},
    "skip": {"column": "Type", "values": ["Payment"]}}"#;

#[test]
fn the_columns_of_a_mapping_must_be_in_the_file() {
    let mapping = Mapping::parse(MAPPING, TOLLS.has_issuer).unwrap();
    let read = |file: &[u8]| read_tolls(file, None, Some(&mapping), &SETTINGS);
    assert_eq!(read(b"Date,Time,Plate,Amount,Type\n").unwrap().len(), 0);
    says(&refusal(read(b"Date,Time,Plate,Amount,Typ\n")), &["no column `Type`", "is `Typ` it?"]);
    says(&refusal(read(b"Date,Time,Plat,Amount,Type\n")), &["no column `Plate`", "mapping"]);
}

#[test]
fn a_mapping_says_what_is_wrong_with_it() {
    assert!(Mapping::parse(MAPPING, TOLLS.has_issuer).is_ok());
    for (from, to, words) in [
        ("\"charges\"", "\"charge\"", "did you mean `charges`"),
        ("\"plate\"", "\"plat\"", "did you mean `plate`"),
        ("\"values\"", "\"value\"", "did you mean `values`"),
        ("\"positive\"", "\"plus\"", "\"positive\", \"negative\""),
        ("\"mdy\"", "\"mmddyyyy\"", "date_order"),
        ("America/Chicago", "Central", "IANA"),
        ("\"charges\": \"positive\",", "", "`charges`"),
        ("\"date_order\": \"mdy\",", "", "`date_order`"),
        ("\"amount\": \"Amount\"", "\"debit\": \"D\"", "`charges`"),
        ("\"amount\": \"Amount\"", "\"credit\": \"C\"", "`amount`, or `debit`"),
        ("\"date\": \"Date\",", "", "`occurred_at`, or `date`"),
        ("\"date\": \"Date\",", "\"occurred_at\": \"Date\",", "`time` needs `date`"),
        ("\"plate\": \"Plate\",", "", "what a toll finds its vehicle by"),
        ("\"TxTag\"", "7", "`agency` must be a text"),
        ("\"TxTag\"", "\" \"", "`agency` must not be blank"),
        ("\"TxTag\"", "{\"colum\": \"A\"}", "did you mean `column`"),
        ("\"agency\": \"TxTag\",", "", "`agency` is missing"),
        ("[\"Payment\"]", "[]", "`skip.values`"),
        ("{\"agency\"", "{\"agency\": \"A\", \"agency\"", "`agency` is there twice"),
        ("\"columns\": {", "\"columns\": {\"agency\": \"A\", ", "beside `columns`"),
        ("}}", "}", "JSON object"),
    ] {
        assert!(MAPPING.contains(from), "{from}");
        let why = Mapping::parse(&MAPPING.replace(from, to), TOLLS.has_issuer).expect_err(to);
        assert!(why.contains(words), "{to}: {why}");
    }
    assert!(Mapping::parse(&" ".repeat(70_000), TOLLS.has_issuer).is_err_and(|why| why.contains("bytes")));
}
