//! A certificate authority, and servers that have a certificate of it.

use crate::support::Server;
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

/// A certificate for `localhost` and its key, and the authority that signed it, as files.
pub(crate) struct Leaf {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) authority: PathBuf,
}

impl Leaf {
    /// One of an authority that no machine knows.
    pub(crate) fn new(directory: &Path) -> Self {
        let file = |name: &str| directory.join(name);
        let (authority, authority_key) = (file("authority.crt"), file("authority.key"));
        let (certificate, key) = (file("leaf.crt"), file("leaf.key"));
        request(&["-subj", "/CN=Test authority"], &authority, &authority_key, &[]);
        let leaf = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext"];
        let signer = ["-CA".as_ref(), authority.as_os_str(), "-CAkey".as_ref(), authority_key.as_os_str()];
        request(&[&leaf[..], &["basicConstraints=critical,CA:FALSE"]].concat(), &certificate, &key, &signer);
        Self { certificate, key, authority }
    }
}

/// A server with TLS at `https://localhost:PORT`, and the environment of programs that trust it.
pub(crate) struct Trusted {
    pub(crate) server: Server,
    pub(crate) url: String,
    /// `SSL_CERT_FILE=...`: with it, a program trusts the authority.
    pub(crate) trust: String,
}

impl Trusted {
    /// A server whose certificate is signed by an authority that no machine knows.
    pub(crate) fn start(directory: &Path) -> Self {
        let Leaf { certificate, key, authority } = Leaf::new(directory);
        let [certificate, key] = [certificate, key].map(|path| path.to_str().expect("text").to_owned());
        let server = Server::start(&["--tls-cert", &certificate, "--tls-key", &key]);
        let port = server.address.rsplit_once(':').expect("a port").1;
        let url = format!("https://localhost:{port}");
        Self { url, trust: format!("SSL_CERT_FILE={}", authority.display()), server }
    }
}

/// Makes a certificate and its key, which only their owner can read.
fn request(arguments: &[&str], certificate: &Path, key: &Path, signer: &[&OsStr]) {
    let script =
        r#"umask 077; exec openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "$@""#;
    let mut openssl = Command::new("sh");
    openssl.args(["-c", script, "sh"]).args(arguments).args(signer);
    openssl.args(["-keyout".as_ref(), key.as_os_str(), "-out".as_ref(), certificate.as_os_str()]);
    let made = openssl.output().expect("openssl is installed");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
