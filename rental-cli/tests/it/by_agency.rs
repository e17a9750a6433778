//! Tolls and violations whose number is not enough: with the agency, or by their passage where there is no number.

use crate::fake_server::{FakeServer, Ran, ok};
use crate::terminal;

const ORGANIZATION: &str = "0190d0f2-7c3a-7cc0-8000-000000000000";
const CUSTOMER: &str = "0190d0f2-0000-7000-8000-000000000002";
const FIRST: &str = "0190d0f2-0000-7000-8000-000000000003";
const SECOND: &str = "0190d0f2-0000-7000-8000-000000000004";

fn page(objects: &[String]) -> String {
    format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{}]}}"#, objects.join(","))
}

fn toll(id: &str, agency: &str) -> String {
    format!(r#"{{"id":"{id}","agency":"{agency}","transaction_id":"77"}}"#)
}

/// A row of a review without a number.
fn row(id: &str, plate: &str, when: &str, place: &str) -> String {
    format!(
        r#"{{"id":"{id}","resource":"toll","agency":"E-ZPass","number":null,"plate":{plate},"transponder_number":"00412345678","when":"{when}","place":{place},"amount":6.9,"currency":"USD","reason":"R.","verdict":"unclear","candidates":[]}}"#
    )
}

fn run(words: &[&str], answers: &[String]) -> (Ran, Vec<String>) {
    let server = FakeServer::new(answers.iter().map(|answer| ok(answer)).collect());
    let ran = server.run(words);
    let asked = server.asked().into_iter().map(|asked| format!("{} {}", asked.line, asked.body).trim_end().to_owned());
    (ran, asked.collect())
}

#[test]
fn a_number_that_two_agencies_use_is_named_with_the_agency_as_the_error_says() {
    let both = page(&[toll(FIRST, "MTAB&T"), toll(SECOND, "NJTP")]);
    let (refused, _) = run(&["tolls", "attach", "77", "--customer", CUSTOMER], std::slice::from_ref(&both));
    let said = "2 tolls have the transaction number \"77\": 'MTAB&T:77', NJTP:77";
    assert!(refused.code == Some(1) && refused.stderr.contains(said), "{}", refused.stderr);
    assert!(refused.stderr.contains("use one of these names"), "{}", refused.stderr);

    let none = page(&[]);
    for (words, last) in [
        (
            &["tolls", "attach", "njtp: 77", "--customer", CUSTOMER][..],
            format!("PATCH /v1/tolls/{SECOND} {{\"customer_id\":\"{CUSTOMER}\"}}"),
        ),
        (&["tolls", "get", "NJTP:77"], format!("GET /v1/tolls/{SECOND}")),
        (&["tolls", "release", "NJTP:77"], format!("POST /admin/v1/tolls/{SECOND}/release")),
        (
            &[
                "invoices",
                "create",
                "--organization",
                ORGANIZATION,
                "--customer",
                CUSTOMER,
                "--line",
                "toll:NJTP:77=3.00",
            ],
            format!(
                "POST /admin/v1/organizations/{ORGANIZATION}/invoices {{\"customer_id\":\"{CUSTOMER}\",\"lines\":[{{\"toll_id\":\"{SECOND}\",\"amount\":3.00}}]}}"
            ),
        ),
    ] {
        let (ran, asked) = run(words, &[none.clone(), both.clone(), r#"{"id":"1"}"#.to_owned()]);
        assert_eq!(ran.code, Some(0), "{words:?}: {}", ran.stderr);
        assert_eq!(asked[1..], ["GET /v1/tolls?transaction_id=77&limit=100".to_owned(), last], "{words:?}");
    }
    let issued = page(&[toll(FIRST, "").replace("agency", "issuer"), toll(SECOND, "NYC").replace("agency", "issuer")]);
    let (ran, asked) = run(&["violations", "get", "NYC:77"], &[none.clone(), issued, r#"{"id":"1"}"#.to_owned()]);
    assert_eq!((ran.code, asked.last()), (Some(0), Some(&format!("GET /v1/violations/{SECOND}"))), "{}", ran.stderr);
    let (ran, asked) = run(&["tolls", "get", "PANYNJ:77"], &[none, both]);
    assert!(
        ran.code == Some(3) && ran.stderr.contains("the transaction number or the agency and number"),
        "{}",
        ran.stderr
    );
    assert_eq!(asked.len(), 2);
}

#[test]
fn a_toll_without_a_number_is_named_by_its_passage_as_the_review_prints_it() {
    let one = row(FIRST, "\"KNN 7123\"", "2026-06-02 13:00 -04:00", "\"GWB\"");
    let other = row(SECOND, "null", "2026-06-01 09:15 -04:00", "null");
    let (shown, _) = run(
        &["tolls", "review", "--organization", ORGANIZATION, "--columns", "number"],
        &[page(&[one.clone(), other.clone()])],
    );
    assert_eq!(shown.stdout, "number\nKNN7123@2026-06-02T13:00\n00412345678@2026-06-01T09:15\n");
    for (name, id) in [
        ("KNN7123@2026-06-02T13:00", FIRST),
        ("knn7123@2026-06-02 13:00", FIRST),
        ("KNN7123@2026-06-02T13:00@gwb", FIRST),
        ("00412345678@2026-06-01T09:15", SECOND),
    ] {
        let rows = page(&[one.clone(), other.clone()]);
        let (ran, asked) = run(&["tolls", "attach", name, "--customer", CUSTOMER], &[rows, r#"{"id":"1"}"#.to_owned()]);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        let patch = format!("PATCH /v1/tolls/{id} {{\"customer_id\":\"{CUSTOMER}\"}}");
        assert_eq!(asked, ["GET /v1/tolls/review?limit=100".to_owned(), patch], "{name}");
    }
}

#[test]
fn two_tolls_of_one_passage_are_told_apart_by_the_plaza() {
    let at = |id, place: &str| row(id, "\"KNN7123\"", "2026-06-02 13:00 -04:00", place);
    let rows = page(&[at(FIRST, "\"GWB\""), at(SECOND, "\"LINCOLN TUNNEL\"")]);
    let name = "KNN7123@2026-06-02T13:00";
    let (ran, _) = run(&["tolls", "attach", name, "--customer", CUSTOMER], std::slice::from_ref(&rows));
    let said = format!("2 tolls have the passage \"{name}\": {name}@GWB, '{name}@LINCOLN TUNNEL'");
    assert!(ran.code == Some(1) && ran.stderr.contains(&said), "{}", ran.stderr);
    let words = ["tolls", "review", "--organization", ORGANIZATION, "--columns", "number"];
    let (shown, _) = run(&words, std::slice::from_ref(&rows));
    assert_eq!(shown.stdout, format!("number\n{name}@GWB\n{name}@LINCOLN TUNNEL\n"));
    let exact = format!("{name}@Lincoln Tunnel");
    let (ran, asked) = run(&["tolls", "get", &exact], &[rows, r#"{"id":"1"}"#.to_owned()]);
    assert_eq!((ran.code, asked.last()), (Some(0), Some(&format!("GET /v1/tolls/{SECOND}"))), "{}", ran.stderr);
    let same = page(&[at(FIRST, "null"), at(SECOND, "null")]);
    let (ran, _) = run(&["tolls", "get", name], &[same]);
    assert!(ran.code == Some(1) && ran.stderr.contains(FIRST) && ran.stderr.contains("use the id"), "{}", ran.stderr);
}

/// The number of a toll that has one is its only name, and what is attached is in no review.
#[test]
fn a_passage_of_an_attached_toll_is_found_in_the_list_of_tolls() {
    let toll = |id: &str, number: &str| {
        format!(
            r#"{{"id":"{id}","transaction_id":{number},"plate":"KNN7123","occurred_at":"2026-06-02T17:00:00.000Z","time_zone":null,"plaza":null}}"#
        )
    };
    let me = r#"{"object":"me","time_zone":"America/New_York"}"#.to_owned();
    let vehicle = page(&[format!(r#"{{"id":"{CUSTOMER}"}}"#)]);
    let name = "KNN7123@2026-06-02T13:00";
    let tolls = page(&[toll(FIRST, "\"1\""), toll(SECOND, "null")]);
    let answers = [page(&[]), me.clone(), vehicle.clone(), tolls, r#"{"id":"1"}"#.to_owned()];
    let (ran, asked) = run(&["tolls", "get", name], &answers);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let expected = [
        "GET /v1/tolls/review?limit=100".to_owned(),
        "GET /v1/me".to_owned(),
        "GET /v1/vehicles?plate=KNN7123&limit=100".to_owned(),
        format!("GET /v1/tolls?vehicle={CUSTOMER}&limit=100"),
        format!("GET /v1/tolls/{SECOND}"),
    ];
    assert_eq!(asked, expected);
    let (ran, _) = run(&["tolls", "get", name], &[page(&[]), me, vehicle, page(&[])]);
    assert!(ran.code == Some(3) && ran.stderr.contains("no toll without a number has"), "{}", ran.stderr);
}

#[test]
fn a_review_shows_the_agency_where_a_number_is_on_the_page_twice_and_the_vehicle_of_a_transponder() {
    let numbered = |id, agency: &str| {
        let row = row(id, "null", "2026-06-02 13:00 -04:00", "null").replace(r#""number":null"#, r#""number":"77""#);
        let vehicle = r#""vehicle_plate":"LZA7293","vehicle_name":"Grey Camry","reason""#;
        row.replace("E-ZPass", agency).replace(r#""reason""#, vehicle)
    };
    let rows = page(&[numbered(FIRST, "MTAB&T"), numbered(SECOND, "NJTP")]);
    let words = ["tolls", "review", "--organization", ORGANIZATION];
    let chosen = [&words[..], &["--columns", "number,plate,vehicle_plate,vehicle_name"]].concat();
    let (piped, _) = run(&chosen, std::slice::from_ref(&rows));
    let lines = "MTAB&T:77\t\tLZA7293\tGrey Camry\nNJTP:77\t\tLZA7293\tGrey Camry\n";
    assert_eq!(piped.stdout, format!("number\tplate\tvehicle_plate\tvehicle_name\n{lines}"));
    let shown =
        |words: &[&str]| terminal::run(FakeServer::new(vec![ok(&rows)]).command(words).env("NO_COLOR", "1"), 100).1;
    let block = shown(&words);
    assert!(block.contains("2026-06-02 13:00 -04:00  LZA7293  6.90 USD\n  MTAB&T:77\n"), "{block}");
    assert!(block.contains("\n  vehicle: Grey Camry, transponder 00412345678\n"), "{block}");
    let table = shown(&[&words[..], &["--columns", "plate,number"]].concat());
    assert!(table.contains("LZA7293  MTAB&T:77"), "{table}");
}
