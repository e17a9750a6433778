//! `draft_all`: invoices for everything that is completed and unbilled.

use super::billing::{bill, settle, toll};
use crate::support::{Organization, Server};
use serde_json::{Value, json};

#[test]
fn completed_rentals_are_drafted_with_their_tolls_and_billed_once() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"daily_rate": 100}));
    let rental = |dates: [&str; 2], more: &Value| {
        let mut fields = json!({"start_date": dates[0], "end_date": dates[1]});
        for (name, value) in more.as_object().unwrap() {
            fields[name] = value.clone();
        }
        let id = organization.rental(&vehicle, fields);
        organization.patch(&format!("/v1/rentals/{id}"), &json!({"status": "COMPLETED"})).ok()
    };
    let first = rental(["2026-06-01", "2026-06-05"], &json!({}));
    let customer = first["customer_id"].as_str().unwrap().to_owned();
    let violation = json!({"summons_number": "1", "amount_due": 50, "customer_id": customer});
    let mine = toll(&organization, &json!(customer), 6.94);
    let fields = json!({"amount": 3, "agency": "MTAB&T", "occurred_on": "2026-07-02", "customer_id": customer});
    let later = organization.recorded("tolls", &fields);
    let undated = organization.recorded("violations", &violation);
    let second = rental(["2026-06-10", "2026-06-11"], &json!({}));
    let path = format!("/admin/v1/organizations/{}/invoices/drafts", organization.id);
    let drafts = || organization.server.admin("GET", &path, &Value::Null).ok()["data"].as_array().unwrap().clone();
    let found = drafts();
    let rentals: Vec<&Value> = found.iter().map(|draft| &draft["rental_id"]).collect();
    assert_eq!(rentals, [&second["id"], &first["id"], &Value::Null]);
    let expected = json!([{"rental_id": first["id"], "amount": 400}, {"toll_id": mine, "amount": 6.94}]);
    assert_eq!((&found[1]["lines"], &found[1]["total"]), (&expected, &json!(406.94)), "not the toll of another month");

    let create = |id: &Value, more: Value| {
        let mut body = more;
        body["rental_id"] = id.clone();
        organization.server.admin("POST", &path, &body)
    };
    let invoice = create(&first["id"], json!({"with_tolls": true, "with_violations": true})).ok();
    assert_eq!((&invoice["total"], &invoice["customer_id"]), (&json!(406.94), &json!(customer)));
    assert_eq!(invoice["rental_id"], first["id"]);
    create(&first["id"], json!({"with_tolls": true})).error(409, "invalid_request_error", "state_conflict");
    assert_eq!(create(&second["id"], json!({})).ok()["total"], 100);
    let left = drafts();
    assert_eq!((left.len(), &left[0]["rental_id"]), (1, &Value::Null), "no rental is left: {left:?}");
    assert_eq!(
        (&left[0]["lines"], &left[0]["tolls"]),
        (&json!([{"toll_id": later, "amount": 3}, {"violation_id": undated, "amount": 50}]), &json!(1))
    );
    assert!(left[0]["problem"].as_str().unwrap().contains("had no rental then"), "{left:?}");
    let open = organization.get("/v1/tolls?billed=false").ok();
    assert_eq!(open["data"].as_array().unwrap().iter().map(|toll| &toll["id"]).collect::<Vec<_>>(), [&json!(later)]);

    settle(&organization, invoice["id"].as_str().unwrap(), "void").ok();
    assert_eq!(drafts()[0]["rental_id"], first["id"], "a void invoice bills nothing");
    assert_eq!(create(&json!("x"), json!({})).bad_fields()[0].0, "rental_id");
    assert_eq!(organization.server.admin("POST", &path, &json!({"with_tolls": true})).status, 400);
}

#[test]
fn a_completed_rental_without_a_price_is_drafted_with_the_reason() {
    let organization = Server::shared().organization();
    let rental = organization.rental(&organization.vehicle(json!({})), json!({}));
    organization.patch(&format!("/v1/rentals/{rental}"), &json!({"status": "COMPLETED"})).ok();
    let path = format!("/admin/v1/organizations/{}/invoices/drafts", organization.id);
    let draft = &organization.server.admin("GET", &path, &Value::Null).ok()["data"][0];
    assert!(draft["problem"].as_str().unwrap().contains("final_price"), "{draft}");
    let refused = organization.server.admin("POST", &path, &json!({"rental_id": rental}));
    refused.error(409, "invalid_request_error", "state_conflict");
}

