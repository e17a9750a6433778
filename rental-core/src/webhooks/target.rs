//! Checks the URLs and addresses of deliveries, against server-side request forgery.
//!
//! A URL is checked when an endpoint is saved, and the resolved address at each connection. Private, loopback, link-local,
//! reserved and translated addresses are forbidden in every spelling, unless the operator allows them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// Checks that the host of a URL is no forbidden address or name. Names are resolved later.
///
/// # Errors
/// A sentence for the client that says why the host is forbidden.
pub fn check_host(url: &Url) -> Result<(), String> {
    let allowed = match url.host() {
        Some(Host::Ipv4(address)) => is_public(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_public(IpAddr::V6(address)),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let local = ["localhost", "local", "internal", "intranet", "lan", "home.arpa"];
            !name.is_empty() && !local.iter().any(|zone| name == *zone || name.ends_with(&format!(".{zone}")))
        }
        None => false,
    };
    if allowed { Ok(()) } else { Err("must not point at a private, loopback or reserved address".into()) }
}

/// Whether an address is on the public Internet. Also checks the IPv4 address in an IPv6 address.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Whether an address is in no range of IANA's registry of special-purpose IPv4 addresses.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        (0 | 10 | 127, ..) => true,              // this network, private, loopback
        (100, 64..=127, _) => true,              // shared address space
        (169, 254, _) => true,                   // link-local, cloud metadata
        (172, 16..=31, _) => true,               // private
        (192, 0, 0 | 2) => true,                 // protocol assignments, documentation
        (192, 31, 196) | (192, 52, 193) => true, // AS112, AMT
        (192, 88, 99) => true,                   // 6to4 relays
        (192, 168, _) => true,                   // private
        (192, 175, 48) => true,                  // AS112
        (198, 18 | 19, _) => true,               // benchmarking
        (198, 51, 100) | (203, 0, 113) => true,  // documentation
        (224..=255, ..) => true,                 // multicast, reserved, broadcast
        _ => false,
    };
    !special
}

/// Whether an address is in 2000::/3 (global unicast), but in no reserved range and in none that contains IPv4 addresses.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let global = segments[0] & 0xe000 == 0x2000;
    let special = match (segments[0], segments[1]) {
        (0x2001, 0..=0x01ff) => true, // IETF protocol assignments: Teredo, benchmarking, ORCHID and others
        (0x2001, 0x0db8) => true,     // documentation
        (0x2002, _) => true,          // 6to4
        (0x3fff, 0..=0x0fff) => true, // documentation
        (0x2620, 0x004f) => segments[2] == 0x8000, // AS112
        _ => false,
    };
    // An ISATAP address contains an IPv4 address after 0:5efe or 200:5efe.
    let isatap = segments[5] == 0x5efe && segments[4] & !0x0200 == 0;
    global && !special && !isatap
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::url::{MAX_URL, parse};
    use proptest::prelude::*;

    fn allowed(text: &str) -> bool {
        parse(text).is_ok_and(|url| check_host(&url).is_ok())
    }

    #[test]
    fn public_targets_are_allowed() {
        for text in [
            "https://example.com/hooks",
            "http://example.com:8080/a?b=c",
            "https://93.184.216.34/",
            "https://[2606:2800:220:1:248:1893:25c8:1946]/",
            "https://bücher.example/x",
        ] {
            assert!(allowed(text), "{text}");
        }
    }

    #[test]
    fn every_spelling_of_a_private_address_is_refused() {
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://0x7f.1/",
            "http://127.0.0.1./",
            "http://0/",
            "http://0.0.0.0/",
            "http://10.0.0.1/",
            "http://172.16.0.1/",
            "http://172.31.255.255/",
            "http://192.168.1.1/",
            "http://169.254.169.254/latest/meta-data/",
            "http://100.64.0.1/",
            "http://192.0.0.1/",
            "http://192.0.2.1/",
            "http://192.88.99.1/",
            "http://198.18.0.1/",
            "http://198.51.100.1/",
            "http://203.0.113.1/",
            "http://224.0.0.1/",
            "http://240.0.0.1/",
            "http://255.255.255.255/",
            "http://１２７.0.0.1/",
            "http://127。0。0。1/",
            "http://[::]/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[64:ff9b:1::1]/",
            "http://[2002:7f00:1::]/",
            "http://[2001::1]/",
            "http://[2001:10::1]/",
            "http://[2001:20::1]/",
            "http://[2001:db8::1]/",
            "http://[3fff::1]/",
            "http://[fe80::1]/",
            "http://[fec0::1]/",
            "http://[fc00::1]/",
            "http://[fd00:ec2::254]/",
            "http://[ff02::1]/",
            "http://[100::1]/",
            "http://[5f00::1]/",
            "http://[2606:2800::5efe:7f00:1]/",
            "http://[2606:2800::200:5efe:7f00:1]/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://foo.localhost/",
            "http://printer.local/",
            "http://metadata.google.internal/",
        ] {
            assert!(!allowed(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_web_address_is_refused() {
        let long = format!("https://example.com/{}", "a".repeat(MAX_URL));
        for text in [
            "",
            "example.com",
            "//example.com",
            "ftp://example.com/",
            "file:///etc/passwd",
            "gopher://example.com/",
            "javascript:alert(1)",
            "http://",
            "https://user@example.com/",
            "https://user:pass@example.com/",
            "https://:pass@example.com/",
            "https://example.com/#x",
            "https://exa mple.com/",
            "https://example.com/\n",
            "http://[::1%25eth0]/",
            "http://[::1/",
            "https://example.com:0/",
            "https://example.com:99999/",
            &long,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_mapped_or_translated_address_is_never_public(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let [high, low] = [(bits >> 16) as u16, bits as u16];
            for v6 in [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, high, low),
            ] {
                prop_assert!(!is_public(IpAddr::V6(v6)), "{}", v6);
            }
        }

        #[test]
        fn what_the_standard_library_calls_special_is_refused(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified() {
                prop_assert!(!is_public(IpAddr::V4(v4)));
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,100}") {
            if let Ok(url) = parse(&text) {
                let _ = check_host(&url);
            }
        }

        #[test]
        fn an_accepted_numeric_host_is_public(text in "https?://[0-9a-fx.:\\[\\]]{1,30}/") {
            if let Ok(url) = parse(&text) && check_host(&url).is_ok() {
                match url.host() {
                    Some(Host::Ipv4(address)) => prop_assert!(is_public(IpAddr::V4(address))),
                    Some(Host::Ipv6(address)) => prop_assert!(is_public(IpAddr::V6(address))),
                    _ => {}
                }
            }
        }
    }
}
