//! HTTP/1.1 by hand: a test can send what no library would.

use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

/// One answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// A header's value, if it came.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, whatever the status.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?} {}", self.text()))
    }

    /// The body of a 200.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// The id in the body of a 200.
    #[track_caller]
    pub(crate) fn id(&self) -> String {
        self.ok()["id"].as_str().expect("an id").to_owned()
    }

    /// The error of an answer with this status, type and code; its shape is checked on the way.
    #[track_caller]
    pub(crate) fn error(&self, status: u16, kind: &str, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        let error = self.json()["error"].clone();
        assert_eq!((error["type"].as_str(), error["code"].as_str()), (Some(kind), Some(code)), "{error}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
        assert_eq!(error["request_id"].as_str(), self.header("request-id"), "{error}");
        error
    }

    /// The error of a 400 about fields: the codes by parameter, in order.
    #[track_caller]
    pub(crate) fn bad_fields(&self) -> Vec<(String, String)> {
        assert_eq!(self.status, 400, "{}", self.text());
        let error = &self.json()["error"];
        assert_eq!(error["type"], "invalid_request_error");
        let errors = error["errors"].as_array().unwrap_or_else(|| panic!("no errors in {error}"));
        assert_eq!((&error["param"], &error["code"]), (&errors[0]["param"], &errors[0]["code"]));
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        errors.iter().map(|error| (text(&error["param"]), text(&error["code"]))).collect()
    }
}

/// A connection to a server; requests on it follow one another.
pub(crate) struct Connection {
    pub(crate) stream: BufReader<TcpStream>,
    host: String,
}

impl Connection {
    pub(crate) fn open(address: &str) -> Self {
        Self::try_open(address).expect("the server accepts connections")
    }

    pub(crate) fn try_open(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_owned() })
    }

    /// Sends a request and reads its answer.
    #[track_caller]
    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub(crate) fn try_send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Reply> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || matches!(method, "POST" | "PATCH" | "PUT") {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        self.write(head.as_bytes())?;
        // A server that refuses a body early may close while it is sent; its answer still counts.
        let _ = self.write(body);
        self.read_reply(method == "HEAD")
    }

    /// Sends any bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads a body in chunks to its end.
    fn read_chunks(&mut self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim_end(), 16).map_err(|_| std::io::ErrorKind::UnexpectedEof)?;
            let start = body.len();
            body.resize(start + length, 0);
            self.stream.read_exact(&mut body[start..])?;
            self.stream.read_exact(&mut [0; 2])?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    /// Reads one answer.
    pub(crate) fn read_reply(&mut self, bodyless: bool) -> std::io::Result<Reply> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let status =
            line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or(std::io::ErrorKind::InvalidData)?;
        let mut headers = Vec::new();
        loop {
            line.clear();
            // A head that ends before its empty line is no answer: the server went away.
            if self.stream.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
                None => break,
            }
        }
        let mut reply = Reply { status, headers, body: Vec::new() };
        let length = reply.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if !bodyless && reply.header("transfer-encoding") == Some("chunked") {
            reply.body = self.read_chunks()?;
        } else if !bodyless && status != 304 {
            reply.body = vec![0; length];
            self.stream.read_exact(&mut reply.body)?;
        }
        Ok(reply)
    }
}

/// Escapes everything but letters and digits.
pub(crate) fn percent_encode(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
