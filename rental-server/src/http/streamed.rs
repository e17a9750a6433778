//! Long responses, each written by a thread of its own.
//!
//! The thread works only a part of the time, so that it does not slow other requests down. It stops when the client has
//! disconnected or reads nothing for a minute. During a shutdown it works all the time.

use crate::http::{problem::Problem, reply::Reply};
use bytes::Bytes;
use rental_core::error::Error;
use std::{
    io::{self, ErrorKind, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
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
/// How long a client may read nothing.
const STALL: Duration = Duration::from_secs(60);
/// Pause before an error ends a response.
const BEFORE_ERROR: Duration = Duration::from_millis(100);
/// How often a slow client is checked.
const CHECK: Duration = Duration::from_millis(5);

/// A response that `make` writes on a thread of its own. `what` names it in the log. `running` lasts until the end. With
/// `full`, or once `draining` is set, the thread does not rest.
pub(crate) fn streamed(
    what: &'static str,
    (running, draining): (Running, &Arc<AtomicBool>),
    full: bool,
    make: impl FnOnce(Outlet) -> io::Result<()> + Send + 'static,
) -> Result<Reply, Problem> {
    let (sender, receiver) = channel(AHEAD);
    let hurry = Arc::clone(draining);
    let work = move || {
        let _running = running;
        let outlet = Outlet { sender: sender.clone(), full, hurry, began: Instant::now() };
        let outcome = catch_unwind(AssertUnwindSafe(|| make(outlet)));
        match outcome.unwrap_or_else(|_| Err(io::Error::other("reading panicked: the file is damaged"))) {
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
    };
    let started = thread::Builder::new().name(what.into()).spawn(work);
    started.map_err(|error| Error::Unavailable(format!("cannot start a thread for a {what}: {error}")))?;
    Ok(Reply::stream(receiver))
}

/// The only backup or export that runs.
pub(crate) struct Running(Arc<AtomicBool>);

impl Running {
    /// Sets `running` until the end. An error if it is set already.
    pub(crate) fn take(running: &Arc<AtomicBool>) -> Result<Self, Error> {
        if running.swap(true, Ordering::AcqRel) {
            let busy =
                "A backup or an export is already running; this one was not started. Try again when it has ended.";
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

/// Sends to the client. Limits the share of time that the thread works.
pub(crate) struct Outlet {
    sender: Sender<io::Result<Bytes>>,
    full: bool,
    hurry: Arc<AtomicBool>,
    /// When the work on the next write began.
    began: Instant,
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Rest before the write: once the client has the last part, the thread has ended and the next backup can begin.
        if !self.full && !self.hurry.load(Ordering::Relaxed) {
            thread::sleep((self.began.elapsed() * REST).min(MOST_REST));
        }
        hand_over(&self.sender, Bytes::copy_from_slice(bytes))?;
        self.began = Instant::now();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends to a client. Waits for a slow one, for at most a minute.
pub(crate) fn hand_over(sender: &Sender<io::Result<Bytes>>, bytes: Bytes) -> io::Result<()> {
    let (mut item, since) = (Ok(bytes), Instant::now());
    loop {
        item = match sender.try_send(item) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Closed(_)) => {
                return Err(io::Error::new(ErrorKind::BrokenPipe, "the client has disconnected"));
            }
            Err(TrySendError::Full(item)) => item,
        };
        if since.elapsed() > STALL {
            return Err(io::Error::new(ErrorKind::TimedOut, "the client read nothing for a minute"));
        }
        thread::sleep(CHECK);
    }
}
