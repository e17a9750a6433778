//! The progress of a long request, for a client that asks for it: lines of JSON, with the result as the last line.
//!
//! The server sends the status with the first line. So the first line is sent only after all checks that can refuse the
//! request. A later failure is the last line: the same error object as in any other response.

use crate::http::{
    call::Call,
    patience::Patience,
    problem::{Problem, render},
    reply::Reply,
    streamed::hand_over,
};
use bytes::Bytes;
use std::{
    io,
    time::{Duration, Instant},
};
use tokio::sync::{
    mpsc::{Receiver, Sender, channel},
    oneshot,
};
use warp::http::header;

/// The media type of lines.
pub(crate) const LINES: &str = "application/x-ndjson";
/// Pause between two lines.
const PAUSE: Duration = Duration::from_millis(200);
/// Lines that wait for the client.
const AHEAD: usize = 4;

/// The sending end, for the thread that does the work.
pub(crate) struct Progress {
    listener: Option<Listener>,
    of: u64,
    reported: Instant,
}

struct Listener {
    lines: Sender<io::Result<Bytes>>,
    begun: Option<oneshot::Sender<()>>,
    request_id: String,
}

/// The receiving end, for the response.
pub(crate) struct Listening {
    lines: Receiver<io::Result<Bytes>>,
    begun: oneshot::Receiver<()>,
}

/// Both ends. There is a receiving end only if the client asks for progress.
pub(crate) fn of(call: &Call) -> (Progress, Option<Listening>) {
    let quiet = Progress { listener: None, of: 0, reported: Instant::now() };
    if !accepts_lines(call) {
        return (quiet, None);
    }
    let ((lines, received), (begin, begun)) = (channel(AHEAD), oneshot::channel());
    let request_id = call.request_id.as_str().to_owned();
    let listener = Some(Listener { lines, begun: Some(begin), request_id });
    (Progress { listener, ..quiet }, Some(Listening { lines: received, begun }))
}

/// Whether `Accept` names lines. Other clients get one object at the end.
fn accepts_lines(call: &Call) -> bool {
    let values = call.headers().get_all(header::ACCEPT);
    let names = values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    names.filter_map(|name| name.split(';').next()).any(|name| name.trim().eq_ignore_ascii_case(LINES))
}

impl Progress {
    /// Sends the first line. The request cannot be refused any more; it has `of` rows.
    pub(crate) fn begin(&mut self, of: u64) {
        self.of = of;
        if let Some(begun) = self.listener.as_mut().and_then(|listener| listener.begun.take()) {
            // If the client has disconnected, the next line notices it.
            let _ = begun.send(());
        }
        self.send(0);
    }

    /// Sends a line, if the last one is old enough: this number of rows is done.
    pub(crate) fn at(&mut self, rows: u64) {
        if self.reported.elapsed() >= PAUSE {
            self.send(rows);
        }
    }

    fn send(&mut self, rows: u64) {
        let Some(listener) = &self.listener else { return };
        self.reported = Instant::now();
        let line = format!("{{\"object\":\"import_progress\",\"rows\":{rows},\"of\":{}}}\n", self.of);
        // The work neither stops for a client that has disconnected nor waits for a slow one.
        let _ = listener.lines.try_send(Ok(line.into()));
    }

    /// Sends the last line, if the first one was sent.
    pub(crate) fn finish(self, outcome: &Result<Bytes, Problem>) {
        let Some(Listener { lines, begun: None, request_id }) = self.listener else { return };
        let last = match outcome {
            Ok(result) => result.clone(),
            Err(problem) => {
                tracing::error!(request_id, ?problem, "an import failed after its first rows");
                render(problem, &request_id).1
            }
        };
        // A client that has disconnected can import again, which repeats nothing.
        let _ = hand_over(&lines, [&last[..], b"\n"].concat().into(), &mut Patience::with_reader());
    }
}

impl Listening {
    /// Waits for the first line and returns the response; `None` when the work ended before it.
    pub(crate) async fn begun(self) -> Option<Reply> {
        self.begun.await.ok()?;
        Some(Reply::stream(self.lines).with(header::CONTENT_TYPE, LINES))
    }
}
