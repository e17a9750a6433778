use super::{Verb, fields::default_of};
use crate::{
    error::Error,
    resources::{customer, lead, rental, specs, vehicle},
    schema::{Fields, ResourceSpec},
    value::FieldValue,
};

fn errors(body: &str, spec: &'static ResourceSpec, verb: Verb) -> Vec<(String, &'static str)> {
    match Fields::parse(body.as_bytes(), spec, verb, 2) {
        Err(Error::Invalid(errors)) => {
            errors.listed().iter().map(|error| (error.param.clone(), error.code.as_str())).collect()
        }
        other => panic!("expected bad fields, got {other:?}"),
    }
}

fn json(fields: &Fields, name: &str) -> String {
    serde_json::to_string(fields.get(name).unwrap()).unwrap()
}

#[test]
fn every_bad_field_is_reported_at_once() {
    let body = r#"{"name":" ","year":1700,"daily_rate":1.001,"colour":"red","id":"x","year":1}"#;
    let found = errors(body, &vehicle::SPEC, Verb::Create);
    let expected = [
        ("name", "parameter_invalid"),
        ("year", "parameter_invalid"),
        ("daily_rate", "parameter_invalid"),
        ("colour", "parameter_unknown"),
        ("id", "parameter_unknown"),
        ("year", "parameter_duplicate"),
    ];
    assert_eq!(found, expected.map(|(param, code)| (param.to_owned(), code)));
}

#[test]
fn the_default_of_every_field_passes_its_own_check() {
    for field in specs().flat_map(|spec| spec.fields) {
        let value = default_of(field).map(|value| serde_json::to_string(&value).unwrap());
        assert_eq!(value.as_deref(), field.default, "{}", field.name);
    }
}

#[test]
fn a_near_miss_is_suggested() {
    let Err(Error::Invalid(errors)) = Fields::parse(br#"{"name":"a","dayly_rate":1}"#, &vehicle::SPEC, Verb::Create, 2)
    else {
        panic!("expected an unknown field")
    };
    assert!(errors.listed()[0].message.contains("did you mean `daily_rate`"), "{}", errors.listed()[0].message);
}

#[test]
fn null_is_absent_on_create_and_clears_on_update() {
    let created = Fields::parse(
        br#"{"full_name":"Ada","email":null,"preferred_language":null}"#,
        &customer::SPEC,
        Verb::Create,
        2,
    );
    assert!(!created.unwrap().has("email"));
    let updated = Fields::parse(br#"{"email":null}"#, &customer::SPEC, Verb::Update, 2).unwrap();
    assert!(matches!(updated.get("email"), Some(FieldValue::Null)));
    assert_eq!(
        errors(r#"{"full_name":null}"#, &customer::SPEC, Verb::Update),
        [("full_name".to_owned(), "parameter_invalid")]
    );
    assert_eq!(
        errors(r#"{"full_name":null}"#, &customer::SPEC, Verb::Create),
        [("full_name".to_owned(), "parameter_missing")]
    );
}

#[test]
fn what_is_not_one_json_object_is_malformed_and_says_where() {
    for body in
        ["[]", "null", "{", "{}x", "{\"name\":}", "\"a\"", "{\"name\":\"\u{1}\"}", "{'name':1}", "\u{feff}{}", " "]
    {
        let result = Fields::parse(body.as_bytes(), &vehicle::SPEC, Verb::Create, 2);
        assert!(matches!(&result, Err(Error::Malformed(message)) if message.contains("line 1")), "{body}: {result:?}");
    }
    assert!(matches!(Fields::parse(b"{\"name\":\"\xff\"}", &vehicle::SPEC, Verb::Create, 2), Err(Error::Malformed(_))));
    let deep = format!("{{\"name\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Fields::parse(deep.as_bytes(), &vehicle::SPEC, Verb::Create, 2).is_err());
}

#[test]
fn raw_data_is_kept_byte_for_byte() {
    let raw = "{ \"b\" : 1.50,\t\"a\":[1e2, \"\\u00e9\"] }";
    let fields = Fields::parse(format!("{{\"raw_data\": {raw} }}").as_bytes(), &lead::SPEC, Verb::Create, 2).unwrap();
    assert_eq!(json(&fields, "raw_data"), raw);
}

#[test]
fn duplicate_keys_inside_raw_data_are_named_with_their_path() {
    let found = errors(r#"{"raw_data":{"form":{"a":1,"a":2}}}"#, &lead::SPEC, Verb::Create);
    assert_eq!(found, [("raw_data.form.a".to_owned(), "parameter_duplicate")]);
}

#[test]
fn raw_data_is_an_object_of_at_most_64_kib_and_bounded_depth() {
    for bad in [
        "[]".to_owned(),
        "1".to_owned(),
        format!("{{\"a\":\"{}\"}}", "x".repeat(65_536)),
        format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200)),
    ] {
        assert_eq!(
            errors(&format!("{{\"raw_data\":{bad}}}"), &lead::SPEC, Verb::Create),
            [("raw_data".to_owned(), "parameter_invalid")]
        );
    }
    let exact = format!("{{\"a\":\"{}\"}}", "x".repeat(65_536 - 8));
    assert!(Fields::parse(format!("{{\"raw_data\":{exact}}}").as_bytes(), &lead::SPEC, Verb::Create, 2).is_ok());
}

#[test]
fn values_are_stored_in_their_canonical_form() {
    let body = br#"{"customer_id":"c","vehicle_id":"v","final_price":89.50,"status":"NEW"}"#;
    let fields = Fields::parse(body, &rental::SPEC, Verb::Create, 2).unwrap();
    assert_eq!(json(&fields, "final_price"), "89.5");
    assert_eq!(
        fields.references().into_iter().map(|(field, ..)| field).collect::<Vec<_>>(),
        ["customer_id", "vehicle_id"]
    );
}

#[test]
fn a_field_of_the_wrong_type_says_what_it_must_be() {
    for (body, words) in [
        (r#"{"name":1}"#, "a string"),
        (r#"{"name":"a","year":"2020"}"#, "whole number"),
        (r#"{"name":"a","year":2020.5}"#, "whole number"),
        (r#"{"name":"a","daily_rate":"1"}"#, "a number"),
        (r#"{"name":"a","status":"rentd"}"#, "did you mean `rented`"),
    ] {
        let Err(Error::Invalid(errors)) = Fields::parse(body.as_bytes(), &vehicle::SPEC, Verb::Create, 2) else {
            panic!("{body}")
        };
        assert!(errors.listed()[0].message.contains(words), "{body}: {}", errors.listed()[0].message);
    }
}
