//! The HTTP client of one server: sends requests, reads bounded responses.

use crate::{
    client::{
        access::Access,
        attempt::{AttemptError, pause_asked_for, retried},
        request::{Request, percent_encode},
        trace::Trace,
    },
    config::settings::{Origin, Secret, Source},
    edge,
    failure::{Failure, error_response::ErrorResponse},
};
use rental_core::schema::{NOTICE_HEADER, Notice};
use reqwest::{
    Method, Url,
    blocking::{Client, RequestBuilder, Response},
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
    redirect::Policy,
};
use std::{
    cell::{Cell, OnceCell, RefCell},
    error::Error as _,
    io::Read as _,
    time::{Duration, Instant},
};

/// Most bytes of a response that a probe reads.
const PROBE_MAX_BYTES: u64 = 64 * 1024;
/// Maximum size of a response.
const BODY_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Time-out of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client of one server.
#[derive(Clone)]
pub(crate) struct Api {
    base_url: Url,
    /// Where the base URL comes from, if messages say it.
    origin: Option<Origin>,
    timeout: Duration,
    secrets: Secrets,
    client: OnceCell<Client>,
    /// Objects that the lists left out so far because they are damaged.
    left_out: Cell<u64>,
    /// What the responses noticed so far.
    notices: RefCell<Vec<Notice>>,
    /// Shows requests and responses on stderr.
    trace: Trace,
}

/// The secrets of both halves of the API.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    pub(crate) api_key: Option<Secret>,
    pub(crate) admin_token: Option<Secret>,
}

/// Status and headers of a response, and how long it took.
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) took: Duration,
    /// The beginning of the body.
    pub(crate) body: Vec<u8>,
}

impl Api {
    /// Creates a client of the server at `base_url`. `timeout` limits each attempt.
    pub(crate) fn new(base_url: Url, timeout: Duration, secrets: Secrets) -> Self {
        let (client, left_out, notices) = (OnceCell::new(), Cell::new(0), RefCell::default());
        Self { base_url, origin: None, timeout, secrets, client, left_out, notices, trace: Trace::Off }
    }

    /// Says in messages where the base URL comes from.
    pub(crate) fn chosen_by(self, origin: Origin) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// Shows requests and responses on stderr.
    pub(crate) fn traced(self, trace: Trace) -> Self {
        Self { trace, ..self }
    }

    /// Returns a client of the same server with another API key.
    pub(crate) fn with_api_key(&self, key: Secret) -> Self {
        let secrets = Secrets { api_key: Some(key), ..self.secrets.clone() };
        let api = Self::new(self.base_url.clone(), self.timeout, secrets).traced(self.trace);
        Self { origin: self.origin.clone(), ..api }
    }

    /// Builds the `Authorization` header for a half of the API.
    fn authorization(&self, access: Access) -> Result<HeaderValue, Failure> {
        let secret = self.secret(access);
        if secret.is_some_and(|secret| matches!(secret.source, Source::OfServer(_))) {
            // The base URL is not that of the profile. When no server is there, its port is wrong.
            self.probe("/healthz")?;
        }
        access.authorization(secret, self.shown_url())
    }

    fn secret(&self, access: Access) -> Option<&Secret> {
        match access {
            Access::Organization => self.secrets.api_key.as_ref(),
            Access::Operator => self.secrets.admin_token.as_ref(),
        }
    }

    /// Sends a GET without a secret, once, and returns the head of any response, and the beginning of its body. `path` starts with `/` and has no query.
    pub(crate) fn probe(&self, path: &str) -> Result<ResponseHead, Failure> {
        let mut url = self.base_url.clone();
        url.set_path(&format!("{}{path}", self.base_url.path().trim_end_matches('/')));
        let request = self.client()?.get(url);
        let started = Instant::now();
        let response = request.send().map_err(|error| self.unreachable(&error).into_failure())?;
        let took = started.elapsed();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        // A body that breaks off tells nothing; the status does.
        let _ = response.take(PROBE_MAX_BYTES).read_to_end(&mut body);
        Ok(ResponseHead { status, headers, took, body })
    }

