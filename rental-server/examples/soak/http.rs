//! HTTP/1.1 for the soak: a client with one connection, and a receiver of webhooks.

use std::{
    collections::HashSet,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

/// A response.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// The head of a message: its first line, the lines of fields, and the length of the body.
fn head(stream: &mut BufReader<TcpStream>) -> io::Result<(String, Vec<String>, u64)> {
    let (mut first, mut fields, mut length) = (String::new(), Vec::new(), 0);
    if stream.read_line(&mut first)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            return Ok((first, fields, length));
        }
        if let Some((name, value)) = line.split_once(": ")
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.parse().map_err(io::Error::other)?;
        }
        fields.push(line);
    }
}

fn body(stream: &mut BufReader<TcpStream>, length: u64) -> io::Result<String> {
    let mut body = String::new();
    stream.take(length).read_to_string(&mut body)?;
    if body.len() as u64 == length { Ok(body) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Sends one request on a connection, which is opened when there is none and dropped after an error.
pub(crate) fn send(
    connection: &mut Option<BufReader<TcpStream>>,
    address: &str,
    (method, path, token): (&str, &str, &str),
    (key, content): (&str, &str),
) -> io::Result<Response> {
    let mut stream = match connection.take() {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            BufReader::new(stream)
        }
    };
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
    if !key.is_empty() {
        request.push_str(&format!("Idempotency-Key: {key}\r\n"));
    }
    if !content.is_empty() {
        request.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", content.len()));
    }
    stream.get_mut().write_all(format!("{request}\r\n{content}").as_bytes())?;
    let (first, fields, length) = head(&mut stream)?;
    let status = first.get(9..12).and_then(|status| status.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let response = Response { status, body: body(&mut stream, length)? };
    if !fields.iter().any(|field| field.eq_ignore_ascii_case("connection: close")) {
        *connection = Some(stream);
    }
    Ok(response)
}

/// The ids of all events that came, and how many came more than once.
#[derive(Clone, Default)]
pub(crate) struct Received(Arc<Mutex<(HashSet<String>, u64)>>);

impl Received {
    /// Starts a receiver that answers every request with 200. Returns its address.
    pub(crate) fn start(&self) -> io::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let received = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let received = received.clone();
                thread::spawn(move || received.serve(stream));
            }
        });
        Ok(address)
    }

    /// How many events came, and how many deliveries of events that had come before.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let received = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (received.0.len(), received.1)
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let (_, fields, length) = head(&mut stream)?;
            body(&mut stream, length)?;
            let id = fields.iter().find_map(|field| {
                let (name, value) = field.split_once(": ")?;
                name.to_ascii_lowercase().ends_with("-event-id").then(|| value.to_owned())
            });
            let mut received = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !id.is_some_and(|id| received.0.insert(id)) {
                received.1 += 1;
            }
            drop(received);
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
    }
}
