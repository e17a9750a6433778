//! The query of a list: what is accepted is understood the same way when it is printed and read again, and never
//! reaches out of its organization.

use crate::choose;
use rental_core::{
    error::Error,
    request::page::{self, ListQuery, MAX_LIMIT},
    rows::key,
    schema::ResourceSpec,
    store,
    value::OrganizationId,
};

const ORGANIZATION: OrganizationId = OrganizationId::from_u128(0x0190_d0f2_7c3a_7cc0_8000_ffff_ffff_ffff);

/// The first byte chooses the resource, the rest is the raw query.
pub fn check(data: &[u8]) {
    let Some((spec, rest)) = choose(data) else { return };
    let Ok(raw) = std::str::from_utf8(rest) else { return };
    let _ = page::no_parameters(raw);
    match ListQuery::parse(raw, spec) {
        Ok(query) => accepted(&query, spec),
        Err(Error::Invalid(errors)) => {
            assert!(!errors.is_empty() && errors.listed().iter().all(|error| !error.message.is_empty()));
        }
        Err(other) => panic!("a query is never {other:?}"),
    }
}

fn accepted(query: &ListQuery, spec: &'static ResourceSpec) {
    assert!((1..=MAX_LIMIT).contains(&query.limit));
    assert_eq!(ListQuery::parse(&print(query, spec), spec).as_ref(), Ok(query), "printed and read again");
    let Some(span) = query.span(ORGANIZATION, spec) else { return };
    let filtered = query.filters.iter().any(Option::is_some) || query.range.is_some();
    let all = key::records(ORGANIZATION, spec);
    assert_eq!(span.follow.as_ref().map(|follow| &follow.prefix), filtered.then_some(&all));
    if span.is_empty() {
        return;
    }
    // Whatever was asked, the span lies within this organization and resource.
    let head = [&[if filtered { b'i' } else { b'r' }], &all.as_bytes()[1..]].concat();
    assert!(span.from.as_bytes().starts_with(&head));
    let end = store::after(&rental_core::store::Key::from_bytes(&head));
    assert!(span.to <= end, "{span:?}");
}

fn print(query: &ListQuery, spec: &ResourceSpec) -> String {
    let mut parts = vec![format!("limit={}", query.limit)];
    parts.extend(query.starting_after.map(|id| format!("starting_after={id}")));
    parts.extend(query.created_gte.map(|time| format!("created%5Bgte%5D={time}")));
    parts.extend(query.created_lt.map(|time| format!("created[lt]={time}")));
    parts.extend(query.range.and_then(|range| Some(format!("updated[gte]={}", range.gte?))));
    parts.extend(query.range.and_then(|range| Some(format!("updated[lt]={}", range.lt?))));
    for (filter, value) in spec.filters.iter().zip(&query.filters) {
        let escape = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        parts.extend(value.as_deref().map(|value| format!("{}={}", filter.param, escape(value))));
    }
    parts.join("&")
}
