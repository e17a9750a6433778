//! Refuses heads that a proxy in front of the server may read in another way, as hyper has parsed them. `docs/security.md` says what
//! hyper takes.

use crate::http::{call::Call, problem::Problem};
use std::net::Ipv6Addr;
use warp::http::{HeaderMap, Uri, Version, header};

const SEVERAL_CODINGS: Problem = Problem::BadHeader { name: "Transfer-Encoding", rule: "must be sent at most once" };
const SEVERAL_HOSTS: Problem = Problem::BadHeader { name: "Host", rule: "must be sent exactly once" };
const NO_HOST: Problem =
    Problem::BadHeader { name: "Host", rule: "must be a name or an address, with a port if it is another than usual" };
const OTHER_HOST: Problem = Problem::BadHeader { name: "Host", rule: "must be the host of the request's address" };

/// # Errors
/// The request has another transfer coding than `chunked`, or does not name its host clearly.
pub(super) fn check(call: &Call) -> Result<(), Problem> {
    check_coding(call.headers())?;
    check_host(call.version_and_target(), call.headers())
}

/// The only coding is `chunked`, once (RFC 9112, 6.1). hyper takes others before it, and does not decode them.
fn check_coding(headers: &HeaderMap) -> Result<(), Problem> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (_, Some(_)) => Err(SEVERAL_CODINGS),
        (Some(coding), None) if !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") => {
            Err(Problem::TransferCoding)
        }
        _ => Ok(()),
    }
}

/// HTTP/1.1 demands exactly one `Host` (RFC 9112, 3.2). A host in the request's address is the same one, and so is the
/// `:authority` of HTTP/2 (RFC 9113, 8.3.1).
fn check_host((version, target): (Version, &Uri), headers: &HeaderMap) -> Result<(), Problem> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, other) = (hosts.next(), hosts.next());
    if other.is_some() || (host.is_none() && version == Version::HTTP_11) {
        return Err(SEVERAL_HOSTS);
    }
    let host = host.map(|host| host.to_str().map_err(|_| NO_HOST)).transpose()?;
    let authority = target.authority().map(|authority| authority.as_str());
    if ![host, authority].into_iter().flatten().all(is_host) {
        return Err(NO_HOST);
    }
    match (host, authority) {
        (Some(host), Some(authority)) if !host.eq_ignore_ascii_case(authority) => Err(OTHER_HOST),
        _ => Ok(()),
    }
}

/// Whether a text is a host with an optional port (RFC 9110, 7.2 and RFC 3986, 3.2). It may be empty.
fn is_host(text: &str) -> bool {
    let (is_known, rest) = match text.strip_prefix('[') {
        Some(literal) => {
            let (address, rest) = literal.split_once(']').unwrap_or_default();
            (address.parse::<Ipv6Addr>().is_ok(), rest)
        }
        None => {
            let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
            (is_name(name.as_bytes()), rest)
        }
    };
    let is_port =
        |port: &str| port.is_empty() || (port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok());
    is_known && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

/// Whether a text is a `reg-name`. An address of IPv4 is one too.
fn is_name(name: &[u8]) -> bool {
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        let is_part = match byte {
            b'%' => {
                let mut is_digit = || bytes.next().is_some_and(u8::is_ascii_hexdigit);
                is_digit() && is_digit()
            }
            byte => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(byte),
        };
        if !is_part {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::is_host;

    #[test]
    fn a_host_is_a_name_or_an_address_with_an_optional_port() {
        for host in ["", "a", "a.example:80", "a_b:", "127.0.0.1", "[::1]", "[::ffff:1.2.3.4]:8080", "a%41b", "a,b"] {
            assert!(is_host(host), "{host:?}");
        }
        for host in [
            "a b", "a/b", "a@b", "a?b", "a#b", "a:b", "a:1:2", "a:65536", "a:+1", "::1", "[::1", "[]", "[a]:1",
            "[::1]1", "a%4", "a%", "a\\b", "\u{e4}",
        ] {
            assert!(!is_host(host), "{host:?}");
        }
    }
}
