//! Each format that a mapping file describes, from the file to the customer who had the car. The renter of the day that is read the wrong
//! way round pays nothing.

use super::{
    all, counts, import,
    suggestions::{attached, customer_of, stay},
};
use crate::support::{Connection, Organization, Reply, Server, percent_encode};
use serde_json::{Value, json};

/// An organization with a car, which one customer had from 1 to 5 June and another one from 4 to 8 February 2026, and the customer of June.
fn fleet<'s>(zone: &str, currency: &str, vehicle: Value) -> (Organization<'s>, Value) {
    let body = json!({"name": "Formats", "time_zone": zone, "default_currency": currency});
    let organization = Server::shared().organization_with(&body);
    let vehicle = organization.vehicle(vehicle);
    let june = stay(&organization, &vehicle, ["2026-06-01", "2026-06-05"], "COMPLETED");
    stay(&organization, &vehicle, ["2026-02-04", "2026-02-08"], "COMPLETED");
    let june = customer_of(&organization, &june);
    (organization, june)
}

fn send(organization: &Organization, plural: &str, query: &str, file: &[u8]) -> Reply {
    let path = format!("/admin/v1/organizations/{}/{plural}/import{query}", organization.id);
    let token = format!("Bearer {}", organization.server.admin_token);
    let headers = [("Authorization", token.as_str()), ("Content-Type", "text/csv")];
    Connection::open(&organization.server.address).send("POST", &path, &headers, file)
}

/// Imports a file twice, attaches what is clear, and compares what the renter of June owes. Nobody else owes anything.
#[track_caller]
fn owes((organization, june): &(Organization, Value), plural: &str, query: &str, file: &[u8], expected: &[f64]) {
    let first = send(organization, plural, query, file).ok();
    assert!(counts(&first)[0] > 0 && counts(&first)[4] == 0, "{first}");
    let again = send(organization, plural, query, file).ok();
    assert_eq!(counts(&again)[..2], [0, 0], "{again}");
    attached(organization, plural);
    let amount = if plural == "tolls" { "amount" } else { "amount_due" };
    let found = all(organization, plural);
    let of_june = found.iter().filter(|one| one["customer_id"] == *june);
    let mut owed: Vec<f64> = of_june.filter_map(|one| one[amount].as_f64()).collect();
    owed.sort_by(f64::total_cmp);
    assert_eq!(owed, expected, "{found:?}");
    assert!(found.iter().all(|one| one["customer_id"] == *june || one["customer_id"].is_null()), "{found:?}");
}

#[test]
fn chicago_has_date_and_time_in_one_column_and_a_total_at_the_end() {
    let fleet = fleet("America/New_York", "USD", json!({"plate": "Q12345", "plate_state": "IL"}));
    let file = "ticket_number,issue_date,violation_location,license_plate_number,license_plate_state,violation_code,violation_description,fine_level1_amount,current_amount_due,total_payments,ticket_queue\n\
        51611803,2026-06-02 00:25:00,1 N STATE,Q12345,IL,0964150B,PARKING ON BLOCK,50,50.0,0.0,Notice\n\
        51611804,06/02/2026 05:07:00 PM,1 N STATE,Q12345,IL,0964150B,PARKING ON BLOCK,50,25.0,25.0,Notice\n\
        total,,,,,,,100,75.0,25.0,\n";
    owes(&fleet, "violations", "?format=chicago", file.as_bytes(), &[25.0, 50.0]);
    let first = all(&fleet.0, "violations").into_iter().find(|one| one["summons_number"] == "51611803").unwrap();
    assert_eq!((&first["issuer"], &first["issued_at"]), (&json!("Chicago"), &json!("2026-06-02T05:25:00.000Z")));
    let refused = send(&fleet.0, "violations", "", file.as_bytes());
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`summons_number`") && message.contains("use --format chicago"), "{message}");
    assert!(!message.contains("New York") && !message.contains("nyc"), "{message}");
}

#[test]
fn san_francisco_is_read_as_csv_and_as_json() {
    let fleet = fleet("America/Los_Angeles", "USD", json!({"plate": "8ABC123", "plate_state": "CA"}));
    let file = "Citation Number,Citation Issued DateTime,Violation,Violation Description,Citation Location,Vehicle Plate State,Vehicle Plate,Fine Amount,Date Added\n\
        930000001,06/02/2026 05:07:00 PM,TRC7.2.22,STR CLEAN,1 MAIN ST,CA,8ABC123,90,06/03/2026\n";
    owes(&fleet, "violations", "?format=san-francisco", file.as_bytes(), &[90.0]);
    let json = json!([{
        "citation_number": "930000002", "citation_issued_datetime": "2026-06-03T00:00:00.000", "violation_desc": "METER",
        "vehicle_plate_state": "CA", "vehicle_plate": "8ABC123", "fine_amount": "87",
    }]);
    owes(&fleet, "violations", "?format=san-francisco", json.to_string().as_bytes(), &[87.0, 90.0]);
}

