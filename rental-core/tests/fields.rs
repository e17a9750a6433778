//! The structs of resources are made of checked values as they are made of their JSON.

use rental_core::{
    request::body::Verb,
    resources::{
        Resource, api_key::ApiKey, customer::Customer, invoice::Invoice, lead::Lead, operator::Operator,
        organization::Organization, rental::Rental, toll::Toll, vehicle::Vehicle, violation::Violation,
        webhook_endpoint::WebhookEndpoint,
    },
    schema::{Fields, Presence},
    value::{FieldValue, FromFields},
};
use std::borrow::Cow;

/// The JSON of an object from the examples of its fields. With `changed`, that field is null if it can be.
fn sample<T: Resource>(changed: Option<&str>) -> String {
    let members = T::SPEC.fields.iter().map(|field| {
        let empty = field.nullable && changed == Some(field.name);
        format!("\"{}\":{}", field.name, if empty { "null" } else { field.example })
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn json<T: Resource>(object: &T) -> String {
    serde_json::to_string(object).expect("JSON")
}

#[track_caller]
fn parse<T: Resource>(body: &str, verb: Verb) -> Fields {
    let fields = Fields::parse(body.as_bytes(), T::SPEC, verb, 2);
    fields.unwrap_or_else(|error| panic!("{}: {error:?}", T::SPEC.object))
}

#[track_caller]
fn check<T: Resource + FromFields>() {
    let whole: T = parse::<T>(&sample::<T>(None), Verb::Whole).object(&|_| None).expect("a whole object");
    assert_eq!(json(&whole), sample::<T>(None));
    for field in T::SPEC.fields.iter().filter(|field| field.update != Presence::Never) {
        let value = if field.nullable { "null" } else { field.example };
        let sent = parse::<T>(&format!("{{\"{}\":{value}}}", field.name), Verb::Update);
        let mut object: T = serde_json::from_str(&sample::<T>(None)).expect("an object");
        sent.apply(&mut object).expect("fields of the object");
        assert_eq!(json(&object), sample::<T>(Some(field.name)), "{}", field.name);
        // Back to the example: a value of the field's own type.
        parse::<T>(&format!("{{\"{}\":{}}}", field.name, field.example), Verb::Update)
            .apply(&mut object)
            .expect("fields of the object");
        assert_eq!(json(&object), sample::<T>(None), "{}", field.name);
    }
}

#[test]
fn an_object_of_checked_values_is_that_of_its_json() {
    check::<Vehicle>();
    check::<Customer>();
    check::<Rental>();
    check::<Invoice>();
    check::<Toll>();
    check::<Violation>();
    check::<Lead>();
    check::<Organization>();
    check::<ApiKey>();
    check::<Operator>();
    check::<WebhookEndpoint>();
}

#[test]
fn a_value_of_another_type_names_its_field() {
    let mut customer: Customer = serde_json::from_str(&sample::<Customer>(None)).unwrap();
    assert_eq!(customer.set("email", &FieldValue::Boolean(true)), Err("email"));
    assert_eq!(customer.set("colour", &FieldValue::Null), Err("colour"));
    let mut values = [("id", FieldValue::Null)].into_iter();
    let none = Customer::from_fields(&mut || values.next().map(|(name, value)| (name, Cow::Owned(value))));
    assert_eq!(none.err(), Some("id"));
}
