//! Posts events to a developer's URL, with the body, headers and signature of the server's webhook deliveries.
//!
//! Absent on purpose: retries, and the server's check for private addresses, because the user chose the URL.

use crate::{
    client::{api::cause, event_feed::Event},
    config::{environment, private_file, profiles::user_directory},
    edge,
    failure::Failure,
    text::printable,
};
use rental_core::webhooks::{secret, signature};
use reqwest::{
    Url,
    blocking::{Client, Response},
    header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT},
    redirect::Policy,
};
use std::{
    io::{self, Read as _},
    path::PathBuf,
    time::{Duration, Instant},
};

/// Time-out of an attempt: the server's default (spec, Retries 1).
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of bytes read of a response.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;
/// Maximum number of characters shown of a response.
const EXCERPT_CHARS: usize = 200;
/// Environment variable with the path of a secret file.
const SECRET_VARIABLE: &str = "RENTAL_WEBHOOK_SECRET_FILE";

/// Client of the URL, with the signing secret and the header names.
pub(crate) struct Forward {
    client: Client,
    url: Url,
    secret: String,
    user_agent: HeaderValue,
    signature: HeaderName,
    event_id: HeaderName,
    event_type: HeaderName,
}

/// Result of one attempt.
pub(crate) struct AttemptResult {
    pub(crate) status: Option<u16>,
    /// Why there is no status.
    pub(crate) problem: Option<String>,
    /// Start of the response body.
    pub(crate) excerpt: String,
    pub(crate) took: Duration,
}

impl AttemptResult {
    /// Whether the receiver accepted the event: any 2xx (spec, Retries 1).
    pub(crate) fn is_good(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

impl Forward {
    /// Creates a client of `url` that signs with `secret`. `brand` is the prefix of the header names.
    pub(crate) fn new(url: Url, brand: &str, secret: String) -> Result<Self, Failure> {
        let odd = |_| Failure::Unreadable("the server's webhook brand is not a valid prefix of a header".into());
        let name = |suffix: &str| HeaderName::try_from(format!("{brand}-{suffix}")).map_err(odd);
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client =
            Client::builder().redirect(Policy::none()).no_proxy().http1_title_case_headers().timeout(TIMEOUT);
        if url.scheme() == "http" {
            client = client.tls_certs_only([]);
        }
        let client = client.build().map_err(|error| Failure::Unreachable {
            problem: format!("cannot set up TLS: {}", cause(&error)),
            hint: "install the root certificates of this system (package ca-certificates)",
        })?;
        let user_agent = HeaderValue::try_from(format!("{brand}-Webhooks/1.0"))
            .map_err(|_| Failure::Unreadable("the server's webhook brand is not valid in a header".into()))?;
        let (signature, event_id, event_type) = (name("Signature")?, name("Event-Id")?, name("Event-Type")?);
        Ok(Self { client, url, secret, user_agent, signature, event_id, event_type })
    }

    /// Posts an event once.
    pub(crate) fn send(&self, event: &Event) -> AttemptResult {
        let signature = signature::header([self.secret.as_bytes()], edge::now().seconds(), event.body.as_bytes());
        let started = Instant::now();
        let sent = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(USER_AGENT, &self.user_agent)
            .header(&self.signature, signature)
            .header(&self.event_id, event.id.to_string())
            .header(&self.event_type, &event.kind)
            .header("traceparent", format!("00-{}-{:016x}-00", event.id.uuid().simple(), edge::span_id()))
            .body(event.body.clone())
            .send();
        let (status, problem, excerpt) = match sent {
            Ok(response) => match (response.status().as_u16(), excerpt(response)) {
                (status, Ok(excerpt)) => (Some(status), None, excerpt),
                (_, Err(error)) => (None, Some(format!("the response broke off: {error}")), String::new()),
            },
            Err(error) if error.is_timeout() => {
                (None, Some(format!("no response within {} s", TIMEOUT.as_secs())), String::new())
            }
            Err(error) => (None, Some(cause(&error)), String::new()),
        };
        AttemptResult { status, problem, excerpt, took: started.elapsed() }
    }
}

fn excerpt(response: Response) -> io::Result<String> {
    let mut body = Vec::new();
    response.take(MAX_RESPONSE_BYTES).read_to_end(&mut body)?;
    let text = String::from_utf8_lossy(&body);
    let text = text.trim();
    let kept: String = text.chars().take(EXCERPT_CHARS).collect();
    Ok(printable(&kept) + if kept.len() < text.len() { "…" } else { "" })
}

/// Whether a text has the form of a webhook secret: the prefix, then visible ASCII characters.
fn is_secret(text: &str) -> bool {
    let rest = text.strip_prefix(secret::PREFIX).unwrap_or_default();
    !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the secret that signs forwarded events: from `RENTAL_WEBHOOK_SECRET_FILE`, else from the user's state directory,
/// where it is created at first use. It stays the same, so receivers need no change between runs.
pub(crate) fn signing_secret() -> Result<String, Failure> {
    let unreadable =
        |path: &PathBuf, error: io::Error| Failure::Io { doing: format!("read {}", path.display()), error };
    if let Some(path) = environment::variable(SECRET_VARIABLE).map(PathBuf::from) {
        let secret = private_file::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::Unsuccessful {
                kind: "io",
                problem: format!("cannot read {} (from {SECRET_VARIABLE}): {error}", path.display()),
                hint: "write the endpoint's secret (whsec_...) into this file, or unset RENTAL_WEBHOOK_SECRET_FILE: `listen` then makes a secret of its own",
            },
            _ => unreadable(&path, error),
        })?;
        return match secret.trim() {
            "" => Err(Failure::Usage(format!("{} (from {SECRET_VARIABLE}) is empty", path.display()))),
            secret if is_secret(secret) => Ok(secret.to_owned()),
            // The content is not shown: it can be another secret.
            _ => Err(Failure::Usage(format!(
                "{} (from {SECRET_VARIABLE}) does not hold a webhook secret: it must be one line that begins with {}",
                path.display(),
                secret::PREFIX
            ))),
        };
    }
    let Some(directory) = user_directory("XDG_STATE_HOME", ".local/state") else {
        let problem = format!("there is no directory for a signing secret; set HOME, or {SECRET_VARIABLE} to a file");
        return Err(Failure::Usage(problem));
    };
    let path = directory.join("rental/webhook-secret");
    match private_file::read(&path) {
        Ok(secret) if !secret.trim().is_empty() => return Ok(secret.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(&path, error)),
        _ => {}
    }
    let made = format!("{}{}", secret::PREFIX, edge::secret_digits());
    let doing = format!("write {}", path.display());
    private_file::write_secret(&path, &made).map_err(|error| Failure::Io { doing, error })?;
    Ok(made)
}