    /// Sends a request, with retries, and returns the body of the successful response.
    pub(crate) fn send(&self, request: &Request) -> Result<Vec<u8>, Failure> {
        let authorization = self.authorization(request.access)?;
        let idempotency_key = match (&request.idempotency_key, &request.method) {
            (_, &Method::GET) => None,
            (Some(key), _) => Some(key.clone()),
            (None, _) => HeaderValue::try_from(edge::idempotency_key()).ok(),
        };
        let url = self.url(request);
        let client = self.client()?;
        retried(|| {
            let mut attempt =
                client.request(request.method.clone(), url.clone()).header(AUTHORIZATION, authorization.clone());
            if let Some(key) = &idempotency_key {
                attempt = attempt.header(HeaderName::from_static("idempotency-key"), key);
            }
            if let Some(body) = &request.body {
                attempt = attempt.header(CONTENT_TYPE, &request.media).body(body.clone());
            }
            self.trace.request(&request.method, &url, idempotency_key.as_ref(), request.body.as_deref());
            self.read(attempt.send().map_err(|error| self.unreachable(&error))?, request)
        })
    }

    /// Sends a GET once and reads its response within `time`.
    pub(crate) fn get_within(&self, request: &Request, time: Duration) -> Result<Vec<u8>, Failure> {
        let authorization = self.authorization(request.access)?;
        let url = self.url(request);
        self.trace.request(&request.method, &url, None, None);
        let get = self.client()?.get(url).header(AUTHORIZATION, authorization).timeout(time.min(self.timeout));
        let response = get.send().map_err(|error| self.unreachable(&error));
        response.and_then(|response| self.read(response, request)).map_err(AttemptError::into_failure)
    }

    /// Sends a GET, with retries, and returns the successful response unread. Its size is unlimited; the time-out applies to
    /// each read.
    pub(crate) fn stream(&self, request: &Request) -> Result<Response, Failure> {
        let authorization = self.authorization(request.access)?;
        let client = self.client()?;
        retried(|| {
            self.trace.request(&request.method, &self.url(request), None, None);
            let get = client.get(self.url(request)).header(AUTHORIZATION, authorization.clone());
            match get.send().map_err(|error| self.unreachable(&error))? {
                response if response.status().is_success() => {
                    self.trace.body(self.trace.head(&response), b"");
                    Ok(response)
                }
                response => Err(self.refused(response, request)),
            }
        })
    }

    /// Returns an authorized POST without a body, which the caller adds and sends.
    pub(crate) fn upload(&self, request: &Request) -> Result<RequestBuilder, Failure> {
        let authorization = self.authorization(request.access)?;
        self.trace.request(&request.method, &self.url(request), None, None);
        Ok(self.client()?.post(self.url(request)).header(AUTHORIZATION, authorization))
    }

    /// Turns an unsuccessful response into an error.
    pub(crate) fn refused(&self, response: Response, request: &Request) -> AttemptError {
        let odd = || AttemptError::Final(Failure::Unreadable("the response is not what was requested".into()));
        self.read(response, request).err().unwrap_or_else(odd)
    }

    /// Turns a failed exchange into a failure.
    pub(crate) fn gone(&self, error: &reqwest::Error) -> Failure {
        self.unreachable(error).into_failure()
    }

