//! How far a long request is, for a client that asks: lines of JSON, the result as the last one.
//!
//! The status goes out with the first line. So it is written only when nothing can be refused any more; what fails after
//! that is told in the last line, as the error object of any other answer.

use crate::http::{
    call::Call,
    reply::{Problem, Reply, Streamed, render},
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

/// The end at which work is done.
pub(crate) struct Progress {
    listener: Option<Listener>,
    of: u64,
    told: Instant,
}

struct Listener {
    lines: Sender<io::Result<Bytes>>,
    begun: Option<oneshot::Sender<()>>,
    request_id: String,
}

/// The end at which the client listens.
pub(crate) struct Listening {
    lines: Receiver<io::Result<Bytes>>,
    begun: oneshot::Receiver<()>,
}

/// Both ends, the second one when the client asked for it.
pub(crate) fn of(call: &Call) -> (Progress, Option<Listening>) {
    let quiet = Progress { listener: None, of: 0, told: Instant::now() };
    if !accepts_lines(call) {
        return (quiet, None);
    }
    let ((lines, received), (begin, begun)) = (channel(AHEAD), oneshot::channel());
    let request_id = call.request_id.as_str().to_owned();
    let listener = Some(Listener { lines, begun: Some(begin), request_id });
    (Progress { listener, ..quiet }, Some(Listening { lines: received, begun }))
}

/// Whether `Accept` names lines; anything else gets one object at the end.
fn accepts_lines(call: &Call) -> bool {
    let values = call.headers().get_all(header::ACCEPT);
    let names = values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    names.filter_map(|name| name.split(';').next()).any(|name| name.trim().eq_ignore_ascii_case(LINES))
}

impl Progress {
    /// Nothing is refused any more; `of` rows are to be done.
    pub(crate) fn begin(&mut self, of: u64) {
        self.of = of;
        if let Some(begun) = self.listener.as_mut().and_then(|listener| listener.begun.take()) {
            // A client that has gone is noticed with the next line.
            let _ = begun.send(());
        }
        self.tell(0);
    }

    /// So many rows are done.
    pub(crate) fn at(&mut self, rows: u64) {
        if self.told.elapsed() >= PAUSE {
            self.tell(rows);
        }
    }

    fn tell(&mut self, rows: u64) {
        let Some(listener) = &self.listener else { return };
        self.told = Instant::now();
        let line = format!("{{\"object\":\"import_progress\",\"rows\":{rows},\"of\":{}}}\n", self.of);
        // The work goes on for a client that has gone, and does not wait for one that is slow.
        let _ = listener.lines.try_send(Ok(line.into()));
    }

    /// The last line, if the first one has gone out.
    pub(crate) fn finish(self, outcome: &Result<Bytes, Problem>) {
        let Some(Listener { lines, begun: None, request_id }) = self.listener else { return };
        let last = match outcome {
            Ok(answer) => answer.clone(),
            Err(problem) => {
                tracing::error!(request_id, ?problem, "an import failed after its first rows");
                render(problem, &request_id).1
            }
        };
        // Who has gone asks again, or imports again, which repeats nothing.
        let _ = hand_over(&lines, [&last[..], b"\n"].concat().into());
    }
}

impl Listening {
    /// The answer, once the work has begun; `None` when it ended before that.
    pub(crate) async fn begun(self) -> Option<Reply> {
        self.begun.await.ok()?;
        Some(Reply::stream(Streamed::new(self.lines)).with(header::CONTENT_TYPE, LINES))
    }
}
