use super::*;
use crate::{
    resources::{customer, rental},
    schema::{filter, index},
};
use proptest::prelude::*;

fn params(raw: &str) -> Vec<(String, &'static str)> {
    match ListQuery::parse(raw, &rental::SPEC) {
        Err(Error::Invalid(errors)) => {
            errors.listed().iter().map(|error| (error.param.clone(), error.code.as_str())).collect()
        }
        other => panic!("{raw}: {other:?}"),
    }
}

#[test]
fn a_limit_outside_1_to_100_is_refused() {
    for bad in ["0", "101", "abc", "", "-1", "+5", "1.5", "99999999999999999999", "%31%30%31"] {
        assert_eq!(params(&format!("limit={bad}")), [("limit".to_owned(), "parameter_invalid")], "{bad}");
    }
    assert_eq!(ListQuery::parse("limit=%31", &rental::SPEC).map(|query| query.limit), Ok(1));
    assert_eq!(ListQuery::parse("", &rental::SPEC).map(|query| query.limit), Ok(20));
}

#[test]
fn repeated_and_unknown_parameters_are_named() {
    assert_eq!(params("limit=1&limit=1"), [("limit".to_owned(), "parameter_duplicate")]);
    assert_eq!(
        params("stauts=NEW&%ff=1"),
        [("%ff".to_owned(), "parameter_invalid"), ("stauts".to_owned(), "parameter_unknown")]
    );
    assert_eq!(params("status=new"), [("status".to_owned(), "parameter_invalid")]);
}

#[test]
fn a_plus_sign_is_a_plus_sign() {
    let query = ListQuery::parse("email=a+b@example.com", &customer::SPEC).unwrap();
    assert_eq!(query.filters, [Some("a+b@example.com".to_owned())]);
}

#[test]
fn ids_have_one_spelling() {
    let text = "0190d0f2-7c3a-7cc0-8000-00000000000a";
    assert!(id(text).is_some());
    for other in
        [text.to_uppercase(), text.replace('-', ""), format!("{{{text}}}"), format!("urn:uuid:{text}"), String::new()]
    {
        assert_eq!(id(&other), None, "{other}");
    }
}

#[test]
fn a_combination_without_an_index_is_refused_and_the_others_are_named() {
    static SPEC: ResourceSpec = ResourceSpec {
        filters: &[filter("status", "status"), filter("customer", "customer_id")],
        indexes: &[index(1, &["status"]), index(5, &["customer_id"])],
        ..rental::SPEC
    };
    assert!(ListQuery::parse("customer=x", &SPEC).is_ok() && ListQuery::parse("status=NEW", &SPEC).is_ok());
    let Err(Error::Invalid(errors)) = ListQuery::parse("customer=x&status=NEW", &SPEC) else { panic!("refused") };
    let message = &errors.listed()[0].message;
    assert!(message.starts_with("`status` cannot be combined with `customer`; this list takes `status`, `customer`,"));
    assert!(!message.contains("`status` with `customer`"), "{message}");
}

fn message(raw: &str, spec: &ResourceSpec) -> String {
    match ListQuery::parse(raw, spec) {
        Err(Error::Invalid(errors)) => errors.listed()[0].message.clone(),
        other => panic!("{raw}: {other:?}"),
    }
}

#[test]
fn a_range_by_update_stands_alone() {
    const BOUND: &str = "2026-05-05T09:30:00Z";
    for (raw, param, other) in [
        (format!("updated[gte]={BOUND}&status=NEW"), "updated[gte]", "`status`"),
        (format!("updated[lt]={BOUND}&vehicle=x&customer=y"), "updated[lt]", "`customer` and `vehicle`"),
        (format!("updated[lt]={BOUND}&created[gte]={BOUND}"), "updated[lt]", "`created[gte]`"),
    ] {
        assert_eq!(params(&raw), [(param.to_owned(), "parameter_invalid")]);
        let text = message(&raw, &rental::SPEC);
        assert!(text.contains(&format!("cannot be combined with {other}; ")), "{text}");
        assert!(text.contains("`status` with `vehicle`") && text.contains("or `updated` alone"), "{text}");
    }
    assert!(ListQuery::parse(&format!("updated[gte]={BOUND}&updated[lt]={BOUND}&limit=1"), &rental::SPEC).is_ok());
    assert_eq!(params("updated[gte]=yesterday"), [("updated[gte]".to_owned(), "parameter_invalid")]);
    assert_eq!(params("updated[gt]=x"), [("updated[gt]".to_owned(), "parameter_unknown")]);
}

#[test]
fn a_cursor_of_another_kind_of_list_is_refused_and_says_so() {
    const RANGE: &str = "updated[gte]=2026-05-05T09:30:00Z";
    let id = Uuid::from_u128(7);
    let record = |spec: &ResourceSpec| Record {
        key: key::record(OrganizationId::nil(), spec, id),
        revision: 1,
        value: Bytes::from_static(b"{\"updated_at\":\"2026-05-05T09:30:00.123Z\"}"),
    };
    let cursor = |spec: &ResourceSpec| {
        let query = ListQuery::parse(RANGE, spec).unwrap();
        query.range.unwrap().cursor(spec, &record(spec)).unwrap()
    };
    let (own, other) = (cursor(&rental::SPEC), cursor(&customer::SPEC));
    let after = |text: &str| format!("{RANGE}&starting_after={text}");
    let read = ListQuery::parse(&after(&own), &rental::SPEC).unwrap().range.unwrap();
    assert_eq!(read.cursor(&rental::SPEC, &record(&rental::SPEC)).unwrap(), own);
    assert!(read.after.is_some());
    for (raw, words) in [
        (after(&id.to_string()), "is the cursor of a list in order of creation"),
        (after(&other), "is the cursor of another list"),
        (format!("starting_after={own}"), "ordered by a time or date; send `updated` or"),
        (after("x"), "must be the `next_cursor` of an earlier page"),
        (after(&own.to_uppercase()), "must be the `next_cursor` of an earlier page"),
        (after(&format!("ff{}", &own[2..])), "must be the `next_cursor` of an earlier page"),
        (after(&own[2..]), "must be the `next_cursor` of an earlier page"),
    ] {
        let text = message(&raw, &rental::SPEC);
        assert!(text.contains(words), "{raw}: {text}");
    }
}

#[test]
fn an_id_that_cannot_exist_matches_nothing() {
    let query = ListQuery::parse("customer=cus_123", &rental::SPEC).unwrap();
    assert!(query.span(OrganizationId::nil(), &rental::SPEC).is_none());
}

proptest! {
    #[test]
    fn no_query_makes_the_parser_panic(raw in "\\PC{0,200}") {
        let _ = ListQuery::parse(&raw, &rental::SPEC);
        let _ = no_parameters(&raw);
    }

    #[test]
    fn a_cursor_is_read_back_as_the_same_position(n: u128) {
        let uuid = Uuid::from_u128(n);
        let query = ListQuery::parse(&format!("starting_after={uuid}"), &rental::SPEC).unwrap();
        prop_assert_eq!(query.starting_after, Some(uuid));
    }
}
