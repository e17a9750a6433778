//! `--debug`: requests and responses on stderr, without secrets.

use crate::text::printable;
use reqwest::{Method, Url, blocking::Response, header::HeaderValue};
use serde_json::Value;
use std::io::Write as _;

/// Maximum characters shown of a body.
const BODY_CHARS: usize = 2000;

/// Whether exchanges are shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Trace {
    Off,
    On,
}

impl Trace {
    /// Shows a request. The secret is in the `Authorization` header, which is left out.
    pub(super) fn request(self, method: &Method, url: &Url, key: Option<&HeaderValue>, body: Option<&[u8]>) {
        if self == Self::Off {
            return;
        }
        let mut lines = vec![format!("> {method} {url}"), "> authorization: Bearer ***".to_owned()];
        lines.extend(key.and_then(|key| key.to_str().ok()).map(|key| format!("> idempotency-key: {key}")));
        lines.extend(body.map(|body| format!("> {}", shown(body))));
        block(&lines);
    }

    /// What is shown of the head of a response.
    pub(super) fn head(self, response: &Response) -> Option<String> {
        if self == Self::Off {
            return None;
        }
        let header = |name: &str| Some(format!("{name}: {}", response.headers().get(name)?.to_str().ok()?));
        let names = ["request-id", "content-type", "retry-after", "idempotent-replayed", "rental-damaged-rows"];
        let headers: Vec<String> = names.into_iter().filter_map(header).collect();
        // Look-ups run at the same time, so each response says what it answers.
        Some(format!("< {} of {}\n< {}", response.status(), response.url(), headers.join("\n< ")))
    }

    /// Shows a response.
    pub(super) fn body(self, head: Option<String>, body: &[u8]) {
        let Some(head) = head else { return };
        let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
        lines.extend((!body.is_empty()).then(|| format!("< {}", shown(body))));
        block(&lines);
    }
}

/// Writes lines that no other exchange comes between.
fn block(lines: &[String]) {
    let text: String = lines.iter().map(|line| format!("{}\n", printable(line))).collect();
    // Nothing can be reported if stderr is closed.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// The beginning of a body in which no value is a secret. A body that is not JSON has a length only.
fn shown(body: &[u8]) -> String {
    let Ok(mut json) = serde_json::from_slice::<Value>(body) else { return format!("({} bytes)", body.len()) };
    hide(&mut json);
    let text = json.to_string();
    match text.char_indices().nth(BODY_CHARS) {
        Some((end, _)) => format!("{}… ({} bytes)", text.get(..end).unwrap_or_default(), body.len()),
        None => text,
    }
}

fn hide(json: &mut Value) {
    const SECRET: [&str; 4] = ["secret", "token", "key", "url"];
    match json {
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| {
            // The URL of a calendar feed opens it, and so does the path of the calendar of a vehicle.
            let secret = SECRET.iter().any(|word| name == word || name.ends_with(&format!("_{word}")));
            match value {
                Value::String(text) if secret || text.starts_with("/calendar/") => "***".clone_into(text),
                _ => hide(value),
            }
        }),
        Value::Array(items) => items.iter_mut().for_each(hide),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_shown_without_secrets_and_only_their_beginning() {
        let body = br#"{"id":"1","key":"rk_live_x","list":[{"secret":"whsec_x","signing_secret":"y","token":null}]}"#;
        let text = shown(body);
        assert!(text.contains("\"id\":\"1\"") && text.contains("\"token\":null"), "{text}");
        assert!(!text.contains("rk_live") && !text.contains("whsec") && !text.contains("\"y\""), "{text}");
        let feed = shown(br#"{"path":"/calendar/0190d0f2.ics","other":"/calendar"}"#);
        assert!(!feed.contains("0190d0f2") && feed.contains("\"/calendar\""), "{feed}");
        assert_eq!(shown(b"a,b\n1,2\n"), "(8 bytes)");
        let long = format!("{{\"a\":\"{}\"}}", "é".repeat(5000));
        assert!(shown(long.as_bytes()).chars().count() < BODY_CHARS + 40);
    }
}
