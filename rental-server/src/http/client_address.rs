//! Who sends a request: the address of the peer, or of the client that a trusted proxy names.

use crate::config::Network;
use std::{net::IpAddr, sync::Arc};
use warp::http::{HeaderMap, HeaderName, HeaderValue, header};

/// Most proxies of one request that are looked at.
const MOST_HOPS: usize = 32;
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The other end of a connection.
#[derive(Clone)]
pub(super) struct Peer {
    address: IpAddr,
    /// The proxies whose word is taken; empty when the peer is none of them.
    proxies: Arc<[Network]>,
}

impl Peer {
    pub(super) fn new(address: IpAddr, proxies: &Arc<[Network]>) -> Self {
        let address = address.to_canonical();
        let proxies = if trusts(proxies, address) { Arc::clone(proxies) } else { Arc::default() };
        Self { address, proxies }
    }

    /// The address that a request with these headers comes from.
    ///
    /// Without a trusted proxy, that is the peer. Each proxy appends the address that it got the request from, so the list
    /// is read from its end: the first address that is no trusted proxy is the client. What is to the left of it was
    /// written by the client, and says nothing. An entry that is no address ends the search at the proxy that wrote it. When
    /// `X-Forwarded-For` and `Forwarded` name different clients, one of them did not come from a proxy: neither is believed.
    pub(super) fn client(&self, headers: &HeaderMap) -> IpAddr {
        if self.proxies.is_empty() {
            return self.address;
        }
        let plain = self.first_untrusted(entries(headers, &X_FORWARDED_FOR).map(|entry| address(entry.trim())));
        let tagged = self.first_untrusted(entries(headers, &header::FORWARDED).map(forwarded_for));
        match (plain, tagged) {
            (Some(plain), Some(tagged)) if plain != tagged => self.address,
            (plain, tagged) => plain.or(tagged).unwrap_or(self.address),
        }
    }

    /// `None` without any entry.
    fn first_untrusted(&self, entries: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut last = None;
        for entry in entries.take(MOST_HOPS) {
            let Some(address) = entry else { return last.or(Some(self.address)) };
            last = Some(address);
            if !trusts(&self.proxies, address) {
                break;
            }
        }
        last
    }
}

/// Whether one of the networks has this address.
pub(super) fn trusts(proxies: &[Network], address: IpAddr) -> bool {
    proxies.iter().any(|network| network.contains(address))
}

/// The entries of a list that may be spread over several fields, the last one first.
fn entries<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let values: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
    values.into_iter().rev().flat_map(|value| value.to_str().unwrap_or("?").rsplit(','))
}

/// The `for` of an element of `Forwarded` (RFC 7239): `for=192.0.2.60;proto=http`, `for="[2001:db8::1]:4711"`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let mut named = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    let (_, value) = named.next()?;
    address(value.trim().trim_matches('"'))
}

/// An address with or without a port and brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None if text.matches(':').count() == 1 => text.split_once(':')?.0,
        None => text,
    };
    bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(peer: &str, headers: &[(HeaderName, &'static str)], expected: &str) {
        let proxies: Arc<[Network]> = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap()).into();
        let peer = Peer::new(peer.parse().unwrap(), &proxies);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_static(value));
        }
        assert_eq!(peer.client(&map), expected.parse::<IpAddr>().unwrap());
    }

    #[test]
    fn a_peer_that_is_no_proxy_is_the_client_whatever_it_says() {
        check("192.0.2.1", &[(X_FORWARDED_FOR, "203.0.113.9"), (header::FORWARDED, "for=203.0.113.9")], "192.0.2.1");
        check("::ffff:192.0.2.1", &[], "192.0.2.1");
    }

    #[test]
    fn behind_proxies_the_last_address_that_is_none_of_them_is_the_client() {
        check("10.0.0.1", &[(X_FORWARDED_FOR, "203.0.113.9")], "203.0.113.9");
        check("10.0.0.1", &[(X_FORWARDED_FOR, "6.6.6.6, 203.0.113.9 ,10.0.0.2")], "203.0.113.9");
        check("10.0.0.1", &[(X_FORWARDED_FOR, "6.6.6.6"), (X_FORWARDED_FOR, "203.0.113.9:4711")], "203.0.113.9");
        check("fd00::1", &[(X_FORWARDED_FOR, "2001:db8::7")], "2001:db8::7");
        check("fd00::1", &[(header::FORWARDED, "for=6.6.6.6, For=\"[2001:db8::7]:80\";proto=https")], "2001:db8::7");
        check("10.0.0.1", &[(X_FORWARDED_FOR, "10.0.0.3, 10.0.0.2")], "10.0.0.3");
    }

    #[test]
    fn what_no_proxy_could_have_written_is_not_believed() {
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &[(X_FORWARDED_FOR, "")], "10.0.0.1");
        check("10.0.0.1", &[(X_FORWARDED_FOR, "unknown")], "10.0.0.1");
        check("10.0.0.1", &[(X_FORWARDED_FOR, "6.6.6.6, unknown, 10.0.0.2")], "10.0.0.2");
        check("10.0.0.1", &[(header::FORWARDED, "proto=https")], "10.0.0.1");
        check("10.0.0.1", &[(X_FORWARDED_FOR, "203.0.113.9"), (header::FORWARDED, "for=6.6.6.6")], "10.0.0.1");
        check("10.0.0.1", &[(X_FORWARDED_FOR, "203.0.113.9"), (header::FORWARDED, "for=203.0.113.9")], "203.0.113.9");
    }
}
