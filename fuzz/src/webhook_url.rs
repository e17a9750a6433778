//! The URL of a webhook endpoint: what is accepted never names an address that is not public.

use rental_core::{
    value::url::parse,
    webhooks::target::{check_host, is_public},
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The input is the URL's text.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(url) = parse(text) else { return };
    assert!(matches!(url.scheme(), "http" | "https"));
    assert!(url.username().is_empty() && url.password().is_none());
    // The canonical form is stored and parsed again before each attempt: it must be the same URL.
    assert_eq!(parse(url.as_str()).as_ref(), Ok(&url), "{text}");
    if check_host(&url).is_err() {
        return;
    }
    let host = url.host_str().unwrap_or("").trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        assert!(plainly_public(address), "{text}");
    }
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        assert!(is_public(IpAddr::V6(address)));
        assert!(address.to_ipv4_mapped().is_none() && !address.is_loopback() && !address.is_unspecified(), "{text}");
    }
}

/// What the standard library calls special, as a second opinion.
fn plainly_public(address: Ipv4Addr) -> bool {
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || address.is_unspecified()
        || address.octets()[0] == 0)
}
