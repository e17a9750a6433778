//! A webhook receiver that does as it is told, and remembers every request as it came over the wire.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How long anything may take that must happen: generous, since the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// What the receiver does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers with this status and no body.
    Status(u16),
    /// Answers with this status, these headers (lines without their end) and this body.
    Answer(u16, Vec<String>, Vec<u8>),
    /// Waits, then acts.
    After(Duration, Box<Act>),
    /// Never answers; the connection stays open.
    Hang,
    /// The first bytes once, then the second again and again with this pause, until the other side has enough.
    Pour(Vec<u8>, Vec<u8>, Duration),
    /// These bytes, then the connection closes.
    Raw(Vec<u8>),
}

/// A request that came in.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// When it was read whole.
    pub(crate) began: Instant,
    /// When its answer was written, or the connection given up.
    pub(crate) ended: Option<Instant>,
    /// The wall clock when it was read, in seconds.
    pub(crate) unix_seconds: u64,
    pub(crate) line: String,
    /// Names as they were sent.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// A header's value; it came exactly once.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = found.next().unwrap_or_else(|| panic!("no {name} in {self:?}"));
        assert!(found.next().is_none(), "{name} twice in {self:?}");
        &value.1
    }

    pub(crate) fn event(&self) -> &str {
        self.header("Service-Event-Id")
    }

    pub(crate) fn kind(&self) -> &str {
        self.header("Service-Event-Type")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("a delivery is JSON")
    }
}

impl Act {
    /// An answer with a body.
    pub(crate) fn body(status: u16, body: &[u8]) -> Self {
        Self::Answer(status, Vec::new(), body.to_vec())
    }

    /// An answer with one more header, such as `Retry-After: 1`.
    pub(crate) fn header(status: u16, line: &str) -> Self {
        Self::Answer(status, vec![line.to_owned()], Vec::new())
    }

    /// A 200 whose body comes a byte at a time and never ends.
    pub(crate) fn drip() -> Self {
        Self::Pour(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), b".".to_vec(), Duration::from_millis(20))
    }

    /// An answer whose body comes as fast as it is read and never ends.
    pub(crate) fn endless(status: u16) -> Self {
        Self::Pour(format!("HTTP/1.1 {status} Endless\r\n\r\n").into_bytes(), vec![b'.'; 16 * 1024], Duration::ZERO)
    }
}

type Script = Box<dyn FnMut(usize, &Seen) -> Act + Send>;

struct Shared {
    seen: Mutex<Vec<Seen>>,
    changed: Condvar,
    script: Mutex<Script>,
    connections: Mutex<Vec<TcpStream>>,
    accepted: Mutex<usize>,
    closed: AtomicBool,
}

/// A listener on a loopback address of its own; closed when it goes out of scope.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Receiver {
    /// One that answers 200 to everything.
    pub(crate) fn start() -> Self {
        Self::with(|_, _| Act::Status(200))
    }

    /// One that does the same with every request.
    pub(crate) fn that(act: Act) -> Self {
        Self::with(move |_, _| act.clone())
    }

    /// One that asks `script` what to do; it is given the request's number, from 0.
    pub(crate) fn with(script: impl FnMut(usize, &Seen) -> Act + Send + 'static) -> Self {
        Self::at("127.0.0.1:0".parse().expect("an address"), script)
    }

    /// The same on a given address.
    pub(crate) fn at(address: SocketAddr, script: impl FnMut(usize, &Seen) -> Act + Send + 'static) -> Self {
        let listener = TcpListener::bind(address).expect("an address of one's own");
        let shared = Arc::new(Shared {
            seen: Mutex::default(),
            changed: Condvar::new(),
            script: Mutex::new(Box::new(script)),
            connections: Mutex::default(),
            accepted: Mutex::default(),
            closed: AtomicBool::new(false),
        });
        let address = listener.local_addr().expect("an address");
        let thread = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || accept(&listener, &shared))
        };
        Self { address, shared, thread: Some(thread) }
    }

    /// An address where nothing listens.
    pub(crate) fn nobody() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address")
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hooks?a=b", self.address)
    }

    /// Acts otherwise from the next request on.
    pub(crate) fn now_does(&self, act: Act) {
        *lock(&self.shared.script) = Box::new(move |_, _| act.clone());
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.seen).clone()
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.shared.seen).len()
    }

    /// Connections so far, with or without a request.
    pub(crate) fn connections(&self) -> usize {
        *lock(&self.shared.accepted)
    }

    /// Waits until this many requests came in, and gives all of them.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Seen> {
        self.wait_until(&format!("{count} requests"), |seen| seen.len() >= count)
    }

    /// Waits until the requests are as wanted, and gives all of them.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, wanted: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = lock(&self.shared.seen);
        while !wanted(&seen) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the receiver waits in vain for {what}; it has {}", summary(&seen));
            let woken = self.shared.changed.wait_timeout(seen, left);
            seen = woken.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        seen.clone()
    }

    /// Closes the listener and all connections.
    pub(crate) fn close(mut self) -> Vec<Seen> {
        self.stop();
        self.seen()
    }

    fn stop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for connection in lock(&self.shared.connections).drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop();
    }
}

