//! What is known of one connection: its client, its requests, and whether it is idle. One timer looks every [`TICK`]; a request
//! sets none.

use crate::http::client_address::Peer;
use prometheus_client::metrics::gauge::Gauge;
use std::{
    any::Any,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use warp::http::HeaderMap;

/// How often a connection is checked.
const TICK: Duration = Duration::from_secs(15);
/// Longest time for the head of a request, and for a client that takes nothing of a response.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time without a request. Longer than the 60 s for which proxies keep connections: so the proxy closes first.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Bytes that a client of a response takes between two checks, at least. Less is what an idle connection of HTTP/2 exchanges.
const LEAST_TAKEN: u64 = 1 << 10;
/// At shutdown, how often a connection is checked for an unfinished request or response.
const SHUTDOWN_TICK: Duration = Duration::from_millis(250);

/// The traffic of one connection. Keeps the connection's place until the connection is closed and all its requests
/// have ended. So a shutdown also waits for requests whose client has disconnected.
pub(super) struct Traffic {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Whether bytes were received after the last request that was read to its end.
    unread: AtomicBool,
    /// Whether the socket has not taken all bytes of a response, or the connection is being closed.
    unsent: AtomicBool,
    /// Bytes that the socket has taken.
    written: AtomicU64,
    peer: Peer,
    /// Whether the connection is encrypted.
    secure: bool,
    /// Counts the requests of all connections that are in flight.
    in_flight: Gauge,
    _place: Box<dyn Any + Send + Sync>,
}

/// A request until its response is made.
pub(super) struct InFlight(Arc<Traffic>);

impl Traffic {
    /// `place` is dropped with the last request.
    pub(super) fn new(place: Box<dyn Any + Send + Sync>, peer: Peer, secure: bool, in_flight: Gauge) -> Self {
        Self {
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            unread: AtomicBool::new(false),
            unsent: AtomicBool::new(false),
            written: AtomicU64::new(0),
            peer,
            secure,
            in_flight,
            _place: place,
        }
    }

    /// The address that a request with these headers comes from.
    pub(super) fn client(&self, headers: &HeaderMap) -> IpAddr {
        self.peer.client(headers)
    }

    pub(super) fn is_secure(&self) -> bool {
        self.secure
    }

    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.in_flight.inc();
        InFlight(Arc::clone(self))
    }

    /// Bytes were received.
    pub(super) fn received(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// The last request was read to its end.
    pub(super) fn all_was_read(&self) {
        self.unread.store(false, Ordering::Relaxed);
    }

    /// Whether the client may still send a request that the server does not read.
    pub(super) fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Notes whether the socket still has to take bytes.
    pub(super) fn sending(&self, unsent: bool) {
        self.unsent.store(unsent, Ordering::Relaxed);
    }

    /// Bytes were sent.
    pub(super) fn sent(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the number of requests so far, if each has ended and its response was sent.
    fn settled(&self) -> Option<u64> {
        let (begun, ended) = (self.begun.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed));
        (begun == ended && !self.unsent.load(Ordering::Relaxed)).then_some(begun)
    }

    /// Resolves when two checks in a row find no request in progress and none between them: the client is silent, or its
    /// request has no complete head.
    pub(super) async fn nothing_in_progress(&self) {
        let mut seen = None;
        loop {
            tokio::time::sleep(SHUTDOWN_TICK).await;
            let now = self.settled();
            if now.is_some() && now == seen {
                return;
            }
            seen = now;
        }
    }

    /// Resolves when the connection was idle for [`IDLE_TIMEOUT`], or when a head did not come or a response was not taken in
    /// [`HEAD_TIMEOUT`], give or take a tick. Only with HTTP/1 do bytes between two requests tell that a head has begun.
    pub(super) async fn is_idle_or_stuck(&self, is_http1: bool) {
        let mut quiet = Quiet { is_http1, ..Quiet::default() };
        loop {
            tokio::time::sleep(TICK).await;
            if quiet.tick(self) {
                return;
            }
        }
    }
}

/// For how many checks in a row nothing happened on a connection.
#[derive(Default)]
struct Quiet {
    is_http1: bool,
    ticks: u32,
    /// Checks in a row that found a head or a response on its way.
    stuck: u32,
    /// Requests and bytes until the last check.
    begun: u64,
    written: u64,
}

impl Quiet {
    /// Whether the connection must be closed.
    fn tick(&mut self, traffic: &Traffic) -> bool {
        let (begun, ended) = (traffic.begun.load(Ordering::Relaxed), traffic.ended.load(Ordering::Relaxed));
        let written = traffic.written.load(Ordering::Relaxed);
        // A client that reads slowly reads.
        let is_read = written.saturating_sub(self.written) >= LEAST_TAKEN;
        let is_quiet = begun == ended && begun == self.begun && !is_read;
        // A new connection owes a head.
        let owes_head = begun == 0 || (self.is_http1 && traffic.is_unread());
        let is_stuck = is_quiet && (owes_head || traffic.unsent.load(Ordering::Relaxed));
        let count = |is: bool, before: u32| if is { before + 1 } else { 0 };
        (self.ticks, self.stuck) = (count(is_quiet, self.ticks), count(is_stuck, self.stuck));
        (self.begun, self.written) = (begun, written);
        TICK * self.ticks >= IDLE_TIMEOUT || TICK * self.stuck >= HEAD_TIMEOUT
    }
}

impl InFlight {
    pub(super) fn traffic(&self) -> &Traffic {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
        self.0.in_flight.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn traffic() -> Arc<Traffic> {
        let peer = Peer::new(Ipv4Addr::LOCALHOST.into(), &Arc::default());
        Arc::new(Traffic::new(Box::new(()), peer, false, Gauge::default()))
    }

    /// After how many checks the connection is closed.
    fn closes_after(quiet: &mut Quiet, traffic: &Traffic) -> usize {
        (1..100).find(|_| quiet.tick(traffic)).expect("it is closed")
    }

    #[test]
    fn an_idle_connection_is_kept_longer_than_by_proxies_and_one_that_owes_a_head_is_not() {
        let (traffic, mut quiet) = (traffic(), Quiet { is_http1: true, ..Quiet::default() });
        assert_eq!(closes_after(&mut quiet, &traffic), 2, "no request ever came");
        drop(traffic.begin());
        assert!(!quiet.tick(&traffic), "one came");
        assert_eq!(closes_after(&mut quiet, &traffic), 5, "75 s");
        drop(traffic.begin());
        assert!(!quiet.tick(&traffic) && !quiet.tick(&traffic));
        traffic.received();
        assert_eq!(closes_after(&mut quiet, &traffic), 2, "a part of a head came");
    }

    #[test]
    fn who_takes_a_response_slowly_is_not_silent_and_who_takes_nothing_is() {
        let (traffic, mut quiet) = (traffic(), Quiet::default());
        let request = traffic.begin();
        assert!((0..100).all(|_| !quiet.tick(&traffic)), "a request is in flight");
        drop(request);
        traffic.sending(true);
        for _ in 0..100 {
            traffic.sent(LEAST_TAKEN as usize);
            assert!(!quiet.tick(&traffic), "a part of its response was sent");
        }
        // What an idle connection of HTTP/2 exchanges.
        traffic.sent(100);
        assert_eq!(closes_after(&mut quiet, &traffic), 2);
    }
}
