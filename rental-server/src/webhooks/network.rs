//! Tells the failures of this server and its network from those of a receiver.
//!
//! | Error | Whose it is | Why |
//! |---|---|---|
//! | `EMFILE`, `ENFILE` | ours | no file descriptor is left |
//! | `ENOMEM`, `ENOBUFS` | ours | no memory is left for a socket |
//! | `EADDRNOTAVAIL` | ours | no local port or address is left |
//! | `ENETUNREACH`, `ENETDOWN` | ours | this server has no route, or the first network on the way is down |
//! | `EACCES`, `EPERM` | ours | a local route or firewall rule prohibits the connection |
//! | `EHOSTUNREACH` | ours only if this server has no route to any address of the host, or its gateway is silent | a router near the receiver reports the same when the receiver is down |
//! | the certificate has expired or is not valid yet | the receiver's | this server cannot tell that its own clock is wrong |
//! | anything else while connecting | the receiver's | refused, reset, time-out |

use super::{
    local_failures::local_failure,
    resolver::{Refusal, Resolver},
};
use rental_core::webhooks::attempt::Failure;
use rustix::io::Errno;
use std::{
    error::Error as StdError,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
};
use url::Url;

/// Why an exchange failed: while `connecting`, or once connected.
pub(super) async fn failure(
    error: &(dyn StdError + Sync + 'static),
    connecting: bool,
    url: &Url,
    resolver: &Resolver,
) -> Failure {
    match classify(error, connecting) {
        Some(failure) => failure,
        None if has_route(url, resolver).await => Failure::CannotConnect,
        None => Failure::NoRoute,
    }
}

/// Why an exchange failed; `None` if it depends on whether this server has a route to the host.
fn classify(error: &(dyn StdError + 'static), connecting: bool) -> Option<Failure> {
    let mut source = Some(error);
    while let Some(inner) = source {
        if let Some(Refusal(failure)) = inner.downcast_ref() {
            return Some(*failure);
        }
        if let Some(cause) = inner.downcast_ref::<io::Error>() {
            // Once connected, an error no longer says that the request was not received.
            if let Some(failure) = local_failure(cause).or_else(|| certificate_failure(cause)).filter(|_| connecting) {
                return Some(failure);
            }
            if connecting && Errno::from_io_error(cause) == Some(Errno::HOSTUNREACH) {
                return None;
            }
            if cause.kind() == io::ErrorKind::TimedOut {
                return Some(Failure::TimedOut);
            }
        }
        source = inner.source();
    }
    Some(if connecting { Failure::CannotConnect } else { Failure::BadAnswer })
}

/// What is wrong with the receiver's certificate, if that is the cause. The connector wraps errors of TLS in others.
fn certificate_failure(cause: &io::Error) -> Option<Failure> {
    use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let cause = cause.get_ref()?;
    if let Some(cause) = cause.downcast_ref::<io::Error>() {
        return certificate_failure(cause);
    }
    match cause.downcast_ref()? {
        rustls::Error::InvalidCertificate(
            Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
        ) => Some(Failure::CertificateNotValidNow),
        rustls::Error::InvalidCertificate(_) => Some(Failure::CertificateNotTrusted),
        _ => None,
    }
}

/// Whether this server has a route to an address of the host, and a gateway that answers.
async fn has_route(url: &Url, resolver: &Resolver) -> bool {
    let name = url.host_str().unwrap_or_default();
    let addresses = match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(literal) => vec![SocketAddr::from((literal, 0))],
        Err(_) => resolver.addresses(name).await.unwrap_or_default(),
    };
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    let silent = gateway_is_silent(&text("/proc/net/route"), &text("/proc/net/arp"));
    !silent && addresses.iter().any(|address| is_routed(address.ip()))
}

/// Whether the routing table has a route to an address. Connecting a datagram socket looks it up and sends nothing.
fn is_routed(address: IpAddr) -> bool {
    let own = match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    const DISCARD: u16 = 9;
    UdpSocket::bind((own, 0)).and_then(|socket| socket.connect((address, DISCARD))).is_ok()
}

/// Whether each default gateway of Linux's table of IPv4 routes has failed to answer ARP requests.
fn gateway_is_silent(routes: &str, neighbours: &str) -> bool {
    let gateways: Vec<Ipv4Addr> = routes
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_default = fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000");
            // In the byte order of the machine.
            let gateway = u32::from_str_radix(fields.get(2)?, 16).ok()?;
            (is_default && gateway != 0).then(|| Ipv4Addr::from(gateway.to_ne_bytes()))
        })
        .collect();
    // Flags 0x0: the address is being looked for, or was not found.
    let is_silent = |gateway: &Ipv4Addr| {
        neighbours.lines().any(|line| {
            let mut fields = line.split_whitespace();
            fields.next().and_then(|text| text.parse().ok()) == Some(*gateway) && fields.nth(1) == Some("0x0")
        })
    };
    !gateways.is_empty() && gateways.iter().all(is_silent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_without_an_address_of_its_own_is_silent() {
        let routes = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                      eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                      eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        let neighbour = |flags: &str, address: &str| {
            format!("IP address HW type Flags HW address Mask Device\n{address} 0x1 {flags} 00:00:00:00:00:00 * eth0\n")
        };
        if cfg!(target_endian = "little") {
            assert!(gateway_is_silent(routes, &neighbour("0x0", "192.0.2.1")));
            assert!(!gateway_is_silent(routes, &neighbour("0x2", "192.0.2.1")), "it answers");
            assert!(!gateway_is_silent(routes, &neighbour("0x0", "192.0.2.7")), "another neighbour is silent");
        }
        assert!(!gateway_is_silent("", "") && !gateway_is_silent(routes, ""));
    }
}
