//! Clients with TLS, and the certificates that they expect.

use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use std::{
    fs::{self, Permissions},
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

/// The files of a certificate and its key.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Pair {
    /// A new self-signed certificate.
    pub(crate) fn make(directory: &Path, name: &str) -> Self {
        let [certificate, key] = ["crt", "key"].map(|kind| directory.join(format!("{name}.{kind}")));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout"])
            .args([key.as_os_str(), "-out".as_ref(), certificate.as_os_str()])
            .output()
            .expect("openssl is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // A test gives it for a key, too.
        fs::set_permissions(&certificate, Permissions::from_mode(0o600)).unwrap();
        Self { certificate, key }
    }

    /// The certificate as it is sent.
    pub(crate) fn der(&self) -> Vec<u8> {
        CertificateDer::from_pem_file(&self.certificate).unwrap().to_vec()
    }
}

/// Accepts this certificate, or any.
#[derive(Debug)]
struct Expects(Option<Vec<u8>>, Arc<CryptoProvider>);

impl ServerCertVerifier for Expects {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.0 {
            Some(expected) if expected != end_entity.as_ref() => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.1.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.1.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.1.signature_verification_algorithms.supported_schemes()
    }
}

/// A client that offers these protocols.
pub(crate) fn config(expected: Option<Vec<u8>>, protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Expects(expected, provider)))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Arc::new(config)
}

fn connect(address: &str, expected: Option<Vec<u8>>) -> StreamOwned<ClientConnection, TcpStream> {
    connect_with(address, config(expected, &[b"http/1.1"]))
}

/// A connection of a client that remembers its sessions in `config`.
pub(crate) fn connect_with(address: &str, config: Arc<ClientConfig>) -> StreamOwned<ClientConnection, TcpStream> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    StreamOwned::new(ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap(), stream)
}

/// Sends a request over HTTP/1.1 and reads until the server closes.
pub(super) fn ask(address: &str, pair: &Pair, request: &str) -> String {
    ask_in(address, pair, request, usize::MAX)
}

/// The same, in parts of so many bytes.
pub(super) fn ask_in(address: &str, pair: &Pair, request: &str, part: usize) -> String {
    let mut stream = connect(address, Some(pair.der()));
    for part in request.as_bytes().chunks(part.min(request.len())) {
        // A server that answers early may close before the end.
        if stream.write_all(part).is_err() {
            break;
        }
    }
    let mut reply = Vec::new();
    // How the connection ends is no concern of the response.
    let _ = stream.read_to_end(&mut reply);
    String::from_utf8(reply).unwrap()
}

/// The certificate that a new connection gets.
pub(super) fn presented(address: &str) -> Vec<u8> {
    let mut stream = connect(address, None);
    stream.conn.complete_io(&mut stream.sock).unwrap();
    stream.conn.peer_certificates().unwrap()[0].to_vec()
}
