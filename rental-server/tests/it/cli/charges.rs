//! From the files of two agencies to invoices, without an id: the same number twice, and a toll without a number.

use super::{Cli, ran, url};
use crate::{
    operator::import,
    support::{Organization, Server},
};
use serde_json::{Value, json};

fn run(cli: &Cli, organization: &Organization<'_>, words: &str) -> String {
    let mut command = cli.command(&url(organization.server), words);
    let ran = ran(command.env("RENTAL_API_KEY", &organization.write).env("RENTAL_ORGANIZATION", &organization.id));
    assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
    ran.stdout
}

#[test]
fn tolls_of_two_agencies_are_attached_and_billed_in_part_by_the_names_that_the_review_prints() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    organization.post("/v1/customers", &json!({"full_name": "Bob", "email": "bob@example.com"})).ok();
    let file = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n\
                77,2026-06-03T17:00:00Z,MTABT,RKB,KNN7123,NY,,6.94\n\
                77,2026-06-02T17:00:00Z,NJTP,11,KNN7123,NY,,2\n\
                ,2026-06-01T17:00:00Z,NJTP,GWB,KNN7123,NY,,5\n";
    assert_eq!(import(&organization, "tolls", "", file).ok()["created"], 3);
    let shown = run(&cli, &organization, "tolls review --columns number");
    let names: Vec<&str> = shown.lines().skip(1).collect();
    assert_eq!(names, ["KNN7123@2026-06-01T13:00", "NJTP:77", "MTABT:77"]);
    for name in &names {
        run(&cli, &organization, &format!("tolls attach {name} --customer bob@example.com"));
    }
    assert_eq!(run(&cli, &organization, "tolls review --columns number"), "number\n");
    let lines: String = names.iter().map(|name| format!(" --line toll:{name}=1.50")).collect();
    let invoice = run(&cli, &organization, &format!("invoices create --customer bob@example.com{lines} --json"));
    let invoice: Value = serde_json::from_str(&invoice).unwrap();
    assert_eq!(invoice["total"], 4.5);
    let billed: Vec<Value> = organization.get("/v1/tolls").ok()["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|toll| toll["amount_billed"].clone())
        .collect();
    assert_eq!(json!(billed), json!([1.5, 1.5, 1.5]), "each toll is billed for a part");
}
