//! What names a row that is not there, found by a check.

use crate::damage::{commit, one_wrong, organization_of, record_of};
use rental_core::{
    resources::{Resource, customer::Customer, rental},
    rows::Tag,
    store::{Prior, Write},
    value::Id,
};

#[test]
fn an_object_that_names_what_is_not_there_is_found() {
    one_wrong(
        |path, rows| {
            let rental = record_of(rows, rental::SPEC.tag);
            let named: serde_json::Value = serde_json::from_slice(&rental.value).unwrap();
            let id = Id::parse(named["customer_id"].as_str().unwrap()).unwrap();
            let lost = Customer::key(organization_of(rows), id);
            let entries = rows.iter().filter(|row| row.key.id() == Some(id.uuid()) && row.value.is_empty());
            let entries: Vec<Write> = entries.map(|row| Write::Delete(row.key.clone())).collect();
            commit(path, entries.into_iter().chain([Write::Delete(lost)]).collect());
            rental.key.clone()
        },
        "its `customer_id` is customer",
    );
}

#[test]
fn a_hold_whose_length_is_not_in_the_calendar_of_its_vehicle_is_found() {
    one_wrong(
        |path, rows| {
            let of = |wanted: Tag| rows.iter().find(|row| row.key.as_bytes()[0] == wanted as u8).unwrap();
            let calendar = of(Tag::Calendar);
            let bits = Write::Put(calendar.key.clone(), calendar.revision + 1, vec![0; 4].into(), Prior::Any);
            commit(path, vec![bits]);
            of(Tag::Hold).key.clone()
        },
        "does not have its length",
    );
}
