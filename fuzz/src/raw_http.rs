//! The server's HTTP/1.1 as it is, over a socket: any bytes, in any pieces. The files of `rental-server/src/http` are compiled
//! into this crate; the handlers behind them are one that reads the body.

use crate::{
    Pieces,
    damaged_rows::DamagedRows,
    http::{
        Method,
        call::{Body, Call},
        paths::{Paths, Place},
        places::ConnectionLimits,
        reply::{Handled, Reply},
        serve::Service,
        server,
    },
};
use futures_util::StreamExt;
use prometheus_client::metrics::gauge::Gauge;
use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, runtime::Builder};

/// A connection whose client has closed its half ends within this time.
const MOST_TIME: Duration = Duration::from_secs(10);

/// Reads the body of a request and answers with its length.
struct Echo {
    paths: Paths,
    draining: AtomicBool,
    damaged: Arc<DamagedRows>,
}

/// Requests that reached the handler, and panics anywhere.
static HANDLED: AtomicU64 = AtomicU64::new(0);
static PANICKED: AtomicBool = AtomicBool::new(false);

impl Service for Echo {
    fn paths(&self) -> &Paths {
        &self.paths
    }

    async fn handle<'r>(&'r self, place: &'r Place, call: &'r Call, mut body: Body<'r>) -> Handled {
        HANDLED.fetch_add(1, Ordering::SeqCst);
        let mut length = 0;
        while let Some(part) = body.next().await {
            length += part?.len();
        }
        let text = format!("{{\"id\":{:?},\"query\":{},\"body\":{length}}}", place.id(call.path()), call.query().len());
        Ok(Reply::json(text.into()))
    }

    fn takes_its_time(&self, _: &Place) -> bool {
        false
    }

    fn max_body(&self) -> usize {
        4096
    }

    fn request_timeout(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn draining(&self) -> &AtomicBool {
        &self.draining
    }

    fn served(&self, _: &Call, _: Option<&Place>, _: u16, _: Duration) {}

    fn crowded(&self) {}

    fn in_flight(&self) -> Gauge {
        Gauge::default()
    }

    fn damaged(&self) -> &Arc<DamagedRows> {
        &self.damaged
    }

    fn opened(&self) {}

    fn closed(&self) {}

    fn refused(&self) {}
}

/// The server, which runs until the process ends.
static SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
    // The start code of a Rust program ignores this signal; that of a fuzzer does not.
    signal_hook::flag::register(signal_hook::consts::SIGPIPE, Arc::default()).expect("a handler");
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED.store(true, Ordering::SeqCst);
        before(panic);
    }));
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            sender.send(listener.local_addr().expect("an address")).expect("somebody waits");
            let table = [(Method::GET, "/v1/a"), (Method::POST, "/v1/a"), (Method::PATCH, "/v1/a/{id}")];
            let paths = Paths::new(table.iter().enumerate().map(|(row, (method, path))| (row, (method, *path))));
            let service = Arc::new(Echo { paths, draining: AtomicBool::new(false), damaged: Arc::default() });
            let limits = ConnectionLimits { all: 64, per_address: 64, proxies: Arc::new([]) };
            server::serve(listener, service, limits, None, std::future::pending()).await;
        });
    });
    receiver.recv().expect("the server starts")
});

