//! A server that answers what the test wrote down, in that order, and keeps what it was asked.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Command, Output},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for something that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Answers, in order; the last one is repeated.
pub(crate) enum Reply {
    Answer {
        status: u16,
        headers: &'static str,
        body: String,
    },
    /// 200 with any bytes.
    Bytes(Vec<u8>),
    /// The same, over a fifth of a second.
    Slowly(Vec<u8>),
    /// Closes the connection without an answer.
    HangUp,
    /// Announces more than it sends, then closes.
    BreakOff,
    /// Sends nothing for longer than any test waits.
    Silence,
    /// Sends this many bytes.
    Flood(usize),
}

pub(crate) fn ok(body: &str) -> Reply {
    Reply::Answer { status: 200, headers: "", body: body.to_owned() }
}

pub(crate) fn error(status: u16, headers: &'static str, kind: &str, code: &str) -> Reply {
    let body =
        format!(r#"{{"error":{{"type":"{kind}","code":"{code}","message":"No, because.","request_id":"req_7"}}}}"#);
    Reply::Answer { status, headers, body }
}

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// `GET /v1/vehicles?limit=1`
    pub(crate) line: String,
    /// Lower-case names.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) struct FakeServer {
    pub(crate) base_url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl FakeServer {
    pub(crate) fn new(script: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        thread::spawn(move || {
            for (at, stream) in listener.incoming().enumerate() {
                let stream = stream.unwrap();
                let Some(request) = read(&stream) else { continue };
                log.lock().unwrap().push(request);
                answer(stream, &script[at.min(script.len() - 1)]);
            }
        });
        Self { base_url, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits until that many requests have come: on a busy machine a request can be read after its client gave up.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Asked> {
        let started = Instant::now();
        while self.asked().len() < count {
            assert!(started.elapsed() < PATIENCE, "{count} requests: {:?}", self.asked());
            thread::sleep(Duration::from_millis(20));
        }
        self.asked()
    }

    /// The command line `args`, with both secrets set.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = cli(args);
        command.env("RENTAL_BASE_URL", &self.base_url);
        command.env("RENTAL_API_KEY", "rk_live_test").env("RENTAL_ADMIN_TOKEN", "admin-token-of-the-test");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&mut self.command(args))
    }
}

/// A command line in an empty environment.
pub(crate) fn cli(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rental-cli"));
    // A test has nobody who leaves a pager.
    command.env_clear().env("RENTAL_PAGER", "").args(args);
    command
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut next = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let line = next()?.strip_suffix(" HTTP/1.1")?.to_owned();
    let mut headers = Vec::new();
    loop {
        let line = next()?;
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let mut asked = Asked { line, headers, body: String::new() };
    let length: usize = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    asked.body = String::from_utf8(body).unwrap();
    Some(asked)
}

fn answer(mut stream: TcpStream, reply: &Reply) {
    let head = |status: u16, headers: &str, length: usize| {
        format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n")
    };
    // The client may be gone already; then there is nobody to fail for.
    let _ = match reply {
        Reply::Answer { status, headers, body } => {
            stream.write_all((head(*status, headers, body.len()) + body).as_bytes())
        }
        Reply::Bytes(bytes) => {
            stream.write_all(head(200, "", bytes.len()).as_bytes()).and_then(|()| stream.write_all(bytes))
        }
        Reply::Slowly(bytes) => {
            let mut parts = bytes.chunks(bytes.len() / 20 + 1);
            let sent = stream.write_all(head(200, "", bytes.len()).as_bytes());
            sent.and_then(|()| {
                parts.try_for_each(|part| {
                    thread::sleep(Duration::from_millis(10));
                    stream.write_all(part)
                })
            })
        }
        Reply::HangUp => Ok(()),
        Reply::BreakOff => stream.write_all((head(200, "", 100) + "{").as_bytes()),
        Reply::Silence => {
            thread::sleep(Duration::from_secs(300));
            Ok(())
        }
        Reply::Flood(bytes) => {
            let chunk = vec![b' '; 1 << 20];
            let sent = stream.write_all(head(200, "", *bytes).as_bytes());
            sent.and_then(|()| (0..bytes / chunk.len()).try_for_each(|_| stream.write_all(&chunk)))
        }
    };
}