/// A completed rental of a new customer in June, and the id of the customer.
fn completed(organization: &Organization, vehicle: &str, days: [&str; 2], price: f64) -> (String, String) {
    let fields = json!({
        "start_date": days[0], "end_date": days[1], "final_price": price, "status": "COMPLETED",
        "activated_at": format!("{}T00:00:00Z", days[0]), "completed_at": format!("{}T23:00:00Z", days[1]),
    });
    let id = organization.rental(vehicle, fields);
    let customer = organization.get(&format!("/v1/rentals/{id}")).ok()["customer_id"].as_str().unwrap().to_owned();
    (id, customer)
}

/// What a run over all drafts bills, `limit` of them to a page: the rental, the number of lines and the total of each invoice.
/// A dry run creates none.
fn draft_all(organization: &Organization, limit: usize, dry_run: bool) -> Vec<(String, usize, f64)> {
    let path = format!("/admin/v1/organizations/{}/invoices/drafts", organization.id);
    let (mut run, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = organization.server.admin("GET", &format!("{path}?limit={limit}{cursor}"), &Value::Null).ok();
        let data = page["data"].as_array().unwrap();
        assert!(data.len() <= limit, "{} drafts on a page of {limit}", data.len());
        for draft in data.iter().filter(|draft| draft["problem"].is_null()) {
            let body = json!({"rental_id": draft["rental_id"], "with_tolls": true, "with_violations": true});
            let made = if dry_run { draft.clone() } else { organization.server.admin("POST", &path, &body).ok() };
            let lines = made["lines"].as_array().unwrap().len();
            run.push((draft["rental_id"].as_str().unwrap().to_owned(), lines, made["total"].as_f64().unwrap()));
        }
        let Some(next) = page["next_cursor"].as_str() else { return run };
        cursor = format!("&starting_after={next}");
    }
}

#[test]
fn everything_completed_and_unbilled_is_drafted_also_of_rentals_whose_price_is_billed() {
    let organization = Server::shared().organization();
    let header = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n";
    let file =
        |number: &str, amount: &str| format!("{header}{number},2026-06-02T14:00:00Z,A,,P{number},NY,,{amount}\n");
    let import = |number: &str, amount: &str| super::import(&organization, "tolls", "", &file(number, amount)).ok();
    let attach = || {
        let path = format!("/admin/v1/organizations/{}/tolls/suggestions", organization.id);
        organization.server.admin("POST", &path, &json!({})).ok();
    };
    let rental = |number: &str, price: f64| {
        let vehicle = organization.vehicle(json!({"plate": format!("P{number}"), "plate_state": "NY"}));
        completed(&organization, &vehicle, ["2026-06-01", "2026-06-05"], price)
    };
    let [(prepaid, payer), (free, _), (late, _), (corrected, _), (ticketed, driver)] =
        [("1", 100.0), ("2", 0.0), ("3", 50.0), ("4", 60.0), ("5", 0.0)].map(|(number, price)| rental(number, price));
    bill(&organization, &payer, &json!([{"rental_id": prepaid}])).ok();
    ["1", "2", "4"].iter().for_each(|number| drop(import(number, "7.00")));
    organization.recorded(
        "violations",
        &json!({"summons_number": "5", "amount_due": 65, "issued_on": "2026-06-03", "customer_id": driver}),
    );
    attach();
    let invoice = |rental: &String, lines: usize, total: f64| (rental.clone(), lines, total);
    let first = [
        invoice(&corrected, 2, 67.0),
        invoice(&late, 1, 50.0),
        invoice(&ticketed, 1, 65.0),
        invoice(&free, 1, 7.0),
        invoice(&prepaid, 1, 7.0),
    ];
    assert_eq!(draft_all(&organization, 2, true), first);
    assert_eq!(draft_all(&organization, 2, false), first);
    assert_eq!(draft_all(&organization, 20, true), [], "nothing is left");

    import("3", "9.00");
    import("4", "9.00");
    attach();
    let second = [invoice(&corrected, 1, 2.0), invoice(&late, 1, 9.0)];
    assert_eq!(draft_all(&organization, 1, true), second, "a late toll, and what a corrected one costs more");
    assert_eq!(draft_all(&organization, 1, false), second);
    assert_eq!(draft_all(&organization, 1, true), []);
}

