//! Open-loop load: requests become due at a given rate, whether the server answers or not.
//!
//! A free connection takes the next request that is due. When all connections are busy, requests are late, and their latency
//! counts from the time at which they were due. One that is very late is not sent: its client has no connection. The times
//! come from a seed.

use futures_util::future::join_all;
use std::{
    borrow::Cow,
    cell::Cell,
    io,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// How long a request waits for a free connection.
const WAITS: Duration = Duration::from_millis(20);
/// A request that is sent this soon after it was due is on time.
const ON_TIME: Duration = Duration::from_millis(2);
/// No response at all within this time is a failure.
const LONGEST: Duration = Duration::from_secs(60);

/// Stands in a request for a plate that no other request of the load has.
pub(crate) const PLATE: &str = "PLATE-000000000";

/// A load: who sends what, how often, and on how many connections.
pub(crate) struct Load<'l> {
    pub(crate) address: &'l str,
    /// The whole requests. They take turns.
    pub(crate) requests: &'l [Vec<u8>],
    /// Requests per second; none sends the next one as soon as a connection is free.
    pub(crate) rate: Option<f64>,
    pub(crate) connections: usize,
    /// A response that comes later than this after its request was due is no goodput.
    pub(crate) patience: Duration,
    pub(crate) seed: u64,
}

/// What became of the requests of a load.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Answered with 200 in time: when, since the start of the load, and the latency.
    pub(crate) served: Vec<(Duration, Duration)>,
    /// Latencies of 503 and 429, from the time at which the request was sent.
    pub(crate) refused: Vec<Duration>,
    /// Answered with 200, but too late.
    pub(crate) late: u64,
    /// Due, and not sent in time because all connections were busy.
    pub(crate) unsent: u64,
    /// Other statuses and broken connections.
    pub(crate) failed: u64,
    pub(crate) took: Duration,
}

/// When the next request is due.
#[derive(Clone, Copy)]
struct Schedule {
    next: f64,
    dice: u64,
}

impl Tally {
    /// Requests per second that were answered with 200 in time.
    pub(crate) fn goodput(&self) -> f64 {
        self.served.len() as f64 / self.took.as_secs_f64()
    }

    /// Requests that became due.
    pub(crate) fn offered(&self) -> f64 {
        self.served.len() as f64 + self.refused.len() as f64 + (self.late + self.unsent + self.failed) as f64
    }

    pub(crate) fn latency(&self, part: f64) -> Duration {
        quantile(self.served.iter().map(|served| served.1).collect(), part)
    }

    pub(crate) fn refusal(&self, part: f64) -> Duration {
        quantile(self.refused.clone(), part)
    }

    /// Adds what became of other requests. The time stays.
    pub(crate) fn add(&mut self, other: Self) {
        self.served.extend(other.served);
        self.refused.extend(other.refused);
        self.late += other.late;
        self.unsent += other.unsent;
        self.failed += other.failed;
    }
}

fn quantile(mut all: Vec<Duration>, part: f64) -> Duration {
    all.sort_unstable();
    let at = (all.len() as f64 * part) as usize;
    all.get(at.min(all.len().saturating_sub(1))).copied().unwrap_or_default()
}

impl Schedule {
    /// Seconds since the start. Gaps are between a half and one and a half of the mean.
    fn take(&mut self, rate: f64) -> f64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let due = self.next;
        self.next += (0.5 + (self.dice >> 40) as f64 / (1 << 24) as f64) / rate;
        due
    }
}

