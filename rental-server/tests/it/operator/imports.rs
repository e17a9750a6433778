//! Files of agencies and cities: each row once, counts that add up, and nothing of a file that is not what it claims.

use super::{all, counts, import};
use crate::support::{Connection, Server, percent_encode};
use serde_json::{Value, json};
use std::{
    fmt::Write,
    time::{Duration, Instant},
};

const HEADER: &str = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n";

fn toll(n: u32, amount: &str) -> String {
    format!("T{n},2026-06-02T10:03:00-04:00,MTAB&T,RKB,ABC1234,NY,00412345678,{amount}\n")
}

#[test]
fn a_toll_has_what_the_file_says_and_the_vehicle_with_its_tag() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"transponder_number": "004 12345678"}));
    let answer = import(&organization, "tolls", "", &format!("{HEADER}{}", toll(1, "6.94"))).ok();
    assert_eq!((counts(&answer), &answer["format"]), ([1, 0, 0, 0, 0], &json!("generic")));
    assert_eq!(
        (&answer["object"], &answer["dry_run"], &answer["matched"]),
        (&json!("import"), &json!(false), &json!(1))
    );
    let found = all(&organization, "tolls");
    let expected = json!({
        "id": found[0]["id"], "object": "toll", "amount": 6.94, "currency": "USD", "agency": "MTAB&T",
        "vehicle_id": vehicle, "customer_id": null, "transaction_id": "T1", "occurred_at": "2026-06-02T14:03:00.000Z",
        "occurred_on": "2026-06-02", "time_zone": null, "plaza": "RKB", "plate": "ABC1234", "plate_state": "NY",
        "transponder_number": "00412345678", "attribution": null, "rental_id": null, "attribution_reason": null,
        "review_reason": null, "amount_billed": 0,
        "invoice_ids": [], "created_at": found[0]["created_at"], "updated_at": found[0]["created_at"],
    });
    assert_eq!(json!(found), json!([expected]));
    let by_vehicle = organization.get(&format!("/v1/tolls?vehicle={vehicle}")).ok();
    assert_eq!(by_vehicle["data"], json!([expected]));
}

#[test]
fn the_sums_of_an_import_count_the_money_of_every_row() {
    let organization = Server::shared().organization();
    organization.vehicle(json!({"transponder_number": "00412345678"}));
    let wrong_time = toll(5, "0.5").replace("2026-06-02T10:03:00-04:00", "yesterday");
    let other_car = toll(3, "2").replace("ABC1234,NY,00412345678", "XYZ77,NY,");
    let rows = [toll(1, "6.94"), toll(1, "6.94"), toll(2, "10"), toll(2, "-4.5"), other_car, toll(4, "x"), wrong_time];
    let file = HEADER.to_owned() + &rows.concat();
    let answer = import(&organization, "tolls", "", &file).ok();
    assert_eq!(counts(&answer), [3, 1, 1, 0, 2], "{answer}");
    let expected = json!({
        "received": 21.88, "created": 18.94, "updated": -4.5, "duplicates": 6.94, "skipped": 0, "invalid": 0.5,
        "matched": 16.94,
    });
    assert_eq!(answer["amounts"], expected);

    let list = "plate,state,summons_number,issue_date,violation_time,violation,fine_amount,penalty_amount,amount_due\n\
                A,NY,1,06/02/2026,02:03P,PHTO,50,,75\nA,NY,2,06/02/2026,02:03P,PHTO,50,10,\n\
                A,NY,#N/A,06/02/2026,02:03P,PHTO,50,25,\n";
    let answer = import(&organization, "violations", "", list).ok();
    assert_eq!(counts(&answer), [2, 0, 0, 0, 1], "{answer}");
    let sums = ["received", "created", "invalid"].map(|name| answer["amounts"][name].as_f64());
    assert_eq!(sums, [Some(210.0), Some(135.0), Some(75.0)], "{answer}");
}