    /// Objects that the responses left out so far because of damaged rows.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.get()
    }

    /// What the responses noticed so far.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.notices.borrow().clone()
    }

    /// Time-out of an attempt, or of each read of a streamed response.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    fn url(&self, request: &Request) -> Url {
        let mut url = self.base_url.clone();
        let (path, raw_query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        url.set_path(&format!("{}{path}", self.base_url.path().trim_end_matches('/')));
        let query: Vec<String> = request
            .query
            .iter()
            .map(|(name, value)| format!("{}={}", percent_encode(name), percent_encode(value)))
            .chain((!raw_query.is_empty()).then(|| raw_query.to_owned()))
            .collect();
        url.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
        url
    }

    fn client(&self) -> Result<&Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("rental-cli/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT.min(self.timeout))
            .timeout(self.timeout);
        if self.base_url.scheme() == "http" {
            // Plain HTTP needs no root certificates, so it also works on machines without any.
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| Failure::Unreachable {
            problem: format!("cannot set up TLS: {}", cause(&error)),
            hint: "install the root certificates of this system (package ca-certificates)",
        })?;
        Ok(self.client.get_or_init(|| client))
    }

    fn read(&self, response: Response, request: &Request) -> Result<Vec<u8>, AttemptError> {
        let status = response.status();
        let head = self.trace.head(&response);
        let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
        let (request_id, retry_after) = (header("request-id"), header(RETRY_AFTER.as_str()));
        self.notices.borrow_mut().extend(header(NOTICE_HEADER).iter().flat_map(|list| Notice::list(list)));
        let left_out = header("rental-damaged-rows").and_then(|count| count.parse().ok()).unwrap_or(0);
        self.left_out.set(self.left_out.get().saturating_add(left_out));
        let mut body = Vec::new();
        if let Err(error) = response.take(BODY_MAX_BYTES + 1).read_to_end(&mut body) {
            return Err(self.broken_off(&error));
        }
        if body.len() as u64 > BODY_MAX_BYTES {
            let problem = format!("the response is longer than {} MiB", BODY_MAX_BYTES / (1024 * 1024));
            return Err(AttemptError::Final(Failure::Unreadable(problem)));
        }
        self.trace.body(head, &body);
        if status.is_success() {
            return Ok(body);
        }
        let retry_after = retry_after.and_then(|text| pause_asked_for(text.trim()));
        Err(AttemptError::Refused(Box::new(
            ErrorResponse::read(status.as_u16(), &body, request.access.refused(self.secret(request.access)))
                .with_headers(request_id, retry_after)
                .with_base_path(self.base_url.path())
                .with_id(request.odd_id.as_deref()),
        )))
    }

    fn unreachable(&self, error: &reqwest::Error) -> AttemptError {
        if error.is_timeout() { self.timed_out() } else { self.disconnected(&cause(error)) }
    }

    fn broken_off(&self, error: &std::io::Error) -> AttemptError {
        let timed_out = error.get_ref().and_then(|inner| inner.downcast_ref()).is_some_and(reqwest::Error::is_timeout);
        if timed_out || error.kind() == std::io::ErrorKind::TimedOut {
            self.timed_out()
        } else {
            self.disconnected("the connection broke before the response was complete")
        }
    }

    /// The base URL without a trailing slash, for messages.
    pub(crate) fn shown_url(&self) -> &str {
        self.base_url.as_str().trim_end_matches('/')
    }

    fn timed_out(&self) -> AttemptError {
        AttemptError::TimedOut(Failure::Unreachable {
            problem: format!("no response from {} within {} s", self.shown_url(), self.timeout.as_secs()),
            hint: "try again, or set a longer --timeout",
        })
    }

    fn disconnected(&self, cause: &str) -> AttemptError {
        let is_https = self.base_url.scheme() == "https";
        let (cause, hint) = match cause.strip_prefix("invalid peer certificate: ") {
            Some(why) => of_certificate(why),
            // rustls says so when the first bytes of a server are no TLS, and hyper when they are no HTTP.
            None if is_https && cause.contains("InvalidContentType") => (
                cause.to_owned(),
                "the server does not use TLS at this address; begin the base URL with http://, or use the address of the proxy",
            ),
            None if !is_https && cause.contains("invalid HTTP version") => (
                "the server does not speak plain HTTP at this address".to_owned(),
                "this is probably a port with TLS: begin the base URL with https://",
            ),
            None => (
                cause.to_owned(),
                "check that the server runs, and check --base-url, RENTAL_BASE_URL or the profile (`rental-cli config get`)",
            ),
        };
        let origin = match &self.origin {
            Some(Origin::Default) => " (the default)".to_owned(),
            Some(origin) => format!(" (from {origin})"),
            None => String::new(),
        };
        let cause =
            if cause.starts_with("Connection refused") { format!("nothing listens there: {cause}") } else { cause };
        let problem = format!("cannot reach {}{origin}: {cause}", self.shown_url());
        AttemptError::Disconnected(Failure::Unreachable { problem, hint })
    }
}

