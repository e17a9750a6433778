//! `--healthcheck`: asks the server that runs with the same settings whether it is alive. For containers without other programs.

use crate::config::Config;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

/// The longest wait for the response.
const LONGEST: Duration = Duration::from_secs(5);
/// Longest first line of the response.
const MOST_READ: u64 = 256;

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
    match timeout(LONGEST, ask(address, config.tls_cert.is_some())).await {
        Ok(Ok(line)) if line.starts_with("HTTP/1.1 200 ") => Ok(()),
        Ok(Ok(line)) => Err(format!("{url} responded with {}", line.trim_end())),
        Ok(Err(error)) => Err(format!("{url} did not respond: is the server running? ({error})")),
        Err(_) => Err(format!("{url} did not respond in {} s", LONGEST.as_secs())),
    }
}

/// The first line of the response.
async fn ask(address: SocketAddr, tls: bool) -> io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    if !tls {
        return exchange(address, stream).await;
    }
    let config = ClientConfig::builder().dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate));
    let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
    exchange(address, connector.connect(address.ip().into(), stream).await?).await
}

async fn exchange(host: SocketAddr, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<String> {
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut line = String::new();
    BufReader::new(stream.take(MOST_READ)).read_line(&mut line).await?;
    Ok(line)
}

/// The certificate names the public host, and the request holds no secret: it is not checked.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
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
