//! Tables of long values on narrow terminals: what makes a row complete is there, and names are cut before it is left out.

use crate::{
    fake_server::{FakeServer, ok},
    terminal::plain,
};

const ID: &str = "0190d0f2-7c3a-7cc0-8000-000000000001";
const OTHER: &str = "0190d0f2-7c3a-7cc0-8000-000000000002";
/// 40 characters.
const LONG: &str = "Mercedes-Benz Sprinter 316 CDI Kombi XL2";

fn page(rows: &[String]) -> String {
    format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{}]}}"#, rows.join(","))
}

/// What a list shows on terminals of 80 and 140 columns. No line is longer, and nothing is hidden.
#[track_caller]
fn listed(group: &str, rows: &[String], name: &str) -> [String; 2] {
    [80, 140].map(|columns| {
        let named = format!(r#"{{"object":"any","name":"{name}"}}"#);
        let shown = plain(&FakeServer::new(vec![ok(&page(rows)), ok(&named)]), &[group, "list"], columns);
        assert!(shown.lines().all(|line| line.chars().count() <= usize::from(columns)), "{columns}: {shown}");
        assert!(!shown.contains("hidden"), "{columns}: {shown}");
        shown
    })
}

#[test]
fn a_rental_keeps_its_status_and_price_beside_long_names() {
    let rental = |status: &str| {
        format!(
            r#"{{"id":"{ID}","object":"rental","vehicle_id":"{ID}","customer_id":"{OTHER}","start_date":"2026-06-01","end_date":"2026-06-05","final_price":1234.5,"currency":"USD","status":"{status}","booking_id":"BK-1"}}"#
        )
    };
    let rows: Vec<String> = (0..20).map(|at| rental(if at % 2 == 0 { "COMPLETED" } else { "ACTIVE" })).collect();
    for name in [LONG, "White Tesla Model 3 of ours"] {
        for shown in listed("rentals", &rows, name) {
            for head in ["VEHICLE", "CUSTOMER", "START DATE", "END DATE", "STATUS", "PRICE"] {
                assert!(shown.lines().next().unwrap().contains(head), "{head}: {shown}");
            }
            assert_eq!(shown.matches("COMPLETED  1234.50 USD").count(), 10, "{shown}");
            assert_eq!(shown.matches("  2026-06-01  2026-06-05  ").count(), 20, "{shown}");
            assert_eq!(shown.matches(&name[..13]).count(), 40, "vehicles and customers: {shown}");
            assert_eq!(shown.matches(ID).count(), 20, "{shown}");
            assert_eq!(shown.matches("BK-1").count(), 20, "commands take it in place of the id: {shown}");
        }
    }
    let [_, wide] = listed("rentals", &rows, LONG);
    assert!(wide.contains(LONG) && !wide.contains('…'), "there is room under the row for the id: {wide}");
}

#[test]
fn a_customer_keeps_an_email_address_that_fits() {
    let customer = |email: &str| {
        vec![format!(r#"{{"id":"{ID}","object":"customer","full_name":"{LONG}","email":"{email}","phone":null}}"#)]
    };
    let email = "wolfgang.amadeus.mozart@salzburg-festival.example.com";
    for shown in listed("customers", &customer(email), "") {
        assert!(shown.starts_with("FULL NAME") || shown.starts_with("ID "), "{shown}");
        assert!(shown.contains(email) && shown.contains("Mercedes-Benz ") && shown.contains(ID), "{shown}");
    }
    let [narrow, wide] = listed("customers", &customer(&email.repeat(2)), "");
    assert!(
        narrow.contains("Mercedes-Benz ") && narrow.contains("wolfgang.amadeus") && narrow.contains('…'),
        "{narrow}"
    );
    assert!(wide.contains("Mercedes-Benz ") && wide.contains(&email.repeat(2)), "{wide}");
}

#[test]
fn a_toll_without_a_plate_shows_its_vehicle() {
    let toll = |plate: &str| {
        format!(
            r#"{{"id":"{ID}","object":"toll","occurred_at":"2026-06-02T14:03:00.000Z","plate":{plate},"agency":"MTAB&T","amount":6.94,"currency":"USD","customer_id":"{OTHER}","vehicle_id":"{ID}","plaza":"Robert F. Kennedy Bridge","transponder_number":"00412345678"}}"#
        )
    };
    let read = [toll("null"), toll("null")];
    for shown in listed("tolls", &read, LONG) {
        assert!(!shown.contains("PLATE") && shown.contains("VEHICLE"), "{shown}");
        assert_eq!(shown.matches("6.94 USD").count(), 2, "{shown}");
        assert_eq!(shown.matches("Mercedes-Benz").count(), 4, "vehicles and customers: {shown}");
    }
    let [narrow, _] = listed("tolls", &[toll("null"), toll("\"ABC1234\"")], LONG);
    for text in ["PLATE", "ABC1234", "VEHICLE", "6.94 USD"] {
        assert!(narrow.contains(text), "{text}: {narrow}");
    }
    let [narrow, _] = listed("tolls", &[toll("\"ABC1234\"")], LONG);
    assert!(narrow.contains("ABC1234") && !narrow.contains("VEHICLE"), "a plate is enough: {narrow}");
    let violation = format!(
        r#"{{"id":"{ID}","object":"violation","summons_number":"4631234567","issue_date":"06/02/2026","plate":null,"amount_due":50,"currency":"USD","customer_id":"{OTHER}","vehicle_id":"{ID}"}}"#
    );
    for shown in listed("violations", &[violation], LONG) {
        assert!(shown.contains("4631234567") && shown.contains("50.00 USD") && shown.contains("VEHICLE"), "{shown}");
    }
}

/// 60 characters.
const LONGER: &str = "Maximilian-Alexander von und zu Guttenberg-Hohenstein-Langen";

#[test]
fn a_name_is_cut_only_where_it_does_not_fit() {
    let vehicle = format!(
        r#"{{"id":"{ID}","object":"vehicle","name":"{LONGER}","plate":"KYT7293","daily_rate":89.5,"currency":"USD","status":"available","make":"Mercedes-Benz","model":"Sprinter 2500","year":2024,"plate_state":"NY"}}"#
    );
    let shown = |args: &[&str], columns: u16, rows: &str| {
        let shown = plain(&FakeServer::new(vec![ok(&page(&[rows.to_owned()]))]), args, columns);
        assert!(shown.lines().all(|line| line.chars().count() <= usize::from(columns)), "{columns}: {shown}");
        shown
    };
    for columns in [140, 200] {
        let table = shown(&["vehicles", "list"], columns, &vehicle);
        assert!(table.contains(LONGER) && table.starts_with("ID "), "{columns}: {table}");
    }
    let wide = shown(&["vehicles", "list"], 200, &vehicle);
    assert!(wide.contains("Sprinter 2500  2024  NY"), "there is room for all columns: {wide}");
    let narrow = shown(&["vehicles", "list"], 80, &vehicle);
    assert!(narrow.contains("Maximilian-Alexander von und zu") && narrow.contains('…'), "{narrow}");
    let customer = format!(r#"{{"id":"{ID}","object":"customer","full_name":"{LONGER}","email":"m@example.com"}}"#);
    for columns in [80, 140, 200] {
        let table = shown(&["customers", "list", "--columns", "full_name"], columns, &customer);
        assert_eq!(table, format!("FULL NAME\n{LONGER}\n"), "{columns}");
    }
}

#[test]
fn chosen_columns_fit_the_terminal_and_none_is_left_out() {
    let invoice = format!(
        r#"{{"id":"{ID}","object":"invoice","invoice_number":"INV-2026-0001","buyer_name":"{LONGER}","buyer_email":"maximilian.alexander@guttenberg-hohenstein.example.com","total":1234.5,"currency":"USD","due_date":"2026-06-30","status":"open"}}"#
    );
    let server = || FakeServer::new(vec![ok(&page(std::slice::from_ref(&invoice)))]);
    let args = ["invoices", "list", "--columns", "invoice_number,buyer_name,buyer_email,total,due_date"];
    for columns in [80, 140, 200] {
        let shown = plain(&server(), &args, columns);
        assert!(shown.lines().all(|line| line.chars().count() <= usize::from(columns)), "{columns}: {shown}");
        for text in ["INVOICE NUMBER", "BUYER NAME", "BUYER EMAIL", "TOTAL", "DUE DATE"] {
            assert!(shown.lines().next().unwrap().contains(text), "{columns}: {shown}");
        }
        for text in ["INV-2026-0001 ", "Maximilian-", "maximilian.", "1234.50 USD", "2026-06-30"] {
            assert!(shown.contains(text), "{columns}: {shown}");
        }
        assert_eq!(shown.contains(LONGER), columns == 200, "{columns}: {shown}");
    }
    let ids = plain(&server(), &["invoices", "list", "--columns", "id,buyer_name,id,total"], 80);
    assert_eq!(ids.matches(ID).count(), 2, "an id is never cut, also if the row does not fit: {ids}");
    let piped = server().run(&args).stdout;
    assert!(piped.contains(LONGER) && piped.contains("hohenstein.example.com\t1234.5\t2026-06-30\n"), "{piped}");
}

/// Keys of several organizations often have the same name.
#[test]
fn a_list_of_api_keys_names_their_organizations() {
    let key = format!(
        r#"{{"id":"{ID}","object":"api_key","organization_id":"{OTHER}","name":"website","hint":"rk_live_...4f2a","scope":"read_write","revoked_at":null,"last_used_at":"2026-06-02T14:03:00.000Z","expires_at":"2027-06-02T14:03:00.000Z"}}"#
    );
    let [narrow, wide] = listed("api-keys", &[key], "Sunrise Rentals");
    for (shown, columns) in [(&narrow, 80), (&wide, 140)] {
        assert!(shown.contains("ORGANIZATION") && shown.contains("Sunrise Rentals"), "{columns}: {shown}");
    }
    assert!(wide.contains("LAST USED AT"), "{wide}");
}
