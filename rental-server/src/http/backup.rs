//! `GET /admin/v1/backup`: the store as an archive, streamed while the server goes on serving.
//!
//! A thread of its own reads one snapshot and works a part of the time only, so that requests keep the processor. It
//! stops when the client has gone or takes nothing for a minute; while the server drains it hurries. One runs at a time,
//! an export too.

use crate::{
    app::App,
    engine::Moment,
    http::{
        call::Call,
        reply::{Problem, Reply, Streamed},
    },
};
use bytes::Bytes;
use rental_core::{
    error::{Error, FieldCode},
    operation::Edge,
    page,
    rows::error_in_words,
    store::{
        SCHEMA_VERSION, Span,
        archive::{Summary, Writer},
        key,
    },
};
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
use warp::http::header;

/// Rests so many times as long as it works: a tenth of one core.
const REST: u32 = 9;
/// The longest rest.
const MOST_REST: Duration = Duration::from_secs(1);
/// Frames that wait for the client.
const AHEAD: usize = 4;
/// How long a client may take nothing.
const STALL: Duration = Duration::from_secs(60);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(5);

/// Starts a backup and gives the answer that streams it.
pub(crate) async fn start(app: &App, call: &Call) -> Result<Reply, Problem> {
    let full = full_pace(call.query())?;
    let (moment, now) = (app.store.moment().await.map_err(Error::from)?, call.moment.now());
    let reply = streamed(app, "backup", full, move |outlet| {
        let made_by = concat!("rental-server ", env!("CARGO_PKG_VERSION"));
        let summary = copy(moment, Writer::new(outlet, SCHEMA_VERSION, made_by, now)?)?;
        tracing::info!(rows = summary.rows, bytes = summary.bytes, "a backup was sent");
        Ok(())
    })?;
    let time: String = now.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    Ok(reply
        .with(header::CONTENT_TYPE, "application/octet-stream")
        .with(header::CONTENT_DISPOSITION, &format!("attachment; filename=\"rental-{time}.backup\"")))
}

/// An answer that `make` writes on a thread of its own; `what` it is, for the log. One is made at a time.
pub(super) fn streamed(
    app: &App,
    what: &'static str,
    full: bool,
    make: impl FnOnce(Outlet) -> io::Result<()> + Send + 'static,
) -> Result<Reply, Problem> {
    let busy = || Error::Conflict("Another backup is running, or an export. Try again when it has ended.".into());
    let running = Running::take(&app.backing_up).ok_or_else(busy)?;
    let (sender, receiver) = channel(AHEAD);
    let hurry = Arc::clone(&app.draining);
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
                // So that the client sees a broken answer, not a short one.
                let _ = sender.blocking_send(Err(error));
            }
        }
    };
    let started = thread::Builder::new().name(what.into()).spawn(work);
    started.map_err(|error| Error::Unavailable(format!("cannot start a thread for a {what}: {error}")))?;
    Ok(Reply::stream(Streamed::new(receiver)))
}

/// `pace=full` or `pace=gentle`, which is the same as nothing.
pub(super) fn full_pace(query: &str) -> Result<bool, Error> {
    match query.strip_prefix("pace=") {
        Some("full") => Ok(true),
        Some("gentle") => Ok(false),
        Some(_) => Err(Error::field("pace", FieldCode::Invalid, "must be `gentle` or `full`")),
        None => page::no_parameters(query).map(|()| false),
    }
}

fn copy(mut moment: Moment, mut writer: Writer<Outlet>) -> io::Result<Summary> {
    for row in moment.rows(&Span::everything()).map_err(io::Error::other)? {
        let row = row.map_err(|error| io::Error::other(error_in_words(&error)))?;
        if !key::is_of_servers(&row.key) {
            writer.push(&row)?;
        }
    }
    writer.finish().map(|(_, summary)| summary)
}

/// The one backup that runs.
struct Running(Arc<AtomicBool>);

impl Running {
    fn take(running: &Arc<AtomicBool>) -> Option<Self> {
        (!running.swap(true, Ordering::AcqRel)).then(|| Self(Arc::clone(running)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Where frames go: to the client, at the pace of both.
pub(super) struct Outlet {
    sender: Sender<io::Result<Bytes>>,
    full: bool,
    hurry: Arc<AtomicBool>,
    /// When the work on this frame began.
    began: Instant,
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The rest comes first: when the client has the last frame, nothing runs any more and the next one may begin.
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

/// Waits for a client that is slow, but not for ever.
pub(super) fn hand_over(sender: &Sender<io::Result<Bytes>>, bytes: Bytes) -> io::Result<()> {
    let (mut item, since) = (Ok(bytes), Instant::now());
    loop {
        item = match sender.try_send(item) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Closed(_)) => {
                return Err(io::Error::new(ErrorKind::BrokenPipe, "the client has gone"));
            }
            Err(TrySendError::Full(item)) => item,
        };
        if since.elapsed() > STALL {
            return Err(io::Error::new(ErrorKind::TimedOut, "the client took nothing for a minute"));
        }
        thread::sleep(LOOK);
    }
}
