//! Long responses: one thread makes them, another one sends them.
//!
//! A spool is between the two, so that the one that reads a snapshot of the store never waits for the client. It works only a
//! part of the time, so that it does not slow other requests down; during a shutdown it works all the time. It stops when the
//! client has disconnected or is too slow.

use crate::{
    disk::{Spool, SpoolReader},
    http::{patience::Patience, problem::Problem, reply::Reply},
};
use bytes::Bytes;
use rental_core::error::Error;
use std::{
    io::{self, ErrorKind, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::{Sender, channel, error::TrySendError};

/// The thread rests this many times as long as it works: it uses a tenth of one core.
const REST: u32 = 9;
/// The longest rest.
const MOST_REST: Duration = Duration::from_secs(1);
/// Parts that wait for the client.
const AHEAD: usize = 4;
/// Most bytes of one part.
const MOST_OF_PART: u64 = 256 << 10;
/// Sent bytes whose room goes back to the disk at a time.
const FORGOTTEN: u64 = 4 << 20;
/// Pause before an error ends a response.
const BEFORE_ERROR: Duration = Duration::from_millis(100);
/// How often a slow client is checked.
const CHECK: Duration = Duration::from_millis(5);

/// A long response, before it begins.
pub(crate) struct Download {
    /// Its name in the log.
    pub(crate) what: &'static str,
    /// Lasts until the end.
    pub(crate) running: Running,
    pub(crate) spool: Spool,
    /// Whether the thread that makes it never rests.
    pub(crate) full: bool,
    /// Once set, the thread does not rest either.
    pub(crate) draining: Arc<AtomicBool>,
}

impl Download {
    /// The response that `make` writes.
    pub(crate) fn begin(
        self,
        make: impl FnOnce(&mut Outlet<'_>) -> io::Result<()> + Send + 'static,
    ) -> Result<Reply, Problem> {
        let Self { what, running, spool, full, draining } = self;
        let failed = |error: io::Error| Error::Unavailable(format!("cannot begin a {what}: {error}"));
        let (reader, (sender, receiver)) = (spool.reader().map_err(failed)?, channel(AHEAD));
        let work = move || {
            let way = Way::default();
            let mut outlet = Outlet { spool, way: &way, full, hurry: &draining, pace: Pace::new() };
            let made = thread::scope(|scope| {
                let make = || {
                    let made = catch_unwind(AssertUnwindSafe(|| make(&mut outlet)));
                    way.change(|state| state.made = true);
                    made.unwrap_or_else(|_| Err(io::Error::other("reading panicked: the file is damaged")))
                };
                let maker = thread::Builder::new().name(what.into()).spawn_scoped(scope, make)?;
                let sent = way.send(&reader, &sender);
                way.change(|state| state.gone = sent.is_err());
                let made = maker.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")));
                sent.and(made)
            });
            match made {
                Ok(()) => {}
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::TimedOut) => {
                    tracing::warn!(%error, "a {what} ended early");
                }
                Err(error) => {
                    tracing::error!(%error, "a {what} failed");
                    // hyper drops what it has not sent when a body fails: the head and the parts before the error go first.
                    thread::sleep(BEFORE_ERROR);
                    // The client must not take the response for complete.
                    let _ = sender.blocking_send(Err(error));
                }
            }
            // Before the client sees the end, so that it can begin the next one.
            drop(running);
            drop(sender);
        };
        thread::Builder::new().name(what.into()).spawn(work).map_err(failed)?;
        Ok(Reply::stream(receiver))
    }
}

/// The only backup, or the only export, that runs.
pub(crate) struct Running(Arc<AtomicBool>);

impl Running {
    /// Sets `running` until the end. An error if it is set already; `busy` is its message.
    pub(crate) fn take(running: &Arc<AtomicBool>, busy: &str) -> Result<Self, Error> {
        if running.swap(true, Ordering::AcqRel) {
            return Err(Error::Conflict(busy.into()));
        }
        Ok(Self(Arc::clone(running)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// How far a response is on its way through the spool.
#[derive(Default)]
struct Way {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    written: u64,
    sent: u64,
    /// Whether nothing more is written.
    made: bool,
    /// Whether nothing more is sent.
    gone: bool,
}

impl Way {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn wait_while(&self, condition: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.wait_while(state, |state| condition(state)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what is written, until nothing more is.
    fn send(&self, spool: &SpoolReader, sender: &Sender<io::Result<Bytes>>) -> io::Result<()> {
        let (mut patience, mut forgotten) = (Patience::with_reader(), 0);
        loop {
            let (at, ready) = {
                let state = self.wait_while(|state| state.sent == state.written && !state.made);
                (state.sent, (state.written - state.sent).min(MOST_OF_PART))
            };
            if ready == 0 {
                return Ok(());
            }
            let mut part = vec![0; usize::try_from(ready).unwrap_or(0)];
            spool.read_at(&mut part, at)?;
            hand_over(sender, part.into(), &mut patience)?;
            let sent = at + ready;
            if sent - forgotten >= FORGOTTEN {
                spool.forget_before(sent);
                forgotten = sent;
            }
            self.change(|state| state.sent = sent);
        }
    }
}

/// Writes what the client gets. Limits the share of time that the thread works.
pub(crate) struct Outlet<'a> {
    spool: Spool,
    way: &'a Way,
    full: bool,
    hurry: &'a AtomicBool,
    pace: Pace,
}

/// Limits the share of time that a thread works.
pub(crate) struct Pace {
    /// When the work since the last rest began.
    began: Instant,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now() }
    }

    /// Rests after the work since [`Pace::worked`].
    pub(crate) fn rest(&self) {
        thread::sleep((self.began.elapsed() * REST).min(MOST_REST));
    }

    /// Begins the next part of the work.
    pub(crate) fn worked(&mut self) {
        self.began = Instant::now();
    }
}

impl Outlet<'_> {
    /// Waits until everything so far was handed over to the client. Let the snapshot go before.
    pub(crate) fn all_sent(&self) -> io::Result<()> {
        let state = self.way.wait_while(|state| state.sent < state.written && !state.gone);
        if state.gone { Err(ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}

impl Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.full && !self.hurry.load(Ordering::Relaxed) {
            self.pace.rest();
        }
        if self.way.wait_while(|_| false).gone {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let written = self.spool.write(bytes)?;
        self.way.change(|state| state.written += written as u64);
        self.pace.worked();
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends to a client. Waits for a slow one as long as there is patience.
pub(crate) fn hand_over(sender: &Sender<io::Result<Bytes>>, bytes: Bytes, patience: &mut Patience) -> io::Result<()> {
    let (length, mut item, since) = (bytes.len(), Ok(bytes), Instant::now());
    loop {
        item = match sender.try_send(item) {
            Ok(()) => break,
            Err(TrySendError::Closed(_)) => {
                return Err(io::Error::new(ErrorKind::BrokenPipe, "the client has disconnected"));
            }
            Err(TrySendError::Full(item)) => item,
        };
        if since.elapsed() > patience.left() {
            return Err(io::Error::new(ErrorKind::TimedOut, "the client read nothing for a minute, or too little"));
        }
        thread::sleep(CHECK);
    }
    patience.moved(length, since.elapsed());
    Ok(())
}
