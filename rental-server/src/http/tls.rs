//! TLS of the server itself: the certificate and its key are read from two files, and read again when they change.

use arc_swap::ArcSwap;
use rustix::fs::OFlags;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use sha2::{Digest, Sha256};
use std::{
    fs::{Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio_rustls::TlsAcceptor;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(2);
/// Most bytes of a file. A chain of certificates has a few thousand.
const MOST_BYTES: u64 = 1 << 20;
/// The protocols that a client can choose from (ALPN), the best first.
pub(super) const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The files of `--tls-cert` and `--tls-key`.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Makes TLS of connections, with the certificate of the moment.
pub(crate) struct Tls {
    files: TlsFiles,
    current: Arc<Current>,
    /// Of the contents that were read last, good or bad.
    seen: [u8; 32],
    config: Arc<ServerConfig>,
}

/// The certificate with its key that new connections get.
#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Tls {
    /// Reads the files. Fails with a sentence that says what is wrong with which file.
    pub(crate) fn load(files: TlsFiles) -> Result<Self, String> {
        let (pair, seen) = read(&files)?;
        let current = Arc::new(Current(ArcSwap::from_pointee(pair?)));
        let resolver: Arc<dyn ResolvesServerCert> = current.clone();
        let mut config = ServerConfig::builder().with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Ok(Self { files, current, seen, config: Arc::new(config) })
    }

    /// Accepts connections. `http2` says whether clients may choose HTTP/2.
    pub(super) fn acceptor(&self, http2: bool) -> TlsAcceptor {
        if http2 {
            return TlsAcceptor::from(Arc::clone(&self.config));
        }
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = vec![HTTP1.to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    /// What looks at the files again and again.
    pub(crate) fn watcher(&self) -> Watcher {
        Watcher { files: self.files.clone(), current: Arc::clone(&self.current), seen: self.seen }
    }
}

/// Takes over files that have changed.
#[derive(Clone)]
pub(crate) struct Watcher {
    files: TlsFiles,
    current: Arc<Current>,
    seen: [u8; 32],
}

impl Watcher {
    /// Runs until it is dropped. A pair that cannot be used changes nothing, and the log says so once. Programs that renew
    /// certificates replace one file after the other: the pair of a moment between is such a one.
    pub(crate) async fn run(mut self) {
        let mut unreadable = String::new();
        loop {
            tokio::time::sleep(LOOK).await;
            let files = self.files.clone();
            // On another thread: a disk that hangs must not block the threads that serve requests.
            let Ok(outcome) = tokio::task::spawn_blocking(move || read(&files)).await else { continue };
            let outcome = match outcome {
                Ok((_, seen)) if seen == self.seen => {
                    unreadable.clear();
                    continue;
                }
                Ok((pair, seen)) => {
                    self.seen = seen;
                    pair
                }
                Err(why) if why == unreadable => continue,
                Err(why) => Err(why),
            };
            match outcome {
                Ok(pair) => {
                    self.current.0.store(Arc::new(pair));
                    unreadable.clear();
                    tracing::info!("the TLS certificate was read again; new connections get it");
                }
                Err(why) => {
                    tracing::warn!(why, "the changed TLS certificate was not taken; the one before stays in use");
                    unreadable = why;
                }
            }
        }
    }
}

type Pair = Result<CertifiedKey, String>;

/// The pair of the files, and a hash of their contents. `Err` when a file cannot be read.
fn read(files: &TlsFiles) -> Result<(Pair, [u8; 32]), String> {
    let certificate = content(&files.certificate, "--tls-cert", |_| None)?;
    let key = content(&files.key, "--tls-key", too_open)?;
    let mut hash = Sha256::new();
    hash.update((certificate.len() as u64).to_be_bytes());
    hash.update(&certificate);
    hash.update(&key);
    Ok((pair(files, &certificate, &key), hash.finalize().into()))
}

fn content(path: &Path, flag: &str, refuse: impl Fn(&Metadata) -> Option<&'static str>) -> Result<Vec<u8>, String> {
    let failed = |why: String| format!("{flag}: cannot read {}: {why}", path.display());
    // A pipe without a writer would not open else, and no thread would look at the files any more.
    let not_waiting = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(not_waiting).open(path).map_err(|error| {
        failed(match error.kind() {
            io::ErrorKind::PermissionDenied => format!("{error}; let the user of the server read it"),
            _ => error.to_string(),
        })
    })?;
    let about = file.metadata().map_err(|error| failed(error.to_string()))?;
    if !about.is_file() {
        return Err(failed("it is no regular file".into()));
    }
    if let Some(why) = refuse(&about) {
        return Err(format!("{flag}: {} {why}", path.display()));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > MOST_BYTES { Err(failed("it is longer than 1 MB".into())) } else { Ok(bytes) }
}

/// As for other secrets, others must not read the key. The group may when the file belongs to root: programs that renew
/// certificates give it to the group of its users.
fn too_open(key: &Metadata) -> Option<&'static str> {
    let allowed = if key.uid() == 0 { 0o740 } else { 0o700 };
    (key.mode() & 0o777 & !allowed != 0)
        .then_some("holds a private key and others can read it: `chmod 600` it (640 when it belongs to root)")
}

fn pair(files: &TlsFiles, certificate: &[u8], key: &[u8]) -> Pair {
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
    let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(|| {
        format!("--tls-cert: {} holds no certificate in PEM (-----BEGIN CERTIFICATE-----)", files.certificate.display())
    })?;
    // The error of the parser could contain a part of the key.
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|_| format!("--tls-key: {} holds no private key in PEM without a password", files.key.display()))?;
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, key, &provider).map_err(|error| {
        let (certificate, key) = (files.certificate.display(), files.key.display());
        format!("{certificate} and {key} are no pair that the server can use: {error}")
    })
}