impl Load<'_> {
    /// Sends until `stop` is set.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Tally {
        // One thread for all connections, so that the client leaves the processors to the server.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (begun, schedule) = (Instant::now(), Cell::new(Schedule { next: 0.0, dice: self.seed }));
        let turn = Cell::new(0);
        let mut all = Tally::default();
        match runtime {
            Ok(runtime) => {
                let clients = (0..self.connections).map(|_| self.client(begun, (&schedule, &turn), stop));
                runtime.block_on(join_all(clients)).into_iter().for_each(|tally| all.add(tally));
            }
            Err(_) => all.failed += 1,
        }
        all.took = begun.elapsed();
        all
    }

    /// Sends for a time.
    pub(crate) fn run_for(&self, time: Duration) -> Tally {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(time);
                stop.store(true, Ordering::Relaxed);
            });
            self.run(&stop)
        })
    }

    async fn client(
        &self,
        begun: Instant,
        (schedule, turn): (&Cell<Schedule>, &Cell<usize>),
        stop: &AtomicBool,
    ) -> Tally {
        let (mut tally, mut connection) = (Tally::default(), None);
        while let Some(due) = self.next(begun, schedule, &mut tally.unsent, stop).await {
            let sent = Instant::now();
            let exchange = tokio::time::timeout(LONGEST, self.exchange(&mut connection, turn)).await;
            let Ok(Ok(status)) = exchange else {
                connection = None;
                tally.failed += 1;
                // A server that is not there is not asked without end.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            // The timers of the client are that inaccurate.
            let late = sent.saturating_duration_since(due);
            let took = if late < ON_TIME { sent.elapsed() } else { due.elapsed() };
            match status {
                200 if took <= self.patience => tally.served.push((begun.elapsed(), took)),
                200 => tally.late += 1,
                503 | 429 => tally.refused.push(sent.elapsed()),
                _ => tally.failed += 1,
            }
        }
        tally
    }

    /// Waits for the next request; nothing when the load ends.
    async fn next(
        &self,
        begun: Instant,
        schedule: &Cell<Schedule>,
        unsent: &mut u64,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        let Some(rate) = self.rate else { return (!stop.load(Ordering::Relaxed)).then(Instant::now) };
        let mut all = schedule.get();
        let now = begun.elapsed().as_secs_f64();
        let due = loop {
            let due = all.take(rate);
            if due + WAITS.as_secs_f64() >= now {
                break begun + Duration::from_secs_f64(due);
            }
            *unsent += 1;
        };
        schedule.set(all);
        while let Some(early) = due.checked_duration_since(Instant::now()) {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            tokio::time::sleep(early.min(Duration::from_millis(100))).await;
        }
        (!stop.load(Ordering::Relaxed)).then_some(due)
    }

    async fn exchange(&self, connection: &mut Option<BufReader<TcpStream>>, turn: &Cell<usize>) -> io::Result<u16> {
        let stream = match connection {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address).await?;
                stream.set_nodelay(true)?;
                connection.insert(BufReader::new(stream))
            }
        };
        let turn = turn.replace(turn.get() + 1);
        let request = with_own_plate(&self.requests[turn % self.requests.len()], self.seed, turn);
        stream.get_mut().write_all(&request).await?;
        let (status, closes) = read(stream).await?;
        if closes {
            *connection = None;
        }
        Ok(status)
    }
}

/// The request with a plate of its own, of the same length.
fn with_own_plate(request: &[u8], seed: u64, turn: usize) -> Cow<'_, [u8]> {
    let Some(at) = request.windows(PLATE.len()).position(|part| part == PLATE.as_bytes()) else {
        return Cow::Borrowed(request);
    };
    let mut own = request.to_vec();
    let plate = format!("P{:05}{:09}", seed % 100_000, turn % 1_000_000_000);
    own[at..at + PLATE.len()].copy_from_slice(plate.as_bytes());
    Cow::Owned(own)
}

/// Reads a response: its status, and whether the server closes the connection.
async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<(u16, bool)> {
    let (mut line, mut status, mut length, mut closes) = (String::new(), 0, 0, false);
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        if let Some(rest) = text.strip_prefix("HTTP/1.1 ") {
            status = rest.get(..3).and_then(|status| status.parse().ok()).unwrap_or(0);
        } else if let Some((name, value)) = text.split_once(": ") {
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().map_err(io::Error::other)?;
            }
            closes |= name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok((status, closes))
}