#[test]
fn a_french_list_has_the_day_first_and_a_decimal_comma() {
    let fleet = fleet("Europe/Paris", "EUR", json!({"plate": "AB-123-CD"}));
    let file = "summons_number;issue_date;plate;fine_amount\n6123456790;02/06/2026;AB-123-CD;35,00\n";
    owes(&fleet, "violations", "?format=antai", file.as_bytes(), &[35.0]);
    let file = b"Num\xe9ro d'avis;Date de l'infraction;Heure de l'infraction;Immatriculation;Montant de l'amende\n\
        6123456791;03/06/2026;14h30;AB-123-CD;1\xa0135,00\n";
    let answer = send(&fleet.0, "violations", "?format=antai", file).ok();
    assert_eq!(counts(&answer), [1, 0, 0, 0, 0], "{answer}");
    let second = all(&fleet.0, "violations").into_iter().find(|one| one["summons_number"] == "6123456791").unwrap();
    assert_eq!((&second["issued_at"], &second["amount_due"]), (&json!("2026-06-03T12:30:00.000Z"), &json!(1135)));
}

#[test]
fn a_list_without_a_format_is_read_in_no_zone_and_order_that_nobody_named() {
    let fleet = fleet("Europe/Paris", "EUR", json!({"plate": "AB-123-CD"}));
    let file = "summons_number;issue_date;plate;fine_amount\n6123456790;02/06/2026;AB-123-CD;35,00\n";
    let refused = import(&fleet.0, "violations", "?issuer=ANTAI", file);
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("--time-zone Europe/Paris") && message.contains("--format nyc-open-data"), "{message}");
    let answer = import(&fleet.0, "violations", "?issuer=ANTAI&time_zone=Europe/Paris", file).ok();
    assert_eq!(counts(&answer), [0, 0, 0, 0, 1], "{answer}");
    let message = answer["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("`issue_date` is `02/06/2026`") && message.contains("`date_order`"), "{message}");
    // Dates of one meaning are read.
    let file = file.replace("02/06/2026", "2026-06-02");
    owes(&fleet, "violations", "?issuer=ANTAI&time_zone=Europe/Paris", file.as_bytes(), &[35.0]);
    let mapping = json!({"issuer": "Ville", "date_order": "dmy", "columns": {
        "summons_number": "Avis", "issue_date": "Jour", "violation_time": "Heure", "plate": {"join": ["Code", "Nombre"]},
        "amount_due": {"sum": ["Amende", "Frais"]},
    }});
    let query = format!("?mapping={}", percent_encode(&mapping.to_string()));
    let file = "Liste des avis\n\nAvis;Jour;Heure;Code;Nombre;Amende;Frais\nV1;02/06/2026;1430;AB;123CD;30,10;4,95\n";
    let answer = import(&fleet.0, "violations", &query, file).ok();
    assert_eq!(counts(&answer), [1, 0, 0, 0, 0], "{answer}");
    attached(&fleet.0, "violations");
    let one = all(&fleet.0, "violations").into_iter().find(|one| one["summons_number"] == "V1").unwrap();
    let found = ["issuer", "amount_due", "issued_at", "customer_id"].map(|name| one[name].clone());
    assert_eq!(found, [json!("Ville"), json!(35.05), json!("2026-06-02T12:30:00.000Z"), fleet.1.clone()]);
}

#[test]
fn citylink_has_sections_and_the_one_of_fees_is_told() {
    let fleet = fleet("Australia/Melbourne", "AUD", json!({"plate": "1AB2CD", "transponder_number": "3081234567"}));
    let file = "Account Number,12345678\n\nTrips with tag\nTag Number,LPN,Start Date,Start Time,Toll Road,Amount\n3081234567,1AB2CD,02/06/2026,08:15:20,CityLink,$6.21\n\n\
        Trips without tag\nLPN,Start Date,Start Time,Toll Road,Amount\n1AB2CD,03/06/2026,09:00:00,EastLink,$4.50\nTotal,,,,$10.71\n\n\
        Fees and adjustments\nDate,Description,Amount\n30/06/2026,Image processing fee,$0.78\n";
    let answer = send(&fleet.0, "tolls", "?format=citylink&dry_run=true", file.as_bytes()).ok();
    assert_eq!((counts(&answer)[4], &answer["review"][0]["row"]), (0, &json!(13)), "{answer}");
    assert!(answer["review"][0]["message"].as_str().unwrap().contains("rows are skipped"), "{answer}");
    owes(&fleet, "tolls", "?format=citylink", file.as_bytes(), &[4.5, 6.21]);
}

const TRIP: &[u8] = b"Kfz;Datum;Start;Buchungsnummer;Art;Strecke;EUR\n\
    D XY 101;02.06.2026;08:15;111111111111;Maut;K\xf6ln / Bonn;3,10\n\
    D XY 101;02.06.2026;08:15;111111111111;Maut;K\xf6ln / Bonn;1,20\n\
    D XY 101;02.06.2026;08:15;111111111111;Maut;Bonn / Koblenz;2,00\n";

