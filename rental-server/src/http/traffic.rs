//! Counts the requests of one connection, so that an idle connection is found without a timer for each request.

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
const TICK: Duration = Duration::from_secs(10);
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
    /// Bodies of requests that were answered before, whose rest is read.
    rests: AtomicU64,
    peer: Peer,
    /// Whether the connection is encrypted.
    secure: bool,
    /// Counts the requests of all connections that are in flight.
    in_flight: Gauge,
    _place: Box<dyn Any + Send + Sync>,
}

/// A request until its response is made.
pub(super) struct InFlight(Arc<Traffic>);

/// The rest of a body, while it is read after the response.
pub(super) struct Rest(Arc<Traffic>);

impl Traffic {
    /// `place` is dropped with the last request.
    pub(super) fn new(place: Box<dyn Any + Send + Sync>, peer: Peer, secure: bool, in_flight: Gauge) -> Self {
        Self {
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            unread: AtomicBool::new(false),
            unsent: AtomicBool::new(false),
            written: AtomicU64::new(0),
            rests: AtomicU64::new(0),
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

    /// The rest of a body begins to be read.
    pub(super) fn rest(self: &Arc<Self>) -> Rest {
        self.rests.fetch_add(1, Ordering::Relaxed);
        Rest(Arc::clone(self))
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

    /// Returns the number of requests so far, if each has ended, its response was sent, and the rest of no body is read.
    pub(super) fn settled(&self) -> Option<u64> {
        let (begun, ended) = (self.begun.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed));
        let waits = self.unsent.load(Ordering::Relaxed) || self.rests.load(Ordering::Relaxed) > 0;
        (begun == ended && !waits).then_some(begun)
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

    /// Resolves when no request was in flight or began during `limit`, and the client took nothing of a response, give or
    /// take a tick.
    pub(super) async fn idle_for(&self, limit: Duration) {
        let mut quiet = Quiet::default();
        while quiet.ticks < limit.as_secs() / TICK.as_secs() {
            tokio::time::sleep(TICK).await;
            quiet.tick(self);
        }
    }
}

/// For how many checks in a row a connection was silent.
#[derive(Default)]
struct Quiet {
    ticks: u64,
    /// Requests and bytes until the last check.
    begun: u64,
    written: u64,
}

impl Quiet {
    fn tick(&mut self, traffic: &Traffic) {
        let (begun, ended) = (traffic.begun.load(Ordering::Relaxed), traffic.ended.load(Ordering::Relaxed));
        let written = traffic.written.load(Ordering::Relaxed);
        // A client that reads slowly reads.
        let is_read = written.saturating_sub(self.written) >= LEAST_TAKEN;
        let is_quiet = begun == ended && begun == self.begun && !is_read;
        *self = Self { ticks: if is_quiet { self.ticks + 1 } else { 0 }, begun, written };
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

impl Drop for Rest {
    fn drop(&mut self) {
        self.0.rests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn who_takes_a_response_slowly_is_not_silent_and_who_takes_nothing_is() {
        let peer = Peer::new(Ipv4Addr::LOCALHOST.into(), &Arc::default());
        let traffic = Arc::new(Traffic::new(Box::new(()), peer, false, Gauge::default()));
        let mut quiet = Quiet::default();
        quiet.tick(&traffic);
        assert_eq!(quiet.ticks, 1, "no request ever began");
        drop(traffic.begin());
        quiet.tick(&traffic);
        assert_eq!(quiet.ticks, 0, "one began");
        for _ in 0..10 {
            traffic.sent(LEAST_TAKEN as usize);
            quiet.tick(&traffic);
            assert_eq!(quiet.ticks, 0, "a part of its response was sent");
        }
        // What an idle connection of HTTP/2 exchanges.
        for ticks in 1..4 {
            traffic.sent(100);
            quiet.tick(&traffic);
            assert_eq!(quiet.ticks, ticks);
        }
        let request = traffic.begin();
        quiet.tick(&traffic);
        quiet.tick(&traffic);
        assert_eq!(quiet.ticks, 0, "a request is in flight");
        drop(request);
    }
}
