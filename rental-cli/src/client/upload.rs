//! Uploads a file and reads the response lines: the progress of the server, then the result as the last line.
//!
//! The file is streamed, not kept in memory. An upload may take any time, but it fails when it stalls.

use crate::{
    client::{
        access::Access,
        api::Api,
        attempt::{AttemptError, retried},
        request::Request,
    },
    failure::{Failure, error_response::ErrorResponse},
    output::progress::Progress,
};
use reqwest::{
    blocking::{Body, RequestBuilder, Response},
    header::{ACCEPT, CONTENT_TYPE},
};
use serde::Deserialize;
use signal_hook::{consts::SIGINT, flag};
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

/// Time without progress after which the upload fails. Long, because the server may read the whole file before its first line.
const STALL_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Time-out of the whole request: longer than any import, because [`STALL_TIMEOUT`] detects stalls.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Interval between two updates of the progress line.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum length of a response line.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// The file to upload.
pub(crate) struct Source {
    /// Path of the file; `None` for stdin, which can be read only once.
    path: Option<PathBuf>,
    length: Option<u64>,
    name: String,
}

impl Source {
    /// Checks that a file can be read. `-` is stdin.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self { path: None, length: None, name: "stdin".into() });
        }
        let source = Self { path: Some(path.to_owned()), length: None, name: path.display().to_string() };
        let about = File::open(path).and_then(|file| file.metadata()).map_err(|error| source.unreadable(error))?;
        if about.is_dir() {
            return Err(source.unreadable(io::ErrorKind::IsADirectory.into()));
        }
        let length = about.is_file().then_some(about.len());
        Ok(Self { length, ..source })
    }

    fn open(&self) -> Result<Box<dyn Read + Send>, Failure> {
        Ok(match &self.path {
            Some(path) => Box::new(File::open(path).map_err(|error| self.unreadable(error))?),
            None => Box::new(io::stdin()),
        })
    }

    fn unreadable(&self, error: io::Error) -> Failure {
        Failure::Io { doing: format!("read {}", self.name), error }
    }
}

/// Counts the bytes read, and keeps the error of a failed read.
struct CountingReader {
    from: Box<dyn Read + Send>,
    sent: Arc<AtomicU64>,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let outcome = self.from.read(buffer);
        match &outcome {
            Ok(count) => drop(self.sent.fetch_add(*count as u64, Ordering::Relaxed)),
            Err(error) => {
                let kept = io::Error::new(error.kind(), error.to_string());
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
            }
        }
        outcome
    }
}

/// A step of the upload, from the sending thread.
enum Step {
    Line(String),
    Refused(Response),
    Failed(reqwest::Error),
    Unreadable(String),
}

/// Uploads a file and returns the JSON of the result. Retries if the server rejects the request temporarily; that is safe,
/// because an import records no row twice.
pub(crate) fn send(api: &Api, request: &Request, source: &Source, media: &'static str) -> Result<String, Failure> {
    let stop = stop_flag().map_err(|error| Failure::Io { doing: "handle signals".into(), error })?;
    retried(|| attempt(api, request, source, media, &stop))
}

/// Returns a flag that Ctrl-C sets. A second Ctrl-C ends the process at once.
fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&stop))?;
    flag::register(SIGINT, Arc::clone(&stop))?;
    Ok(stop)
}

fn interrupted(rows: u64) -> Failure {
    let reported = match rows {
        0 => "the server had reported no row".to_owned(),
        1 => "the server had reported 1 row".to_owned(),
        rows => format!("the server had reported {rows} rows"),
    };
    let problem = format!("interrupted: {reported}, and goes on with the file if it has all of it");
    let hint = "`rental-cli audit list` says when it is done, with the counts; to be sure of all rows, import the file again: none is imported twice";
    Failure::Interrupted { problem, hint }
}

