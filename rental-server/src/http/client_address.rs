//! The address of the client that sent a request.

use std::net::IpAddr;

/// The client's address: the other end of the connection. An IPv4 address inside an IPv6 one is an IPv4 address.
pub(crate) fn client_address(peer: IpAddr) -> IpAddr {
    peer.to_canonical()
}
