//! `--healthcheck`: asks the server that runs with the same settings whether it is alive. For containers without other programs.

use crate::config::Config;
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

/// The longest wait for the response.
const LONGEST: Duration = Duration::from_secs(5);

/// Asks `/healthz` of `--listen`. It is 200 during an upgrade of the store too, so that nobody ends the server then.
pub(crate) async fn run(config: &Config) -> Result<(), String> {
    let address = reachable(config.listen);
    if address.port() == 0 {
        return Err(
            "--healthcheck needs the port of the server: give --listen (RENTAL_LISTEN) one that is not 0".into()
        );
    }
    let scheme = if config.tls_cert.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{address}/healthz");
    // The certificate names the public host, and the request holds no secret: it is not checked.
    let client = reqwest::Client::builder().no_proxy().timeout(LONGEST).tls_danger_accept_invalid_certs(true).build();
    let client = client.map_err(|error| format!("cannot check the server: {error}"))?;
    match client.get(&url).send().await {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => Err(format!("{url} responded with {}", response.status())),
        Err(error) if error.is_timeout() => Err(format!("{url} did not respond in {} s", LONGEST.as_secs())),
        Err(error) => Err(format!("{url} did not respond: is the server running? ({error})")),
    }
}

/// The address at which this machine reaches a server that listens on `address`.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_reached_on_loopback() {
        for (listens, reached) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("127.0.0.2:80", "127.0.0.2:80"),
            ("192.0.2.1:80", "192.0.2.1:80"),
        ] {
            assert_eq!(reachable(listens.parse().unwrap()), reached.parse().unwrap());
        }
    }
}
