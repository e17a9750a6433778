//! One attempt over HTTP. The client connects only to addresses that the guard allows, follows no redirect, and reads at
//! most 64 KiB of a response.

use super::settings::Settings;
use crate::edge;
use bytes::Bytes;
use rental_core::{
    resources::delivery::{Attempt, EXCERPT},
    webhooks::{
        attempt::{Ending, Failure},
        target,
    },
};
use reqwest::{
    Client, Response, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT},
    redirect::Policy,
};
use std::{
    error::Error as StdError,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// Most bytes of a response's body that are read. The rest is not waited for.
const MOST_READ: usize = 64 * 1024;
/// Most names that are resolved at once: while a resolver hangs, each of them occupies a thread.
const MOST_LOOKUPS: usize = 64;

/// Sends attempts.
pub(crate) struct Sender {
    client: Client,
    allow_private: bool,
    https_only: bool,
    timeout: Duration,
    user_agent: HeaderValue,
    signature: HeaderName,
    event_id: HeaderName,
    event_type: HeaderName,
}

/// What is sent.
pub(crate) struct Message<'a> {
    pub(crate) url: &'a Url,
    pub(crate) event_id: String,
    pub(crate) event_type: &'a str,
    pub(crate) signature: String,
    pub(crate) body: Bytes,
}

impl Sender {
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        let bad = |_| format!("`{}` cannot be the prefix of a header", settings.brand);
        let name = |suffix: &str| HeaderName::try_from(format!("{}-{suffix}", settings.brand)).map_err(bad);
        let guard = Guard { allow_private: settings.allow_private, lookups: Arc::new(Semaphore::new(MOST_LOOKUPS)) };
        let client = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(guard))
            .http1_title_case_headers()
            .connect_timeout(Duration::from_secs(5))
            .pool_idle_timeout(Duration::from_secs(60))
            .pool_max_idle_per_host(16)
            .build()
            .map_err(|error| format!("cannot make the webhook client: {error}"))?;
        Ok(Self {
            client,
            allow_private: settings.allow_private,
            https_only: settings.https_only,
            timeout: settings.timeout,
            user_agent: HeaderValue::try_from(format!("{}-Webhooks/1.0", settings.brand))
                .map_err(|error| error.to_string())?,
            signature: name("Signature")?,
            event_id: name("Event-Id")?,
            event_type: name("Event-Type")?,
        })
    }

    /// Makes one attempt. The time-out covers the request and the response with its body.
    pub(crate) async fn send(&self, message: Message<'_>) -> (Ending, Attempt) {
        let (at, started) = (edge::now(), Instant::now());
        let (ending, response) = match tokio::time::timeout(self.timeout, self.exchange(message)).await {
            Ok(Ok((ending, excerpt))) => (ending, Some(excerpt)),
            Ok(Err(failure)) => (Ending::Failed(failure), None),
            Err(_) => (Ending::Failed(Failure::TimedOut), None),
        };
        let (status, error) = match &ending {
            Ending::Answered { status, .. } => (Some(*status), None),
            Ending::Failed(failure) => (None, Some(failure.as_str().to_owned())),
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        (ending, Attempt { at, duration_ms, status, error, response })
    }

    async fn exchange(&self, message: Message<'_>) -> Result<(Ending, String), Failure> {
        // Saved before the operator forbade it.
        if self.https_only && message.url.scheme() != "https" {
            return Err(Failure::HttpsRequired);
        }
        // A literal address never reaches the resolver, so it is checked here. The guard checks names.
        if !self.allow_private && target::check_host(message.url).is_err() {
            return Err(Failure::AddressForbidden);
        }
        let value = |text: &str| HeaderValue::try_from(text).map_err(|_| Failure::BadAnswer);
        let request = self
            .client
            .post(message.url.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(USER_AGENT, &self.user_agent)
            .header(&self.signature, value(&message.signature)?)
            .header(&self.event_id, value(&message.event_id)?)
            .header(&self.event_type, value(message.event_type)?)
            .body(message.body);
        let response = request.send().await.map_err(|error| classify(&error))?;
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let ending = Ending::Answered { status: response.status().as_u16(), retry_after };
        Ok((ending, excerpt(response).await?))
    }
}

/// The beginning of the body. The body is read to its end, up to the limit, so that the connection can be used again.
async fn excerpt(mut response: Response) -> Result<String, Failure> {
    let (mut kept, mut read) = (Vec::new(), 0);
    while read < MOST_READ {
        let Some(chunk) = response.chunk().await.map_err(|error| classify(&error))? else { break };
        read += chunk.len();
        let room = EXCERPT.saturating_sub(kept.len());
        kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

fn classify(error: &reqwest::Error) -> Failure {
    let mut source: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(inner) = source {
        if let Some(refusal) = inner.downcast_ref::<Refusal>() {
            return match refusal {
                Refusal::Forbidden => Failure::AddressForbidden,
                Refusal::Unknown => Failure::NameUnknown,
            };
        }
        source = inner.source();
    }
    match () {
        () if error.is_timeout() => Failure::TimedOut,
        () if error.is_connect() => Failure::CannotConnect,
        () => Failure::BadAnswer,
    }
}

/// Why the guard refuses a name.
#[derive(Debug)]
enum Refusal {
    Forbidden,
    Unknown,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forbidden => "the name resolves to an address that is not allowed",
            Self::Unknown => "the name cannot be resolved",
        })
    }
}

impl StdError for Refusal {}

/// Resolves names and refuses forbidden addresses. The client connects to exactly the addresses that are returned: there
/// is no second look-up with another result (DNS rebinding).
struct Guard {
    allow_private: bool,
    lookups: Arc<Semaphore>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (allow_private, lookups) = (self.allow_private, Arc::clone(&self.lookups));
        Box::pin(async move {
            let _permit = lookups.acquire_owned().await;
            let found = tokio::net::lookup_host((name.as_str(), 0)).await.map_err(|_| Refusal::Unknown)?;
            let found: Vec<SocketAddr> = found.collect();
            let forbidden = |address: &IpAddr| !allow_private && !target::is_public(*address);
            // A public service has no private address: one forbidden address makes the whole name suspicious.
            if found.iter().any(|socket| forbidden(&socket.ip())) {
                return Err(Refusal::Forbidden.into());
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}
