//! The transponder, plate and number of a statement in another spelling than that of the vehicle or of an earlier statement.

use super::{all, counts, import};
use crate::support::{Server, percent_encode, rules};
use serde_json::json;

const HEAD: &str = "transaction_id,occurred_at,agency,plate,plate_state,transponder_number,amount\n";

#[test]
fn a_toll_finds_its_vehicle_by_a_transponder_or_plate_in_every_spelling() {
    for (field, of_vehicle, spellings, others) in [
        ("transponder_number", "HCTR09000001", ["hctr 0900 0001", "HCTR-09000001"], ["09000001", "HCTR09000010"]),
        ("transponder_number", "tex.10020030", ["TEX.10020030", " Tex.1002 0030"], ["10020030", "TEX.10020031"]),
        ("transponder_number", "123456", ["123 456", "0123456"], ["123457", "1234567"]),
        ("transponder_number", "00412345678", ["12345678", "412345678"], ["12345679", "HCTR12345678"]),
        ("plate", "AÖ-AB 123", ["AO\u{308} AB 123", "ao\u{308}ab123"], ["AO AB 123", "AÖ AB 124"]),
        ("plate", "ABC\u{327}123", ["ABÇ123", "abç 123"], ["ABC123", "ABC"]),
    ] {
        let organization = Server::shared().organization();
        let vehicle = organization.vehicle(json!({field: of_vehicle}));
        let column = |spelling: &str| match field {
            "plate" => format!("{spelling},,"),
            _ => format!(",,{spelling}"),
        };
        let row = |(n, spelling): (usize, &&str)| {
            format!("T{n},2026-06-0{}T12:00:00Z,HCTRA,{},1.50\n", n + 1, column(spelling))
        };
        let rows: Vec<String> = [of_vehicle].iter().chain(&spellings).chain(&others).enumerate().map(row).collect();
        let reply = import(&organization, "tolls", "", &format!("{HEAD}{}", rows.concat())).ok();
        assert_eq!(counts(&reply)[0], 5, "{reply}");
        for toll in all(&organization, "tolls") {
            let is_found = !others.contains(&toll[field].as_str().unwrap());
            assert_eq!(toll["vehicle_id"].as_str(), is_found.then_some(vehicle.as_str()), "{toll}");
        }
    }
}

#[test]
fn a_transponder_with_letters_moves_to_the_vehicle_that_gets_it() {
    let organization = Server::shared().organization();
    let [first, second] =
        [json!({"transponder_number": "HCTR09000001"}), json!({})].map(|one| organization.vehicle(one));
    let file = format!("{HEAD}T1,2026-06-02T12:00:00Z,HCTRA,,,HCTR09000001,1.50\n");
    assert_eq!(counts(&import(&organization, "tolls", "", &file).ok())[0], 1);
    organization.patch(&format!("/v1/vehicles/{second}"), &json!({"transponder_number": "hctr 09000001"})).ok();
    organization.patch(&format!("/v1/vehicles/{first}"), &json!({"transponder_number": null})).ok();
    let path = format!("/admin/v1/vehicles/{first}/assignments");
    let assigned = organization.server.admin("GET", &path, &json!(null)).ok()["assignments"].clone();
    assert_eq!((&assigned[0]["number"], assigned[0]["to"].is_string()), (&json!("HCTR09000001"), true), "{assigned}");
    assert_eq!(all(&organization, "tolls")[0]["vehicle_id"], first, "it had the transponder in June");
}

#[test]
fn a_number_of_an_agency_is_one_composed_and_decomposed() {
    let organization = Server::shared().organization();
    let row = |agency: &str, number: &str| format!("{HEAD}{number},2026-06-02T12:00:00Z,{agency},AB 123,,,1.50\n");
    let (nfc, nfd) = (row("Péage Sud", "É-77"), row("PE\u{301}AGE SUD", "E\u{301}-77"));
    assert_eq!(counts(&import(&organization, "tolls", "", &nfc).ok())[..3], [1, 0, 0]);
    assert_eq!(counts(&import(&organization, "tolls", "", &nfd).ok())[..3], [0, 0, 1]);
    for number in ["É-77", "E\u{301}-77"] {
        let query = format!("&transaction_id={}", percent_encode(number));
        assert_eq!(rules::walk(&organization, "tolls", &query, 10).len(), 1, "{number}");
    }
}
