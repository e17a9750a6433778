//! Resolves the names of endpoints, and refuses forbidden addresses.
//!
//! The client connects to exactly the addresses that are returned: there is no second look-up with another result (DNS
//! rebinding). A failure says whether the name does not exist, which concerns its endpoint, or whether this server got no
//! answer, which does not, unless `name_failures` finds that only this name has none.

use super::{local_failures::local_failure, name_failures::NameFailures};
use dns_lookup::{AddrInfoHints, LookupError, LookupErrorKind, SockType, getaddrinfo};
use hyper_util::client::legacy::connect::dns::Name;
use rental_core::webhooks::{attempt::Failure, target};
use std::{
    error::Error as StdError,
    fmt,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
    vec,
};
use tokio::{sync::Semaphore, time};
use tower_service::Service;

/// Most names that are resolved at once: while a DNS server does not answer, each of them occupies a thread.
const MOST_LOOKUPS: usize = 64;
/// The longest that a look-up may take.
const LONGEST_LOOKUP: Duration = Duration::from_secs(4);

/// Why a name has no address that may be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal(pub(super) Failure);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl StdError for Refusal {}

/// Why a look-up found no address.
#[derive(Clone, Copy, Debug)]
enum Missing {
    /// DNS gave no answer: it is out of order, or the DNS servers of this name are.
    NoAnswer,
    Because(Failure),
}

/// Resolves names. Clones share their limit and what they know about names that fail.
#[derive(Clone)]
pub(super) struct Resolver {
    allow_private: bool,
    longest: Duration,
    lookups: Arc<Semaphore>,
    failures: Arc<NameFailures>,
}

impl Resolver {
    /// A look-up may take at most half of the time-out of an attempt, so that it is known why the attempt ended.
    pub(super) fn new(allow_private: bool, attempt: Duration) -> Self {
        let lookups = Arc::new(Semaphore::new(MOST_LOOKUPS));
        Self { allow_private, longest: LONGEST_LOOKUP.min(attempt / 2), lookups, failures: Arc::default() }
    }

    /// The addresses of a name, with port 0.
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, Failure> {
        if !is_well_formed(name) {
            return Err(Failure::NameUnknown);
        }
        let plain = name.trim_end_matches('.');
        let found = self.look_up(name).await.map_err(|missing| match missing {
            Missing::NoAnswer => self.failures.note_failed(plain, Instant::now()),
            Missing::Because(failure) => failure,
        })?;
        let forbidden = |address: &IpAddr| !self.allow_private && !target::is_public(*address);
        // A public service has no private address: one forbidden address makes the whole name suspicious.
        if found.iter().any(|socket| forbidden(&socket.ip())) {
            return Err(Failure::AddressForbidden);
        }
        self.failures.note_resolved(plain, Instant::now());
        Ok(found)
    }

    /// Looks a name up in a thread of its own, when fewer than [`MOST_LOOKUPS`] others are looked up.
    async fn look_up(&self, name: &str) -> Result<Vec<SocketAddr>, Missing> {
        const OURS: Missing = Missing::Because(Failure::ResolverFailed);
        let (name, started) = (name.to_owned(), time::Instant::now());
        let deadline = started + self.longest;
        let permit = time::timeout_at(deadline, Arc::clone(&self.lookups).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else { return Err(OURS) };
        let began_late = started.elapsed() > self.longest / 2;
        // The thread keeps its permit when nobody waits for its answer any more.
        let blocking = move || {
            let found = look_up(&name);
            drop(permit);
            found
        };
        match time::timeout_at(deadline, tokio::task::spawn_blocking(blocking)).await {
            Ok(found) => found.unwrap_or(Err(OURS)),
            // Other look-ups left too little time for this one.
            Err(_) if began_late => Err(OURS),
            Err(_) => Err(Missing::NoAnswer),
        }
    }
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Refusal;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Refusal>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let own = self.clone();
        Box::pin(async move { own.addresses(name.as_str()).await.map(Vec::into_iter).map_err(Refusal) })
    }
}

/// Whether DNS can have a name: it has labels of 1 to 63 bytes, and 253 bytes at most.
fn is_well_formed(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len()))
}

fn look_up(name: &str) -> Result<Vec<SocketAddr>, Missing> {
    let hints = AddrInfoHints { socktype: SockType::Stream.into(), ..AddrInfoHints::default() };
    let found = getaddrinfo(Some(name), None, Some(hints)).map_err(classify)?;
    Ok(found.filter_map(Result::ok).map(|found| found.sockaddr).collect())
}

/// Only the answer that a name does not exist, or has no address, is about the name for certain.
fn classify(error: LookupError) -> Missing {
    Missing::Because(match error.kind() {
        LookupErrorKind::Again | LookupErrorKind::Fail => return Missing::NoAnswer,
        LookupErrorKind::Memory => Failure::NoMemory,
        LookupErrorKind::System => local_failure(&io::Error::from(error)).unwrap_or(Failure::ResolverFailed),
        _ => Failure::NameUnknown,
    })
}