#[test]
fn a_rental_with_more_tolls_than_an_invoice_can_have_is_billed_to_the_last_one() {
    let organization = Server::shared().organization();
    let settings = json!({"toll_fee": 0.37, "tax_name": "VAT", "tax_rate": 8.875});
    organization.server.admin("PATCH", &format!("/admin/v1/organizations/{}", organization.id), &settings).ok();
    let vehicle = organization.vehicle(json!({"plate": "BIG", "plate_state": "NY"}));
    let (old, customer) = completed(&organization, &vehicle, ["2026-05-01", "2026-05-20"], 1000.0);
    let fields = json!({
        "customer_id": customer, "vehicle_id": vehicle, "start_date": "2026-06-01", "end_date": "2026-06-20",
        "final_price": 1000, "status": "COMPLETED",
        "activated_at": "2026-06-01T00:00:00Z", "completed_at": "2026-06-20T23:00:00Z",
    });
    let new = organization.post("/v1/rentals", &fields).id();
    let mut file =
        String::from("transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n");
    for number in 0..1250 {
        let (month, day) = (5 + number % 2, 2 + number / 80);
        file += &format!(
            "T{number},2026-{month:02}-{day:02}T{:02}:{:02}:00Z,A,P,BIG,NY,,1.01\n",
            4 + number % 80 / 10,
            number % 10 * 6
        );
    }
    super::import(&organization, "tolls", "", &file).ok();
    let suggestions = format!("/admin/v1/organizations/{}/tolls/suggestions", organization.id);
    let mut body = json!({"limit": 100});
    loop {
        let page = organization.server.admin("POST", &suggestions, &body).ok();
        let Some(next) = page["next_cursor"].as_str() else { break };
        body["starting_after"] = json!(next);
    }
    let dry = draft_all(&organization, 3, true);
    assert_eq!(dry.len(), 8, "four invoices for each of two rentals: {dry:?}");
    assert_eq!(dry.iter().filter(|(rental, ..)| *rental == old).count(), 4);
    assert_eq!(dry.iter().filter(|(rental, ..)| *rental == new).count(), 4);
    // A line for each rental and each toll, and one with the fees of each invoice.
    assert_eq!(dry.iter().map(|(_, lines, _)| lines).sum::<usize>(), 2 + 1250 + 8);
    assert_eq!(draft_all(&organization, 3, false), dry, "the real run");
    assert_eq!(organization.get("/v1/tolls?billed=false").ok()["data"], json!([]));
    assert_eq!(draft_all(&organization, 3, true), []);
}

#[test]
fn a_toll_is_drafted_once_and_with_the_rental_of_its_vehicle_and_the_real_run_bills_the_same() {
    let organization = Server::shared().organization();
    let [first_car, second_car, spare] = [(); 3].map(|()| organization.vehicle(json!({})));
    let (first, customer) = completed(&organization, &first_car, ["2026-06-01", "2026-06-05"], 100.0);
    let of_same = |vehicle: &str, days: [&str; 2], price: u32| {
        let fields = json!({
            "customer_id": customer, "vehicle_id": vehicle, "start_date": days[0], "end_date": days[1],
            "final_price": price, "status": "COMPLETED",
        });
        organization.post("/v1/rentals", &fields).id()
    };
    let second = of_same(&second_car, ["2026-06-01", "2026-06-05"], 200);
    let extension = of_same(&second_car, ["2026-06-05", "2026-06-09"], 300);
    let by_hand = |vehicle: &Value, day: &str, amount: u32| {
        let toll = json!({"amount": amount, "agency": "A", "occurred_on": day, "vehicle_id": vehicle, "customer_id": customer});
        organization.recorded("tolls", &toll)
    };
    by_hand(&json!(first_car), "2026-06-03", 7);
    by_hand(&json!(second_car), "2026-06-05", 11);
    by_hand(&Value::Null, "2026-06-08", 13);
    // A person said that the customer pays the toll of another car: it belongs to the last rental of then.
    by_hand(&json!(spare), "2026-06-03", 17);
    let expected = [(extension, 3, 324.0), (second, 2, 217.0), (first, 2, 107.0)];
    assert_eq!(draft_all(&organization, 20, true), expected);
    assert_eq!(draft_all(&organization, 20, false), expected);
    assert_eq!(organization.get("/v1/tolls?billed=false").ok()["data"], json!([]));
}

