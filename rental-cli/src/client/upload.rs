//! A file on its way to the server, and the lines that come back: how far the server is, and the result as the last one.
//!
//! Nothing is kept in memory, and no time is too long as long as something happens.

use crate::{
    client::{
        access::Access,
        api::Api,
        attempt::{Stop, retried},
        request::Request,
    },
    failure::{Failure, refusal::Refusal},
    output::progress::Progress,
};
use reqwest::{
    blocking::{Body, RequestBuilder, Response},
    header::{ACCEPT, CONTENT_TYPE},
};
use serde::Deserialize;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

/// How long nothing may happen: the server reads a file to its end before it says anything.
const QUIET: Duration = Duration::from_secs(10 * 60);
/// Longer than any import; what is quiet is noticed by itself.
const WHOLE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Between two looks at how far it is.
const LOOK: Duration = Duration::from_millis(100);
/// Longest line of an answer.
const MOST_LINE: u64 = 16 * 1024 * 1024;

/// What is uploaded.
pub(crate) struct Source {
    /// The file; `None` for stdin, which can be read once only.
    path: Option<PathBuf>,
    length: Option<u64>,
    name: String,
}

impl Source {
    /// A file, or stdin for `-`.
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

/// Counts what is read, and keeps why it could not be.
struct Watched {
    from: Box<dyn Read + Send>,
    sent: Arc<AtomicU64>,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl Read for Watched {
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

/// What comes back.
enum Step {
    Line(String),
    Refused(Response),
    Failed(reqwest::Error),
    Unreadable(String),
}

/// Uploads a file and gives the JSON of the result. A file that the server refuses to read for now is sent again: an
/// import records nothing twice.
pub(crate) fn send(api: &Api, request: &Request, source: &Source, media: &'static str) -> Result<String, Failure> {
    retried(|| attempt(api, request, source, media))
}

fn attempt(api: &Api, request: &Request, source: &Source, media: &'static str) -> Result<String, Stop> {
    let (sent, failed) = (Arc::new(AtomicU64::new(0)), Arc::default());
    let from = source.open().map_err(Stop::Final)?;
    let watched = Watched { from, sent: Arc::clone(&sent), failed: Arc::clone(&failed) };
    let body = match source.length {
        Some(length) => Body::sized(watched, length),
        None => Body::new(watched),
    };
    let post = api.upload(request).map_err(Stop::Final)?;
    let post = post.header(ACCEPT, "application/x-ndjson").header(CONTENT_TYPE, media);
    let (steps, received) = sync_channel(16);
    thread::spawn(move || talk(post.timeout(WHOLE).body(body), &steps));
    let outcome = follow(&received, &sent, source, api);
    let unread = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
    let failure = match (outcome, unread) {
        (Ok(Step::Line(result)), _) => return result_of(result).map_err(Stop::Final),
        (_, Some(error)) => source.unreadable(error),
        (Ok(Step::Refused(response)), _) => match api.refused(response, request) {
            stop if source.path.is_some() => return Err(stop),
            stop => stop.into_failure(),
        },
        (Ok(Step::Failed(error)), _) => api.gone(&error),
        (Ok(Step::Unreadable(problem)), _) => Failure::Unreadable(problem),
        (Err(failure), _) => failure,
    };
    Err(Stop::Final(failure))
}

/// Sends, and passes on what comes back.
fn talk(post: RequestBuilder, steps: &SyncSender<Step>) {
    let step = match post.send() {
        Ok(response) if response.status().is_success() => return lines(response, steps),
        Ok(response) => Step::Refused(response),
        Err(error) => Step::Failed(error),
    };
    // Nobody listens any more when the command has ended.
    let _ = steps.send(step);
}

fn lines(response: Response, steps: &SyncSender<Step>) {
    let mut from = BufReader::new(response);
    loop {
        let mut line = String::new();
        let step = match (&mut from).take(MOST_LINE).read_line(&mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() as u64 >= MOST_LINE => Step::Unreadable("a line of the response is too long".into()),
            Ok(_) => Step::Line(line),
        };
        if steps.send(step).is_err() {
            return;
        }
    }
}

#[derive(Deserialize)]
struct Told {
    object: Option<String>,
    #[serde(default)]
    rows: u64,
    of: Option<u64>,
}

/// Shows how far it is until the last line or the end of the matter is there.
fn follow(received: &Receiver<Step>, sent: &AtomicU64, source: &Source, api: &Api) -> Result<Step, Failure> {
    let mut uploading = Some(Progress::bytes(source.length, &format!("sending {}", source.name)));
    let mut importing: Option<Progress> = None;
    let (mut before, mut changed) = (0, Instant::now());
    let quiet = QUIET.max(api.patience());
    loop {
        match received.recv_timeout(LOOK) {
            Ok(Step::Line(line)) => {
                let told: Told = serde_json::from_str(&line)
                    .map_err(|error| Failure::Unreadable(format!("a line of the response is not JSON: {error}")))?;
                if told.object.as_deref() != Some("import_progress") {
                    return Ok(Step::Line(line));
                }
                uploading = None;
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
                if changed.elapsed() > quiet {
                    return Err(Failure::Unreachable {
                        problem: format!("the server has sent nothing for {} s", quiet.as_secs()),
                        hint: "import the file again: rows that were imported are not imported twice",
                    });
                }
            }
        }
    }
}

/// The last line is the result, or the error that ended the import.
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
            Err(Failure::Refused(Box::new(Refusal::read(status, line.as_bytes(), Access::Operator.hint()))))
        }
        Err(_) => Ok(line),
    }
}