/// Why a certificate is not accepted, and the next step. `why` is what rustls says, whose names are not for people.
fn of_certificate(why: &str) -> (String, &'static str) {
    const OWN: &str = "for a certificate of your own, set SSL_CERT_FILE to a PEM file with it or with the certificate of its authority; then check the base URL";
    let is = |words: &[&str]| words.iter().any(|word| why.contains(word));
    let (what, hint) = if is(&["CaUsedAsEndEntity"]) {
        (
            "it is a certificate of an authority (CA:TRUE), which no server may use",
            "give the server a certificate that is none of an authority, such as one of `openssl req -x509 -addext basicConstraints=critical,CA:FALSE`, and set SSL_CERT_FILE to a PEM file with it",
        )
    } else if is(&["UnknownIssuer"]) {
        ("this computer does not trust its issuer", OWN)
    } else if is(&["NotValidForName", "not valid for name"]) {
        ("it is for another host name", "use a host name of the certificate in the base URL")
    } else if is(&["Expired", "expired"]) {
        ("it is expired", "renew the certificate of the server, and check the clock of this computer")
    } else if is(&["NotValidYet", "not valid yet"]) {
        ("it is not valid yet", "check the clocks of the server and of this computer")
    } else {
        (why, OWN)
    };
    (format!("the certificate of the server is not accepted: {what}"), hint)
}

/// Returns the message of the innermost error, which names the cause; the outer ones only name the operation.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut source: &dyn std::error::Error = error;
    while let Some(inner) = source.source() {
        source = inner;
    }
    if error.source().is_none() { "the request could not be sent".into() } else { source.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, request: &Request, expected: &str) {
        let api = Api::new(base.parse().unwrap(), Duration::from_secs(1), Secrets::default());
        assert_eq!(api.url(request).as_str(), expected);
    }

    #[test]
    fn a_certificate_is_refused_in_words_for_people() {
        for (why, what, next) in [
            ("Other(OtherError(CaUsedAsEndEntity))", "a certificate of an authority", "CA:FALSE"),
            ("UnknownIssuer", "does not trust its issuer", "SSL_CERT_FILE"),
            ("certificate not valid for name \"h\"; certificate is only valid for", "another host name", "base URL"),
            ("certificate expired: verification time 1", "it is expired", "clock"),
            ("BadSignature", "BadSignature", "SSL_CERT_FILE"),
        ] {
            let (problem, hint) = of_certificate(why);
            assert!(problem.contains(what) && hint.contains(next), "{problem}: {hint}");
        }
    }

    #[test]
    fn paths_are_appended_to_the_base_url() {
        let request = Request::get(Access::Organization, &["vehicles"]);
        check("http://localhost:8080", &request, "http://localhost:8080/v1/vehicles");
        check("https://example.com/rental/", &request, "https://example.com/rental/v1/vehicles");
    }

    #[test]
    fn an_id_cannot_leave_its_segment() {
        let request = Request::get(Access::Operator, &["organizations", "a/../b?c=d#e"]);
        check("http://localhost", &request, "http://localhost/admin/v1/organizations/a%2F..%2Fb%3Fc%3Dd%23e");
    }

    #[test]
    fn query_values_arrive_as_typed() {
        let query = vec![
            ("email".into(), "a+b@example.com".into()),
            ("created[gte]".into(), "2026-05-05T09:30:00+02:00".into()),
        ];
        let request = Request::get(Access::Organization, &["customers"]).with_query(query);
        check(
            "http://h",
            &request,
            "http://h/v1/customers?email=a%2Bb%40example.com&created%5Bgte%5D=2026-05-05T09%3A30%3A00%2B02%3A00",
        );
    }
}
