//! A network, as `--trusted-proxy` names it: an address and the length of its prefix.

use std::{fmt, net::IpAddr, str::FromStr};

/// All addresses that share a prefix: `10.0.0.0/8`, `2001:db8::/32`, or one address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Network {
    first: IpAddr,
    prefix: u8,
}

impl Network {
    /// Whether the network has this address. An IPv4 address may also be written as an IPv6 one (`::ffff:10.0.0.1`).
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                same(first.to_bits().into(), address.to_bits().into(), 32, self.prefix)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => same(first.to_bits(), address.to_bits(), 128, self.prefix),
            _ => false,
        }
    }
}

/// Whether two addresses of `bits` bits have the same prefix.
fn same(one: u128, other: u128, bits: u8, prefix: u8) -> bool {
    (one ^ other).checked_shr(u32::from(bits - prefix)).unwrap_or(0) == 0
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let usage = || "must be a network or an address, such as 10.0.0.0/8 or 192.0.2.7".to_owned();
        let first = address.parse::<IpAddr>().map_err(|_| usage())?.to_canonical();
        let bits = if first.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= bits).ok_or_else(usage)?,
        };
        let network = Self { first, prefix };
        // A mistyped network would trust more than its author thinks.
        let own = Self { first, prefix: bits };
        if prefix < bits && !network.begins_with(first) {
            return Err(format!(
                "has bits behind its prefix: use {own} for the address, or the first address of the network"
            ));
        }
        Ok(network)
    }
}

impl Network {
    /// Whether an address is the first one of the network.
    fn begins_with(self, address: IpAddr) -> bool {
        let (address, bits) = match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let behind = bits - u32::from(self.prefix);
        let mask = 1_u128.checked_shl(behind).map_or(u128::MAX, |bit| bit - 1);
        address & mask == 0
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.prefix == if self.first.is_ipv4() { 32 } else { 128 };
        if whole { write!(f, "{}", self.first) } else { write!(f, "{}/{}", self.first, self.prefix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_of_its_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("::1", "::1", "127.0.0.1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network} {outside}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in
            ["", "10.0.0.0/33", "10.0.0/8", "::/129", "example.com", "10.0.0.0/", "10.0.0.1/8", "2001:db8::1/32"]
        {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