#[test]
fn a_file_imported_twice_creates_nothing_the_second_time() {
    let organization = Server::shared().organization();
    let file = (0..450).fold(HEADER.to_owned(), |file, n| file + &toll(n, "1.5"));
    assert_eq!(counts(&import(&organization, "tolls", "", &file).ok()), [450, 0, 0, 0, 0]);
    assert_eq!(counts(&import(&organization, "tolls", "", &file).ok()), [0, 0, 450, 0, 0]);
    let overlapping = (400..500).fold(HEADER.to_owned(), |file, n| file + &toll(n, "1.50"));
    assert_eq!(counts(&import(&organization, "tolls", "", &overlapping).ok()), [50, 0, 50, 0, 0]);
    assert_eq!(all(&organization, "tolls").len(), 500);
}

#[test]
fn two_imports_of_one_file_at_the_same_moment_create_each_toll_once() {
    let organization = Server::shared().organization();
    let file = (0..600).fold(HEADER.to_owned(), |file, n| file + &toll(n, "1.5"));
    let answers: Vec<[u64; 5]> = std::thread::scope(|scope| {
        let run = || counts(&import(&organization, "tolls", "", &file).ok());
        let running: Vec<_> = (0..2).map(|_| scope.spawn(run)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((answers[0][0] + answers[1][0], answers[0][2] + answers[1][2]), (600, 600), "{answers:?}");
    assert_eq!(all(&organization, "tolls").len(), 600);
}

#[test]
fn without_a_number_a_toll_is_known_by_who_passed_where_and_when_for_how_much() {
    let organization = Server::shared().organization();
    let row = |time: &str, plaza: &str, amount: &str| format!(",{time},PANYNJ,{plaza},abc 1234,ny,,{amount}\n");
    let first = row("2026-06-02T10:03:00-04:00", "GWB", "14.75");
    let file = [
        HEADER,
        &first,
        &first,
        &row("2026-06-02T14:03:00Z", "gwb", "14.75").replace("abc 1234,ny", "NY ABC-1234,"),
        &row("2026-06-02T10:03:01-04:00", "GWB", "14.75"),
        &row("2026-06-02T10:03:00-04:00", "LT", "14.75"),
        &row("2026-06-02T10:03:00-04:00", "GWB", "12.75"),
    ];
    assert_eq!(counts(&import(&organization, "tolls", "", &file.concat()).ok()), [4, 0, 2, 0, 0]);
    assert_eq!(counts(&import(&organization, "tolls", "", &file.concat()).ok()), [0, 0, 6, 0, 0]);
}

#[test]
fn a_bad_row_is_reported_with_its_line_and_stops_no_other() {
    let organization = Server::shared().organization();
    let file = [HEADER, &toll(1, "1"), &toll(2, "a lot"), &toll(3, "1.005"), "x,y\n", &toll(4, "2")].concat();
    let answer = import(&organization, "tolls", "", &file).ok();
    assert_eq!(counts(&answer), [2, 0, 0, 0, 3]);
    let rows: Vec<&Value> = answer["errors"].as_array().unwrap().iter().map(|error| &error["row"]).collect();
    assert_eq!(rows, [3, 4, 5]);
    assert_eq!(all(&organization, "tolls").len(), 2);
}

#[test]
fn a_row_without_plate_and_transponder_is_recorded_and_listed_for_review() {
    let organization = Server::shared().organization();
    let file = [HEADER, &toll(1, "1"), "T2,2026-06-02T10:03:00Z,MTAB&T,RKB,,,,2\n", &toll(3, "1"), "bad\n"].concat();
    for query in ["?dry_run=true", ""] {
        let answer = import(&organization, "tolls", query, &file).ok();
        assert_eq!(counts(&answer), [3, 0, 0, 0, 1]);
        let review = answer["review"].as_array().unwrap();
        assert_eq!((review.len(), &review[0]["row"], &answer["review_omitted"]), (1, &json!(3), &json!(0)), "{answer}");
        assert!(review[0]["message"].as_str().unwrap().contains("attach this toll to a customer by hand"), "{answer}");
    }
    assert_eq!(all(&organization, "tolls").len(), 3);
    let again = import(&organization, "tolls", "", &file).ok();
    assert_eq!((counts(&again), &again["review"]), ([0, 0, 3, 0, 1], &json!([])), "only new objects are listed");
}

/// Several transactions, so that rows meet objects of earlier rows of their own file.
#[test]
fn a_dry_run_reports_contradictions_corrections_and_credits_within_its_file() {
    let organization = Server::shared().organization();
    organization.vehicle(json!({"plate": "DRY1"}));
    let mut file = HEADER.to_owned();
    let mut row = |number: u32, minute: u32, plaza: &str, amount: &str| {
        let time = format!("2026-06-{:02}T{:02}:{:02}:00Z", 1 + minute / 1440, minute / 60 % 24, minute % 60);
        writeln!(file, "D{number},{time},MTAB&T,{plaza},DRY1,NY,,{amount}").unwrap();
    };
    (0..450).for_each(|number| row(number, 10 * number, "RKB", "6.94"));
    row(0, 1, "RKB", "6.94"); // another time
    row(1, 10, "BWB", "6.94"); // another plaza
    row(2, 20, "RKB", "4.94"); // corrected
    row(2, 20, "RKB", "6.94"); // the amount from before the correction
    row(3, 30, "RKB", "6.94"); // repeated
    let dry_run = import(&organization, "tolls", "?dry_run=true", &file).ok();
    assert!(all(&organization, "tolls").is_empty());
    let run = import(&organization, "tolls", "", &file).ok();
    assert_eq!(counts(&run), [450, 1, 2, 0, 2], "{run}");
    for member in ["received", "created", "updated", "duplicates", "skipped", "invalid", "matched", "amounts"] {
        assert_eq!(dry_run[member], run[member], "{member}");
    }
    assert_eq!((&dry_run["errors"], &dry_run["review"]), (&run["errors"], &run["review"]));
    let message = run["errors"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("has the number of an earlier row, but another time"), "{message}");
}

#[test]
fn a_dry_run_counts_the_same_and_records_nothing() {
    let organization = Server::shared().organization();
    let known = [HEADER, &toll(1, "1"), &toll(2, "1")].concat();
    import(&organization, "tolls", "", &known).ok();
    let mut file = [HEADER, &toll(1, "1"), &toll(2, "3"), &toll(3, "1"), &toll(3, "1"), "bad\n"].concat();
    (10..700).for_each(|n| file.push_str(&toll(n % 400 + 10, "1")));
    let before = all(&organization, "tolls");
    let mut trial = import(&organization, "tolls", "?dry_run=true", &file).ok();
    assert_eq!(all(&organization, "tolls"), before);
    let real = import(&organization, "tolls", "?dry_run=false", &file).ok();
    assert_eq!(trial["dry_run"], true);
    trial["dry_run"] = json!(false);
    assert_eq!(trial, real);
    assert_eq!(counts(&real), [401, 1, 292, 0, 1]);
}

#[test]
fn another_amount_under_the_same_number_corrects_the_toll() {
    let organization = Server::shared().organization();
    import(&organization, "tolls", "", &[HEADER, &toll(1, "6.94")].concat()).ok();
    let corrected = [HEADER, &toll(1, "11.19")].concat();
    assert_eq!(counts(&import(&organization, "tolls", "", &corrected).ok()), [0, 1, 0, 0, 0]);
    assert_eq!(counts(&import(&organization, "tolls", "", &corrected).ok()), [0, 0, 1, 0, 0]);
    let found = all(&organization, "tolls");
    assert_eq!((found.len(), &found[0]["amount"]), (1, &json!(11.19)));
    let twice = [HEADER, &toll(2, "1"), &toll(2, "2")].concat();
    assert_eq!(counts(&import(&organization, "tolls", "", &twice).ok()), [1, 1, 0, 0, 0]);
    assert_eq!(all(&organization, "tolls")[0]["amount"], 2);
}

/// An agency never reuses a number: another car, time or plaza under it is a wrong number, and no toll may vanish for it.
#[test]
fn a_number_of_another_passage_is_invalid_and_changes_nothing() {
    let organization = Server::shared().organization();
    let row = |tag: &str, time: &str, plaza: &str, amount: &str| format!("1,{time},MTAB&T,{plaza},,,{tag},{amount}\n");
    let (first, other) = ("2026-06-02T10:03:00-04:00", "2026-06-09T10:03:00-04:00");
    let file = [HEADER, &row("00412345678", first, "RKB", "6.94"), &row("00487654321", other, "RKB", "3.00")].concat();
    let answer = import(&organization, "tolls", "", &file).ok();
    assert_eq!(counts(&answer), [1, 0, 0, 0, 1]);
    let recorded = all(&organization, "tolls");
    assert_eq!((recorded.len(), &recorded[0]["amount"]), (1, &json!(6.94)));
    // The rows after a wrong one are compared with the toll, and not with the wrong row.
    let (right, wrong) = (row("00412345678", first, "RKB", "6.94"), row("00487654321", other, "RKB", "3.00"));
    for file in [[HEADER, &wrong, &right].concat(), [HEADER, &right, &wrong, &right].concat()] {
        let rows = file.lines().count() as u64 - 1;
        assert_eq!(counts(&import(&organization, "tolls", "", &file).ok()), [0, 0, rows - 1, 0, 1]);
    }
    for (row, what) in [
        (row("00487654321", first, "RKB", "6.94"), "another vehicle"),
        (row("00412345678", other, "RKB", "3.00"), "another time"),
        (row("00412345678", first, "TBM", "3.00"), "another plaza"),
    ] {
        let answer = import(&organization, "tolls", "", &[HEADER, &row].concat()).ok();
        assert_eq!(counts(&answer), [0, 0, 0, 0, 1]);
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(what) && message.contains(recorded[0]["id"].as_str().unwrap()), "{message}");
    }
    // One row has the plate of a vehicle, and the other one the tag of another vehicle.
    organization.vehicle(json!({"plate": "ABC1", "plate_state": "NY"}));
    organization.vehicle(json!({"transponder_number": "00822222222"}));
    let by_plate = [HEADER, &format!("N1,{first},MTAB&T,RKB,ABC1,NY,,2.50\n")].concat();
    assert_eq!(counts(&import(&organization, "tolls", "", &by_plate).ok()), [1, 0, 0, 0, 0]);
    let by_tag = |amount| [HEADER, &format!("N1,{first},MTAB&T,RKB,,,00822222222,{amount}\n")].concat();
    for amount in ["9.00", "2.50"] {
        assert_eq!(counts(&import(&organization, "tolls", "", &by_tag(amount)).ok()), [0, 0, 0, 0, 1], "{amount}");
    }
    let recorded = all(&organization, "tolls");
    // A row that lacks the plaza, or has the tag without its zeros, is about the same passage.
    let same = [HEADER, &row("412345678", first, "", "6.94")].concat();
    assert_eq!(counts(&import(&organization, "tolls", "", &same).ok()), [0, 0, 1, 0, 0]);
    assert_eq!(all(&organization, "tolls"), recorded);
}

#[test]
fn an_older_file_does_not_bring_an_amount_back() {
    let organization = Server::shared().organization();
    let file = |amount| [HEADER, &toll(1, amount)].concat();
    for (amount, expected, shown) in [
        ("6.94", [1, 0, 0, 0, 0], 6.94),
        ("4.94", [0, 1, 0, 0, 0], 4.94),
        ("6.94", [0, 0, 1, 0, 0], 4.94),
        ("3.94", [0, 1, 0, 0, 0], 3.94),
        ("4.94", [0, 0, 1, 0, 0], 3.94),
        ("6.94", [0, 0, 1, 0, 0], 3.94),
    ] {
        assert_eq!(counts(&import(&organization, "tolls", "", &file(amount)).ok()), expected, "{amount}");
        assert_eq!(all(&organization, "tolls")[0]["amount"], json!(shown));
    }
}

#[test]
fn a_number_is_the_same_however_a_spreadsheet_writes_it_and_lost_ones_are_refused() {
    let organization = Server::shared().organization();
    let row = |id: &str| format!("{HEADER}{id},2026-06-02T10:03:00-04:00,MTAB&T,RKB,ABC1234,NY,,6.94\n");
    assert_eq!(counts(&import(&organization, "tolls", "", &row("61231234567")).ok())[0], 1);
    for id in ["61231234567.0", "\"=\"\"61231234567\"\"\"", "'61231234567"] {
        assert_eq!(counts(&import(&organization, "tolls", "", &row(id)).ok()), [0, 0, 1, 0, 0], "{id}");
    }
    for id in ["#N/A", "N/A", "n/a", "#REF!", "########", "6.12312E10", "4.63123E9", "6.12312E+10"] {
        let answer = import(&organization, "tolls", "", &row(id)).ok();
        assert_eq!(counts(&answer), [0, 0, 0, 0, 1], "{id}");
        assert!(answer["errors"][0]["message"].as_str().unwrap().contains("lost"), "{answer}");
    }
    for id in ["61 231 234 567", "61231 234567"] {
        assert_eq!(counts(&import(&organization, "tolls", "", &row(id)).ok()), [0, 0, 1, 0, 0], "{id}");
    }
    // The agency is a part of the identity, and a lost plaza would contradict the true one.
    for (agency, plaza) in [("#N/A", "RKB"), ("N/A", "RKB"), ("MTAB&T", "#REF!")] {
        let rows = format!("{HEADER}T8,2026-06-02T10:03:00-04:00,{agency},{plaza},ABC1234,NY,,6.94\n");
        let answer = import(&organization, "tolls", "", &rows).ok();
        assert_eq!(counts(&answer), [0, 0, 0, 0, 1], "{agency} {plaza}");
        assert!(answer["errors"][0]["message"].as_str().unwrap().contains("its value is lost"), "{answer}");
    }
    let tag = format!("{HEADER}T9,2026-06-02T10:03:00-04:00,MTAB&T,RKB,,,\"=\"\"00412345678\"\"\",6.94\n");
    let vehicle = organization.vehicle(json!({"transponder_number": "00412345678"}));
    assert_eq!(import(&organization, "tolls", "", &tag).ok()["matched"], 1);
    assert_eq!(all(&organization, "tolls")[0]["vehicle_id"], json!(vehicle));
}

#[test]
fn an_amount_in_another_currency_is_refused() {
    let organization = Server::shared().organization();
    let answer = import(&organization, "tolls", "", &[HEADER, &toll(1, "€6.94"), &toll(2, "$6.94")].concat()).ok();
    assert_eq!(counts(&answer), [1, 0, 0, 0, 1]);
    let message = answer["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("amount in €") && message.contains("currency is USD"), "{message}");
}

/// A statement of E-ZPass New York: a charge is below 0, money back above.
fn ezpass(rows: &[(&str, &str, &str)]) -> String {
    let mut file = "Lane Txn ID,Tag/Plate #,Agency,Entry Plaza,Exit Plaza,Class,Date,Exit Time,Amount\n".to_owned();
    for (number, time, amount) in rows {
        writeln!(file, "{number},\" 00412345678\",MTAB&T,,RKB,1,06/02/2026,{time},{amount}").unwrap();
    }
    file
}

#[test]
fn money_back_makes_its_toll_smaller_once_even_when_it_comes_first() {
    let organization = Server::shared().organization();
    let query = "?format=ezpass-ny";
    let file = ezpass(&[("2", "10:03:32 AM", "$2.94"), ("1", "10:03:32 AM", "$-2.94"), ("3", "11:00:00 AM", "$-4.00")]);
    let trial = import(&organization, "tolls", &format!("{query}&dry_run=true"), &file).ok();
    assert_eq!(counts(&trial), [2, 1, 0, 0, 0]);
    assert_eq!(counts(&import(&organization, "tolls", query, &file).ok()), [2, 1, 0, 0, 0]);
    assert_eq!(counts(&import(&organization, "tolls", query, &file).ok()), [0, 0, 3, 0, 0]);
    let amounts: Vec<Value> = all(&organization, "tolls").iter().map(|toll| toll["amount"].clone()).collect();
    assert_eq!(amounts, [json!(4), json!(0)]);
    let unknown = import(&organization, "tolls", query, &ezpass(&[("9", "09:00:00 AM", "$1.00")])).ok();
    assert_eq!(counts(&unknown), [0, 0, 0, 0, 1]);
    assert!(unknown["errors"][0]["message"].as_str().unwrap().contains("no toll that is known"), "{unknown}");
}

#[test]
fn local_times_are_those_of_the_agency_or_of_the_zone_that_is_given() {
    let organization = Server::shared().organization();
    let file = ezpass(&[("1", "10:03:32 PM", "$-2.94")]);
    import(&organization, "tolls", "?format=ezpass-ny", &file).ok();
    let found = all(&organization, "tolls").remove(0);
    assert_eq!(
        (&found["occurred_at"], &found["occurred_on"]),
        (&json!("2026-06-03T02:03:32.000Z"), &json!("2026-06-02"))
    );
    let other = ezpass(&[("2", "10:03:32 PM", "$-2.94")]);
    import(&organization, "tolls", "?format=ezpass-ny&time_zone=America/Chicago", &other).ok();
    assert_eq!(all(&organization, "tolls")[0]["occurred_at"], "2026-06-03T03:03:32.000Z");
}

#[test]
fn a_file_of_another_agency_is_read_by_a_mapping() {
    let organization = Server::shared().organization();
    let mapping = json!({
        "agency": "TxTag", "time_zone": "America/Chicago", "date_order": "mdy", "charges": "positive",
        "columns": {"transaction_id": "Trans ID", "date": "Date", "time": "Time", "plate": "Plate", "amount": "Toll"},
    });
    let query = format!("?mapping={}", percent_encode(&mapping.to_string()));
    let file = "Trans ID,Date,Time,Plate,Toll\n77,06/02/2026,22:03:32,TX ABC1234,$2.10\n";
    let answer = import(&organization, "tolls", &query, file).ok();
    assert_eq!((counts(&answer), &answer["format"]), ([1, 0, 0, 0, 0], &json!("mapping")));
    let found = all(&organization, "tolls").remove(0);
    assert_eq!((&found["agency"], &found["occurred_at"]), (&json!("TxTag"), &json!("2026-06-03T03:03:32.000Z")));
}

#[test]
fn a_file_that_is_not_what_it_claims_is_refused_whole() {
    let organization = Server::shared().organization();
    let endless = format!("{HEADER}{}T2,\"{}", toll(1, "1"), "x".repeat(70_000));
    for (query, file, says) in [
        ("", "<html><body>Sign in</body></html>", "HTML"),
        ("", "PK\u{3}\u{4}garbage", "xlsx"),
        ("", "", "empty"),
        ("", "plate,amount\nABC,1\n", "agency"),
        ("?format=ezpass-nj", &ezpass(&[("1", "10:03:32 AM", "$-2.94")]), "ezpass-ny"),
        ("", &endless, "64 KiB"),
    ] {
        let error = import(&organization, "tolls", query, file).error(400, "invalid_request_error", "file_refused");
        let message = error["message"].as_str().unwrap();
        assert!(message.to_lowercase().contains(&says.to_lowercase()), "{says}: {message}");
        assert!(all(&organization, "tolls").is_empty(), "{message}");
    }
}

#[test]
fn wrong_parameters_are_named() {
    let organization = Server::shared().organization();
    for (query, expected) in [
        ("?format=ezpas-ny", vec![("format", "parameter_invalid")]),
        ("?time_zone=Mars", vec![("time_zone", "parameter_invalid")]),
        ("?dry_run=yes", vec![("dry_run", "parameter_invalid")]),
        ("?dryrun=true", vec![("dryrun", "parameter_unknown")]),
        ("?mapping=%7B%7D", vec![("mapping", "parameter_invalid")]),
        ("?issuer=NYC", vec![("issuer", "parameter_unknown")]),
    ] {
        let reply = import(&organization, "tolls", query, HEADER);
        let expected: Vec<_> = expected.iter().map(|(name, code)| ((*name).to_owned(), (*code).to_owned())).collect();
        assert_eq!(reply.bad_fields(), expected, "{query}");
    }
    let unknown = "/admin/v1/organizations/01900000-0000-7000-8000-000000000000/tolls/import";
    organization.server.admin("POST", unknown, &Value::Null).error(404, "invalid_request_error", "resource_missing");
}

#[test]
fn organizations_do_not_share_what_is_known() {
    let [one, other] = [(); 2].map(|()| Server::shared().organization());
    other.vehicle(json!({"transponder_number": "00412345678", "plate": "ABC1234"}));
    let file = [HEADER, &toll(1, "1")].concat();
    for organization in [&one, &other] {
        assert_eq!(counts(&import(organization, "tolls", "", &file).ok()), [1, 0, 0, 0, 0]);
    }
    assert_eq!(all(&one, "tolls")[0]["vehicle_id"], Value::Null);
}

#[test]
fn a_vehicle_is_found_by_tag_else_by_plate_and_state_and_never_guessed() {
    let organization = Server::shared().organization();
    let tagged = organization.vehicle(json!({"transponder_number": "00412345678", "plate": "NJ TAG-1"}));
    let new_york = organization.vehicle(json!({"plate": "LZA 7293", "plate_state": "NY"}));
    let jersey = organization.vehicle(json!({"plate": "NJ LZA7293"}));
    let bare = organization.vehicle(json!({"plate": "bare-1"}));
    let twins = [(); 2].map(|()| organization.vehicle(json!({"plate": "TWIN"})));
    let rows = [
        ("004-12345678", "", "", Some(&tagged)),
        ("12345678", "", "", Some(&tagged)),
        ("", "NJ TAG1", "", Some(&tagged)),
        ("00412345678", "LZA7293", "NY", None),
        ("00499999999", "LZA7293", "NY", Some(&new_york)),
        ("", "lza7293", "ny", Some(&new_york)),
        ("", "LZA7293", "NJ", Some(&jersey)),
        ("", "LZA7293", "", None),
        ("", "LZA7293", "CT", None),
        ("", "BARE 1", "CT", Some(&bare)),
        ("", "TWIN", "NY", None),
        ("", "nobody", "", None),
    ];
    let mut file = HEADER.to_owned();
    for (n, (tag, plate, state, _)) in rows.iter().enumerate() {
        writeln!(file, "N{n},2026-06-02T10:03:00Z,A,P,{plate},{state},{tag},1").unwrap();
    }
    assert_eq!(counts(&import(&organization, "tolls", "", &file).ok()), [12, 0, 0, 0, 0]);
    for found in all(&organization, "tolls") {
        let (tag, plate, state, expected) =
            rows[found["transaction_id"].as_str().unwrap()[1..].parse::<usize>().unwrap()];
        assert_eq!(found["vehicle_id"].as_str(), expected.map(String::as_str), "{tag} {plate} {state}");
    }
    assert_ne!(twins[0], twins[1]);
}

#[test]
fn a_compressed_file_is_refused_with_what_to_do() {
    let organization = Server::shared().organization();
    let path = format!("/admin/v1/organizations/{}/tolls/import", organization.id);
    let token = format!("Bearer {}", organization.server.admin_token);
    let headers = [("Authorization", token.as_str()), ("Content-Encoding", "gzip")];
    let reply = Connection::open(&organization.server.address).send("POST", &path, &headers, b"x");
    reply.error(415, "invalid_request_error", "unsupported_media_type");
}

#[test]
fn uploads_that_drip_end_and_keep_no_other_import_waiting() {
    let server = Server::start(&["--request-timeout", "4s"]);
    let organization = server.organization();
    let head = format!(
        "POST /admin/v1/organizations/{}/tolls/import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: text/csv\r\nContent-Length: 1000000\r\n\r\n",
        organization.id, server.admin_token
    );
    let begun = Instant::now();
    let mut dripping: Vec<_> = (0..3)
        .map(|_| {
            let mut upload = Connection::open(&server.address);
            upload.write(head.as_bytes()).unwrap();
            upload
        })
        .collect();
    for upload in &mut dripping {
        upload.write(b"t").unwrap();
    }
    import(&organization, "tolls", "?dry_run=true", &(HEADER.to_owned() + &toll(1, "4.00"))).ok();
    assert!(begun.elapsed() < Duration::from_secs(3), "it waited");
    // Each part comes in time, and all of them are too slow.
    while begun.elapsed() < Duration::from_secs(6) {
        std::thread::sleep(Duration::from_secs(1));
        dripping.iter_mut().for_each(|upload| drop(upload.write(b"x")));
    }
    for upload in &mut dripping {
        upload.read_reply(false).unwrap().error(408, "invalid_request_error", "request_timeout");
    }
}