fn summary(seen: &[Seen]) -> String {
    let kinds: Vec<&str> = seen.iter().rev().take(30).map(Seen::kind).collect();
    format!("{} requests, the last of them {kinds:?}", seen.len())
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        *lock(&shared.accepted) += 1;
        lock(&shared.connections).extend(stream.try_clone());
        let shared = Arc::clone(shared);
        std::thread::spawn(move || serve(stream, &shared));
    }
}

/// Reads requests from a connection and acts on each, until an act or the other side ends it.
fn serve(stream: TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream) {
        let number = {
            let mut seen = lock(&shared.seen);
            seen.push(request.clone());
            seen.len() - 1
        };
        let act = lock(&shared.script)(number, &request);
        shared.changed.notify_all();
        let goes_on = perform(&act, stream.get_mut(), shared);
        lock(&shared.seen)[number].ended = Some(Instant::now());
        shared.changed.notify_all();
        if !goes_on {
            let _ = stream.get_ref().shutdown(Shutdown::Both);
            return;
        }
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let mut lines = lines.into_iter();
    let line = lines.next()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned())))
        .collect();
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?.1.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Seen { began: Instant::now(), ended: None, unix_seconds: unix_seconds(), line, headers, body })
}

#[expect(clippy::disallowed_methods, reason = "a receiver compares `t` with its own wall clock")]
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs())
}

/// Says whether the connection can take another request.
fn perform(act: &Act, stream: &mut TcpStream, shared: &Shared) -> bool {
    match act {
        Act::Status(status) => perform(&Act::Answer(*status, Vec::new(), Vec::new()), stream, shared),
        Act::Answer(status, headers, body) => {
            let mut answer = format!("HTTP/1.1 {status} Scripted\r\nContent-Length: {}\r\n", body.len());
            headers.iter().for_each(|line| answer.push_str(&format!("{line}\r\n")));
            stream.write_all(&[answer.as_bytes(), b"\r\n", body].concat()).is_ok()
        }
        Act::After(delay, act) => {
            std::thread::sleep(*delay);
            perform(act, stream, shared)
        }
        Act::Hang => {
            // Ends when the other side closes.
            let _ = stream.read(&mut [0]);
            false
        }
        Act::Pour(head, drop, pause) => pour(stream, shared, head, drop, *pause),
        Act::Raw(bytes) => {
            let _ = stream.write_all(bytes);
            false
        }
    }
}

fn pour(stream: &mut TcpStream, shared: &Shared, head: &[u8], drop: &[u8], pause: Duration) -> bool {
    let mut sent = stream.write_all(head);
    while sent.is_ok() && !shared.closed.load(Ordering::SeqCst) {
        std::thread::sleep(pause);
        sent = stream.write_all(drop);
    }
    false
}