#[test]
fn the_parts_of_a_trip_of_toll_collect_are_all_owed_in_one_file_and_in_two() {
    let whole = fleet("Europe/Berlin", "EUR", json!({"plate": "D XY 101"}));
    owes(&whole, "tolls", "?format=toll-collect", TRIP, &[1.2, 2.0, 3.1]);
    assert!(all(&whole.0, "tolls").iter().any(|toll| toll["plaza"] == "Köln / Bonn"));
    let halves = fleet("Europe/Berlin", "EUR", json!({"plate": "D XY 101"}));
    let lines: Vec<&[u8]> = TRIP.split_inclusive(|byte| *byte == b'\n').collect();
    send(&halves.0, "tolls", "?format=toll-collect", &[lines[0], lines[3]].concat()).ok();
    send(&halves.0, "tolls", "?format=toll-collect", &[lines[0], lines[1]].concat()).ok();
    let counted = counts(&send(&halves.0, "tolls", "?format=toll-collect", TRIP).ok());
    assert_eq!(counted, [1, 0, 2, 0, 0]);
}

#[test]
fn two_equal_parts_of_a_trip_in_one_file_are_listed_once() {
    let fleet = fleet("Europe/Berlin", "EUR", json!({"plate": "D XY 101"}));
    let lines: Vec<&[u8]> = TRIP.split_inclusive(|byte| *byte == b'\n').collect();
    let twice = [lines[0], lines[1], lines[2], lines[1]].concat();
    for (expected, listed) in [([2, 0, 1, 0, 0], 1), ([0, 0, 3, 0, 0], 0)] {
        let answer = send(&fleet.0, "tolls", "?format=toll-collect", &twice).ok();
        assert_eq!((counts(&answer), answer["review"].as_array().unwrap().len()), (expected, listed), "{answer}");
        assert!(listed == 0 || answer["review"][0]["row"] == 4, "{answer}");
    }
}

#[test]
fn parts_of_a_trip_that_a_mapping_does_not_tell_apart_overwrite_nothing() {
    let fleet = fleet("Europe/Berlin", "EUR", json!({"plate": "D XY 101"}));
    let mapping = |more: &str| {
        let text = r#"{"agency": "Toll Collect", "date_order": "dmy", "charges": "positive", MORE "encoding": "iso-8859-1", "columns": {
            "transaction_id": "Buchungsnummer", "date": "Datum", "time": "Start", "plaza": "Strecke", "plate": "Kfz", "amount": "EUR"}}"#;
        format!("?mapping={}", percent_encode(&text.replace("MORE", more)))
    };
    let lines: Vec<&[u8]> = TRIP.split_inclusive(|byte| *byte == b'\n').collect();
    let (both, second) = ([lines[0], lines[1], lines[2]].concat(), [lines[0], lines[2]].concat());
    for (file, expected) in [(&both, [1, 0, 1, 0, 0]), (&both, [0, 0, 2, 0, 0]), (&second, [0, 0, 1, 0, 0])] {
        let answer = send(&fleet.0, "tolls", &mapping(""), file).ok();
        assert_eq!((counts(&answer), answer["review"].as_array().unwrap().len()), (expected, 1), "{answer}");
        let message = answer["review"][0]["message"].as_str().unwrap();
        assert!(message.contains("\"join\"") && message.contains("\"replaces\""), "{message}");
        assert_eq!(all(&fleet.0, "tolls")[0]["amount"], 3.1);
    }
    let answer = send(&fleet.0, "tolls", &mapping("\"repeated_number\": \"replaces\","), &second).ok();
    assert_eq!((counts(&answer), &all(&fleet.0, "tolls")[0]["amount"]), ([0, 1, 0, 0, 0], &json!(1.2)));
}

#[test]
fn houstons_file_begins_with_the_account_and_can_be_utf_16() {
    let fleet = fleet("America/Chicago", "USD", json!({"plate": "LZA7293"}));
    let file = "sep=,\nAccount:,1234567,,\nPeriod:,06/01/2026 - 06/30/2026,,\n,,,\nTrans ID,Transaction Date,Plate,Amount\n\
        9001,06/02/2026,LZA7293,$2.50\n9002,2-JUN-2026,LZA7293,$1.25\n,,Total:,$3.75\n";
    owes(&fleet, "tolls", "?format=hctra", file.as_bytes(), &[1.25, 2.5]);
    let utf_16: Vec<u8> = file.replace("900", "910").encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(counts(&send(&fleet.0, "tolls", "?format=hctra", &utf_16).ok()), [2, 0, 0, 1, 0]);
    let tags = "Trans ID,Transaction Date,Tag,Amount\n9201,06/02/2026,HCTR09000001,$2.50\n";
    let answer = send(&fleet.0, "tolls", "?format=hctra", tags.as_bytes()).ok();
    assert_eq!(counts(&answer), [1, 0, 0, 0, 0], "{answer}");
    assert_eq!(all(&fleet.0, "tolls")[0]["transponder_number"], "HCTR09000001");
}
