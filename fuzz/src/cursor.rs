//! A cursor is an id in its one spelling, and a position that excludes itself.

use crate::specs;
use rental_core::{
    request::page::{self, ListQuery},
    rows::key,
    value::OrganizationId,
};
use uuid::Uuid;

/// As text: accepted means it is printed back the same. As 16 bytes: every id is a cursor.
pub fn check(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let accepted = page::id(text);
        if let Some(id) = accepted {
            assert_eq!(id.to_string(), text, "an id has one spelling");
        }
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            let query = ListQuery::parse(&format!("starting_after={text}"), specs()[0]);
            assert_eq!(query.ok().and_then(|query| query.starting_after), accepted);
        }
    }
    if let Ok(id) = Uuid::from_slice(&data[..data.len().min(16)]) {
        position(id);
    }
}

fn position(id: Uuid) {
    let organization = OrganizationId::from_u128(id.as_u128().rotate_left(64));
    for spec in specs() {
        let query = ListQuery::parse(&format!("starting_after={id}"), spec).expect("every id is a cursor");
        assert_eq!(query.starting_after, Some(id));
        let span = query.span(organization, spec).expect("without filters there is always a span");
        let at = |id: u128| key::record(organization, spec, Uuid::from_u128(id));
        let inside = |id: u128| span.from <= at(id) && at(id) < span.to;
        assert!(!inside(id.as_u128()), "the page after an object does not hold it");
        if let Some(older) = id.as_u128().checked_sub(1) {
            assert!(inside(older) && inside(0), "everything older follows");
        }
        if let Some(newer) = id.as_u128().checked_add(1) {
            assert!(!inside(newer) && !inside(u128::MAX));
        }
    }
}