fn attempt(
    api: &Api,
    request: &Request,
    source: &Source,
    media: &'static str,
    stop: &AtomicBool,
) -> Result<String, AttemptError> {
    let (sent, failed) = (Arc::new(AtomicU64::new(0)), Arc::default());
    let from = source.open().map_err(AttemptError::Final)?;
    let watched = CountingReader { from, sent: Arc::clone(&sent), failed: Arc::clone(&failed) };
    let body = match source.length {
        Some(length) => Body::sized(watched, length),
        None => Body::new(watched),
    };
    let post = api.upload(request).map_err(AttemptError::Final)?;
    let post = post.header(ACCEPT, "application/x-ndjson").header(CONTENT_TYPE, media);
    let (steps, received) = sync_channel(16);
    thread::spawn(move || post_file(post.timeout(REQUEST_TIMEOUT).body(body), &steps));
    let outcome = follow_progress(&received, &sent, (source, stop), api);
    let unread = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
    let failure = match (outcome, unread) {
        (Ok(Step::Line(result)), _) => return result_of(result).map_err(AttemptError::Final),
        (_, Some(error)) => source.unreadable(error),
        (Ok(Step::Refused(response)), _) => match api.refused(response, request) {
            stop if source.path.is_some() => return Err(stop),
            stop => stop.into_failure(),
        },
        (Ok(Step::Failed(error)), _) => api.gone(&error),
        (Ok(Step::Unreadable(problem)), _) => Failure::Unreadable(problem),
        (Err(failure), _) => failure,
    };
    Err(AttemptError::Final(failure))
}

/// Sends the file and passes on the response lines.
fn post_file(post: RequestBuilder, steps: &SyncSender<Step>) {
    let step = match post.send() {
        Ok(response) if response.status().is_success() => return forward_lines(response, steps),
        Ok(response) => Step::Refused(response),
        Err(error) => Step::Failed(error),
    };
    // The receiver is gone if the command has ended.
    let _ = steps.send(step);
}

fn forward_lines(response: Response, steps: &SyncSender<Step>) {
    let mut from = BufReader::new(response);
    loop {
        let mut line = String::new();
        let step = match (&mut from).take(MAX_LINE_BYTES).read_line(&mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() as u64 >= MAX_LINE_BYTES => {
                Step::Unreadable("a line of the response is too long".into())
            }
            Ok(_) => Step::Line(line),
        };
        if steps.send(step).is_err() {
            return;
        }
    }
}

#[derive(Deserialize)]
struct ProgressLine {
    object: Option<String>,
    #[serde(default)]
    rows: u64,
    of: Option<u64>,
}

/// Shows the progress until the result or an error arrives.
fn follow_progress(
    received: &Receiver<Step>,
    sent: &AtomicU64,
    (source, stop): (&Source, &AtomicBool),
    api: &Api,
) -> Result<Step, Failure> {
    let mut uploading = Some(Progress::bytes(source.length, &format!("sending {}", source.name)));
    let mut importing: Option<Progress> = None;
    let (mut before, mut changed, mut rows) = (0, Instant::now(), 0);
    let stall_timeout = STALL_TIMEOUT.max(api.timeout());
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(interrupted(rows));
        }
        match received.recv_timeout(POLL_INTERVAL) {
            Ok(Step::Line(line)) => {
                let told: ProgressLine = serde_json::from_str(&line)
                    .map_err(|error| Failure::Unreadable(format!("a line of the response is not JSON: {error}")))?;
                if told.object.as_deref() != Some("import_progress") {
                    return Ok(Step::Line(line));
                }
                uploading = None;
                rows = told.rows;
                importing.get_or_insert_with(|| Progress::count(told.of, "rows")).at(told.rows);
                changed = Instant::now();
            }
            Ok(step) => return Ok(step),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Unreachable {
                    problem: "the connection broke before the import reported its result".into(),
                    hint: "import the file again: rows that were imported are not imported twice",
                });
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = sent.load(Ordering::Relaxed);
                if let Some(progress) = uploading.as_mut().filter(|_| now != before) {
                    progress.at(now);
                }
                if now != before {
                    (before, changed) = (now, Instant::now());
                }
                if changed.elapsed() > stall_timeout {
                    return Err(Failure::Unreachable {
                        problem: format!("the server has sent nothing for {} s", stall_timeout.as_secs()),
                        hint: "import the file again: rows that were imported are not imported twice",
                    });
                }
            }
        }
    }
}

/// Parses the last line: the result, or the error that ended the import.
fn result_of(line: String) -> Result<String, Failure> {
    #[derive(Deserialize)]
    struct Broken {
        error: Code,
    }
    #[derive(Deserialize)]
    struct Code {
        code: Option<String>,
    }
    match serde_json::from_str::<Broken>(&line) {
        Ok(Broken { error }) => {
            let status = if error.code.as_deref() == Some("service_unavailable") { 503 } else { 500 };
            Err(Failure::ErrorResponse(Box::new(ErrorResponse::read(
                status,
                line.as_bytes(),
                Access::Operator.hint().to_owned(),
            ))))
        }
        Err(_) => Ok(line),
    }
}
