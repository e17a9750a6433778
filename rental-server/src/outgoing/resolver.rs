//! Resolves the names of endpoints, and refuses forbidden addresses.
//!
//! The client connects to exactly the addresses that are returned: there is no second look-up with another result (DNS
//! rebinding).

use super::failure::{Refusal, of_system};
use dns_lookup::{AddrInfoHints, LookupError, LookupErrorKind, SockType, getaddrinfo};
use hyper_util::client::legacy::connect::dns::Name;
use rental_core::webhooks::{attempt::Failure, target};
use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
    vec,
};
use tokio::{sync::Semaphore, time};
use tower_service::Service;

/// Most names that are resolved at once: while a DNS server does not answer, each of them occupies a thread.
const MOST_LOOKUPS: usize = 64;
/// The longest that a look-up may take.
const LONGEST_LOOKUP: Duration = Duration::from_secs(4);

/// Resolves names. Clones share their limit.
#[derive(Clone)]
pub(crate) struct Resolver {
    allow_private: bool,
    longest: Duration,
    lookups: Arc<Semaphore>,
}

impl Resolver {
    /// A look-up may take at most half of the time-out of an attempt, so that it is known why the attempt ended.
    pub(crate) fn new(allow_private: bool, attempt: Duration) -> Self {
        let lookups = Arc::new(Semaphore::new(MOST_LOOKUPS));
        Self { allow_private, longest: LONGEST_LOOKUP.min(attempt / 2), lookups }
    }

    /// The addresses of a name, with port 0.
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, Failure> {
        if !is_well_formed(name) {
            return Err(Failure::NameUnknown);
        }
        let found = self.look_up(name).await?;
        let forbidden = |address: &IpAddr| !self.allow_private && !target::is_public(*address);
        // A public service has no private address: one forbidden address makes the whole name suspicious.
        if found.iter().any(|socket| forbidden(&socket.ip())) {
            return Err(Failure::AddressForbidden);
        }
        Ok(found)
    }

    /// Looks a name up in a thread of its own, when fewer than [`MOST_LOOKUPS`] others are looked up.
    async fn look_up(&self, name: &str) -> Result<Vec<SocketAddr>, Failure> {
        let name = name.to_owned();
        let deadline = time::Instant::now() + self.longest;
        let permit = time::timeout_at(deadline, Arc::clone(&self.lookups).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else { return Err(Failure::ResolverFailed) };
        // The thread keeps its permit when nobody waits for its answer any more.
        let blocking = move || {
            let found = look_up(&name);
            drop(permit);
            found
        };
        match time::timeout_at(deadline, tokio::task::spawn_blocking(blocking)).await {
            Ok(Ok(found)) => found,
            _ => Err(Failure::ResolverFailed),
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

fn look_up(name: &str) -> Result<Vec<SocketAddr>, Failure> {
    let hints = AddrInfoHints { socktype: SockType::Stream.into(), ..AddrInfoHints::default() };
    let found = getaddrinfo(Some(name), None, Some(hints)).map_err(failure)?;
    Ok(found.filter_map(Result::ok).map(|found| found.sockaddr).collect())
}

fn failure(error: LookupError) -> Failure {
    match error.kind() {
        LookupErrorKind::Again | LookupErrorKind::Fail => Failure::ResolverFailed,
        LookupErrorKind::Memory => Failure::NoMemory,
        LookupErrorKind::System => of_system(&io::Error::from(error)).unwrap_or(Failure::ResolverFailed),
        _ => Failure::NameUnknown,
    }
}