/// A person said who pays. So the toll of another car belongs to the rental that the customer had then, and one of a time without
/// a rental is billed when somebody asks for it, with the fee and the tax of the organization.
#[test]
fn what_a_person_attached_is_billed_with_the_rental_of_then_or_by_itself() {
    let organization = Server::shared().organization();
    let settings = json!({"toll_fee": 1.5, "tax_name": "VAT", "tax_rate": 10});
    organization.server.admin("PATCH", &format!("/admin/v1/organizations/{}", organization.id), &settings).ok();
    let [own, other] = [(); 2].map(|()| organization.vehicle(json!({"daily_rate": 100})));
    let (rental, customer) = completed(&organization, &own, ["2026-06-01", "2026-06-05"], 400.0);
    // A cancelled booking of the other car takes nothing.
    let booking = json!({"customer_id": customer, "vehicle_id": other, "start_date": "2026-06-01", "end_date": "2026-07-05", "status": "CANCELLED"});
    organization.post("/v1/rentals", &booking).ok();
    let toll = |day: &str, amount: u32| {
        let fields =
            json!({"amount": amount, "agency": "A", "occurred_on": day, "customer_id": customer, "vehicle_id": other});
        organization.recorded("tolls", &fields)
    };
    let (during, after) = (toll("2026-06-02", 3), toll("2026-07-02", 5));
    let path = format!("/admin/v1/organizations/{}/invoices/drafts", organization.id);
    let drafts = || organization.server.admin("GET", &path, &Value::Null).ok()["data"].as_array().unwrap().clone();
    let found = drafts();
    let tolls = |draft: &Value| {
        draft["lines"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|line| line["toll_id"].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert_eq!((found.len(), &found[0]["rental_id"], tolls(&found[0])), (2, &json!(rental), vec![during]));
    assert_eq!((&found[1]["rental_id"], tolls(&found[1])), (&Value::Null, vec![after]));

    let create = |body: Value| organization.server.admin("POST", &path, &body);
    for body in [json!({"with_tolls": true}), json!({"rental_id": rental, "customer_id": customer})] {
        assert_eq!(create(body).bad_fields()[0].0, "rental_id");
    }
    assert_eq!(create(json!({"customer_id": rental, "with_tolls": true})).bad_fields()[0].0, "customer_id");
    let asked = json!({"customer_id": customer, "with_tolls": true, "with_violations": true});
    let invoice = create(asked.clone()).ok();
    assert_eq!((&invoice["rental_id"], &invoice["total"]), (&Value::Null, &json!(7.15)), "5 + 1.50 + 10 %: {invoice}");
    create(asked).error(409, "invalid_request_error", "state_conflict");
    create(json!({"rental_id": rental, "with_tolls": true})).ok();
    assert_eq!(drafts(), [] as [Value; 0]);
}

#[test]
fn an_invoice_right_after_a_correction_does_not_bill_the_former_customer() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"plate": "LATE1", "plate_state": "NY"}));
    let (early, _) = completed(&organization, &vehicle, ["2026-06-01", "2026-06-10"], 90.0);
    let (late, driver) = completed(&organization, &vehicle, ["2026-06-11", "2026-06-15"], 50.0);
    let header = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n";
    let rows: Vec<String> =
        (0..150).map(|n| format!("L{n},2026-06-08T{:02}:{:02}:07Z,A,,LATE1,NY,,5\n", n / 60, n % 60)).collect();
    super::import(&organization, "tolls", "", &(header.to_owned() + &rows.concat())).ok();
    let path = format!("/admin/v1/organizations/{}/tolls/suggestions", organization.id);
    organization.server.admin("POST", &path, &json!({})).ok();
    organization.patch(&format!("/v1/rentals/{early}"), &json!({"completed_at": "2026-06-05T16:00:00Z"})).ok();
    organization.patch(&format!("/v1/rentals/{late}"), &json!({"activated_at": "2026-06-06T16:00:00Z"})).ok();
    let drafts = format!("/admin/v1/organizations/{}/invoices/drafts", organization.id);
    let make =
        |rental| organization.server.admin("POST", &drafts, &json!({"rental_id": rental, "with_tolls": true})).ok();
    assert_eq!(make(&early)["total"], 90, "the tolls are the other customer's");
    // What is not attached yet comes with the next invoice.
    let invoice = make(&late);
    assert!(invoice["customer_id"] == driver && invoice["total"].as_f64().unwrap() >= 50.0, "{invoice}");
}

#[test]
fn the_fee_of_a_void_invoice_is_billed_again_also_when_the_toll_was_corrected_meanwhile() {
    let organization = Server::shared().organization();
    let path = format!("/admin/v1/organizations/{}", organization.id);
    organization.server.admin("PATCH", &path, &json!({"toll_fee": 1.5})).ok();
    let vehicle = organization.vehicle(json!({"plate": "FEE1", "plate_state": "NY"}));
    let (rental, _) = completed(&organization, &vehicle, ["2026-06-01", "2026-06-05"], 100.0);
    let header = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n";
    let import = |amount: u32| {
        let row = format!("F1,2026-06-02T14:00:00Z,A,,FEE1,NY,,{amount}\n");
        super::import(&organization, "tolls", "", &(header.to_owned() + &row)).ok();
    };
    let bill = || {
        let body = json!({"rental_id": rental, "with_tolls": true});
        organization.server.admin("POST", &format!("{path}/invoices/drafts"), &body).ok()
    };
    import(5);
    organization.server.admin("POST", &format!("{path}/tolls/suggestions"), &json!({})).ok();
    let first = bill();
    assert_eq!(first["total"], 106.5);
    import(7);
    assert_eq!(bill()["total"], 2, "the first invoice has the fee");
    settle(&organization, first["id"].as_str().unwrap(), "void").ok();
    assert_eq!(bill()["total"], 106.5, "nobody has it any more");
}
