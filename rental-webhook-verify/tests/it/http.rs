//! Feature `http`.

use ::http::{HeaderMap, HeaderName, HeaderValue};
use rental_webhook_verify::{Receiver, Rejection};

use crate::deliveries::{self, LIMIT};
use crate::support::BODY;

pub(crate) fn header_map(headers: &[(&str, Vec<u8>)]) -> HeaderMap {
    let pairs = headers.iter().map(|(name, value)| {
        let name: HeaderName = name.parse().expect("a header name");
        (name, HeaderValue::from_bytes(value).expect("a header value"))
    });
    let mut map = HeaderMap::new();
    pairs.for_each(|(name, value)| {
        map.append(name, value);
    });
    map
}

#[test]
fn each_delivery_gets_its_verdict_from_a_header_map() {
    for delivery in deliveries::all().iter().filter(|delivery| delivery.body.len() <= LIMIT) {
        let headers = header_map(&delivery.headers);
        let verdict = deliveries::receiver().verify_headers(&headers, &delivery.body);
        assert_eq!(verdict, delivery.expected, "{}", delivery.rule);
    }
}

#[test]
fn a_header_name_that_cannot_exist_is_missing_not_a_panic() {
    let receiver = Receiver::new("whsec").header("no such name\n");
    assert_eq!(receiver.verify_headers(&HeaderMap::new(), BODY), Err(Rejection::MissingHeader));
}