/// The first byte says how large the pieces are; the rest is what the client sends before it closes its half.
pub fn check(data: &[u8]) {
    let mut pieces = Pieces(data);
    let first = pieces.byte();
    let sent = pieces.0;
    let mut client = TcpStream::connect(*SERVER).expect("the server listens");
    client.set_nodelay(true).expect("a socket");
    client.set_read_timeout(Some(MOST_TIME)).expect("a socket");
    client.set_write_timeout(Some(MOST_TIME)).expect("a socket");
    let size = match first % 8 {
        0 => usize::from(first / 8) + 1,
        _ => sent.len().div_ceil(usize::from(first % 8)).max(1),
    };
    let before = HANDLED.load(Ordering::SeqCst);
    for piece in sent.chunks(size).take(32) {
        // The server may close a connection after a bad head.
        if client.write_all(piece).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Write);
    let mut received = Vec::new();
    let mut part = [0; 4096];
    loop {
        match client.read(&mut part) {
            Ok(0) => break,
            Ok(count) => received.extend_from_slice(&part[..count]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                panic!("the connection does not end after {} bytes", received.len());
            }
            // A reset: the server closed a connection with unread bytes.
            Err(_) => return,
        }
    }
    assert!(!PANICKED.load(Ordering::SeqCst), "the server panicked");
    let responses = responses(&received, sent.windows(5).any(|part| part == b"HEAD "));
    let handled = HANDLED.load(Ordering::SeqCst) - before;
    assert!(handled <= responses.len() as u64, "{handled} requests were handled, {} answered", responses.len());
    let ids: BTreeSet<&str> = responses.iter().filter_map(|head| header(head, "x-request-id")).collect();
    let named = responses.iter().filter(|head| header(head, "x-request-id").is_some()).count();
    assert_eq!(ids.len(), named, "a request was answered twice: {responses:?}");
    // Each request has a blank line at its end. hyper takes bare line feeds.
    let ends: [&[u8]; 2] = [b"\n\r\n", b"\n\n"];
    let most = ends.iter().map(|end| sent.windows(end.len()).filter(|part| part == end).count()).sum::<usize>() + 1;
    assert!(responses.len() <= most, "{} responses to at most {most} requests", responses.len());
}

/// The heads of the responses, which must be well formed.
fn responses(mut rest: &[u8], heads: bool) -> Vec<String> {
    let mut responses = Vec::new();
    while !rest.is_empty() {
        let end = rest.windows(4).position(|part| part == b"\r\n\r\n").expect("a whole head") + 4;
        let head = std::str::from_utf8(&rest[..end]).expect("text");
        rest = &rest[end..];
        let (line, fields) = head.split_once("\r\n").expect("a status line");
        let (version, status) = line.split_once(' ').expect("a version");
        assert!(matches!(version, "HTTP/1.1" | "HTTP/1.0"), "{line:?}");
        let status: u16 = status.split(' ').next().and_then(|digits| digits.parse().ok()).expect("a status");
        assert!((100..600).contains(&status) && status != 500, "{line:?}");
        for field in fields.split("\r\n").filter(|field| !field.is_empty()) {
            let (name, value) = field.split_once(':').expect("a name");
            assert!(
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'),
                "{field:?}"
            );
            assert!(!value.contains(['\r', '\n', '\0']), "{field:?}");
        }
        let bodiless = status < 200 || matches!(status, 204 | 304);
        if !bodiless && !(heads && (rest.is_empty() || rest.starts_with(b"HTTP/1."))) {
            rest = body(head, rest);
        }
        if status >= 200 {
            responses.push(head.to_owned());
        }
    }
    responses
}

/// What follows a body.
fn body<'r>(head: &str, mut rest: &'r [u8]) -> &'r [u8] {
    if let Some(length) = header(head, "content-length") {
        let length: usize = length.parse().expect("a length");
        return rest.get(length..).expect("a whole body");
    }
    assert_eq!(header(head, "transfer-encoding"), Some("chunked"), "{head:?}");
    loop {
        let end = rest.windows(2).position(|part| part == b"\r\n").expect("the size of a chunk");
        let digits = std::str::from_utf8(&rest[..end]).expect("text");
        let size = usize::from_str_radix(digits, 16).expect("a size");
        rest = rest.get(end + 2 + size + 2..).expect("a whole chunk");
        if size == 0 {
            return rest;
        }
    }
}

fn header<'h>(head: &'h str, wanted: &str) -> Option<&'h str> {
    let fields = head.split("\r\n").skip(1).filter_map(|field| field.split_once(':'));
    fields.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
}
